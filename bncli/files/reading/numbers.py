"""Numbers written as text: a finite decimal number, as `12`, `-0.5`, `+1.5e-3`, with blanks allowed around it.

Arrow's parsers also take `inf`, `nan` and hexadecimal; here these are text. A number too large for a double (1e400)
is not finite and so is text as well.

Numbers in national forms: 1.234,56 1,234.56 1 234,56 1'234.56 € 60,93 12 % (5.00) 5-

Once the decimal mark is known every other mark can only part thousands, so a form is the decimal mark and the sign.
Thousands are groups of three digits, all parted by the same mark, the first of one to three digits and not 0.

Conventions: where a mark may be either, as in `1,234` and in all that stands beside it, it is the decimal mark if there
are numbers of four digits and more without it; else it parts thousands if some numbers do without it; else, every
number having it, a comma is the decimal mark in a file whose fields are separated by semicolons and no other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.number_formats import NumberForm
from bncli.engine.kernels.arrays import Array, Integers, Mask
from bncli.files.reading.source import BLANKS, ValueKind

_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_numerals_is_decimal = re.compile(_DECIMAL.removesuffix("$")).fullmatch
_LEADING_ZEROS = "^0[0-9]+$"
_LARGE = 1e18
_WHOLE = "^-?[0-9]{1,19}$"
FEW = 128
"""So few texts are walked through in Python: a call of Arrow costs more, and wide tables would make ten a column."""
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


class NumberFormat(NamedTuple):
    """The form of a column's texts; `either`: they fit the other decimal mark as well."""

    form: NumberForm
    either: bool = False


def to_numbers(texts: pa.Array, missing: Sequence[str]) -> tuple[Array, Mask | None]:
    """Return the numbers (NaN at `missing` tokens and non-numbers) and a mask of texts that are neither, or None."""
    if len(texts) <= FEW:
        values, is_number, is_missing = _examine_few(texts.to_pylist(), missing)
        bad = ~(is_number | is_missing)
        return values, bad if bad.any() else None
    quickly = all_numbers(texts, missing)
    if quickly is not None:
        return quickly, None
    encoded = texts.dictionary_encode()  # the slow way looks at every text once, not at every row
    distinct, is_number, is_missing = _examine(encoded.dictionary, missing)
    codes = encoded.indices.to_numpy()
    bad = ~(is_number | is_missing)[codes]
    return distinct[codes], bad if bad.any() else None


def _examine_few(texts: Sequence[str], missing: Sequence[str]) -> tuple[Array, Mask, Mask]:
    """Return the same as `_examine`."""
    trimmed = [text.strip(BLANKS) for text in texts]
    numbers = [float(t) if t not in missing and _numerals_is_decimal(t) else math.nan for t in trimmed]
    values = np.array([number if math.isfinite(number) else math.nan for number in numbers], np.float64)
    return values, ~np.isnan(values), np.array([t in missing for t in trimmed], np.bool_)


def all_numbers(texts: pa.Array, missing: Sequence[str]) -> Array | None:
    """Return the quick way, for plain numbers and plain missing tokens only."""
    is_missing = pc.is_in(texts, value_set=pa.array(missing, pa.string()))
    if pc.any(is_missing).as_py():
        texts = pc.if_else(is_missing, pa.scalar(None, pa.string()), texts)
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return to_numpy(numbers)


def _examine(texts: pa.Array, missing: Sequence[str]) -> tuple[Array, Mask, Mask]:
    """Of each text: its number or NaN, whether it is a finite number, whether it is missing."""
    trimmed = pc.utf8_trim(texts, characters=BLANKS)
    is_missing = pc.is_in(trimmed, value_set=pa.array(missing, pa.string())).to_numpy(zero_copy_only=False)
    is_decimal = pc.match_substring_regex(trimmed, pattern=_DECIMAL).to_numpy(zero_copy_only=False) & ~is_missing
    values = np.full(len(texts), np.nan)
    values[is_decimal] = trimmed.filter(pa.array(is_decimal)).cast(pa.float64()).to_numpy()
    is_number = np.isfinite(values)
    values[~is_number] = np.nan
    return values, is_number, is_missing


