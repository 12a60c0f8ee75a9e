"""HTML pages made of sections of blocks: text, tables, pictures and interactive panels.

A page is a single file that loads nothing. Its content security policy allows its one style sheet and one script by
their SHA-256. Blocks contain no HTML; this module converts them to HTML, and escapes all text.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Literal

from bncli.errors import printable
from bncli.files.pictures.drawing import DARK, STYLE, Drawing

SCRIPT_LIMIT = 20_000
"""The maximum size of page.js in bytes; the program that scores rows is not part of it."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; a `warning` names something to correct, a `gap` states what the page leaves out and why."""

    text: str
    kind: Literal["plain", "warning", "gap"] = "plain"


@dataclass(frozen=True)
class Grid:
    """A table; the columns at the positions `numbers` are aligned to the right."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


@dataclass(frozen=True)
class Picture:
    """A drawing with its file name, its title, and one sentence about what it shows.

    - wide: whether it takes the whole width of the page. links: whether it contains links.
    - redraw: the data from which page.js redraws it for another label, such as the values of each label.
    - sentences: one sentence per label; if given, the page shows the one of the chosen label instead of `sentence`.
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
class Cards:
    """A block of pictures, tables and panels side by side, as many as fit; a wide picture takes the space of two."""

    blocks: Sequence[Block]


@dataclass(frozen=True)
class LabelSwitch:
    """A control with which the reader chooses the label that the pictures of its section show."""

    labels: Sequence[str]
    chosen: int


@dataclass(frozen=True)
class Listing:
    """A block of lines as a terminal shows them."""

    lines: Sequence[str]


@dataclass(frozen=True)
class FoldedBlocks:
    """Blocks that are hidden until the reader opens `summary`; `place` is their anchor for links."""

    place: str
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class InteractivePanel:
    """A panel that page.js builds from `data`; `fallback` is shown without scripts.

    The content of `data` depends on the kind:

    - thresholds: {"label", "other", "t", "tp", "fp", "positives", "negatives", "start", "costs", "frame"}, where t, tp
      and fp are lists
    - what-if: {"inputs": [{"name", "options" or null, "value"}], "others": {name: value}, "effects": bool}
    """

    kind: Literal["thresholds", "what-if"]
    title: str
    data: Mapping[str, Any]
    fallback: Sequence[Block] = ()


Block = Paragraph | Grid | Picture | Cards | LabelSwitch | Listing | FoldedBlocks | InteractivePanel


