"""The limited memory of a quasi-Newton method: the last steps, and how the gradient changed along them.

The inverse Hessian is built from pairs s = x_{j+1} - x_j, y = g_{j+1} - g_j on top of a given guess Q, scaled:

    H_0 = gamma Q,    gamma = s'y / y'Qy of the last pair  (1 before the first)

by the two-loop recursion (Nocedal & Wright 2006, Numerical Optimization, algorithm 7.4).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.optimizers.objective import Precondition

HISTORY = 20


@dataclass(frozen=True)
class _Pair:
    s: Array
    y: Array
    rho: float


class Pairs:
    """The last HISTORY pairs."""

    def __init__(self) -> None:
        self._pairs: deque[_Pair] = deque(maxlen=HISTORY)

    def __len__(self) -> int:
        return len(self._pairs)

    def forget(self) -> None:
        self._pairs.clear()

    def remember(self, s: Array, y: Array) -> None:
        """Keep the pair unless its curvature is lost in rounding."""
        curvature = float(s @ y)
        if curvature > 1e-12 * float(np.sqrt((s @ s) * (y @ y))):
            self._pairs.append(_Pair(s, y, 1.0 / curvature))

    def inverse_hessian(self, precondition: Precondition, gradient: Array) -> Array:
        """H g, Q being `precondition`."""
        q = gradient.copy()
        alphas = []
        for pair in reversed(self._pairs):
            alphas.append(pair.rho * float(pair.s @ q))
            q -= alphas[-1] * pair.y
        r = precondition(q)
        if self._pairs:
            last = self._pairs[-1]
            r = r * (1.0 / (last.rho * float(last.y @ precondition(last.y))))
        for pair, alpha in zip(self._pairs, reversed(alphas), strict=True):
            r += (alpha - pair.rho * float(pair.y @ r)) * pair.s
        return r
