"""Score a table with a model: write one prediction per row, in order, in bounded memory.

Reading and parsing, scoring, and formatting and writing overlap, each in its own thread, so the output begins before
the input ends. The caller's thread reads, because it must notice ^C even while it waits for input.

On a cluster each file of the table is a task: a worker reads, scores and formats it, and this process writes the
results in the order of the files. The output, the counts and the first error are the same as without a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast

from bncli.catalogue import DECISION_KEYS
from bncli.catalogue.choices import flag_of, key_of
from bncli.engine.calibration import Temperature
from bncli.engine.data.schema import Unseen
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import QUANTILES, DecisionRule, Model
from bncli.engine.prediction.contributions import Explanation
from bncli.engine.prediction.decision_rules import Decider, DecisionOptions, make_rule
from bncli.engine.prediction.edits import with_positive_label
from bncli.engine.prediction.monitoring import LEAST_PSI, LEAST_UNKNOWN, Drift, Monitor
from bncli.engine.prediction.scoring import TRAINING, prior_shift
from bncli.errors import BncliError, DriftError
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.monitors import expected_json, write_monitor
from bncli.files.exports.prediction_files import (
    SUPPORTED_FORMATS,
    UNSUPPORTED_ENDINGS,
    PieceMaker,
    ScoreFile,
    open_scores,
)
from bncli.files.exports.score_layout import ExtraValues, ScoreLayout
from bncli.files.option_files import resolve_costs
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.rows_by_schema import Batch, Batches
from bncli.files.reading.source import BadRow, Source
from bncli.recipe import refuse_decisions
from bncli.recipe.defaults import parse_options
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.tasks import (
    checked_cluster,
    each_file_in_turn,
    files_of,
    for_workers,
    report_idle_threads,
    with_typed_paths,
)
from bncli.steps.row_scoring import RowScorer, ScoreCounts, WhatIfQuestions
from bncli.steps.run import PipelineStage, Stopwatch, with_memory_limit
from bncli.watch import Note, Run, Stage, Watch

_LISTED_ATTRIBUTES = 5


@dataclass(frozen=True)
class MonitorSummary:
    """A monitor that was written to `file`."""

    file: str
    monitor: Monitor

    def as_json(self) -> dict[str, Any]:
        """Return the file, the attributes that have drifted, and the expected metrics."""
        drifted = {"drift": bool(self.monitor.drifted), "drifted": list(self.monitor.drifted)}
        return {"file": self.file, **drifted, "expected": expected_json(self.monitor.expected)}

    def sentence(self) -> str:
        """Describe in a sentence which attributes drifted (at most the first five) and how many rows are improbable."""
        monitor = self.monitor
        total, drifted = len(monitor.tally.attributes), monitor.drifted
        if not monitor.tally.rows:
            return "no rows, so drift was not measured"
        improbable = ""
        if monitor.below_training is not None:
            lowest = f"{100 * QUANTILES[0]:g} % quantile of ln P(x) in training"
            improbable = f"; {100 * monitor.below_training:.3g} % of the rows below the {lowest}"
        if not drifted:
            same = "; these rows look like the training rows" if monitor.on_training_rows else ""
            return f"no drift in {total:,} attribute{'' if total == 1 else 's'}{same}{improbable}"
        drift_of = dict(zip((tally.name for tally in monitor.tally.attributes), monitor.drifts, strict=True))
        listed = ", ".join(f"{name} ({_describe_drift(drift_of[name])})" for name in drifted[:_LISTED_ATTRIBUTES])
        more = ", ..." if len(drifted) > _LISTED_ATTRIBUTES else ""
        return f"drift in {len(drifted):,} of {total:,} attributes: {listed}{more}{improbable}"

    def expected_sentence(self) -> str:
        """Return a sentence with the expected accuracy and other expected metrics of the rows, with 95 % intervals."""
        parts = []
        for name, figure in self.monitor.expected.items():
            if figure.value is not None:
                low_high = "" if figure.interval is None else " ({:.3f} to {:.3f})".format(*figure.interval)
                parts.append(f"{name.replace('_', '-')} {figure.value:.3f}{low_high}")
        return f"expected from the probabilities: {', '.join(parts) or 'nothing, because there are no rows'}"

    def measured_sentences(self) -> list[str]:
        """Return a list with one sentence about the metrics on the labelled rows, or [] without such rows."""
        monitor, n_rows = self.monitor, self.monitor.tally.log_loss.n
        if not n_rows:
            return []
        figures = {"accuracy": monitor.accuracy, "log-loss": monitor.tally.log_loss.mean, "auc": monitor.auc}
        parts = ", ".join(f"{name} {value:.3f}" for name, value in figures.items() if value is not None)
        one = "" if monitor.only_label is None else f"; all have the label {monitor.only_label!r}"
        return [f"measured on {n_rows:,} rows with labels: {parts}{one}"]

    def refuse_drift(self) -> None:
        """Raise DriftError if any attribute has drifted."""
        if self.monitor.drifted:
            raise DriftError(self.sentence(), where=self.file, hint="find out what changed, or fit the model again")


def _describe_drift(drift: Drift) -> str:
    """Describe why an attribute counts as drifted: by its PSI, its values never seen in training, or both."""
    if drift.psi is None:
        return "no value from training"
    unseen = f"{100 * drift.unknown:.3g} % never seen in training" if drift.unknown >= LEAST_UNKNOWN else ""
    if drift.psi < LEAST_PSI and unseen:
        return unseen
    return f"PSI {drift.psi:.2f}{', ' if unseen else ''}{unseen}"


@dataclass(frozen=True)
class ScoreOutput:
    """The output of scoring: where predictions are written, and their columns.

    path: the file; None or `-` for the standard output. format: one of the formats of predictions, or None to choose it
    by the extension of the file. keep: input columns to copy. labels_only: whether to leave out the probabilities.
    log_proba: whether to write their logarithms instead. digits: number of decimals, or None for full precision.
    explain: maximum number of contributions per row. prior: the class frequencies to assume, as probabilities by label
    or `training`; None for no correction. decisions: settings that replace those of the model. questions: what-if
    questions. positive: the label of the event, or None for the model's. rows: the first and the last row to score,
    counted from 1 without malformed rows, or None for all. level: nominal coverage of the intervals, or None for no
    intervals. abstain_wider: abstain if the interval of the predicted label is wider than this; None for no limit.
    """

    path: str | None = None
    format: str | None = None
    keep: tuple[str, ...] | Literal["all"] = ()
    labels_only: bool = False
    log_proba: bool = False
    digits: int | None = None
    explain: int = 0
    prior: Mapping[str, float] | str | None = None
    decisions: DecisionOptions = DecisionOptions()
    questions: WhatIfQuestions = field(default_factory=WhatIfQuestions)
    positive: str | None = None
    rows: tuple[int, int] | None = None
    level: float | None = None
    abstain_wider: float | None = None


@dataclass(frozen=True)
class ScoreReport:
    """The result of scoring a table.

    unseen, missing: number of such values in each column that the model uses, for columns that have any.
    absent_columns: columns of the model that the table lacks; their values are not counted. output: None for the
    standard output. monitor: the monitor that was written, or None unless requested.
    """

    model: str
    output: str | None
    rows: int
    skipped_rows: int
    unseen_values: int
    unseen: dict[str, int]
    missing_values: int
    missing: dict[str, int]
    absent_columns: tuple[str, ...]
    monitor: MonitorSummary | None
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return every field by name, `monitor` only if there is one."""
        fields = {name: value for name, value in vars(self).items() if name != "monitor"}
        monitor = {} if self.monitor is None else {"monitor": self.monitor.as_json()}
        return fields | {"absent_columns": list(self.absent_columns)} | monitor


