"""Curves in the unit square: a panel a label, so that no colour has to be told from another and no line needs a label.

Both axes of every panel run from 0 to 1. The dashed line is what a classifier does that knows nothing (on the ROC and
precision-recall curves) or that is right about itself (reliability). Words stand outside the frames.

Comparative scatter plots: a panel a learner, a point per data set, the baseline's figure across and its own upwards.

All panels have the same axes, logarithmic where that is asked for, or all figures are positive and the largest is more
than four times the smallest. On the dashed diagonal both are equal; over the frame, where no point lies, the data sets
on either side of it are counted.

One frame with the curve of every label in it, of which a page shows one at a time.

One number over time: a dot and a line from file to file, and a dashed line of what it is compared with.

Files have the same room each and are numbered from 1; the axis upwards begins at 0 where no number is below. Where a
number is unknown the line is broken.

Learning curves: a panel a figure, the rows learnt from across on a logarithmic axis, the figure upwards.

A dot a size, with a bar of one standard deviation to either side; a bar ends at 0, below which no such figure goes. All
panels have the same axis across, whose numbers are sizes that were learnt from, as many as find room. Words stand
outside the frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.pictures.drawing import Axis, Drawing, Line, axis_of, shortened, text_width

SIDE = 200.0
"""Pixels of the square of a panel."""
_SCATTER_LEFT, _SCATTER_ABOVE, _SCATTER_RIGHT, _SCATTER_BELOW = 62.0, 58.0, 18.0, 46.0
_SCATTER_HEAD = 34.0
_SCATTER_COLUMNS = 4


@dataclass(frozen=True)
class ScatterPanel:
    """A learner: (data set, baseline's figure, its own) a point, and how often it is better, equal, worse."""

    name: str
    points: Sequence[tuple[str, float, float]]
    better: int
    equal: int
    worse: int


_CURVE_PLOTS_LEFT, _CURVE_PLOTS_ABOVE, _CURVE_PLOTS_RIGHT, _CURVE_PLOTS_BELOW = 62.0, 58.0, 18.0, 46.0
_CURVE_PLOTS_HEAD = 34.0
_CURVE_PLOTS_COLUMNS = 4
_NARROWEST = 460.0
"""Pixels that a sheet has at least, for its title."""
_CURVE_PLOTS_UNIT = Axis(0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))


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


