"""Plots of curves: ROC and similar curves, learning curves, convergence, and one value over several files.

- `curve_plots`: curves in the unit square, one panel per label, so that no curve needs a colour or a label of its own.
  The dashed line shows an uninformative classifier (ROC, precision-recall) or perfect calibration
  (reliability).
- `unit_curves`, `reliability_dots`: similar pictures for a page. One frame holds the curves or dots of all labels, and
  the page shows those of one label at a time.
- `learning_curve_plot`: one panel per metric over the number of training rows on a logarithmic axis. Error bars of one
  standard deviation do not extend below 0, since the metrics are not negative. All panels share the axis of rows.
- `series_plot`: dots and a line from file to file, or from block to block, and a dashed line for comparison. Files
  have equal space and are numbered from 1; the vertical axis starts at 0 unless a value is negative. Unknown values
  interrupt the line.
- `convergence_plots`: curves of the minimised value over effort, one panel with its own axes per table. The vertical
  axis is logarithmic if all values are positive and the largest is more than four times the smallest. The axis of
  effort is logarithmic if the largest effort is more than fifty times the smallest one above 0; effort 0 is then
  drawn at its left end. The horizontal axis can also show the numbers of items, instead of effort.
- `lag_histograms`: one histogram of lags per name, all with the same axes. Each bar stands above the lags that it
  counts, and a dashed line marks lag 0.

Text is placed outside the frames.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bncli.files.pictures.drawing import INSIDE, Axis, Drawing, Frame, PanelLayout, axis_of, shortened, text_width

Points = Sequence[tuple[float, float]]
Series = Sequence[float | None]

PANELS = PanelLayout(width=200.0, height=200.0, left=62.0, above=58.0, right=18.0, below=46.0, columns=4)
_NARROWEST = 460.0
"""The minimum width of a sheet, so that its title fits."""
_UNIT = Axis(0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))

_PAGE_WIDTH, _PAGE_SIDE, _PAGE_LEFT, _PAGE_TOP = 340.0, 240.0, 56.0, 26.0
UNIT_FRAME = (_PAGE_LEFT, _PAGE_TOP, _PAGE_SIDE, INSIDE)
"""The frame of `unit_curves`: left, top and side in pixels, and the margin inside it as a fraction of the side.

