"""Searches along a descent direction: strong Wolfe conditions, backtracking, and Brent's exact minimum.

All of them consider phi(a) = f(x + a d) for steps a > 0, where phi'(0) < 0.

`wolfe_search` accepts a step a when

    phi(a) <= phi(0) + 1e-4 a phi'(0)   and   |phi'(a)| <= 0.9 |phi'(0)|

It brackets such a step and interpolates with cubics (Nocedal & Wright 2006, Numerical Optimization, algorithms 3.5 and
3.6). Conventions: the first step is 1; the step grows threefold until a minimum is bracketed; the minimiser of the
cubic is kept at least a tenth of the bracket's length away from both ends; after MAX_TRIES evaluations the best point
with sufficient decrease is taken, if there is one. Near the optimum, where values differ only by rounding, a smaller
slope alone is enough (after Hager & Zhang 2005).

`backtracking_search` tries the steps a, a/5, a/25, ... until phi(a) <= phi(0) + 1e-4 a phi'(0) (Nash 1990, Compact
Numerical Methods for Computers, 2nd edition, algorithms 21 and 22; R's optim). The search fails when a step is so short
that it changes no coordinate: 10 + x_q + a d_q = 10 + x_q for all q in floating point. `parabola_step` then tries the
minimiser of the parabola through phi(0), phi'(0) and phi(a),

    a* = - phi'(0) a^2 / (2 (phi(a) - phi(0) - a phi'(0)))

if the parabola opens upwards, and takes it if phi(a*) < phi(a). (Later versions of R have phi(a) in place of phi(0) in
this formula, which always halves the step; this is Nash's formula.)

`brent_search` finds the minimum by values alone. It first looks for a bracket: three steps with the lowest value in the
middle. Brent's method then tries the minimiser of the parabola through the three best points if that lies inside the
bracket and the steps shrink fast enough; otherwise it tries a golden section of the longer part (Brent 1973, Algorithms
for Minimization without Derivatives, chapter 5). It ends when both ends of the bracket are within a relative distance
of 4e-4 of the best step. Conventions: the caller chooses the first trial step. If its value is not below phi(0), the
step shrinks to the minimiser of the parabola through both values and the slope, kept between a tenth and a half of the
step; otherwise it grows by the golden ratio until the value no longer falls. Infinite values count as high values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.optimizers.objective import Evaluate, Evaluation

DECREASE, CURVATURE = 1e-4, 0.9
"""The constants of the strong Wolfe conditions; backtracking uses DECREASE too."""
MAX_TRIES = 20
ROUNDING = 1e-13
SHRINK = 0.2
SAME = 10.0
PRECISION = 2e-4
GOLDEN = (3 - math.sqrt(5)) / 2
GROWTH = 1 + (1 + math.sqrt(5)) / 2
"""The growth of a bracket: after the steps a and b, the next one is b + 1.618 (b - a)."""
MAX_BRACKET = 60
MAX_SECTIONS = 100
TINY = 1e-21

SearchResult = tuple[Evaluation | None, float, int]
"""The accepted point and its step, or None and 0 if no point was accepted; then the number of evaluations made."""


class _SlopedStep(NamedTuple):
    """A step of `wolfe_search`, with the value, slope and evaluation there."""

    step: float
    value: float
    slope: float
    evaluation: Evaluation


class TrialStep(NamedTuple):
    """The length of a step along a line, and the value of the objective there."""

    step: float
    value: float


Line = Callable[[float], TrialStep]


class Bracket(NamedTuple):
    """Three steps, left.step < middle.step < right.step, such that neither end has a lower value than the middle."""

    left: TrialStep
    middle: TrialStep
    right: TrialStep


def wolfe_search(evaluate: Evaluate, start: Evaluation, direction: Array, slope: float) -> SearchResult:
    """Search for a point that satisfies the strong Wolfe conditions; `slope` < 0 is phi'(0).

    After MAX_TRIES evaluations, return the best point with sufficient decrease, if there is one.
    """
    low = _SlopedStep(0.0, start.value, slope, start)
    high: _SlopedStep | None = None
    # near the optimum values differ by rounding alone, and a decrease could never be shown
    slack = ROUNDING * abs(start.value)
    step = 1.0
    for tries in range(1, MAX_TRIES + 1):
        point = start.point + step * direction
        value, gradient = evaluate(point)
        trial = _SlopedStep(step, value, float(direction @ gradient), Evaluation(point, value, gradient))
        if not (math.isfinite(value) and math.isfinite(trial.slope)):
            # an overflow counts as a wall: the bracket ends before it
            trial = trial._replace(value=math.inf, slope=0.0)
        decreases = trial.value <= start.value + DECREASE * step * slope + slack
        if decreases and abs(trial.slope) <= CURVATURE * abs(slope):
            return trial.evaluation, step, tries
        # a minimum lies between low and the trial
        if not decreases or trial.value > low.value + slack:
            high = trial
        else:
            # values rise from the trial towards high: the minimum is back towards low
            if trial.slope >= 0 if high is None else trial.slope * (high.step - low.step) >= 0:
                high = low
            low = trial
        step = 3.0 * step if high is None else _interpolate(low, high)
    return (low.evaluation, low.step, MAX_TRIES) if low.step > 0 else (None, 0.0, MAX_TRIES)


def _interpolate(low: _SlopedStep, high: _SlopedStep) -> float:
    """Return the minimiser of the cubic, kept inside the bracket, or the middle if the cubic has none.

    The cubic has the values and slopes at `low` and `high`. If the value at `high` is infinite, return the step a tenth
    of the way from `low` to `high`.
    """
    width = high.step - low.step
    middle = low.step + width / 2
    if not math.isfinite(high.value):
        # no cubic passes through an infinite value, and most of the bracket may lie behind the wall
        return low.step + width / 10
    # equation 3.59 of Nocedal & Wright
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / width
    discriminant = d1 * d1 - low.slope * high.slope
    # the cubic has no minimum
    if discriminant < 0:
        return middle
    d2 = math.copysign(math.sqrt(discriminant), width)
    denominator = high.slope - low.slope + 2 * d2
    if denominator == 0:
        return middle
    step = high.step - width * (high.slope + d2 - d1) / denominator
    # a step next to an end would hardly narrow the bracket
    margin = abs(width) / 10
    lowest, highest = min(low.step, high.step) + margin, max(low.step, high.step) - margin
    return min(max(step, lowest), highest)


def backtracking_search(
    evaluate: Evaluate, start: Evaluation, direction: Array, slope: float, step: float = 1.0
) -> SearchResult:
    """Backtrack from `step` to the first point with sufficient decrease, if there is one; `slope` < 0 is phi'(0)."""
    tries = 0
    while step > 0:
        point = start.point + step * direction
        # SAME sets the scale: a change below the last digit of 10 + x is no change, even where x is near 0
        if np.array_equal(SAME + point, SAME + start.point):
            return None, 0.0, tries
        tries += 1
        value, gradient = evaluate(point)
        if math.isfinite(value) and value <= start.value + DECREASE * step * slope:
            return Evaluation(point, value, gradient), step, tries
        step *= SHRINK
    return None, 0.0, tries


