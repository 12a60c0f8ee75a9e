"""Text as HTML: here alone blocks become markup, and everything out of a file is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import singledispatch
from html import escape
from typing import Any

from bncli.errors import printable
from bncli.files.formats.report.blocks import (
    Folded,
    Grid,
    LabelSwitch,
    Listing,
    Panel,
    Picture,
    Pictures,
    Prose,
    Section,
)


def text(words: str) -> str:
    """Words between tags or in an attribute: no markup, no control characters, nothing endless."""
    return escape(re.sub("[\ud800-\udfff\ufffe\uffff]", "?", printable(words)), quote=True)


def name(words: str) -> str:
    """A name out of a file, whose direction of writing turns nothing about that stands around it."""
    return f"<bdi>{text(words)}</bdi>"


def json_text(value: Any) -> str:
    """JSON that ends no script and begins no comment."""
    plain = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class Numbered:
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
def markup(block: Any, numbered: Numbered) -> str:
    """A block as HTML."""
    raise TypeError(f"no markup for {type(block).__name__}")


@markup.register
def _(block: Prose, numbered: Numbered) -> str:
    kinds = {"plain": "<p>", "warning": '<p class="warning"><strong>Warning:</strong> ', "gap": '<p class="gap">'}
    return f"{kinds[block.kind]}{text(block.text)}</p>"


@markup.register
def _(block: Grid, numbered: Numbered) -> str:
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
    """All cells but the first."""
    classes = (" class=number" if i in numbers else "" for i in range(1, len(row)))
    return "".join(f"<td{kind}>{name(cell)}</td>" for kind, cell in zip(classes, row[1:], strict=True))


@markup.register
def _(block: Picture, numbered: Numbered) -> str:
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
def _(block: Pictures, numbered: Numbered) -> str:
    return '<div class="pictures">\n' + "\n".join(markup(one, numbered) for one in block.pictures) + "\n</div>"


@markup.register
def _(block: LabelSwitch, numbered: Numbered) -> str:
    options = (
        f'<option value="{i}"{" selected" if i == block.chosen else ""}>{text(label)}</option>'
        for i, label in enumerate(block.labels)
    )
    return f'<p class="switch"><label>Class <select data-switch>{"".join(options)}</select></label></p>'


@markup.register
def _(block: Listing, numbered: Numbered) -> str:
    lines = "\n".join(text(line) for line in block.lines)
    return f'<pre tabindex="0"><code>{lines}</code></pre>'


@markup.register
def _(block: Folded, numbered: Numbered) -> str:
    inner = "\n".join(markup(one, numbered) for one in block.blocks)
    return f'<details id="{text(block.place)}"><summary>{name(block.summary)}</summary>\n{inner}\n</details>'


@markup.register
def _(block: Panel, numbered: Numbered) -> str:
    numbered.panels[block.kind] = block.data
    inner = "\n".join(markup(one, numbered) for one in block.fallback)
    title = text(block.title)
    return f'<div class="panel" id="panel-{block.kind}" role="group" aria-label="{title}">\n{inner}\n</div>'
