"""What an attribute does, value by value: steps over intervals of numbers, bars for names; the training weight beside.

Every value has the same room, for intervals of numbers differ in width by powers of ten; the numbers under the steps
are the cuts between them. Around the steps lies a band, on the bars a thin line, from `low` to `high`. All classes of a
model share the axis of an effect, so that they can be compared.

A nomogram: points for every value, read off by hand, and a probability for their sum (Lubsen et al. 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.files.pictures.drawing import Axis, Drawing, axis_of, shortened, text_width

WIDTH = 340.0
"""Pixels of a picture of one attribute: as wide as a small telephone."""
LEFT, TOP, WIDE, HIGH = 44.0, 12.0, 286.0, 130.0
"""Of the frame of steps."""
_STRIP = 22.0
"""Height of the strip of training weights."""
NAMES, BARS, ROW = 112.0, 170.0, 17.0
"""Of a picture of bars: room for the names, then for the bars, and the height of a row."""
BAR = 9.0
_WEIGHTS = 40.0
_MOST_NAMES = 250.0
"""Of a picture of shares: room for the names of sets."""
_HEAD = 22.0


@dataclass(frozen=True)
class ValueEffect:
    """A value: what it is called, log-odds, how low and high these may be, and its share of the training weight."""

    name: str
    value: float
    low: float
    high: float
    weight: float


NOMOGRAM_WIDTH, _NAMES, _RIGHT = 760.0, 150.0, 24.0
_ROW = 38.0
_THOUSANDTHS = (1, 3, 10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 980, 990, 997, 999)
"""Probabilities that are told; sums of points are drawn as far as these go."""


@dataclass(frozen=True)
class Scale:
    """An attribute: the name and the log-odds, or points, of each value."""

    name: str
    values: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Points:
    """Scales in points, the largest sum of them, and (probability, sum of points), the sums outside 0 to it too."""

    scales: Sequence[Scale]
    total: float
    sums: Sequence[tuple[float, float]]


def value_axis(numbers: Sequence[float]) -> Axis:
    """Return an axis that holds these numbers and 0."""
    return axis_of([0.0, *numbers], logarithmic=False)


def effect_steps(title: str, values: Sequence[ValueEffect], cuts: Sequence[str], axis: Axis) -> Drawing:
    """Return intervals of numbers, with what stands at each cut between them; a missing value, if any, comes last."""
    strip = TOP + HIGH + 6
    drawing = Drawing(WIDTH, strip + _STRIP + 30, title)
    step = WIDE / len(values)
    drawing.line("faint", (LEFT, TOP), (LEFT + WIDE, TOP), (LEFT + WIDE, TOP + HIGH), (LEFT, TOP + HIGH), (LEFT, TOP))
    for tick in axis.ticks:
        y = TOP + HIGH * (1 - axis.share(tick))
        drawing.line("faint", (LEFT, y), (LEFT - 4, y))
        drawing.text(LEFT - 7, y + 3.5, f"{tick + 0.0:.4g}", anchor="end", size=10)
    zero = TOP + HIGH * (1 - axis.share(0.0))
    drawing.line("dashed", (LEFT, zero), (LEFT + WIDE, zero))
    drawing.path(
        "band", band_outline([axis.share(one.low) for one in values], [axis.share(one.high) for one in values])
    )
    drawing.path("curve", step_outline([axis.share(one.value) for one in values]))
    most = max((one.weight for one in values), default=0.0) or 1.0
    for i, one in enumerate(values):
        high = _STRIP * one.weight / most
        tip = f"{one.name}: {one.value:+.3g} ({100 * one.weight:.3g}% of the training weight)"
        drawing.bar(LEFT + i * step + 0.5, strip + _STRIP - high, max(step - 1, 0.5), high, tip, kind="weight")
    end = LEFT - 20
    for i, cut in enumerate(cuts, 1):
        x, half = LEFT + i * step, text_width(cut, 10) / 2
        if x - half > end + 4 and x + half < WIDTH:
            drawing.line("faint", (x, strip + _STRIP), (x, strip + _STRIP + 4))
            drawing.text(x, strip + _STRIP + 15, cut, anchor="middle", size=10)
            end = x + half
    drawing.text(LEFT + WIDE, strip + _STRIP + 27, "cuts, and training weight of each interval", anchor="end", size=9)
    return drawing


def step_outline(shares: Sequence[float]) -> str:
    """Return the path of steps at these heights, 0 to 1.

    The page's script draws those of other classes in the same way.
    """
    step = WIDE / len(shares)
    heights = [TOP + HIGH * (1 - min(max(share, 0.0), 1.0)) for share in shares]
    moves = (f"V{y:.1f}H{LEFT + (i + 1) * step:.1f}" for i, y in enumerate(heights))
    return f"M{LEFT:.1f} {heights[0]:.1f}" + "".join(moves)


def band_outline(low: Sequence[float], high: Sequence[float]) -> str:
    """Return the path around steps from low to high."""
    step = WIDE / len(low)
    upper = step_outline(high)
    lower = [TOP + HIGH * (1 - min(max(share, 0.0), 1.0)) for share in low]
    back = (f"V{y:.1f}H{LEFT + i * step:.1f}" for i, y in reversed(list(enumerate(lower))))
    return upper + "".join(back) + "Z"


def effect_bars(title: str, values: Sequence[ValueEffect], axis: Axis) -> Drawing:
    """Return names, a row each, to the left of 0 where they lower the odds, to the right where they raise them."""
    drawing = Drawing(WIDTH, _HEAD + ROW * len(values) + 8, title)
    bottom = _HEAD + ROW * len(values)
    for tick in axis.ticks:
        x = NAMES + BARS * axis.share(tick)
        drawing.line("dashed" if tick else "ink", (x, _HEAD - 4), (x, bottom))
        drawing.text(x, _HEAD - 8, f"{tick + 0.0:.4g}", anchor="middle", size=10)
    drawing.text(WIDTH - 2, _HEAD - 8, "weight", anchor="end", size=10)
    most = max((one.weight for one in values), default=0.0) or 1.0
    for i, one in enumerate(values):
        top = _HEAD + ROW * i + (ROW - BAR) / 2
        drawing.text(NAMES - 6, top + BAR, shortened(one.name, NAMES - 8, 11), anchor="end", size=11, tip=one.name)
        left, width = bar_place(axis.share(0.0), axis.share(one.value))
        drawing.bar(left, top, width, BAR, f"{one.name}: {one.value:+.3g}", kind="raise" if one.value >= 0 else "lower")
        drawing.path("bound", bound_outline(axis.share(one.low), axis.share(one.high), top + BAR / 2))
        share = f"{100 * one.weight:.3g}% of the training weight"
        drawing.bar(NAMES + BARS + 10, top, _WEIGHTS * one.weight / most, BAR, share, kind="weight")
    return drawing


def bar_place(zero: float, share: float) -> tuple[float, float]:
    """Where a bar between two shares of the axis begins, and its width."""
    return NAMES + BARS * min(zero, share), max(BARS * abs(share - zero), 0.5)


def bound_outline(low: float, high: float, y: float) -> str:
    """Return a thin line from low to high, as far as the axis goes."""
    ends = (NAMES + BARS * min(max(share, 0.0), 1.0) for share in (low, high))
    return "M{0:.1f} {2:.1f}H{1:.1f}".format(*ends, y)


def share_bars(title: str, rows: Sequence[tuple[Sequence[str], float]], told: Sequence[str]) -> Drawing:
    """Bars from 0 on, the longest as long as there is room, each with its number in words behind it.

    A row is of one name, or of several joined by `&`, each of which keeps its part of the room.
    """
    bars = 130.0
    names = min(max((text_width(" & ".join(row), 11) for row, _ in rows), default=0.0) + 8, _MOST_NAMES)
    words_behind = max((text_width(words, 11) for words in told), default=0.0)
    drawing = Drawing(names + bars + words_behind + 12, ROW * len(rows) + 8, title)
    most = max((value for _, value in rows), default=0.0) or 1.0
    for i, ((parts, value), words) in enumerate(zip(rows, told, strict=True)):
        top = ROW * i + (ROW - BAR) / 2 + 2
        name = " & ".join(parts)
        drawing.text(names - 6, top + BAR, _fitted(parts, names - 8), anchor="end", size=11, tip=name)
        drawing.bar(names, top, max(bars * value / most, 0.5), BAR, f"{name}: {words}", kind="raise")
        drawing.text(names + bars * value / most + 6, top + BAR, words, size=11)
    return drawing


def _fitted(parts: Sequence[str], width: float) -> str:
    """Return the names joined, shortened to equal parts of the width where they find no room together."""
    whole = " & ".join(parts)
    if text_width(whole, 11) <= width:
        return whole
    room = max((width - (len(parts) - 1) * text_width(" & ", 11)) / len(parts), 24.0)
    return shortened(" & ".join(shortened(part, room, 11) for part in parts), width, 11)


def points_of(scales: Sequence[Scale], base: float) -> Points:
    """Return log-odds as points: 100 are the widest range of an attribute.

    `base` are those that belong to no attribute.
    """
    lows = [min(value for _, value in one.values) for one in scales]
    ranges = [max(value for _, value in one.values) - low for one, low in zip(scales, lows, strict=True)]
    unit = 100 / max(ranges)
    pointed = [
        Scale(one.name, [(name, unit * (value - low)) for name, value in one.values])
        for one, low in zip(scales, lows, strict=True)
    ]
    shares = [thousandths / 1000 for thousandths in _THOUSANDTHS]
    sums = [(p, unit * (math.log(p / (1 - p)) - base - sum(lows))) for p in shares]
    return Points(pointed, unit * sum(ranges), sums)


def nomogram(title: str, points: Points, label: str) -> Drawing:
    """Return a line an attribute, under the points; the sum, and the probability of the label under it."""
    n, room = len(points.scales), NOMOGRAM_WIDTH - _NAMES - _RIGHT
    drawing = Drawing(NOMOGRAM_WIDTH, _ROW * (n + 3) + 16, title)
    _draw_scale(drawing, 0, "points", [(f"{p}", room * p / 100) for p in range(0, 101, 10)])
    for row, one in enumerate(points.scales, 1):
        _draw_scale(drawing, row, one.name, [(name, room * at / 100) for name, at in one.values])
    # The least and the largest sum of points that is drawn, of 0 to `total`: those in between where P moves.
    unlikely = points.sums[0][1]
    likely = points.sums[-1][1]
    low, high = max(0.0, unlikely), min(points.total, likely)
    low, high = (low, high) if low < high else (0.0, points.total)
    ticks = [(f"{tick + 0.0:.4g}", tick) for tick in axis_of([low, high], logarithmic=False).ticks]
    odds = [(f"{p:g}", sum_) for p, sum_ in points.sums]
    for row, name, told in ((n + 1, "sum of points", ticks), (n + 2, f"P({label})", odds)):
        places = [(words, room * (at - low) / (high - low)) for words, at in told if low <= at <= high]
        _draw_scale(drawing, row, name, places)
    return drawing


def _draw_scale(drawing: Drawing, row: int, name: str, places: Sequence[tuple[str, float]]) -> None:
    """Draw a line with its ticks; names stand above and below in turn where they fit."""
    y = _ROW * row + 26
    drawing.text(4, y + 4, shortened(name, _NAMES - 16, 12), size=12, tip=name)
    if not places:
        return
    ordered = sorted(places, key=lambda place: place[1])
    drawing.line("ink", (_NAMES + ordered[0][1], y), (_NAMES + ordered[-1][1], y))
    ends = [-math.inf, -math.inf]
    for told, x in ordered:
        at, words = _NAMES + x, shortened(told, 90, 9)
        half = text_width(words, 9) / 2
        side = 0 if ends[0] <= ends[1] else 1
        drawing.line("ink", (at, y - 4 + 4 * side), (at, y + 4 * side))
        if at - half > ends[side] + 2:
            drawing.text(at, y - 6 if side == 0 else y + 13, words, anchor="middle", size=9, tip=told)
            ends[side] = at + half
