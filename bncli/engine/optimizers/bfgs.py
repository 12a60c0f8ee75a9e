"""BFGS with the whole inverse Hessian (Nash 1990, Compact Numerical Methods for Computers, 2nd edition, algorithm 21).

From B = I, after every step s = x_{k+1} - x_k with change of gradient y = g_{k+1} - g_k and s'y > 0,

    B += [ (1 + y'By / s'y) s s' - By s' - s (By)' ] / s'y,    direction d = -B g

and along d the first acceptable point by backtracking from 1 (see `bncli.engine.optimizers.line_search`). B is the
identity again when the direction is not downhill, no point is acceptable, s'y <= 0, or 2P iterations have passed (R's
optim). This is the BFGS of Feelders & Ivanovs 2006. Cost: P^2 numbers of memory, about 12 P^2 flops an iteration.

Conventions: problems whose matrix would take more than MAX_BYTES are refused; the stopping rules are those that all
methods share (see `bncli.engine.optimizers.descent_loop`).
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum
from bncli.engine.optimizers.descent_loop import descend
from bncli.engine.optimizers.line_search import Evaluate, Probe, Searched, acceptable_point
from bncli.engine.optimizers.objective import Objective, Report
from bncli.errors import BncliError

MAX_BYTES = 2_000_000_000
BLOCK = 1 << 17
"""Numbers of the matrix that are updated at a time, so that temporaries stay in the cache."""


def minimise(objective: Objective, start: Array, *, tolerance: float, max_iterations: int, report: Report) -> Optimum:
    """Return the minimiser found from `start`, shape (P,); deterministic. BncliError where P^2 numbers are too many."""
    n_bytes = 8 * start.size**2
    if n_bytes > MAX_BYTES:
        raise BncliError(
            f"--optimizer bfgs would need {n_bytes / 1e9:,.1f} GB for the square matrix of {start.size:,} parameters",
            hint="--optimizer lbfgs needs a few vectors only",
        )
    return descend(objective, start, _Guide(), tolerance=tolerance, max_iterations=max_iterations, report=report)


class _Guide:
    """The inverse Hessian so far; None for the identity."""

    def __init__(self) -> None:
        self._inverse: Array | None = None
        self._updates = 0

    @property
    def fresh(self) -> bool:
        return self._inverse is None

    def direction(self, gradient: Array) -> Array:
        return -gradient if self._inverse is None else -(self._inverse @ gradient)

    def search(self, evaluate: Evaluate, start: Probe, direction: Array, slope: float) -> Searched:
        return acceptable_point(evaluate, start, direction, slope)

    def learn(self, before: Probe, after: Probe) -> None:
        s, y = after.point - before.point, after.gradient - before.gradient
        curvature = float(s @ y)
        # s'y <= 0 would cost B its positive definiteness
        if not curvature > 0 or self._updates >= 2 * s.size:
            self.forget()
            return
        if self._inverse is None:
            self._inverse = np.eye(s.size)
        _update(self._inverse, s, self._inverse @ y, y, curvature)
        self._updates += 1

    def forget(self) -> None:
        self._inverse, self._updates = None, 0


def _update(inverse: Array, s: Array, by: Array, y: Array, curvature: float) -> None:
    """Add s h' + h s' to the inverse, h = [(1 + y'By / s'y) s / 2 - By] / s'y, symmetric to the bit."""
    h = ((1.0 + float(y @ by) / curvature) / 2 * s - by) / curvature
    n_rows = max(1, BLOCK // s.size)
    for first in range(0, s.size, n_rows):
        rows = slice(first, first + n_rows)
        inverse[rows] += np.outer(s[rows], h) + np.outer(h[rows], s)
