"""The first point along a descent direction that is low enough: backtracking, and a parabola for who wants more.

With phi(a) = f(x + a d), the steps a, a/5, a/25, ... are tried until

    phi(a) <= phi(0) + 1e-4 a phi'(0)

(Nash 1990, Compact Numerical Methods for Computers, 2nd edition, algorithms 21 and 22; R's optim). A step so short that
it changes no coordinate, 10 + x_q + a d_q = 10 + x_q for all q in floating point, ends the search with nothing.
phi(0), phi'(0) and phi(a) make a parabola; its minimiser

    a* = - phi'(0) a^2 / (2 (phi(a) - phi(0) - a phi'(0)))

is taken instead where phi(a*) < phi(a), and tried only where the parabola opens upwards. (Later versions of R put
phi(a) in the place of phi(0) in this formula, which always halves the step; here it is Nash's.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.optimizers.line_search import Probe

SHRINK = 0.2
ACCEPTANCE = 1e-4
SAME = 10.0

Evaluate = Callable[[Array], tuple[float, Array]]
Searched = tuple[Probe | None, float, int]
"""The accepted point or None, its step, and the evaluations made."""


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
    """The lower of `found`, at `step`, and the parabola's minimiser; its step; evaluations made (0 or 1)."""
    bend = 2 * (found.value - start.value - slope * step)
    # the parabola opens downwards and has no minimum
    if bend <= 0:
        return found, step, 0
    longer = -slope * step * step / bend
    point = start.point + longer * direction
    value, gradient = evaluate(point)
    return (Probe(point, value, gradient), longer, 1) if value < found.value else (found, step, 1)
