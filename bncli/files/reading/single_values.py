"""The patterns of numbers and dates, and the encoding of single Python values as codes of a model's attributes.

The patterns decide which strings are numbers, dates and times; `numbers` and `dates` apply them to Arrow arrays.
`full_year` decides the century of a two-digit year. Single values get the same codes as they would get in a table from
`rows_by_schema` and `engine.data.dataset`. Nothing here needs pyarrow, so that a row can be scored in microseconds.
Values are read as follows:

    numeric attribute      numbers are used as they are, NaN is missing, infinity is an error; strings are parsed in its
                           form
    part of dates          date, datetime and time objects are read by their local time, ignoring the time zone; strings
                           are parsed; numbers are an error
    categorical attribute  values that are not strings are converted to strings as Arrow writes them (5, 0.5, true)

Everywhere, strings are stripped of blanks, and missing tokens, None and NaN are missing.
"""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import Attribute, CategoricalAttribute, DateForm, DateOrder, NumberForm, Schema
from bncli.errors import BncliError, ModelError
from bncli.files.reading.source import BLANKS, MissingTokens, shorten

_Year = TypeVar("_Year", int, NDArray[np.int64])

DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
is_decimal = re.compile(DECIMAL).fullmatch
ASCII_MARKS = {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"}
"""ASCII replacements for no-break and thin spaces, the minus sign and the curved apostrophe."""
MARKS = ".,' "
"""Decimal marks, and marks that separate thousands."""
DAY = 86400
CLOCK = (
    r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]{1,9})?)?"
    r"(?: ?(?P<p>[AaPp])\.?[Mm]\.?)?(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_NUMBERS = r"(?P<a>[0-9]{%s})(?P<s>[-./])(?P<b>[0-9]{1,2})(?P<t>[-./])(?P<c>[0-9]{%s})"
DATE_SHAPES = {
    "ymd": _NUMBERS % ("4", "1,2"),
    "three numbers": _NUMBERS % ("1,2", "4"),
    "two-digit year": _NUMBERS % ("1,2", "1,2"),
    "day name year": r"(?P<a>[0-9]{1,2})(?:st|nd|rd|th|\.)?[-/ ]?(?P<b>[A-Za-z]{3,9})\.?,?[-/ ]?(?P<c>[0-9]{4})",
    "name day year": r"(?P<b>[A-Za-z]{3,9})\.? (?P<a>[0-9]{1,2})(?:st|nd|rd|th)?,? (?P<c>[0-9]{4})",
}
ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?)?"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTH_NUMBERS = {
    **{name[:3]: number for number, name in enumerate(_MONTHS, 1)},
    **{name: number for number, name in enumerate(_MONTHS, 1)},
    "sept": 9,
}
FIRST_TWO_DIGIT_YEAR = 1970
"""The year written 70; the year written 69 is 2069."""
_DATE_WORDS = {
    "time": "a time of day",
    "ymd": "a date with the year first",
    "dmy": "a date with the day first",
    "mdy": "a date with the month first",
    "yymd": "a date with a two-digit year first",
}
_EPOCH = datetime.date(1970, 1, 1).toordinal()

CONTAINERS = (Mapping, list, set, tuple, np.ndarray, complex)
"""Types of values that no column holds."""


def is_missing_value(value: Any) -> bool:
    """Return whether a value is None, NaN or the missing value of a library."""
    try:
        return value is None or bool(value != value)
    # the NA of pandas is neither equal nor unequal to itself; comparing an array gives no single Boolean
    except (TypeError, ValueError):
        return not isinstance(value, CONTAINERS)


