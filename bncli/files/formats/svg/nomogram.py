"""A nomogram: points for every value, read off by hand, and a probability for their sum (Lubsen et al. 1978)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.formats.svg.axes import axis_of
from bncli.files.formats.svg.drawing import Drawing, shortened, text_width

WIDTH, _NAMES, _RIGHT = 760.0, 150.0, 24.0
_ROW = 38.0
_THOUSANDTHS = (1, 3, 10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 980, 990, 997, 999)
"""Probabilities that are told; sums of points are drawn as far as these go."""


@dataclass(frozen=True)
class Scale:
    """An attribute: the name and the log-odds, or points, of each value."""

    name: str
    values: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Points:
    """Scales in points, the largest sum of them, and (probability, sum of points), the sums outside 0 to it too."""

    scales: Sequence[Scale]
    total: float
    sums: Sequence[tuple[float, float]]


def points_of(scales: Sequence[Scale], base: float) -> Points:
    """Log-odds as points: 100 are the widest range of an attribute; `base` are those that belong to no attribute."""
    lows = [min(value for _, value in one.values) for one in scales]
    ranges = [max(value for _, value in one.values) - low for one, low in zip(scales, lows, strict=True)]
    unit = 100 / max(ranges)
    pointed = [
        Scale(one.name, [(name, unit * (value - low)) for name, value in one.values])
        for one, low in zip(scales, lows, strict=True)
    ]
    shares = [thousandths / 1000 for thousandths in _THOUSANDTHS]
    sums = [(p, unit * (math.log(p / (1 - p)) - base - sum(lows))) for p in shares]
    return Points(pointed, unit * sum(ranges), sums)


def nomogram(title: str, points: Points, label: str) -> Drawing:
    """A line an attribute, under the points; the sum, and the probability of the label under it."""
    n, room = len(points.scales), WIDTH - _NAMES - _RIGHT
    drawing = Drawing(WIDTH, _ROW * (n + 3) + 16, title)
    _draw_scale(drawing, 0, "points", [(f"{p}", room * p / 100) for p in range(0, 101, 10)])
    for row, one in enumerate(points.scales, 1):
        _draw_scale(drawing, row, one.name, [(name, room * at / 100) for name, at in one.values])
    low, high = _told_sums(points.sums[0][1], points.sums[-1][1], points.total)
    ticks = [(f"{tick + 0.0:.4g}", tick) for tick in axis_of([low, high], logarithmic=False).ticks]
    odds = [(f"{p:g}", sum_) for p, sum_ in points.sums]
    for row, name, told in ((n + 1, "sum of points", ticks), (n + 2, f"P({label})", odds)):
        places = [(words, room * (at - low) / (high - low)) for words, at in told if low <= at <= high]
        _draw_scale(drawing, row, name, places)
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
