"""Names in place of those that a file format cannot hold, and a plain writing for the ones that were replaced.

`distinct` gives every text a legal one, no two the same: what is legal keeps its text, whatever stands before it in
the list; the others are changed as little as the format asks, and numbered where they would collide. `encoded` writes
any text with letters, digits and `%_.-~` alone, so that a property can keep it through every parser.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

Legal = Callable[[str], str]
"""A text that the format can hold in place of any text; a text that it can hold is its own."""


def distinct(texts: Sequence[str], legal: Legal, fold: Callable[[str], str] = str) -> tuple[str, ...]:
    """Legal texts for distinct `texts`, in their order, all distinct after `fold`."""
    kept: dict[str, str] = {}
    for text in texts:
        if legal(text) == text:
            kept.setdefault(fold(text), text)
    chosen = {text: text for text in kept.values()}
    taken = set(kept)
    numbers: dict[str, int] = {}
    for text in texts:
        if text not in chosen:
            chosen[text] = _numbered(legal(text), taken, numbers, fold)
    return tuple(chosen[text] for text in texts)


def _numbered(text: str, taken: set[str], numbers: dict[str, int], fold: Callable[[str], str]) -> str:
    """Return `text`, or `text_2`, `text_3`, ...: the first that is not taken, which then is."""
    candidate = text
    while fold(candidate) in taken:
        numbers[text] = numbers.get(text, 1) + 1
        candidate = f"{text}_{numbers[text]}"
    taken.add(fold(candidate))
    return candidate


def identifier(text: str) -> str:
    """ASCII letters, digits and underscores, the first no digit: accents dropped, `(-1, 2.5]` as `minus_1_2_5`."""
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", text):
        return text
    signed = re.sub(r"(?<![\w.])-(?=[\d.]|inf)", "minus_", text)
    plain = unicodedata.normalize("NFKD", signed)
    ascii_only = "".join(c if c.isascii() else "" if unicodedata.combining(c) else "_" for c in plain)
    word = re.sub("[^A-Za-z0-9]+", "_", ascii_only).strip("_")
    return word if word[:1].isalpha() else f"_{word}"


def printed(text: str) -> str:
    """Return one line of visible text with single blanks inside, in which everything else has become `_`."""
    if text and text.isprintable() and text == " ".join(text.split()):
        return text
    visible = "".join(c if c.isprintable() else " " if c.isspace() else "_" for c in text)
    return " ".join(visible.split()) or "_"


def encoded(text: str) -> str:
    """Return the text in percent-encoding (RFC 3986); the empty one as `%`, which no other text is written as.

    The words by which simple parsers of BIF find their way are broken up.
    """
    from urllib.parse import quote

    written = quote(text, safe="") or "%"
    return re.sub("(v)(?=ariable)|(p)(?=roper|robab)", lambda found: f"%{ord(found[0]):x}", written)


def decoded(text: str) -> str:
    """Return what `encoded` was given. Raises ValueError for bytes that are not UTF-8."""
    from urllib.parse import unquote

    return "" if text == "%" else unquote(text, errors="strict")