def score(
    model_path: str,
    source: Source,
    output: ScoreOutput = ScoreOutput(),
    *,
    unseen: Unseen | None = None,
    monitor: str | None = None,
    run: Run = Run(),
) -> ScoreReport:
    """Score the rows of `source` with the model in the file `model_path`, and write the predictions.

    unseen: how to treat unseen values; it and the missing tokens of `source` override the model's unless they are None.
    monitor: a file for counts of the rows, which are compared with the training rows. Raises the errors of `RowScorer`
    and of reading, UsageError for an invalid decision rule, and BncliError if the table ends before the first row to
    score.
    """
    path = None if output.path == "-" else output.path
    refuse_ending(path, UNSUPPORTED_ENDINGS, SUPPORTED_FORMATS)
    check_outputs((path, source.bad_rows_file, monitor), (*source.paths, model_path))
    watch = Stopwatch(run.watch)
    watch(Stage("score"))
    model = with_positive_label(read_model(model_path), output.positive)
    rule = rule_to_score(model, output.decisions, output.prior is not None, watch)
    if output.abstain_wider is not None and rule is None:
        rule = DecisionRule()
    shift = None
    if output.prior is not None:
        shift = prior_shift(model, output.prior)
    elif model.class_weights is not None:
        what = "the probabilities assume the --class-weights of fit"
        watch(Note(f"{what}; --prior {TRAINING} corrects them for the class frequencies of the data"))
    if output.explain and model.calibration is not None and not isinstance(model.calibration.map, Temperature):
        method = model.calibration.map.method
        watch(Note(f"log-odds and contributions are those before {method} calibration"))
    if output.questions.surprise and model.log_p is not None:
        quantiles = [f"{100 * q:g} % above {-model.log_p.quantiles[QUANTILES.index(q)]:.4g}" for q in (0.01, 0.05, 0.5)]
        watch(Note(f"surprise of the training rows in nats: {', '.join(quantiles)}"))
    strict = (unseen or model.schema.unseen) == "error"
    scorer = RowScorer(
        model,
        strict=strict,
        explain=output.explain,
        shift=shift,
        questions=output.questions,
        rule=rule,
        monitored=monitor is not None,
        level=output.level,
        abstain_wider=output.abstain_wider,
    )
    limited_run = with_memory_limit(run)._replace(watch=watch)
    with scorer.open(source, limited_run, keep=output.keep) as batches:
        layout = ScoreLayout(
            model.schema.labels,
            batches.copied_names,
            output.labels_only,
            output.log_proba,
            output.digits,
            output.explain,
            rule,
            extra=scorer.columns,
        )
        on_cluster = (
            nullcontext() if run.cluster is None else checked_cluster(run.cluster, files_of([source]), run.watch)
        )
        with on_cluster as cluster, open_scores(path, output.format, layout) as scores:
            if cluster is None:
                _score_here(batches, scorer, scores, len(layout.keep), output.rows)
            else:
                plan = _Plan(model, source, layout, path, output, strict, shift, monitor is not None)
                _score_on_cluster(cluster, plan, batches, scorer, scores, watch)
    counts = scorer.counts
    if counts.unproven:
        rows = f"{counts.unproven:,} row{'s' * (counts.unproven != 1)}"
        fewer = f"up to {counts.excess:,} fewer values" if counts.excess != 1 else "one value fewer"
        watch(Note(f"for {rows}, a set with {fewer} may exist (because_exact is false)"))
    warn_about_threshold(rule, model.schema.labels, counts.highest, watch)
    summary = None
    if monitor is not None:
        if model.class_weights is not None and model.plain_frequencies is None:
            run.watch(Note("drift is measured against training rows weighted by the class weights of the fit"))
        summary = MonitorSummary(monitor, scorer.monitor())
        if summary.monitor.no_log_p:
            run.watch(Note(f"ln P(x) is not available: {summary.monitor.no_log_p}"))
        for text in counts.notes:
            run.watch(Note(text, warning=True))
        write_monitor(monitor, summary.monitor)
    return ScoreReport(
        model=model_path,
        output=path,
        rows=counts.rows,
        skipped_rows=batches.bad_rows.count,
        unseen_values=sum(counts.unseen.values()),
        unseen=scorer.in_column_order(counts.unseen),
        missing_values=sum(counts.missing.values()),
        missing=scorer.in_column_order(counts.missing),
        absent_columns=batches.absent,
        monitor=summary,
        seconds=watch.seconds(),
    )


