"""Measures how well learning, or a model, predicts rows that it has not seen.

Three protocols: cross-validation of the learning options on one table; learning on one table and testing on another;
testing a model file on a table. A report holds means over the folds, their standard deviations, and every fold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.schema import Cuts
from bncli.engine.evaluation.metrics import METRICS as METRICS
from bncli.engine.evaluation.validate import Examined, Fold, cross_validate, examine, out_of_fold
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import learn
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.structures.named_structure import NamedStructure
from bncli.errors import UsageError
from bncli.files.cuts import read_cuts
from bncli.files.model import read_model
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.scores import NOT_WRITTEN, WRITTEN, write_predictions
from bncli.files.structure import read_structure
from bncli.files.table import Source, read_columns, read_labelled
from bncli.recipe import Recipe
from bncli.steps.memory import free_memory
from bncli.steps.protocol import Protocol
from bncli.steps.stopwatch import Stopwatch
from bncli.steps.supplied_files import class_named_by, file_with_class, recipe_for
from bncli.watch import Stage, Watch, silent

Unseen = Literal["average", "error"]


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
    recipe: Recipe | None,
    *,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    test: Source | None = None,
    model_path: str | None = None,
    cuts: str | None = None,
    structure: str | None = None,
    predictions: str | None = None,
    unseen: Unseen | None = None,
    allow_missing_columns: bool = False,
    threads: int = 1,
    watch: Watch = silent,
) -> EvaluateReport:
    """Cross-validates `recipe` on `source`; or learns on `source` and tests on `test`; or tests a model on `source`.

    `cuts` and `structure` are files that stand in for the recipe's methods. The predictions of the rows tested, in
    their order, go to the file `predictions`. With `allow_missing_columns` a test set may lack columns that
    the model uses.
    """
    test_paths = () if test is None else (*test.paths, test.schema_file)
    refuse_ending(predictions, NOT_WRITTEN, WRITTEN)
    check_outputs((predictions,), (*source.paths, source.schema_file, *test_paths, model_path, cuts, structure))
    given = _Given(read_cuts(cuts) if cuts else None, read_structure(structure) if structure else None, cuts)
    running = _Running(predictions, unseen, allow_missing_columns, threads, Stopwatch(watch))
    if model_path is not None:
        if test is not None:
            raise UsageError("a model is tested on DATA", hint="leave out --test")
        return _of_model(read_model(model_path), source, running)
    if recipe is None:
        raise UsageError("there is nothing to evaluate", hint="give learning options or a model")
    recipe = recipe_for(recipe, given.structure)
    if test is not None:
        return _on_test(source, recipe, given, test, running)
    return _crossed(source, recipe, given, Protocol(folds, repeats, seed), running)


@dataclass(frozen=True)
class _Given:
    """What stands in for learning in every fold."""

    cuts: Cuts | None
    structure: NamedStructure | None
    cuts_file: str | None

    def read(self, source: Source, running: _Running) -> Columns:
        """The table to learn from; its class is the one that was typed (checked later), else that of the files."""
        class_file = None if source.class_name else file_with_class(self.structure, self.cuts_file)
        given = [given.class_name for given in (self.structure, self.cuts) if given is not None]
        class_name = source.class_name or next(filter(None, given), None)
        with class_named_by(class_file, class_name):
            source = replace(source, class_name=class_name)
            return read_columns(source, threads=running.threads, watch=running.watch, given=self.cuts)


@dataclass(frozen=True)
class _Running:
    predictions: str | None
    unseen: Unseen | None
    allow_missing_columns: bool
    threads: int
    watch: Stopwatch

    def write(self, labels: tuple[str, ...], log_probabilities: Array) -> None:
        """The predictions file, if one was asked for."""
        if self.predictions is not None:
            write_predictions(self.predictions, labels, log_probabilities)


def _of_model(model: Model, source: Source, running: _Running) -> EvaluateReport:
    if running.unseen is not None:
        model = replace(model, schema=replace(model.schema, unseen=running.unseen))
    examined, rows = _examined(model, source, running)
    seconds = running.watch.seconds()
    return _single("a model on a test set", rows, model, examined, {"fit": None, "score": seconds["score"]})


def _on_test(source: Source, recipe: Recipe, given: _Given, test: Source, running: _Running) -> EvaluateReport:
    running.watch(Stage("read"))
    columns = given.read(source, running)
    running.watch(Stage("fit"))
    model = learn(
        columns,
        recipe,
        cuts=given.cuts,
        structure=given.structure,
        missing_tokens=source.missing_tokens,
        unseen=running.unseen or "average",
        threads=running.threads,
        memory=free_memory(),
        clock=time.monotonic,
    ).model
    examined, rows = _examined(model, test, running)
    seconds = running.watch.seconds()
    spent: dict[str, float | None] = {"fit": seconds["fit"], "score": seconds["score"]}
    return _single("trained on one table, tested on another", rows, model, examined, spent)


def _examined(model: Model, source: Source, running: _Running) -> tuple[Examined, int]:
    """The model's predictions for a table, written if asked for, and the number of its rows."""
    running.watch(Stage("read"))
    used = [model.schema.attributes[i].name for i in compile_scorer(model).used]
    columns = read_labelled(
        source,
        model.schema,
        used,
        allow_missing=running.allow_missing_columns,
        threads=running.threads,
        watch=running.watch,
    )
    running.watch(Stage("score"))
    examined = examine(model, columns, allow_missing=running.allow_missing_columns)
    running.watch(Stage("write"))
    running.write(model.schema.labels, examined.log_probabilities)
    return examined, columns.n_rows


def _single(
    protocol: str, rows: int, model: Model, examined: Examined, seconds: dict[str, float | None]
) -> EvaluateReport:
    metrics = examined.metrics
    confusion = metrics.confusion.tolist()
    return EvaluateReport(rows, protocol, metrics.figures(), seconds, model.schema.labels, confusion)


def _crossed(source: Source, recipe: Recipe, given: _Given, protocol: Protocol, running: _Running) -> EvaluateReport:
    running.watch(Stage("read"))
    columns = given.read(source, running)
    folds = cross_validate(
        columns,
        recipe,
        folds=protocol.folds,
        repeats=protocol.repeats,
        seed=protocol.seed,
        cuts=given.cuts,
        structure=given.structure,
        missing_tokens=source.missing_tokens,
        unseen=running.unseen or "average",
        threads=running.threads,
        memory=free_memory(),
        clock=time.monotonic,
        watch=running.watch,
    )
    timed = list(_timed(folds, running.watch))
    assert columns.label is not None
    labels = columns.label.levels
    running.watch(Stage("write"))
    running.write(labels, out_of_fold([fold for fold, _ in timed], columns.n_rows))
    return _averaged(str(protocol), columns.n_rows, labels, timed)


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
