"""Drawings as SVG text: lines, circles and words on paper of their own, light or dark as the reader's screen is.

Conventions: no fonts are measured. Words are taken to be as wide as in a common sans-serif font, generously, so that
what is laid out by `text_width` does not overlap where another font stands in. Words out of files lose control
characters and what XML 1.0 cannot hold.

Axes with round numbers: linear, or logarithmic where the values span enough.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from bncli.errors import printable

SIZE = 13.0
"""Of letters, in pixels."""
Anchor = Literal["start", "middle", "end"]
Line = Literal["ink", "faint", "dashed", "thick", "curve", "bound"]
Mark = Literal["dot", "raise", "lower", "band", "weight", "node", "root", "region"]

SHADES = 5
"""Of a heat map, on either side of 0."""
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
"""The look of every kind of line and mark, on light paper; the colours are those of Okabe and Ito."""
_LEVELS = range(1, SHADES + 1)
DARK = f"""\
{", ".join(f".p{i}" for i in _LEVELS)} {{ fill: #56b4e9 }}
{", ".join(f".n{i}" for i in _LEVELS)} {{ fill: #e69f00 }}
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
"""What is otherwise on dark paper."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Of several lines or bars in one frame: told apart by colour-blind readers too, on light and dark paper."""
_STYLE = f"""  <style>
{STYLE}
@media (prefers-color-scheme: dark) {{
{DARK}
}}
  </style>"""
_DASHES = ("", "6 3", "2 3")
SERIES = len(COLOURS) * len(_DASHES)
"""How many lines can be told apart: every colour whole, dashed and dotted."""
_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\ -")
_WIDE = frozenset("mwMW@%&")


class Drawing:
    """A sheet of `width` times `height` pixels; x grows to the right, y downwards."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self._title = width, height, title
        self._parts: list[str] = []

    def line(self, kind: Line, *points: tuple[float, float]) -> None:
        """Draw a line through the points."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._parts.append(f'  <polyline class="{kind}" points="{corners}"/>')

    def series(self, number: int, *points: tuple[float, float]) -> None:
        """Draw a line through the points in the colour and dashes of its number, 0 to SERIES - 1."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        dashes = _DASHES[number // len(COLOURS)]
        broken = f' stroke-dasharray="{dashes}"' if dashes else ""
        look = f'fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="1.6" stroke-linejoin="round"'
        self._parts.append(f'  <polyline {look}{broken} points="{corners}"/>')

    def bar(self, x: float, y: float, width: float, height: float, tip: str, *, kind: Mark = "dot") -> None:
        """Draw a rectangle whose upper left corner is (x, y)."""
        place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
        self._parts.append(
            f'  <rect class="{kind}" {place}>{_tip(tip)}</rect>' if tip else f'  <rect class="{kind}" {place}/>'
        )

    def shade(self, x: float, y: float, side: float, shade: str, tip: str) -> None:
        """Draw a square cell of a heat map in the shade of this class."""
        place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(side)}" height="{_number(side)}"'
        self._parts.append(f'  <rect class="{shade}" {place}>{_tip(tip)}</rect>')

    def path(self, kind: str, outline: str, *, width: float | None = None, tip: str = "") -> None:
        """Draw a path given in SVG's own notation; `width` of its line where that matters."""
        thick = "" if width is None else f' stroke-width="{_number(width)}"'
        end = f">{_tip(tip)}</path>" if tip else "/>"
        self._parts.append(f'  <path class="{kind}" d="{outline}"{thick}{end}')

    def begin(self, *, link: str = "", label: int | None = None, shown: bool = True) -> None:
        """Begin a group up to `end`: what belongs to a label, by its number, or a link within the page."""
        if link:
            self._parts.append(f'  <a href="#{link}">')
            return
        number = "" if label is None else f' data-label="{label}"'
        self._parts.append(f"  <g{number}>" if shown else f'  <g{number} display="none">')

    def end(self, *, link: bool = False) -> None:
        """Of the group, or of a link."""
        self._parts.append("  </a>" if link else "  </g>")

    def dot(self, x: float, y: float, tip: str, *, radius: float = 3.5, kind: Mark = "dot") -> None:
        """Draw a point that shows `tip` when pointed at."""
        place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
        self._parts.append(f'  <circle class="{kind}" {place}>{_tip(tip)}</circle>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: Anchor = "start",
        size: float = SIZE,
        tip: str = "",
        upright: bool = False,
    ) -> None:
        """Words whose feet stand at y; `upright` ones run upwards, with their feet at x."""
        place = f'x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" text-anchor="{anchor}"'
        if upright:
            place += f' transform="rotate(-90 {_number(x)} {_number(y)})"'
        self._parts.append(f"  <text {place}>{_clean(text)}{_tip(tip) if tip else ''}</text>")

    def source(self) -> str:
        """Return the SVG document, with its own paper and look."""
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {self._box} role="img">'
        paper = f'  <rect class="paper" {size}/>'
        return "\n".join([head, f"  {_tip(self._title)}", _STYLE, paper, *self._parts, "</svg>"]) + "\n"

    def inline(self, told: str, *, role: Literal["img", "group"] = "img") -> str:
        """Return the drawing inside a page, which has the look; `told` says in words what is to be seen.

        A picture with links in it is a `group`: what is inside an `img` is not read out.
        """
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        words = escape(_clean_text(told), {'"': "&quot;"})
        return "\n".join([f'<svg {size} {self._box} role="{role}" aria-label="{words}">', *self._parts, "</svg>"])

    @property
    def _box(self) -> str:
        return f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"'


def text_width(text: str, size: float = SIZE) -> float:
    """Return how wide a text may become, in pixels."""
    return size * sum(map(_em, text))


def shortened(text: str, width: float, size: float = SIZE) -> str:
    """Return the text, or as much of its beginning as is not wider than `width`, with an ellipsis."""
    room, whole = width - text_width("…", size), 0.0
    kept = 0
    for letter in text:
        whole += size * _em(letter)
        if whole > width:
            return text[:kept].rstrip() + "…"
        kept += whole <= room
    return text


def _em(letter: str) -> float:
    if letter in _NARROW:
        return 0.38
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in _WIDE or letter == "…":
        return 1.0
    return 0.72 if letter.isupper() else 0.61


def _number(value: float) -> str:
    """At most two decimals."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def _tip(text: str) -> str:
    return f"<title>{_clean(text)}</title>"


def _clean(text: str) -> str:
    return escape(_clean_text(text))


def _clean_text(text: str) -> str:
    return re.sub("[\ud800-\udfff\ufffe\uffff]", "?", printable(text))


_LOG_SPAN = 4.0
INSIDE = 0.05
"""How far points keep away from the frame, as a share of its side."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, linear or logarithmic, with the numbers told along it."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Where a value lies between the ends of the axis, 0 to 1."""
        low, high = self._bent(self.low), self._bent(self.high)
        return INSIDE + (1 - 2 * INSIDE) * (self._bent(value) - low) / (high - low)

    def _bent(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value


def axis_of(values: Sequence[float], logarithmic: bool | None = None) -> Axis:
    """Return an axis from the least to the largest of the values; None: logarithmic where they span enough."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if logarithmic and high <= _LOG_SPAN * low:
        middle = math.sqrt(low * high)
        low, high = middle / _LOG_SPAN, middle * _LOG_SPAN
    if logarithmic is not False and low > 0 and high > _LOG_SPAN * low:
        return Axis(low, high, True, _log_ticks(low, high))
    if high - low <= max(1e-9 * max(abs(low), abs(high)), sys.float_info.min):
        low, high = low - 0.1 * abs(low) - 1e-3, high + 0.1 * abs(high) + 1e-3
    return Axis(low, high, False, _even_ticks(low, high))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten, with 2 and 5 times them where the axis is short; at most about five."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**decade for decade in decades for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= 5:
            break
    return tuple(ticks[:: math.ceil(len(ticks) / 5)] if ticks else (low, high))


def _even_ticks(low: float, high: float) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten; three to five of them."""
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * power) <= 5)
    return tuple(step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1))
