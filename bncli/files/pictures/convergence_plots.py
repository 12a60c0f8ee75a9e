"""Plots of how fits converge: curves of the minimised value per table, and histograms of lags per name.

Each panel of curves has its own axes. The vertical axis is logarithmic if the values span enough; the axis of effort is
logarithmic if the largest effort is more than fifty times the smallest one above 0, with the start at its left end.
All histograms of a sheet share their axes. A bar is drawn above the lags that it counts, a dashed line at lag 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bncli.files.pictures.drawing import Axis, Drawing, Frame, PanelLayout, axis_of, shortened, text_width

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
class CurvesPanel:
    """A title, and curves by name: points (effort, value) with ascending efforts."""

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

    is_numbered: the horizontal axis counts items, from 1, instead of measuring effort from 0.
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
    """Return an axis from 0; a logarithmic one begins at half the smallest positive effort, which stands for 0.

    The axis of numbered items has ticks at whole numbers only.
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
