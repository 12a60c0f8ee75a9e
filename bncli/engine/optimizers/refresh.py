"""When a preconditioner is worth making anew: short runs pay little, long runs get the best there is."""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.optimizers.objective import Objective, Precondition

GAP = (15, 120)
"""Evaluations from one refresh to the next, at first and at most; it doubles."""
COST = (12.0, 30.0)
"""Evaluations that a refresh may cost: half of all made so far, but at least and at most so many."""


class Refresh:
    """The preconditioner of one run."""

    def __init__(self, objective: Objective) -> None:
        self.precondition: Precondition = objective.precondition
        self._objective = objective
        self._last, self._gap = 0, GAP[0]

    def at(self, point: Array, evaluations: int) -> None:
        """Make it anew at `point` if it is time; `evaluations` are all since the start, and what cost as much."""
        if evaluations - self._last >= self._gap:
            self.precondition = self._objective.refreshed(point, min(max(evaluations / 2, COST[0]), COST[1]))
            self._last, self._gap = evaluations, min(2 * self._gap, GAP[1])