def kinds_of(columns: Sequence[pa.Array], missing: Sequence[str]) -> list[ValueKind]:
    """Return what the texts of each column, all of one length, look like.

    INTEGER or NUMBER where there are more than two numbers, none with leading zeros, and nothing else; TEXT elsewhere.
    All columns are looked at together: of a wide table each has few texts.
    """
    if not columns:
        return []
    texts = pc.utf8_trim(pa.concat_arrays(columns), characters=BLANKS)
    numbers, is_number, is_missing = _examine(texts, missing)
    values = numbers.reshape(len(columns), -1)
    has_zeros = pc.match_substring_regex(texts, _LEADING_ZEROS).to_numpy(zero_copy_only=False)
    is_whole = pc.match_substring_regex(texts, _WHOLE).to_numpy(zero_copy_only=False) | ~is_number
    numeric = ((is_number | is_missing) & ~has_zeros).reshape(values.shape).all(axis=1) & _more_than_two(values)
    whole = is_whole.reshape(values.shape).all(axis=1)
    large = (np.abs(np.where(np.isnan(values), 0.0, values)) >= _LARGE).any(axis=1)
    for c in np.flatnonzero(whole & large):
        own = texts.slice(c * values.shape[1], values.shape[1])
        whole[c] = _are_integers(own, ~np.isnan(values[c]))
    return [
        (ValueKind.INTEGER if w else ValueKind.NUMBER) if n else ValueKind.TEXT
        for n, w in zip(numeric, whole, strict=True)
    ]


def _more_than_two(values: Array) -> Mask:
    """Of each row, whether it has more than two different numbers."""
    present = ~np.isnan(values)
    low = np.where(present, values, np.inf).min(axis=1, initial=np.inf)
    high = np.where(present, values, -np.inf).max(axis=1, initial=-np.inf)
    between = present & (values != low[:, np.newaxis]) & (values != high[:, np.newaxis])
    return np.asarray(between.any(axis=1), np.bool_)


def _are_integers(texts: pa.Array, is_number: Mask) -> bool:
    try:
        texts.filter(pa.array(is_number)).cast(pa.int64())
    except pa.ArrowInvalid:  # 19 digits may be too many
        return False
    return True


def to_numpy(numbers: pa.Array) -> NDArray[Any] | None:
    """int64, or float64 with NaN for nulls; None if a number is not finite."""
    values: NDArray[Any] = numbers.to_numpy(zero_copy_only=False)
    if pa.types.is_integer(numbers.type):
        return values
    n_finite = np.count_nonzero(np.isfinite(values))
    return values if n_finite + numbers.null_count == len(values) else None


def padded(missing: Sequence[str]) -> list[str]:
    """Return the tokens with up to one blank at each end, for a parser that compares without trimming."""
    return list(dict.fromkeys(f"{a}{token}{b}" for token in missing for a in ("", " ") for b in ("", " ")))


def has_leading_zeros(texts: pa.Array) -> bool:
    """Return whether any of the texts is a number with leading zeros."""
    trimmed = pc.utf8_trim(texts, characters=BLANKS)
    return bool(pc.any(pc.match_substring_regex(trimmed, _LEADING_ZEROS)).as_py())


def look_like_codes(texts: pa.Array, counts: Integers) -> bool:
    """Return whether texts that occur so often, blanks around them stripped, are codes: digits only, and not mostly 0.

    Where zero, written 0 or 000, is commoner than any other value, it counts something that most often is not there.
    """
    if not pc.all(pc.match_substring_regex(texts, "^[0-9]+$")).as_py():
        return False
    is_zero = pc.match_substring_regex(texts, "^0+$").to_numpy(zero_copy_only=False)
    return bool(counts[is_zero].sum() <= counts[~is_zero].max(initial=0))


def to_numbers_by(texts: pa.Array, form: NumberForm) -> tuple[Array, Mask]:
    """Return the number of each text, NaN where it is none in this form; and which texts are numbers."""
    bare = _bare(_plain(texts), form.affix)
    fits = pc.match_substring_regex(bare, _pattern(form.decimal))
    values = np.full(len(texts), np.nan)
    digits = pc.replace_substring_regex(bare.filter(fits), "[" + _MARKS.replace(form.decimal, "") + "]", "")
    is_number = fits.to_numpy(zero_copy_only=False).copy()
    values[is_number] = pc.replace_substring(digits, form.decimal, ".").cast(pa.float64()).to_numpy()
    values[~np.isfinite(values)] = np.nan  # 1e400
    return values, ~np.isnan(values)


