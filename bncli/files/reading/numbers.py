"""Numbers written as text, plain or in a national form.

A plain number is a finite decimal number such as `12`, `-0.5` or `+1.5e-3`, with optional blanks around it. Arrow's
parsers also accept `inf`, `nan` and hexadecimal numbers; here these are not numbers. Neither is a number too large for
a double (1e400), which is not finite.

National forms: 1.234,56  1,234.56  1 234,56  1'234.56  € 60,93  12 %  (5.00)  5-

Once the decimal mark is known, every other mark can only separate thousands, so a form consists of the decimal mark
and the currency or percent sign. Thousands are groups of three digits, all separated by the same mark; the first group
has one to three digits and does not begin with 0.

Conventions. Values such as `1,234` are numbers with either decimal mark, and sometimes this holds for all values of a
column. If they contain only one of the two marks, its meaning follows from the first of these rules that applies:

- If a number of four or more digits has no mark, the mark is the decimal mark.
- If some number has no mark, the mark separates thousands.
- If the mark is a comma, it is the decimal mark if semicolons separate the fields of the file. A point is the decimal
  mark if they do not. Otherwise the mark separates thousands.

If both marks occur in such values, the column stays text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.schema import NumberForm
from bncli.engine.kernels.arrays import Array, Integers, Mask
from bncli.files.reading.single_values import ASCII_MARKS, DECIMAL, MARKS, is_decimal, number_pattern
from bncli.files.reading.source import BLANKS, ValueKind

FEW = 128
"""Up to this many strings are processed in Python, since a call of Arrow costs more; wide tables have many columns."""
_LEADING_ZEROS = "^0[0-9]+$"
_has_leading_zero = re.compile("0[0-9]+").fullmatch
_INTEGER = "^-?[0-9]{1,19}$"
_MAYBE_BEYOND_INT64 = 1e18
_CURRENCIES = (
    "EUR|USD|GBP|JPY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|INR|CNY|BRL|ZAR|RUB|TRY|MXN|KRW|SGD|HKD|ILS|UAH|RON|BGN"
)
_SIGNS = r"US\$|C\$|A\$|R\$|€|\$|£|¥|₹|₽|₺|₩|₪|₴|zł|Kč|Ft|Fr\.|kr|Rs|%"
_AFFIX = rf"^[(+-]*(?P<x>{_CURRENCIES}|{_SIGNS}) ?[0-9.,+-]|[0-9.,] ?(?P<y>{_CURRENCIES}|{_SIGNS})[)-]*$"
_MIN_SPECIAL = 2
"""Unless the decimal mark is given, a national form needs at least this many distinct strings that are not plain."""


def to_numbers(texts: pa.Array, missing: Sequence[str]) -> tuple[Array, Mask | None]:
    """Parse strings as plain numbers; return the values, and a mask of strings that are neither numbers nor missing.

    texts: an Arrow array of strings, (N,). missing: the missing tokens. A value is NaN if the string is a missing token
    or not a number. The mask is None if there are no other strings.
    """
    if len(texts) <= FEW:
        trimmed = [text.strip(BLANKS) for text in texts.to_pylist()]
        parsed = [float(t) if t not in missing and is_decimal(t) else math.nan for t in trimmed]
        values = np.array([number if math.isfinite(number) else math.nan for number in parsed], np.float64)
        wrong = ~(~np.isnan(values) | np.array([t in missing for t in trimmed], np.bool_))
        return values, wrong if wrong.any() else None
    plain = parse_plain_numbers(texts, missing)
    if plain is not None:
        return plain, None
    encoded = texts.dictionary_encode()  # every distinct text is examined once, not every row
    distinct, is_number, is_missing = _parse_each(encoded.dictionary, missing)
    codes = encoded.indices.to_numpy()
    wrong = ~(is_number | is_missing)[codes]
    return distinct[codes], wrong if wrong.any() else None


def parse_plain_numbers(texts: pa.Array, missing: Sequence[str]) -> NDArray[Any] | None:
    """Parse strings with Arrow, with NaN for `missing` tokens; return None if any other string is not a finite number.

    This is the fast path; a missing token with blanks around it also leads to None.
    """
    is_missing = pc.is_in(texts, value_set=pa.array(missing, pa.string()))
    if pc.any(is_missing).as_py():
        texts = pc.if_else(is_missing, pa.scalar(None, pa.string()), texts)
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return to_finite(numbers)


def _parse_each(texts: pa.Array, missing: Sequence[str]) -> tuple[Array, Mask, Mask]:
    """Return, for each string, its value or NaN, whether it is a finite number, and whether it is a missing token."""
    trimmed = pc.utf8_trim(texts, characters=BLANKS)
    is_missing = pc.is_in(trimmed, value_set=pa.array(missing, pa.string())).to_numpy(zero_copy_only=False)
    is_decimal = pc.match_substring_regex(trimmed, pattern=f"^{DECIMAL}$").to_numpy(zero_copy_only=False) & ~is_missing
    values = np.full(len(texts), np.nan)
    values[is_decimal] = trimmed.filter(pa.array(is_decimal)).cast(pa.float64()).to_numpy()
    is_number = np.isfinite(values)
    values[~is_number] = np.nan
    return values, is_number, is_missing


def to_finite(numbers: pa.Array) -> NDArray[Any] | None:
    """Convert an Arrow array of numbers to NumPy, with NaN for nulls; return None if a number is not finite."""
    values: NDArray[Any] = numbers.to_numpy(zero_copy_only=False)
    if pa.types.is_integer(numbers.type):
        return values
    n_finite = np.count_nonzero(np.isfinite(values))
    return values if n_finite + numbers.null_count == len(values) else None


def guess_kinds(columns: Sequence[pa.Array], missing: Sequence[str]) -> list[ValueKind]:
    """Return the type that the strings of each column suggest; all columns have the same length.

    A column is INTEGER or NUMBER if it has more than two distinct numbers, none with leading zeros, and otherwise only
    missing values; it is INTEGER if all of its numbers are integers within int64. All other columns are TEXT. All
    columns are examined together, since each column of a wide table has few strings.
    """
    if not columns:
        return []
    texts = pc.utf8_trim(pa.concat_arrays(columns), characters=BLANKS)
    numbers, is_number, is_missing = _parse_each(texts, missing)
    # (columns, texts), since all columns have the same length
    values = numbers.reshape(len(columns), -1)
    present = ~np.isnan(values)
    # There are more than two distinct numbers if one lies strictly between the smallest and the largest.
    low = np.where(present, values, np.inf).min(axis=1, initial=np.inf)
    high = np.where(present, values, -np.inf).max(axis=1, initial=-np.inf)
    has_more_than_two = (present & (values != low[:, np.newaxis]) & (values != high[:, np.newaxis])).any(axis=1)
    has_zeros = pc.match_substring_regex(texts, _LEADING_ZEROS).to_numpy(zero_copy_only=False)
    is_numeric = ((is_number | is_missing) & ~has_zeros).reshape(values.shape).all(axis=1) & has_more_than_two
    is_whole = pc.match_substring_regex(texts, _INTEGER).to_numpy(zero_copy_only=False) | ~is_number
    is_integer = is_whole.reshape(values.shape).all(axis=1)
    is_large = (np.abs(np.where(present, values, 0.0)) >= _MAYBE_BEYOND_INT64).any(axis=1)
    for column in np.flatnonzero(is_integer & is_large):  # 19 digits may be too many for an int64
        own = texts.slice(column * values.shape[1], values.shape[1])
        try:
            own.filter(pa.array(present[column])).cast(pa.int64())
        except pa.ArrowInvalid:
            is_integer[column] = False
    return [
        (ValueKind.INTEGER if integer else ValueKind.NUMBER) if numeric else ValueKind.TEXT
        for numeric, integer in zip(is_numeric, is_integer, strict=True)
    ]


def has_leading_zeros(texts: pa.Array) -> bool:
    """Return whether any of the strings, without blanks, consists of digits with a leading zero, such as 01."""
    if len(texts) <= FEW:
        return any(_has_leading_zero(text.strip(BLANKS)) for text in texts.to_pylist())
    trimmed = pc.utf8_trim(texts, characters=BLANKS)
    return bool(pc.any(pc.match_substring_regex(trimmed, _LEADING_ZEROS)).as_py())


def look_like_codes(texts: pa.Array, counts: Integers) -> bool:
    """Return whether distinct strings, stripped of blanks, are codes such as 01234; `counts` has the frequency of each.

    Codes consist of digits only. If zero (written 0 or 000) is more frequent than any other value, the column is taken
    to be a count of something that is usually absent, and not a code.
    """
    if not pc.all(pc.match_substring_regex(texts, "^[0-9]+$")).as_py():
        return False
    is_zero = pc.match_substring_regex(texts, "^0+$").to_numpy(zero_copy_only=False)
    return bool(counts[is_zero].sum() <= counts[~is_zero].max(initial=0))


def to_numbers_in_form(texts: pa.Array, form: NumberForm) -> tuple[Array, Mask]:
    """Parse strings as numbers in a national form; return the values, and a mask of the strings that are such numbers.

    The value of any other string is NaN.
    """
    bare = _without_affix(_to_ascii(texts), form.affix)
    fits = pc.match_substring_regex(bare, f"^{number_pattern(form.decimal).pattern}$")
    values = np.full(len(texts), np.nan)
    # all marks but the decimal one separate thousands
    digits = pc.replace_substring_regex(bare.filter(fits), "[" + MARKS.replace(form.decimal, "") + "]", "")
    is_number = fits.to_numpy(zero_copy_only=False).copy()
    values[is_number] = pc.replace_substring(digits, form.decimal, ".").cast(pa.float64()).to_numpy()
    values[~np.isfinite(values)] = np.nan  # 1e400
    return values, ~np.isnan(values)


def find_form(texts: pa.Array, decimal: str | None, delimiter: str) -> tuple[NumberForm, bool] | None:
    """Return the national form in which all of the distinct strings are numbers, and whether it is ambiguous, or None.

    decimal: the decimal mark that the user gave, or None. delimiter: separates the fields of the file. The form is
    ambiguous if the strings are also numbers, but other ones, with the other decimal mark. Returns None if there is no
    such form, if both marks occur and either could be the decimal mark, or if no mark is given and at most one string
    is not a plain number.
    """
    if decimal is None:
        wrong = to_numbers(texts, ())[1]
        if wrong is None or int(wrong.sum()) < _MIN_SPECIAL:
            return None
    fitting = fitting_forms(texts, decimal)
    if len(fitting) < 2:
        return (fitting[0], False) if fitting else None
    marks = [mark for mark in ".," if pc.any(pc.match_substring(texts, mark)).as_py()]
    if len(marks) == 2:  # 1.234 and 5,678: one of the two would be off by a factor of 1000
        return None
    if not marks:
        return fitting[0], False
    mark, affix = marks[0], fitting[0].affix
    bare = _without_affix(_to_ascii(texts), affix)
    if pc.any(pc.match_substring_regex(bare, r"^[+-]?[0-9]{4,}$")).as_py():
        is_decimal = True
    else:
        is_decimal = pc.all(pc.match_substring(bare, mark)).as_py() and (mark == ",") == (delimiter == ";")
    return NumberForm(mark if is_decimal else ".,".replace(mark, ""), affix), True


def fitting_forms(texts: pa.Array, decimal: str | None) -> list[NumberForm]:
    """Return the forms in which all of the strings are numbers: with a decimal point, a decimal comma, both or neither.

    decimal: the only decimal mark to try, or None for both.
    """
    if not len(texts):
        return []
    affix = _first_affix(texts)
    if affix and not pc.all(pc.match_substring(texts, affix)).as_py():
        affix = ""
    forms = [NumberForm(mark, affix) for mark in (decimal or ".,")]
    return [form for form in forms if to_numbers_in_form(texts, form)[1].all()]


def fits_by_form(texts: pa.Array) -> list[tuple[str, Mask]]:
    """Return masks of the strings that are numbers with a decimal point, with a decimal comma, and with either of them.

    Each mask comes with a description of its form. Numbers may have the currency or percent sign that occurs first.
    """
    signed = texts.filter(pc.match_substring_regex(_to_ascii(texts), _AFFIX))
    affix = _first_affix(signed) if len(signed) else ""
    point, comma = (to_numbers_in_form(texts, NumberForm(mark, affix))[1] for mark in ".,")
    return [("numbers", point), ("numbers with a decimal comma", comma), ("numbers", point | comma)]


def _first_affix(texts: pa.Array) -> str:
    """Return the currency symbol, currency code or percent sign next to the number in the first string, or "".

    The array must not be empty; the other strings are not examined.
    """
    match = pc.extract_regex(_to_ascii(texts.slice(0, 1)), _AFFIX)[0].as_py()
    return "" if match is None else match["x"] or match["y"]


def _to_ascii(texts: pa.Array) -> pa.Array:
    for character, replacement in ASCII_MARKS.items():
        texts = pc.replace_substring(texts, character, replacement)
    return texts


def _without_affix(texts: pa.Array, affix: str) -> pa.Array:
    """Return strings without the affix at either end, with the minus sign in front: -5 for 5-, (5), -€ 5 and € -5."""
    texts = pc.replace_substring_regex(texts, r"^\((.*)\)$", r"-\1")
    if affix:
        sign = re.escape(affix)
        texts = pc.replace_substring_regex(texts, rf"^([+-]?) ?{sign} ?([^ ])", r"\1\2")
        texts = pc.replace_substring_regex(texts, rf"([0-9.,]) ?{sign}(-?)$", r"\1\2")
    return pc.replace_substring_regex(texts, r"^([0-9.,].*)-$", r"-\1")
