"""Evaluate learning options by cross-validation, or a model on a test table.

- `evaluate`: cross-validate the learning options on one table.
- `evaluate_on`: fit a model to one table and test it on another.
- `evaluate_model`, `evaluate_fitted`: test a model on a table.

Under cross-validation, a report holds the means and standard deviations of the metrics over the folds, and every fold.
The metrics per label are computed from the predictions of all folds together, and the curves from the predictions of
the first repeat. With samples of the training rows, the report also has a learning curve. The samples are stratified
and nested: larger ones contain the smaller ones.

On a cluster, each fold of each repeat is a task, and every worker reads the table itself. The folds and their notes
arrive in order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean, stdev

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import encode_labels
from bncli.engine.data.schema import ReadingRules, Unseen
from bncli.engine.data.splits import count_units, nested_samples, record_split
from bncli.engine.evaluation.cross_validation import (
    CrossValidation,
    Fold,
    MeasuredPredictions,
    Protocol,
    Split,
    cross_validate,
    draw_splits,
    hold_out_with_samples,
    out_of_fold,
    predict_and_measure,
)
from bncli.engine.evaluation.curves import measure_calibration
from bncli.engine.evaluation.intervals import PredictedBlock, effective_units, measure_intervals, overlap_variance
from bncli.engine.evaluation.metrics import (
    METRICS,
    Baseline,
    class_frequencies,
    measure,
    measure_baseline,
    measure_decisions,
    measure_labels,
)
from bncli.engine.evaluation.table_checks import Finding, TableCheck, too_good
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.learn import learn
from bncli.engine.model import HeldOutPredictions, Model
from bncli.engine.parameters.network_scores import mean_scores
from bncli.engine.prediction.decision_rules import DecisionOptions
from bncli.engine.prediction.edits import with_positive_label
from bncli.engine.prediction.monitoring import are_training_rows
from bncli.engine.prediction.scoring import compile_scorer
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.exports.prediction_files import SUPPORTED_FORMATS, UNSUPPORTED_ENDINGS, write_predictions
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.files.reading.table import TABLE_NAME
from bncli.recipe import Recipe
from bncli.steps.cluster.tasks import checked_cluster, files_of, for_workers, run_tasks
from bncli.steps.evaluate.group_columns import (
    carry_group_columns,
    group_columns,
    recipe_attributes,
    with_groups,
    without_group_columns,
)
from bncli.steps.evaluate.report import (
    BLOCKS_FILE,
    CURVE_FILES,
    LEARNING_CURVE_FILE,
    BlockReport,
    EvaluateReport,
    FoldReport,
    PredictedRows,
    check_folder,
    draw_curves,
    learning_curve,
    summarize,
    summarize_decisions,
    write_drawings,
    write_learning_curve,
)
from bncli.steps.learning_inputs import SuppliedFiles, check_training_table, refuse_scores
from bncli.steps.run import Stopwatch, with_memory_limit
from bncli.steps.score import rule_to_score
from bncli.watch import Event, Note, Progress, Run, Stage, Watch, forward_warnings, silent

ALL = "all"
"""The sample size that stands for all training rows."""
TimedFold = tuple[Fold, dict[str, float]]
"""A fold, and the seconds that its stages `fit` and `score` took."""
SharedByWorkers = tuple[Source, SuppliedFiles, CrossValidation]


@dataclass(frozen=True)
class Samples:
    """The sizes of nested samples of the training rows, in ascending order; the last one may be ALL.

    `repeats` and `seed` are used only with a test table; under cross-validation the protocol draws the samples.
    """

    sizes: tuple[int | str, ...] = ()
    repeats: int = 1
    seed: int = 0

    def resolve(self, most: int, rows_text: str) -> tuple[int, ...]:
        """Return the sizes as numbers of rows, with `most` in place of ALL.

        Raises UsageError, with `rows_text` in the message, if a size is larger than `most`, or if ALL and `most` are
        both given.
        """
        sizes = tuple(most if size == ALL else int(size) for size in self.sizes)
        if sizes and max(sizes) > most:
            what = f"--train-rows {max(sizes)} is more than the {most:,} rows {rows_text}"
            raise UsageError(what, hint=f"give fewer rows, or {ALL}")
        if len(set(sizes)) < len(sizes):
            what = f"--train-rows has {most} twice, once as {ALL}: the {most:,} rows {rows_text}"
            raise UsageError(what, hint="leave one of them out")
        return sizes


@dataclass(frozen=True)
class EvaluateOutputs:
    """Optional results of an evaluation, and the paths of the files that it writes (None to write no such file).

    - predictions: a file of the (out-of-fold) predictions and the true labels, in row order.
    - svg: a folder for pictures of the curves.
    - samples: training samples for a learning curve. csv: a file of that curve.
    - by: columns whose values define groups of rows; each string names one column or several, joined by commas.
    - reliability: whether to compute calibration bins.
    - gains, net_benefit: whether to report these tables, which need two classes.
    """

    predictions: str | None = None
    svg: str | None = None
    csv: str | None = None
    by: tuple[str, ...] = ()
    reliability: bool = False
    gains: bool = False
    net_benefit: bool = False
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
    """Cross-validate `recipe` on `source`; supplied files replace its methods in every fold."""
    _check_files(outputs, source, *supplied.paths)
    recipe, watch = supplied.update_recipe(recipe), Stopwatch(run.watch)
    if protocol.scores is not None:
        refuse_scores(recipe, supplied)
    run = run._replace(watch=watch)
    watch(Stage("read"))
    carried = carry_group_columns(source, outputs.by)
    whole_table = supplied.read(carried, run, recipe)
    columns = without_group_columns(whole_table, carried)
    assert columns.label is not None
    _check_two_labels(outputs, len(columns.label.levels))
    if protocol.by_time or protocol.folds > count_units(columns.n_rows, columns.split_by):
        try:
            draw_splits(columns, protocol, 0)
        except BncliError as error:
            where = source.paths[0] if source.paths else TABLE_NAME
            raise type(error)(error.what, where=where, hint=error.hint) from error
    attributes = recipe_attributes(columns, recipe, supplied.cuts, run) if carried.carried else ()
    groups = group_columns(whole_table, carried, attributes, watch)
    del whole_table
    check = check_training_table(columns, source, run)
    most = columns.n_rows - columns.n_rows // protocol.folds
    if outputs.samples.sizes and protocol.by_time:  # the first block is the smallest that is learned from
        most = min(len(split.others) for split in draw_splits(columns, protocol, 0))
    rows_text = f"to learn from in a fold ({columns.n_rows:,} rows, {protocol.folds} folds)"
    sizes = outputs.samples.resolve(most, rows_text)
    plan = CrossValidation(recipe, protocol, supplied, ReadingRules(source.missing_tokens, unseen), sizes)
    folds, fold_reports, sampled = list[Fold](), list[FoldReport](), list[tuple[int, FoldReport]]()
    if run.cluster is None:
        timed_folds = _timed(cross_validate(columns, plan, with_memory_limit(run)), watch)
    else:
        timed_folds = _folds_on_cluster(run.cluster, source, supplied, plan, watch)
    with closing(timed_folds):
        for fold, seconds in timed_folds:
            metrics, decisions = fold.measured.metrics.by_name(), fold.measured.decisions
            fold_report = FoldReport(
                fold.repeat, fold.number, len(fold.rows), metrics, fold.baseline, fold.penalty, seconds, decisions
            )
            if fold.size is None:
                folds.append(fold)
                fold_reports.append(fold_report)
            else:
                sampled.append((fold.size, fold_report))
    report = _cross_validation_report(protocol, columns, folds, fold_reports)
    if protocol.by_time:
        splits = draw_splits(columns, protocol, 0)
        report = replace(report, blocks=tuple(_block_reports(columns, splits, folds, fold_reports)))
        tested = np.sort(np.concatenate([split.rows for split in splits]))
        groups = [replace(group, codes=group.codes[tested]) for group in groups]
        # Rows of the blocks are not tested if their groups also contain training rows.
        by = columns.split_by
        if by is not None and by.times is not None and by.units is not None:
            n_later = int((by.times >= by.times[splits[0].rows].min()).sum())
            if n_later > len(tested):
                what = f"{n_later - len(tested):,} of {n_later:,} rows in the blocks are not tested"
                watch(Note(f"{what}, because their groups also contain training rows"))
    report = with_groups(report, groups, watch)
    findings = _findings(check, report, watch)
    report = replace(report, learning_curve=learning_curve(sizes, sampled, fold_reports), findings=findings)
    return _finish_report(report, outputs, watch)


def _block_reports(
    columns: Columns, splits: Sequence[Split], folds: Sequence[Fold], reports: Sequence[FoldReport]
) -> Iterator[BlockReport]:
    """Yield the report of each tested block of rows, in time order."""
    by, label, weights = columns.split_by, columns.label, columns.weights
    assert by is not None
    assert by.times is not None
    assert label is not None
    has_time_of_day = by.is_date and bool((by.times % 86_400).any())
    for split, fold, report in zip(splits, folds, reports, strict=True):
        rows, times = split.rows, by.times[split.rows]
        ends: list[str | float] = [float(times.min()), float(times.max())]
        if by.is_date:
            dates = np.array(ends).astype("datetime64[s]")
            ends = [str(date if has_time_of_day else date.astype("datetime64[D]")) for date in dates]
        intervals = measure_intervals(
            [_predicted_block(np.arange(len(rows)), fold.measured)],
            label.codes[rows],
            None if weights is None else weights[rows],
            report.metrics,
            units=_units_of_rows(columns, rows),
        )
        n_others = len(split.others)
        start, end = ends
        yield BlockReport(start, end, report.rows, n_others, report.metrics, intervals.metrics, report.baseline)


def _check_files(outputs: EvaluateOutputs, source: Source, *others: str | None) -> None:
    """Raise an error for outputs that cannot be written, or that would overwrite an input."""
    refuse_ending(outputs.predictions, UNSUPPORTED_ENDINGS, SUPPORTED_FORMATS)
    names = (*CURVE_FILES, *([LEARNING_CURVE_FILE] if outputs.samples.sizes else []))
    names += () if source.time is None else (BLOCKS_FILE,)
    pictures = () if outputs.svg is None else check_folder(outputs.svg, names)
    check_outputs((outputs.predictions, outputs.csv, *pictures), (*source.paths, source.schema_file, *others))


def _check_two_labels(outputs: EvaluateOutputs, n_labels: int) -> None:
    """Raise UsageError if a table for two classes was requested and the class does not have two labels."""
    for is_wanted, option in ((outputs.gains, "--gains"), (outputs.net_benefit, "--net-benefit")):
        if is_wanted and n_labels != 2:
            raise UsageError(
                f"{option} needs a class with two labels, but the class of this table has {n_labels}",
                hint="leave it out",
            )


def _timed(folds: Iterator[Fold], watch: Stopwatch) -> Generator[TimedFold, None, None]:
    before = {"fit": 0.0, "score": 0.0}
    for fold in folds:
        now = watch.seconds()
        yield fold, {stage: now[stage] - seconds for stage, seconds in before.items()}
        before = {stage: now[stage] for stage in before}


def _folds_on_cluster(
    address: str, source: Source, supplied: SuppliedFiles, plan: CrossValidation, watch: Watch
) -> Generator[TimedFold, None, None]:
    """Yield every fold of every repeat, in order, each followed by the same fold fitted to the smaller samples.

    Raises the error of a fold that failed.
    """
    with checked_cluster(address, files_of([source]), watch) as cluster:
        watch(Stage("fit"))
        watch(Progress(0, plan.n_folds))
        shared: SharedByWorkers = (for_workers(source), supplied, plan)
        finished: dict[int, tuple[list[TimedFold], list[Note]]] = {}
        following = 0
        tasks = run_tasks(cluster, _serve_folds, shared, range(plan.n_folds), lambda _: False)
        for done, (number, result) in enumerate(tasks, 1):
            if isinstance(result, BncliError):
                raise result
            finished[number] = result
            while following in finished:
                folds, notes = finished.pop(following)
                for note in notes:
                    watch(note)
                yield from folds
                following += 1
            watch(Progress(done, plan.n_folds, f"fold {number + 1} of {plan.n_folds}"))


def _serve_folds(shared: SharedByWorkers) -> Callable[[int], tuple[list[TimedFold], list[Note]] | BncliError]:
    """Read the table on a worker, and return the function that runs the fold with a given number."""
    source, supplied, plan = shared
    run = with_memory_limit(Run())
    return partial(_hold_out_on_worker, supplied.read(source, run, plan.recipe), plan, run)


def _hold_out_on_worker(
    columns: Columns, plan: CrossValidation, run: Run, number: int
) -> tuple[list[TimedFold], list[Note]] | BncliError:
    """Run fold `number` (repeat * n_splits + fold) on a worker.

    Return the fold, the same fold fitted to samples, and all notes, or the error that ended it.
    """
    repeat, fold = divmod(number, plan.protocol.n_splits)
    split = draw_splits(columns, plan.protocol, repeat)[fold]
    events: list[Event] = []
    watch = Stopwatch(events.append)
    try:
        folds = hold_out_with_samples(columns, plan, split, run._replace(watch=watch))
        return list(_timed(folds, watch)), [event for event in events if isinstance(event, Note)]
    except BncliError as error:
        return error


def _cross_validation_report(
    protocol: Protocol, columns: Columns, folds: Sequence[Fold], reports: Sequence[FoldReport]
) -> EvaluateReport:
    assert columns.label is not None
    tested, log_probabilities = out_of_fold(folds)
    weights = None if columns.weights is None else columns.weights[tested]
    predictions = PredictedRows(log_probabilities, columns.label.codes[tested], weights)
    confusion = np.sum([fold.measured.metrics.confusion for fold in folds], axis=0)
    metrics = [report.metrics for report in reports]
    baselines = [fold.baseline for fold in folds]
    units = _units_of_rows(columns, tested)
    blocks = [_predicted_block(np.searchsorted(tested, fold.rows), fold.measured) for fold in folds]
    means = summarize(metrics, METRICS, fmean)
    training = [fold.training_log_loss for fold in folds if fold.training_log_loss is not None]
    shared, log_loss = 0.0, means["log_loss"]
    if training and log_loss is not None:
        shared = overlap_variance(log_loss, fmean(training), effective_units(len(tested), weights, units))
    intervals = measure_intervals(
        blocks, predictions.codes, weights, means, units=units, overlap_variance=shared, seed=protocol.seed
    )
    return EvaluateReport(
        rows=len(tested),
        protocol=str(protocol),
        metrics=means,
        intervals=intervals,
        units=units,
        baseline=Baseline(fmean(each.accuracy for each in baselines), fmean(each.log_loss for each in baselines)),
        seconds=summarize([report.seconds for report in reports], ("fit", "score"), fmean),
        labels=columns.label.levels,
        confusion=confusion.tolist(),
        per_label=measure_labels(confusion),
        predictions=predictions,
        decisions=summarize_decisions(
            [fold.measured.decisions for fold in folds],
            predictions,
            [np.searchsorted(tested, fold.rows) for fold in folds if fold.repeat == 0],
        ),
        std=summarize(metrics, METRICS, stdev, at_least=2),
        folds=tuple(reports),
        split=record_split(columns.n_rows, columns.split_by),
        scored=None if folds[0].scored is None else mean_scores([fold.scored for fold in folds if fold.scored]),
    )


def _findings(check: TableCheck | None, report: EvaluateReport, watch: Watch) -> tuple[Finding, ...]:
    """Return the findings of the check, or () without a check.

    If the log-loss is too good to be true, warn, and return only the finding that says so.
    """
    if check is None:
        return ()
    finding = too_good(check, report.metrics["log_loss"], report.baseline.log_loss)
    if finding is None:
        return check.findings
    watch(Note(finding.message, warning=True))
    return (finding,)


def _predicted_block(rows: Index, measured: MeasuredPredictions) -> PredictedBlock:
    decisions = None if measured.decisions is None else measured.decisions.rows
    return PredictedBlock(rows, measured.log_probabilities, None if decisions is None else decisions.codes)


def _units_of_rows(columns: Columns, rows: Index | slice = slice(None)) -> Integers | None:
    by = columns.split_by
    return None if by is None or by.units is None else by.units[rows]


def _finish_report(report: EvaluateReport, outputs: EvaluateOutputs, watch: Watch) -> EvaluateReport:
    """Write the outputs, warn if the log-loss is not below the baseline, and add the calibration bins if requested."""
    report = replace(report, shows_gains=outputs.gains, shows_net_benefit=outputs.net_benefit)
    if outputs.reliability:
        report = replace(report, calibration=measure_calibration(report.labels, *report.predictions))
    watch(Stage("write"))
    if outputs.predictions is not None:
        rows = report.predictions
        write_predictions(outputs.predictions, report.labels, rows.log_probabilities, rows.codes)
    if outputs.csv is not None:
        write_learning_curve(outputs.csv, report.learning_curve)
    if outputs.svg is not None:
        write_drawings(outputs.svg, draw_curves(report))
    if report.skill_score is not None and report.skill_score <= 0:
        text = (
            "the predictions are no better than the class frequencies: "
            f"log-loss {report.metrics['log_loss']:.4f} against {report.baseline.log_loss:.4f}"
        )
        watch(Note(text, warning=True))
    return report


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
    """Fit a model to `source`, as `evaluate` does in each fold, and test it on `test`."""
    _check_files(outputs, source, *test.paths, test.schema_file, *supplied.paths)
    recipe, watch = supplied.update_recipe(recipe), Stopwatch(run.watch)
    run = run._replace(watch=watch)
    watch(Stage("read"))
    columns = supplied.read(source, run, recipe)
    assert columns.label is not None
    _check_two_labels(outputs, len(columns.label.levels))
    sizes = outputs.samples.resolve(columns.n_rows, "to learn from")
    check = check_training_table(columns, source, run)
    watch(Stage("fit"))
    fit = partial(_fit, recipe, supplied, ReadingRules(source.missing_tokens, unseen), run)
    model = fit(columns, forward_warnings(watch))
    fit_seconds = watch.seconds()["fit"]
    # For each sample that is not the whole table: its number of rows, repeat, model, class frequencies and seconds of
    # fitting. Only fits of the first repeat forward their warnings.
    sample_fits: list[tuple[int, int, Model, Array, float]] = []
    smaller = [size for size in sizes if size < columns.n_rows]
    total, done = outputs.samples.repeats * sum(smaller), 0
    for repeat in range(outputs.samples.repeats if smaller else 0):
        # a third number, because numpy treats the seeds (s, r) and (s, r, 0) as equal
        seeds = (outputs.samples.seed, repeat, 1)
        parts = nested_samples(columns.label.codes, smaller, seeds, columns.split_by)
        for size, taken in zip(smaller, parts, strict=True):
            size_text = f"{size:,} {'row' if size == 1 else 'rows'}"
            watch(Progress(done, total, f"a sample of {size_text}"))
            begun, rows = watch.seconds()["fit"], columns.take(taken)
            fitted = fit(rows, silent if repeat else forward_warnings(watch, f"learned from {size_text}, "))
            frequencies = class_frequencies(encode_labels(rows, fitted.schema), len(fitted.schema.labels), rows.weights)
            sample_fits.append((size, repeat, fitted, frequencies, watch.seconds()["fit"] - begun))
            done += size
    test = carry_group_columns(test, outputs.by)
    rows = read_test_rows([model, *(fitted for _, _, fitted, *_ in sample_fits)], test, run)
    frequencies = class_frequencies(encode_labels(columns, model.schema), len(model.schema.labels), columns.weights)
    report = report_on_rows(model, rows, test, "trained on one table, tested on another", run, frequencies, fit_seconds)
    report = with_groups(report, group_columns(rows, test, model.schema.attributes, watch), watch)
    _, codes, weights = report.predictions
    sampled = []
    for size, repeat, fitted, frequencies, fit_seconds in sample_fits:
        begun = watch.seconds()["score"]
        measured = predict_and_measure(fitted, rows, allow_missing=test.allow_missing_columns)
        metrics, baseline = measured.metrics.by_name(), measure_baseline(frequencies, codes, weights)
        seconds = {"fit": fit_seconds, "score": watch.seconds()["score"] - begun}
        sampled.append((size, FoldReport(repeat, 0, rows.n_rows, metrics, baseline, fitted.penalty, seconds)))
    # for the learning curve, each repeat has one fold, which is the whole test table
    seconds = {stage: value for stage, value in report.seconds.items() if value is not None}
    folds = [
        FoldReport(repeat, 0, report.rows, report.metrics, report.baseline, model.penalty, seconds)
        for repeat in range(outputs.samples.repeats if sizes else 0)
    ]
    curve, findings = learning_curve(sizes, sampled, folds), _findings(check, report, watch)
    return _finish_report(replace(report, learning_curve=curve, findings=findings), outputs, watch)


def _fit(
    recipe: Recipe, supplied: SuppliedFiles, reading_rules: ReadingRules, run: Run, rows: Columns, watch: Watch
) -> Model:
    run = with_memory_limit(run._replace(watch=watch))
    return learn(rows, recipe, supplied=supplied, reading_rules=reading_rules, run=run).model


def read_test_rows(models: Sequence[Model], source: Source, run: Run, *, keep_unlabelled: bool = False) -> Columns:
    """Read the rows of a test table by the schema of the first model, with all columns that any of the models uses.

    The table also has the columns in `source.carried`. With `keep_unlabelled`, rows without a class are kept.
    """
    run.watch(Stage("read"))
    used = dict.fromkeys(m.schema.attributes[i].name for m in models for i in compile_scorer(m).used)
    known = {attribute.name for attribute in models[0].schema.attributes}
    used |= dict.fromkeys(name for name in source.carried if name in known)
    memory = with_memory_limit(run).memory
    return read_labelled(
        source,
        models[0].schema,
        list(used),
        keep_unlabelled=keep_unlabelled,
        threads=run.threads,
        watch=run.watch,
        memory=memory,
    )


def report_on_rows(
    model: Model,
    rows: Columns,
    source: Source,
    protocol: str,
    run: Run,
    frequencies: Array | None = None,
    fit_seconds: float | None = None,
) -> EvaluateReport:
    """Evaluate a model on the rows of a test table.

    frequencies: the class frequencies of the baseline, (K,), or None for the frequencies in the test rows. The report
    has the seconds of scoring only if run.watch is a Stopwatch.
    """
    run.watch(Stage("score"))
    measured = predict_and_measure(model, rows, allow_missing=source.allow_missing_columns)
    predictions = PredictedRows(measured.log_probabilities, encode_labels(rows, model.schema), rows.weights)
    score_seconds = run.watch.seconds()["score"] if isinstance(run.watch, Stopwatch) else None
    report = _report_on_predictions(
        model.schema.labels, measured, predictions, _units_of_rows(rows), protocol, frequencies
    )
    split = None if rows.split_by is None else record_split(rows.n_rows, rows.split_by)
    return replace(report, seconds={"fit": fit_seconds, "score": score_seconds}, split=split)


def report_on_held_out(model: Model, held_out: HeldOutPredictions, base_log_loss: float | None) -> EvaluateReport:
    """Return the report on rows that were held out while a model was fitted, with the decisions of its rule.

    base_log_loss: the log-loss of the class frequencies of the training rows, or None to use the class frequencies of
    the held-out rows.
    """
    log_p, codes, weights, units = held_out
    decisions = measure_decisions(model, log_p, codes, weights)
    measured = MeasuredPredictions(log_p, measure(log_p, codes, weights), decisions)
    protocol = "out-of-fold predictions by models fitted without these rows"
    predictions = PredictedRows(log_p, codes, weights)
    report = _report_on_predictions(model.schema.labels, measured, predictions, units, protocol)
    if base_log_loss is not None:
        report = replace(report, baseline=report.baseline._replace(log_loss=base_log_loss))
    return replace(report, folds=())


def _report_on_predictions(
    labels: tuple[str, ...],
    measured: MeasuredPredictions,
    predictions: PredictedRows,
    units: Integers | None,
    protocol: str,
    frequencies: Array | None = None,
) -> EvaluateReport:
    _, codes, weights = predictions
    if frequencies is None:
        frequencies = class_frequencies(codes, len(labels), weights)
    confusion, metrics = measured.metrics.confusion, measured.metrics.by_name()
    block = _predicted_block(np.arange(len(codes)), measured)
    return EvaluateReport(
        rows=len(codes),
        protocol=protocol,
        metrics=metrics,
        intervals=measure_intervals([block], codes, weights, metrics, units=units),
        units=units,
        baseline=measure_baseline(frequencies, codes, weights),
        seconds={"fit": None, "score": None},
        labels=labels,
        confusion=confusion.tolist(),
        per_label=measure_labels(confusion),
        predictions=predictions,
        decisions=summarize_decisions([measured.decisions], predictions),
    )


def evaluate_model(
    path: str,
    source: Source,
    *,
    outputs: EvaluateOutputs = EvaluateOutputs(),
    unseen: Unseen | None = None,
    decisions: DecisionOptions = DecisionOptions(),
    run: Run = Run(),
) -> EvaluateReport:
    """Load the model at `path` and test it on `source`.

    unseen: the policy for unseen values, or None for the model's own. decisions: options that replace parts of the
    model's decision rule.
    """
    _check_files(outputs, source, path)
    model = read_model(path)
    if unseen is not None:
        model = replace(model, schema=replace(model.schema, unseen=unseen))
    return evaluate_fitted(model, source, outputs=outputs, decisions=decisions, run=run)


def evaluate_fitted(
    model: Model,
    source: Source,
    *,
    outputs: EvaluateOutputs = EvaluateOutputs(),
    decisions: DecisionOptions = DecisionOptions(),
    run: Run = Run(),
) -> EvaluateReport:
    """Test a model on `source`; `decisions` replace parts of its decision rule."""
    model = with_positive_label(model, source.positive)
    _check_two_labels(outputs, len(model.schema.labels))
    watch = Stopwatch(run.watch)
    run = run._replace(watch=watch)
    model = replace(model, rule=rule_to_score(model, decisions, False, watch))
    source = carry_group_columns(source, outputs.by)
    rows = read_test_rows([model], source, run)
    on_training_rows = are_training_rows(rows, model, compile_scorer(model).used)
    protocol = "a model on its training rows" if on_training_rows else "a model on a test set"
    report = replace(report_on_rows(model, rows, source, protocol, run), on_training_rows=on_training_rows)
    report = with_groups(report, group_columns(rows, source, model.schema.attributes, watch), watch)
    return _finish_report(report, outputs, watch)
