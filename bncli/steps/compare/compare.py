"""Compares learners over data sets: the same folds for all, every figure, and which differences are real.

Every data set is read once before the work begins, and every output is checked, so that what must fail fails at once.

A comparison is run: every learner on every fold of every data set, in this process, in several, or on a cluster.

The largest data sets come first, so that no process is left alone with a long task at the end. What is found is put in
order afterwards, so neither the number of processes nor who was first can change it.

Conventions: a learner that fails on a fold is not tried on the other folds of that data set; it has a gap there, no
outcomes, and the reason is that of its first fold that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from itertools import product

import numpy as np

from bncli.engine.data.schema import Unseen
from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.engine.evaluation.metrics import METRICS, BiasVariance, bias_variance
from bncli.errors import BncliError, UsageError
from bncli.files.paths import check_outputs
from bncli.files.reading.source import Source
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.tasks import checked_cluster, each_task, files_of, for_workers
from bncli.steps.compare.analysis import CompareReport, analyse
from bncli.steps.compare.checkpoint import Checkpoint
from bncli.steps.compare.entries import (
    COSTS,
    ComparisonRun,
    Entry,
    Learner,
    Outcome,
    UntriedLearner,
    check_names,
    groups_by_rows,
    read_entries,
)
from bncli.steps.compare.outputs import refuse_idle_outputs, write_outputs
from bncli.steps.compare.pool import Result, in_processes
from bncli.steps.compare.runner import Failure, Runner, RunPlan, Task
from bncli.steps.run import free_memory
from bncli.watch import Note, Progress, Run, Stage, Watch


@dataclass
class _Progress:
    """What is known so far: outcomes, and where a learner failed (data set, learner) its first fold that did."""

    outcomes: dict[Task, Outcome]
    failures: dict[tuple[int, int], tuple[Task, Failure]] = field(default_factory=dict)

    def add(self, task: Task, result: Outcome | Failure) -> None:
        if isinstance(result, Outcome):
            self.outcomes[task] = result
            return
        before = self.failures.get(task[:2])
        if before is None or task < before[0]:
            self.failures[task[:2]] = task, result

    def fails(self, task: Task) -> bool:
        return task[:2] in self.failures


Results = Generator[Result, None, None]
Pool = Callable[[RunPlan, Sequence[Task], Callable[[Task], bool]], Results]
"""What runs the tasks of a plan that are not to be skipped when their turn comes: results as they come."""
DEFAULT_METRICS = ("error", "log_loss", "rmse")


@dataclass(frozen=True)
class CompareOutputs:
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
class ComparisonSettings:
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
    question: ComparisonSettings = ComparisonSettings(),
    unseen: Unseen = "average",
    outputs: CompareOutputs = CompareOutputs(),
    run: Run = Run(),
) -> CompareReport:
    """Try every learner on every data set, each source one, and concludes.

    The work is done by as many processes as the run has threads, or by its cluster. A learner that fails on a data set
    is a gap of the report, not an error.
    """
    _check(sources, learners, question, outputs)
    entries = read_entries(sources, protocol, threads=run.threads, watch=run.watch)
    groups = groups_by_rows(question.group_bounds, {entry.name: entry.n_rows for entry in entries})
    free = free_memory()
    plan = RunPlan(
        names=tuple(entry.name for entry in entries),
        sources=tuple(entry.source for entry in entries),
        learners=tuple(learners),
        protocol=protocol,
        unseen=unseen,
        memory=None if free is None else free // run.threads,
    )
    with _pool(plan, run) as pool, closing(Checkpoint(outputs.resume, plan, entries)) as checkpoint:
        trial = run_plan(plan, entries, checkpoint, pool=pool, watch=run.watch)
    run.watch(Stage("analyse"))
    metrics = tuple(dict.fromkeys(question.metrics))
    report = analyse(trial, metrics=metrics, baseline=question.baseline, groups=groups)
    outputs.show(report)
    write_outputs(report, csv=outputs.csv, latex=outputs.latex, diagram=outputs.diagram, scatter=outputs.scatter)
    return report


def _check(
    sources: Sequence[Source], learners: Sequence[Learner], question: ComparisonSettings, outputs: CompareOutputs
) -> None:
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


@contextmanager
def _pool(plan: RunPlan, run: Run) -> Iterator[Pool]:
    """Who runs the tasks: processes of this machine, or a cluster whose workers see every table."""
    if run.cluster is None:
        yield partial(here, jobs=run.threads)
        return
    with checked_cluster(run.cluster, files_of(plan.sources), run.watch) as cluster:
        yield partial(on_cluster, cluster=cluster)


def run_plan(
    plan: RunPlan, entries: Sequence[Entry], checkpoint: Checkpoint, *, pool: Pool, watch: Watch
) -> ComparisonRun:
    """Try all that the checkpoint does not know yet, writes it there, and returns everything in order."""
    # Everything that there is to do, in the order in which it is begun.
    largest_first = sorted(range(len(entries)), key=lambda data: -entries[data].cells)
    parts = product(largest_first, range(len(plan.learners)), range(plan.protocol.repeats), range(plan.protocol.folds))
    tasks = [Task(*part) for part in parts]
    found = _Progress(checkpoint.kept())
    left = [task for task in tasks if task not in found.outcomes]
    if len(left) < len(tasks):
        watch(Note(f"{len(tasks) - len(left):,} of {len(tasks):,} folds are taken from {checkpoint.path}"))
    watch(Stage("run"))
    try:
        with closing(pool(plan, left, found.fails)) as results:
            for task, result in _with_progress(results, plan, len(tasks), found, watch):
                if isinstance(result, Outcome):
                    checkpoint.add(task, result)
                found.add(task, result)  # after it is kept, so that an interrupt never counts what is not
    except KeyboardInterrupt:
        if checkpoint.path is not None:
            kept = f"{len(found.outcomes):,} of {len(tasks):,} folds are kept in {checkpoint.path}"
            watch(Note(f"{kept}; the same command goes on from there"))
        raise
    return _trial(plan, entries, found)


def _with_progress(
    results: Iterable[Result], plan: RunPlan, total: int, found: _Progress, watch: Watch
) -> Iterator[Result]:
    """Yield the results; the watch hears how many folds are done, and which was the last."""
    watch(Progress(len(found.outcomes), total))
    for task, result in results:
        yield task, result
        where = f"{plan.learners[task.learner].name} on {plan.names[task.data]}"
        watch(Progress(len(found.outcomes), total, f"{where}, fold {task.fold + 1}"))


def _trial(plan: RunPlan, entries: Sequence[Entry], found: _Progress) -> ComparisonRun:
    names = tuple(learner.name for learner in plan.learners)
    whole = {task: outcome for task, outcome in sorted(found.outcomes.items()) if not found.fails(task)}
    pairs = sorted({task[:2] for task in whole}) if plan.protocol.repeats > 1 else []
    return ComparisonRun(
        learners=names,
        data=plan.names,
        sizes={entry.name: entry.n_rows for entry in entries},
        protocol=plan.protocol,
        outcomes=tuple(whole.values()),
        bias_variance={
            (plan.names[data], names[learner]): _bias_variance(entries[data], plan.protocol, whole, (data, learner))
            for data, learner in pairs
        },
        options={learner.name: learner.options for learner in plan.learners},
        gaps=tuple(
            UntriedLearner(plan.names[data], names[learner], failure.reason)
            for (data, learner), (_, failure) in sorted(found.failures.items())
        ),
    )


def _bias_variance(
    entry: Entry, protocol: Protocol, outcomes: Mapping[Task, Outcome], pair: tuple[int, int]
) -> BiasVariance:
    """From the predictions of every repeat, each row predicted once in each by the model that has not seen it."""
    predictions = np.empty((protocol.repeats, entry.n_rows), entry.labels.dtype)
    for repeat in range(protocol.repeats):
        fold_of = stratified_folds(entry.labels, protocol.folds, (protocol.seed, repeat))
        for fold in range(protocol.folds):
            predictions[repeat, fold_of == fold] = outcomes[Task(*pair, repeat, fold)].predicted
    return bias_variance(entry.labels, predictions, entry.n_labels, entry.weights)


def here(plan: RunPlan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, jobs: int) -> Results:
    """Return the pool of this machine: `jobs` processes, or this one."""
    jobs = min(jobs, len(tasks))
    if jobs > 1:
        yield from in_processes(plan, tasks, jobs, skip)
        return
    runner = Runner(plan)
    for task in tasks:
        if not skip(task):
            yield task, runner.run(task)


def on_cluster(plan: RunPlan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, cluster: Cluster) -> Results:
    """Return the pool of a cluster: a task is run by any thread of any worker, which reads its table by itself."""
    plan = replace(plan, sources=tuple(map(for_workers, plan.sources)), memory=None)
    for task, result in each_task(cluster, _serve, plan, tasks, skip):
        yield task, Failure(str(result)) if isinstance(result, BncliError) else result


def _serve(plan: RunPlan) -> Callable[[Task], Outcome | Failure]:
    """On a worker: what runs the tasks of one thread, within the memory that is free there."""
    return Runner(replace(plan, memory=free_memory())).run
