"""The trials: one candidate after the other is found in every fold, and its penalty chosen by the rows held out.

What was tried tells what is still worth trying (`pruning`) and what it may cost (`budget`); what is left out for its
cost is named in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles.boosted_candidate import NAME as BOOSTED
from bncli.engine.ensembles.boosted_candidate import Bag, judge_boosted, later_rows, member_seconds, n_members
from bncli.engine.ensembles.budget import (
    ComputeBudget,
    Effort,
    fit_seconds,
    least_path_seconds,
    memory_of,
    path_seconds,
    search_seconds,
)
from bncli.engine.ensembles.candidate_selection import (
    FIRST,
    GRID,
    MANY,
    HeldOutEvaluation,
    Tell,
    has_lost_its_base,
    held_out_weights,
    is_better,
    is_outdone,
    judge,
    may_improve,
    path_of,
)
from bncli.engine.ensembles.candidates import Candidate, Rows, candidate, names
from bncli.recipe import Recipe
from bncli.watch import Note, Progress, Watch

LARGER = 1.2
"""How much more a candidate costs, at the least, than the one that it builds on."""


@dataclass(frozen=True)
class Fold:
    """Rows to learn from, with what was found on them; all that they were drawn from (or the same); rows held out."""

    rows: Rows
    others: Dataset
    held_out: Dataset


class TrialPlan(NamedTuple):
    """What may be tried, and spent."""

    effort: Effort
    budget: ComputeBudget
    bag: Bag
    memory: int | None = None
    """Bytes; None: not known."""


class Trials:
    """Candidates in their order, as long as the budget allows; the first in any case."""

    def __init__(self, data: Dataset, folds: list[Fold], recipe: Recipe, plan: TrialPlan, watch: Watch) -> None:
        self._data, self._folds, self._watch = data, folds, watch
        self._metric, self._seed = recipe.metric or "log-loss", recipe.seed or 0
        self._effort, self._budget, self._bag, self._memory = plan
        # the splits of trees know nothing of directions
        boosts = data.n_rows >= self._effort.boosted_from and not data.schema.directed
        self._wanted = [name for name in names(data) if name != BOOSTED or boosts]
        self._below = folds[0].rows.below
        self._budget.begin_candidates(self._effort, data)
        self._costs: dict[str, float] = {}
        self._judged: list[HeldOutEvaluation] = []
        self._left_out: list[str] = []
        self._met, self._late = set[str](), set[str]()
        self._too_large: list[str] = []

    def run(self) -> list[HeldOutEvaluation]:
        """Return what came of those that were tried: the promising ones, then, of what is left to spend, the others."""
        if self._data.schema.directed and self._data.n_rows >= self._effort.boosted_from:
            self._tell("it cannot keep directions", [BOOSTED])
        self._pass(self._effort.prunes)
        if self._effort.prunes:
            too_costly = list(self._left_out)
            self._pass(prunes=False)
            self._left_out = too_costly  # of those that promised nothing nothing is told
        self._tell("there was no time", [name for name in self._left_out if name in self._late])
        self._tell("too costly for this effort", [name for name in self._left_out if name not in self._late])
        self._tell("too large for the memory", self._too_large)
        return self._judged

    def _tell(self, reason: str, names: Sequence[str]) -> None:
        if names:
            self._watch(Note(f"candidates that were not tried, {reason}: {', '.join(names)}"))

    def _pass(self, prunes: bool) -> None:
        for name in self._wanted:
            if name not in self._met and self._is_worth_trying(name, prunes):
                done = len(self._met)
                self._watch(Progress(done, len(self._wanted), name))
                self._met.add(name)
                self._try(done, name)

    def _is_worth_trying(self, name: str, prunes: bool) -> bool:
        if self._effort.prunes and is_outdone(name, self._judged):
            return False
        if has_lost_its_base(name, self._below, self._judged, prunes, [*self._left_out, *self._too_large]):
            self._left_out.append(name)
            self._late.update({name} if self._below.get(name) in self._late else ())
            return False
        if not may_improve(name, self._below, self._judged, prunes):
            return False
        fits = self._memory is None or memory_of(name, self._data, self._effort) <= self._memory
        if not fits and name not in self._too_large:
            self._too_large.append(name)
        return fits

    def _try(self, done: int, name: str) -> None:
        if name == BOOSTED:
            self._try_boosted(done)
            return
        first, n_folds = self._folds[0], len(self._folds)
        search = n_folds * search_seconds(name, len(self._data.schema.informative))
        least = LARGER * self._costs.get(self._below.get(name, ""), 0.0)
        if self._is_too_costly(name, max(search, least), 0.0):
            return
        # what the first fold tells comes before any work on the others
        found = candidate(first.rows, name)
        if any((one.path is not None and found.has_tables_of(one.path.candidate)) for one in self._judged):
            return
        least = search + n_folds * least_path_seconds(first.rows.data, found)
        if self._is_too_costly(name, least, 0.0):
            return
        paths = [path_of(found, first.rows.data, first.held_out)]
        cost = search + n_folds * path_seconds(paths[0].space.likelihood, found.coding)
        later = fit_seconds(paths[0].space.likelihood, self._data.n_rows)
        if self._is_too_costly(name, cost, later):
            return
        paths += [path_of(candidate(f.rows, name), f.rows.data, f.held_out) for f in self._folds[1:]]
        begin = self._first_penalty(found)
        self._judged.append(judge(name, paths, self._metric, self._teller(done, name), begin, self._is_late))
        self._budget.spend(cost, later)
        self._costs[name] = cost + later
        # What later candidates build on and begin with.
        judged = self._judged[-1]
        for fold, path in zip(self._folds, paths, strict=True):
            fold.rows.fits[judged.name] = path.fit
            fold.rows.penalties[judged.name] = judged.penalty
        if judged.name == "all pairs" and is_better(judged.name, "pairs", self._judged):
            for fold in self._folds:
                fold.rows.below["triples"] = judged.name

    def _try_boosted(self, done: int) -> None:
        """Try a bag of boosted trees whatever budget is left, of which it takes a part; a time limit is respected.

        Trees learn from all rows but those held out; from those that are drawn where there is no time for so many.
        """
        n_folds = len(self._folds)
        for parts in ([(f.others, f.held_out) for f in self._folds], [(f.rows.data, f.held_out) for f in self._folds]):
            expected = n_folds * member_seconds(self._data, parts[0][0].n_rows)
            # of more trees than half of those expected there is something to say
            if self._budget.has_time(expected / 2, 0.0):
                break
        else:
            self._left_out.append(BOOSTED)
            self._late.add(BOOSTED)
            return
        weights = held_out_weights([held_out for _, held_out in parts])
        judged = judge_boosted(parts, weights, self._bag, self._fold_teller(done, BOOSTED))
        self._judged.append(judged)
        did = n_folds * member_seconds(self._data, parts[0][0].n_rows, judged.members)
        more = max(0, n_members(self._effort, self._data.n_rows) - n_folds)
        later = more * member_seconds(self._data, later_rows(self._data, self._bag.rows), judged.members)
        self._budget.grant(expected, later, did)

    def _is_late(self) -> bool:
        """Return whether there is a limit, and it is reached."""
        return self._budget.limit is not None and self._budget.is_over

    def _is_too_costly(self, name: str, cost: float, later: float) -> bool:
        """Return seconds for the choice, and for the fit on all rows; the first candidate is never too costly."""
        if not self._judged or self._budget.allows(cost, later):
            return False
        if not self._budget.has_time(cost, later):
            self._late.add(name)
        self._left_out.append(name)
        return True

    def _first_penalty(self, found: Candidate) -> float:
        """Return a step above the best penalty of what this one builds on, or else of the first candidate.

        Two of many rows.

        Of many rows a path is followed downwards for longer, and a loss that hardly differs should not end it too low.
        """
        if not self._judged:
            return FIRST
        best = {one.name: one.penalty for one in self._judged}
        below = self._below.get(found.name, "") if found.beyond == 1 else ""
        above = 2 if sum(fold.held_out.n_rows for fold in self._folds) >= MANY else 1
        return GRID[max(0, GRID.index(best.get(below, self._judged[0].penalty)) - above)]

    def _fold_teller(self, done: int, name: str) -> Callable[[int], None]:
        def tell(fold: int) -> None:
            self._watch(Progress(done, len(self._wanted), f"{name}, fold {fold + 1} of {len(self._folds)}"))

        return tell

    def _teller(self, done: int, name: str) -> Tell:
        def tell(penalty: float, fold: int) -> None:
            share = GRID.index(penalty) / len(GRID)
            where = f"{name}, penalty {penalty:g}, fold {fold + 1} of {len(self._folds)}"
            self._watch(Progress(done + share, len(self._wanted), where))

        return tell
