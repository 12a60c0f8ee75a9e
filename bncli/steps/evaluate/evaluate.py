"""Measures how well learning, or a model, predicts rows that it has not seen.

Three protocols: cross-validation of the learning options on one table; learning on one table and testing on another;
testing a model file on a table. A report holds means over the folds, their standard deviations, and every fold; what
needs all rows at once (curves, figures of every label) comes from the predictions of all folds together. With samples
of the rows to learn from, a learning curve stands beside it all.

A model on a test table: its rows as read, what it says of them, and the report of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import encode_labels
from bncli.engine.data.schema import ReadingRules, Unseen
from bncli.engine.evaluation.cross_validation import (
    CrossValidation,
    Fold,
    MeasuredPredictions,
    Protocol,
    cross_validate,
    out_of_fold,
    predict_and_measure,
)
from bncli.engine.evaluation.curves import measure_calibration
from bncli.engine.evaluation.metrics import METRICS as METRICS
from bncli.engine.evaluation.metrics import Baseline, class_frequencies, measure_baseline, measure_labels
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.learn import learn
from bncli.engine.model import Model
from bncli.engine.parameters.network_scores import mean_scores
from bncli.engine.prediction.decision_rules import DecisionOptions
from bncli.engine.prediction.positive_label import with_positive_label
from bncli.engine.prediction.scoring import compile_scorer
from bncli.files.artifacts.model import read_model
from bncli.files.exports.prediction_files import SUPPORTED_FORMATS, UNSUPPORTED_ENDINGS, write_predictions
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.cluster.tasks import checked_cluster, files_of
from bncli.steps.evaluate.by_column import (
    attributes_of,
    carrying,
    group_columns,
    recipe_cuts,
    with_groups,
    without_group_columns,
)
from bncli.steps.evaluate.learning_curve import SampleFit, Samples, learn_samples, learning_curve, write_curve
from bncli.steps.evaluate.on_cluster import FoldPlan, TimedFold, folds_on_cluster, timed
from bncli.steps.evaluate.plots import check_folder, write_pictures
from bncli.steps.evaluate.report import EvaluateReport, FoldReport, Pooled, decision_report, summarized
from bncli.steps.run import Stopwatch, with_memory_limit
from bncli.steps.score import rule_to_score
from bncli.steps.supplied_files import SuppliedFiles, refuse_scores
from bncli.watch import Note, Run, Stage, Watch, forward_warnings


class TestedRows(NamedTuple):
    """The rows of a test set: their labels as positions in `labels`, their weights, and what a model says of them."""

    labels: tuple[str, ...]
    codes: Integers
    weights: Array | None
    examined: MeasuredPredictions


@dataclass(frozen=True)
class EvaluateOutputs:
    """What an evaluation gives beside its figures, and the files that it writes; None: not this.

    predictions: a file of the (out-of-fold) predictions, in row order. svg: a folder of pictures of the curves.
    samples: what else is learnt from, for a learning curve; csv: a file of its outcomes. by: columns
    whose values have figures of their own, each alone or several with commas between.
    reliability: bins of probabilities.
    """

    predictions: str | None = None
    svg: str | None = None
    csv: str | None = None
    by: tuple[str, ...] = ()
    reliability: bool = False
    samples: Samples = field(default_factory=Samples)


def evaluate(
    source: Source,
    recipe: Recipe,
    protocol: Protocol = Protocol(),
    *,
    supplied: SuppliedFiles = SuppliedFiles(),
    outputs: EvaluateOutputs = EvaluateOutputs(),
    unseen: Unseen = "average",
    run: Run = Run(),
) -> EvaluateReport:
    """Cross-validates `recipe` on `source`; what is supplied stands in for its methods in every fold."""
    _check_files(outputs, source, *supplied.paths)
    recipe, watch = supplied.update_recipe(recipe), Stopwatch(run.watch)
    if protocol.scores:
        refuse_scores(recipe, supplied)
    run = run._replace(watch=watch)
    watch(Stage("read"))
    carried = carrying(source, outputs.by)
    whole_table = supplied.read(carried, run, recipe)
    columns = without_group_columns(whole_table, carried)
    grouped = group_columns(whole_table, carried, lambda: recipe_cuts(columns, recipe, supplied.cuts, run), watch)
    del whole_table
    reading = ReadingRules(source.missing_tokens, unseen)
    most = columns.n_rows - columns.n_rows // protocol.folds
    sizes = outputs.samples.of(most, f"to learn from in a fold ({columns.n_rows:,} rows, {protocol.folds} folds)")
    with _folds(
        columns, FoldPlan(source, supplied, CrossValidation(recipe, protocol, supplied, reading, sizes)), run
    ) as folds:
        whole, sampled = _sorted_out(folds)
    report = with_groups(_averaged(str(protocol), columns, whole), grouped)
    assert report.folds is not None
    return _finish_report(replace(report, learning_curve=learning_curve(sizes, sampled, report.folds)), outputs, watch)


def _check_files(outputs: EvaluateOutputs, source: Source, *others: str | None) -> None:
    """Raise UsageError for outputs that cannot be written, or would be written over what is read."""
    refuse_ending(outputs.predictions, UNSUPPORTED_ENDINGS, SUPPORTED_FORMATS)
    pictures = () if outputs.svg is None else check_folder(outputs.svg, curve=bool(outputs.samples.sizes))
    check_outputs((outputs.predictions, outputs.csv, *pictures), (*source.paths, source.schema_file, *others))


@contextmanager
def _folds(columns: Columns, plan: FoldPlan, run: Run) -> Iterator[Iterator[TimedFold]]:
    """Yield every fold, in order, learnt here or on a cluster."""
    asked, watch = plan.asked, run.watch
    if run.cluster is not None:
        with checked_cluster(run.cluster, files_of([plan.source]), watch) as cluster:
            yield folds_on_cluster(cluster, plan, watch)
        return
    assert isinstance(watch, Stopwatch)
    told = with_memory_limit(run)
    folds = cross_validate(columns, asked, told)
    yield timed(folds, watch)


def _sorted_out(timed_folds: Iterable[TimedFold]) -> tuple[list[TimedFold], list[tuple[int, FoldReport]]]:
    """Return the folds with their seconds, and the reports of their samples by size, whose predictions are not kept."""
    folds, sampled = list[TimedFold](), list[tuple[int, FoldReport]]()
    for fold, seconds in timed_folds:
        if fold.size is None:
            folds.append((fold, seconds))
        else:
            sampled.append((fold.size, _fold_report(fold, seconds)))
    return folds, sampled


def _fold_report(fold: Fold, seconds: dict[str, float]) -> FoldReport:
    figures = fold.measured.metrics.by_name()
    decided = fold.measured.decisions
    return FoldReport(fold.repeat, fold.number, len(fold.rows), figures, fold.baseline, fold.penalty, seconds, decided)


def _averaged(protocol: str, columns: Columns, timed_folds: list[TimedFold]) -> EvaluateReport:
    label, folds = columns.label, [fold for fold, _ in timed_folds]
    assert label is not None
    pooled = Pooled(out_of_fold(folds, columns.n_rows), label.codes, columns.weights)
    reports = tuple(_fold_report(fold, seconds) for fold, seconds in timed_folds)
    confusion = np.sum([fold.measured.metrics.confusion for fold in folds], axis=0)
    return EvaluateReport(
        rows=columns.n_rows,
        protocol=protocol,
        metrics=summarized([report.metrics for report in reports], METRICS, fmean),
        base=Baseline(fmean(fold.baseline.accuracy for fold in folds), fmean(fold.baseline.log_loss for fold in folds)),
        seconds=summarized([report.seconds for report in reports], ("fit", "score"), fmean),
        labels=label.levels,
        confusion=confusion.tolist(),
        per_label=measure_labels(confusion),
        pooled=pooled,
        decisions=decision_report(
            [fold.measured.decisions for fold in folds], pooled, [f.rows for f in folds if not f.repeat]
        ),
        std=summarized([report.metrics for report in reports], METRICS, stdev, at_least=2),
        folds=reports,
        scored=None if folds[0].scored is None else mean_scores([fold.scored for fold in folds if fold.scored]),
    )


def _finish_report(report: EvaluateReport, outputs: EvaluateOutputs, watch: Watch) -> EvaluateReport:
    """Return the report, once everything is written, and a warning given where it says that nothing was learnt."""
    if outputs.reliability:
        report = replace(report, calibration=measure_calibration(report.labels, *report.pooled))
    watch(Stage("write"))
    if outputs.predictions is not None:
        write_predictions(outputs.predictions, report.labels, report.pooled.log_probabilities)
    if outputs.csv is not None:
        write_curve(outputs.csv, report.learning_curve)
    if outputs.svg is not None:
        write_pictures(report, outputs.svg)
    if report.skill_score is not None and report.skill_score <= 0:
        text = (
            f"no better than the class frequencies: the log-loss is {report.metrics['log_loss']:.4f}, "
            f"that of the frequencies {report.base.log_loss:.4f}"
        )
        watch(Note(text, warning=True))
    return report


def read_test(models: Sequence[Model], source: Source, run: Run) -> Columns:
    """Return the rows of a test table, with all columns that the models use.

    The first model knows the values of all.
    """
    run.watch(Stage("read"))
    used = dict.fromkeys(m.schema.attributes[i].name for m in models for i in compile_scorer(m).used)
    known = {attribute.name for attribute in models[0].schema.attributes}
    used |= dict.fromkeys(name for name in source.carried if name in known)
    memory = with_memory_limit(run).memory
    return read_labelled(source, models[0].schema, list(used), threads=run.threads, watch=run.watch, memory=memory)


def tested_rows(model: Model, rows: Columns, source: Source, run: Run) -> TestedRows:
    """Has the model predict the rows of a table."""
    run.watch(Stage("score"))
    examined = predict_and_measure(model, rows, allow_missing=source.allow_missing_columns)
    return TestedRows(model.schema.labels, encode_labels(rows, model.schema), rows.weights, examined)


def single_report(
    protocol: str, tested: TestedRows, frequencies: Array, seconds: Mapping[str, float | None]
) -> EvaluateReport:
    """Return the report of one test set."""
    labels, codes, weights, examined = tested
    confusion = examined.metrics.confusion
    pooled = Pooled(examined.log_probabilities, codes, weights)
    return EvaluateReport(
        rows=len(codes),
        protocol=protocol,
        metrics=examined.metrics.by_name(),
        base=measure_baseline(frequencies, codes, weights),
        seconds=dict(seconds),
        labels=labels,
        confusion=confusion.tolist(),
        per_label=measure_labels(confusion),
        pooled=pooled,
        decisions=decision_report([examined.decisions], pooled),
    )


def evaluate_on(
    source: Source,
    test: Source,
    recipe: Recipe,
    *,
    supplied: SuppliedFiles = SuppliedFiles(),
    outputs: EvaluateOutputs = EvaluateOutputs(),
    unseen: Unseen = "average",
    run: Run = Run(),
) -> EvaluateReport:
    """Learn on `source`, as `evaluate` does, and tests on `test`."""
    _check_files(outputs, source, *test.paths, test.schema_file, *supplied.paths)
    recipe, watch = supplied.update_recipe(recipe), Stopwatch(run.watch)
    run = run._replace(watch=watch)
    watch(Stage("read"))
    columns = supplied.read(source, run, recipe)
    sizes = outputs.samples.of(columns.n_rows, "to learn from")
    watch(Stage("fit"))
    reading = ReadingRules(source.missing_tokens, unseen)

    def learnt(rows: Columns, told: Watch) -> Model:
        return learn(
            rows, recipe, supplied=supplied, reading_rules=reading, run=with_memory_limit(run._replace(watch=told))
        ).model

    model = learnt(columns, forward_warnings(watch))
    seconds: dict[str, float | None] = {"fit": watch.seconds()["fit"]}
    sampled = list(learn_samples(columns, outputs.samples, sizes, learnt, watch))
    test = carrying(test, outputs.by)
    rows = read_test([model, *(one.model for one in sampled)], test, run)
    tested = tested_rows(model, rows, test, run)
    frequencies = class_frequencies(encode_labels(columns, model.schema), len(model.schema.labels), columns.weights)
    seconds["score"] = watch.seconds()["score"]
    report = single_report("trained on one table, tested on another", tested, frequencies, seconds)
    report = with_groups(report, group_columns(rows, test, lambda: attributes_of(model), watch))
    others = [(one.size, _sample_report(one, tested, rows, test, watch)) for one in sampled]
    whole = _as_folds(report, outputs.samples.repeats if sizes else 0, model.penalty)
    return _finish_report(replace(report, learning_curve=learning_curve(sizes, others, whole)), outputs, watch)


def _sample_report(sample: SampleFit, tested: TestedRows, rows: Columns, test: Source, watch: Stopwatch) -> FoldReport:
    """Return what the model of a sample says of the test rows."""
    begun = watch.seconds()["score"]
    figures = predict_and_measure(sample.model, rows, allow_missing=test.allow_missing_columns).metrics.by_name()
    base = measure_baseline(sample.frequencies, tested.codes, tested.weights)
    seconds = {"fit": sample.seconds, "score": watch.seconds()["score"] - begun}
    return FoldReport(sample.repeat, 0, rows.n_rows, figures, base, sample.model.penalty, seconds)


def _as_folds(report: EvaluateReport, repeats: int, penalty: float | None) -> list[FoldReport]:
    """Return the report of a test table as that of the one fold of each repeat."""
    seconds = {stage: value for stage, value in report.seconds.items() if value is not None}
    return [FoldReport(i, 0, report.rows, report.metrics, report.base, penalty, seconds) for i in range(repeats)]


def evaluate_model(
    path: str,
    source: Source,
    *,
    outputs: EvaluateOutputs = EvaluateOutputs(),
    unseen: Unseen | None = None,
    decisions: DecisionOptions = DecisionOptions(),
    run: Run = Run(),
) -> EvaluateReport:
    """Test the model in a file on `source`; `unseen` None: as the model says.

    decisions: what is wanted instead of what the model records of them.
    """
    _check_files(outputs, source, path)
    model = read_model(path)
    if unseen is not None:
        model = replace(model, schema=replace(model.schema, unseen=unseen))
    return evaluate_learnt(model, source, outputs=outputs, decisions=decisions, run=run)


def evaluate_learnt(
    model: Model,
    source: Source,
    *,
    outputs: EvaluateOutputs = EvaluateOutputs(),
    decisions: DecisionOptions = DecisionOptions(),
    run: Run = Run(),
) -> EvaluateReport:
    """Test a model on `source`, deciding as it says or as is wanted instead."""
    model = with_positive_label(model, source.positive)
    watch = Stopwatch(run.watch)
    run = run._replace(watch=watch)
    model = replace(model, rule=rule_to_score(model, decisions, False, watch))
    source = carrying(source, outputs.by)
    rows = read_test([model], source, run)
    tested = tested_rows(model, rows, source, run)
    spent = watch.seconds()
    frequencies = class_frequencies(tested.codes, len(tested.labels), tested.weights)
    report = single_report("a model on a test set", tested, frequencies, {"fit": None, "score": spent["score"]})
    report = with_groups(report, group_columns(rows, source, lambda: attributes_of(model), watch))
    return _finish_report(report, outputs, watch)