def parabola_step(
    evaluate: Evaluate, start: Evaluation, direction: Array, slope: float, accepted: Evaluation, step: float
) -> tuple[Evaluation, float, int]:
    """Try the minimiser of the parabola; return the better of it and `accepted`, and its step.

    The last item returned is the number of evaluations made, 0 or 1.
    """
    bend = 2 * (accepted.value - start.value - slope * step)
    # the parabola opens downwards and has no minimum
    if bend <= 0:
        return accepted, step, 0
    # of phi(0) + phi'(0) a + bend / 2 (a / step)^2
    minimiser = -slope * step * step / bend
    point = start.point + minimiser * direction
    value, gradient = evaluate(point)
    return (Evaluation(point, value, gradient), minimiser, 1) if value < accepted.value else (accepted, step, 1)


def brent_search(
    evaluate: Evaluate, start: Evaluation, direction: Array, slope: float, step: float = 1.0
) -> SearchResult:
    """Return the lowest point found by Brent's method, if it is below the start; `slope` < 0 is phi'(0).

    The step `step` is tried first.
    """
    tries = 0
    lowest, length = start, 0.0

    def line(step: float) -> TrialStep:
        nonlocal tries, lowest, length
        tries += 1
        point = start.point + step * direction
        value, gradient = evaluate(point)
        if value < lowest.value:
            lowest, length = Evaluation(point, value, gradient), step
        return TrialStep(step, value if math.isfinite(value) else math.inf)

    bracket = find_bracket(line, start.value, slope, step)
    if bracket is not None:
        brent_minimum(line, bracket)
    return (lowest if length > 0 else None), length, tries


