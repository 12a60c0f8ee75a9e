"""Fixed points x = g(x) in many unknowns that hardly influence each other, by secants (Wegstein 1958, Comm. ACM 1).

Plain repetition x <- g(x) creeps where the slope of g is near 1. From two points, the slope s of g is known, and where
g and its secant are the same, the fixed point is the step (g(x) - x) / (1 - s) away.

Decided here: each unknown has its own secant; one whose slope is not between 0 and 1 takes the plain step. A step is
at most MOST_TIMES the plain one, and at most LONGEST. Every other step is plain for all, as in Aitken's method: where
the unknowns do influence each other, secants through points that secants chose feed on each other's errors, until
rounding decides where the search goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array

MOST_TIMES = 30.0
LONGEST = 3.0


@dataclass(frozen=True)
class FixedPoint:
    """Where the search is: x; `pull` is g(x) - x at the point before, None at the start.

    `before` is that point if a plain step led from it to x; a secant through both is then due.
    """

    x: Array
    before: Array | None = None
    pull: Array | None = None

    @property
    def residual(self) -> float:
        """The largest |g(x) - x| when g was last known; infinite at the start."""
        return float("inf") if self.pull is None else float(np.abs(self.pull).max(initial=0.0))

    def stepped(self, g: Array) -> FixedPoint:
        """The next point, given g(x) at this one."""
        pull = g - self.x
        if self.before is None or self.pull is None:
            return FixedPoint(self.x + np.clip(pull, -LONGEST, LONGEST), self.x, pull)
        way, fall = self.x - self.before, self.pull - pull
        times = np.ones_like(pull)
        np.divide(way, fall, out=times, where=way * fall > 0)
        step = np.clip(times, 1.0, MOST_TIMES) * pull
        return FixedPoint(self.x + np.clip(step, -LONGEST, LONGEST), None, pull)
