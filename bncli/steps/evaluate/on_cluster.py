"""Cross-validation on a cluster: a fold of a repeat is a task, and the worker reads the table by itself.

Folds are handed on in their order, whoever is done first; so are the notes of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from bncli.engine.evaluation.cross_validation import (
    CrossValidation,
    Fold,
    assign_folds,
    hold_out_with_samples,
    split_fold,
)
from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.tasks import each_task, for_workers
from bncli.steps.run import Stopwatch, with_memory_limit
from bncli.steps.supplied_files import SuppliedFiles
from bncli.watch import Event, Note, Progress, Run, Stage, Watch

TimedFold = tuple[Fold, dict[str, float]]
"""A fold with the seconds that it took to fit and to score."""


@dataclass(frozen=True)
class FoldPlan:
    """All that a worker must know."""

    source: Source
    supplied: SuppliedFiles
    asked: CrossValidation


@dataclass(frozen=True)
class _Done:
    folds: list[TimedFold]
    notes: list[Note]


def folds_on_cluster(cluster: Cluster, plan: FoldPlan, watch: Watch) -> Iterator[TimedFold]:
    """Yield every fold of every repeat, in order, each followed by the same fold learnt from samples."""
    watch(Stage("fit"))
    plan, total = replace(plan, source=for_workers(plan.source)), plan.asked.n_folds
    early: dict[int, _Done] = {}
    following = count()
    number = next(following)
    watch(Progress(0, total))
    tasks = each_task(cluster, _serve, plan, range(total), lambda _: False)
    for done, (task, result) in enumerate(tasks, 1):
        if isinstance(result, BncliError):
            raise result
        early[task] = result
        while number in early:
            ready = early.pop(number)
            for note in ready.notes:
                watch(note)
            yield from ready.folds
            number = next(following)
        watch(Progress(done, total, f"fold {task + 1} of {total}"))


def _serve(plan: FoldPlan) -> Callable[[int], _Done | BncliError]:
    """On a worker: the table, read once, and the function of one fold."""
    run = with_memory_limit(Run())
    columns = plan.supplied.read(plan.source, run, plan.asked.recipe)

    def hold_out(number: int) -> _Done | BncliError:
        repeat, fold = divmod(number, plan.asked.protocol.folds)
        split = split_fold(assign_folds(columns, plan.asked.protocol, repeat), repeat, fold)
        notes: list[Note] = []

        def heard(event: Event) -> None:
            if isinstance(event, Note):
                notes.append(event)

        watch = Stopwatch(heard)
        try:
            return _Done(
                list(timed(hold_out_with_samples(columns, plan.asked, split, run._replace(watch=watch)), watch)), notes
            )
        except BncliError as error:
            return error

    return hold_out


def timed(folds: Iterator[Fold], watch: Stopwatch) -> Iterator[TimedFold]:
    """Yield each fold with its seconds."""
    before = {"fit": 0.0, "score": 0.0}
    for fold in folds:
        now = watch.seconds()
        yield fold, {stage: now[stage] - seconds for stage, seconds in before.items()}
        before = {stage: now[stage] for stage in before}
