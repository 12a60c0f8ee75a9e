"""Calibrate a model: fit a map of its probabilities on labelled rows that it was not trained on.

The tables of the model do not change. The map is stored beside them and applied whenever the model computes
probabilities. An existing calibration is replaced. A threshold or prediction sets that were chosen on held-out rows are
removed, because they were chosen for the old probabilities.

If there are as many rows as in training, and every attribute that the model uses has the same frequencies as in
training, a warning says that these look like the training rows.

With groups or times, the report also contains a held-out log-loss. The rows of each fold of groups are calibrated with
a map fitted to the other folds; with times, about the last fifth of the rows is calibrated with a map fitted to earlier
rows. The map that is stored is fitted to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.calibration import (
    FEW_FOR_ISOTONIC,
    METHODS,
    MOST_TEMPERATURE,
    Calibration,
    Isotonic,
    PerClass,
    Temperature,
    fit_calibration,
    held_out_loss,
    refuse_directed,
    refuse_few,
)
from bncli.engine.data.dataset import encode_labels
from bncli.engine.data.splits import SplitRecord, inner_splits, latest_rows, record_split
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.prediction.decision_rules import without_held_out
from bncli.engine.prediction.monitoring import are_training_rows, drift_of
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.prediction.verification import with_self_test
from bncli.errors import BncliError, UsageError, alternatives
from bncli.files.artifacts.model import calibration_json, read_model, split_json, write_model
from bncli.files.paths import check_outputs
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.steps.run import Stopwatch, with_memory_limit
from bncli.watch import Note, Run, Stage, Watch

FOLDS = 5


@dataclass(frozen=True)
class CalibrateReport:
    """The result of a calibration: the files of the model before and after, its labels, and the fitted map.

    on_training_rows: whether there are as many rows as in training, with the same frequencies in every column that the
    model uses. split: how rows were held out. held_out: the log-loss of the held-out rows, in nats per row. split and
    held_out are None without groups or times.
    """

    model: str
    output: str
    labels: tuple[str, ...]
    calibration: Calibration
    on_training_rows: bool
    seconds: dict[str, float]
    split: SplitRecord | None = None
    held_out: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields, with the calibration's own keys as in the model file."""
        report: dict[str, Any] = {"model": self.model, "output": self.output, "labels": list(self.labels)}
        report |= calibration_json(self.calibration)
        if self.split is not None:
            report["log_loss"] |= {"held_out": self.held_out}
            report["split"] = split_json(self.split)
        return report | {"on_training_rows": self.on_training_rows, "seconds": self.seconds}


def calibrate(
    model_path: str, source: Source, output: str, method: str = "temperature", *, run: Run = Run()
) -> CalibrateReport:
    """Calibrate the model in the file `model_path` on the rows of `source`, and write it to `output`.

    Raises the errors of `calibrate_model`.
    """
    check_outputs((output, source.bad_rows_file), source.paths)
    watch = Stopwatch(run.watch)
    model, on_training_rows, split, held_out = calibrate_model(
        read_model(model_path), source, method, run=run._replace(watch=watch)
    )
    watch(Stage("write"))
    write_model(output, model)
    calibration, labels = model.calibration, model.schema.labels
    assert calibration is not None
    return CalibrateReport(model_path, output, labels, calibration, on_training_rows, watch.seconds(), split, held_out)


