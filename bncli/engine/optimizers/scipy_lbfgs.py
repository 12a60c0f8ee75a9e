"""Limited-memory BFGS as published: scipy's L-BFGS-B without bounds, followed from iteration to iteration.

The directions are -Hg, H built from the last PAIRS pairs of steps s and changes of gradient y on top of

    H_0 = gamma I,    gamma = s'y / y'y of the last pair  (1 before the first)

(Byrd, Lu, Nocedal & Zhu 1995, SIAM Journal on Scientific Computing 16). Along each the search of More & Thuente 1994
(ACM Transactions on Mathematical Software 20) finds a point that satisfies the strong Wolfe conditions with constants
1e-3 and 0.9; it tries 1 / |g| first in the first iteration, then 1.

Conventions: reasons to stop are the caller's, who is asked about every direction before a point along it is evaluated;
scipy ends by itself only where no gradient is left or no lower point is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scipy.optimize import minimize

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import StoppedBy
from bncli.engine.optimizers.line_search import Evaluate, Probe

PAIRS = 10
"""scipy's own default; the Fortran driver of the authors has 5."""
UNLIMITED = 10**9

GoesOn = Callable[[Array], bool]
"""Whether to go on along a direction."""
Arrived = Callable[[Probe, float], None]
"""Hears of the point after every iteration, and of its step."""


def descend(start: Probe, evaluate: Evaluate, goes_on: GoesOn, arrived: Arrived) -> StoppedBy | None:
    """Return why scipy ended; None where `goes_on` did not."""
    way = _Way(start, evaluate, goes_on, arrived)
    options: Any = {"maxcor": PAIRS, "ftol": 0.0, "gtol": 0.0, "maxiter": UNLIMITED, "maxfun": UNLIMITED}
    try:
        result = minimize(
            way.value_and_gradient, start.point, jac=True, method="L-BFGS-B", callback=way.arrive, options=options
        )
    except _EndedError:
        return None
    except _NotLowerError:
        return StoppedBy.LINE_SEARCH
    # 0: there is no gradient left; else no acceptable point was found, along -g neither
    return StoppedBy.GRADIENT if result.status == 0 else StoppedBy.LINE_SEARCH


class _EndedError(Exception):
    """The caller has a reason to stop."""


class _NotLowerError(Exception):
    """scipy accepts a point that is no lower: rounding alone is left, or values are infinite beyond."""


class _Way:
    """Where scipy is: the last iteration's point, the direction from there, and the last point tried along it."""

    def __init__(self, start: Probe, evaluate: Evaluate, goes_on: GoesOn, arrived: Arrived) -> None:
        self.here = start
        self._evaluate, self._goes_on, self._arrived = evaluate, goes_on, arrived
        self._direction: Array | None = None
        self._tried: Probe | None = None

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        if self._tried is None:
            # the start, whose value is known; the first trial is not 1 but 1 / |g|
            self._tried = self.here
            self._turn(-self.here.gradient)
            return self.here.value, self.here.gradient
        if self._direction is None:
            self._turn(point - self.here.point)
        self._tried = Probe(point.copy(), *self._evaluate(point))
        return self._tried.value, self._tried.gradient

    def arrive(self, intermediate_result: Any) -> None:
        """Record the point that scipy accepted; scipy requires this parameter name."""
        assert self._tried is not None
        assert self._direction is not None
        found, direction, self._direction = self._tried, self._direction, None
        if not found.value < self.here.value:
            raise _NotLowerError
        step = _norm(found.point - self.here.point) / _norm(direction)
        self.here = found
        self._arrived(found, step)

    def _turn(self, direction: Array) -> None:
        if not self._goes_on(direction):
            raise _EndedError
        self._direction = direction


def _norm(vector: Array) -> float:
    return math.sqrt(float(vector @ vector))
