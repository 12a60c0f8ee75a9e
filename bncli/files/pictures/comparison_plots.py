"""Plots that compare learners: critical-difference diagrams and scatter plots against a baseline.

The critical-difference diagram of Demsar (2006, JMLR 7) shows average ranks on an axis:

    CD = 1.2
    |-----|
    4     3     2     1
    +--+--+--+--+--+--+
       |  ====  |   |
    A -+  |  |  |   +- D
    B ----+  |  +----- C

The best rank, 1, is at the right. A thick bar joins learners whose ranks do not differ significantly, and the critical
difference is drawn to scale above the axis. Every label has its own row. Half of the labels are on either side, and the
outermost ranks are on top, so that no line crosses a label.

Scatter plots have one panel per learner and one point per data set, with the baseline's metric across and the learner's
metric upwards. All panels have the same axes. On the dashed diagonal both are equal; the numbers of data sets on either
side of it are written above the frame, where no point lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bncli.files.pictures.drawing import Drawing, PanelLayout, axis_of, shortened, text_width

_AXIS = 480.0
"""The length in pixels of the axis, or of the critical difference if that is longer."""
_EDGE = 16.0
_ROW = 20.0
_BAR = 9.0
_LABEL = 260.0
"""The maximum width of a label in pixels; longer names are cut off."""
_AXIS_TOP = 84.0

PANELS = PanelLayout(width=200.0, height=200.0, left=62.0, above=58.0, right=18.0, below=46.0, columns=4)


@dataclass(frozen=True)
class ScatterPanel:
    """A learner's name, its points (data set, baseline's metric, own metric), and how often it is better or worse.

    better, equal, worse: the numbers of data sets on which the learner is better than, equal to or worse than the
    baseline.
    """

    name: str
    points: Sequence[tuple[str, float, float]]
    better: int
    equal: int
    worse: int


def critical_difference_diagram(
    title: str, ranks: Mapping[str, float], groups: Sequence[Sequence[str]], difference: float
) -> Drawing:
    """Draw the critical-difference diagram of the average ranks, which are keyed by the learner's name.

    A bar joins the learners of each of the `groups`, which do not differ significantly; the critical `difference` is
    drawn to scale.
    """
    n = len(ranks)
    worst_first = sorted(ranks, key=lambda name: -ranks[name])
    half = n // 2
    sides = worst_first[:half], worst_first[: half - 1 if half else None : -1]
    margins = [max((_label_width(name) for name in side), default=0.0) + 2 * _EDGE for side in sides]
    # The spans (high rank, low rank), highest first, each with the first layer (0 on top) that has room.
    extents = [(max(ranks[name] for name in group), min(ranks[name] for name in group)) for group in groups]
    last_of_layer: list[float] = []
    spans: list[tuple[float, float, int]] = []
    for high, low in sorted(extents, key=lambda span: -span[0]):
        layer = next((i for i, last in enumerate(last_of_layer) if last > high), len(last_of_layer))
        last_of_layer[layer : layer + 1] = [low]
        spans.append((high, low, layer))
    first_row = _AXIS_TOP + 2 * _BAR + _BAR * max((layer for *_, layer in spans), default=0) + 2 * _BAR
    width = max(sum(margins) + _AXIS, text_width(title) + 2 * _EDGE)
    drawing = Drawing(width, first_row + _ROW * max(map(len, sides)) + _EDGE, title)
    drawing.text(_EDGE, 24, title)
    # a rank lies at left + (n - rank) * per_rank
    left, per_rank = margins[0], _AXIS / max(n - 1, difference)

    drawing.line("ink", (left, _AXIS_TOP), (left + (n - 1) * per_rank, _AXIS_TOP))
    for rank in range(1, n + 1):
        x = left + (n - rank) * per_rank
        drawing.line("ink", (x, _AXIS_TOP), (x, _AXIS_TOP - 6))
        drawing.text(x, _AXIS_TOP - 9, str(rank), anchor="middle", size=11)
    end = left + difference * per_rank
    drawing.line("ink", (left, 54), (left, 46), (left, 50), (end, 50), (end, 46), (end, 54))
    drawing.text(max(_EDGE, left), 42, f"CD = {difference:.3g}", size=11)

    for worst, best, layer in spans:
        x, end = left + (n - worst) * per_rank, left + (n - best) * per_rank
        y = _AXIS_TOP + _BAR * (layer + 1.5)
        # a bar over equal ranks must be visible too
        more = max(0.0, 4 - (end - x)) / 2
        drawing.line("thick", (x - more, y), (end + more, y))

    ends = (_EDGE, margins[0] + _AXIS + margins[1] - _EDGE)
    for side, end in zip(sides, ends, strict=True):
        for row, name in enumerate(side):
            x, y = left + (n - ranks[name]) * per_rank, first_row + _ROW * row
            is_left = end < x
            label, rank_text = shortened(name, _LABEL), f"({ranks[name]:.2f})"
            text = f"{label} {rank_text}" if is_left else f"{rank_text} {label}"
            inner = end + math.copysign(_label_width(name) + 4, x - end)
            drawing.line("ink", (x, _AXIS_TOP), (x, y), (inner, y))
            tip = f"{name}: average rank {ranks[name]:.4f}"
            drawing.text(end, y + 4, text, anchor="start" if is_left else "end", tip=tip)
    return drawing


def _label_width(name: str) -> float:
    return min(_LABEL, text_width(name)) + text_width(" (00.00)")


def scatter_plots(
    title: str, baseline: str, panels: Sequence[ScatterPanel], *, lower_is_better: bool, logarithmic: bool | None = None
) -> Drawing:
    """Draw one panel per learner.

    By default, axes are logarithmic if all values are positive and the largest is more than four times the smallest.
    If `logarithmic` is True, they are logarithmic whenever all values are positive; if it is False, they are linear.
    """
    drawing, frames = PANELS.sheet(title, len(panels))
    axis = axis_of([value for panel in panels for _, *pair in panel.points for value in pair], logarithmic)
    for frame, panel in zip(frames, panels, strict=True):
        left, top, right, bottom = frame.left, frame.top, frame.left + frame.width, frame.top + frame.height
        frame.outline()
        drawing.line("dashed", (left, bottom), (right, top))
        drawing.text(left, top - 26, shortened(panel.name, PANELS.width + PANELS.right), tip=panel.name)
        drawing.text(right, bottom + 34, shortened(f"{baseline} →", PANELS.width), anchor="end", size=11, tip=baseline)
        for tick in axis.ticks:
            x, y = frame.place(axis.share(tick), axis.share(tick))
            drawing.line("faint", (x, bottom), (x, bottom + 4))
            drawing.line("faint", (left, y), (left - 4, y))
            drawing.text(x, bottom + 16, f"{tick + 0.0:.4g}", anchor="middle", size=10)
            drawing.text(left - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)
        # above the diagonal the learner's figure is higher than the baseline's
        above, below = f"worse {panel.worse}", f"better {panel.better}"
        if not lower_is_better:
            above, below = below, above
        drawing.text(left, top - 8, f"↖ {above}", size=11)
        drawing.text(right, top - 8, f"{below} ↘", anchor="end", size=11)
        if panel.equal:
            drawing.text(left + PANELS.width / 2, top - 8, f"equal {panel.equal}", anchor="middle", size=11)
        for data, across, upwards in panel.points:
            tip = f"{data}: {upwards:.6g} ({baseline}: {across:.6g})"
            drawing.dot(*frame.place(axis.share(across), axis.share(upwards)), tip)
    return drawing