def calibrate_model(
    model: Model, source: Source, method: str, *, run: Run = Run()
) -> tuple[Model, bool, SplitRecord | None, float | None]:
    """Return the model calibrated on `source`, with a new self-test, and three results about the rows.

    The results are whether the rows look like the training rows, how they were split, and the held-out log-loss in nats
    per row; the last two are None without groups or times.

    Raises UsageError for an unknown method, and for one that may violate the monotonicity constraints of the model.
    Raises ModelError for rows that do not fit the model, and BncliError for too few rows or if no row can be held out.
    """
    if method not in METHODS:
        raise UsageError(f"there is no calibration {method!r}", hint=f"choose {alternatives(METHODS)}")
    schema, watch = model.schema, run.watch
    if schema.directed:
        refuse_directed(method, len(schema.labels))
    if model.calibration is not None:
        watch(Note("the model is already calibrated; the new calibration replaces the old one"))
        model = replace(model, calibration=None)
    watch(Stage("read"))
    used = compile_scorer(model).used
    names = [schema.attributes[i].name for i in used]
    memory = with_memory_limit(run).memory
    rows = read_labelled(source, schema, names, threads=run.threads, watch=watch, memory=memory)
    by = rows.split_by
    if source.window is not None and by is not None:
        latest = latest_rows(by, source.window)
        watch(Note(f"--window {source.window}: calibrated on the latest {len(latest):,} of {rows.n_rows:,} rows"))
        rows = rows.take(latest)
        by = rows.split_by
    watch(Stage("calibrate"))
    labels = encode_labels(rows, schema)
    weights = rows.weights
    if model.class_weights is not None:
        # The model predicts for weighted classes, so the rows are weighted in the same way.
        of_class = np.array(model.class_weights)[labels]
        weights = of_class if weights is None else of_class * weights
    on_training_rows = are_training_rows(rows, model, used)
    if on_training_rows:
        what = "the rows look like the training rows of the model, which any model predicts better than new rows"
        watch(Note(f"{what}; calibrate on held-out rows", warning=True))
    try:
        refuse_few(method, schema.labels, labels, None if by is None else by.units)
    except BncliError as error:
        raise type(error)(error.what, where=source.paths[0], hint=error.hint) from None
    log_p = predict(model, rows, allow_missing=source.allow_missing_columns)
    calibration = fit_calibration(method, log_p, labels, weights)
    held_out = None
    if by is not None:
        splits = inner_splits(labels, FOLDS, 0, by)
        if not splits:
            what = "no row can be held out: the last rows contain no new group, or --gap is too long"
            raise BncliError(what, where=source.paths[0], hint="leave out --group or --time, or shorten --gap")
        held_out = held_out_loss(method, log_p, labels, weights, splits)
    if calibration.map == Temperature(MOST_TEMPERATURE):
        what = (
            f"the temperature reached its upper bound, {MOST_TEMPERATURE:g}: the model has no predictive value on "
            f"these rows"
        )
        watch(Note(what, warning=True))
    if calibration.map == Temperature(1.0):
        what = "all rows are predicted correctly, so the temperature cannot be estimated and stays 1"
        watch(Note(what, warning=True))
    if isinstance(calibration.map, Isotonic) and calibration.rows < FEW_FOR_ISOTONIC:
        what = f"{calibration.rows:,} rows are too few for isotonic calibration, which overfits"
        watch(Note(f"{what}; use --method temperature, which fits a single number", warning=True))
    counts = np.bincount(labels, weights, len(schema.labels)).astype(np.float64)
    _warn_about_prior(model, counts, method, rows.n_rows, watch)
    if method != Temperature.method:
        calibration = calibration._replace(frequencies=tuple(counts.tolist()))
    rule = None if model.rule is None else without_held_out(model.rule)
    if rule != model.rule:
        what = "the threshold or prediction sets were chosen for the old probabilities, so they were removed"
        watch(Note(f"{what}; choose a threshold with bncli score --threshold, or learn again", warning=True))
    calibrated = with_self_test(replace(model, calibration=calibration, rule=rule, log_p=None))
    split = None if by is None else record_split(rows.n_rows, by)
    return calibrated, on_training_rows, split, held_out


def _warn_about_prior(model: Model, counts: Array, method: str, n_rows: int, watch: Watch) -> None:
    """Warn if the class frequencies clearly differ from those in training; counts (K,): row weight per class."""
    training = np.array(model.schema.label_frequencies)
    if not len(training):
        return
    # Row weights may sum to anything: for the test they are scaled down to at most one per row.
    here, there = (own * min(n / own.sum(), 1) for own, n in ((counts, n_rows), (training, model.n_rows)))
    if not drift_of(here, there, 0, 1).drifted:
        return
    shares, before = counts / counts.sum(), training / training.sum()
    most = int(np.abs(shares - before).argmax())
    what = (
        f"the class frequencies differ from those in training ({model.schema.labels[most]}: here {shares[most]:.3g}, "
        f"in training {before[most]:.3g})"
    )
    if method == Temperature.method:
        how = f"use --method {PerClass.method}, or calibrate on rows like the training rows and use bncli score --prior"
        watch(Note(f"{what}, which a temperature cannot correct: {how}", warning=True))
    else:
        watch(Note(f"{what}; the calibrated probabilities assume the frequencies of these rows"))
