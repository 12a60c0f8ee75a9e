"""Learning curves: a panel a figure, the rows learnt from across on a logarithmic axis, the figure upwards.

A dot a size, with a bar of one standard deviation to either side; a bar ends at 0, below which no such figure goes. All
panels have the same axis across, whose numbers are sizes that were learnt from, as many as find room. Words stand
outside the frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.formats.svg.axes import Axis, axis_of
from bncli.files.formats.svg.drawing import Drawing, shortened, text_width

WIDE, HIGH = 360.0, 240.0
"""Pixels of a panel's frame."""
_LEFT, _ABOVE, _RIGHT, _BELOW, _HEAD = 66.0, 44.0, 22.0, 46.0, 34.0
_CAP = 4.0
_APART = 8.0
"""Pixels between the numbers of the axis across."""


@dataclass(frozen=True)
class FigurePanel:
    """A figure, at least 0: (rows, mean, standard deviation) a size, ascending; None where one is not defined."""

    name: str
    points: Sequence[tuple[int, float | None, float | None]]


def learning_curve_plots(title: str, panels: Sequence[FigurePanel]) -> str:
    """The SVG text."""
    return learning_curve_drawing(title, panels).source()


def learning_curve_drawing(title: str, panels: Sequence[FigurePanel]) -> Drawing:
    """The same as a drawing."""
    width = len(panels) * (_LEFT + WIDE + _RIGHT)
    drawing = Drawing(width, _HEAD + _ABOVE + HIGH + _BELOW, title)
    drawing.text(16, 24, shortened(title, width - 32))
    across = _across([rows for panel in panels for rows, _, _ in panel.points])
    for i, panel in enumerate(panels):
        _draw(drawing, i * (_LEFT + WIDE + _RIGHT) + _LEFT, _HEAD + _ABOVE, across, panel)
    return drawing


def _across(sizes: Sequence[int]) -> Axis:
    """The axis of the sizes, with numbers at those that do not crowd one another, the largest first."""
    low, high = float(min(sizes)), float(max(sizes))
    axis = Axis(low, high, True, ()) if low < high else Axis(low / 2, high * 2, True, ())
    ticks: list[float] = []
    end = WIDE + _LEFT
    for size in sorted(set(sizes), reverse=True):
        x, half = WIDE * axis.share(size), text_width(f"{size:,}", 10) / 2
        if x + half <= end:
            ticks.append(size)
            end = x - half - _APART
    return Axis(axis.low, axis.high, True, tuple(reversed(ticks)))


def _draw(drawing: Drawing, left: float, top: float, across: Axis, panel: FigurePanel) -> None:
    points = [(rows, mean, std or 0.0) for rows, mean, std in panel.points if mean is not None and math.isfinite(mean)]
    points = [(rows, mean, std if math.isfinite(std) else 0.0) for rows, mean, std in points]
    ends = [end for _, mean, std in points for end in (max(mean - std, 0.0), mean + std)]
    upwards = axis_of(ends, logarithmic=False)
    _draw_frame(drawing, left, top, across, upwards, panel.name)

    def place(rows: int, value: float) -> tuple[float, float]:
        return left + WIDE * across.share(rows), top + HIGH * (1 - upwards.share(value))

    for rows, mean, std in points:
        if std > 0:
            (x, low), (_, high) = place(rows, max(mean - std, 0.0)), place(rows, mean + std)
            drawing.line("ink", (x, low), (x, high))
            for y in (low, high):
                drawing.line("ink", (x - _CAP, y), (x + _CAP, y))
    if len(points) > 1:
        drawing.line("curve", *(place(rows, mean) for rows, mean, _ in points))
    for rows, mean, std in points:
        spread = f" ± {std:.2g}" if std > 0 else ""
        drawing.dot(*place(rows, mean), f"{rows:,} rows: {panel.name} {mean:.6g}{spread}")


def _draw_frame(drawing: Drawing, left: float, top: float, across: Axis, upwards: Axis, name: str) -> None:
    bottom, right = top + HIGH, left + WIDE
    drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    drawing.text(left, top - 10, f"↑ {name}")
    drawing.text(right, bottom + 34, "rows learnt from →", anchor="end", size=11)
    for tick in across.ticks:
        x = left + WIDE * across.share(tick)
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.text(x, bottom + 16, f"{tick:,.0f}", anchor="middle", size=10)
    for tick in upwards.ticks:
        y = bottom - HIGH * upwards.share(tick)
        drawing.line("faint", (left, y), (left - 4, y))
        drawing.text(left - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)
