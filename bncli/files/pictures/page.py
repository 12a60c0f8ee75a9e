"""The whole file: nothing is fetched, and the page forbids itself to fetch anything.

The content security policy names the one style and the scripts by their SHA-256; nothing else is run or loaded.

What a page is made of: sections of blocks, which know nothing of HTML.

Text as HTML: here alone blocks become markup, and everything out of a file is escaped.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, singledispatch
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Literal

from bncli.errors import printable
from bncli.files.pictures.drawing import DARK, STYLE, Drawing


@dataclass(frozen=True)
class Paragraph:
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
class FoldedBlocks:
    """Blocks that open when they are asked for, at a place of this name that links lead to."""

    place: str
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class InteractivePanel:
    """What answers when it is touched: its kind is known to the script, which takes `data`; `fallback` stands before.

    thresholds: {"label", "other", "t": [...], "tp": [...], "fp": [...], "positives", "negatives", "start", "costs"}
    what-if: {"inputs": [{"name", "options" or null, "value"}], "effects": bool}
    """

    kind: Literal["thresholds", "what-if"]
    title: str
    data: Mapping[str, Any]
    fallback: Sequence[Block] = ()


Block = Paragraph | Grid | Picture | Pictures | LabelSwitch | Listing | FoldedBlocks | InteractivePanel


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
    if isinstance(block, FoldedBlocks):
        return [picture for inner in block.blocks for picture in _pictures(inner)]
    return ()


@dataclass(frozen=True)
class Page:
    """A title, what it is about in a sentence, the sections, and the program that scores rows (empty: none)."""

    title: str
    summary: str
    sections: Sequence[Section]
    program: str = ""


def text(words: str) -> str:
    """Return words between tags or in an attribute: no markup, no control characters, nothing endless."""
    return escape(re.sub("[\ud800-\udfff\ufffe\uffff]", "?", printable(words)), quote=True)


def name(words: str) -> str:
    """Return a name out of a file, whose direction of writing turns nothing about that stands around it."""
    return f"<bdi>{text(words)}</bdi>"


def json_text(value: Any) -> str:
    """Return JSON that ends no script and begins no comment."""
    plain = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class PageNumbering:
    """Hands out a number for each picture and panel of a page, and keeps what the script needs of them."""

    def __init__(self) -> None:
        self.pictures: dict[str, Any] = {}
        self.panels: dict[str, Any] = {}

    def section(self, one: Section, number: int) -> str:
        """With its heading, as a landmark."""
        inner = "\n".join(markup(block, self) for block in one.blocks)
        heading = f'<h2 id="{one.word}-heading">{number}. {text(one.question)}</h2>'
        return f'<section id="{one.word}" aria-labelledby="{one.word}-heading">\n{heading}\n{inner}\n</section>'


@singledispatch
def markup(block: Any, numbered: PageNumbering) -> str:
    """Return a block as HTML."""
    raise TypeError(f"no markup for {type(block).__name__}")


@markup.register
def _(block: Paragraph, numbered: PageNumbering) -> str:
    kinds = {"plain": "<p>", "warning": '<p class="warning"><strong>Warning:</strong> ', "gap": '<p class="gap">'}
    return f"{kinds[block.kind]}{text(block.text)}</p>"


@markup.register
def _(block: Grid, numbered: PageNumbering) -> str:
    numbers = set(block.numbers)

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=number' if i in numbers else ''}>{name(cell)}</{tag}>" for i, cell in enumerate(row)
        )

    head = cells('th scope="col"', block.headings).replace('</th scope="col">', "</th>")
    rows = "\n".join(f'<tr><th scope="row">{name(row[0])}</th>{_rest(row, numbers)}</tr>' for row in block.rows)
    label = text(block.caption)
    table = f"<table>\n<caption>{label}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>'


def _rest(row: Sequence[str], numbers: set[int]) -> str:
    """Return all cells but the first."""
    classes = (" class=number" if i in numbers else "" for i in range(1, len(row)))
    return "".join(f"<td{kind}>{name(cell)}</td>" for kind, cell in zip(classes, row[1:], strict=True))


@markup.register
def _(block: Picture, numbered: PageNumbering) -> str:
    place = f"picture-{block.name}"
    if block.redraw is not None:
        numbered.pictures[place] = block.redraw
    told = text(block.sentence)
    if block.sentences:
        spans = (f'<span data-label="{i}" hidden>{text(words)}</span>' for i, words in enumerate(block.sentences))
        told = "".join(spans).replace(" hidden", "", 1)
    drawn = block.drawing.inline(block.sentence, role="group" if block.links else "img")
    if block.wide:
        drawn = f'<div class="scroll" tabindex="0" role="region" aria-label="{text(block.title)}">{drawn}</div>'
    caption = f"<figcaption><strong>{name(block.title)}</strong> {told}</figcaption>"
    return f'<figure id="{place}"{" class=wide" if block.wide else ""}>\n{caption}\n{drawn}\n</figure>'


@markup.register
def _(block: Pictures, numbered: PageNumbering) -> str:
    return '<div class="pictures">\n' + "\n".join(markup(one, numbered) for one in block.pictures) + "\n</div>"


@markup.register
def _(block: LabelSwitch, numbered: PageNumbering) -> str:
    options = (
        f'<option value="{i}"{" selected" if i == block.chosen else ""}>{text(label)}</option>'
        for i, label in enumerate(block.labels)
    )
    return f'<p class="switch"><label>Class <select data-switch>{"".join(options)}</select></label></p>'


@markup.register
def _(block: Listing, numbered: PageNumbering) -> str:
    lines = "\n".join(text(line) for line in block.lines)
    return f'<pre tabindex="0"><code>{lines}</code></pre>'


@markup.register
def _(block: FoldedBlocks, numbered: PageNumbering) -> str:
    inner = "\n".join(markup(one, numbered) for one in block.blocks)
    return f'<details id="{text(block.place)}"><summary>{name(block.summary)}</summary>\n{inner}\n</details>'


@markup.register
def _(block: InteractivePanel, numbered: PageNumbering) -> str:
    numbered.panels[block.kind] = block.data
    inner = "\n".join(markup(one, numbered) for one in block.fallback)
    title = text(block.title)
    return f'<div class="panel" id="panel-{block.kind}" role="group" aria-label="{title}">\n{inner}\n</div>'


SCRIPT_LIMIT = 20_000
"""Bytes of our own script; the program that scores rows comes beside it."""


def html_page(page: Page) -> str:
    """Return the text of the file."""
    numbered = PageNumbering()
    body = "\n".join(numbered.section(one, number) for number, one in enumerate(page.sections, 1))
    style = f"\n{part('page.css')}\n{STYLE}\n@media screen and (prefers-color-scheme: dark) {{\n{DARK}\n}}\n"
    script = f"\n{inert(page.program)}{part('page.js')}"
    data = json_text({"pictures": numbered.pictures, "panels": numbered.panels})
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{text(page.title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#{page.sections[0].word}">Skip to the answers</a>
<header>
<h1>{text(page.title)}</h1>
<p>{text(page.summary)}</p>
{_contents(page.sections)}
</header>
<main>
{body}
</main>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


@cache
def part(name: str) -> str:
    """Return a file of this room."""
    return files("bncli.files.pictures").joinpath(name).read_text(encoding="utf-8")


def inert(program: str) -> str:
    """Return a program with no text in it that would end the script: `<` is escaped where a tag could begin."""
    return re.sub(r"<(?=[/!]|script)", r"\\u003c", program, flags=re.IGNORECASE)


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(source: str) -> str:
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(f'<li><a href="#{one.word}">{text(one.question)}</a></li>' for one in sections)
    return f'<nav aria-label="Questions"><ol>{links}</ol></nav>'
