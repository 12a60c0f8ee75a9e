"""Compares learners over data sets: the same folds for all, every figure, and which differences are real.

Every data set is read once before the work begins, and every output is checked, so that what must fail fails at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from bncli.engine.data.schema import Unseen
from bncli.engine.evaluation.metrics import METRICS
from bncli.engine.evaluation.validate import Protocol
from bncli.errors import UsageError
from bncli.files.paths import check_outputs
from bncli.files.table import Source
from bncli.steps.cluster.connection import connected
from bncli.steps.cluster.preflight import check_workers, files_of
from bncli.steps.comparing.analysis import analyse
from bncli.steps.comparing.checkpoint import Checkpoint
from bncli.steps.comparing.entries import Entry, read_entries
from bncli.steps.comparing.groups import groups_by_rows
from bncli.steps.comparing.learners import Learner, check_names
from bncli.steps.comparing.outcomes import COSTS
from bncli.steps.comparing.outputs import refuse_idle_outputs, write_outputs
from bncli.steps.comparing.report import CompareReport
from bncli.steps.comparing.runner import Plan
from bncli.steps.comparing.running import Pool, here, on_cluster, run_plan
from bncli.steps.memory import free_memory
from bncli.watch import Run, Stage

DEFAULT_METRICS = ("error", "log_loss", "rmse")


@dataclass(frozen=True)
class Outputs:
    """The files that a comparison writes; None: not this one.

    `resume` keeps every outcome and is gone on from where it is there. `show` gets the report before the others are
    written, so that no full disk can hide it.
    """

    csv: str | None = None
    latex: str | None = None
    diagram: str | None = None
    scatter: str | None = None
    resume: str | None = None
    show: Callable[[CompareReport], object] = lambda report: None


@dataclass(frozen=True)
class Question:
    """By which metrics learners are compared, with whom the others are (None: the first), and over which tables.

    group_bounds: numbers of rows, ascending, between which data sets are summed up apart too.
    """

    metrics: Sequence[str] = DEFAULT_METRICS
    baseline: str | None = None
    group_bounds: Sequence[int] = ()


def compare(
    sources: Sequence[Source],
    learners: Sequence[Learner],
    protocol: Protocol = Protocol(),
    *,
    question: Question = Question(),
    unseen: Unseen = "average",
    outputs: Outputs = Outputs(),
    run: Run = Run(),
) -> CompareReport:
    """Tries every learner on every data set, each source one, and concludes.

    The work is done by as many processes as the run has threads, or by its cluster. A learner that fails on a data set
    is a gap of the report, not an error.
    """
    _check(sources, learners, question, outputs)
    entries = read_entries(sources, protocol, threads=run.threads, watch=run.watch)
    groups = groups_by_rows(question.group_bounds, {entry.name: entry.n_rows for entry in entries})
    plan = _plan(entries, learners, protocol, unseen, run.threads)
    with _pool(plan, run) as pool, closing(Checkpoint(outputs.resume, plan, entries)) as checkpoint:
        trial = run_plan(plan, entries, checkpoint, pool=pool, watch=run.watch)
    run.watch(Stage("analyse"))
    metrics = tuple(dict.fromkeys(question.metrics))
    report = analyse(trial, metrics=metrics, baseline=question.baseline, groups=groups)
    outputs.show(report)
    write_outputs(report, csv=outputs.csv, latex=outputs.latex, diagram=outputs.diagram, scatter=outputs.scatter)
    return report


@contextmanager
def _pool(plan: Plan, run: Run) -> Iterator[Pool]:
    """Who runs the tasks: processes of this machine, or a cluster whose workers see every table."""
    if run.cluster is None:
        yield partial(here, jobs=run.threads)
        return
    with connected(run.cluster) as cluster:
        check_workers(cluster, files_of(plan.sources), run.watch)
        yield partial(on_cluster, cluster=cluster)


def _plan(
    entries: Sequence[Entry],
    learners: Sequence[Learner],
    protocol: Protocol,
    unseen: Unseen,
    jobs: int,
) -> Plan:
    free = free_memory()
    return Plan(
        names=tuple(entry.name for entry in entries),
        sources=tuple(entry.source for entry in entries),
        learners=tuple(learners),
        protocol=protocol,
        unseen=unseen,
        memory=None if free is None else free // jobs,
    )


def _check(sources: Sequence[Source], learners: Sequence[Learner], question: Question, outputs: Outputs) -> None:
    """Everything that can be known to be wrong before a table is read."""
    check_names(learners)
    names = [learner.name for learner in learners]
    for metric in question.metrics:
        _check_known(metric, (*METRICS, *COSTS), "metric")
    if question.baseline is not None:
        _check_known(question.baseline, names, "learner")
    if any(source.bad_rows_file for source in sources):
        raise UsageError("a file for bad rows would be written by every process", hint="say fail or skip")
    sizes = (len(learners), len(sources))
    refuse_idle_outputs(*sizes, question.metrics[0], diagram=outputs.diagram, scatter=outputs.scatter)
    if question.group_bounds and len(sources) < 2:
        raise UsageError("--groups splits data sets, and there is one", hint="give more DATA")
    inputs = [path for source in sources for path in (*source.paths, source.schema_file)]
    supplied = [path for learner in learners for path in learner.supplied.paths]
    written = (outputs.resume, outputs.csv, outputs.latex, outputs.diagram, outputs.scatter)
    check_outputs(written, dict.fromkeys([*inputs, *supplied]))


def _check_known(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        near = get_close_matches(name, known, 1)
        told = [word.replace("_", "-") if what == "metric" else word for word in (near or known)]
        hint = f"did you mean {told[0]}?" if near else f"the {what}s are {', '.join(told)}"
        raise UsageError(f"there is no {what} {name!r}", hint=hint)