_Block = tuple[list[Any], Array, Explanation | None, tuple[ExtraValues, ...]]
"""Rows to write: the kept columns, ln P(y | x_t) (K, rows), the explanation, and the values of additional columns."""


def _score_here(
    batches: Batches, scorer: RowScorer, scores: ScoreFile, n_kept: int, rows: tuple[int, int] | None
) -> None:
    """Read in this thread, and score and write in one pipeline stage each.

    n_kept: number of columns to copy, which come first among the columns read as strings. rows: the first and the last
    row to score, or None for all. Raises BncliError if the table ends before the first row to score.
    """
    with (
        PipelineStage[_Block](lambda block: scores.write(*block)) as writing,
        PipelineStage(partial(_score_batch, scorer, n_kept, writing.put)) as scoring,
        closing(cast(Generator[Batch, None, None], iter(batches))) as stream,
    ):
        n_read = 0
        for batch in stream:
            first, last = (1, n_read + batch.columns.n_rows) if rows is None else rows
            start, stop = max(first - 1 - n_read, 0), min(last - n_read, batch.columns.n_rows)
            if start < stop:
                scoring.put(batch.slice(start, stop))
            n_read += batch.columns.n_rows
            if rows is not None and n_read >= last:
                break
    if rows is not None and n_read < rows[0]:
        what = f"there is no row {rows[0]:,}: the table has {n_read:,} row{'s' * (n_read != 1)}"
        raise BncliError(what, hint="rows are numbered from 1, without the header and malformed rows")


