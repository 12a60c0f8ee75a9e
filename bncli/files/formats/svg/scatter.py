"""Comparative scatter plots: a panel a learner, a point a data set, the baseline's figure across and its own upwards.

All panels have the same axes, logarithmic where that is asked for, or all figures are positive and the largest is more
than four times the smallest. On the dashed diagonal both are equal; over the frame, where no point lies, the data sets
on either side of it are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.formats.svg.axes import Axis, axis_of
from bncli.files.formats.svg.drawing import Drawing, shortened

SIDE = 200.0
"""Pixels of the square of a panel."""
_LEFT, _ABOVE, _RIGHT, _BELOW = 62.0, 58.0, 18.0, 46.0
_HEAD = 34.0
_COLUMNS = 4


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
) -> Drawing:
    """A panel a learner; where axes are to be `logarithmic`, all figures are positive."""
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
    return drawing


def _draw_frame(drawing: Drawing, axis: Axis, left: float, top: float, name: str, baseline: str) -> None:
    bottom, right = top + SIDE, left + SIDE
    drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    drawing.line("dashed", (left, bottom), (right, top))
    drawing.text(left, top - 26, shortened(name, SIDE + _RIGHT), tip=name)
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
    """Over the frame, where no point can lie; above the diagonal the learner's figure is the higher one."""
    below, above = f"better {panel.better}", f"worse {panel.worse}"
    if not lower_is_better:
        below, above = above, below
    drawing.text(left, top - 8, f"↖ {above}", size=11)
    drawing.text(left + SIDE, top - 8, f"{below} ↘", anchor="end", size=11)
    if panel.equal:
        drawing.text(left + SIDE / 2, top - 8, f"equal {panel.equal}", anchor="middle", size=11)
