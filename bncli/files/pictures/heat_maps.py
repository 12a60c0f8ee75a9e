"""Tables of two attributes as heat maps, with what each of them does alone along the edges; confusion tables.

Numbers are shown in eleven shades, blue above 0 and vermilion below, so that all cells of a shade are one path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.engine.kernels.arrays import Array
from bncli.files.pictures.drawing import SHADES, Drawing, shortened, text_width

WIDTH = 340.0
LEFT, TOP, SIDE = 96.0, 30.0, 200.0
MARGIN = 14.0
"""Thickness of the edges that show single attributes."""
_NAMES = 78.0
_MOST_TIPS = 64


@dataclass(frozen=True)
class HeatAxis:
    """An attribute, the names of its values, and what each does alone; None: nothing."""

    name: str
    values: Sequence[str]
    alone: Array | None


def heat_map(title: str, down: HeatAxis, across: HeatAxis, cells: Array) -> Drawing:
    """Return cells (values down, values across); edges and cells share one scale, the largest number of all."""
    below_all = 14.0 if _lie(across.values) else _room(across.values)
    drawing = Drawing(WIDTH, TOP + MARGIN + SIDE + below_all + 20, title)
    wide, high = SIDE / cells.shape[1], SIDE / cells.shape[0]
    scale = heat_scale(cells, down.alone, across.alone)
    left, top = LEFT, TOP + MARGIN + 4
    for shade, outline in shades(cells / scale, left, top, wide, high):
        drawing.path(shade, outline)
    if across.alone is not None:
        for shade, outline in shades(across.alone[None, :] / scale, left, TOP, wide, MARGIN):
            drawing.path(shade, outline)
    if down.alone is not None:
        for shade, outline in shades(down.alone[:, None] / scale, left + SIDE + 4, top, MARGIN, high):
            drawing.path(shade, outline)
    right, bottom = left + SIDE, top + SIDE
    drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    _draw_names(drawing, down, across, top)
    drawing.text(4, 14, shortened(f"↓ {down.name}", 150, 11), size=11, tip=down.name)
    drawing.text(WIDTH - 4, 14, shortened(f"{across.name} →", 170, 11), anchor="end", size=11, tip=across.name)
    drawing.text(WIDTH - 4, drawing.height - 4, f"full colour: ±{scale:.2g} log-odds", anchor="end", size=10)
    return drawing


def _lie(names: Sequence[str]) -> bool:
    """Return whether all names find room side by side."""
    return all(text_width(name, 10) + 4 <= SIDE / len(names) for name in names)


def _room(names: Sequence[str]) -> float:
    """Pixels for upright names, shortened."""
    return min(_NAMES, max((text_width(name, 10) for name in names), default=0.0)) + 10


def _draw_names(drawing: Drawing, down: HeatAxis, across: HeatAxis, top: float) -> None:
    """As many as there is room for."""
    high, wide = SIDE / len(down.values), SIDE / len(across.values)
    for i in _spread(len(down.values), high):
        y = top + (i + 0.5) * high + 3
        name = down.values[i]
        drawing.text(LEFT - 5, y, shortened(name, LEFT - 10, 10), anchor="end", size=10, tip=name)
    if _lie(across.values):
        for j, name in enumerate(across.values):
            drawing.text(LEFT + (j + 0.5) * wide, top + SIDE + 12, name, anchor="middle", size=10)
        return
    for j in _spread(len(across.values), wide):
        x = LEFT + (j + 0.5) * wide + 3
        name = across.values[j]
        drawing.text(x, top + SIDE + 6, shortened(name, _NAMES, 10), anchor="end", size=10, tip=name, upright=True)


def _spread(n: int, room: float) -> range:
    """Return every value, or as many of them as do not crowd one another."""
    return range(0, n, max(1, -int(-12 // room)))


def heat_scale(*numbers: Array | None) -> float:
    """Return the largest of all, above 0."""
    return max((float(abs(one).max(initial=0.0)) for one in numbers if one is not None), default=0.0) or 1.0


def shades(shares: Array, left: float, top: float, wide: float, high: float) -> list[tuple[str, str]]:
    """For every shade that occurs its class and one path around all its cells; shares are -1 to 1."""
    found: dict[str, list[str]] = {}
    for i, row in enumerate(shares.tolist()):
        for j, share in enumerate(row):
            level = round(SHADES * share)
            if level:
                shade = f"p{level}" if level > 0 else f"n{-level}"
                corner = f"M{left + j * wide:.1f} {top + i * high:.1f}"
                found.setdefault(shade, []).append(f"{corner}h{wide:.1f}v{high:.1f}h-{wide:.1f}z")
    return [(shade, "".join(corners)) for shade, corners in sorted(found.items())]


def confusion_map(title: str, labels: Sequence[str], confusion: Sequence[Sequence[float]]) -> Drawing:
    """Return rows of a true label, by the label predicted: shares of a row, blue where right; vermilion where wrong.

    The shades of what is wrong begin anew: the fullest is the largest share of any row.
    """
    n = len(labels)
    wrong = [count / (sum(row) or 1.0) for i, row in enumerate(confusion) for j, count in enumerate(row) if i != j]
    most = max(wrong, default=0.0) or 1.0
    below_all = _room(labels)
    side = min(26.0, max(10.0, 620.0 / n))
    left, top = 100.0, 20.0
    drawing = Drawing(left + n * side + 30, top + n * side + below_all, title)
    for i, (label, row) in enumerate(zip(labels, confusion, strict=True)):
        total = sum(row) or 1.0
        y = top + i * side
        drawing.text(left - 5, y + side / 2 + 3, shortened(label, left - 10, 10), anchor="end", size=10, tip=label)
        for j, count in enumerate(row):
            share = count / total / (1.0 if i == j else most)
            level = min(SHADES, max(1, math.ceil(SHADES * share - 1e-9))) if count else 0
            if level:
                tip = f"{label} taken for {labels[j]}: {count:,.10g}" if n <= _MOST_TIPS and i != j else ""
                shade = f"p{level}" if i == j else f"n{level}"
                drawing.shade(left + j * side, y, side - 1, shade, tip)
        name = shortened(label, _NAMES, 10)
        drawing.text(
            left + (i + 0.5) * side + 3, top + n * side + 6, name, anchor="end", size=10, tip=label, upright=True
        )
    drawing.text(4, 13, "↓ true", size=11)
    drawing.text(left + n * side, 13, "predicted →", anchor="end", size=11)
    return drawing
