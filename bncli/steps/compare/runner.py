"""One learner on one fold is a task: the same wherever and whenever it is run.

A task depends on the plan alone, never on what was tried before it, so tasks may be run in any order and by any
process. The runner only remembers the data set in hand.

Conventions: a task learns everything anew, cuts included, as `bncli evaluate` would with one thread. To learn cuts
once for all learners of a fold would save 1 to 8 percent (five learners on seven data sets), and the seconds of a
learner would no longer be its own. Seconds are those of the processor, in this thread: what runs beside it, and
whatever else the machine does, does not count. A learner's first fold in a process also loads its code, so it is
learnt again where that is QUICK, and the second time counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Cuts, ReadingRules, Unseen
from bncli.engine.evaluation.cross_validation import CrossValidation, Fold, Protocol, assign_folds, hold_out, split_fold
from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.steps.compare.entries import Learner, Outcome
from bncli.steps.run import Stopwatch, free_memory
from bncli.watch import Run, Stage, silent

QUICK = 1.0
"""Seconds; loading takes less, so that beside slower folds it does not matter much."""


class Task(NamedTuple):
    """Which data set, learner, repeat and fold, each by its position; tuples in order are tasks in order."""

    data: int
    learner: int
    repeat: int
    fold: int


@dataclass(frozen=True)
class RunPlan:
    """All that a process must know: names and sources of the data sets, learners, protocol, and bytes it may take."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]
    learners: tuple[Learner, ...]
    protocol: Protocol
    unseen: Unseen = "average"
    memory: int | None = None


@dataclass(frozen=True)
class Failure:
    """Why there is no outcome, in one line."""

    reason: str


class Runner:
    """Runs tasks of a plan."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._data: int | None = None
        self._read: list[tuple[Cuts | None, Columns]] = []
        self._loaded: set[int] = set()

    def run(self, task: Task) -> Outcome | Failure:
        """Return the outcome of a task, or why there is none: one learner that fails must not end a long run."""
        try:
            plan, learner = self._plan, self._plan.learners[task.learner]
            # The table, read once for all learners with the same cuts, which say of which type its columns are.
            data = task.data
            cuts = learner.supplied.cuts
            if data != self._data:
                self._data, self._read = data, []
            columns = next((columns for known, columns in self._read if known == cuts), None)
            if columns is None:
                columns = read_columns(self._plan.sources[data], cuts=cuts, memory=free_memory())
                self._read.append((cuts, columns))
            fold, spent = self._held_out(task, columns)
            if task.learner not in self._loaded and spent["fit"] < QUICK:
                fold, spent = self._held_out(task, columns)
            self._loaded.add(task.learner)
            examined = fold.measured
            return Outcome(
                data=plan.names[task.data],
                learner=learner.name,
                repeat=task.repeat,
                fold=task.fold,
                rows=len(fold.rows),
                metrics=examined.metrics.by_name(),
                seconds={"fit": spent["fit"], "score": spent["score"]},
                costs={"iterations": fold.iterations, "passes": fold.passes},
                predicted=examined.log_probabilities.argmax(axis=0).astype(code_dtype(len(examined.log_probabilities))),
            )
        except BncliError as error:
            return Failure(str(error))
        except MemoryError:
            return Failure("not enough memory")
        except Exception as error:
            return Failure(f"internal error: {type(error).__name__}: {error}")

    def _held_out(self, task: Task, columns: Columns) -> tuple[Fold, dict[str, float]]:
        """Return the fold, and the seconds of its stages."""
        plan, learner = self._plan, self._plan.learners[task.learner]
        fold_of = assign_folds(columns, plan.protocol, task.repeat)
        watch = Stopwatch(silent, time.thread_time)
        watch(Stage("fit"))
        fold = hold_out(
            columns,
            CrossValidation(
                learner.supplied.update_recipe(learner.recipe),
                plan.protocol,
                learner.supplied,
                ReadingRules(plan.sources[task.data].missing_tokens, plan.unseen),
            ),
            split_fold(fold_of, task.repeat, task.fold),
            Run(memory=plan.memory, clock=time.monotonic, watch=watch),
        )
        return fold, watch.seconds()
