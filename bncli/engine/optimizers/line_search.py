"""A step along a descent direction that satisfies the strong Wolfe conditions.

With phi(a) = f(x + a d), a step a is accepted when

    phi(a) <= phi(0) + 1e-4 a phi'(0)   and   |phi'(a)| <= 0.9 |phi'(0)|

Bracketing and cubic interpolation after Nocedal & Wright 2006, Numerical Optimization, algorithms 3.5 and 3.6.
Conventions: first step 1; a bracket grows threefold; the cubic's minimiser is kept off the bracket's ends by a tenth
of its length; after MAX_TRIES evaluations the best point with sufficient decrease is taken, if there is one. Near the
optimum, where values differ by rounding only, a smaller slope alone is accepted (after Hager & Zhang 2005).

The first point along a descent direction that is low enough: backtracking, and a parabola for who wants more.

With phi(a) = f(x + a d), the steps a, a/5, a/25, ... are tried until

    phi(a) <= phi(0) + 1e-4 a phi'(0)

(Nash 1990, Compact Numerical Methods for Computers, 2nd edition, algorithms 21 and 22; R's optim). A step so short that
it changes no coordinate, 10 + x_q + a d_q = 10 + x_q for all q in floating point, ends the search with nothing. phi(0),
phi'(0) and phi(a) make a parabola; its minimiser

    a* = - phi'(0) a^2 / (2 (phi(a) - phi(0) - a phi'(0)))

is taken instead where phi(a*) < phi(a), and tried only where the parabola opens upwards. (Later versions of R put
phi(a) in the place of phi(0) in this formula, which always halves the step; here it is Nash's.)

The minimum along a descent direction by values alone: a bracket, then Brent's method.

A bracket is three steps with the lowest value in the middle. Brent's method keeps it and tries the minimiser of the
parabola through the three best points where that lies inside and the steps shrink fast enough, else a golden section of
the longer part (Brent 1973, Algorithms for Minimization without Derivatives, chapter 5). It ends when the bracket is
within twice 2e-4 of the best step, relatively.

Conventions: the first trial step is the caller's. Where it is not lower than the start, it shrinks to the minimiser of
the parabola through both values and the slope, kept between a tenth and a half of it; where it is, it grows by the
golden ratio until the value rises. Infinite values are only high.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array

DECREASE = 1e-4
CURVATURE = 0.9
MAX_TRIES = 20
ROUNDING = 1e-13


@dataclass(frozen=True)
class Probe:
    """A point, with value and gradient there."""

    point: Array
    value: float
    gradient: Array


@dataclass(frozen=True)
class _Trial:
    step: float
    value: float
    slope: float
    probe: Probe


SHRINK = 0.2
ACCEPTANCE = 1e-4
SAME = 10.0
Evaluate = Callable[[Array], tuple[float, Array]]
Searched = tuple[Probe | None, float, int]
"""The accepted point or None, its step, and the evaluations made."""
PRECISION = 2e-4
GOLDEN = (3 - math.sqrt(5)) / 2
GROWTH = 1 + (1 + math.sqrt(5)) / 2
"""The next step over the last but one bracket length: a, b, b + 1.618 (b - a)."""
MAX_BRACKET = 60
MAX_SECTIONS = 100
TINY = 1e-21


class TrialStep(NamedTuple):
    """A step and the value there."""

    step: float
    value: float


Line = Callable[[float], TrialStep]


class Bracket(NamedTuple):
    """left.step < middle.step < right.step, and no end is lower than the middle."""

    left: TrialStep
    middle: TrialStep
    right: TrialStep


def search(
    value_and_gradient: Callable[[Array], tuple[float, Array]], start: Probe, direction: Array, slope: float
) -> tuple[Probe | None, float, int]:
    """Return (accepted point or None, its step, evaluations made).

    `slope` = direction' gradient at the start, negative.
    """
    low = _Trial(0.0, start.value, slope, start)
    high: _Trial | None = None
    # near the optimum values differ by rounding alone, and a decrease could never be shown
    slack = ROUNDING * abs(start.value)
    step = 1.0
    for tries in range(1, MAX_TRIES + 1):
        trial = _try(value_and_gradient, start, direction, step)
        enough = trial.value <= start.value + DECREASE * step * slope + slack
        if enough and abs(trial.slope) <= CURVATURE * abs(slope):
            return trial.probe, step, tries
        if not enough or trial.value > low.value + slack:
            high = trial
        else:
            beyond = trial.slope >= 0 if high is None else trial.slope * (high.step - low.step) >= 0
            if beyond:
                high = low
            low = trial
        step = 3.0 * step if high is None else _interpolate(low, high)
    return (low.probe, low.step, MAX_TRIES) if low.step > 0 else (None, 0.0, MAX_TRIES)


def _try(
    value_and_gradient: Callable[[Array], tuple[float, Array]], start: Probe, direction: Array, step: float
) -> _Trial:
    point = start.point + step * direction
    value, gradient = value_and_gradient(point)
    slope = float(direction @ gradient)
    if not (math.isfinite(value) and math.isfinite(slope)):
        # beyond what numbers hold: a wall, from which the bracket closes
        value, slope = math.inf, 0.0
    return _Trial(step, value, slope, Probe(point, value, gradient))


def _interpolate(low: _Trial, high: _Trial) -> float:
    """Minimiser of the cubic through values and slopes at both ends, kept inside the bracket; else the middle."""
    width = high.step - low.step
    middle = low.step + width / 2
    if not math.isfinite(high.value):
        # no cubic passes through an infinite value; most of the bracket may lie behind the wall
        return low.step + width / 10
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
    margin = abs(width) / 10
    # a step next to an end would leave the bracket as wide as it was
    lowest, highest = min(low.step, high.step) + margin, max(low.step, high.step) - margin
    return min(max(step, lowest), highest)


def acceptable_point(evaluate: Evaluate, start: Probe, direction: Array, slope: float, step: float = 1.0) -> Searched:
    """Backtracks from `step`; `slope` = direction' gradient at the start, negative."""
    tries = 0
    while step > 0:
        point = start.point + step * direction
        # SAME sets the scale: a change below the last digit of 10 + x is none, also where x is near 0
        if np.array_equal(SAME + point, SAME + start.point):
            return None, 0.0, tries
        tries += 1
        value, gradient = evaluate(point)
        if math.isfinite(value) and value <= start.value + ACCEPTANCE * step * slope:
            return Probe(point, value, gradient), step, tries
        step *= SHRINK
    return None, 0.0, tries


