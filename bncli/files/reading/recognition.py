"""Whether a column of text holds dates, or numbers in a national form: what every one of its values agrees on.

Conventions: more than two different values are needed, as for numbers; dates with day, month and year in three numbers
are day first if every value can be read so, whatever parts the numbers, else month first; one column has one shape of
dates, the zone and the time of the day apart, unless the user names the order of day and month.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.forms import DateForm, DateOrder, Form
from bncli.files.reading.dates import are_of_shape, shape_of, to_seconds
from bncli.files.reading.forms import read_distinct
from bncli.files.reading.growing import more_than_two
from bncli.files.reading.number_forms import find_form, fitting_forms
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.vocabulary import distinct_levels

_N_TRIED = 64
_FIRST_WORDS: dict[str, tuple[str, ...]] = {"dmy": ("day", "month", "year"), "mdy": ("month", "day", "year")}


class Meaning(NamedTuple):
    """The form of a column's values, in words, and the other reading that fits as well (empty: none does)."""

    form: Form
    words: str
    instead: str = ""


def meaning_of(name: str, texts: pa.Array, tokens: Tokens, source: Source, delimiter: str | None) -> Meaning | None:
    """What the texts of a column, each of them once, are; None if they are just text.

    `delimiter` separates the fields of the file; None for a columnar file, whose text is no number.
    """
    first = distinct_levels(texts.slice(0, _N_TRIED), tokens.number)
    if len(first) <= 2 and len(texts) <= _N_TRIED:
        return None
    if not pc.all(pc.match_substring_regex(first, "[0-9]")).as_py():
        # no form of a number or a date goes without a digit, and most columns of text end here
        return None
    numbers = delimiter is not None and bool(fitting_forms(first, source.decimal))
    if not numbers and not _fitting_orders(first, source.dates):
        return None
    present = distinct_levels(texts, tokens.number)
    found = _numbers(present, source.decimal, delimiter) if numbers and delimiter is not None else None
    found = found or _dates(name, present, source.dates)
    if found is None or not more_than_two([read_distinct(found.form, present, ())[0]]):
        return None
    return found


def _dates(name: str, texts: pa.Array, asked: str) -> Meaning | None:
    orders = _fitting_orders(texts, asked)
    if not orders:
        return None
    instead = f"--dates {orders[1]}" if len(orders) > 1 else ""
    return Meaning(DateForm(name, "days", orders[0]), _in_words(texts, orders[0]), instead)


def _fitting_orders(texts: pa.Array, asked: str) -> list[DateOrder]:
    if not len(texts) or asked == "off":
        return []
    return [order for order in _orders(texts, asked) if to_seconds(texts, order)[1].all()]


def _orders(texts: pa.Array, asked: str) -> tuple[DateOrder, ...]:
    """The orders that may be, the likelier first."""
    shape = shape_of(texts[0].as_py())
    if shape == "time":
        return ("time",)
    if asked != "auto":
        return ("dmy",) if asked == "dmy" else ("mdy",)
    if shape is None or not are_of_shape(texts, shape):
        return ()
    return ("dmy", "mdy") if shape == "three numbers" else ("ymd",)


def _in_words(texts: pa.Array, order: DateOrder) -> str:
    """How the dates are written: day.month.year and time."""
    if order == "time":
        return "times of the day"
    first = texts[0].as_py()
    shape = shape_of(first)
    words = {"ymd": ("year", "month", "day"), "three numbers": _FIRST_WORDS.get(order)}.get(str(shape))
    mark = next((c for c in first if not c.isdigit()), "")
    clock = " and time" if pc.any(pc.match_substring(texts, ":")).as_py() else ""
    return (mark.join((*words,)) if words else "with names of months") + clock


def _numbers(texts: pa.Array, decimal: str | None, delimiter: str) -> Meaning | None:
    found = find_form(texts, decimal, delimiter)
    if found is None:
        return None
    form = found.form
    mark = {".": "point", ",": "comma"}[form.decimal]
    other = {".": ",", ",": "."}[form.decimal]
    words = f"decimal {mark}" + (f", {form.affix}" if form.affix else "")
    return Meaning(form, words, f"--decimal {other}" if found.either else "")
