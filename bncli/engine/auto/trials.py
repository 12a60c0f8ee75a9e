"""The trials: one candidate after the other is found in every fold, and its penalty chosen by the rows held out.

What was tried tells what is still worth trying (`pruning`) and what it may cost (`budget`); what is left out for its
cost is named in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bncli.engine.auto.boosted import NAME as BOOSTED
from bncli.engine.auto.boosted import judge_boosted
from bncli.engine.auto.budget import FOLDS, ComputeBudget, fit_seconds, path_seconds
from bncli.engine.auto.candidates import Candidate, Rows, candidate, names
from bncli.engine.auto.choice import GRID, Judged, Tell, held_out_weights, judge
from bncli.engine.auto.paths import PenaltyPath, path_of
from bncli.engine.auto.pruning import comes_later, has_lost_its_base, is_almost_certain, is_better, may_improve
from bncli.engine.data.dataset import Dataset
from bncli.watch import Note, Progress, Watch

LARGER = 1.2
"""How much more a candidate of many rows costs, at the least, than the one that it builds on."""


@dataclass(frozen=True)
class Fold:
    """Rows to learn from, with what was found on them, and rows held out."""

    rows: Rows
    held_out: Dataset


class Trials:
    """Candidates in their order, as long as the budget allows; the first in any case."""

    def __init__(
        self, data: Dataset, folds: list[Fold], metric: str, budget: ComputeBudget, watch: Watch, seed: int
    ) -> None:
        self._data, self._folds, self._metric, self._budget, self._watch = data, folds, metric, budget, watch
        self._many, self._seed = len(folds) < FOLDS, seed
        self._wanted = names(data, self._many)
        self._below = folds[0].rows.below
        budget.begin_candidates(data)
        self._whole_budget = budget.seconds
        self._costs: dict[str, float] = {}
        self._judged: list[Judged] = []
        self._left_out: list[str] = []

    def run(self) -> list[Judged]:
        """What came of those that were tried."""
        for done, name in enumerate(self._wanted):
            if self._is_worth_trying(name):
                self._watch(Progress(done, len(self._wanted), name))
                self._try(done, name)
        if self._left_out:
            reason = "there was no time" if self._budget.limit is not None else "too costly for so many rows"
            self._watch(Note(f"candidates that were not tried, {reason}: {', '.join(self._left_out)}"))
        return self._judged

    def _is_worth_trying(self, name: str) -> bool:
        if has_lost_its_base(name, self._below, self._judged, self._many, self._left_out):
            self._left_out.append(name)
            return False
        later = comes_later(name, self._wanted, self._folds[0].rows)
        return may_improve(name, self._below, self._judged, self._many) and not later

    def _try(self, done: int, name: str) -> None:
        if name == BOOSTED:
            parts = [(fold.rows.data, fold.held_out) for fold in self._folds]
            weights = held_out_weights([fold.held_out for fold in self._folds])
            self._judged.append(judge_boosted(parts, weights, self._seed, self._fold_teller(done, name)))
            return
        least = self._costs.get(self._below.get(name, ""), 0.0)
        if self._is_too_costly(name, LARGER * least if self._many else least, 0.0):
            return
        paths = [path_of(candidate(f.rows, name), f.rows.data, f.held_out, many=self._many) for f in self._folds]
        if any(_alike(paths[0], one.path) for one in self._judged):
            return
        cost = path_seconds([path.space.likelihood for path in paths])
        later = fit_seconds(paths[0].space.likelihood, self._data.n_rows)
        if self._is_too_costly(name, cost, later):
            return
        first = self._first_penalty(paths[0].candidate)
        self._judged.append(judge(name, paths, self._metric, self._teller(done, name), first))
        self._account(name, cost, later if self._many else 0.0)
        self._learn_from(self._judged[-1], paths)

    def _is_too_costly(self, name: str, cost: float, later: float) -> bool:
        """Seconds for the choice, and for the fit on all rows; the first candidate is never too costly."""
        if not self._judged or self._budget.allows(cost, later):
            return False
        self._left_out.append(name)
        return True

    def _account(self, name: str, cost: float, later: float) -> None:
        self._budget.expected += cost
        self._budget.later += later
        self._costs[name] = cost + later

    def _learn_from(self, judged: Judged, paths: Sequence[PenaltyPath]) -> None:
        """What later candidates build on and begin with."""
        for fold, path in zip(self._folds, paths, strict=True):
            fold.rows.fits[judged.name] = path.fit
            if self._many:
                fold.rows.penalties[judged.name] = judged.penalty
        if self._many and is_almost_certain(judged, self._data):
            self._budget.seconds = self._whole_budget / 2
        if judged.name == "all pairs" and not self._many and is_better(judged.name, "pairs", self._judged):
            for fold in self._folds:
                fold.rows.below["triples"] = judged.name

    def _first_penalty(self, found: Candidate) -> float:
        """A decade above the best penalty of the candidate that this one builds on, or else of the first."""
        if not self._judged:
            return GRID[0]
        best = {one.name: one.penalty for one in self._judged}
        below = self._below.get(found.name, "") if found.beyond == 1 else ""
        return GRID[max(0, GRID.index(best.get(below, self._judged[0].penalty)) - 2)]

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


def _alike(path: PenaltyPath, other: PenaltyPath | None) -> bool:
    return other is not None and path.candidate.has_tables_of(other.candidate)
