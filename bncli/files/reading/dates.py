"""Convert dates and times of the day, as strings or as Arrow types, to seconds, and extract the parts that models use.

    2024-03-01  2024/3/1  2024.03.01                     year first
    01.03.2024  1/3/2024  01-03-2024                     day first or month first, according to the order
    01.03.24  3/1/24  24-03-01                           the same, or year first, with years of two digits
    1 March 2024  01-Mar-2024  1. Mar 2024  March 1, 2024     English names of months, three letters or all

A time of the day may follow after a blank, `T` or comma: 9:30, 09:30:00, 09:30:00.25, 9:30 PM, perhaps with a zone: Z,
UTC, +01:00. Times of the day may also stand alone. Times are read as written: zones are ignored and fractions of a
second are dropped. Years are 1 to 9999 in text, and unlimited in a columnar file.

`single_values` has the patterns of these strings, and `full_year`, which reads a year of two digits.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.schema import DateOrder, DatePart
from bncli.engine.kernels.arrays import Array, Mask
from bncli.files.reading.single_values import (
    DATE_SHAPES,
    DAY,
    ISO,
    MONTH_NUMBERS,
    date_pattern,
    full_year,
    shapes_of_order,
)

_TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MONTH_NUMBERS = np.array(list(MONTH_NUMBERS.values()))
_START_OF_YEAR_1 = -62135596800
"""In seconds since 1970."""
_TWO_NUMBERS = "[0-9][^0-9]+[0-9]"
"""A pattern that occurs in every date and time; a quick test, since the patterns of dates take long to compile."""


def to_seconds(texts: pa.Array, order: DateOrder) -> tuple[Array, Mask]:
    """Return the whole seconds of dates since 1970, or of times since midnight, and a mask of the valid strings.

    The value of any other string is NaN.

    order: the order of day, month and year in dates that are written in three numbers; `time` for times of the day.
    """
    if order != "time" and (seconds := _parse_iso_dates(texts)) is not None:
        return seconds, np.ones(len(seconds), np.bool_)
    seconds = np.full(len(texts), np.nan)
    if not pc.any(pc.match_substring_regex(texts, _TWO_NUMBERS)).as_py():
        return seconds, np.zeros(len(texts), np.bool_)
    for shape in shapes_of_order(order):
        remaining = np.flatnonzero(np.isnan(seconds))
        if len(remaining):
            seconds[remaining] = _parse_shape(texts.take(pa.array(remaining)), shape, order)
    if order == "yymd":
        # as in `single_values`, ISO dates are read whatever the order of the others
        iso = np.flatnonzero(
            np.isnan(seconds) & pc.match_substring_regex(texts, f"^{ISO}$").to_numpy(zero_copy_only=False)
        )
        if len(iso):
            seconds[iso] = _parse_shape(texts.take(pa.array(iso)), "ymd", order)
    return seconds, ~np.isnan(seconds)


def _parse_iso_dates(texts: pa.Array) -> Array | None:
    """Return the seconds of ISO dates and times without a zone, or None if any string is not one (the fast path)."""
    if not pc.all(pc.match_substring_regex(texts, f"^{ISO}$")).as_py():
        return None
    try:
        seconds = pc.utf8_slice_codeunits(texts, 0, 19).cast(pa.timestamp("s")).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    values: Array = seconds.to_numpy().astype(np.float64)
    return values if (values >= _START_OF_YEAR_1).all() else None


def _parse_shape(texts: pa.Array, shape: str, order: DateOrder) -> Array:
    """Return the seconds of the strings with this shape, (N,); NaN for other strings and for nonexistent dates."""
    match = pc.extract_regex(texts, f"^{date_pattern(shape)}$")
    fits = match.is_valid().to_numpy(zero_copy_only=False)
    seconds = np.full(len(texts), np.nan)
    if not fits.any():
        return seconds
    groups = match.filter(pa.array(fits)).flatten()
    parts = {match.type.field(i).name: group for i, group in enumerate(groups)}
    # The seconds of the day: 0 without a time, NaN for a time that does not exist, such as 24:00.
    hour, minute, second = (_to_integers(parts[name]) for name in "HMS")
    half = pc.utf8_lower(parts["p"]).to_numpy(zero_copy_only=False)
    is_twelve_hour = half != ""
    exists = (minute < 60) & (second < 60) & np.where(is_twelve_hour, (hour >= 1) & (hour <= 12), hour < 24)
    hour = np.where(is_twelve_hour, hour % 12 + 12 * (half == "p"), hour)
    parsed = np.where(exists, hour * 3600.0 + minute * 60 + second, np.nan)
    if shape != "time":
        first, last = _to_integers(parts["a"]), _to_integers(parts["c"])
        if "name" in shape:
            names = pa.array(list(MONTH_NUMBERS), pa.string())
            i = pc.index_in(pc.utf8_lower(parts["b"]), value_set=names).fill_null(-1).to_numpy()
            middle = np.where(i >= 0, _MONTH_NUMBERS[i], 0)
        else:
            middle = _to_integers(parts["b"])
        year_first = shape == "ymd" or order == "yymd"
        year, month, day = (first, middle, last) if year_first else (last, middle, first)
        if order == "mdy" and shape in ("three numbers", "two-digit year"):
            month, day = day, month
        exists = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
        if shape == "two-digit year":
            year_text = parts["a" if order == "yymd" else "c"]
            exists = (month >= 1) & (month <= 12) & (day >= 1)
            exists &= pc.equal(pc.utf8_length(year_text), 2).to_numpy(zero_copy_only=False)
            year = full_year(year)
        # A day that does not exist, such as 30 February, becomes NaN.
        # counted from January 1970; a month that does not exist is replaced by January for now
        months = (year - 1970) * 12 + np.where(exists, month, 1) - 1
        start, end = (m.astype("M8[M]").astype("M8[D]").astype(np.int64) for m in (months, months + 1))
        exists &= day <= end - start
        if "s" in parts:  # both separators must be the same
            exists &= pc.equal(parts["s"], parts["t"]).to_numpy(zero_copy_only=False)
        parsed += DAY * np.where(exists, start + day - 1.0, np.nan)
    seconds[fits] = parsed
    return seconds


def _to_integers(digits: pa.Array) -> NDArray[np.int64]:
    """Return strings of digits as integers, 0 for an empty string."""
    filled = pc.if_else(pc.equal(digits, ""), "0", digits)
    numbers: NDArray[np.int64] = filled.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def shape_of(text: str) -> str | None:
    """Return the shape of a string that looks like a date, `time` for a time of the day, None for any other string."""
    if not re.search(_TWO_NUMBERS, text):
        return None
    array = pa.array([text])
    return next((shape for shape in (*DATE_SHAPES, "time") if are_of_shape(array, shape)), None)


def are_of_shape(texts: pa.Array, shape: str) -> bool:
    """Return whether all strings look like dates of this shape; the dates need not exist."""
    return bool(pc.all(pc.match_substring_regex(texts, f"^{date_pattern(shape)}$")).as_py())


def is_temporal(arrow_type: pa.DataType) -> bool:
    """Return whether values of an Arrow type are dates or times of the day."""
    return bool(pa.types.is_timestamp(arrow_type) or pa.types.is_date(arrow_type) or pa.types.is_time(arrow_type))


def order_of(arrow_type: pa.DataType) -> DateOrder:
    """Return the order with which values of a temporal Arrow type are read: `time` for times of the day, or `ymd`."""
    return "time" if pa.types.is_time(arrow_type) else "ymd"


def holds_dates(arrow_type: pa.DataType, order: DateOrder) -> bool:
    """Return whether an Arrow type holds times of the day, if the order is `time`, or dates, if it is any other."""
    return is_temporal(arrow_type) and (order_of(arrow_type) == "time") == (order == "time")


def durations_of(array: pa.Array) -> Array:
    """Convert an array of durations to seconds, with NaN for nulls."""
    ticks: Array = array.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return ticks / _TICKS_PER_SECOND[array.type.unit]


def seconds_of(array: pa.Array) -> Array:
    """Convert an array of a temporal type to whole seconds since 1970 (since midnight for times), NaN for nulls."""
    arrow_type = array.type
    if pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None:
        array = pc.local_timestamp(array)
    ticks = array.cast(pa.int32() if arrow_type.bit_width == 32 else pa.int64())
    counts: NDArray[np.int64] = ticks.fill_null(0).to_numpy().astype(np.int64)
    unit = "ms" if arrow_type == pa.date64() else getattr(arrow_type, "unit", "")  # date32 has no unit: it counts days
    counted_seconds = counts // _TICKS_PER_SECOND[unit] if unit else counts * DAY
    seconds: Array = counted_seconds.astype(np.float64)
    seconds[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return seconds


def part_of(seconds: Array, part: DatePart, origin: int = 0) -> Array:
    """Return one part of each date, NaN if the date is missing.

    seconds: seconds since 1970, (N,), NaN if missing. `days` are counted from `origin`, in days since 1970-01-01.
    """
    present = ~np.isnan(seconds)
    counted_seconds = np.where(present, seconds, 0).astype(np.int64)
    days = counted_seconds // DAY
    if part == "hour":
        values = (counted_seconds - days * DAY) // 3600
    elif part == "days":
        values = days - origin
    elif part == "weekday":
        values = (days + 3) % 7 + 1  # 1970-01-01 was a Thursday, and Monday is 1
    else:
        months = days.astype("M8[D]").astype("M8[M]")
        number = months.astype(np.int64)
        values = {
            "year": number // 12 + 1970,
            "month": number % 12 + 1,
            "day": days - months.astype("M8[D]").astype(np.int64) + 1,
        }[part]
    return np.where(present, values, np.nan)
