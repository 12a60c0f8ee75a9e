"""Compare learners over data sets: the same folds for all, every metric, and which differences are significant.

All outputs are checked and every data set is read before the work begins, so that errors are found at once. Then every
learner is run on every fold of every data set, in this process, in several, or on a cluster. The largest data sets come
first, so that no process is left with a long task at the end. The outcomes are sorted afterwards, so the result does
not depend on the number of processes or on which was first.

Conventions: a learner that fails on a fold is not tried on the other folds of that data set. It has a gap there,
without outcomes and with the reason of its first fold that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import product

import numpy as np

from bncli.engine.data.schema import Unseen
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.engine.evaluation.metrics import METRICS, BiasVariance, bias_variance
from bncli.errors import BncliError, UsageError
from bncli.files.paths import check_outputs
from bncli.files.reading.source import Source
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.tasks import checked_cluster, each_task, files_of, for_workers
from bncli.steps.compare.analysis import CompareReport, analyse
from bncli.steps.compare.checkpoint import Checkpoint
from bncli.steps.compare.outputs import check_drawings, write_outputs
from bncli.steps.compare.pool import Result, run_in_processes
from bncli.steps.compare.trials import (
    COSTS,
    ComparisonResults,
    DataSet,
    Failure,
    Gap,
    Learner,
    Outcome,
    Runner,
    RunPlan,
    Task,
    check_names,
    group_by_rows,
    read_data_sets,
)
from bncli.steps.run import free_memory
from bncli.watch import Note, Progress, Run, Stage, Watch

DEFAULT_METRICS = ("error", "log_loss", "rmse")
Results = Generator[Result, None, None]
Pool = Callable[[RunPlan, Sequence[Task], Callable[[Task], bool]], Results]
"""Runs the tasks of a plan, except those to skip when their turn comes, and yields the results as they arrive."""


@dataclass(frozen=True)
class CompareOutputs:
    """The files that a comparison writes; None for a file not to be written.

    `resume` stores every outcome, and an existing file is continued. `show` gets the report before the other files are
    written, so that a full disk cannot hide it.
    """

    csv: str | None = None
    latex: str | None = None
    diagram: str | None = None
    scatter: str | None = None
    resume: str | None = None
    show: Callable[[CompareReport], object] = lambda report: None


@dataclass(frozen=True)
class ComparisonSettings:
    """The metrics, the learner that the others are compared with (None: the first), and groups of data sets.

    group_bounds: ascending numbers of rows; the data sets between two bounds are also summarized separately.
    """

    metrics: Sequence[str] = DEFAULT_METRICS
    baseline: str | None = None
    group_bounds: Sequence[int] = ()


def compare(
    sources: Sequence[Source],
    learners: Sequence[Learner],
    protocol: Protocol = Protocol(),
    *,
    settings: ComparisonSettings = ComparisonSettings(),
    unseen: Unseen = "average",
    outputs: CompareOutputs = CompareOutputs(),
    run: Run = Run(),
) -> CompareReport:
    """Run every learner on every data set (one per source) and analyse the outcomes.

    The work is done by as many processes as the run has threads, or by its cluster. A learner that fails on a data set
    is a gap in the report, not an error.
    """
    _check_arguments(sources, learners, settings, outputs)
    data_sets = read_data_sets(sources, protocol, threads=run.threads, watch=run.watch)
    groups = group_by_rows(settings.group_bounds, {data_set.name: data_set.n_rows for data_set in data_sets})
    free = free_memory()
    plan = RunPlan(
        names=tuple(data_set.name for data_set in data_sets),
        sources=tuple(data_set.source for data_set in data_sets),
        learners=tuple(learners),
        protocol=protocol,
        unseen=unseen,
        memory=None if free is None else free // run.threads,
    )
    with ExitStack() as stack:
        pool: Pool = partial(run_here, jobs=run.threads)
        if run.cluster is not None:
            cluster = stack.enter_context(checked_cluster(run.cluster, files_of(plan.sources), run.watch))
            pool = partial(run_on_cluster, cluster=cluster)
        checkpoint = stack.enter_context(closing(Checkpoint(outputs.resume, plan, data_sets)))
        results = run_plan(plan, data_sets, checkpoint, pool=pool, watch=run.watch)
    run.watch(Stage("analyse"))
    metrics = tuple(dict.fromkeys(settings.metrics))
    report = analyse(results, metrics=metrics, baseline=settings.baseline, groups=groups)
    outputs.show(report)
    write_outputs(report, csv=outputs.csv, latex=outputs.latex, diagram=outputs.diagram, scatter=outputs.scatter)
    return report


def _check_arguments(
    sources: Sequence[Source], learners: Sequence[Learner], settings: ComparisonSettings, outputs: CompareOutputs
) -> None:
    """Raise an error for everything that is known to be wrong before a table is read."""
    check_names(learners)
    for metric in settings.metrics:
        _refuse_unknown(metric, (*METRICS, *COSTS), "metric")
    if settings.baseline is not None:
        _refuse_unknown(settings.baseline, [learner.name for learner in learners], "learner")
    if any(source.bad_rows_file for source in sources):
        raise UsageError("a file for bad rows would be written by every process", hint="use fail or skip")
    check_drawings(len(learners), len(sources), settings.metrics[0], diagram=outputs.diagram, scatter=outputs.scatter)
    if settings.group_bounds and len(sources) < 2:
        raise UsageError("--groups splits data sets, and there is one", hint="give more DATA")
    inputs = [path for source in sources for path in (*source.paths, source.schema_file)]
    supplied = [path for learner in learners for path in learner.supplied.paths]
    written = (outputs.resume, outputs.csv, outputs.latex, outputs.diagram, outputs.scatter)
    check_outputs(written, dict.fromkeys([*inputs, *supplied]))


def _refuse_unknown(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        near = get_close_matches(name, known, 1)
        names = [word.replace("_", "-") if what == "metric" else word for word in (near or known)]
        hint = f"did you mean {names[0]}?" if near else f"the {what}s are {', '.join(names)}"
        raise UsageError(f"there is no {what} {name!r}", hint=hint)


def run_plan(
    plan: RunPlan, data_sets: Sequence[DataSet], checkpoint: Checkpoint, *, pool: Pool, watch: Watch
) -> ComparisonResults:
    """Run all tasks whose outcomes are not in the checkpoint, store theirs there, and return all outcomes in order."""
    largest_first = sorted(range(len(data_sets)), key=lambda data: -data_sets[data].cells)
    learners, repeats, folds = range(len(plan.learners)), range(plan.protocol.repeats), range(plan.protocol.n_splits)
    tasks = [Task(*place) for place in product(largest_first, learners, repeats, folds)]
    outcomes = dict(checkpoint.outcomes)
    remaining = [task for task in tasks if task not in outcomes]
    # by (data set, learner), the first fold that failed
    failures: dict[tuple[int, ...], tuple[Task, Failure]] = {}
    if len(remaining) < len(tasks):
        n_stored = len(tasks) - len(remaining)
        watch(Note(f"{n_stored:,} of {len(tasks):,} folds are taken from {checkpoint.path}"))
    watch(Stage("run"))
    watch(Progress(len(outcomes), len(tasks)))
    try:
        with closing(pool(plan, remaining, lambda task: task[:2] in failures)) as results:
            for task, result in results:
                if isinstance(result, Outcome):
                    checkpoint.add(task, result)
                    outcomes[task] = result  # after it is stored, so that an interrupt counts only what is stored
                elif task[:2] not in failures or task < failures[task[:2]][0]:
                    failures[task[:2]] = task, result
                where = f"{plan.learners[task.learner].name} on {plan.names[task.data]}"
                watch(Progress(len(outcomes), len(tasks), f"{where}, fold {task.fold + 1}"))
    except KeyboardInterrupt:
        if checkpoint.path is not None:
            stored = f"{len(outcomes):,} of {len(tasks):,} folds are kept in {checkpoint.path}"
            watch(Note(f"{stored}; the same command goes on from there"))
        raise
    complete = {task: outcome for task, outcome in sorted(outcomes.items()) if task[:2] not in failures}
    pairs = sorted({task[:2] for task in complete}) if plan.protocol.repeats > 1 else []
    names = tuple(learner.name for learner in plan.learners)
    return ComparisonResults(
        learners=names,
        data=plan.names,
        sizes={data_set.name: data_set.n_rows for data_set in data_sets},
        protocol=plan.protocol,
        outcomes=tuple(complete.values()),
        bias_variance={
            (plan.names[data], names[learner]): _bias_variance(data_sets[data], plan.protocol, complete, data, learner)
            for data, learner in pairs
        },
        options={learner.name: learner.options for learner in plan.learners},
        gaps=tuple(
            Gap(plan.names[data], names[learner], failure.reason)
            for (data, learner), (_, failure) in sorted(failures.items())
        ),
    )


def _bias_variance(
    data_set: DataSet, protocol: Protocol, outcomes: Mapping[Task, Outcome], data: int, learner: int
) -> BiasVariance:
    """Return bias and variance from the out-of-fold predictions of every repeat."""
    predictions = np.empty((protocol.repeats, data_set.n_rows), data_set.labels.dtype)
    for repeat in range(protocol.repeats):
        for fold, (_, rows) in enumerate(protocol.draw_splits(data_set.labels, repeat, data_set.split_by)):
            predictions[repeat, rows] = outcomes[Task(data, learner, repeat, fold)].predicted
    return bias_variance(data_set.labels, predictions, data_set.n_labels, data_set.weights)


def run_here(plan: RunPlan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, jobs: int) -> Results:
    """Run tasks on this machine, in `jobs` processes or in this one."""
    jobs = min(jobs, len(tasks))
    if jobs > 1:
        yield from run_in_processes(plan, tasks, jobs, skip)
        return
    runner = Runner(plan)
    for task in tasks:
        if not skip(task):
            yield task, runner.run(task)


def run_on_cluster(plan: RunPlan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, cluster: Cluster) -> Results:
    """Run tasks on a cluster, each in any thread of any worker, which reads its table itself."""
    plan = replace(plan, sources=tuple(map(for_workers, plan.sources)), memory=None)
    for task, result in each_task(cluster, _serve_tasks, plan, tasks, skip):
        yield task, Failure(str(result)) if isinstance(result, BncliError) else result


def _serve_tasks(plan: RunPlan) -> Callable[[Task], Outcome | Failure]:
    """Return, on a worker, the function that runs the tasks of one thread within the memory that is free there."""
    return Runner(replace(plan, memory=free_memory())).run