def _score_batch(scorer: RowScorer, n_kept: int, put: Callable[[_Block], None], batch: Batch) -> None:
    for block, log_p, why, answers in scorer.score(batch):
        put(([column[block] for column in batch.kept[:n_kept]], log_p, why, answers))


@dataclass(frozen=True)
class _Plan:
    """The settings that a worker needs; the files of `source` come with the tasks."""

    model: Model
    source: Source
    layout: ScoreLayout
    path: str | None
    output: ScoreOutput
    strict: bool
    shift: Array | None
    monitored: bool


def _score_on_cluster(
    cluster: Cluster, plan: _Plan, batches: Batches, scorer: RowScorer, scores: ScoreFile, watch: Watch
) -> None:
    """Have the workers score the files, and write their results in the order of the rows."""
    paths = plan.source.paths
    plan = replace(plan, source=replace(for_workers(plan.source), paths=()))
    with batches.bad_rows as bad_rows:
        report_idle_threads(len(find_inputs(paths, keep=False)), cluster, watch)
        results = each_file_in_turn(cluster, _serve_scoring, plan, paths, tuple, watch)
        for _, (blocks, counts, tally, error), typed in results:
            for bad, pieces in blocks:
                bad_rows.take(tuple(replace(row, path=typed[row.path]) for row in bad))
                for piece in pieces:
                    scores.write_piece(piece)
            if error is not None:
                raise with_typed_paths(error, typed)
            scorer.counts.add(counts)
            if scorer.watcher is not None:
                scorer.watcher.tally.merge(tally)


