"""A nomogram: points for every value, read off by hand, and a probability for their sum (Lubsen et al. 1978)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.formats.svg.axes import axis_of
from bncli.files.formats.svg.drawing import Drawing, shortened, text_width

WIDTH, _NAMES, _RIGHT = 760.0, 150.0, 24.0
_ROW = 38.0
_PROBABILITIES = (
    0.001,
    0.003,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    0.95,
    0.98,
    0.99,
    0.997,
    0.999,
)
"""Sums of points are drawn as far as these go."""


@dataclass(frozen=True)
class Scale:
    """An attribute: the name and the log-odds of each value."""

    name: str
    values: Sequence[tuple[str, float]]


def nomogram(title: str, scales: Sequence[Scale], base: float, label: str) -> Drawing:
    """100 points are the widest range of an attribute; `base`: log-odds that belong to no attribute."""
    lows = [min(value for _, value in one.values) for one in scales]
    ranges = [max(value for _, value in one.values) - low for one, low in zip(scales, lows, strict=True)]
    unit = 100 / max(ranges)
    drawing = Drawing(WIDTH, _ROW * (len(scales) + 3) + 16, title)
    room = WIDTH - _NAMES - _RIGHT
    _draw_scale(drawing, 0, "points", [(f"{p}", room * p / 100) for p in range(0, 101, 10)])
    for row, (one, low) in enumerate(zip(scales, lows, strict=True), 1):
        places = [(name, room * unit * (value - low) / 100) for name, value in one.values]
        _draw_scale(drawing, row, one.name, places)
    points = [(p, unit * (math.log(p / (1 - p)) - base - sum(lows))) for p in _PROBABILITIES]
    low, high = _told_sums(points[0][1], points[-1][1], unit * sum(ranges))
    ticks = [(f"{tick + 0.0:.4g}", tick) for tick in axis_of([low, high], logarithmic=False).ticks]
    for row, name, told in ((1, "sum of points", ticks), (2, f"P({label})", [(f"{p:g}", sum_) for p, sum_ in points])):
        places = [(words, room * (at - low) / (high - low)) for words, at in told if low <= at <= high]
        _draw_scale(drawing, len(scales) + row, name, places)
    return drawing


def _told_sums(unlikely: float, likely: float, total: float) -> tuple[float, float]:
    """The least and the largest sum of points that is drawn, of 0 to `total`: those in between where P moves."""
    low, high = max(0.0, unlikely), min(total, likely)
    return (low, high) if low < high else (0.0, total)


def _draw_scale(drawing: Drawing, row: int, name: str, places: Sequence[tuple[str, float]]) -> None:
    """A line with its ticks; names stand over and under it in turn, as far as they have room."""
    y = _ROW * row + 26
    drawing.text(4, y + 4, shortened(name, _NAMES - 16, 12), size=12, tip=name)
    if not places:
        return
    ordered = sorted(places, key=lambda place: place[1])
    drawing.line("ink", (_NAMES + ordered[0][1], y), (_NAMES + ordered[-1][1], y))
    ends = [-math.inf, -math.inf]
    for told, x in ordered:
        at, words = _NAMES + x, shortened(told, 90, 9)
        half = text_width(words, 9) / 2
        side = 0 if ends[0] <= ends[1] else 1
        drawing.line("ink", (at, y - 4 + 4 * side), (at, y + 4 * side))
        if at - half > ends[side] + 2:
            drawing.text(at, y - 6 if side == 0 else y + 13, words, anchor="middle", size=9, tip=told)
            ends[side] = at + half
