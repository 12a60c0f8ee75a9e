"""Calibrates a model: learns, from labelled rows that it was not learnt from, a map of its probabilities.

The tables stay as they are; the map is stored beside them, and whatever says probabilities of the model applies it
last. A calibration that the model has already is replaced. Rows that have in every column the very frequencies of the
rows that the model was learnt from are taken for those rows, and warned of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.calibration import (
    FEW_FOR_ISOTONIC,
    HOTTEST,
    METHODS,
    Calibration,
    Isotonic,
    PerClass,
    Temperature,
    fit_calibration,
    refuse_directed,
    refuse_few,
)
from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import encode_attributes, label_codes
from bncli.engine.evaluation.validate import predict
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.prediction.decision_rules import without_held_out
from bncli.engine.prediction.monitoring import drift_of
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.prediction.verification import with_self_test
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import calibration_json, read_model, write_model
from bncli.files.paths import check_outputs
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.steps.run import Stopwatch, limited
from bncli.watch import Note, Run, Stage, Watch


@dataclass(frozen=True)
class CalibrateReport:
    """What was calibrated by what, and where it is; the labels are in the order of the maps."""

    model: str
    output: str
    labels: tuple[str, ...]
    calibration: Calibration
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the calibration as in the model file, its keys beside the others."""
        report = {"model": self.model, "output": self.output, "labels": list(self.labels)}
        return report | calibration_json(self.calibration) | {"seconds": self.seconds}


def calibrate(
    model_path: str, source: Source, output: str, method: str = "temperature", *, run: Run = Run()
) -> CalibrateReport:
    """Write the model at `model_path`, calibrated on `source`, to `output`.

    Raises UsageError for an unknown method, ModelError for rows that do not fit the model, BncliError for too few.
    """
    check_outputs((output, source.bad_rows_file), source.paths)
    watch = Stopwatch(run.watch)
    found = calibrated(read_model(model_path), source, method, run=run._replace(watch=watch))
    watch(Stage("write"))
    write_model(output, found)
    assert found.calibration is not None
    return CalibrateReport(model_path, output, found.schema.labels, found.calibration, watch.seconds())


def calibrated(model: Model, source: Source, method: str, *, run: Run = Run()) -> Model:
    """Return the model with a map learnt from `source`, and a self-test of what it says now."""
    if method not in METHODS:
        raise UsageError(f"there is no calibration {method!r}", hint=f"choose {', '.join(METHODS)}")
    if model.schema.directed:
        refuse_directed(method, len(model.schema.labels))
    if model.calibration is not None:
        run.watch(Note("the model is calibrated already: that calibration is replaced"))
        model = replace(model, calibration=None)
    run.watch(Stage("read"))
    used = [model.schema.attributes[i].name for i in compile_scorer(model).used]
    memory = limited(run).memory
    rows = read_labelled(source, model.schema, used, threads=run.threads, watch=run.watch, memory=memory)
    run.watch(Stage("calibrate"))
    weights = _weights(rows, model)
    if _are_training_rows(rows, weights, model):
        what = "these look like the rows that the model was learnt from: what it says of them is bolder than of others"
        run.watch(Note(f"{what}; calibrate on rows that were held out", warning=True))
    labels = label_codes(rows, model.schema)
    try:
        refuse_few(method, model.schema.labels, labels)
    except BncliError as error:
        raise type(error)(error.what, where=source.paths[0], hint=error.hint) from None
    log_p = predict(model, rows, allow_missing=source.allow_missing_columns)
    calibration = fit_calibration(method, log_p, labels, weights)
    _warn(calibration, run.watch)
    counts = np.bincount(labels, weights, len(model.schema.labels)).astype(np.float64)
    _warn_about_prior(model, counts, method, rows.n_rows, run.watch)
    if method != Temperature.method:
        calibration = calibration._replace(frequencies=tuple(counts.tolist()))
    rule = None if model.rule is None else without_held_out(model.rule)
    if rule != model.rule:
        what = (
            "the threshold or the prediction sets that rows held out gave are of the probabilities before, and left out"
        )
        run.watch(Note(f"{what}: say score --threshold, or learn again", warning=True))
    return with_self_test(replace(model, calibration=calibration, rule=rule, log_p=None))


def _weights(rows: Columns, model: Model) -> Array | None:
    """Those of the rows, times the class weights that the model was learnt under, whose probabilities it says."""
    if model.class_weights is None:
        return rows.weights
    own = np.array(model.class_weights)[label_codes(rows, model.schema)]
    return own if rows.weights is None else own * rows.weights


def _are_training_rows(rows: Columns, weights: Array | None, model: Model) -> bool:
    """Whether there are as many, and each value of every attribute used has the weight that it had in training."""
    used = [i for i in compile_scorer(model).used if model.schema.attributes[i].name in rows.attributes]
    if rows.n_rows != model.n_rows or not used:
        return False
    for i, codes in zip(used, encode_attributes(rows, model.schema, used).codes, strict=True):
        attribute = model.schema.attributes[i]
        told = (*attribute.frequencies, attribute.missing_weight)
        found = np.bincount(codes, weights, attribute.cardinality + 1)
        if not np.allclose(found, told, rtol=1e-9, atol=0):
            return False
    return True


def _warn(calibration: Calibration, watch: Watch) -> None:
    """Warn about a calibration map that should not be trusted."""
    found = calibration.map
    if found == Temperature(HOTTEST):
        what = f"the temperature is at its bound, {HOTTEST:g}: the model tells nothing of these rows"
        watch(Note(what, warning=True))
    if found == Temperature(1.0):
        what = "all rows are predicted right, for which no temperature is sharp enough: it is left at 1"
        watch(Note(what, warning=True))
    if isinstance(found, Isotonic) and calibration.rows < FEW_FOR_ISOTONIC:
        what = f"{calibration.rows:,} rows are few for isotonic maps, which follow their chances"
        watch(Note(f"{what}: --method temperature has one number to learn", warning=True))


def _warn_about_prior(model: Model, counts: Array, method: str, n_rows: int, watch: Watch) -> None:
    """Warn if the classes are clearly not as frequent as in training; counts (K,): their weights here."""
    training = np.array(model.schema.label_frequencies)
    if not len(training):
        return
    here, there = (own * min(n / own.sum(), 1) for own, n in ((counts, n_rows), (training, model.n_rows)))
    if not drift_of(here, there, 0, 1).drifted:
        return
    shares, before = counts / counts.sum(), training / training.sum()
    most = int(np.abs(shares - before).argmax())
    what = (
        f"the classes are not as frequent here as in training ({model.schema.labels[most]} {shares[most]:.3g}, "
        f"there {before[most]:.3g})"
    )
    if method == Temperature.method:
        how = f"say --method {PerClass.method}, or calibrate on rows like those of training and score with --prior"
        watch(Note(f"{what}, which a temperature cannot follow: {how}", warning=True))
    else:
        watch(Note(f"{what}: probabilities are under the frequencies here, from which --prior reckons"))