@dataclass(frozen=True)
class ValueEncoder:
    """An encoder of the values of one column as codes of one attribute.

    - cuts: the cuts of a numeric attribute, or None for a categorical one
    - codes: the codes of levels and missing tokens, keyed by string; any other string is unseen
    - missing, unknown: the codes of a missing and of an unseen value
    - missing_words: the strings that mean a missing value in a numeric attribute
    - strict: whether an unseen value is an error
    """

    name: str
    form: NumberForm | DateForm | None
    cuts: tuple[float, ...] | None
    codes: Mapping[str, int]
    missing: int
    unknown: int
    missing_words: frozenset[str] = field(default=frozenset())
    strict: bool = False

    @staticmethod
    def of(attribute: Attribute, schema: Schema) -> ValueEncoder:
        """Return the encoder of an attribute under the policies of its schema."""
        tokens = MissingTokens.of(schema.missing_tokens)
        missing, unknown = attribute.n_values, attribute.cardinality
        if isinstance(attribute, CategoricalAttribute):
            # a missing token overrides a level with the same text
            codes = {**attribute.code_of, **dict.fromkeys(tokens.text, missing)}
            strict = schema.unseen == "error"
            return ValueEncoder(attribute.name, None, None, codes, missing, unknown, strict=strict)
        words = tokens.number
        if isinstance(attribute.form, NumberForm):
            words = (*words, *attribute.form.words)
        return ValueEncoder(attribute.name, attribute.form, attribute.cuts, {}, missing, unknown, frozenset(words))

    def encode(self, value: Any) -> int:
        """Return the code of a value; raise BncliError for a value that the attribute cannot have.

        Raises ModelError for an unseen value if `strict`.
        """
        if isinstance(value, np.generic):
            ticks = {np.datetime64: "M8[us]", np.timedelta64: "m8[us]"}.get(type(value))
            value = value.item() if ticks is None else value.astype(ticks).item()
        if is_missing_value(value):
            return self.missing
        if self.cuts is None:
            text = self._table_text(value).strip(BLANKS)
            code = self.codes.get(text, self.unknown)
            if self.strict and text not in self.codes:
                what = f"column {self.name!r} has the value {text!r}, which was not seen in training"
                raise ModelError(what, hint="fit the model with unseen='average' to score such rows")
            return code
        number = self._number_or_seconds(value)
        if math.isnan(number):
            return self.missing
        if isinstance(self.form, DateForm):
            number = _part_of(int(number), self.form)
        return bisect_left(self.cuts, number)

    def _number_or_seconds(self, value: Any) -> float:
        """Return a number, the seconds of a date, or NaN for a missing value; raise BncliError for any other value."""
        form = self.form
        if isinstance(form, DateForm):
            if isinstance(value, datetime.time) and form.order == "time":
                return float(value.hour * 3600 + value.minute * 60 + value.second)
            if isinstance(value, datetime.date) and form.order != "time":
                seconds = float((value.toordinal() - _EPOCH) * DAY)
                if isinstance(value, datetime.datetime):
                    seconds += value.hour * 3600 + value.minute * 60 + value.second
                return seconds
        elif isinstance(value, datetime.timedelta):
            return value / datetime.timedelta(microseconds=1) / 1e6
        elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:  # a whole number of more than 308 digits
                number = math.inf
            if math.isinf(number):
                raise self._refusal(str(value))
            return number
        text = self._table_text(value).strip(BLANKS)
        if text in self.missing_words:
            return math.nan
        if form is None:
            number = float(text) if is_decimal(text) else math.nan
        elif isinstance(form, NumberForm):
            number = number_in_form(text, form)
        else:
            number = seconds_of_text(text, form.order)
        if not math.isfinite(number):
            raise self._refusal(text)
        return number

    def _refusal(self, text: str) -> BncliError:
        what = f"column '{self.name}' contains '{shorten(text)}', which is not {describe_expected(self.form)}"
        return BncliError(what, hint="use None for a missing value")

    def _table_text(self, value: Any) -> str:
        """Return the string that represents a value in a table; raise BncliError for a value that has none."""
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            return _text_of_float(value)
        if isinstance(value, (int, Decimal, datetime.date, datetime.time)):
            if isinstance(value, datetime.datetime):
                return value.replace(tzinfo=None).isoformat(" ", "microseconds")
            return (
                value.replace(tzinfo=None).isoformat("microseconds") if isinstance(value, datetime.time) else str(value)
            )
        what = f"column '{self.name}' contains a value of type {type(value).__name__}"
        raise BncliError(what, hint="a value must be a string, a number, a date, or None if it is missing")