def _serve_scoring(plan: _Plan) -> Callable[[tuple[str, ...]], Any]:
    """Return the function with which a worker scores a file."""
    scorer = RowScorer(
        plan.model,
        strict=plan.strict,
        explain=plan.layout.explain,
        shift=plan.shift,
        questions=plan.output.questions,
        rule=plan.layout.rule,
        monitored=plan.monitored,
        level=plan.output.level,
        abstain_wider=plan.output.abstain_wider,
    )
    maker = PieceMaker(plan.path, plan.output.format, plan.layout)
    return partial(_score_last_file, plan, scorer, maker)


def _score_last_file(plan: _Plan, scorer: RowScorer, maker: PieceMaker, paths: tuple[str, ...]) -> tuple[Any, ...]:
    """Score, on a worker, the last of several files; the first one determines the columns that all must have.

    Returns the blocks, each as its malformed rows and the bytes to write for the other rows; the counts; the counts for
    a monitor, or None; and the error that stopped the work on the file, or None.
    """
    scorer.counts = ScoreCounts()
    if scorer.watcher is not None:
        scorer.watcher.begin()
    n_kept = len(plan.layout.keep)
    blocks: list[tuple[tuple[BadRow, ...], list[bytes]]] = []
    error = None
    try:
        source = replace(plan.source, paths=paths)
        with scorer.open(source, with_memory_limit(Run()), keep=plan.layout.keep) as batches:
            for batch, bad in batches.with_bad_rows(len(paths) - 1):
                pieces = [
                    maker.piece([column[rows] for column in batch.kept[:n_kept]], log_p, why, answers)
                    for rows, log_p, why, answers in scorer.score(batch)
                ]
                blocks.append((bad, pieces))
                if bad and plan.source.on_bad_row == "fail":
                    break
    except BncliError as raised:
        error = raised
    return blocks, scorer.counts, None if scorer.watcher is None else scorer.watcher.tally, error


def decision_options(words: Mapping[str, Any]) -> DecisionOptions:
    """Return the decision options given by keyword; raise TypeError for an unknown keyword."""
    if unknown := [word for word in words if word not in DECISION_KEYS]:
        raise TypeError(f"there is no option {unknown[0]!r}; the options for decisions are {', '.join(DECISION_KEYS)}")
    typed = {key: value for key, value in words.items() if value is not None}
    if "costs" in typed:
        typed["costs"] = resolve_costs(typed["costs"])
    return DecisionOptions(**{key_of(flag): value for flag, value in parse_options(typed).items()})


def rule_to_score(model: Model, options: DecisionOptions, has_other_prior: bool, watch: Watch) -> DecisionRule | None:
    """Return the model's decision rule as changed by the options, or None if there is no rule.

    Warns if a threshold or prediction sets were chosen on held-out rows and the probabilities are corrected for another
    prior. Raises UsageError for an invalid rule.
    """
    stored = model.rule
    has_sets = stored is not None and stored.sets is not None
    refuse_decisions({flag_of(key): value for key, value in options._asdict().items()}, has_sets)
    rule = make_rule(options, model.schema.labels, model.schema.class_name, stored)
    if rule is None:
        return None
    Decider.of(rule, model.schema.labels)  # so that an impossible rule is an error before any row is read
    if has_other_prior and (rule.sets is not None or (rule.threshold is not None and rule.threshold.chosen)):
        what = "threshold was" if rule.sets is None else "prediction sets were"
        watch(Note(f"the {what} chosen for the class frequencies of training, not for those of --prior", warning=True))
    return rule


def warn_about_threshold(rule: DecisionRule | None, labels: tuple[str, ...], highest: float, watch: Watch) -> None:
    """Warn if no row reaches the threshold; `highest` is the largest ln P of the second label, or -inf without rows."""
    if rule is None or rule.threshold is None or highest == -math.inf:
        return
    value, most = rule.threshold.value, math.exp(highest)
    if most < value:
        text = f"no row reaches the threshold {value:.6g}: the highest p_{labels[1]} is {most:.6g}"
        watch(Note(f"{text}, so no row is decided as {labels[1]!r}", warning=True))
