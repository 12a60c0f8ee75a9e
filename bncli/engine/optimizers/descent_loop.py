"""The loop that classical descent methods share: a direction, a search along it, and what is kept for the next.

A `Guide` is a method without its loop. Where the decrease predicted for its direction is too small, or its line search
finds nothing, it forgets what it knows and starts again with steepest descent; only the failure of that is believed
(Nash 1990, Compact Numerical Methods for Computers, 2nd edition). The objective's preconditioner is not used: these are
the methods as published.

Stops, with f the objective: `gradient` when the decrease predicted for steepest descent, g'g / 2, is under
tolerance f / 100; `tolerance` when the last WINDOW iterations together improved f by no more than tolerance f;
`line-search` when no better point is found along -g; `separable` when the objective says so; `max-iterations`.

Counts: an evaluation of the objective gives value and gradient at once; told are the evaluations of the value that the
method asks for, trial steps included, and of the gradient: one at the start and one after each iteration.

Directions of conjugate gradients by the formula of Polak & Ribiere, with restarts.

    d_k = -g_k + beta_k d_{k-1},    beta_k = g_k'(g_k - g_{k-1}) / g_{k-1}'g_{k-1}

Steepest descent again, d = -g, after P iterations, P the number of parameters, and wherever beta would be negative
(Nash 1990, Compact Numerical Methods for Computers, 2nd edition, algorithm 22; R's optim). The first trial step is 1
after a restart, else 1.7 times the last one, at most 1. Cost: a few vectors of P.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Protocol

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.line_search import Evaluate, Probe, Searched
from bncli.engine.optimizers.objective import Objective, Report, Step

WINDOW = 5
FLOOR = 1e-10
"""Values are compared with this share of the first one where they have fallen below it."""


class Guide(Protocol):
    """A descent method: where to go from a gradient, how far, and what to learn from the step made."""

    @property
    def fresh(self) -> bool:
        """Nothing is remembered: the direction is steepest descent."""
        ...

    def direction(self, gradient: Array) -> Array: ...

    def search(self, evaluate: Evaluate, start: Probe, direction: Array, slope: float) -> Searched:
        """Return a lower point along the direction, if there is one."""
        ...

    def learn(self, before: Probe, after: Probe) -> None: ...

    def forget(self) -> None: ...


STEP_GROWTH = 1.7


class Conjugate:
    """The memory of conjugate gradients: last direction, last gradient, and how long ago it was steepest descent."""

    def __init__(self) -> None:
        self._last: Array | None = None
        self._beta = 0.0
        self._cycle = 0
        self.first_step = 1.0

    @property
    def fresh(self) -> bool:
        return self._cycle == 0

    def direction(self, gradient: Array) -> Array:
        self._last = -gradient if self._last is None or self.fresh else self._beta * self._last - gradient
        return self._last

    def stepped(self, step: float) -> None:
        """Record the accepted `step`; the next search begins near it."""
        self.first_step = min(1.0, STEP_GROWTH * step)

    def learn(self, before: Probe, after: Probe) -> None:
        self._cycle += 1
        self._beta = float(after.gradient @ (after.gradient - before.gradient)) / float(
            before.gradient @ before.gradient
        )
        # a negative beta would turn back; after P steps no direction is left to be conjugate to
        if not self._beta > 0 or self._cycle >= after.point.size:
            self.forget()

    def forget(self) -> None:
        self._cycle, self.first_step = 0, 1.0


def descend(
    objective: Objective, start: Array, guide: Guide, *, tolerance: float, max_iterations: int, report: Report
) -> Optimum:
    """Return the minimiser that `guide` finds from `start`, shape (P,); every iteration lowers the objective."""
    here = Probe(start, *objective.value_and_gradient(start))
    values = deque([here.value], maxlen=WINDOW + 1)
    floor = FLOOR * abs(here.value)
    evaluations, iteration = 1, 0
    report(Step(0, here.value, _norm(here.gradient), 0.0, 1, 1), here.point)
    while True:
        direction = guide.direction(here.gradient)
        slope = float(direction @ here.gradient)
        enough = tolerance * max(abs(here.value), floor)
        worthwhile = -slope / 2 > 1e-2 * enough
        reason = _finished(objective, values, enough, guide.fresh and not worthwhile, iteration >= max_iterations)
        if reason is not None:
            break
        found, step, tries = None, 0.0, 0
        if worthwhile:
            found, step, tries = guide.search(objective.value_and_gradient, here, direction, slope)
        evaluations += tries
        if found is None:
            if guide.fresh:
                reason = StoppedBy.LINE_SEARCH
                break
            # the remembered direction led nowhere: once more, from steepest descent
            guide.forget()
            continue
        guide.learn(here, found)
        here, iteration = found, iteration + 1
        values.append(here.value)
        report(Step(iteration, here.value, _norm(here.gradient), step, evaluations, iteration + 1), here.point)
    return Optimum(here.point, here.value, _norm(here.gradient), iteration, evaluations, reason)


def _norm(vector: Array) -> float:
    return math.sqrt(float(vector @ vector))


def _finished(
    objective: Objective, values: deque[float], enough: float, hopeless: bool, capped: bool
) -> StoppedBy | None:
    """Return the reason to stop, if there is one; `enough` is the tolerance as a difference of values."""
    if objective.separable(values[-1]):
        return StoppedBy.SEPARABLE
    if hopeless:
        return StoppedBy.GRADIENT
    if len(values) > WINDOW and values[0] - values[-1] <= enough:
        return StoppedBy.TOLERANCE
    return StoppedBy.MAX_ITERATIONS if capped else None
