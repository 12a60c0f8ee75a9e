"""The critical-difference diagram of Demsar (2006, JMLR 7): average ranks on an axis, and who cannot be told apart.

    CD = 1.2
    |-----|
    4     3     2     1
    +--+--+--+--+--+--+
       |  ====  |   |
    A -+  |  |  |   +- D
    B ----+  |  +----- C

The axis runs to the best rank, 1, at the right. A thick bar joins learners whose ranks do not differ significantly;
above the axis the critical difference is drawn to scale. Labels stand in rows of their own, half of them on either
side, the outermost on top, so that no line crosses a label.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bncli.files.pictures.drawing import Drawing, shortened, text_width

AXIS = 480.0
"""Pixels of the axis, or of the critical difference where that is longer."""
_EDGE = 16.0
_ROW = 20.0
_BAR = 9.0
_LABEL = 260.0
"""Pixels that a label may take; longer names are cut."""
_TOP = 84.0
"""Where the axis lies."""


class _Scale:
    """Where a rank lies on the axis, the worst (the number of learners) at the left."""

    def __init__(self, left: float, n: int, difference: float) -> None:
        self.n = n
        self.left = left
        self.per_rank = AXIS / max(n - 1, difference)

    def x(self, rank: float) -> float:
        return self.left + (self.n - rank) * self.per_rank


def critical_difference_diagram(
    title: str, ranks: Mapping[str, float], groups: Sequence[Sequence[str]], difference: float
) -> Drawing:
    """Average ranks by name, groups not significantly different, the critical difference."""
    worst_first = sorted(ranks, key=lambda name: -ranks[name])
    half = len(ranks) // 2
    sides = worst_first[:half], worst_first[: half - 1 if half else None : -1]
    margins = [max((_label_width(name) for name in side), default=0.0) + 2 * _EDGE for side in sides]
    layers = _layers([(max(map(ranks.__getitem__, group)), min(map(ranks.__getitem__, group))) for group in groups])
    first_row = _TOP + 2 * _BAR + _BAR * max((layer for *_, layer in layers), default=0) + 2 * _BAR
    width = max(sum(margins) + AXIS, text_width(title) + 2 * _EDGE)
    drawing = Drawing(width, first_row + _ROW * max(map(len, sides)) + _EDGE, title)
    scale = _Scale(margins[0], len(ranks), difference)
    drawing.text(_EDGE, 24, title)
    _draw_axis(drawing, scale, difference)
    for best, worst, layer in ((low, high, layer) for high, low, layer in layers):
        _draw_bar(drawing, scale.x(worst), scale.x(best), _TOP + _BAR * (layer + 1.5))
    ends = (_EDGE, margins[0] + AXIS + margins[1] - _EDGE)
    for side, end in zip(sides, ends, strict=True):
        for row, name in enumerate(side):
            _draw_label(drawing, name, ranks[name], scale.x(ranks[name]), end, first_row + _ROW * row)
    return drawing


def _label_width(name: str) -> float:
    return min(_LABEL, text_width(name)) + text_width(" (00.00)")


def _layers(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """For every span (high rank, low rank) the first layer, 0 on top, in which it overlaps no span before it."""
    ends: list[float] = []
    placed: list[tuple[float, float, int]] = []
    for high, low in sorted(spans, key=lambda span: -span[0]):
        layer = next((i for i, end in enumerate(ends) if end > high), len(ends))
        ends[layer : layer + 1] = [low]
        placed.append((high, low, layer))
    return placed


def _draw_axis(drawing: Drawing, scale: _Scale, difference: float) -> None:
    drawing.line("ink", (scale.x(scale.n), _TOP), (scale.x(1), _TOP))
    for rank in range(1, scale.n + 1):
        x = scale.x(rank)
        drawing.line("ink", (x, _TOP), (x, _TOP - 6))
        drawing.text(x, _TOP - 9, str(rank), anchor="middle", size=11)
    end = scale.left + difference * scale.per_rank
    drawing.line("ink", (scale.left, 54), (scale.left, 46), (scale.left, 50), (end, 50), (end, 46), (end, 54))
    drawing.text(max(_EDGE, scale.left), 42, f"CD = {difference:.3g}", size=11)


def _draw_bar(drawing: Drawing, left: float, right: float, y: float) -> None:
    """Draw a bar over a group, just wide enough to be visible where its ranks are equal."""
    more = max(0.0, 4 - (right - left)) / 2
    drawing.line("thick", (left - more, y), (right + more, y))


def _draw_label(drawing: Drawing, name: str, rank: float, x: float, end: float, y: float) -> None:
    """Draw a line from the axis down and out to the name, which stands at `end` with its rank."""
    at_left = end < x
    label = shortened(name, _LABEL)
    told = f"{label} ({rank:.2f})" if at_left else f"({rank:.2f}) {label}"
    inner = end + math.copysign(_label_width(name) + 4, x - end)
    drawing.line("ink", (x, _TOP), (x, y), (inner, y))
    drawing.text(end, y + 4, told, anchor="start" if at_left else "end", tip=f"{name}: average rank {rank:.4f}")