WIDTH, UNIT_CURVES_SIDE, LEFT, TOP = 340.0, 240.0, 56.0, 26.0
Points = Sequence[tuple[float, float]]
_UNIT_CURVES_UNIT = Axis(0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
SERIES_WIDTH = 340.0
_SERIES_LEFT, _TOP, _WIDE, _HIGH = 56.0, 26.0, 270.0, 130.0
Series = Sequence[float | None]
WIDE, HIGH = 360.0, 240.0
"""Pixels of a panel's frame."""
(
    _LEARNING_CURVE_PLOTS_LEFT,
    _LEARNING_CURVE_PLOTS_ABOVE,
    _LEARNING_CURVE_PLOTS_RIGHT,
    _LEARNING_CURVE_PLOTS_BELOW,
    _LEARNING_CURVE_PLOTS_HEAD,
) = 66.0, 44.0, 22.0, 46.0, 34.0
_CAP = 4.0
_APART = 8.0
"""Pixels between the numbers of the axis across."""


@dataclass(frozen=True)
class FigurePanel:
    """A figure, at least 0: (rows, mean, standard deviation) a size, ascending; None where one is not defined."""

    name: str
    points: Sequence[tuple[int, float | None, float | None]]


def curve_plots(title: str, across: str, upwards: str, panels: Sequence[CurvePanel]) -> str:
    """Return the SVG text."""
    columns = min(_CURVE_PLOTS_COLUMNS, math.ceil(math.sqrt(len(panels))))
    wide, high = _CURVE_PLOTS_LEFT + SIDE + _CURVE_PLOTS_RIGHT, _CURVE_PLOTS_ABOVE + SIDE + _CURVE_PLOTS_BELOW
    width = max(_NARROWEST, columns * wide)
    drawing = Drawing(width, _CURVE_PLOTS_HEAD + math.ceil(len(panels) / columns) * high, title)
    drawing.text(16, 24, shortened(title, width - 32))
    for i, panel in enumerate(panels):
        left, top = i % columns * wide + _CURVE_PLOTS_LEFT, _CURVE_PLOTS_HEAD + i // columns * high + _CURVE_PLOTS_ABOVE
        bottom, right = top + SIDE, left + SIDE
        drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
        drawing.text(left, top - 8, f"↑ {upwards}", size=11)
        drawing.text(right, bottom + 34, f"{across} →", anchor="end", size=11)
        for tick in _CURVE_PLOTS_UNIT.ticks:
            x, y = _curve_plots_place(left, top, (tick, tick))
            drawing.line("faint", (x, bottom), (x, bottom + 4))
            drawing.line("faint", (left, y), (left - 4, y))
            drawing.text(x, bottom + 16, f"{tick:.4g}", anchor="middle", size=10)
            drawing.text(left - 7, y + 3.5, f"{tick:.4g}", anchor="end", size=10)
        # The label at the left, the remark at the right of one line.
        room = SIDE - (text_width(panel.remark, 11) + 12 if panel.remark else 0)
        drawing.text(left, top - 26, shortened(panel.name, room), tip=panel.name)
        if panel.remark:
            drawing.text(left + SIDE, top - 26, panel.remark, anchor="end", size=11)
        _draw_line(drawing, "dashed", left, top, panel.reference)
        _draw_line(drawing, "curve", left, top, panel.points)
        for point, tip in zip(panel.points, panel.tips, strict=False):
            drawing.dot(*_curve_plots_place(left, top, point), tip)
    return drawing.source()


def _curve_plots_place(left: float, top: float, point: tuple[float, float]) -> tuple[float, float]:
    x, y = map(_CURVE_PLOTS_UNIT.share, point)
    return left + SIDE * x, top + SIDE * (1 - y)


def _draw_line(drawing: Drawing, kind: Line, left: float, top: float, points: Sequence[tuple[float, float]]) -> None:
    if len(points) > 1:
        drawing.line(kind, *(_curve_plots_place(left, top, point) for point in points))


def scatter_plots(
    title: str, baseline: str, panels: Sequence[ScatterPanel], *, lower_is_better: bool, logarithmic: bool | None = None
) -> Drawing:
    """Return a panel a learner; where axes are to be `logarithmic`, all figures are positive."""
    columns = min(_SCATTER_COLUMNS, math.ceil(math.sqrt(len(panels))))
    wide, high = _SCATTER_LEFT + SIDE + _SCATTER_RIGHT, _SCATTER_ABOVE + SIDE + _SCATTER_BELOW
    drawing = Drawing(columns * wide, _SCATTER_HEAD + math.ceil(len(panels) / columns) * high, title)
    drawing.text(16, 24, shortened(title, columns * wide - 32))
    axis = axis_of([value for panel in panels for _, *pair in panel.points for value in pair], logarithmic)
    for i, panel in enumerate(panels):
        left, top = i % columns * wide + _SCATTER_LEFT, _SCATTER_HEAD + i // columns * high + _SCATTER_ABOVE
        _scatter_draw_frame(drawing, axis, left, top, panel.name, baseline)
        # Over the frame, where no point can lie; above the diagonal the learner's figure is the higher one.
        below, above = f"better {panel.better}", f"worse {panel.worse}"
        if not lower_is_better:
            below, above = above, below
        drawing.text(left, top - 8, f"↖ {above}", size=11)
        drawing.text(left + SIDE, top - 8, f"{below} ↘", anchor="end", size=11)
        if panel.equal:
            drawing.text(left + SIDE / 2, top - 8, f"equal {panel.equal}", anchor="middle", size=11)
        for data, across, upwards in panel.points:
            tip = f"{data}: {upwards:.6g} ({baseline}: {across:.6g})"
            drawing.dot(left + SIDE * axis.share(across), top + SIDE * (1 - axis.share(upwards)), tip)
    return drawing


def _scatter_draw_frame(drawing: Drawing, axis: Axis, left: float, top: float, name: str, baseline: str) -> None:
    bottom, right = top + SIDE, left + SIDE
    drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    drawing.line("dashed", (left, bottom), (right, top))
    drawing.text(left, top - 26, shortened(name, SIDE + _SCATTER_RIGHT), tip=name)
    across = shortened(f"{baseline} →", SIDE)
    drawing.text(right, bottom + 34, across, anchor="end", size=11, tip=baseline)
    for tick in axis.ticks:
        share = axis.share(tick)
        x, y = left + SIDE * share, bottom - SIDE * share
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.line("faint", (left, y), (left - 4, y))
        drawing.text(x, bottom + 16, f"{tick + 0.0:.4g}", anchor="middle", size=10)
        drawing.text(left - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)


def unit_curves(
    title: str, axes: tuple[str, str], curves: Sequence[Points], references: Sequence[Points], most: float = 1.0
) -> Drawing:
    """Return a curve and a dashed line a label, from 0 to 1 across and to `most` upwards; the first label is shown."""
    drawing = Drawing(WIDTH, TOP + UNIT_CURVES_SIDE + 40, title)
    upwards = _UNIT_CURVES_UNIT if most <= 1 else axis_of([0.0, most], logarithmic=False)
    _unit_curves_draw_frame(drawing, *axes, upwards)
    for number, (curve, reference) in enumerate(zip(curves, references, strict=True)):
        drawing.begin(label=number, shown=number == 0)
        for kind, points in (("dashed", reference), ("curve", curve)):
            if len(points) > 1:
                places = (f"{x:.1f} {y:.1f}" for x, y in (_unit_curves_place(point, upwards) for point in points))
                drawing.path(kind, "M" + "L".join(places))
        drawing.end()
    return drawing


def _unit_curves_draw_frame(drawing: Drawing, across: str, up: str, upwards: Axis) -> None:
    bottom, right = TOP + UNIT_CURVES_SIDE, LEFT + UNIT_CURVES_SIDE
    drawing.line("faint", (LEFT, TOP), (right, TOP), (right, bottom), (LEFT, bottom), (LEFT, TOP))
    drawing.text(LEFT, TOP - 9, f"↑ {up}", size=11)
    drawing.text(right, bottom + 34, f"{across} →", anchor="end", size=11)
    for tick in _UNIT_CURVES_UNIT.ticks:
        x, _ = _unit_curves_place((tick, 0.0), _UNIT_CURVES_UNIT)
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.text(x, bottom + 16, f"{tick:.4g}", anchor="middle", size=10)
    for tick in upwards.ticks:
        _, y = _unit_curves_place((0.0, tick), upwards)
        drawing.line("faint", (LEFT, y), (LEFT - 4, y))
        drawing.text(LEFT - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)


def _unit_curves_place(point: tuple[float, float], upwards: Axis) -> tuple[float, float]:
    return LEFT + UNIT_CURVES_SIDE * _UNIT_CURVES_UNIT.share(point[0]), TOP + UNIT_CURVES_SIDE * (
        1 - upwards.share(point[1])
    )


def reliability_dots(title: str, labels: Sequence[Sequence[tuple[float, float, float, str]]]) -> Drawing:
    """Dots (mean probability, share of rows, weight, words) of every label: the area of a dot is its weight."""
    drawing = Drawing(WIDTH, TOP + UNIT_CURVES_SIDE + 40, title)
    _unit_curves_draw_frame(drawing, "mean probability", "share of rows", _UNIT_CURVES_UNIT)
    corners = (_unit_curves_place((0.0, 0.0), _UNIT_CURVES_UNIT), _unit_curves_place((1.0, 1.0), _UNIT_CURVES_UNIT))
    drawing.line("dashed", *corners)
    for number, dots in enumerate(labels):
        drawing.begin(label=number, shown=number == 0)
        most = max((weight for *_, weight, _ in dots), default=1.0)
        for x, y, weight, words in dots:
            drawing.dot(
                *_unit_curves_place((x, y), _UNIT_CURVES_UNIT), words, radius=max(2.0, 6 * math.sqrt(weight / most))
            )
        drawing.end()
    return drawing


def series_curve(title: str, upwards: str, values: Series, dashed: Series, names: Sequence[str]) -> Drawing:
    """Return values and dashed (files,); `names` of the files are told when a dot is pointed at."""
    drawing = Drawing(SERIES_WIDTH, _TOP + _HIGH + 40, title)
    known = [value for value in (*values, *dashed) if value is not None]
    axis = axis_of(known if min(known, default=0.0) < 0 else [0.0, *known], logarithmic=False)
    bottom, right = _TOP + _HIGH, _SERIES_LEFT + _WIDE

    def place(number: int, value: float) -> tuple[float, float]:
        return _SERIES_LEFT + _WIDE * (number + 0.5) / len(values), _TOP + _HIGH * (1 - axis.share(value))

    drawing.line(
        "faint", (_SERIES_LEFT, _TOP), (right, _TOP), (right, bottom), (_SERIES_LEFT, bottom), (_SERIES_LEFT, _TOP)
    )
    drawing.text(_SERIES_LEFT, _TOP - 9, f"↑ {upwards}", size=11)
    drawing.text(right, bottom + 34, "file →", anchor="end", size=11)
    for tick in axis.ticks:
        _, y = place(0, tick)
        drawing.line("faint", (_SERIES_LEFT, y), (_SERIES_LEFT - 4, y))
        drawing.text(_SERIES_LEFT - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)
    for number in range(0, len(values), math.ceil(len(values) / 12)):
        x, _ = place(number, axis.low)
        drawing.line("faint", (x, bottom), (x, bottom + 4))
        drawing.text(x, bottom + 16, f"{number + 1}", anchor="middle", size=10)
    for part in _unbroken(dashed):
        ends = [place(i, value) for i, value in part]
        first, last = ends[0][0], ends[-1][0]
        half = _WIDE / len(values) / 2
        drawing.line("dashed", (first - half, ends[0][1]), *ends, (last + half, ends[-1][1]))
    for part in _unbroken(values):
        drawing.line("curve", *(place(i, value) for i, value in part))
        for i, value in part:
            drawing.dot(*place(i, value), f"{names[i]}: {value:.4g}")
    return drawing


def _unbroken(values: Series) -> list[list[tuple[int, float]]]:
    """Run of known numbers, each with its place."""
    runs: list[list[tuple[int, float]]] = [[]]
    for i, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((i, value))
    return [run for run in runs if run]


def learning_curve_plots(title: str, panels: Sequence[FigurePanel]) -> str:
    """Return the SVG text."""
    return learning_curve_drawing(title, panels).source()


def learning_curve_drawing(title: str, panels: Sequence[FigurePanel]) -> Drawing:
    """Return the same as a drawing."""
    width = len(panels) * (_LEARNING_CURVE_PLOTS_LEFT + WIDE + _LEARNING_CURVE_PLOTS_RIGHT)
    drawing = Drawing(
        width, _LEARNING_CURVE_PLOTS_HEAD + _LEARNING_CURVE_PLOTS_ABOVE + HIGH + _LEARNING_CURVE_PLOTS_BELOW, title
    )
    drawing.text(16, 24, shortened(title, width - 32))
    # The axis of the sizes, with numbers at those that do not crowd one another, the largest first.
    sizes = [rows for panel in panels for rows, _, _ in panel.points]
    low, high = float(min(sizes)), float(max(sizes))
    axis = Axis(low, high, True, ()) if low < high else Axis(low / 2, high * 2, True, ())
    ticks: list[float] = []
    end = WIDE + _LEARNING_CURVE_PLOTS_LEFT
    for size in sorted(set(sizes), reverse=True):
        x, half = WIDE * axis.share(size), text_width(f"{size:,}", 10) / 2
        if x + half <= end:
            ticks.append(size)
            end = x - half - _APART
    across = Axis(axis.low, axis.high, True, tuple(reversed(ticks)))
    for i, panel in enumerate(panels):
        _draw(
            drawing,
            i * (_LEARNING_CURVE_PLOTS_LEFT + WIDE + _LEARNING_CURVE_PLOTS_RIGHT) + _LEARNING_CURVE_PLOTS_LEFT,
            _LEARNING_CURVE_PLOTS_HEAD + _LEARNING_CURVE_PLOTS_ABOVE,
            across,
            panel,
        )
    return drawing


def _draw(drawing: Drawing, left: float, top: float, across: Axis, panel: FigurePanel) -> None:
    points = [(rows, mean, std or 0.0) for rows, mean, std in panel.points if mean is not None and math.isfinite(mean)]
    points = [(rows, mean, std if math.isfinite(std) else 0.0) for rows, mean, std in points]
    ends = [end for _, mean, std in points for end in (max(mean - std, 0.0), mean + std)]
    upwards = axis_of(ends, logarithmic=False)
    _learning_curve_plots_draw_frame(drawing, left, top, across, upwards, panel.name)

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


def _learning_curve_plots_draw_frame(
    drawing: Drawing, left: float, top: float, across: Axis, upwards: Axis, name: str
) -> None:
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
