"""What a page is made of: sections of blocks, which know nothing of HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bncli.files.formats.svg.drawing import Drawing


@dataclass(frozen=True)
class Prose:
    """A paragraph; a `warning` is something to mend, a `gap` tells what the page leaves out and why."""

    text: str
    kind: Literal["plain", "warning", "gap"] = "plain"


@dataclass(frozen=True)
class Grid:
    """A table: columns whose places are in `numbers` are set to the right."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


@dataclass(frozen=True)
class Picture:
    """A drawing with its name as a file, its title, and the one sentence that says what it shows.

    wide: it takes the whole width of the page. links: it has links in it. redraw: what the script needs to draw it for
    another label: numbers of every label, and where they stand; see `page.js`. sentences: of each label, in place of
    the one.
    """

    name: str
    title: str
    sentence: str
    drawing: Drawing
    wide: bool = False
    links: bool = False
    redraw: Mapping[str, Any] | None = None
    sentences: Sequence[str] = ()


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side, as many as there is room for."""

    pictures: Sequence[Picture]


@dataclass(frozen=True)
class LabelSwitch:
    """Chooses the label whose numbers the pictures of its section show."""

    labels: Sequence[str]
    chosen: int


@dataclass(frozen=True)
class Listing:
    """Lines as they would be typed."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Folded:
    """Blocks that open when they are asked for, at a place of this name that links lead to."""

    place: str
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Panel:
    """What answers when it is touched: its kind is known to the script, which takes `data`; `fallback` stands before.

    thresholds: {"label", "other", "t": [...], "tp": [...], "fp": [...], "positives", "negatives", "start", "costs"}
    what-if: {"inputs": [{"name", "options" or null, "value"}], "effects": bool}
    """

    kind: Literal["thresholds", "what-if"]
    title: str
    data: Mapping[str, Any]
    fallback: Sequence[Block] = ()


Block = Prose | Grid | Picture | Pictures | LabelSwitch | Listing | Folded | Panel


@dataclass(frozen=True)
class Section:
    """A question of the reader, and what answers it; `word` is its place in the page."""

    word: str
    question: str
    blocks: Sequence[Block] = field(default=())

    @property
    def pictures(self) -> list[Picture]:
        """All of it, in order."""
        return [picture for block in self.blocks for picture in _pictures(block)]


def _pictures(block: Block) -> Sequence[Picture]:
    if isinstance(block, Picture):
        return (block,)
    if isinstance(block, Pictures):
        return block.pictures
    if isinstance(block, Folded):
        return [picture for inner in block.blocks for picture in _pictures(inner)]
    return ()


@dataclass(frozen=True)
class Page:
    """A title, what it is about in a sentence, the sections, and the program that scores rows (empty: none)."""

    title: str
    summary: str
    sections: Sequence[Section]
    program: str = ""
