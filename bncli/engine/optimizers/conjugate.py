"""Directions of conjugate gradients by the formula of Polak & Ribiere, with restarts.

    d_k = -g_k + beta_k d_{k-1},    beta_k = g_k'(g_k - g_{k-1}) / g_{k-1}'g_{k-1}

Steepest descent again, d = -g, after P iterations, P the number of parameters, and wherever beta would be negative
(Nash 1990, Compact Numerical Methods for Computers, 2nd edition, algorithm 22; R's optim). The first trial step is 1
after a restart, else 1.7 times the last one, at most 1. Cost: a few vectors of P.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.optimizers.line_search import Probe

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
        """The search took `step`: the next begins near it."""
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