page.js uses it to draw the point of a threshold.
"""
_SERIES_WIDTH, _SERIES_HEIGHT = 270.0, 130.0

METRIC_PANELS = PanelLayout(width=360.0, height=240.0, left=66.0, above=44.0, right=22.0, below=46.0, columns=2)
_CAP = 4.0
"""Half the width, in pixels, of the ends of an error bar."""
_TICK_GAP = 8.0
"""The minimum distance, in pixels, between the labels of ticks."""
_PANELS = PanelLayout(width=300.0, height=200.0, left=74.0, above=44.0, right=20.0, below=46.0, columns=3)
_HEAD = 34.0
"""The height of the title of a sheet, in pixels."""
_LOG_SPAN = 50.0
"""The ratio of the largest to the smallest effort above which their axis is logarithmic."""
_SWATCH = 26.0
"""The width, in pixels, of the room for the line beside a name in the legend."""
_LEGEND_ROW = 20.0
_MOST_BARS = 40


@dataclass(frozen=True)
class CurvePanel:
    """A label, a remark beside it, the points of its curve and of the dashed line, and a tip per point, if any.

    Points with tips are also drawn as dots.
    """

    name: str
    remark: str
    points: Points
    reference: Points
    tips: Sequence[str] = ()


@dataclass(frozen=True)
class MetricPanel:
    """A non-negative metric: (rows, mean, standard deviation) in ascending order of rows; unknown values are None."""

    name: str
    points: Sequence[tuple[int, float | None, float | None]]


def curve_plots(title: str, across: str, upwards: str, panels: Sequence[CurvePanel]) -> Drawing:
    """Draw one panel per label, with its curve, its dashed line and its dots."""
    drawing, frames = PANELS.sheet(title, len(panels), narrowest=_NARROWEST)
    for frame, panel in zip(frames, panels, strict=True):
        left, top, right, bottom = frame.left, frame.top, frame.left + frame.width, frame.top + frame.height
        frame.outline()
        drawing.text(left, top - 8, f"↑ {upwards}", size=11)
        drawing.text(right, bottom + 34, f"{across} →", anchor="end", size=11)
        for tick in _UNIT.ticks:
            x, y = frame.place(_UNIT.share(tick), _UNIT.share(tick))
            drawing.line("faint", (x, bottom), (x, bottom + 4))
            drawing.line("faint", (left, y), (left - 4, y))
            drawing.text(x, bottom + 16, f"{tick:.4g}", anchor="middle", size=10)
            drawing.text(left - 7, y + 3.5, f"{tick:.4g}", anchor="end", size=10)
        room = frame.width - (text_width(panel.remark, 11) + 12 if panel.remark else 0)
        drawing.text(left, top - 26, shortened(panel.name, room), tip=panel.name)
        if panel.remark:
            drawing.text(right, top - 26, panel.remark, anchor="end", size=11)
        points = [frame.place(_UNIT.share(x), _UNIT.share(y)) for x, y in panel.points]
        reference = [frame.place(_UNIT.share(x), _UNIT.share(y)) for x, y in panel.reference]
        if len(reference) > 1:
            drawing.line("dashed", *reference)
        if len(points) > 1:
            drawing.line("curve", *points)
        for point, tip in zip(points, panel.tips, strict=False):
            drawing.dot(*point, tip)
    return drawing


def unit_curves(
    title: str, axes: tuple[str, str], curves: Sequence[Points], references: Sequence[Points], most: float = 1.0
) -> Drawing:
    """Draw a curve and a dashed line per label, over x from 0 to 1, with y from 0 to max(1, `most`)."""
    upwards = _UNIT if most <= 1 else axis_of([0.0, most], logarithmic=False)
    frame = _page_frame(title, *axes, upwards)
    for label, (curve, reference) in enumerate(zip(curves, references, strict=True)):
        with frame.drawing.label_group(label):
            for kind, points in (("dashed", reference), ("curve", curve)):
                if len(points) > 1:
                    pixels = [frame.place(_UNIT.share(x), upwards.share(y)) for x, y in points]
                    frame.drawing.path(kind, "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in pixels))
    return frame.drawing


def reliability_dots(title: str, labels: Sequence[Sequence[tuple[float, float, float, str]]]) -> Drawing:
    """Draw dots (mean predicted probability, observed frequency, weight, tip) per label.

    The area of a dot is proportional to its weight, but a dot has a minimum size.
    """
    frame = _page_frame(title, "mean predicted probability", "observed frequency", _UNIT)
    ends = (_UNIT.share(0.0), _UNIT.share(1.0))
    frame.drawing.line("dashed", *(frame.place(end, end) for end in ends))
    for label, dots in enumerate(labels):
        with frame.drawing.label_group(label):
            most = max((weight for *_, weight, _ in dots), default=1.0)
            for x, y, weight, tip in dots:
                radius = max(2.0, 6 * math.sqrt(weight / most))
                frame.drawing.dot(*frame.place(_UNIT.share(x), _UNIT.share(y)), tip, radius=radius)
    return frame.drawing


def _page_frame(title: str, across: str, up: str, upwards: Axis) -> Frame:
    """Start a drawing for a page, and return its frame with axes and their names."""
    drawing = Drawing(_PAGE_WIDTH, _PAGE_TOP + _PAGE_SIDE + 40, title)
    frame = Frame(drawing, _PAGE_LEFT, _PAGE_TOP, _PAGE_SIDE, _PAGE_SIDE)
    frame.outline()
    drawing.text(_PAGE_LEFT, _PAGE_TOP - 9, f"↑ {up}", size=11)
    drawing.text(_PAGE_LEFT + _PAGE_SIDE, _PAGE_TOP + _PAGE_SIDE + 34, f"{across} →", anchor="end", size=11)
    for tick in _UNIT.ticks:
        frame.tick_below(frame.place(_UNIT.share(tick), 0.0)[0], f"{tick:.4g}")
    for tick in upwards.ticks:
        frame.tick_left(frame.place(0.0, upwards.share(tick))[1], f"{tick + 0.0:.4g}")
    return frame


def learning_curve_plot(title: str, panels: Sequence[MetricPanel]) -> Drawing:
    """Draw learning curves, one panel per metric, two panels to a row."""
    drawing, frames = METRIC_PANELS.sheet(title, len(panels))
    sizes = [rows for panel in panels for rows, _, _ in panel.points]
    low, high = float(min(sizes)), float(max(sizes))
    across = Axis(low, high, True, ()) if low < high else Axis(low / 2, high * 2, True, ())
    # the ticks are sizes, from the largest down, as long as their numbers do not touch
    ticks: list[int] = []
    end = METRIC_PANELS.width + METRIC_PANELS.left
    for size in sorted(set(sizes), reverse=True):
        x, half = METRIC_PANELS.width * across.share(size), text_width(f"{size:,}", 10) / 2
        if x + half <= end:
            ticks.insert(0, size)
            end = x - half - _TICK_GAP
    for frame, panel in zip(frames, panels, strict=True):
        bottom, right = frame.top + frame.height, frame.left + frame.width
        points = [
            (rows, mean, std or 0.0) for rows, mean, std in panel.points if mean is not None and math.isfinite(mean)
        ]
        points = [(rows, mean, std if math.isfinite(std) else 0.0) for rows, mean, std in points]
        extents = [end for _, mean, std in points for end in (max(mean - std, 0.0), mean + std)]
        upwards = axis_of(extents, logarithmic=False)
        frame.outline()
        drawing.text(frame.left, frame.top - 10, f"↑ {panel.name}")
        drawing.text(right, bottom + 34, "training rows →", anchor="end", size=11)
        for tick in ticks:
            frame.tick_below(frame.left + frame.width * across.share(tick), f"{tick:,.0f}")
        for value in upwards.ticks:
            frame.tick_left(bottom - frame.height * upwards.share(value), f"{value + 0.0:.4g}")
        for rows, mean, std in points:
            if std > 0:
                x, below = frame.place(across.share(rows), upwards.share(max(mean - std, 0.0)))
                _, above = frame.place(across.share(rows), upwards.share(mean + std))
                drawing.line("ink", (x, below), (x, above))
                for y in (below, above):
                    drawing.line("ink", (x - _CAP, y), (x + _CAP, y))
        pixels = [frame.place(across.share(rows), upwards.share(mean)) for rows, mean, _ in points]
        if len(pixels) > 1:
            drawing.line("curve", *pixels)
        for place, (rows, mean, std) in zip(pixels, points, strict=True):
            spread = f" (standard deviation {std:.2g})" if std > 0 else ""
            drawing.dot(*place, f"{rows:,} rows: {panel.name} {mean:.6g}{spread}")
    return drawing


def series_plot(
    title: str,
    upwards: str,
    values: Series,
    dashed: Series,
    names: Sequence[str],
    *,
    across: str = "file",
    intervals: Sequence[tuple[float, float] | None] = (),
) -> Drawing:
    """Draw a dot per value, joined by a line, and a dashed line; the tip of a dot has its file's name and its value.

    across: the name of the horizontal axis. intervals: the lower and upper end of each error bar; None draws no bar.
    """
    drawing = Drawing(_PAGE_WIDTH, _PAGE_TOP + _SERIES_HEIGHT + 40, title)
    frame = Frame(drawing, _PAGE_LEFT, _PAGE_TOP, _SERIES_WIDTH, _SERIES_HEIGHT)
    bars = [(i, *ends) for i, ends in enumerate(intervals) if ends is not None]
    known = [value for value in (*values, *dashed, *(end for bar in bars for end in bar[1:])) if value is not None]
    axis = axis_of(known if min(known, default=0.0) < 0 else [0.0, *known], logarithmic=False)
    xs = [_PAGE_LEFT + _SERIES_WIDTH * (number + 0.5) / len(values) for number in range(len(values))]
    frame.outline()
    drawing.text(_PAGE_LEFT, _PAGE_TOP - 9, f"↑ {upwards}", size=11)
    drawing.text(_PAGE_LEFT + _SERIES_WIDTH, _PAGE_TOP + _SERIES_HEIGHT + 34, f"{across} →", anchor="end", size=11)
    for tick in axis.ticks:
        frame.tick_left(frame.place(0.0, axis.share(tick))[1], f"{tick + 0.0:.4g}")
    for number in range(0, len(values), math.ceil(len(values) / 12)):
        frame.tick_below(xs[number], f"{number + 1}")
    for run in _runs_of_known_values(dashed):
        pixels = [(xs[i], frame.place(0.0, axis.share(value))[1]) for i, value in run]
        half = _SERIES_WIDTH / len(values) / 2
        # half a step farther at both ends, so that a run of one file is visible too
        drawing.line("dashed", (pixels[0][0] - half, pixels[0][1]), *pixels, (pixels[-1][0] + half, pixels[-1][1]))
    for i, low, high in bars:
        ends = [frame.place(0.0, axis.share(end))[1] for end in (low, high)]
        drawing.line("ink", *((xs[i], y) for y in ends))
        for y in ends:
            drawing.line("ink", (xs[i] - _CAP, y), (xs[i] + _CAP, y))
    for run in _runs_of_known_values(values):
        pixels = [(xs[i], frame.place(0.0, axis.share(value))[1]) for i, value in run]
        drawing.line("curve", *pixels)
        for place, (i, value) in zip(pixels, run, strict=True):
            drawing.dot(*place, f"{names[i]}: {value:.4g}")
    return drawing


def _runs_of_known_values(values: Series) -> list[list[tuple[int, float]]]:
    """Split the values at unknown ones (None) into runs of pairs (position, value)."""
    runs: list[list[tuple[int, float]]] = [[]]
    for i, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((i, value))
    return [run for run in runs if run]


@dataclass(frozen=True)
class CurvesPanel:
    """A title and, per name, a curve: points (effort, value) with ascending efforts."""

    title: str
    curves: Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class HistogramPanel:
    """A title, a remark beside it, and the lags to count."""

    title: str
    remark: str
    lags: Sequence[int]


def convergence_plots(
    title: str,
    across: str,
    upwards: str,
    names: Sequence[str],
    panels: Sequence[CurvesPanel],
    *,
    is_numbered: bool = False,
) -> Drawing:
    """Draw one panel of curves per table; a name has the same colour and dashes in all panels and in the legend.

    names: at most SERIES. is_numbered: whether the horizontal axis shows the numbers of items instead of effort.
    """
    width = _PANELS.sheet_width(len(panels))
    # names of the legend side by side as far as there is room
    legend: list[tuple[float, int]] = []
    x, row = 16.0, 0
    for name in names:
        needed = _SWATCH + text_width(name, 11) + 18
        if x > 16 and x + needed > width:
            x, row = 16.0, row + 1
        legend.append((x, row))
        x += needed
    drawing, frames = _PANELS.sheet(title, len(panels), head=_HEAD + _LEGEND_ROW * (1 + row))
    for number, (name, (x, row)) in enumerate(zip(names, legend, strict=True)):
        y = _HEAD + _LEGEND_ROW * row + 10
        drawing.series(number, (x, y - 4), (x + _SWATCH - 6, y - 4))
        drawing.text(x + _SWATCH, y, shortened(name, width - 2 * _SWATCH - 32, 11), size=11, tip=name)
    for frame, panel in zip(frames, panels, strict=True):
        points = [point for curve in panel.curves.values() for point in curve]
        effort_axis, value_axis = (
            _effort_axis([effort for effort, _ in points], is_numbered),
            axis_of([value for _, value in points]),
        )
        _draw_axes(frame, effort_axis, value_axis, panel.title, "", across, upwards)
        for name, curve in panel.curves.items():
            # a logarithmic axis has effort 0 at its left end
            pixels = [
                frame.place(effort_axis.share(max(effort, effort_axis.low)), value_axis.share(value))
                for effort, value in curve
            ]
            drawing.series(names.index(name), *pixels, *(pixels if len(pixels) == 1 else ()))
    return drawing


def lag_histograms(title: str, panels: Sequence[HistogramPanel]) -> Drawing:
    """Draw one histogram of lags per panel."""
    drawing, frames = _PANELS.sheet(title, len(panels))
    lags = [0, *(lag for panel in panels for lag in panel.lags)]
    # 1, 2 or 5 times a power of ten lags share a bar, so that there are not too many bars
    steps = (factor * int(10.0**power) for power in range(18) for factor in (1, 2, 5))
    step = next(step for step in steps if max(lags) - min(lags) <= step * _MOST_BARS)
    histograms = [Counter(step * math.floor(lag / step) for lag in panel.lags) for panel in panels]
    across = axis_of([min(lags) - 0.5, max(lags) + step - 0.5])
    upwards = axis_of([0.0, float(max((n for bars in histograms for n in bars.values()), default=1))])
    for frame, panel, bars in zip(frames, panels, histograms, strict=True):
        _draw_axes(frame, across, upwards, panel.title, panel.remark, "lag (iterations)", "tables")
        zero = frame.place(across.share(0.0), upwards.share(0.0))
        for first, n in sorted(bars.items()):
            left, top = frame.place(across.share(max(first - 0.5, across.low)), upwards.share(float(n)))
            right, _ = frame.place(across.share(first + step - 0.5), 0.0)
            counted = f"{first}" if step == 1 else f"{first} to {first + step - 1}"
            drawing.bar(left, top, right - left, zero[1] - top, f"{counted}: {n}")
        drawing.line("faint", (frame.left, zero[1]), (frame.left + frame.width, zero[1]))
        drawing.line("dashed", zero, (zero[0], frame.place(0.0, upwards.share(upwards.high))[1]))
    return drawing


def _effort_axis(efforts: Sequence[float], is_numbered: bool) -> Axis:
    """Return the axis of efforts, which is logarithmic if positive efforts span a ratio above _LOG_SPAN.

    A linear axis starts at 0. A logarithmic axis starts at the smallest positive effort, or at half of it if an effort
    is 0; the left end then stands for 0. The axis of numbered items is linear, with ticks at integers only.
    """
    if is_numbered:
        axis = axis_of(efforts, False)
        return replace(axis, ticks=tuple(tick for tick in axis.ticks if tick == round(tick)))
    positive = [effort for effort in efforts if effort > 0]
    if not positive or max(positive) <= _LOG_SPAN * min(positive):
        return axis_of([0.0, *efforts])
    axis = axis_of(positive)
    return replace(axis, low=axis.low / 2) if len(positive) < len(efforts) else axis


def _draw_axes(
    frame: Frame, across: Axis, upwards: Axis, title: str, remark: str, across_name: str, upwards_name: str
) -> None:
    drawing, right = frame.drawing, frame.left + frame.width
    frame.outline()
    room = frame.width - (text_width(remark, 11) + 12 if remark else 0)
    drawing.text(frame.left, frame.top - 24, shortened(title, room), tip=title)
    drawing.text(right, frame.top - 24, remark, anchor="end", size=11)
    drawing.text(frame.left, frame.top - 8, f"↑ {upwards_name}", size=11)
    drawing.text(right, frame.top + frame.height + 34, f"{across_name} →", anchor="end", size=11)
    start = [0.0] if across.logarithmic and across.ticks[0] >= 2 * across.low else []
    for tick in (*start, *across.ticks):
        frame.tick_below(frame.place(across.share(max(tick, across.low)), 0.0)[0], f"{tick + 0.0:,.6g}")
    for tick in upwards.ticks:
        frame.tick_left(frame.place(0.0, upwards.share(tick))[1], f"{tick + 0.0:,.6g}")