@dataclass(frozen=True)
class Section:
    """A title and the blocks below it; `word` is the section's anchor in the page."""

    word: str
    title: str
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Tile:
    """A value in the header of a page, with its name above and a comparison below."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    """A title, a one-sentence summary, the sections, the JavaScript that scores rows ("" for none), and tiles."""

    title: str
    summary: str
    sections: Sequence[Section]
    program: str = ""
    tiles: Sequence[Tile] = ()


def pictures_in(blocks: Sequence[Block]) -> Iterator[Picture]:
    """Yield the pictures in order, including those in cards and folded blocks, but not in fallbacks."""
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Cards | FoldedBlocks):
            yield from pictures_in(block.blocks)


def html_page(page: Page) -> str:
    data: dict[str, dict[str, Any]] = {"pictures": {}, "panels": {}}
    sections, contents = [], []
    for section in page.sections:
        inner, word = "\n".join(_markup(block, data) for block in section.blocks), section.word
        heading = f'<h2 id="{word}-heading">{_escape(section.title)}</h2>'
        sections.append(f'<section id="{word}" aria-labelledby="{word}-heading">\n{heading}\n{inner}\n</section>')
        contents.append(f'<li><a href="#{word}">{_escape(section.title)}</a></li>')
    body = "\n".join(sections)
    tiles = "".join(
        f'<div class="tile"><dt>{_escape(tile.name)}</dt><dd><strong>{_isolate(tile.value)}</strong>'
        f"<span>{_isolate(tile.note)}</span></dd></div>"
        for tile in page.tiles
    )
    tiles = f'<dl class="tiles">{tiles}</dl>\n' if tiles else ""
    style = f"\n{read_part('page.css')}\n{STYLE}\n@media screen and (prefers-color-scheme: dark) {{\n{DARK}\n}}\n"
    # without indentation and comments
    ours = re.sub(r"^ +(?://.*\n)?", "", read_part("page.js"), flags=re.MULTILINE)
    script = f"\n{escape_script(page.program)}{ours}"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # no text in the data may end the script or begin a comment
    data_json = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    data_json = data_json.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{_escape(page.title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#{page.sections[0].word}">Skip to the content</a>
<header>
<h1>{_escape(page.title)}</h1>
<p>{_escape(page.summary)}</p>
{tiles}</header>
<nav aria-label="Sections"><ol>{"".join(contents)}</ol></nav>
<main>
{body}
</main>
<script type="application/json" id="data">{data_json}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _markup(block: Block, data: dict[str, dict[str, Any]]) -> str:
    """Format a block as HTML, and add the data that page.js needs for it to `data`."""
    match block:
        case Paragraph(text, kind):
            start = {
                "plain": "<p>",
                "warning": '<p class="warning"><strong>Warning:</strong> ',
                "gap": '<p class="gap">',
            }
            return f"{start[kind]}{_escape(text)}</p>"
        case Grid():
            kinds = [" class=number" if i in block.numbers else "" for i in range(len(block.headings))]
            head = "".join(
                f'<th scope="col"{kind}>{_isolate(text)}</th>' for kind, text in zip(kinds, block.headings, strict=True)
            )
            rows = []
            for first, *others in block.rows:
                # numbers are written by bncli, and need no isolation from their surroundings
                cells = "".join(
                    f"<td{kind}>{_escape(text) if kind else _isolate(text)}</td>"
                    for kind, text in zip(kinds[1:], others, strict=True)
                )
                rows.append(f'<tr><th scope="row">{_isolate(first)}</th>{cells}</tr>')
            label, body = _escape(block.caption), "\n".join(rows)
            table = f"<caption>{label}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"
            table = f"<table>\n{table}\n</table>"
            return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>'
        case Picture():
            name = f"picture-{block.name}"
            if block.redraw is not None:
                data["pictures"][name] = block.redraw
            description = _escape(block.sentence)
            if block.sentences:
                # all but the first are hidden until the reader chooses another label
                description = "".join(
                    f'<span data-label="{i}"{" hidden" if i else ""}>{_escape(sentence)}</span>'
                    for i, sentence in enumerate(block.sentences)
                )
            svg = block.drawing.inline(block.sentence, role="group" if block.links else "img")
            if block.wide:
                svg = f'<div class="scroll" tabindex="0" role="region" aria-label="{_escape(block.title)}">{svg}</div>'
            caption = f"<figcaption><strong>{_isolate(block.title)}</strong> {description}</figcaption>"
            return f'<figure id="{name}"{" class=wide" if block.wide else ""}>\n{caption}\n{svg}\n</figure>'
        case Cards(blocks):
            # captions line up only where every card is a picture
            cards = "cards" if all(isinstance(inner, Picture) for inner in blocks) else "cards mixed"
            return f'<div class="{cards}">\n' + "\n".join(_markup(inner, data) for inner in blocks) + "\n</div>"
        case LabelSwitch(labels, chosen):
            options = "".join(
                f'<option value="{i}"{" selected" if i == chosen else ""}>{_escape(label)}</option>'
                for i, label in enumerate(labels)
            )
            return f'<p class="switch"><label>Class <select data-switch>{options}</select></label></p>'
        case Listing(lines):
            code = "\n".join(map(_escape, lines))
            return f'<pre tabindex="0"><code>{code}</code></pre>'
        case FoldedBlocks(place, summary, blocks):
            inner = "\n".join(_markup(inner, data) for inner in blocks)
            return f'<details id="{_escape(place)}"><summary>{_isolate(summary)}</summary>\n{inner}\n</details>'
        case InteractivePanel(kind, title, panel_data, fallback):
            data["panels"][kind] = panel_data
            inner = "\n".join(_markup(inner, data) for inner in fallback)
            return f'<div class="panel" id="panel-{kind}" role="group" aria-label="{_escape(title)}">\n{inner}\n</div>'


def _escape(text: str) -> str:
    """Escape a string, made `printable`, for HTML text and attributes."""
    return escape(re.sub("[\ud800-\udfff\ufffe\uffff]", "?", printable(text)), quote=True)


def _isolate(name: str) -> str:
    """Format text from a file as HTML whose writing direction does not affect its surroundings."""
    return f"<bdi>{_escape(name)}</bdi>"


@cache
def read_part(name: str) -> str:
    """Load page.css or page.js as a string."""
    return files("bncli.files.pictures").joinpath(name).read_text(encoding="utf-8")


def escape_script(program: str) -> str:
    """Escape `<` in a JavaScript program where a tag could begin, so that no string ends the script element."""
    return re.sub(r"<(?=[/!]|script)", r"\\u003c", program, flags=re.IGNORECASE)


def _digest(source: str) -> str:
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()


def percent(share: float) -> str:
    """Format a fraction in per cent with one decimal, or with two significant digits between 0 and 0.1 %.

    A no-break space precedes the sign.

    >>> percent(0.1234), percent(0.00012), percent(1)
    ('12.3\\xa0%', '0.012\\xa0%', '100.0\\xa0%')
    """
    return f"{100 * share:.2g}\u00a0%" if 0 < share < 0.001 else f"{100 * share:.1f}\u00a0%"


def figure(value: float | None) -> str:
    """Format a metric with four decimals, or as a dash if it is None or not finite."""
    return "–" if value is None or not math.isfinite(value) else f"{value + 0.0:.4f}"


def times(log_odds: float) -> str:
    """Format the factor by which log-odds change the odds.

    A factor below 10⁻⁴ is written as a divisor. For log-odds beyond ±20, only a bound of the factor is written.

    >>> times(0.0), times(-math.log(4)), times(math.log(2000)), times(-math.log(2000)), times(-math.log(83210))
    ('×\\xa01.00', '×\\xa00.25', '×\\xa02,000', '×\\xa00.0005', '÷\\xa083,000')
    """
    if abs(log_odds) > 20:
        return "×\u00a0more than 10⁸" if log_odds > 0 else "×\u00a0less than 10⁻⁸"
    factor = math.exp(log_odds)
    if 0.1 <= factor < 10:
        return f"×\u00a0{factor:.2f}"
    if factor < 1e-4:
        return f"÷\u00a0{float(f'{1 / factor:.2g}'):,.0f}"
    return f"×\u00a0{factor:,.0f}" if factor >= 100 else f"×\u00a0{factor:.2g}"


def count(number: float, what: str, plural: str = "") -> str:
    """Format a number with its noun: `1 row`, `1,204 rows`."""
    return f"{number:,.10g} {what if number == 1 else plural or what + 's'}"


def listed(names: Sequence[str]) -> str:
    """Format the first five names, followed by the number of the others if there are more."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
