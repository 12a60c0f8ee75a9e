"""Measures how well learning, or a model, predicts rows that it has not seen.

Three protocols: cross-validation of the learning options on one table; learning on one table and testing on another;
testing a model file on a table. A report holds means over the folds, their standard deviations, and every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np

from bncli.engine.data.schema import Reading, Unseen
from bncli.engine.evaluation.metrics import METRICS as METRICS
from bncli.engine.evaluation.validate import Examined, Fold, Protocol, cross_validate, examine, out_of_fold
from bncli.engine.learn import learn
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import compile_scorer
from bncli.files.model import read_model
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.scores import NOT_WRITTEN, WRITTEN, write_predictions
from bncli.files.table import Source, read_labelled
from bncli.recipe import Recipe
from bncli.steps.run import Stopwatch, limited
from bncli.steps.supplied_files import Supplied
from bncli.watch import Run, Stage, warnings_of


@dataclass(frozen=True)
class FoldReport:
    """One fold: its figures by name, the penalty of the fit, and the seconds that it took to fit and to score."""

    repeat: int
    fold: int
    rows: int
    metrics: dict[str, float | None]
    penalty: float | None
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """The figures beside the rest."""
        fields = {"repeat": self.repeat, "fold": self.fold, "rows": self.rows, **self.metrics}
        return {**fields, "penalty": self.penalty, "seconds": self.seconds}


@dataclass(frozen=True)
class EvaluateReport:
    """Figures by name, and under cross-validation their means and standard deviations over `folds`.

    A figure is None where it is not defined. confusion[true][predicted], in the order of `labels`, is summed over
    the folds. seconds: fit (None for a model file) and score, means too.
    """

    rows: int
    protocol: str
    metrics: dict[str, float | None]
    seconds: dict[str, float | None]
    labels: tuple[str, ...]
    confusion: list[list[float]]
    std: dict[str, float | None] | None = None
    folds: tuple[FoldReport, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Every figure as a key of its own; `std` and `folds` only under cross-validation."""
        report: dict[str, Any] = {
            "rows": self.rows,
            "protocol": self.protocol,
            **self.metrics,
            "seconds": self.seconds,
            "labels": list(self.labels),
            "confusion": self.confusion,
        }
        if self.folds is not None:
            report |= {"std": self.std, "folds": [fold.as_json() for fold in self.folds]}
        return report


def evaluate(
    source: Source,
    recipe: Recipe,
    protocol: Protocol = Protocol(),
    *,
    supplied: Supplied = Supplied(),
    predictions: str | None = None,
    unseen: Unseen = "average",
    run: Run = Run(),
) -> EvaluateReport:
    """Cross-validates `recipe` on `source`; what is supplied stands in for its methods in every fold.

    The predictions of the rows tested, in their order, go to the file `predictions`.
    """
    _check_files(predictions, source, *supplied.paths)
    recipe, watch = supplied.recipe(recipe), Stopwatch(run.watch)
    run = run._replace(watch=watch)
    watch(Stage("read"))
    columns = supplied.read(source, run)
    reading = Reading(source.missing_tokens, unseen)
    folds = cross_validate(columns, recipe, protocol, given=supplied, reading=reading, run=limited(run))
    timed = list(_timed(folds, watch))
    assert columns.label is not None
    labels = columns.label.levels
    watch(Stage("write"))
    if predictions is not None:
        write_predictions(predictions, labels, out_of_fold([fold for fold, _ in timed], columns.n_rows))
    return _averaged(str(protocol), columns.n_rows, labels, timed)


def evaluate_on(
    source: Source,
    test: Source,
    recipe: Recipe,
    *,
    supplied: Supplied = Supplied(),
    predictions: str | None = None,
    unseen: Unseen = "average",
    run: Run = Run(),
) -> EvaluateReport:
    """Learns on `source`, as `evaluate` does, and tests on `test`."""
    _check_files(predictions, source, *test.paths, test.schema_file, *supplied.paths)
    recipe, watch = supplied.recipe(recipe), Stopwatch(run.watch)
    run = run._replace(watch=watch)
    watch(Stage("read"))
    columns = supplied.read(source, run)
    watch(Stage("fit"))
    quiet = limited(run._replace(watch=warnings_of(watch)))
    reading = Reading(source.missing_tokens, unseen)
    model = learn(columns, recipe, given=supplied, reading=reading, run=quiet).model
    examined, rows = _examined(model, test, predictions, run)
    seconds = watch.seconds()
    spent: dict[str, float | None] = {"fit": seconds["fit"], "score": seconds["score"]}
    return _single("trained on one table, tested on another", rows, model, examined, spent)


