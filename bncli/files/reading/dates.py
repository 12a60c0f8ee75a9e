"""Dates and times written as text, or held by a columnar file, as seconds; and the parts of them that models use.

    2024-03-01  2024/3/1  2024.03.01                     year first
    01.03.2024  1/3/2024  01-03-2024                     day or month first, as is said
    01.03.24  3/1/24  24-03-01                           the same, or year first, with years of two digits: 1970 to 2069
    1 March 2024  01-Mar-2024  1. Mar 2024  March 1, 2024     English names of months, three letters or all

each perhaps followed by a time of the day: a blank, `T` or comma, then 9:30, 09:30:00, 09:30:00.25, 9:30 PM, and
perhaps a zone: Z, UTC, +01:00. Times of the day may stand alone. What counts is the clock that the text shows: a zone
changes nothing, and fractions of a second are dropped. Years are 1 to 9999 in text, and any in a columnar file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.number_formats import DateOrder, DatePart
from bncli.engine.kernels.arrays import Array, Mask

DAY = 86400
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""In a second."""
_CLOCK = (
    r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]{1,9})?)?"
    r"(?: ?(?P<p>[AaPp])\.?[Mm]\.?)?(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_NUMBERS = r"(?P<a>[0-9]{%s})(?P<s>[-./])(?P<b>[0-9]{1,2})(?P<t>[-./])(?P<c>[0-9]{%s})"
_SHAPES = {
    "ymd": _NUMBERS % ("4", "1,2"),
    "three numbers": _NUMBERS % ("1,2", "4"),
    "two-digit year": _NUMBERS % ("1,2", "1,2"),
    "day name year": r"(?P<a>[0-9]{1,2})(?:st|nd|rd|th|\.)?[-/ ]?(?P<b>[A-Za-z]{3,9})\.?,?[-/ ]?(?P<c>[0-9]{4})",
    "name day year": r"(?P<b>[A-Za-z]{3,9})\.? (?P<a>[0-9]{1,2})(?:st|nd|rd|th)?,? (?P<c>[0-9]{4})",
}
_SIMPLE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?)?$"
_MONTHS = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
_MONTH_NAMES = pa.array([name[:3] for name in _MONTHS] + _MONTHS + ["sept"])
_MONTH_NUMBERS = np.array([*range(1, 13), *range(1, 13), 9])
_FIRST_OF_TWO_DIGITS = 1970
"""The year that 70 stands for; 69 is 2069."""
_FIRST_YEAR = -62135596800
"""Seconds from 1970 back to the year 1."""


def to_seconds(texts: pa.Array, order: DateOrder) -> tuple[Array, Mask]:
    """Return seconds since 1970 (of the day, for times), whole, NaN where there is no date.

    And which texts are dates.
    """
    if order != "time" and (simple := _simple(texts)) is not None:
        return simple, np.ones(len(simple), np.bool_)
    seconds = np.full(len(texts), np.nan)
    for shape in ("time",) if order == "time" else _SHAPES:
        if (order == "ymd" and shape in ("three numbers", "two-digit year")) or (
            order == "yymd" and shape != "two-digit year"
        ):
            continue
        rest = np.flatnonzero(np.isnan(seconds))
        if len(rest):
            seconds[rest] = _read(texts.take(pa.array(rest)), shape, order)
    return seconds, ~np.isnan(seconds)


def _simple(texts: pa.Array) -> Array | None:
    """Return the quick way, for ISO dates and times without a zone; None if anything else is among the texts."""
    if not pc.all(pc.match_substring_regex(texts, _SIMPLE)).as_py():
        return None
    try:
        seconds = pc.utf8_slice_codeunits(texts, 0, 19).cast(pa.timestamp("s")).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    values: Array = seconds.to_numpy().astype(np.float64)
    return values if (values >= _FIRST_YEAR).all() else None


def _read(texts: pa.Array, shape: str, order: DateOrder) -> Array:
    """Return the seconds of the texts of one shape, NaN for all others."""
    found = pc.extract_regex(texts, _pattern(shape))
    fits = found.is_valid().to_numpy(zero_copy_only=False)
    seconds = np.full(len(texts), np.nan)
    fields = found.filter(pa.array(fits)).flatten()
    parts = {found.type.field(i).name: field for i, field in enumerate(fields)}
    read = _clock(parts)
    if shape != "time":
        # Days since 1970, NaN for a day that does not exist, as 30 February.
        first, last = _whole(parts["a"]), _whole(parts["c"])
        middle = _months(parts["b"]) if "name" in shape else _whole(parts["b"])
        year_first = shape == "ymd" or order == "yymd"
        year, month, day = (first, middle, last) if year_first else (last, middle, first)
        if order == "mdy" and shape in ("three numbers", "two-digit year"):
            month, day = day, month
        exists = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
        if shape == "two-digit year":
            year_text = parts["a" if order == "yymd" else "c"]
            exists = (month >= 1) & (month <= 12) & (day >= 1)
            exists &= pc.equal(pc.utf8_length(year_text), 2).to_numpy(zero_copy_only=False)
            year = _FIRST_OF_TWO_DIGITS + (year - _FIRST_OF_TWO_DIGITS) % 100
        months = (year - 1970) * 12 + np.where(exists, month, 1) - 1
        start, after = _first_days(months), _first_days(months + 1)
        exists &= day <= after - start
        if "s" in parts:
            exists &= pc.equal(parts["s"], parts["t"]).to_numpy(zero_copy_only=False)
        read += DAY * np.where(exists, start + day - 1.0, np.nan)
    seconds[fits] = read
    return seconds


