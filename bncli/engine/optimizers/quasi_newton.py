"""Descent along preconditioned quasi-Newton directions, and along truncated Newton directions from some point on.

The step along a direction d is 1 or found by cubic interpolation, and satisfies the strong Wolfe conditions with
constants 1e-4 and 0.9.

Stops, with f the objective: `gradient` when the decrease predicted, g'Hg / 2, is under tolerance f / 100 (a vanishing
gradient in the problem's own metric); `tolerance` when the last WINDOW quasi-Newton iterations, or NEWTON_WINDOW Newton
iterations, together improved f by no more than tolerance f; `line-search` when no better point exists along a Newton
direction, or along the preconditioned gradient; `separable` when the objective says so; `max-iterations`. The distance
to the optimum is then of the order of tolerance f.

A product with the Hessian costs about as much as an evaluation, and is told as one of the gradient.
"""

from __future__ import annotations

import math
from collections import deque

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.line_search import Probe, search
from bncli.engine.optimizers.objective import Objective, Report, Step
from bncli.engine.optimizers.pairs import Pairs
from bncli.engine.optimizers.refresh import Refresh
from bncli.engine.optimizers.truncated import newton_direction

WINDOW = 5
NEWTON_WINDOW = 2
FLOOR = 1e-10
"""Values are compared with this share of the first one where they have fallen below it."""
PASSES = 4
"""So many evaluations and products for every iteration allowed are the cap too."""


def descend(
    objective: Objective, start: Array, *, newton_from: float, tolerance: float, max_iterations: int, report: Report
) -> Optimum:
    """The minimiser found from `start`, shape (P,); directions are Newton's after `newton_from` evaluations."""
    run = _Run(objective, start, tolerance, max_iterations, report)
    reason = run.quasi_newton(newton_from) or run.newton()
    here = run.here
    return Optimum(here.point, here.value, _norm(here.gradient), run.iteration, run.evaluations, reason)


class _Run:
    """Where the descent is, and what it has spent."""

    def __init__(
        self, objective: Objective, start: Array, tolerance: float, max_iterations: int, report: Report
    ) -> None:
        self.here = Probe(start, *objective.value_and_gradient(start))
        self.evaluations, self.products, self.iteration = 1, 0, 0
        self._objective, self._tolerance, self._max_iterations = objective, tolerance, max_iterations
        self._report = report
        self._refresh = Refresh(objective)
        self._floor = FLOOR * abs(self.here.value)
        self._tell(0.0)

    def quasi_newton(self, until: float) -> StoppedBy | None:
        """Descend till there is a reason to stop; None after `until` evaluations."""
        pairs, values = Pairs(), deque([self.here.value], maxlen=WINDOW + 1)
        while self.evaluations < until:
            direction = -pairs.inverse_hessian(self._refresh.precondition, self.here.gradient)
            reason = self._finished(direction, values)
            if reason is not None:
                return reason
            before = self.here
            if self._advance(direction):
                pairs.remember(self.here.point - before.point, self.here.gradient - before.gradient)
                values.append(self.here.value)
            elif len(pairs):
                pairs.forget()
            else:
                return StoppedBy.LINE_SEARCH
        return None

    def newton(self) -> StoppedBy:
        """Descend till there is a reason to stop."""
        values = deque([self.here.value], maxlen=NEWTON_WINDOW + 1)
        while True:
            reason = self._finished(-self._refresh.precondition(self.here.gradient), values)
            if reason is not None:
                return reason
            product = self._objective.hessian(self.here.point)
            direction, used = newton_direction(product, self._refresh.precondition, self.here.gradient)
            self.products += used
            if not self._advance(direction):
                return StoppedBy.LINE_SEARCH
            values.append(self.here.value)

    def _finished(self, direction: Array, values: deque[float]) -> StoppedBy | None:
        """The reason to stop, if there is one; `values` are those of the last iterations, full after a whole window."""
        enough = self._tolerance * max(abs(self.here.value), self._floor)
        if self._objective.separable(self.here.value):
            return StoppedBy.SEPARABLE
        if -float(direction @ self.here.gradient) / 2 <= 1e-2 * enough:
            return StoppedBy.GRADIENT
        if len(values) == values.maxlen and values[0] - values[-1] <= enough:
            return StoppedBy.TOLERANCE
        cap = self._max_iterations
        capped = self.iteration >= cap or self._spent >= PASSES * cap
        return StoppedBy.MAX_ITERATIONS if capped else None

    @property
    def _spent(self) -> int:
        return self.evaluations + self.products

    def _advance(self, direction: Array) -> bool:
        """One iteration along `direction`; False where no point there is better."""
        slope = float(direction @ self.here.gradient)
        found, step, tries = search(self._objective.value_and_gradient, self.here, direction, slope)
        self.evaluations += tries
        if found is None:
            return False
        self.here = found
        self.iteration += 1
        self._refresh.at(found.point, self._spent)
        self._tell(step)
        return True

    def _tell(self, step: float) -> None:
        here = self.here
        norm = _norm(here.gradient)
        self._report(Step(self.iteration, here.value, norm, step, self.evaluations, self._spent), here.point)


def _norm(vector: Array) -> float:
    return math.sqrt(float(vector @ vector))
