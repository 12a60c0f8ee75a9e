"""Streams a table through a model: rows in, a prediction a row out, in order and in bounded memory.

Reading and parsing, scoring, and formatting and writing overlap, each on a thread of its own; the output begins before
the input ends. The reader stays on the caller's thread, where ^C is heard even while it waits for input.

On a cluster each file of the table is read, scored and formatted by a worker, and its rows are written here when its
turn comes.

By which rule rows are decided that a model scores.

What a scoring run adds for a monitor: its file, and what it says of drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from bncli.catalogue import DECISION_KEYS
from bncli.catalogue.choices import flag_of, key_of
from bncli.engine.calibration import Temperature
from bncli.engine.data.schema import Unseen
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import QUANTILES, DecisionRule, Model
from bncli.engine.prediction.contributions import Explanation
from bncli.engine.prediction.decision_rules import Decider, DecisionOptions, rule_of
from bncli.engine.prediction.monitoring import LEAST_PSI, LEAST_UNKNOWN, Drift, Monitor, ScoreMonitor
from bncli.engine.prediction.positive_label import with_positive_label
from bncli.engine.prediction.prior import TRAINING, prior_shift
from bncli.errors import BncliError, DriftError
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.monitors import monitored_model, write_monitor
from bncli.files.exports.prediction_files import SUPPORTED_FORMATS, UNSUPPORTED_ENDINGS, ScoreFile, open_scores
from bncli.files.exports.score_layout import ScoreLayout
from bncli.files.label_numbers import resolve_costs
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.reading.rows_by_schema import Batch, Batches
from bncli.files.reading.source import Source
from bncli.recipe.defaults import parse_options
from bncli.recipe.refusals import refuse_decisions
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.tasks import checked_cluster, files_of
from bncli.steps.run import PipelineStage, Stopwatch, with_memory_limit
from bncli.steps.score_on_cluster import ScoredFile, ScorePlan, files_on_cluster
from bncli.steps.score_rows import ScoredRows
from bncli.steps.what_if import WhatIfQuestions
from bncli.watch import Note, Run, Stage, Watch

_NAMED = 5


@dataclass(frozen=True)
class MonitorSummary:
    """A monitor as it was written to `file`."""

    file: str
    monitor: Monitor

    def as_json(self) -> dict[str, Any]:
        """Return the file, and what it says in short."""
        return {"file": self.file, "drift": bool(self.monitor.drifted), "drifted": list(self.monitor.drifted)}

    def sentence(self) -> str:
        """Return whether anything has drifted, and what, the farthest first."""
        total, drifted = len(self.monitor.tally.attributes), self.monitor.drifted
        if not self.monitor.tally.rows:
            return "no rows, no drift"
        if not drifted:
            return f"no drift in {total:,} attribute{'' if total == 1 else 's'}{self._improbable()}"
        return f"drift in {len(drifted):,} of {total:,} attributes: {self._named()}{self._improbable()}"

    def _improbable(self) -> str:
        """Return how many rows are less probable than nearly all of training were, where the model knows."""
        share = self.monitor.below_training
        lowest = f"{100 * QUANTILES[0]:g} % quantile of ln P(x) in training"
        return "" if share is None else f"; {100 * share:.3g} % of the rows below the {lowest}"

    def _named(self) -> str:
        names, drifted = {one.name: one for one in self.monitor.tally.attributes}, self.monitor.drifted
        by_name = dict(zip(names, self.monitor.drifts, strict=True))
        told = [f"{name} ({_size(by_name[name])})" for name in drifted[:_NAMED]]
        return ", ".join(told) + (", ..." if len(drifted) > _NAMED else "")

    def refuse_drift(self) -> None:
        """Raise DriftError where anything has drifted."""
        if self.monitor.drifted:
            raise DriftError(self.sentence(), where=self.file, hint="look at what changed, or fit again")


Block = tuple[list[Any], Array, Explanation | None, tuple[Sequence[str] | Array, ...]]
"""Rows on their way to the output: the kept columns, log P(y | x_t) of shape (K, N), why, and what else was asked."""


@dataclass(frozen=True)
class Output:
    """Where predictions go (None or `-`: standard output) and what is written of a row.

    keep: input columns carried through. digits None: full precision. explain: how many contributions to the prediction.
    positive: the label that is the event, None: as the model says. rows: the first and the last row to score, from 1.
    prior: class frequencies to score under, a probability a label or `training`; None: those that were learnt under.
    decisions: what is wanted instead of what the model records of them.
    questions: what is asked beyond the prediction.
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


