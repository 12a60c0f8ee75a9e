"""A step along a descent direction that satisfies the strong Wolfe conditions.

With phi(a) = f(x + a d), a step a is accepted when

    phi(a) <= phi(0) + 1e-4 a phi'(0)   and   |phi'(a)| <= 0.9 |phi'(0)|

Bracketing and cubic interpolation after Nocedal & Wright 2006, Numerical Optimization, algorithms 3.5 and 3.6.
Conventions: first step 1; a bracket grows threefold; the cubic's minimiser is kept off the bracket's ends by a tenth
of its length; after MAX_TRIES evaluations the best point with sufficient decrease is taken, if there is one. Near the
optimum, where values differ by rounding only, a smaller slope alone is accepted (after Hager & Zhang 2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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


def search(
    value_and_gradient: Callable[[Array], tuple[float, Array]], start: Probe, direction: Array, slope: float
) -> tuple[Probe | None, float, int]:
    """(accepted point or None, its step, evaluations made); `slope` = direction' gradient at the start, negative."""
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