def evaluate_model(
    path: str,
    source: Source,
    *,
    predictions: str | None = None,
    unseen: Unseen | None = None,
    run: Run = Run(),
) -> EvaluateReport:
    """Tests the model in a file on `source`; `unseen` None: as the model says."""
    _check_files(predictions, source, path)
    watch = Stopwatch(run.watch)
    model = read_model(path)
    if unseen is not None:
        model = replace(model, schema=replace(model.schema, unseen=unseen))
    examined, rows = _examined(model, source, predictions, run._replace(watch=watch))
    seconds = watch.seconds()
    return _single("a model on a test set", rows, model, examined, {"fit": None, "score": seconds["score"]})


def _check_files(predictions: str | None, source: Source, *others: str | None) -> None:
    """UsageError for predictions that cannot be written, or would be written over what is read."""
    refuse_ending(predictions, NOT_WRITTEN, WRITTEN)
    check_outputs((predictions,), (*source.paths, source.schema_file, *others))


def _examined(model: Model, source: Source, predictions: str | None, run: Run) -> tuple[Examined, int]:
    """The model's predictions for a table, written if asked for, and the number of its rows."""
    run.watch(Stage("read"))
    used = [model.schema.attributes[i].name for i in compile_scorer(model).used]
    columns = read_labelled(
        source, model.schema, used, threads=run.threads, watch=run.watch, memory=limited(run).memory
    )
    run.watch(Stage("score"))
    examined = examine(model, columns, allow_missing=source.allow_missing_columns)
    run.watch(Stage("write"))
    if predictions is not None:
        write_predictions(predictions, model.schema.labels, examined.log_probabilities)
    return examined, columns.n_rows


def _single(
    protocol: str, rows: int, model: Model, examined: Examined, seconds: dict[str, float | None]
) -> EvaluateReport:
    metrics = examined.metrics
    confusion = metrics.confusion.tolist()
    return EvaluateReport(rows, protocol, metrics.figures(), seconds, model.schema.labels, confusion)


def _timed(folds: Iterable[Fold], watch: Stopwatch) -> Iterator[tuple[Fold, dict[str, float]]]:
    """Each fold with the seconds that it took to fit and to score."""
    before = {"fit": 0.0, "score": 0.0}
    for fold in folds:
        now = watch.seconds()
        yield fold, {stage: now[stage] - seconds for stage, seconds in before.items()}
        before = {stage: now[stage] for stage in before}


def _averaged(
    protocol: str, rows: int, labels: tuple[str, ...], timed: list[tuple[Fold, dict[str, float]]]
) -> EvaluateReport:
    reports = tuple(
        FoldReport(fold.repeat, fold.number, len(fold.rows), fold.examined.metrics.figures(), fold.penalty, seconds)
        for fold, seconds in timed
    )
    return EvaluateReport(
        rows=rows,
        protocol=protocol,
        metrics=_each([report.metrics for report in reports], METRICS, fmean),
        seconds=_each([report.seconds for report in reports], ("fit", "score"), fmean),
        labels=labels,
        confusion=np.sum([fold.examined.metrics.confusion for fold, _ in timed], axis=0).tolist(),
        std=_each([report.metrics for report in reports], METRICS, stdev, at_least=2),
        folds=reports,
    )


def _each(
    folds: Sequence[Mapping[str, float | None]],
    names: tuple[str, ...],
    summary: Callable[[list[float]], float],
    at_least: int = 1,
) -> dict[str, float | None]:
    """The summary of each figure over the folds where it is defined; None where those are too few."""
    defined = {name: [value for fold in folds if (value := fold[name]) is not None] for name in names}
    return {name: summary(values) if len(values) >= at_least else None for name, values in defined.items()}
