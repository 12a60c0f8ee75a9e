"""One frame with the curve of every label in it, of which a page shows one at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bncli.files.formats.svg.axes import Axis, axis_of
from bncli.files.formats.svg.drawing import Drawing

WIDTH, SIDE, LEFT, TOP = 340.0, 240.0, 56.0, 26.0
Points = Sequence[tuple[float, float]]
_UNIT = Axis(0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))


def unit_curves(
    title: str, axes: tuple[str, str], curves: Sequence[Points], references: Sequence[Points], most: float = 1.0
) -> Drawing:
    """A curve and a dashed line a label, from 0 to 1 across and to `most` upwards; the first label is shown."""
    drawing = Drawing(WIDTH, TOP + SIDE + 40, title)
    upwards = _UNIT if most <= 1 else axis_of([0.0, most], logarithmic=False)
    _draw_frame(drawing, *axes, upwards)
    for number, (curve, reference) in enumerate(zip(curves, references, strict=True)):
        drawing.begin(label=number, shown=number == 0)
        for kind, points in (("dashed", reference), ("curve", curve)):
            if len(points) > 1:
                places = (f"{x:.1f} {y:.1f}" for x, y in (_place(point, upwards) for point in points))
                drawing.path(kind, "M" + "L".join(places))
        drawing.end()
    return drawing


def reliability_dots(title: str, labels: Sequence[Sequence[tuple[float, float, float, str]]]) -> Drawing:
    """Dots (mean probability, share of rows, weight, words) of every label: the area of a dot is its weight."""
    drawing = Drawing(WIDTH, TOP + SIDE + 40, title)
    _draw_frame(drawing, "mean probability", "share of rows", _UNIT)
    corners = (_place((0.0, 0.0), _UNIT), _place((1.0, 1.0), _UNIT))
    drawing.line("dashed", *corners)
    for number, dots in enumerate(labels):
        drawing.begin(label=number, shown=number == 0)
        most = max((weight for *_, weight, _ in dots), default=1.0)
        for x, y, weight, words in dots:
            drawing.dot(*_place((x, y), _UNIT), words, radius=max(2.0, 6 * math.sqrt(weight / most)))
        drawing.end()
    return drawing


def _place(point: tuple[float, float], upwards: Axis) -> tuple[float, float]:
    return LEFT + SIDE * _UNIT.share(point[0]), TOP + SIDE * (1 - upwards.share(point[1]))


def _draw_frame(drawing: Drawing, across: str, up: str, upwards: Axis) -> None:
    bottom, right = TOP + SIDE, LEFT + SIDE
    drawing.line("faint", (LEFT, TOP), (right, TOP), (right, bottom), (LEFT, bottom), (LEFT, TOP))
    drawing.text(LEFT, TOP - 9, f"↑ {up}", size=11)
    drawing.text(right, bottom + 34, f"{across} →", anchor="end", size=11)
    for tick in _UNIT.ticks:
        x, _ = _place((tick, 0.0), _UNIT)
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.text(x, bottom + 16, f"{tick:.4g}", anchor="middle", size=10)
    for tick in upwards.ticks:
        _, y = _place((0.0, tick), upwards)
        drawing.line("faint", (LEFT, y), (LEFT - 4, y))
        drawing.text(LEFT - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)