def _bare(texts: pa.Array, affix: str) -> pa.Array:
    """Return the texts without the affix, at either end, and with the minus in front: of 5-, (5), -€ 5 and € -5."""
    texts = pc.replace_substring_regex(texts, r"^\((.*)\)$", r"-\1")
    if affix:
        sign = re.escape(affix)
        texts = pc.replace_substring_regex(texts, rf"^([+-]?) ?{sign} ?([^ ])", r"\1\2")
        texts = pc.replace_substring_regex(texts, rf"([0-9.,]) ?{sign}(-?)$", r"\1\2")
    return pc.replace_substring_regex(texts, r"^([0-9.,].*)-$", r"-\1")


def _plain(texts: pa.Array) -> pa.Array:
    for mark, same in _SAME.items():
        texts = pc.replace_substring(texts, mark, same)
    return texts


def _pattern(decimal: str) -> str:
    point = re.escape(decimal)
    grouped = "|".join(rf"[1-9][0-9]{{0,2}}(?:{re.escape(m)}[0-9]{{3}})+" for m in _MARKS if m != decimal)
    return rf"^[+-]?(?:(?:{grouped}|[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def find_form(texts: pa.Array, decimal: str | None, delimiter: str) -> NumberFormat | None:
    """Return the one form of all the texts, at least one of them.

    None if there is none. `decimal`: what the user says.
    """
    if decimal is None and _count_special(texts) < _LEAST_SPECIAL:
        return None
    fitting = fitting_forms(texts, decimal)
    if len(fitting) < 2:
        return NumberFormat(fitting[0]) if fitting else None
    marks = [mark for mark in ".," if pc.any(pc.match_substring(texts, mark)).as_py()]
    if len(marks) == 2:  # 1.234 and 5,678: whichever is the decimal mark, one of them means what it does not say
        return None
    if not marks:
        return NumberFormat(fitting[0])
    affix = fitting[0].affix
    is_decimal = _number_forms_is_decimal(_bare(_plain(texts), affix), marks[0], delimiter)
    return NumberFormat(NumberForm(marks[0] if is_decimal else ".,".replace(marks[0], ""), affix), either=True)


def _count_special(texts: pa.Array) -> int:
    """Return how many are no plain numbers."""
    wrong = to_numbers(texts, ())[1]
    return 0 if wrong is None else int(wrong.sum())


def _number_forms_is_decimal(bare: pa.Array, mark: str, delimiter: str) -> bool:
    if pc.any(pc.match_substring_regex(bare, r"^[+-]?[0-9]{4,}$")).as_py():
        return True
    if not pc.all(pc.match_substring(bare, mark)).as_py():
        return False
    return (mark == ",") == (delimiter == ";")


def nearest_fit(texts: pa.Array) -> list[tuple[str, Mask]]:
    """Return which texts are numbers with a decimal point, a comma, either of them.

    Beside the first sign that occurs.
    """
    signed = texts.filter(pc.match_substring_regex(_plain(texts), _FIND_AFFIX))
    found = pc.extract_regex(_plain(signed.slice(0, 1)), _FIND_AFFIX)
    affix = (found[0].as_py()["x"] or found[0].as_py()["y"]) if len(found) else ""
    names = {".": "numbers", ",": "numbers with a decimal comma"}
    fits = [(what, to_numbers_by(texts, NumberForm(mark, affix))[1]) for mark, what in names.items()]
    return [*fits, ("numbers", fits[0][1] | fits[1][1])]


def fitting_forms(texts: pa.Array, decimal: str | None) -> list[NumberForm]:
    """Those forms, with a decimal point and a decimal comma, in which all the texts, at least one, are numbers."""
    if not len(texts):
        return []
    forms = [NumberForm(mark, _find_affix(texts)) for mark in (decimal or ".,")]
    return [form for form in forms if to_numbers_by(texts, form)[1].all()]


def _find_affix(texts: pa.Array) -> str:
    """Return the sign at the first text, if all have it."""
    first = _plain(texts.slice(0, 1))
    found = pc.extract_regex(first, _FIND_AFFIX)[0].as_py()
    affix = "" if found is None else found["x"] or found["y"]
    return affix if affix and pc.all(pc.match_substring(texts, affix)).as_py() else ""
