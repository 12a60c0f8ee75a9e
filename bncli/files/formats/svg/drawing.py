"""Drawings as SVG text: lines, circles and words on paper of their own, light or dark as the reader's screen is.

Conventions: no fonts are measured. Words are taken to be as wide as in a common sans-serif font, generously, so that
what is laid out by `text_width` does not overlap where another font stands in. Words out of files lose control
characters and what XML 1.0 cannot hold.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal
from xml.sax.saxutils import escape

from bncli.errors import printable

SIZE = 13.0
"""Of letters, in pixels."""
Anchor = Literal["start", "middle", "end"]
Line = Literal["ink", "faint", "dashed", "thick", "curve"]

_STYLE = """\
  <style>
    .paper { fill: #ffffff }
    .ink { stroke: #24292f; stroke-width: 1; fill: none }
    .faint { stroke: #8c959f; stroke-width: 1; fill: none }
    .dashed { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 4 3; fill: none }
    .thick { stroke: #24292f; stroke-width: 4; fill: none }
    .curve { stroke: #0969da; stroke-width: 2; stroke-linejoin: round; fill: none }
    .dot { fill: #0969da; fill-opacity: 0.6; stroke: none }
    text { fill: #24292f; font-family: Helvetica, Arial, "DejaVu Sans", sans-serif }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 }
      .ink, .thick { stroke: #d0d7de }
      .curve { stroke: #58a6ff }
      .dot { fill: #58a6ff }
      text { fill: #d0d7de }
    }
  </style>"""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Of several lines or bars in one frame: told apart by colour-blind readers too, on light and dark paper."""
_DASHES = ("", "6 3", "2 3")
SERIES = len(COLOURS) * len(_DASHES)
"""How many lines can be told apart: every colour whole, dashed and dotted."""
_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\ -")
_WIDE = frozenset("mwMW@%&")


class Drawing:
    """A sheet of `width` times `height` pixels; x grows to the right, y downwards."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_number(width)}" height="{_number(height)}" '
            f'viewBox="0 0 {_number(width)} {_number(height)}" role="img">'
        )
        self._parts = [f'  <rect class="paper" width="{_number(width)}" height="{_number(height)}"/>']
        self._title = title

    def line(self, kind: Line, *points: tuple[float, float]) -> None:
        """A line through the points."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._parts.append(f'  <polyline class="{kind}" points="{corners}"/>')

    def series(self, number: int, *points: tuple[float, float]) -> None:
        """A line through the points in the colour and dashes of its number, 0 to SERIES - 1."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        dashes = _DASHES[number // len(COLOURS)]
        broken = f' stroke-dasharray="{dashes}"' if dashes else ""
        look = f'fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="1.6" stroke-linejoin="round"'
        self._parts.append(f'  <polyline {look}{broken} points="{corners}"/>')

    def bar(self, x: float, y: float, width: float, height: float, tip: str) -> None:
        """A rectangle whose upper left corner is (x, y)."""
        place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
        self._parts.append(f'  <rect class="dot" {place}>{_tip(tip)}</rect>')

    def dot(self, x: float, y: float, tip: str) -> None:
        """A point, which tells `tip` when it is pointed at."""
        self._parts.append(f'  <circle class="dot" cx="{_number(x)}" cy="{_number(y)}" r="3.5">{_tip(tip)}</circle>')

    def text(
        self, x: float, y: float, text: str, *, anchor: Anchor = "start", size: float = SIZE, tip: str = ""
    ) -> None:
        """Words whose feet stand at y."""
        place = f'x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" text-anchor="{anchor}"'
        self._parts.append(f"  <text {place}>{_clean(text)}{_tip(tip) if tip else ''}</text>")

    def source(self) -> str:
        """The SVG document."""
        return "\n".join([self._head, f"  {_tip(self._title)}", _STYLE, *self._parts, "</svg>"]) + "\n"


def text_width(text: str, size: float = SIZE) -> float:
    """How wide a text may become, in pixels."""
    return size * sum(map(_em, text))


def shortened(text: str, width: float, size: float = SIZE) -> str:
    """The text, or as much of its beginning as is not wider than `width`, with an ellipsis."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


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
    return escape(re.sub("[\ud800-\udfff\ufffe\uffff]", "?", printable(text)))