def _pattern(shape: str) -> str:
    return f"^{_CLOCK}$" if shape == "time" else f"^{_SHAPES[shape]}(?:(?:T| |, ?){_CLOCK})?$"


def _clock(parts: dict[str, pa.Array]) -> Array:
    """Return seconds of the day, 0 without a time, NaN for a time that does not exist, as 24:00."""
    hour, minute, second = (_whole(parts[name]) for name in "HMS")
    half = pc.utf8_lower(parts["p"]).to_numpy(zero_copy_only=False)
    twelve = half != ""
    exists = (minute < 60) & (second < 60) & np.where(twelve, (hour >= 1) & (hour <= 12), hour < 24)
    hour = np.where(twelve, hour % 12 + 12 * (half == "p"), hour)
    return np.where(exists, hour * 3600.0 + minute * 60 + second, np.nan)


def _whole(digits: pa.Array) -> NDArray[np.int64]:
    """Return numbers of a few digits; no digits are 0."""
    filled = pc.if_else(pc.equal(digits, ""), "0", digits)
    numbers: NDArray[np.int64] = filled.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _months(names: pa.Array) -> NDArray[np.int64]:
    """Return the number of the month, 0 if it is no name of one."""
    found = pc.index_in(pc.utf8_lower(names), value_set=_MONTH_NAMES).fill_null(-1).to_numpy()
    return np.where(found >= 0, _MONTH_NUMBERS[found], 0)


def _first_days(months: NDArray[Any]) -> NDArray[np.int64]:
    """Days since 1970 of the first day of months, which are counted from January 1970."""
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def shape_of(text: str) -> str | None:
    """Return the shape of a text that looks like a date, `time` if like a time of the day; None if like neither."""
    one = pa.array([text])
    return next((shape for shape in (*_SHAPES, "time") if are_of_shape(one, shape)), None)


def are_of_shape(texts: pa.Array, shape: str) -> bool:
    """Return whether all texts look like dates of this shape; not all need to exist."""
    return bool(pc.all(pc.match_substring_regex(texts, _pattern(shape))).as_py())


def is_temporal(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are dates or times of the day."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))


def order_of(kind: pa.DataType) -> DateOrder:
    """Return what values of a temporal Arrow type are written as."""
    return "time" if pa.types.is_time(kind) else "ymd"


def holds_dates(kind: pa.DataType, order: DateOrder) -> bool:
    """Return whether an Arrow type is one of times (for the order `time`), or of dates (for the others)."""
    return is_temporal(kind) and (order_of(kind) == "time") == (order == "time")


def durations_of(array: pa.Array) -> Array:
    """Return the seconds of an array of durations, NaN for nulls."""
    ticks: Array = array.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return ticks / _TICKS[array.type.unit]


def seconds_of(array: pa.Array) -> Array:
    """Return the seconds of an array of a temporal type, whole, NaN for nulls."""
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        array = pc.local_timestamp(array)
    ticks = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    counts: NDArray[np.int64] = ticks.fill_null(0).to_numpy().astype(np.int64)
    unit = "ms" if kind == pa.date64() else getattr(kind, "unit", "")  # date32 counts days
    whole = counts // _TICKS[unit] if unit else counts * DAY
    seconds: Array = whole.astype(np.float64)
    seconds[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return seconds


def part_of(seconds: Array, part: DatePart, origin: int = 0) -> Array:
    """Return a part of each date, NaN where it is missing; `days` are counted from the day `origin`."""
    present = ~np.isnan(seconds)
    whole = np.where(present, seconds, 0).astype(np.int64)
    days = whole // DAY
    if part == "hour":
        values = (whole - days * DAY) // 3600
    elif part == "days":
        values = days - origin
    elif part == "weekday":
        values = (days + 3) % 7 + 1
    else:
        months = days.astype("M8[D]").astype("M8[M]")
        number = months.astype(np.int64)
        values = {
            "year": number // 12 + 1970,
            "month": number % 12 + 1,
            "day": days - months.astype("M8[D]").astype(np.int64) + 1,
        }[part]
    return np.where(present, values, np.nan)
