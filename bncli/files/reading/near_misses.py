"""Columns of text that a few values keep from being numbers or dates, and marks that usually mean a missing value.

They stay what they are, for that is what the file says; the user is told what else they might be. Conventions: at least
90 % of the different values, and at least 20 of them, must be numbers or dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.forms import DATE_ORDERS
from bncli.files.reading.dates import shape_of, to_seconds
from bncli.files.reading.growing import more_than_two
from bncli.files.reading.number_forms import nearest_fit
from bncli.files.reading.numerals import to_numbers

_LEAST_SHARE = 0.9
_LEAST_NUMBER = 20
_N_TRIED = 64
_N_SHOWN = 40
MARKS = (
    *("n/a", "N/A", "#N/A", "NA", "<NA>", "NULL", "null", "(null)", "NaN", "nan", "nil"),
    *("-", "--", "---", "."),
)
"""Other than the usual words for no value, which are often one: none, unknown."""


class NearMiss(NamedTuple):
    """What the values of a column nearly are, and the note about it (empty: there is nothing to say)."""

    why: str
    note: str = ""


def marks_among(levels: pa.Array) -> list[str]:
    """The values that usually mean a missing one; a hyphen beside a plus is a sign."""
    found: list[str] = levels.filter(pc.is_in(levels, value_set=_MARKS)).to_pylist()
    signs = bool(found) and pc.any(pc.is_in(levels, value_set=_PLUS_SIGNS)).as_py()
    return [mark for mark in found if not (signs and not mark.strip("-"))]


_MARKS, _PLUS_SIGNS = pa.array(MARKS), pa.array(["+", "++", "+++"])


def plain_numbers(levels: pa.Array) -> bool:
    """Whether the values would make a column of numbers."""
    numbers, wrong = to_numbers(levels, ())
    return wrong is None and more_than_two([numbers])


def near_miss(name: str, levels: pa.Array, *, text_file: bool, dates: str) -> NearMiss | None:
    """What the values, different ones and none missing, nearly are; None if they are just text."""
    if len(levels) < _LEAST_NUMBER:
        return None
    for sample in (levels.slice(0, _N_TRIED), levels):
        fits = [("dates", to_seconds(sample, order)[1]) for order in DATE_ORDERS]
        fits += nearest_fit(sample) if text_file else []
        what, fitting = max(fits, key=lambda fit: int(fit[1].sum()))
        if fitting.mean() < (_LEAST_SHARE if sample is levels else 0.5) or fitting.sum() < _LEAST_NUMBER:
            return None
    others = levels.filter(pa.array(~fitting))
    if len(others):
        other = _shown(others[0].as_py())
        note = f"column '{name}': {fitting.sum()} of {len(levels)} different values are {what}, but '{other}' is not"
        return NearMiss(f"{what} but for a few values", f"{note}; --missing '+{other}' reads it as missing")
    return _whole_miss(name, what, levels.to_pylist(), dates)


def _shown(text: str) -> str:
    return text if len(text) <= _N_SHOWN else text[:_N_SHOWN] + "..."


def _whole_miss(name: str, what: str, texts: Sequence[str], dates: str) -> NearMiss:
    """Why a column all of whose values are dates, or numbers, was not taken for such."""
    if what != "dates":
        note = f"column '{name}': numbers in which ',' and '.' may each be the decimal mark; --decimal says which"
        return NearMiss("numbers with contradictory marks", note)
    if dates == "off":
        return NearMiss("dates (--dates off)")
    first = shape_of(texts[0])
    other = next((text for text in texts if shape_of(text) != first), texts[-1])
    note = f"column '{name}': dates in several forms, as '{texts[0]}' and '{other}'; --dates dmy or mdy reads them all"
    return NearMiss("dates in several forms", note)
