"""Limited-memory BFGS with a fixed preconditioner (Liu & Nocedal 1989, Mathematical Programming 45).

The inverse Hessian of iteration k is built by the two-loop recursion from the last HISTORY pairs
s = x_{j+1} - x_j, y = g_{j+1} - g_j on top of

    H_0 = gamma Q,    gamma = s'y / y'Qy  (1 before the first pair)

with Q the objective's preconditioner. This is L-BFGS in variables whitened by a factor of Q, without ever
changing variables. The step along d = -H g is 1 or found by cubic interpolation, and satisfies the strong Wolfe
conditions with constants 1e-4 and 0.9.

The preconditioner is refreshed after iterations 10, 30, 90, 150, ...; the pairs are kept, they describe the same
function.

Stops, with f the objective: `gradient` when the decrease predicted, g'Hg / 2, is under tolerance f / 100 (a vanishing
gradient in the problem's own metric); `tolerance` when the last WINDOW iterations together improved f by no more than
tolerance f; `line-search` when no better point exists along -Qg either; `separable` when the objective says so;
`max-iterations`. The distance to the optimum is then of the order of tolerance f.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bncli.engine.line_search import Probe, search
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.objective import Objective, Precondition, Report, Step, Vector

HISTORY = 20
WINDOW = 5
FIRST_REFRESH = 10
SECOND_REFRESH = 30
REFRESH_EVERY = 60
"""Counted from the second."""
FLOOR = 1e-10
"""Values are compared with this share of the first one where they have fallen below it."""


def minimise(objective: Objective, start: Vector, *, tolerance: float, max_iterations: int, report: Report) -> Optimum:
    """The minimiser found from `start`, shape (P,); deterministic."""
    here = Probe(start, *objective.value_and_gradient(start))
    precondition = objective.precondition
    pairs: deque[_Pair] = deque(maxlen=HISTORY)
    values = deque([here.value], maxlen=WINDOW + 1)
    floor = FLOOR * abs(here.value)
    evaluations, iteration = 1, 0
    report(Step(0, here.value, _norm(here.gradient), 0.0, 1), here.point)
    while True:
        direction = -_inverse_hessian(precondition, pairs, here.gradient)
        slope = float(direction @ here.gradient)
        scale = max(abs(here.value), floor)
        reason = _finished(objective, here, slope, values, tolerance * scale, iteration >= max_iterations)
        if reason is not None:
            break
        found, step, tries = search(objective.value_and_gradient, here, direction, slope)
        evaluations += tries
        if found is None:
            if not pairs:
                reason = StoppedBy.LINE_SEARCH
                break
            pairs.clear()
            continue
        _remember(pairs, found.point - here.point, found.gradient - here.gradient)
        here, iteration = found, iteration + 1
        if _is_refreshed(iteration):
            precondition = objective.refreshed(here.point)
        values.append(here.value)
        report(Step(iteration, here.value, _norm(here.gradient), step, evaluations), here.point)
    return Optimum(here.point, here.value, _norm(here.gradient), iteration, evaluations, reason)


@dataclass(frozen=True)
class _Pair:
    s: Vector
    y: Vector
    rho: float


def _norm(vector: Vector) -> float:
    return float(np.sqrt(vector @ vector))


def _inverse_hessian(precondition: Precondition, pairs: deque[_Pair], gradient: Vector) -> Vector:
    """H g by the two-loop recursion."""
    q = gradient.copy()
    alphas = []
    for pair in reversed(pairs):
        alphas.append(pair.rho * float(pair.s @ q))
        q -= alphas[-1] * pair.y
    r = precondition(q)
    if pairs:
        last = pairs[-1]
        r = r * (1.0 / (last.rho * float(last.y @ precondition(last.y))))
    for pair, alpha in zip(pairs, reversed(alphas), strict=True):
        r += (alpha - pair.rho * float(pair.y @ r)) * pair.s
    return r


def _is_refreshed(iteration: int) -> bool:
    beyond = iteration - SECOND_REFRESH
    return iteration == FIRST_REFRESH or (beyond >= 0 and beyond % REFRESH_EVERY == 0)


def _finished(
    objective: Objective, here: Probe, slope: float, values: deque[float], enough: float, capped: bool
) -> StoppedBy | None:
    """The reason to stop, if there is one; `enough` is the tolerance as a difference of values."""
    if objective.separable(here.value):
        return StoppedBy.SEPARABLE
    if -slope / 2 <= 1e-2 * enough:
        return StoppedBy.GRADIENT
    if len(values) > WINDOW and values[0] - here.value <= enough:
        return StoppedBy.TOLERANCE
    return StoppedBy.MAX_ITERATIONS if capped else None


def _remember(pairs: deque[_Pair], s: Vector, y: Vector) -> None:
    """Keep the pair unless its curvature is lost in rounding."""
    curvature = float(s @ y)
    if curvature > 1e-12 * _norm(s) * _norm(y):
        pairs.append(_Pair(s, y, 1.0 / curvature))
