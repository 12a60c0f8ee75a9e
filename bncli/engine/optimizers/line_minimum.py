"""The minimum along a descent direction by values alone: a bracket, then Brent's method.

A bracket is three steps with the lowest value in the middle. Brent's method keeps it and tries the minimiser of the
parabola through the three best points where that lies inside and the steps shrink fast enough, else a golden section
of the longer part (Brent 1973, Algorithms for Minimization without Derivatives, chapter 5). It ends when the bracket
is within twice 2e-4 of the best step, relatively.

Conventions: the first trial step is the caller's. Where it is not lower than the start, it shrinks to the minimiser of
the parabola through both values and the slope, kept between a tenth and a half of it; where it is, it grows by the
golden ratio until the value rises. Infinite values are only high.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from bncli.engine.kernels.arrays import Array
from bncli.engine.optimizers.acceptable_point import Evaluate, Searched
from bncli.engine.optimizers.line_search import Probe

PRECISION = 2e-4
GOLDEN = (3 - math.sqrt(5)) / 2
GROWTH = 1 + (1 + math.sqrt(5)) / 2
"""The next step over the last but one bracket length: a, b, b + 1.618 (b - a)."""
MAX_BRACKET = 60
MAX_SECTIONS = 100
TINY = 1e-21


class Trial(NamedTuple):
    """A step and the value there."""

    step: float
    value: float


Line = Callable[[float], Trial]


class Bracket(NamedTuple):
    """left.step < middle.step < right.step, and no end is lower than the middle."""

    left: Trial
    middle: Trial
    right: Trial


def line_minimum(evaluate: Evaluate, start: Probe, direction: Array, slope: float, step: float = 1.0) -> Searched:
    """The lowest point along the direction, found from the first trial `step`; `slope` at the start is negative."""
    tries = 0
    lowest, length = start, 0.0

    def line(step: float) -> Trial:
        nonlocal tries, lowest, length
        tries += 1
        point = start.point + step * direction
        value, gradient = evaluate(point)
        if value < lowest.value:
            lowest, length = Probe(point, value, gradient), step
        return Trial(step, value if math.isfinite(value) else math.inf)

    around = bracket(line, start.value, slope, step)
    if around is not None:
        brent(line, around)
    return (lowest if length > 0 else None), length, tries


def bracket(line: Line, value: float, slope: float, step: float) -> Bracket | None:
    """Three steps around a minimum; None if no step is lower than 0, or if the values never stop to fall."""
    zero, trial = Trial(0.0, value), line(step)
    if trial.value < value:
        return _grown(line, zero, trial)
    for _ in range(MAX_BRACKET):
        bend = 2 * (trial.value - value - slope * trial.step)
        # an infinite value makes no parabola: the step shrinks by as much as is allowed
        wanted = -slope * trial.step**2 / bend if 0 < bend < math.inf else 0.0
        shorter = line(min(max(wanted, 0.1 * trial.step), 0.5 * trial.step))
        if shorter.value < value:
            return Bracket(zero, shorter, trial)
        trial = shorter
    return None


def _grown(line: Line, left: Trial, middle: Trial) -> Bracket | None:
    for _ in range(MAX_BRACKET):
        right = line(left.step + GROWTH * (middle.step - left.step))
        if right.value >= middle.value:
            return Bracket(left, middle, right)
        left, middle = middle, right
    return None


def brent(line: Line, around: Bracket) -> Trial:
    """The lowest trial in the bracket."""
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


def _parabola(best: Trial, second: Trial, third: Trial) -> float:
    """From the best step to the minimiser of the parabola through three trials; infinite where there is none."""
    a, b = second.step - best.step, third.step - best.step
    if a == 0 or b == 0 or a == b or not math.isfinite(second.value + third.value):
        return math.inf
    rise_a, rise_b = (second.value - best.value) / a, (third.value - best.value) / b
    bend = (rise_a - rise_b) / (a - b)
    return (bend * a - rise_a) / (2 * bend) if bend > 0 else math.inf
