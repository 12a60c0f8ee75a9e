"""How fits converge: curves of what was minimised, a panel a table, and histograms of lags, a panel a name.

A panel of curves has axes of its own, logarithmic where what they show spans much: upwards as scatter plots are,
across where the largest effort is more than fifty times the least above 0, with the start at the left end. All
histograms of a sheet have the same axes; a bar stands over the lags it counts, and the dashed line over none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bncli.files.pictures.drawing import Axis, Drawing, axis_of, shortened, text_width

WIDE, HIGH = 300.0, 200.0
"""Pixels of the frame of a panel."""
_LEFT, _ABOVE, _RIGHT, _BELOW = 74.0, 44.0, 20.0, 46.0
_HEAD = 34.0
_COLUMNS = 3
_LOG_SPAN = 50.0
_SWATCH = 26.0
_LEGEND_ROW = 20.0
_MOST_BARS = 40


@dataclass(frozen=True)
class CurvesPanel:
    """A title and its curves by name: points (effort, value), efforts ascending."""

    title: str
    curves: Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class HistogramPanel:
    """A title, a remark beside it, and the lags to be counted."""

    title: str
    remark: str
    lags: Sequence[int]


@dataclass(frozen=True)
class _Frame:
    """Where the frame of a panel stands on the sheet, and its axes."""

    drawing: Drawing
    left: float
    top: float
    across: Axis
    upwards: Axis

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point; what a logarithmic axis does not reach, 0, stands at its end."""
        x = max(x, self.across.low)
        return self.left + WIDE * self.across.share(x), self.top + HIGH * (1 - self.upwards.share(y))

    def draw(self, title: str, remark: str, across: str, upwards: str) -> None:
        drawing, left, top, right, bottom = self.drawing, self.left, self.top, self.left + WIDE, self.top + HIGH
        drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
        room = WIDE - (text_width(remark, 11) + 12 if remark else 0)
        drawing.text(left, top - 24, shortened(title, room), tip=title)
        drawing.text(right, top - 24, remark, anchor="end", size=11)
        drawing.text(left, top - 8, f"↑ {upwards}", size=11)
        drawing.text(right, bottom + 34, f"{across} →", anchor="end", size=11)
        begins = [0.0] if self.across.logarithmic and self.across.ticks[0] >= 2 * self.across.low else []
        for tick in (*begins, *self.across.ticks):
            x, _ = self.place(tick, self.upwards.ticks[0])
            drawing.line("faint", (x, bottom), (x, bottom + 4))
            drawing.text(x, bottom + 16, _captions(tick), anchor="middle", size=10)
        for tick in self.upwards.ticks:
            _, y = self.place(self.across.high, tick)
            drawing.line("faint", (left, y), (left - 4, y))
            drawing.text(left - 7, y + 3.5, _captions(tick), anchor="end", size=10)


def convergence_plots(
    title: str, across: str, upwards: str, names: Sequence[str], panels: Sequence[CurvesPanel]
) -> str:
    """Return the SVG text; every name has the same look in all panels, told in a legend on top."""
    width = _sheet_width(len(panels))
    places = _legend_places(names, width)
    head = _HEAD + _LEGEND_ROW * (1 + max(row for _, row in places))
    drawing = Drawing(width, head + _sheet_height(len(panels)), title)
    drawing.text(16, 24, shortened(title, width - 32))
    for number, (name, (x, row)) in enumerate(zip(names, places, strict=True)):
        y = _HEAD + _LEGEND_ROW * row + 10
        drawing.series(number, (x, y - 4), (x + _SWATCH - 6, y - 4))
        drawing.text(x + _SWATCH, y, shortened(name, width - 2 * _SWATCH - 32, 11), size=11, tip=name)
    for i, panel in enumerate(panels):
        frame = _Frame(drawing, *_corner(i, len(panels), head), *_axes(panel))
        frame.draw(panel.title, "", across, upwards)
        for name, points in panel.curves.items():
            placed = [frame.place(effort, value) for effort, value in points]
            drawing.series(names.index(name), *placed, *(placed if len(placed) == 1 else ()))
    return drawing.source()