def find_bracket(line: Line, value: float, slope: float, step: float) -> Bracket | None:
    """Return three steps around a minimum, or None if no value is below `value` or values fall until the last trial.

    `value` and `slope` are phi(0) and phi'(0), and `step` is the first trial; at most MAX_BRACKET trials follow it.
    """
    left, middle = TrialStep(0.0, value), line(step)
    if middle.value < value:
        for _ in range(MAX_BRACKET):
            # values fall: step further while they do
            right = line(left.step + GROWTH * (middle.step - left.step))
            if right.value >= middle.value:
                return Bracket(left, middle, right)
            left, middle = middle, right
        return None
    # no lower value yet: the minimum lies before the step, which shrinks until one is found
    right = middle
    for _ in range(MAX_BRACKET):
        bend = 2 * (right.value - value - slope * right.step)
        # no parabola passes through an infinite value; the step then shrinks as far as it may
        minimiser = -slope * right.step**2 / bend if 0 < bend < math.inf else 0.0
        middle = line(min(max(minimiser, 0.1 * right.step), 0.5 * right.step))
        if middle.value < value:
            return Bracket(left, middle, right)
        right = middle
    return None


def brent_minimum(line: Line, bracket: Bracket) -> TrialStep:
    """Return the trial with the lowest value that Brent's method finds inside the bracket."""
    low, high = bracket.left.step, bracket.right.step
    best = second = third = bracket.middle
    last = before = 0.0
    for _ in range(MAX_SECTIONS):
        centre, precision = (low + high) / 2, PRECISION * abs(best.step) + TINY
        if abs(best.step - centre) <= 2 * precision - (high - low) / 2:
            break
        move = _parabola_move(best, second, third)
        # the parabola's minimiser must lie in the bracket, and move less than half as far as the move before last
        if abs(move) < abs(before) / 2 and low < best.step + move < high:
            before, last = last, move
            if min(best.step + move - low, high - best.step - move) < 2 * precision:
                # a trial next to an end would add no information
                last = math.copysign(precision, centre - best.step)
        else:
            # golden section of the longer part
            before = (low if best.step >= centre else high) - best.step
            last = GOLDEN * before
        # at a distance below the precision, values differ by rounding
        trial = line(best.step + (last if abs(last) >= precision else math.copysign(precision, last)))
        if trial.value <= best.value:
            low, high = (best.step, high) if trial.step >= best.step else (low, best.step)
            best, second, third = trial, best, second
            continue
        low, high = (trial.step, high) if trial.step < best.step else (low, trial.step)
        if trial.value <= second.value or second == best:
            second, third = trial, second
        elif trial.value <= third.value or third in (best, second):
            third = trial
    return best


def _parabola_move(best: TrialStep, second: TrialStep, third: TrialStep) -> float:
    """Return the move from the best step to the minimum of the parabola through three trials, or inf if none exists."""
    a, b = second.step - best.step, third.step - best.step
    if a == 0 or b == 0 or a == b or not math.isfinite(second.value + third.value):
        return math.inf
    rise_a, rise_b = (second.value - best.value) / a, (third.value - best.value) / b
    bend = (rise_a - rise_b) / (a - b)
    return (bend * a - rise_a) / (2 * bend) if bend > 0 else math.inf
