"""SVG drawings: lines, circles, bars, text, axes and frames. All pictures of this package are written by this module.

A drawing adapts to light and dark screens. No fonts are measured: text is assumed to be a little wider than in a
common sans-serif font, so that a layout by `text_width` hardly ever overlaps in another font. In all text, control
characters and characters that XML 1.0 cannot contain are replaced by `?`.

Axes have round ticks. Unless the caller chooses, an axis is logarithmic if all values are positive and the largest is
more than four times the smallest, and otherwise linear.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from bncli.errors import printable

SIZE = 13.0
"""The font size in pixels."""
Line = Literal["ink", "faint", "dashed", "thick", "curve", "bound"]

SHADES = 5
"""The number of shades of a heat map on either side of 0."""
STYLE = (
    "\n".join(
        f".{side}{i} {{ fill: {colour}; fill-opacity: {i / SHADES:.1f} }}"
        for side, colour in (("p", "#0072b2"), ("n", "#d55e00"))
        for i in range(1, SHADES + 1)
    )
    + """
.paper { fill: #ffffff }
.ink { stroke: #24292f; stroke-width: 1; fill: none }
.faint { stroke: #8c959f; stroke-width: 1; fill: none }
.dashed { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 4 3; fill: none }
.thick { stroke: #24292f; stroke-width: 4; fill: none }
.curve { stroke: #0072b2; stroke-width: 2; stroke-linejoin: round; fill: none }
.dot { fill: #0072b2; fill-opacity: 0.6; stroke: none }
.raise { fill: #0072b2 }
.lower { fill: #d55e00 }
.band { fill: #0072b2; fill-opacity: 0.2 }
.weight { fill: #8c959f; fill-opacity: 0.6 }
.bound { stroke: #24292f; stroke-width: 1; fill: none }
.arc { stroke: #57606a; fill: none }
.tip { fill: #57606a; stroke: none }
.node { fill: #ffffff; stroke: #0072b2; stroke-width: 1.5 }
.root { fill: #ffffff; stroke: #d55e00; stroke-width: 2.5 }
.region { fill: #e69f00; fill-opacity: 0.2; stroke: #b87d00; stroke-width: 1.5 }
text { fill: #24292f; font-family: Helvetica, Arial, "DejaVu Sans", sans-serif }"""
)
"""CSS of lines, marks and text on a light background.

Blue, vermilion and orange are from the palette of Okabe and Ito.
"""
DARK = f"""\
{", ".join(f".p{i}" for i in range(1, SHADES + 1))} {{ fill: #56b4e9 }}
{", ".join(f".n{i}" for i in range(1, SHADES + 1))} {{ fill: #e69f00 }}
"""
DARK += """\
.paper { fill: #0d1117 }
.ink, .thick, .bound { stroke: #d0d7de }
.curve { stroke: #56b4e9 }
.dot, .raise, .band { fill: #56b4e9 }
.lower { fill: #e69f00 }
.arc { stroke: #9aa4ae }
.tip { fill: #9aa4ae }
.node { fill: #0d1117; stroke: #56b4e9 }
.root { fill: #0d1117; stroke: #e69f00 }
text { fill: #d0d7de }"""
"""CSS that differs on a dark background."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of lines or bars in one frame, distinguishable for colour-blind readers on light and dark backgrounds."""
_DASHES = ("", "6 3", "2 3")
SERIES = len(COLOURS) * len(_DASHES)
"""The number of distinguishable lines: every colour solid, dashed and dotted."""
_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\ -")
_WIDE = frozenset("mwMW@%&")
_LOG_SPAN = 4.0
"""The ratio of the largest to the smallest value above which an axis is logarithmic."""
INSIDE = 0.05
"""The distance of the extreme points from the frame, as a fraction of its side."""


class Drawing:
    """A sheet of `width` times `height` pixels; x grows to the right, y downwards."""

    def __init__(self, width: float, height: float, title: str, *, heading: bool = False) -> None:
        """Start an empty sheet; `heading` also writes the title at its top."""
        self.width, self.height, self._title = width, height, title
        self._parts: list[str] = []
        if heading:
            self.text(16, 24, shortened(title, width - 32))

    def line(self, kind: Line, *points: tuple[float, float]) -> None:
        """Draw a line through the points."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._parts.append(f'  <polyline class="{kind}" points="{corners}"/>')

    def series(self, number: int, *points: tuple[float, float]) -> None:
        """Draw a line through the points in the colour and dashes of series `number`, from 0 to SERIES - 1."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        dashes = _DASHES[number // len(COLOURS)]
        dash_array = f' stroke-dasharray="{dashes}"' if dashes else ""
        look = f'fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="1.6" stroke-linejoin="round"'
        self._parts.append(f'  <polyline {look}{dash_array} points="{corners}"/>')

    def bar(self, x: float, y: float, width: float, height: float, tip: str, *, kind: str = "dot") -> None:
        """Draw a rectangle with its upper left corner at (x, y), which shows `tip` under the pointer."""
        place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
        self._parts.append(f'  <rect class="{kind}" {place}>{_tip(tip)}</rect>')

    def path(self, kind: str, outline: str, *, width: float | None = None, tip: str = "") -> None:
        """Draw a path in SVG notation; `width` is the line width in pixels, which by default depends on `kind`."""
        stroke = "" if width is None else f' stroke-width="{_number(width)}"'
        end = f">{_tip(tip)}</path>" if tip else "/>"
        self._parts.append(f'  <path class="{kind}" d="{outline}"{stroke}{end}')

    def dot(self, x: float, y: float, tip: str, *, radius: float = 3.5, kind: str = "dot") -> None:
        """Draw a circle that shows `tip` under the pointer."""
        place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
        self._parts.append(f'  <circle class="{kind}" {place}>{_tip(tip)}</circle>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: Literal["start", "middle", "end"] = "start",
        size: float = SIZE,
        tip: str = "",
        upright: bool = False,
    ) -> None:
        """Write text with its baseline at y; `upright` text runs upwards with its baseline at x."""
        place = f'x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" text-anchor="{anchor}"'
        if upright:
            place += f' transform="rotate(-90 {_number(x)} {_number(y)})"'
        self._parts.append(f"  <text {place}>{escape(_without_controls(text))}{_tip(tip) if tip else ''}</text>")

    @contextmanager
    def label_group(self, label: int) -> Iterator[None]:
        """Put what the block draws into the group of this label (an index); only the group of label 0 is visible."""
        hidden = ' display="none"' if label else ""
        self._parts.append(f'  <g data-label="{label}"{hidden}>')
        yield
        self._parts.append("  </g>")

    @contextmanager
    def link(self, place: str) -> Iterator[None]:
        """Link what the block draws to the anchor `place` in the page; an empty `place` makes no link."""
        if place:
            self._parts.append(f'  <a href="#{place}">')
        yield
        if place:
            self._parts.append("  </a>")

    def source(self, *, heading: bool = False) -> str:
        """Return the SVG document, with its own background and style; `heading` writes its title above the drawing."""
        above = 30 if heading else 0
        width, height = _number(self.width), _number(self.height + above)
        size = f'width="{width}" height="{height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 {-above} {width} {height}" role="img">'
        style = f"  <style>\n{STYLE}\n@media (prefers-color-scheme: dark) {{\n{DARK}\n}}\n  </style>"
        paper = ['  <rect class="paper" ' + (f'y="-{above}" ' if heading else "") + f"{size}/>"]
        if heading:
            text = escape(_without_controls(shortened(self._title, self.width - 16)))
            paper.append(f'  <text x="8" y="-10" font-size="{_number(SIZE)}">{text}</text>')
        return "\n".join([head, f"  {_tip(self._title)}", style, *paper, *self._parts, "</svg>"]) + "\n"

    def inline(self, description: str, *, role: Literal["img", "group"] = "img") -> str:
        """Return the drawing for a page that has the style; `description` is read by screen readers.

        A drawing with links must have the role `group`, since screen readers skip the content of an `img`.
        """
        width, height = _number(self.width), _number(self.height)
        label = escape(_without_controls(description), {'"': "&quot;"})
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        return "\n".join([f'<svg {size} role="{role}" aria-label="{label}">', *self._parts, "</svg>"])


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def _tip(text: str) -> str:
    return f"<title>{escape(_without_controls(text))}</title>"


def _without_controls(text: str) -> str:
    return re.sub("[\ud800-\udfff\ufffe\uffff]", "?", printable(text))


def text_width(text: str, size: float = SIZE) -> float:
    """Estimate the width of a string in pixels, too wide rather than too narrow."""
    return size * sum(map(_letter_width, text))


def shortened(text: str, width: float, size: float = SIZE) -> str:
    """Truncate a string with an ellipsis if it is wider than `width` pixels."""
    room, total, n_letters = width - text_width("…", size), 0.0, 0
    for letter in text:
        total += size * _letter_width(letter)
        if total > width:
            return text[:n_letters].rstrip() + "…"
        n_letters += total <= room
    return text


def _letter_width(letter: str) -> float:
    """Estimate the width of a character relative to the font size."""
    if letter in _NARROW:
        return 0.38
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in _WIDE or letter == "…":
        return 1.0
    return 0.72 if letter.isupper() else 0.61


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, linear or logarithmic, with the tick values written along it."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Return the position of a value as a fraction of the axis: `low` is at INSIDE and `high` at 1 - INSIDE."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return INSIDE + (1 - 2 * INSIDE) * (value - low) / (high - low)


def axis_of(values: Sequence[float], logarithmic: bool | None = None) -> Axis:
    """Return an axis from the smallest to the largest value, with round ticks.

    logarithmic: whether the axis should be logarithmic; None makes it so if all values are positive and the largest is
    more than _LOG_SPAN times the smallest. Exceptions: equal values are padded; a logarithmic axis that was requested
    for a smaller ratio is widened; an axis without values runs from 0 to 1; a logarithmic axis with a value that is not
    positive becomes linear.
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    if logarithmic and high <= _LOG_SPAN * low:
        middle = math.sqrt(low * high)
        low, high = middle / _LOG_SPAN, middle * _LOG_SPAN
    if logarithmic is not False and low > 0 and high > _LOG_SPAN * low:
        # powers of ten, with multiples of them if the axis is short; at most about five
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            candidates = [factor * 10.0**decade for decade in decades for factor in factors]
            ticks = [tick for tick in candidates if low <= tick <= high]
            if len(ticks) <= 5:
                break
        return Axis(low, high, True, tuple(ticks[:: math.ceil(len(ticks) / 5)] if ticks else (low, high)))
    if high - low <= max(1e-9 * max(abs(low), abs(high)), sys.float_info.min):
        low, high = low - 0.1 * abs(low) - 1e-3, high + 0.1 * abs(high) + 1e-3
    # three to five multiples of 1, 2 or 5 times a power of ten
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * power) <= 5)
    multiples = range(math.ceil(low / step), math.floor(high / step) + 1)
    return Axis(low, high, False, tuple(step * i for i in multiples))


@dataclass(frozen=True)
class Frame:
    """The rectangle of a plot on a drawing, in pixels."""

    drawing: Drawing
    left: float
    top: float
    width: float
    height: float

    def outline(self) -> None:
        """Draw the rectangle."""
        left, top, right, bottom = self.left, self.top, self.left + self.width, self.top + self.height
        self.drawing.line("faint", (left, top), (right, top), (right, bottom), (left, bottom), (left, top))

    def place(self, across: float, upwards: float) -> tuple[float, float]:
        """Return pixel coordinates for fractions of the frame's width (from the left) and height (from the bottom)."""
        return self.left + self.width * across, self.top + self.height * (1 - upwards)

    def tick_below(self, x: float, text: str) -> None:
        """Draw a tick with its label below the frame, at pixel x."""
        bottom = self.top + self.height
        self.drawing.line("faint", (x, bottom), (x, bottom + 4))
        self.drawing.text(x, bottom + 16, text, anchor="middle", size=10)

    def tick_left(self, y: float, text: str) -> None:
        """Draw a tick with its label to the left of the frame, at pixel y."""
        self.drawing.line("faint", (self.left, y), (self.left - 4, y))
        self.drawing.text(self.left - 7, y + 3.5, text, anchor="end", size=10)


@dataclass(frozen=True)
class PanelLayout:
    """The layout of panels on a sheet: frame sizes and margins in pixels, and the maximum number of columns."""

    width: float
    height: float
    left: float
    above: float
    right: float
    below: float
    columns: int

    def sheet_width(self, n_panels: int) -> float:
        """Return the width in pixels of a sheet with this many panels, which form a grid (see `sheet`)."""
        return min(self.columns, math.ceil(math.sqrt(n_panels))) * (self.left + self.width + self.right)

    def sheet(
        self, title: str, n_panels: int, *, head: float = 34.0, narrowest: float = 0.0
    ) -> tuple[Drawing, list[Frame]]:
        """Start a titled drawing; return it with the frames of its panels, row by row in a roughly square grid.

        head: height of the title in pixels. narrowest: minimum width of the drawing in pixels.
        """
        wide, high = self.left + self.width + self.right, self.above + self.height + self.below
        columns = min(self.columns, math.ceil(math.sqrt(n_panels)))
        drawing = Drawing(
            max(narrowest, columns * wide), head + math.ceil(n_panels / columns) * high, title, heading=True
        )
        frames = []
        for number in range(n_panels):
            row, column = divmod(number, columns)
            left, top = column * wide + self.left, head + row * high + self.above
            frames.append(Frame(drawing, left, top, self.width, self.height))
        return drawing, frames
