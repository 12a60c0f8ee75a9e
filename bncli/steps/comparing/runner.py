"""The bench on which one learner is tried on one fold: a unit of work, the same wherever and whenever it is done.

A unit depends on the plan alone, never on what was tried before it, so units may be done in any order and by any
process. The bench only remembers the data set in hand.

Decided here: a unit learns everything anew, cuts included, as `bncli evaluate` would with one thread. To learn cuts
once for all learners of a fold would save 1 to 8 percent (five learners on seven data sets), and the seconds of a
learner would no longer be its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Cuts
from bncli.engine.evaluation.validate import deal, hold_out, split_of
from bncli.errors import BncliError
from bncli.files.cuts import read_cuts
from bncli.files.structure import read_structure
from bncli.files.table import Source, read_columns
from bncli.steps.comparing.learners import Learner
from bncli.steps.comparing.outcomes import Outcome
from bncli.steps.protocol import Protocol
from bncli.steps.stopwatch import Stopwatch
from bncli.steps.supplied_files import recipe_for
from bncli.watch import Stage, silent


class Unit(NamedTuple):
    """Which data set, learner, repeat and fold, each by its position; tuples in order are units in order."""

    data: int
    learner: int
    repeat: int
    fold: int


@dataclass(frozen=True)
class Plan:
    """All that a process must know: names and sources of the data sets, learners, protocol, and bytes it may take."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]
    learners: tuple[Learner, ...]
    protocol: Protocol
    unseen: Literal["average", "error"] = "average"
    memory: int | None = None


@dataclass(frozen=True)
class Failure:
    """Why there is no outcome, in one line."""

    reason: str


class Bench:
    """Does units of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._data: int | None = None
        self._columns: dict[str | None, Columns] = {}

    def attempt(self, unit: Unit) -> Outcome | Failure:
        """The outcome of a unit, or why there is none: one learner that fails must not end a long run."""
        try:
            return self._outcome(unit)
        except BncliError as error:
            return Failure(str(error))
        except MemoryError:
            return Failure("not enough memory")
        except Exception as error:
            return Failure(f"internal error: {type(error).__name__}: {error}")

    def _outcome(self, unit: Unit) -> Outcome:
        plan, learner = self._plan, self._plan.learners[unit.learner]
        given = read_cuts(learner.cuts) if learner.cuts else None
        structure = read_structure(learner.structure) if learner.structure else None
        columns = self._read(unit.data, learner.cuts, given)
        fold_of = deal(columns, plan.protocol.folds, plan.protocol.seed, unit.repeat)
        watch = Stopwatch(silent)
        watch(Stage("fit"))
        fold = hold_out(
            columns,
            recipe_for(learner.recipe, structure),
            split_of(fold_of, unit.repeat, unit.fold),
            cuts=given,
            structure=structure,
            missing_tokens=plan.sources[unit.data].missing_tokens,
            unseen=plan.unseen,
            memory=plan.memory,
            clock=time.monotonic,
            watch=watch,
        )
        spent = watch.seconds()
        examined = fold.examined
        return Outcome(
            data=plan.names[unit.data],
            learner=learner.name,
            repeat=unit.repeat,
            fold=unit.fold,
            rows=len(fold.rows),
            metrics=examined.metrics.figures(),
            seconds={"fit": spent["fit"], "score": spent["score"]},
            predicted=examined.log_probabilities.argmax(axis=0).astype(code_dtype(len(examined.log_probabilities))),
        )

    def _read(self, data: int, cuts: str | None, given: Cuts | None) -> Columns:
        """The table; cuts that are given say of which type its columns are."""
        if data != self._data:
            self._data, self._columns = data, {}
        if cuts not in self._columns:
            self._columns[cuts] = read_columns(self._plan.sources[data], given=given)
        return self._columns[cuts]