@dataclass(frozen=True)
class ScoreReport:
    """What went through. `unseen` and `missing` count values by column, of the columns that the model uses.

    `absent_columns` are those that the data lacks, unknown in every row and counted nowhere else. `output` None:
    standard output. `monitor`: what was written to the file of that name, None where none was asked for.
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
        """Return every field by name, `monitor` where there is one."""
        fields = {name: value for name, value in vars(self).items() if name != "monitor"}
        monitor = {} if self.monitor is None else {"monitor": self.monitor.as_json()}
        return fields | {"absent_columns": list(self.absent_columns)} | monitor


def score(
    model_path: str,
    source: Source,
    output: Output = Output(),
    *,
    unseen: Unseen | None = None,
    monitor: str | None = None,
    run: Run = Run(),
) -> ScoreReport:
    """Return scores `source` and writes the predictions; `unseen` and its missing tokens: None = as the model says.

    monitor: the file for what was counted, beside the training rows of the model.
    """
    # The file of the predictions (None: standard output); UsageError for outputs that cannot be written.
    others = (source.bad_rows_file, monitor)
    read = (*source.paths, model_path)
    path = None if output.path == "-" else output.path
    refuse_ending(path, UNSUPPORTED_ENDINGS, SUPPORTED_FORMATS)
    check_outputs((path, *others), read)
    stopwatch = Stopwatch(run.watch)
    stopwatch(Stage("score"))
    model = with_positive_label(read_model(model_path), output.positive)
    rule = rule_to_score(model, output.decisions, output.prior is not None, stopwatch)
    # What scores; a note where what it tells needs a word.
    strict = (unseen or model.schema.unseen) == "error"
    shift = _shift(model, output.prior, stopwatch)
    if output.explain and model.calibration is not None and not isinstance(model.calibration.map, Temperature):
        method = model.calibration.map.method
        stopwatch(Note(f"log-odds and contributions are those before the {method} calibration"))
    if output.questions.surprise and model.log_p is not None:
        told = [f"{100 * q:g} % above {-model.log_p.quantiles[QUANTILES.index(q)]:.4g}" for q in (0.01, 0.05, 0.5)]
        stopwatch(Note(f"surprise of the training rows: {', '.join(told)}"))
    rows = ScoredRows(model, strict, output.explain, shift)
    if output.questions.any:
        rows.ask(model, output.questions, rule)
    if monitor is not None:
        rows.watch(model)
    with Batches(
        source,
        model.schema,
        rows.needed,
        keep=output.keep,
        texts=rows.texts_wanted(),
        run=with_memory_limit(run)._replace(watch=stopwatch),
    ) as batches:
        rows.absent = batches.absent
        kept = batches.carried_names
        wanted = (output.labels_only, output.log_proba, output.digits, output.explain, rule)
        layout = ScoreLayout(model.schema.labels, kept, *wanted, extra=() if rows.asked is None else rows.asked.added)
        with _sent(source, run) as cluster, open_scores(path, output.format, layout) as scores:
            if cluster is None:
                _stream(batches, rows, scores, len(layout.keep), output.rows)
            else:
                plan = _plan(model, source, layout, output, rows)
                _gather(batches, rows, scores, files_on_cluster(cluster, plan, source.paths, stopwatch))
    warn_about_threshold(rule, model.schema.labels, rows.highest, stopwatch)
    found = None if monitor is None else write_found(monitor, model, rows.watcher, run.watch)
    return _report(model_path, path, rows, batches, found)(seconds=stopwatch.seconds())


def _shift(model: Model, prior: Mapping[str, float] | str | None, watch: Watch) -> Array | None:
    """Return that of the prior; a note where probabilities are those of weighted classes and nobody said so."""
    if prior is not None:
        return prior_shift(model, prior)
    if model.class_weights is not None:
        what = "probabilities are those of rows that weigh as --class-weights said in fit"
        watch(Note(f"{what}; --prior {TRAINING} gives those of the class frequencies of the data"))
    return None


@contextmanager
def _sent(source: Source, run: Run) -> Iterator[Cluster | None]:
    """Yield the cluster that is asked for, whose workers see every file of the table.

    None: this process does the work.
    """
    if run.cluster is None:
        yield None
        return
    with checked_cluster(run.cluster, files_of([source]), run.watch) as cluster:
        yield cluster


def _stream(batches: Batches, rows: ScoredRows, scores: ScoreFile, n_kept: int, wanted: tuple[int, int] | None) -> None:
    """Read here; score and write in a stage each; keep the first `n_kept` texts that were read.

    wanted: the first and the last row to score, from 1, malformed rows not counted; None: all. BncliError where the
    table ends before.
    """

    def score_batch(batch: Batch) -> None:
        if rows.strict:
            rows.refuse_unseen(batch, batches.kept_names)
        for block, log_p, why, added in rows.score(batch):
            writing.put(([column[block] for column in batch.kept[:n_kept]], log_p, why, added))

    with (
        PipelineStage[Block](lambda block: scores.write(*block)) as writing,
        PipelineStage(score_batch) as scoring,
        closing(cast(Generator[Batch, None, None], iter(batches))) as stream,
    ):
        n_read = 0
        for batch in stream:
            first, last = (1, n_read + batch.columns.n_rows) if wanted is None else wanted
            start, stop = max(first - 1 - n_read, 0), min(last - n_read, batch.columns.n_rows)
            if start < stop:
                scoring.put(batch.slice(start, stop))
            n_read += batch.columns.n_rows
            if wanted is not None and n_read >= last:
                break
    if wanted is not None and n_read < wanted[0]:
        what = f"there is no row {wanted[0]:,}: the table has {n_read:,} row{'s' * (n_read != 1)}"
        raise BncliError(what, hint="rows are numbered from 1, the header and malformed rows not counted")


def _plan(model: Model, source: Source, layout: ScoreLayout, output: Output, rows: ScoredRows) -> ScorePlan:
    """Return what the workers must know."""
    path = None if output.path == "-" else output.path
    how = (rows.strict, rows.shift, rows.watcher is not None, output.questions)
    return ScorePlan(model, source, layout, path, output.format, *how)


def _gather(batches: Batches, rows: ScoredRows, scores: ScoreFile, files: Iterable[ScoredFile]) -> None:
    """Write the workers' results for each file in row order."""
    with batches.bad_rows as bad_rows:
        for blocks, counts, error in files:
            for bad, pieces in blocks:
                bad_rows.take(bad)
                for piece in pieces:
                    scores.write_piece(piece)
            if error is not None:
                raise error
            rows.add(counts)