def _sheet_width(n_panels: int) -> float:
    return _columns(n_panels) * (_LEFT + WIDE + _RIGHT)


def _columns(n_panels: int) -> int:
    return min(_COLUMNS, math.ceil(math.sqrt(n_panels)))


def _legend_places(names: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Where each name begins, and in which row: one beside the other as far as there is room."""
    places: list[tuple[float, int]] = []
    x, row = 16.0, 0
    for name in names:
        needed = _SWATCH + text_width(name, 11) + 18
        if x > 16 and x + needed > width:
            x, row = 16.0, row + 1
        places.append((x, row))
        x += needed
    return places


def _sheet_height(n_panels: int) -> float:
    return math.ceil(n_panels / _columns(n_panels)) * (_ABOVE + HIGH + _BELOW)


def _corner(number: int, n_panels: int, head: float) -> tuple[float, float]:
    """Return the upper left corner of the frame of a panel."""
    row, column = divmod(number, _columns(n_panels))
    return column * (_LEFT + WIDE + _RIGHT) + _LEFT, head + row * (_ABOVE + HIGH + _BELOW) + _ABOVE


def _axes(panel: CurvesPanel) -> tuple[Axis, Axis]:
    points = [point for curve in panel.curves.values() for point in curve]
    return _effort_axis([effort for effort, _ in points]), axis_of([value for _, value in points])


def _effort_axis(efforts: Sequence[float]) -> Axis:
    """From 0 on; logarithmic ones have 0 at their left end, as far from the least above it as 1 is from 2."""
    positive = [effort for effort in efforts if effort > 0]
    if not positive or max(positive) <= _LOG_SPAN * min(positive):
        return axis_of([0.0, *efforts])
    axis = axis_of(positive)
    return replace(axis, low=axis.low / 2) if len(positive) < len(efforts) else axis


def lag_histograms(title: str, panels: Sequence[HistogramPanel]) -> str:
    """Return the SVG text."""
    width = _sheet_width(len(panels))
    drawing = Drawing(width, _HEAD + _sheet_height(len(panels)), title)
    drawing.text(16, 24, shortened(title, width - 32))
    lags = [lag for panel in panels for lag in panel.lags]
    step = _bar_width(max((*lags, 0)) - min((*lags, 0)))
    counted = [Counter(step * math.floor(lag / step) for lag in panel.lags) for panel in panels]
    across = axis_of([min((*lags, 0)) - 0.5, max((*lags, 0)) + step - 0.5])
    upwards = axis_of([0.0, float(max((n for bars in counted for n in bars.values()), default=1))])
    for i, (panel, bars) in enumerate(zip(panels, counted, strict=True)):
        frame = _Frame(drawing, *_corner(i, len(panels), _HEAD), across, upwards)
        frame.draw(panel.title, panel.remark, "iterations behind", "tables")
        for first, n in sorted(bars.items()):
            _draw_bar(frame, first, step, n)
        drawing.line("faint", (frame.left, frame.place(0.0, 0.0)[1]), (frame.left + WIDE, frame.place(0.0, 0.0)[1]))
        drawing.line("dashed", frame.place(0.0, 0.0), frame.place(0.0, upwards.high))
    return drawing.source()


def _bar_width(span: int) -> int:
    """Return how many lags share a bar: 1, 2 or 5 times a power of ten, so that there are not too many bars."""
    steps = (factor * int(10.0**power) for power in range(18) for factor in (1, 2, 5))
    return next(step for step in steps if span <= step * _MOST_BARS)


def _draw_bar(frame: _Frame, first: int, step: int, n: int) -> None:
    left, top = frame.place(first - 0.5, float(n))
    right, bottom = frame.place(first + step - 0.5, 0.0)
    lags = f"{first}" if step == 1 else f"{first} to {first + step - 1}"
    frame.drawing.bar(left, top, right - left, bottom - top, f"{lags}: {n}")


def _captions(tick: float) -> str:
    return f"{tick + 0.0:,.6g}"
