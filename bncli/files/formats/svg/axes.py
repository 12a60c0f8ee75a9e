"""Axes with round numbers: linear, or logarithmic where the values span enough."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_LOG_SPAN = 4.0
INSIDE = 0.05
"""How far points keep away from the frame, as a share of its side."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, linear or logarithmic, with the numbers told along it."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Where a value lies between the ends of the axis, 0 to 1."""
        low, high = self._bent(self.low), self._bent(self.high)
        return INSIDE + (1 - 2 * INSIDE) * (self._bent(value) - low) / (high - low)

    def _bent(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value


def axis_of(values: Sequence[float], logarithmic: bool | None = None) -> Axis:
    """An axis from the least to the largest of the values; None: logarithmic where they span enough."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if logarithmic and high <= _LOG_SPAN * low:
        middle = math.sqrt(low * high)
        low, high = middle / _LOG_SPAN, middle * _LOG_SPAN
    if logarithmic is not False and low > 0 and high > _LOG_SPAN * low:
        return Axis(low, high, True, _log_ticks(low, high))
    if high - low <= max(1e-9 * max(abs(low), abs(high)), sys.float_info.min):
        low, high = low - 0.1 * abs(low) - 1e-3, high + 0.1 * abs(high) + 1e-3
    return Axis(low, high, False, _even_ticks(low, high))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten, with 2 and 5 times them where the axis is short; at most about five."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**decade for decade in decades for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= 5:
            break
    return tuple(ticks[:: math.ceil(len(ticks) / 5)] if ticks else (low, high))


def _even_ticks(low: float, high: float) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten; three to five of them."""
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * power) <= 5)
    return tuple(step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1))
