"""The whole file: nothing is fetched, and the page forbids itself to fetch anything.

The content security policy names the one style and the scripts by their SHA-256; nothing else is run or loaded.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from bncli.files.formats.report.blocks import Page, Section
from bncli.files.formats.report.markup import Numbered, json_text, text
from bncli.files.formats.svg.drawing import DARK, STYLE

SCRIPT_LIMIT = 20_000
"""Bytes of our own script; the program that scores rows comes beside it."""


def html_page(page: Page) -> str:
    """The text of the file."""
    numbered = Numbered()
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
    """A file of this room."""
    return files("bncli.files.formats.report").joinpath(name).read_text(encoding="utf-8")


def inert(program: str) -> str:
    """A program with no text in it that would end the script: `<` is escaped where a tag could begin."""
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