def _text_of_float(value: float) -> str:
    """Format a float as Arrow does: integers without a point, and with an exponent below 1e-6 and from 1e10 on."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    minus, shown = "-" if sign else "", "".join(map(str, digits))
    power = len(shown) - 1 + exponent
    if power >= 10 or power < -6:
        fraction = f".{shown[1:]}" if len(shown) > 1 else ""
        return f"{minus}{shown[0]}{fraction}e{power:+d}"
    return minus + format(Decimal((0, digits, exponent)), "f")


def _part_of(seconds: int, form: DateForm) -> int:
    """Return the part of a date that `form` names; `seconds` are counted from 1970 (see `dates.part_of`)."""
    days, seconds_of_day = divmod(seconds, DAY)
    if form.part == "hour":
        return seconds_of_day // 3600
    if form.part == "days":
        return days - form.origin
    if form.part == "weekday":
        return (days + 3) % 7 + 1
    return int(getattr(datetime.date.fromordinal(days + _EPOCH), form.part))


def number_in_form(text: str, form: NumberForm) -> float:
    """Parse a string as a number in a national form; return NaN if it is not in this form (see `numbers`)."""
    for character, replacement in ASCII_MARKS.items():
        text = text.replace(character, replacement)
    text = re.sub(r"^\((.*)\)$", r"-\1", text)
    if form.affix:
        sign = re.escape(form.affix)
        text = re.sub(rf"^([+-]?) ?{sign} ?([^ ])", r"\1\2", text)
        text = re.sub(rf"([0-9.,]) ?{sign}(-?)$", r"\1\2", text)
    text = re.sub(r"^([0-9.,].*)-$", r"-\1", text)
    if not number_pattern(form.decimal).fullmatch(text):
        return math.nan
    for mark in MARKS.replace(form.decimal, ""):
        text = text.replace(mark, "")
    number = float(text.replace(form.decimal, "."))
    return number if math.isfinite(number) else math.nan


@cache
def number_pattern(decimal: str) -> re.Pattern[str]:
    """Return the pattern of a number with this decimal mark, for a whole string; other marks separate thousands."""
    point = re.escape(decimal)
    grouped = "|".join(rf"[1-9][0-9]{{0,2}}(?:{re.escape(m)}[0-9]{{3}})+" for m in MARKS if m != decimal)
    return re.compile(rf"[+-]?(?:(?:{grouped}|[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")


def seconds_of_text(text: str, order: DateOrder) -> float:
    """Return the whole seconds of a date since 1970, or of a time since midnight; NaN for any other string."""
    for shape in shapes_of_order(order, is_iso=re.fullmatch(ISO, text) is not None):
        match = re.fullmatch(date_pattern(shape), text)
        seconds = math.nan if match is None else _seconds_of_match(match.groupdict(), shape, order)
        if not math.isnan(seconds):
            return seconds
    return math.nan


def full_year(two_digits: _Year) -> _Year:
    """Return the year with these last two digits in the 100 years that begin with FIRST_TWO_DIGIT_YEAR."""
    return FIRST_TWO_DIGIT_YEAR + (two_digits - FIRST_TWO_DIGIT_YEAR) % 100


def _seconds_of_match(parts: Mapping[str, str | None], shape: str, order: DateOrder) -> float:
    hour, minute, second = (int(parts[name] or 0) for name in "HMS")
    half = (parts["p"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return math.nan
        # 12 am is 0, and 12 pm is 12
        hour = hour % 12 + 12 * (half == "p")
    if hour > 23 or minute > 59 or second > 59:
        return math.nan
    seconds = hour * 3600.0 + minute * 60 + second
    if shape == "time":
        return seconds
    first, middle, last = (str(parts[name]) for name in "abc")
    if parts.get("s") != parts.get("t"):  # both separators must be the same
        return math.nan
    year_first = shape == "ymd" or order == "yymd"
    year_text, day_text = (first, last) if year_first else (last, first)
    month_text = middle
    if order == "mdy" and shape in ("three numbers", "two-digit year"):
        month_text, day_text = day_text, month_text
    year = int(year_text)
    if shape == "two-digit year":
        if len(year_text) != 2:
            return math.nan
        year = full_year(year)
    month = MONTH_NUMBERS.get(month_text.lower(), 0) if "name" in shape else int(month_text)
    try:
        day = datetime.date(year, month, int(day_text)).toordinal() - _EPOCH
    except ValueError:  # a day that does not exist, such as 30 February
        return math.nan
    return DAY * float(day) + seconds


def shapes_of_order(order: DateOrder, *, is_iso: bool = False) -> tuple[str, ...]:
    """Return the shapes of the dates that can be read with an order.

    If `is_iso`, the order `yymd` has only the shape of dates with a four-digit year first.
    """
    if order == "time":
        return ("time",)
    if order == "ymd":
        return tuple(shape for shape in DATE_SHAPES if shape not in ("three numbers", "two-digit year"))
    if order == "yymd":
        return ("ymd",) if is_iso else ("two-digit year",)
    return tuple(DATE_SHAPES)


def date_pattern(shape: str) -> str:
    """Return the pattern that matches a whole string of this shape, which may be `time`."""
    return CLOCK if shape == "time" else f"{DATE_SHAPES[shape]}(?:(?:T| |, ?){CLOCK})?"


def describe_expected(form: NumberForm | DateForm | None) -> str:
    """Describe, for messages, the values that a column of numbers or dates should have."""
    if isinstance(form, NumberForm):
        return f"a number with a decimal {'comma' if form.decimal == ',' else 'point'}"
    return "a finite number" if form is None else _DATE_WORDS[form.order]