def _report(
    model_path: str, output: str | None, rows: ScoredRows, batches: Batches, found: MonitorSummary | None
) -> Callable[..., ScoreReport]:
    return partial(
        ScoreReport,
        model=model_path,
        output=output,
        rows=rows.count,
        skipped_rows=batches.n_skipped,
        unseen_values=sum(rows.unseen.values()),
        unseen=rows.in_order(rows.unseen),
        missing_values=sum(rows.missing.values()),
        missing=rows.in_order(rows.missing),
        absent_columns=batches.absent,
        monitor=found,
    )


def decision_options_of(words: Mapping[str, Any]) -> DecisionOptions:
    """Return what a program says of decisions, by the words of the options; TypeError for an unknown one."""
    if unknown := [word for word in words if word not in DECISION_KEYS]:
        raise TypeError(f"there is no option {unknown[0]!r}; of decisions there are {', '.join(DECISION_KEYS)}")
    typed = {key: value for key, value in words.items() if value is not None}
    if "costs" in typed:
        typed["costs"] = resolve_costs(typed["costs"])
    return DecisionOptions(**{key_of(flag): value for flag, value in parse_options(typed).items()})


def rule_to_score(model: Model, wanted: DecisionOptions, other_prior: bool, watch: Watch) -> DecisionRule | None:
    """Return that of the model, with what is wanted instead; None: nothing is decided.

    A warning where a threshold or sets rest on rows held out, and the probabilities are those of another prior.
    """
    stored = model.rule
    has_sets = stored is not None and stored.sets is not None
    refuse_decisions({flag_of(key): value for key, value in wanted._asdict().items()}, has_sets)
    rule = rule_of(wanted, model.schema.labels, model.schema.class_name, stored)
    if rule is None:
        return None
    Decider.of(rule, model.schema.labels)  # what cannot be decided is told before a row is read
    if other_prior and (rule.sets is not None or (rule.threshold is not None and rule.threshold.chosen)):
        what = "threshold" if rule.sets is None else "prediction sets"
        text = f"the {what} rest on rows held out, which had the prior of training: under --prior nothing is promised"
        watch(Note(text.replace("threshold rest", "threshold rests"), warning=True))
    return rule


def warn_about_threshold(rule: DecisionRule | None, labels: tuple[str, ...], highest: float, watch: Watch) -> None:
    """Warn if rows were scored but none reaches the threshold; highest: ln P of the second label in any row."""
    if rule is None or rule.threshold is None or highest == -math.inf:
        return
    value, most = rule.threshold.value, math.exp(highest)
    if most < value:
        text = f"no row reaches the threshold {value:.6g}: the highest p_{labels[1]} is {most:.6g}"
        watch(Note(f"{text}, so none is decided {labels[1]!r}", warning=True))


def write_found(path: str, model: Model, watcher: ScoreMonitor | None, watch: Watch) -> MonitorSummary:
    """Write what was counted, and notes what it lacks."""
    assert watcher is not None
    if model.class_weights is not None and model.plain_frequencies is None:
        watch(Note("drift is told against training rows that weigh as --class-weights said in fit"))
    if watcher.no_log_p:
        watch(Note(f"no ln P(x): {watcher.no_log_p}"))
    monitor = Monitor(monitored_model(model), watcher.tally, watcher.no_log_p)
    write_monitor(path, monitor)
    return MonitorSummary(path, monitor)


def _size(drift: Drift) -> str:
    """Return what made an attribute drift: its PSI, values never seen in training, or both."""
    if drift.psi is None:
        return "no value of training"
    strange = f"{100 * drift.unknown:.3g} % never seen in training" if drift.unknown >= LEAST_UNKNOWN else ""
    if drift.psi < LEAST_PSI and strange:
        return strange
    return f"PSI {drift.psi:.2f}{', ' if strange else ''}{strange}"
