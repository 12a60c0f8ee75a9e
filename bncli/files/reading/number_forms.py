"""Numbers in national forms: 1.234,56  1,234.56  1 234,56  1'234.56  € 60,93  12 %  (5.00)  5-

Once the decimal mark is known every other mark can only part thousands, so a form is the decimal mark and the sign.
Thousands are groups of three digits, all parted by the same mark, the first of one to three digits and not 0.

Conventions: where a mark may be either, as in `1,234` and in all that stands beside it, it is the decimal mark if
there are numbers of four digits and more without it; else it parts thousands if some numbers do without it; else,
every number having it, a comma is the decimal mark in a file whose fields are separated by semicolons and no other.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.forms import NumberForm
from bncli.engine.kernels.arrays import Array, Mask
from bncli.files.reading.numerals import to_numbers

_CODES = (
    "EUR|USD|GBP|JPY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|INR|CNY|BRL|ZAR|RUB|TRY|MXN|KRW|SGD|HKD|ILS|UAH|RON|BGN"
)
_SIGNS = r"US\$|C\$|A\$|R\$|€|\$|£|¥|₹|₽|₺|₩|₪|₴|zł|Kč|Ft|Fr\.|kr|Rs|%"
_FIND_AFFIX = rf"^[(+-]*(?P<x>{_CODES}|{_SIGNS}) ?[0-9.,+-]|[0-9.,] ?(?P<y>{_CODES}|{_SIGNS})[)-]*$"
_SAME = {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"}
"""Blanks that do not break, the minus sign and the curved apostrophe, as the characters on every keyboard."""
_MARKS = ".,' "
_LEAST_SPECIAL = 2
"""Different texts that are no plain numbers: a single one is more likely a slip than a way to write numbers."""


class Recognised(NamedTuple):
    """The form of a column's texts; `either`: they fit the other decimal mark as well."""

    form: NumberForm
    either: bool = False


def to_numbers_by(texts: pa.Array, form: NumberForm) -> tuple[Array, Mask]:
    """The number of each text, NaN where it is none in this form; and which texts are numbers."""
    bare = _bare(_plain(texts), form.affix)
    fits = pc.match_substring_regex(bare, _pattern(form.decimal))
    values = np.full(len(texts), np.nan)
    digits = pc.replace_substring_regex(bare.filter(fits), _thousands(form.decimal), "")
    is_number = fits.to_numpy(zero_copy_only=False).copy()
    values[is_number] = pc.replace_substring(digits, form.decimal, ".").cast(pa.float64()).to_numpy()
    values[~np.isfinite(values)] = np.nan  # 1e400
    return values, ~np.isnan(values)


def _plain(texts: pa.Array) -> pa.Array:
    for mark, same in _SAME.items():
        texts = pc.replace_substring(texts, mark, same)
    return texts


def _bare(texts: pa.Array, affix: str) -> pa.Array:
    """The texts without the affix, at either end, and with the minus in front: of 5-, (5), -€ 5 and € -5."""
    texts = pc.replace_substring_regex(texts, r"^\((.*)\)$", r"-\1")
    if affix:
        sign = re.escape(affix)
        texts = pc.replace_substring_regex(texts, rf"^([+-]?) ?{sign} ?([^ ])", r"\1\2")
        texts = pc.replace_substring_regex(texts, rf"([0-9.,]) ?{sign}(-?)$", r"\1\2")
    return pc.replace_substring_regex(texts, r"^([0-9.,].*)-$", r"-\1")


def _thousands(decimal: str) -> str:
    return "[" + _MARKS.replace(decimal, "") + "]"


def _pattern(decimal: str) -> str:
    point = re.escape(decimal)
    grouped = "|".join(rf"[1-9][0-9]{{0,2}}(?:{re.escape(m)}[0-9]{{3}})+" for m in _MARKS if m != decimal)
    return rf"^[+-]?(?:(?:{grouped}|[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def find_form(texts: pa.Array, decimal: str | None, delimiter: str) -> Recognised | None:
    """The one form of all the texts, at least one of them; None if there is none. `decimal`: what the user says."""
    if decimal is None and _count_special(texts) < _LEAST_SPECIAL:
        return None
    fitting = fitting_forms(texts, decimal)
    if len(fitting) < 2:
        return Recognised(fitting[0]) if fitting else None
    marks = [mark for mark in ".," if pc.any(pc.match_substring(texts, mark)).as_py()]
    if len(marks) == 2:  # 1.234 and 5,678: whichever is the decimal mark, one of them means what it does not say
        return None
    if not marks:
        return Recognised(fitting[0])
    affix = fitting[0].affix
    is_decimal = _is_decimal(_bare(_plain(texts), affix), marks[0], delimiter)
    return Recognised(NumberForm(marks[0] if is_decimal else ".,".replace(marks[0], ""), affix), either=True)


def nearest_fit(texts: pa.Array) -> list[tuple[str, Mask]]:
    """Which texts are numbers with a decimal point, a comma, either of them; beside the first sign that occurs."""
    signed = texts.filter(pc.match_substring_regex(_plain(texts), _FIND_AFFIX))
    found = pc.extract_regex(_plain(signed.slice(0, 1)), _FIND_AFFIX)
    affix = (found[0].as_py()["x"] or found[0].as_py()["y"]) if len(found) else ""
    names = {".": "numbers", ",": "numbers with a decimal comma"}
    fits = [(what, to_numbers_by(texts, NumberForm(mark, affix))[1]) for mark, what in names.items()]
    return [*fits, ("numbers", fits[0][1] | fits[1][1])]


def _count_special(texts: pa.Array) -> int:
    """How many are no plain numbers."""
    wrong = to_numbers(texts, ())[1]
    return 0 if wrong is None else int(wrong.sum())


def fitting_forms(texts: pa.Array, decimal: str | None) -> list[NumberForm]:
    """Those forms, with a decimal point and a decimal comma, in which all the texts, at least one, are numbers."""
    if not len(texts):
        return []
    forms = [NumberForm(mark, _find_affix(texts)) for mark in (decimal or ".,")]
    return [form for form in forms if to_numbers_by(texts, form)[1].all()]


def _find_affix(texts: pa.Array) -> str:
    """The sign at the first text, if all have it."""
    first = _plain(texts.slice(0, 1))
    found = pc.extract_regex(first, _FIND_AFFIX)[0].as_py()
    affix = "" if found is None else found["x"] or found["y"]
    return affix if affix and pc.all(pc.match_substring(texts, affix)).as_py() else ""


def _is_decimal(bare: pa.Array, mark: str, delimiter: str) -> bool:
    if pc.any(pc.match_substring_regex(bare, r"^[+-]?[0-9]{4,}$")).as_py():
        return True
    if not pc.all(pc.match_substring(bare, mark)).as_py():
        return False
    return (mark == ",") == (delimiter == ";")
