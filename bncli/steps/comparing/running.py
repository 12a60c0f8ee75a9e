"""A comparison is run: every learner on every fold of every data set, in this process, in several, or on a cluster.

The largest data sets come first, so that no process is left alone with a long task at the end. What is found is put in
order afterwards, so neither the number of processes nor who was first can change it.

Conventions: a learner that fails on a fold is not tried on the other folds of that data set; it has a gap there, no
outcomes, and the reason is that of its first fold that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from bncli.engine.data.folds import stratified_folds
from bncli.engine.evaluation.bias_variance import BiasVariance, bias_variance
from bncli.engine.evaluation.validate import Protocol
from bncli.errors import BncliError
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.preflight import for_workers
from bncli.steps.cluster.tasks import each_task
from bncli.steps.comparing.checkpoint import Checkpoint
from bncli.steps.comparing.entries import Entry
from bncli.steps.comparing.outcomes import Gap, Outcome, Trial
from bncli.steps.comparing.pool import Result, in_processes
from bncli.steps.comparing.runner import Failure, Plan, Runner, Task
from bncli.steps.memory import free_memory
from bncli.watch import Note, Progress, Stage, Watch


def run_plan(plan: Plan, entries: Sequence[Entry], checkpoint: Checkpoint, *, pool: Pool, watch: Watch) -> Trial:
    """Tries all that the checkpoint does not know yet, writes it there, and returns everything in order."""
    tasks = _tasks(plan, entries)
    found = _Found(checkpoint.kept())
    left = [task for task in tasks if task not in found.outcomes]
    if len(left) < len(tasks):
        watch(Note(f"{len(tasks) - len(left):,} of {len(tasks):,} folds are taken from {checkpoint.path}"))
    watch(Stage("run"))
    try:
        with closing(pool(plan, left, found.fails)) as results:
            for task, result in _told(results, plan, len(tasks), found, watch):
                if isinstance(result, Outcome):
                    checkpoint.add(task, result)
                found.add(task, result)  # after it is kept, so that an interrupt never counts what is not
    except KeyboardInterrupt:
        if checkpoint.path is not None:
            kept = f"{len(found.outcomes):,} of {len(tasks):,} folds are kept in {checkpoint.path}"
            watch(Note(f"{kept}; the same command goes on from there"))
        raise
    return _trial(plan, entries, found)


@dataclass
class _Found:
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
Pool = Callable[[Plan, Sequence[Task], Callable[[Task], bool]], Results]
"""What runs the tasks of a plan that are not to be skipped when their turn comes: results as they come."""


def _tasks(plan: Plan, entries: Sequence[Entry]) -> list[Task]:
    """Everything that there is to do, in the order in which it is begun."""
    largest_first = sorted(range(len(entries)), key=lambda data: -entries[data].cells)
    parts = product(largest_first, range(len(plan.learners)), range(plan.protocol.repeats), range(plan.protocol.folds))
    return [Task(*part) for part in parts]


def here(plan: Plan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, jobs: int) -> Results:
    """The pool of this machine: `jobs` processes, or this one."""
    jobs = min(jobs, len(tasks))
    if jobs > 1:
        yield from in_processes(plan, tasks, jobs, skip)
        return
    runner = Runner(plan)
    for task in tasks:
        if not skip(task):
            yield task, runner.run(task)


def on_cluster(plan: Plan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, cluster: Cluster) -> Results:
    """The pool of a cluster: a task is run by any thread of any worker, which reads its table by itself."""
    plan = replace(plan, sources=tuple(map(for_workers, plan.sources)), memory=None)
    for task, result in each_task(cluster, _serve, plan, tasks, skip):
        yield task, Failure(str(result)) if isinstance(result, BncliError) else result


def _serve(plan: Plan) -> Callable[[Task], Outcome | Failure]:
    """On a worker: what runs the tasks of one thread, within the memory that is free there."""
    return Runner(replace(plan, memory=free_memory())).run


def _told(results: Iterable[Result], plan: Plan, total: int, found: _Found, watch: Watch) -> Iterator[Result]:
    """The results; the watch hears how many folds are done, and which was the last."""
    watch(Progress(len(found.outcomes), total))
    for task, result in results:
        yield task, result
        where = f"{plan.learners[task.learner].name} on {plan.names[task.data]}"
        watch(Progress(len(found.outcomes), total, f"{where}, fold {task.fold + 1}"))


def _trial(plan: Plan, entries: Sequence[Entry], found: _Found) -> Trial:
    names = tuple(learner.name for learner in plan.learners)
    whole = {task: outcome for task, outcome in sorted(found.outcomes.items()) if not found.fails(task)}
    pairs = sorted({task[:2] for task in whole}) if plan.protocol.repeats > 1 else []
    return Trial(
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
            Gap(plan.names[data], names[learner], failure.reason)
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
