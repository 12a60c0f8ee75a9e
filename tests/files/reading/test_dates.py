"""Dates and times as text and in columnar files, against Python's own calendar."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import DATE_ORDERS, DateOrder
from bncli.files.reading.dates import durations_of, holds_dates, order_of, part_of, seconds_of, shape_of, to_seconds
from bncli.files.reading.single_values import seconds_of_text
from tests.sweeps import examples

EPOCH = dt.datetime(1970, 1, 1)
DATES: list[tuple[str, DateOrder, Callable[[dt.datetime], str]]] = [
    ("iso", "ymd", lambda d: f"{d.year:04}-{d.month:02}-{d.day:02}"),
    ("slashes, year first", "dmy", lambda d: f"{d.year:04}/{d.month}/{d.day}"),
    ("dots, year first", "ymd", lambda d: f"{d.year:04}.{d.month:02}.{d.day:02}"),
    ("german", "dmy", lambda d: f"{d.day:02}.{d.month:02}.{d.year:04}"),
    ("british", "dmy", lambda d: f"{d.day}/{d.month}/{d.year:04}"),
    ("american", "mdy", lambda d: f"{d.month}/{d.day}/{d.year:04}"),
    ("hyphens", "dmy", lambda d: f"{d.day:02}-{d.month:02}-{d.year:04}"),
    ("oracle", "ymd", lambda d: f"{d.day:02}-{d.strftime('%b').upper()}-{d.year:04}"),
    ("name", "mdy", lambda d: f"{d.day} {d.strftime('%B')} {d.year:04}"),
    ("american name", "ymd", lambda d: f"{d.strftime('%B')} {d.day}, {d.year:04}"),
]
CLOCKS: list[tuple[str, Callable[[dt.datetime], str]]] = [
    ("T", lambda d: f"T{d:%H:%M:%S}"),
    ("blank", lambda d: f" {d:%H:%M:%S}"),
    ("fraction", lambda d: f" {d:%H:%M:%S}.{d.microsecond:06}"),
    ("nanoseconds, Z", lambda d: f"T{d:%H:%M:%S}.{d.microsecond:06}789Z"),
    ("offset", lambda d: f" {d:%H:%M:%S}+05:30"),
    ("one digit", lambda d: f" {d.hour}:{d:%M:%S}"),
    ("half days", lambda d: f", {d:%I:%M:%S} {'AM' if d.hour < 12 else 'p.m.'}"),
]


def seconds(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(seconds=1)


@pytest.mark.parametrize(("order", "write"), [form[1:] for form in DATES], ids=[form[0] for form in DATES])
@settings(max_examples=15)
@given(moments=st.lists(st.datetimes(), min_size=1, max_size=20))
def test_dates_read_back(order: DateOrder, write: Callable[[dt.datetime], str], moments: list[dt.datetime]) -> None:
    found, fits = to_seconds(pa.array([write(m) for m in moments]), order)
    assert fits.all()
    assert found.tolist() == [seconds(dt.datetime.combine(m.date(), dt.time())) for m in moments]


@pytest.mark.parametrize("clock", [clock for _, clock in CLOCKS], ids=[name for name, _ in CLOCKS])
@settings(max_examples=15)
@given(moments=st.lists(st.datetimes(), min_size=1, max_size=20), form=st.sampled_from(DATES))
def test_dates_with_times_read_back(
    clock: Callable[[dt.datetime], str],
    moments: list[dt.datetime],
    form: tuple[str, DateOrder, Callable[[dt.datetime], str]],
) -> None:
    _, order, write = form
    found, fits = to_seconds(pa.array([write(m) + clock(m) for m in moments]), order)
    assert fits.all()
    assert found.tolist() == [seconds(m) for m in moments]


@given(st.lists(st.datetimes(), min_size=1, max_size=20), st.dates())
def test_parts_are_those_of_the_calendar(moments: list[dt.datetime], origin: dt.date) -> None:
    found = np.array([*(float(seconds(m)) for m in moments), np.nan])
    since = (origin - EPOCH.date()).days
    wanted = {
        "year": [m.year for m in moments],
        "month": [m.month for m in moments],
        "day": [m.day for m in moments],
        "weekday": [m.isoweekday() for m in moments],
        "hour": [m.hour for m in moments],
        "days": [(m.date() - origin).days for m in moments],
    }
    for part, expected in wanted.items():
        values = part_of(found, part, since)  # type: ignore[arg-type]
        assert values[:-1].tolist() == expected
        assert np.isnan(values[-1])


NO_DATES = (
    *("2024-02-30", "2023-02-29", "30.02.2024", "2024-13-01", "0000-01-01", "00.01.2024", "1.0.2024", "2024-1/2"),
    *("10000-01-01", "2024-03-01 24:00", "2024-03-01 23:60", "2024-03-01 23:59:60", "2024-03-01 13:00 PM"),
    *(
        "2024-03-01 0:30 AM",
        "1.3.4",
        "31.02.24",
        "1.3/24",
        "1 Foo 2024",
        "2024-03",
        "2024",
        "12:00",
        "",
        "-",
        "2024-03-01 12",
    ),
    "\u0661.\u0663.2024",
)


@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date(text: str) -> None:
    for order in ("ymd", "dmy", "mdy"):
        found, fits = to_seconds(pa.array([text, "2024-03-01"]), order)
        assert fits.tolist() == [False, True]
        assert np.isnan(found[0])


def test_day_or_month_first_is_as_is_said() -> None:
    texts = pa.array(["1/2/2024", "13/2/2024", "2/13/2024"])
    assert to_seconds(texts, "dmy")[1].tolist() == [True, True, False]
    assert to_seconds(texts, "mdy")[1].tolist() == [True, False, True]
    assert not to_seconds(texts, "ymd")[1].any()
    assert part_of(to_seconds(texts, "dmy")[0], "month")[0] == 2
    assert part_of(to_seconds(texts, "mdy")[0], "month")[0] == 1


def test_times_of_the_day() -> None:
    texts = ["9:30", "09:30:59.5", "12:00 AM", "12:00 pm", "23:59", "24:00", "2024-03-01"]
    found, fits = to_seconds(pa.array(texts), "time")
    assert found[fits].tolist() == [34200, 34259, 0, 43200, 86340]
    assert fits.tolist() == [True] * 5 + [False] * 2


@settings(max_examples=examples(13))
@given(st.lists(st.one_of(st.text(), st.text("0123456789-./: TZ+AMPamp,")), max_size=8))
def test_any_text_is_a_date_or_none(texts: list[str]) -> None:
    for order in DATE_ORDERS:
        found, fits = to_seconds(pa.array(texts, pa.string()), order)
        assert (np.isnan(found) == ~fits).all()
    assert all(shape_of(text) is None or any(c.isdigit() for c in text) for text in texts)


UNITS = {"s": 10**6, "ms": 10**3, "us": 1}
"""Microseconds of a unit."""


@given(st.lists(st.none() | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), max_size=9))
def test_timestamps_of_every_unit(moments: list[dt.datetime | None]) -> None:
    expected = [None if m is None else seconds(m) for m in moments]
    for unit in ("s", "ms", "us", "ns"):
        ticks = [None if m is None else (m - EPOCH) // dt.timedelta(microseconds=1) for m in moments]
        scaled = [None if t is None else t * 1000 if unit == "ns" else t // UNITS[unit] for t in ticks]
        found = seconds_of(pa.array(scaled, pa.timestamp(unit)))
        assert [None if np.isnan(value) else value for value in found.tolist()] == expected


@given(st.lists(st.datetimes(dt.datetime(1972, 1, 1), dt.datetime(2036, 1, 1)), min_size=1, max_size=9))
def test_a_zone_shows_its_own_clock(moments: list[dt.datetime]) -> None:
    zone = ZoneInfo("America/New_York")
    array = pa.array([m.replace(tzinfo=dt.UTC) for m in moments], pa.timestamp("us", tz="America/New_York"))
    local = [m.replace(tzinfo=dt.UTC).astimezone(zone).replace(tzinfo=None) for m in moments]
    assert seconds_of(array).tolist() == [seconds(m) for m in local]


def test_other_temporal_types() -> None:
    day = dt.date(2024, 3, 1)
    for kind in (pa.date32(), pa.date64()):
        assert seconds_of(pa.array([day, None], kind))[0] == seconds(dt.datetime(2024, 3, 1))
        assert holds_dates(kind, "dmy")
        assert not holds_dates(kind, "time")
    for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        assert seconds_of(pa.array([dt.time(9, 30)], kind)).tolist() == [34200]
        assert order_of(kind) == "time"
    for unit in ("s", "ms", "us", "ns"):
        found = durations_of(pa.array([dt.timedelta(seconds=90), None, dt.timedelta(days=-1)], pa.duration(unit)))
        assert found[[0, 2]].tolist() == [90, -86400]
        assert np.isnan(found[1])
    assert durations_of(pa.array([1500], pa.duration("ms"))).tolist() == [1.5]


def test_years_beyond_the_calendar_of_python() -> None:
    found = seconds_of(pa.array([8_000_000_000_000, -80_000_000_000_000], pa.timestamp("s")))
    assert part_of(found, "year").tolist() == [255479, -2533130]


SHORT = {"dmy": "%d.%m.%y", "mdy": "%m/%d/%y", "yymd": "%y-%m-%d"}


@given(
    st.lists(st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2069, 12, 31, 23, 59)), min_size=1, max_size=9),
    st.sampled_from(sorted(SHORT)),
)
def test_years_of_two_digits_are_those_from_1970_to_2069(moments: list[dt.datetime], order: str) -> None:
    """Python writes them; what is read is the same moment."""
    texts = pa.array([f"{moment:{SHORT[order]} %H:%M}" for moment in moments])
    found, fits = to_seconds(texts, order)  # type: ignore[arg-type]
    assert fits.all()
    since = dt.datetime(1970, 1, 1)
    assert found.tolist() == [(m.replace(second=0, microsecond=0) - since).total_seconds() for m in moments]
    assert not to_seconds(texts, "ymd")[1].any()
    assert not to_seconds(texts, "time")[1].any()


@given(
    st.lists(
        st.tuples(
            st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2069, 12, 31, 23, 59)),
            st.sampled_from([*SHORT.values(), "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%d.%m.%Y", "%H:%M", "%d %B %Y", "x%d"]),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(DATE_ORDERS),
)
def test_a_string_is_read_alike_alone_and_among_others(
    moments: list[tuple[dt.datetime, str]], order: DateOrder
) -> None:
    texts = [format(moment, shape) for moment, shape in moments]
    found, fits = to_seconds(pa.array(texts), order)
    alone = [seconds_of_text(text, order) for text in texts]
    np.testing.assert_array_equal(found, alone)
    np.testing.assert_array_equal(fits, ~np.isnan(alone))
