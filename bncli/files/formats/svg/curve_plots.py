"""Curves in the unit square: a panel a label, so that no colour has to be told from another and no line needs a label.

Both axes of every panel run from 0 to 1. The dashed line is what a classifier does that knows nothing (on the ROC and
precision-recall curves) or that is right about itself (reliability). Words stand outside the frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.formats.svg.axes import Axis
from bncli.files.formats.svg.drawing import Drawing, Line, shortened, text_width
from bncli.files.formats.svg.scatter import SIDE

_LEFT, _ABOVE, _RIGHT, _BELOW = 62.0, 58.0, 18.0, 46.0
_HEAD = 34.0
_COLUMNS = 4
_NARROWEST = 460.0
"""Pixels that a sheet has at least, for its title."""
_UNIT = Axis(0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))


@dataclass(frozen=True)
class CurvePanel:
    """A label, a remark beside it, the points of its curve and of the dashed line, and a word for each point or none.

    Points that have words are drawn as dots.
    """

    name: str
    remark: str
    points: Sequence[tuple[float, float]]
    reference: Sequence[tuple[float, float]]
    tips: Sequence[str] = ()


def curve_plots(title: str, across: str, upwards: str, panels: Sequence[CurvePanel]) -> str:
    """The SVG text."""
    columns = min(_COLUMNS, math.ceil(math.sqrt(len(panels))))
    wide, high = _LEFT + SIDE + _RIGHT, _ABOVE + SIDE + _BELOW
    width = max(_NARROWEST, columns * wide)
    drawing = Drawing(width, _HEAD + math.ceil(len(panels) / columns) * high, title)
    drawing.text(16, 24, shortened(title, width - 32))
    for i, panel in enumerate(panels):
        left, top = i % columns * wide + _LEFT, _HEAD + i // columns * high + _ABOVE
        _draw_frame(drawing, left, top, across, upwards)
        _draw_heading(drawing, left, top, panel)
        _draw_line(drawing, "dashed", left, top, panel.reference)
        _draw_line(drawing, "curve", left, top, panel.points)
        for point, tip in zip(panel.points, panel.tips, strict=False):
            drawing.dot(*_place(left, top, point), tip)
    return drawing.source()


def _draw_line(drawing: Drawing, kind: Line, left: float, top: float, points: Sequence[tuple[float, float]]) -> None:
    if len(points) > 1:
        drawing.line(kind, *(_place(left, top, point) for point in points))


def _place(left: float, top: float, point: tuple[float, float]) -> tuple[float, float]:
    x, y = map(_UNIT.share, point)
    return left + SIDE * x, top + SIDE * (1 - y)


def _draw_frame(drawing: Drawing, left: float, top: float, across: str, upwards: str) -> None:
    bottom, right = top + SIDE, left + SIDE
    drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    drawing.text(left, top - 8, f"↑ {upwards}", size=11)
    drawing.text(right, bottom + 34, f"{across} →", anchor="end", size=11)
    for tick in _UNIT.ticks:
        x, y = _place(left, top, (tick, tick))
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.line("faint", (left, y), (left - 4, y))
        drawing.text(x, bottom + 16, f"{tick:.4g}", anchor="middle", size=10)
        drawing.text(left - 7, y + 3.5, f"{tick:.4g}", anchor="end", size=10)


def _draw_heading(drawing: Drawing, left: float, top: float, panel: CurvePanel) -> None:
    """The label at the left, the remark at the right of one line."""
    room = SIDE - (text_width(panel.remark, 11) + 12 if panel.remark else 0)
    drawing.text(left, top - 26, shortened(panel.name, room), tip=panel.name)
    if panel.remark:
        drawing.text(left + SIDE, top - 26, panel.remark, anchor="end", size=11)
