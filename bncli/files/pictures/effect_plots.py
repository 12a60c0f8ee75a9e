"""Pictures of effects (steps and bars of single attributes, heat maps of pairs, nomograms), and confusion matrices.

- `effect_steps`, `effect_bars`: the effect of every value of an attribute, with its training weight. Numeric intervals
  are drawn to scale, linear or logarithmic, unless they differ too much in width; then they are equally wide. The
  numbers under the steps are those cuts for which there is room. A band around the steps, or a thin line on a bar,
  shows the uncertainty. The caller supplies the axis, so that all classes of a model can share it.
- `heat_map`: the cells of a table of two attributes, with the effects of the single attributes along its edges. There
  are eleven shades, blue above 0 and vermilion below, and all cells of a shade are drawn as one path.
- `nomogram`: a scale from which the points of every value are read. The reader adds them by hand, and reads off the
  probability for their sum (Lubsen et al. 1978).
- `confusion_map`: a confusion matrix as shades.
- `share_bars`: bars from 0, each with its text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from bncli.engine.kernels.arrays import Array
from bncli.files.pictures.drawing import SHADES, Axis, Drawing, Frame, axis_of, shortened, text_width

_WIDTH = 340.0
"""The width of a picture in pixels; it fits a small phone."""
STEPS_FRAME = (44.0, 16.0, 286.0, 130.0)
"""Left, top, width and height of the frame of steps; page.js uses it to redraw them for another class."""
LEAST_INTERVAL = 0.2
"""Intervals are drawn to scale only if the narrowest has at least this fraction of the mean width."""
_WEIGHTS_HEIGHT = 22.0
"""The height, in pixels, of the training weights under steps."""
BARS_FRAME = (112.0, 170.0)
"""The left edge and the width, in pixels, of the area of the bars; the names are to the left of it."""
_ROW, _BAR = 17.0, 9.0
"""The heights, in pixels, of a row and of the bar in it."""
_WEIGHTS_WIDTH = 40.0
_HEAD = 22.0
_MOST_NAMES = 250.0
"""The maximum width, in pixels, of the names beside the bars of `share_bars`."""

MAP_LEFT, MAP_TOP, MAP_SIDE = 96.0, 30.0, 200.0
MAP_EDGE = 14.0
"""The thickness, in pixels, of the edges of a heat map that show the single attributes."""
_UPRIGHT = 78.0
"""The maximum length, in pixels, of upright names under a heat map."""
_MOST_TIPS = 64
"""The maximum number of labels of a confusion matrix, or of intervals, for which tips are shown."""

_NOMOGRAM_WIDTH, _NOMOGRAM_NAMES, _NOMOGRAM_RIGHT, _NOMOGRAM_ROW = 760.0, 150.0, 24.0, 38.0
_THOUSANDTHS = (1, 3, 10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 980, 990, 997, 999)
"""Probabilities on a nomogram in thousandths; they also limit the range of the sums of points."""


class ValueEffect(NamedTuple):
    """A value: its name, its log-odds with lower and upper bounds, and its fraction of the training weight."""

    name: str
    value: float
    low: float
    high: float
    weight: float


@dataclass(frozen=True)
class HeatAxis:
    """An attribute, the names of its values, and its single-attribute effects (values,), or None if it has none."""

    name: str
    values: Sequence[str]
    single: Array | None


class Scale(NamedTuple):
    """An attribute of a nomogram: (name, log-odds or points) per value."""

    name: str
    values: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class NomogramPoints:
    """The content of a nomogram: scales in points, the maximum sum, and pairs (probability, sum of points)."""

    scales: Sequence[Scale]
    total: float
    sums: Sequence[tuple[float, float]]


def interval_edges(cuts: Sequence[float], n_values: int) -> list[float]:
    """Return the edges of the intervals between cuts, and of a missing value if any, as fractions of the width.

    The scale is linear or logarithmic, whichever makes the narrowest interval wider. All intervals are equally wide if
    there are only one or two, or if the narrowest would have less than LEAST_INTERVAL of the mean width. The outer
    intervals, which are unbounded, have the mean width.
    """
    equal = [i / n_values for i in range(n_values + 1)]
    n = len(cuts) + 1
    if n < 3:
        return equal
    scales = [list(cuts)] + ([[math.log(cut) for cut in cuts]] if cuts[0] > 0 else [])
    shares = [[(x - scale[0]) / ((scale[-1] - scale[0]) or 1.0) for x in scale] for scale in scales]
    narrowest = [min(right - left for left, right in pairwise(own)) for own in shares]
    best = max(range(len(scales)), key=lambda i: narrowest[i])
    if narrowest[best] * (n - 2) < LEAST_INTERVAL:
        return equal
    outer = 1 / n
    inner = [outer + (1 - 2 * outer) * share for share in shares[best]]
    return [edge * n / n_values for edge in (0.0, *inner, 1.0)] + equal[n + 1 :]


def effect_steps(
    title: str, values: Sequence[ValueEffect], cuts: Sequence[str], axis: Axis, edges: Sequence[float], across: str
) -> Drawing:
    """Draw the effects of intervals as steps, with the cuts between them and the missing value, if any, last.

    edges: the edges of the intervals, as fractions of the width (`interval_edges`). across: the name below the axis. No
    band is drawn if all bounds are equal to the values.
    """
    left, top, width, height = STEPS_FRAME
    xs = [left + width * edge for edge in edges]
    right, floor = left + width, top + height + 6 + _WEIGHTS_HEIGHT
    drawing = Drawing(_WIDTH, floor + 30, title)
    frame = Frame(drawing, left, top, width, height)
    frame.outline()
    for tick in axis.ticks:
        frame.tick_left(frame.place(0.0, axis.share(tick))[1], f"{tick + 0.0:.4g}")
    drawing.text(4, 9, "↑ log-odds", size=10)
    _, zero = frame.place(0.0, axis.share(0.0))
    drawing.line("dashed", (left, zero), (right, zero))
    # the band runs along its upper side and back along its lower side
    if any(effect.low < effect.high for effect in values):
        band = _step_outline([axis.share(effect.high) for effect in values], xs)
        for i in range(len(values) - 1, -1, -1):
            y = top + height * (1 - min(max(axis.share(values[i].low), 0.0), 1.0))
            band += f"V{y:.1f}H{xs[i]:.1f}"
        drawing.path("band", f"{band}Z")
    drawing.path("curve", _step_outline([axis.share(effect.value) for effect in values], xs))
    most = max((effect.weight for effect in values), default=0.0) or 1.0
    if len(values) > _MOST_TIPS:
        # one path for all, which has no tips
        heights = [_WEIGHTS_HEIGHT * effect.weight / most for effect in values]
        bars = (f"M{xs[i]:.1f} {floor:.1f}v-{high:.1f}H{xs[i + 1]:.1f}V{floor:.1f}" for i, high in enumerate(heights))
        drawing.path("weight", "".join(bars))
    for i, effect in enumerate(values if len(values) <= _MOST_TIPS else ()):
        high = _WEIGHTS_HEIGHT * effect.weight / most
        tip = f"{effect.name}: {effect.value:+.3g} ({100 * effect.weight:.3g}% of rows)"
        drawing.bar(xs[i] + 0.5, floor - high, max(xs[i + 1] - xs[i] - 1, 0.5), high, tip, kind="weight")
    end = left - 20
    for i, cut in enumerate(cuts, 1):
        x, half = xs[i], text_width(cut, 10) / 2
        if x - half > end + 4 and x + half < _WIDTH:
            drawing.line("faint", (x, floor), (x, floor + 4))
            drawing.text(x, floor + 15, cut, anchor="middle", size=10)
            end = x + half
    drawing.text(right, floor + 27, shortened(f"{across} →", width, 10), anchor="end", size=10, tip=across)
    return drawing


def _step_outline(shares: Sequence[float], xs: Sequence[float]) -> str:
    """Return the SVG path of steps at these fractions of the height between the pixels `xs`; page.js does the same."""
    _, top, _, height = STEPS_FRAME
    heights = [top + height * (1 - min(max(share, 0.0), 1.0)) for share in shares]
    moves = (f"V{y:.1f}H{xs[i + 1]:.1f}" for i, y in enumerate(heights))
    return f"M{xs[0]:.1f} {heights[0]:.1f}" + "".join(moves)


def effect_bars(title: str, values: Sequence[ValueEffect], axis: Axis) -> Drawing:
    """Draw one row per value, with a bar to the left of 0 if the effect is negative and to the right otherwise."""
    left, width = BARS_FRAME
    bottom = _HEAD + _ROW * len(values)
    drawing = Drawing(_WIDTH, bottom + 8, title)
    for tick in axis.ticks:
        x = left + width * axis.share(tick)
        drawing.line("dashed" if tick else "ink", (x, _HEAD - 4), (x, bottom))
        drawing.text(x, _HEAD - 8, f"{tick + 0.0:.4g}", anchor="middle", size=10)
    drawing.text(4, _HEAD - 8, "log-odds →", size=10)
    drawing.text(_WIDTH - 2, _HEAD - 8, "rows", anchor="end", size=10)
    zero, most = axis.share(0.0), max((effect.weight for effect in values), default=0.0) or 1.0
    for i, (name, value, low, high, weight) in enumerate(values):
        top, share = _HEAD + _ROW * i + (_ROW - _BAR) / 2, axis.share(value)
        drawing.text(left - 6, top + _BAR, shortened(name, left - 8, 11), anchor="end", size=11, tip=name)
        start, length = left + width * min(zero, share), max(width * abs(share - zero), 0.5)
        drawing.bar(start, top, length, _BAR, f"{name}: {value:+.3g}", kind="raise" if value >= 0 else "lower")
        ends = [left + width * min(max(axis.share(bound), 0.0), 1.0) for bound in (low, high)]
        if low < high:
            drawing.path("bound", f"M{ends[0]:.1f} {top + _BAR / 2:.1f}H{ends[1]:.1f}")
        tip = f"{100 * weight:.3g}% of rows"
        drawing.bar(left + width + 10, top, _WEIGHTS_WIDTH * weight / most, _BAR, tip, kind="weight")
    return drawing


def share_bars(title: str, rows: Sequence[tuple[Sequence[str], float]], texts: Sequence[str]) -> Drawing:
    """Draw one bar per row, starting at 0, with its text to the right of it.

    A row (names, value) has one name or several joined by `&`, which are shortened to equal parts if there is no room.
    """
    names_width = min(max((text_width(" & ".join(names), 11) for names, _ in rows), default=0.0) + 8, _MOST_NAMES)
    bars_width, room = 130.0, names_width - 8
    texts_width = max((text_width(text, 11) for text in texts), default=0.0)
    drawing = Drawing(names_width + bars_width + texts_width + 12, _ROW * len(rows) + 8, title)
    most = max((value for _, value in rows), default=0.0) or 1.0
    for i, ((names, value), text) in enumerate(zip(rows, texts, strict=True)):
        top = _ROW * i + (_ROW - _BAR) / 2 + 2
        name = label = " & ".join(names)
        if text_width(name, 11) > room:
            part = max((room - (len(names) - 1) * text_width(" & ", 11)) / len(names), 24.0)
            label = shortened(" & ".join(shortened(one, part, 11) for one in names), room, 11)
        drawing.text(names_width - 6, top + _BAR, label, anchor="end", size=11, tip=name)
        length = bars_width * value / most
        drawing.bar(names_width, top, max(length, 0.5), _BAR, f"{name}: {text}", kind="raise")
        drawing.text(names_width + length + 6, top + _BAR, text, size=11)
    return drawing


def heat_map(title: str, down: HeatAxis, across: HeatAxis, cells: Array) -> Drawing:
    """Draw cells (values down, values across) as shades; cells and edges share one scale (see `heat_scale`)."""
    n_down, n_across = cells.shape
    wide, high = MAP_SIDE / n_across, MAP_SIDE / n_down
    fits = all(text_width(name, 10) + 4 <= wide for name in across.values)
    names_height = 14.0 if fits else _upright_height(across.values)
    drawing = Drawing(_WIDTH, MAP_TOP + MAP_EDGE + MAP_SIDE + names_height + 20, title)
    scale = heat_scale(cells, down.single, across.single)
    left, top = MAP_LEFT, MAP_TOP + MAP_EDGE + 4
    right, bottom = left + MAP_SIDE, top + MAP_SIDE
    _draw_shades(drawing, cells / scale, left, top, wide, high)
    if across.single is not None:
        _draw_shades(drawing, across.single[None, :] / scale, left, MAP_TOP, wide, MAP_EDGE)
    if down.single is not None:
        _draw_shades(drawing, down.single[:, None] / scale, right + 4, top, MAP_EDGE, high)
    drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    for i in _spaced_positions(n_down, high):
        name, y = down.values[i], top + (i + 0.5) * high + 3
        drawing.text(left - 5, y, shortened(name, left - 10, 10), anchor="end", size=10, tip=name)
    for j in range(n_across) if fits else _spaced_positions(n_across, wide):
        name, x = across.values[j], left + (j + 0.5) * wide
        if fits:
            drawing.text(x, bottom + 12, name, anchor="middle", size=10)
        else:
            label = shortened(name, _UPRIGHT, 10)
            drawing.text(x + 3, bottom + 6, label, anchor="end", size=10, tip=name, upright=True)
    drawing.text(4, 14, shortened(f"↓ {down.name}", 150, 11), size=11, tip=down.name)
    drawing.text(_WIDTH - 4, 14, shortened(f"{across.name} →", 170, 11), anchor="end", size=11, tip=across.name)
    drawing.text(_WIDTH - 4, drawing.height - 4, f"darkest colour: ±{scale:.2g} log-odds", anchor="end", size=10)
    return drawing


def _upright_height(names: Sequence[str]) -> float:
    return min(_UPRIGHT, max((text_width(name, 10) for name in names), default=0.0)) + 10


def _spaced_positions(n: int, room: float) -> range:
    """Return the indices of the names to write, at least 12 pixels apart; each of the n names has `room` pixels."""
    return range(0, n, max(1, -int(-12 // room)))


def heat_scale(*numbers: Array | None) -> float:
    """Return the largest absolute value in all arrays, or 1 if it is 0 or there is none."""
    return max((float(abs(array).max(initial=0.0)) for array in numbers if array is not None), default=0.0) or 1.0


def _draw_shades(drawing: Drawing, shares: Array, left: float, top: float, wide: float, high: float) -> None:
    """Draw one path per shade around all its cells of `wide` times `high` pixels; `shares` are from -1 to 1."""
    outlines: dict[str, list[str]] = {}
    for i, row in enumerate(shares.tolist()):
        first = 0
        for level, run in groupby(round(SHADES * share) for share in row):
            n = len(list(run))
            if level:
                corner = f"M{left + first * wide:.1f} {top + i * high:.1f}"
                outline = f"{corner}h{n * wide:.1f}v{high:.1f}h-{n * wide:.1f}z"
                outlines.setdefault(f"p{level}" if level > 0 else f"n{-level}", []).append(outline)
            first += n
    for shade, cells in sorted(outlines.items()):
        drawing.path(shade, "".join(cells))


def confusion_map(labels: Sequence[str], confusion: Sequence[Sequence[float]]) -> Drawing:
    """Draw the confusion matrix: fractions of each true label, blue if predicted correctly and vermilion if not.

    The darkest vermilion is the largest fraction of wrong predictions in a single cell.
    """
    n = len(labels)
    wrong = [count / (sum(row) or 1.0) for i, row in enumerate(confusion) for j, count in enumerate(row) if i != j]
    most = max(wrong, default=0.0) or 1.0
    side, left, top = min(26.0, max(10.0, 620.0 / n)), 100.0, 20.0
    drawing = Drawing(left + n * side + 30, top + n * side + _upright_height(labels), "Confusion matrix")
    for i, (label, row) in enumerate(zip(labels, confusion, strict=True)):
        total, y = sum(row) or 1.0, top + i * side
        drawing.text(left - 5, y + side / 2 + 3, shortened(label, left - 10, 10), anchor="end", size=10, tip=label)
        for j, count in enumerate(row):
            share = count / total / (1.0 if i == j else most)
            if count:
                # every count has a shade, however small
                level = min(SHADES, max(1, math.ceil(SHADES * share - 1e-9)))
                tip = f"{label} predicted as {labels[j]}: {count:,.10g}" if n <= _MOST_TIPS and i != j else ""
                shade = f"p{level}" if i == j else f"n{level}"
                drawing.bar(left + j * side, y, side - 1, side - 1, tip, kind=shade)
        x, name = left + (i + 0.5) * side + 3, shortened(label, _UPRIGHT, 10)
        drawing.text(x, top + n * side + 6, name, anchor="end", size=10, tip=label, upright=True)
    drawing.text(4, 13, "↓ true", size=11)
    drawing.text(left + n * side, 13, "predicted →", anchor="end", size=11)
    return drawing


def nomogram_points(scales: Sequence[Scale], base: float) -> NomogramPoints:
    """Scale log-odds to points for a nomogram, so that the attribute with the widest range has 0 to 100 points.

    `base` is the part of the log-odds that belongs to no attribute.
    """
    lows = [min(value for _, value in scale.values) for scale in scales]
    ranges = [max(value for _, value in scale.values) - low for scale, low in zip(scales, lows, strict=True)]
    unit = 100 / max(ranges)
    in_points = [
        Scale(scale.name, [(name, unit * (value - low)) for name, value in scale.values])
        for scale, low in zip(scales, lows, strict=True)
    ]
    shares = [thousandths / 1000 for thousandths in _THOUSANDTHS]
    sums = [(p, unit * (math.log(p / (1 - p)) - base - sum(lows))) for p in shares]
    return NomogramPoints(in_points, unit * sum(ranges), sums)


def nomogram(points: NomogramPoints, label: str) -> Drawing:
    """Draw a nomogram: a scale of points, one per attribute, the sum of points, and the probability of the label."""
    n, room = len(points.scales), _NOMOGRAM_WIDTH - _NOMOGRAM_NAMES - _NOMOGRAM_RIGHT
    drawing = Drawing(_NOMOGRAM_WIDTH, _NOMOGRAM_ROW * (n + 3) + 16, f"Nomogram of {label}")
    _draw_scale(drawing, 0, "points", [(f"{p}", room * p / 100) for p in range(0, 101, 10)])
    for row, scale in enumerate(points.scales, 1):
        _draw_scale(drawing, row, scale.name, [(name, room * value / 100) for name, value in scale.values])
    # the sums that can occur, as far as the probability moves with them
    low, high = max(0.0, points.sums[0][1]), min(points.total, points.sums[-1][1])
    low, high = (low, high) if low < high else (0.0, points.total)
    ticks = [(f"{tick + 0.0:.4g}", tick) for tick in axis_of([low, high], logarithmic=False).ticks]
    probabilities = [(f"{p:g}", value) for p, value in points.sums]
    for row, name, marks in ((n + 1, "sum of points", ticks), (n + 2, f"P({label})", probabilities)):
        marks_at = [(text, room * (value - low) / (high - low)) for text, value in marks if low <= value <= high]
        _draw_scale(drawing, row, name, marks_at)
    return drawing


def _draw_scale(drawing: Drawing, row: int, name: str, marks_at: Sequence[tuple[str, float]]) -> None:
    """Draw a line with ticks (label, x); labels stand above or below it, and are left out where there is no room."""
    y = _NOMOGRAM_ROW * row + 26
    drawing.text(4, y + 4, shortened(name, _NOMOGRAM_NAMES - 16, 12), size=12, tip=name)
    if not marks_at:
        return
    ordered = sorted(marks_at, key=lambda place: place[1])
    drawing.line("ink", (_NOMOGRAM_NAMES + ordered[0][1], y), (_NOMOGRAM_NAMES + ordered[-1][1], y))
    ends, ticks = [-math.inf, -math.inf], ""
    for text, offset in ordered:
        x, label = _NOMOGRAM_NAMES + offset, shortened(text, 90, 9)
        half, tip = text_width(label, 9) / 2, "" if label == text else text
        side = 0 if ends[0] <= ends[1] else 1
        ticks += f"M{x:.1f} {y - 4 + 4 * side:.1f}v4"
        if x - half > ends[side] + 2:
            drawing.text(x, y - 6 if side == 0 else y + 13, label, anchor="middle", size=9, tip=tip)
            ends[side] = x + half
    drawing.path("ink", ticks)
