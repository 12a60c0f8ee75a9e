"""Comparative scatter plots: a panel a learner, a point a data set, the baseline's figure across and its own upwards.

All panels have the same axes, logarithmic where that is asked for, or all figures are positive and the largest is more
than four times the smallest. On the dashed diagonal both are equal; the corners count the data sets on either side of
it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.svg import Drawing, shortened

SIDE = 200.0
"""Pixels of the square of a panel."""
_LEFT, _ABOVE, _RIGHT, _BELOW = 62.0, 44.0, 18.0, 46.0
_HEAD = 34.0
_COLUMNS = 4
_LOG_SPAN = 4.0
_INSIDE = 0.05
"""How far points keep away from the frame, as a share of its side."""


@dataclass(frozen=True)
class Panel:
    """A learner: (data set, baseline's figure, its own) a point, and how often it is better, equal, worse."""

    name: str
    points: Sequence[tuple[str, float, float]]
    better: int
    equal: int
    worse: int


def scatter_plots(
    title: str, baseline: str, panels: Sequence[Panel], *, lower_is_better: bool, logarithmic: bool | None = None
) -> str:
    """The SVG text; where axes are to be `logarithmic`, all figures are positive."""
    columns = min(_COLUMNS, math.ceil(math.sqrt(len(panels))))
    wide, high = _LEFT + SIDE + _RIGHT, _ABOVE + SIDE + _BELOW
    drawing = Drawing(columns * wide, _HEAD + math.ceil(len(panels) / columns) * high, title)
    drawing.text(16, 24, shortened(title, columns * wide - 32))
    axis = axis_of([value for panel in panels for _, *pair in panel.points for value in pair], logarithmic)
    for i, panel in enumerate(panels):
        left, top = i % columns * wide + _LEFT, _HEAD + i // columns * high + _ABOVE
        _draw_frame(drawing, axis, left, top, panel.name, baseline)
        _draw_counts(drawing, left, top, panel, lower_is_better)
        for data, across, upwards in panel.points:
            tip = f"{data}: {upwards:.6g} ({baseline}: {across:.6g})"
            drawing.dot(left + SIDE * axis.share(across), top + SIDE * (1 - axis.share(upwards)), tip)
    return drawing.source()


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
        return _INSIDE + (1 - 2 * _INSIDE) * (self._bent(value) - low) / (high - low)

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


def _draw_frame(drawing: Drawing, axis: Axis, left: float, top: float, name: str, baseline: str) -> None:
    bottom, right = top + SIDE, left + SIDE
    drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    drawing.line("dashed", (left, bottom), (right, top))
    drawing.text(left, top - 10, shortened(name, SIDE + _RIGHT), tip=name)
    across = shortened(f"{baseline} →", SIDE)
    drawing.text(right, bottom + 34, across, anchor="end", size=11, tip=baseline)
    for tick in axis.ticks:
        share = axis.share(tick)
        x, y = left + SIDE * share, bottom - SIDE * share
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.line("faint", (left, y), (left - 4, y))
        drawing.text(x, bottom + 16, f"{tick + 0.0:.4g}", anchor="middle", size=10)
        drawing.text(left - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)


def _draw_counts(drawing: Drawing, left: float, top: float, panel: Panel, lower_is_better: bool) -> None:
    """Above the diagonal the learner's figure is the higher one."""
    below, above = f"better {panel.better}", f"worse {panel.worse}"
    if not lower_is_better:
        below, above = above, below
    drawing.text(left + 8, top + 16, above, size=11)
    drawing.text(left + SIDE - 8, top + SIDE - 9, below, anchor="end", size=11)
    if panel.equal:
        drawing.text(left + SIDE - 8, top + SIDE - 23, f"equal {panel.equal}", anchor="end", size=11)