def with_parabola(
    evaluate: Evaluate, start: Probe, direction: Array, slope: float, found: Probe, step: float
) -> tuple[Probe, float, int]:
    """Return the lower of `found`, at `step`, and the parabola's minimiser; its step; evaluations made (0 or 1)."""
    bend = 2 * (found.value - start.value - slope * step)
    # the parabola opens downwards and has no minimum
    if bend <= 0:
        return found, step, 0
    longer = -slope * step * step / bend
    point = start.point + longer * direction
    value, gradient = evaluate(point)
    return (Probe(point, value, gradient), longer, 1) if value < found.value else (found, step, 1)


def line_minimum(evaluate: Evaluate, start: Probe, direction: Array, slope: float, step: float = 1.0) -> Searched:
    """Return the lowest point along the direction, found from the first trial `step`.

    `slope` at the start is negative.
    """
    tries = 0
    lowest, length = start, 0.0

    def line(step: float) -> TrialStep:
        nonlocal tries, lowest, length
        tries += 1
        point = start.point + step * direction
        value, gradient = evaluate(point)
        if value < lowest.value:
            lowest, length = Probe(point, value, gradient), step
        return TrialStep(step, value if math.isfinite(value) else math.inf)

    around = bracket(line, start.value, slope, step)
    if around is not None:
        brent(line, around)
    return (lowest if length > 0 else None), length, tries


def bracket(line: Line, value: float, slope: float, step: float) -> Bracket | None:
    """Return three steps around a minimum; None if no step is lower than 0, or if the values never stop to fall."""
    zero, trial = TrialStep(0.0, value), line(step)
    if trial.value < value:
        return _extrapolated(line, zero, trial)
    for _ in range(MAX_BRACKET):
        bend = 2 * (trial.value - value - slope * trial.step)
        # an infinite value makes no parabola: the step shrinks by as much as is allowed
        wanted = -slope * trial.step**2 / bend if 0 < bend < math.inf else 0.0
        shorter = line(min(max(wanted, 0.1 * trial.step), 0.5 * trial.step))
        if shorter.value < value:
            return Bracket(zero, shorter, trial)
        trial = shorter
    return None


def _extrapolated(line: Line, left: TrialStep, middle: TrialStep) -> Bracket | None:
    for _ in range(MAX_BRACKET):
        right = line(left.step + GROWTH * (middle.step - left.step))
        if right.value >= middle.value:
            return Bracket(left, middle, right)
        left, middle = middle, right
    return None


def brent(line: Line, around: Bracket) -> TrialStep:
    """Return the lowest trial in the bracket."""
    low, high = around.left.step, around.right.step
    best = second = third = around.middle
    last = before = 0.0
    for _ in range(MAX_SECTIONS):
        centre, fine = (low + high) / 2, PRECISION * abs(best.step) + TINY
        if abs(best.step - centre) <= 2 * fine - (high - low) / 2:
            break
        move = _parabola(best, second, third)
        if abs(move) < abs(before) / 2 and low < best.step + move < high:
            before, last = last, move
            if min(best.step + move - low, high - best.step - move) < 2 * fine:
                # a trial next to an end would tell nothing new
                last = math.copysign(fine, centre - best.step)
        else:
            before = (low if best.step >= centre else high) - best.step
            last = GOLDEN * before
        # no closer than the precision: values there differ by rounding
        trial = line(best.step + (last if abs(last) >= fine else math.copysign(fine, last)))
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


def _parabola(best: TrialStep, second: TrialStep, third: TrialStep) -> float:
    """From the best step to the minimiser of the parabola through three trials; infinite where there is none."""
    a, b = second.step - best.step, third.step - best.step
    if a == 0 or b == 0 or a == b or not math.isfinite(second.value + third.value):
        return math.inf
    rise_a, rise_b = (second.value - best.value) / a, (third.value - best.value) / b
    bend = (rise_a - rise_b) / (a - b)
    return (bend * a - rise_a) / (2 * bend) if bend > 0 else math.inf
