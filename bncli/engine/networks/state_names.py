"""What each code of an attribute is called: its interval, its level, or the name of the missing level.

An interval is written like (2.45,4.75], closed on the right, with the cuts as the shortest texts that read back as the
same numbers; so a binned table and an exported network call it the same.
"""

from __future__ import annotations

from itertools import count

from bncli.engine.data.schema import Attribute, NumericAttribute

_MISSING = "missing"


def value_names(attribute: Attribute) -> tuple[str, ...]:
    """The interval or level of each code, the missing level left out."""
    if not isinstance(attribute, NumericAttribute):
        return attribute.levels
    edges = ["-inf", *map(number_text, attribute.cuts), "inf"]
    closings = ["]"] * len(attribute.cuts) + [")"]
    return tuple(f"({a},{b}{end}" for a, b, end in zip(edges[:-1], edges[1:], closings, strict=True))


def state_names(attribute: Attribute) -> tuple[str, ...]:
    """A name for each code; the missing level is `missing`, or `missing_2`, ... where a level is called that."""
    names = value_names(attribute)
    if not attribute.missing:
        return names
    if _MISSING not in names:
        return (*names, _MISSING)
    return (*names, next(name for i in count(2) if (name := f"{_MISSING}_{i}") not in names))


def number_text(number: float) -> str:
    """The shortest text that reads back as the number; a whole number as such."""
    return repr(number).removesuffix(".0")
