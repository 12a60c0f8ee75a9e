"""Dates, national numbers, codes, words among numbers and marks of missing values, and the notes about them."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import Columns, NumericColumn
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.schema import DateForm, NumberForm
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Note
from tests.batches import blocks_of, read_batches
from tests.files.reading.tables import noted, read, rows_of, table, values, write, write_parquet

DAYS = [dt.date(2023, 12, 30) + dt.timedelta(days=9 * i) for i in range(40)]


@pytest.mark.parametrize(
    ("form", "order", "words"),
    [
        ("%Y-%m-%d", "ymd", "year-month-day"),
        ("%d.%m.%Y", "dmy", "day.month.year"),
        ("%d/%m/%Y", "dmy", "day/month/year"),
        ("%m/%d/%Y", "mdy", "month/day/year"),
        ("%d-%b-%Y", "ymd", "with names of months"),
    ],
)
def test_a_column_of_dates_becomes_its_parts(tmp_path: Path, form: str, order: str, words: str) -> None:
    columns, notes = noted(tmp_path, rows_of([f"{day:{form}}" for day in DAYS]))
    assert list(columns.attributes) == ["d.year", "d.month", "d.day", "d.weekday", "d.days"]
    assert values(columns, "d.year") == [day.year for day in DAYS]
    assert values(columns, "d.month") == [day.month for day in DAYS]
    assert values(columns, "d.day") == [day.day for day in DAYS]
    assert values(columns, "d.weekday") == [day.isoweekday() for day in DAYS]
    assert values(columns, "d.days") == [9 * i for i in range(40)]
    days = columns.attributes["d.days"]
    assert isinstance(days, NumericColumn)
    assert days.form == DateForm("d", "days", order, (DAYS[0] - dt.date(1970, 1, 1)).days)  # type: ignore[arg-type]
    assert f"date column d was expanded into .year, .month, .day, .weekday, .days (read as {words})" in notes


def test_only_parts_that_vary_are_kept(tmp_path: Path) -> None:
    columns, notes = noted(tmp_path, rows_of([f"2024-03-01 {i % 24:02}:30" for i in range(40)]))
    assert list(columns.attributes) == ["d.hour"]
    columns, _ = noted(tmp_path, rows_of([f"{i % 24}:30" for i in range(40)]))
    assert values(columns, "d.hour") == [i % 24 for i in range(40)]
    content = rows_of([f"2024-03-01 12:{i:02},{i}" for i in range(40)], "d,x,class")
    columns, notes = noted(tmp_path, content)
    assert list(columns.attributes) == ["x"]
    assert "left out as constant dates: d" in notes


@pytest.mark.parametrize("mark", ["/", ".", "-"])
def test_day_or_month_first_is_decided_over_all_values(tmp_path: Path, mark: str) -> None:
    either = [f"{i % 12 + 1}/{(i * 5 + i // 12) % 12 + 1}/2024".replace("/", mark) for i in range(30)]
    columns, notes = noted(tmp_path, rows_of(either))
    assert values(columns, "d.day")[:3] == [1, 2, 3]
    assert f"(read as day{mark}month{mark}year; --dates mdy is possible too)" in notes[0]
    assert values(noted(tmp_path, rows_of(either), dates="mdy")[0], "d.month")[:3] == [1, 2, 3]
    for last, part in (("1/13/2024", "d.month"), ("13/1/2024", "d.day")):
        columns, notes = noted(tmp_path, rows_of([*either, last.replace("/", mark)]), block_size=64)
        assert values(columns, part)[:3] == [1, 2, 3]
        assert "--dates" not in notes[0]
    both = [*either, "13/1/2024".replace("/", mark), "1/13/2024".replace("/", mark)]
    with pytest.raises(BncliError, match=r"are dates, but '.*' is not"):
        noted(tmp_path, rows_of(both))


def test_dates_that_do_not_agree_stay_text(tmp_path: Path) -> None:
    column = [day.isoformat() for day in DAYS]
    for other in ("2024-02-30", "2024-02-01 24:00", "0000-01-01", "10000-01-01", "soon"):
        with pytest.raises(BncliError, match=f"40 of 41 different values are dates, but '{other}' is not"):
            noted(tmp_path, rows_of([*column, other]))
    with pytest.raises(BncliError, match=r"dates in several formats, such as '2023-12-30' and '01\.02\.2024'"):
        noted(tmp_path, rows_of([*column, "01.02.2024"]))
    assert values(noted(tmp_path, rows_of([*column, "01.02.2024"]), dates="dmy")[0], "d.month")[-1] == 2


def test_two_dates_are_names(tmp_path: Path) -> None:
    columns, notes = noted(tmp_path, rows_of(["2024-01-01", "2024-01-02", ""] * 9))
    assert values(columns, "d")[:3] == ["2024-01-01", "2024-01-02", None]
    assert notes == []


def test_missing_dates(tmp_path: Path) -> None:
    column = [day.isoformat() for day in DAYS]
    columns, _ = noted(tmp_path, rows_of([*column, "", "?", "NA", " "]))
    assert values(columns, "d.month")[-5:] == [DAYS[-1].month, None, None, None, None]
    columns, _ = noted(tmp_path, rows_of([*column, "n/a", "-"]), missing_tokens=("+n/a", "+-"))
    assert values(columns, "d.month")[-3:] == [DAYS[-1].month, None, None]
    with pytest.raises(BncliError, match="are no attributes"):
        noted(tmp_path, rows_of([*column, "n/a", "-"]))


def test_what_the_user_says_of_dates_wins(tmp_path: Path) -> None:
    content = rows_of([f"{day.isoformat()},{i}" for i, day in enumerate(DAYS)], "d,x,class")
    assert list(noted(tmp_path, content, categorical=("d",))[0].attributes) == ["d", "x"]
    columns, notes = noted(tmp_path, content, dates="off")
    assert list(columns.attributes) == ["x"]
    assert "left out as dates (--dates off): d (add --categorical NAME to keep one)" in notes
    assert list(noted(tmp_path, content, ignore=("d",))[0].attributes) == ["x"]
    kept = list(noted(tmp_path, content, ignore=("d.month", "d.hour"), numeric=("d.day",))[0].attributes)
    assert kept == ["d.year", "d.day", "d.weekday", "d.days", "x"]
    with pytest.raises(UsageError, match=r"'d.month' is a number derived from.*add --categorical d to keep"):
        noted(tmp_path, content, categorical=("d.month",))
    with pytest.raises(UsageError, match=r"there is no column 'x.month'"):
        noted(tmp_path, content, ignore=("x.month",))
    with pytest.raises(UsageError, match=r"there is no column 'd.minute'"):
        noted(tmp_path, content, ignore=("d.minute",))


def test_a_part_whose_name_is_taken_is_left_out(tmp_path: Path) -> None:
    content = rows_of([f"{day.isoformat()},{i}" for i, day in enumerate(DAYS)], "d,d.month,class")
    columns, notes = noted(tmp_path, content)
    assert values(columns, "d.month") == list(range(40))
    assert "parts of dates were left out because other columns have their names: d.month" in notes


def test_the_origin_is_that_of_the_rows_that_count(tmp_path: Path) -> None:
    content = rows_of([f"{day.isoformat()},{min(i, 1)}" for i, day in enumerate(DAYS)], "d,w,class")
    assert values(noted(tmp_path, content, weights="w")[0], "d.days") == [9 * i for i in range(39)]


@pytest.mark.parametrize("block_size", [64, 1 << 20])
@pytest.mark.parametrize(("before", "after"), [("", ""), ('"', '"'), (" ", ""), ("", "\t")])
def test_leading_zeros_make_codes(tmp_path: Path, block_size: int, before: str, after: str) -> None:
    column = [f"{i % 50 + 1},{i}" for i in range(300)]
    content = rows_of([*column, f"{before}007{after},5"], "a,b,class")
    columns, notes = noted(tmp_path, content, block_size=block_size)
    assert values(columns, "a")[-3:] == ["49", "50", "007"]
    assert values(columns, "b")[-2:] == [299, 5]
    assert notes == ["read as codes because of leading zeros: a (--numeric NAME reads them as numbers)"]
    assert values(noted(tmp_path, content, numeric=("a",), block_size=block_size)[0], "a")[-1] == 7
    for other in ("8.5", "-8", "1e1"):
        columns, notes = noted(tmp_path, content + f"{other},1,u\n", block_size=block_size)
        assert values(columns, "a")[-2:] == [7, float(other)]
        assert "read as numbers although some values have leading zeros" in notes[0]


def test_numbers_padded_with_zeros_that_are_mostly_zero_stay_numbers(tmp_path: Path) -> None:
    columns, notes = noted(tmp_path, rows_of([f"{i if i % 3 else 0:04}" for i in range(60)]))
    assert values(columns, "d")[:4] == [0, 1, 2, 0]
    assert "read as numbers although some values have leading zeros" in notes[0]
    columns, _ = noted(tmp_path, rows_of([f"{i % 9:04}" for i in range(60)]))
    assert values(columns, "d")[:2] == ["0000", "0001"]


def test_codes_are_found_beside_malformed_rows_and_missing_values(tmp_path: Path) -> None:
    content = rows_of([f"{i % 50 + 1},{i % 7}" for i in range(300)] + ["", "08,"], "a,b,class")
    columns, _ = noted(tmp_path, content, block_size=128, on_bad_row="skip")
    assert values(columns, "a")[-1] == "08"


def test_national_numbers_of_a_semicolon_file(tmp_path: Path) -> None:
    rows = [f"{i},{i % 10};€ {i}.{i:03},{i % 100:02};{i} %;1 {i:03}" for i in range(1, 60)]
    columns, notes = noted(tmp_path, rows_of(rows, "a,b,c,d,class", ";"))
    assert values(columns, "a")[:2] == [1.1, 2.2]
    assert values(columns, "b")[:2] == [1001.01, 2002.02]
    assert values(columns, "c")[:2] == [1, 2]
    assert values(columns, "d")[:2] == [1001, 1002]
    assert notes == [
        "read as numbers with a decimal comma: a",
        "read as numbers with a decimal comma and the sign €: b",
        "read as numbers with a decimal point and the sign %: c",
        "read as numbers with a decimal point: d",
    ]


def test_a_forced_decimal_mark_holds_for_every_column(tmp_path: Path) -> None:
    content = rows_of([f"1.{i:03};{i};{i},5;w{i % 3}" for i in range(40)], "a,b,c,d,class", ";")
    assert values(noted(tmp_path, content)[0], "a")[:2] == [1, 1.001]
    columns, _ = noted(tmp_path, content, decimal=",", numeric=("b",))
    assert values(columns, "a")[:2] == [1000, 1001]
    assert values(columns, "c")[:2] == [0.5, 1.5]
    for name in "abc":
        assert columns.attributes[name].form == NumberForm(",")  # type: ignore[union-attr]
    assert values(columns, "d")[:2] == ["w0", "w1"]
    columns = table(tmp_path, rows_of([f"{i};1,5" for i in range(40)], "a,w,class", ";"), decimal=",", weights="w")
    assert columns.weights is not None
    assert columns.weights.tolist() == [1.5] * 40


def test_truth_values_are_names(tmp_path: Path) -> None:
    for yes, no in (("true", "false"), ("Yes", "No"), ("J", "N"), ("0", "1"), ("on", "off"), ("TRUE", "FALSE")):
        assert set(values(noted(tmp_path, rows_of([yes, no] * 20))[0], "d")) == {yes, no}


def test_marks_of_missing_values_are_told_once_for_the_whole_table(tmp_path: Path) -> None:
    rows = [f"{i}.5;{'n/a' if i % 7 == 0 else i};{['-', 'red', 'blue'][i % 3]};{'+-'[i % 2]}" for i in range(60)]
    content = rows_of(rows, "a,b,c,d,class", ";")
    columns, notes = noted(tmp_path, content)
    assert list(columns.attributes) == ["a", "c", "d"]
    assert notes == [
        "left out as numbers except for markers of missing values: b (add --categorical NAME to keep one)",
        "'n/a' in b and '-' in c may mean missing; "
        "add --missing +n/a --missing +- to treat them as missing, and to read b as numbers",
    ]
    columns, notes = noted(tmp_path, content, missing_tokens=("+n/a", "+-"))
    assert values(columns, "b")[:2] == [None, 1]
    assert values(columns, "c")[:2] == [None, "red"]
    assert notes == []


@pytest.mark.parametrize(
    ("tokens", "missing"),
    [
        (("+x",), {"", "?", "NA", "x"}),
        (("x",), {"", "x"}),
        (("x", "+y"), {"", "x", "y"}),
        (("++y",), {"", "?", "NA", "+y"}),
        (("+",), {"", "+"}),
    ],
)
def test_a_plus_adds_a_token(tmp_path: Path, tokens: tuple[str, ...], missing: set[str]) -> None:
    found = values(table(tmp_path, rows_of(["1", "2", "3", *sorted(missing)]), missing_tokens=tokens), "d")
    assert found == [1, 2, 3] + [None] * len(missing)
    for other in {"?", "x", "y", "+y", "+"} - missing:
        content = rows_of(["1", "2", "3", other, *missing])
        assert other in values(table(tmp_path, content, missing_tokens=tokens), "d")


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ([f"C{i}" for i in range(40)], "identifiers"),
        ([f"C{i % 25}" for i in range(40)], "categories with too many values"),
        ([f"the customer {i} was not amused" for i in range(40)], "free text"),
        ([f"{i}.5" if i > 3 else "wxyz"[i] for i in range(40)], "numbers except for a few values"),
        ([f"{i},5" if i > 3 else "wxyz"[i] for i in range(40)], "numbers with a decimal comma except for a few values"),
        ([f"{i},5" if i % 2 else f"{i}.5" for i in range(40)], "numbers with contradictory decimal marks"),
        ([f"2024-01-{i:02}" if i < 22 else f"{i}.01.2024" for i in range(1, 32)] * 2, "dates in several formats"),
    ],
)
def test_the_reason_for_leaving_a_column_out_is_the_true_one(tmp_path: Path, column: list[str], why: str) -> None:
    rows = [f"{value};{i % 30}" for i, value in enumerate(column[:40])]
    columns, notes = noted(tmp_path, rows_of(rows, "d,x,class", ";"))
    assert list(columns.attributes) == ["x"]
    assert f"left out as {why}: d (add --categorical NAME to keep one)" in notes


def test_temporal_columns_of_a_parquet_file(tmp_path: Path) -> None:
    moments = [dt.datetime.combine(day, dt.time(i % 24, 30)) for i, day in enumerate(DAYS)]
    path = write_parquet(
        tmp_path,
        {
            "ts": pa.array(moments, pa.timestamp("ns")),
            "zone": pa.array(moments, pa.timestamp("us", tz="Europe/Berlin")),
            "date": pa.array(DAYS, pa.date32()),
            "date64": pa.array([*DAYS[:-1], None], pa.date64()),
            "at": pa.array([m.time() for m in moments], pa.time64("ns")),
            "took": pa.array([dt.timedelta(seconds=1.5 * i) for i in range(40)], pa.duration("ms")),
            "text": [str(m) for m in moments],
            "k": ["u", "v"] * 20,
        },
    )
    columns = read(path)
    for name in ("ts", "date", "text"):
        assert values(columns, f"{name}.days") == [9 * i for i in range(40)]
    assert values(columns, "ts.hour") == values(columns, "at.hour") == [m.hour for m in moments]
    assert values(columns, "date64.days")[-2:] == [9 * 38, None]
    winter = dt.datetime(2024, 1, 8, 1, 30)
    assert values(columns, "zone.hour")[1] == (winter + dt.timedelta(hours=1)).hour
    assert values(columns, "took") == [1.5 * i for i in range(40)]
    assert "text.hour" in columns.attributes
    stays = read(path, dates="off", categorical=("date",))
    assert "ts.hour" not in stays.attributes
    assert values(stays, "date")[:2] == ["2023-12-30", "2024-01-08"]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_malformed_row_beside_values_without_a_python_text(tmp_path: Path, ending: str) -> None:
    content = pa.table(
        {
            "x": pa.array([1.0, float("inf"), 3, 4, 5]),
            "ns": pa.array([1, 1_709_296_245_123_456_789, 3, 4, 5], pa.timestamp("ns")),
            "far": pa.array([8 * 10**12] * 5, pa.timestamp("s")),
            "long": pa.array([2**62] * 5, pa.duration("s")),
            "class": ["u", "v", "u", "v", "u"],
        }
    )
    path = str(tmp_path / f"t.{ending}")
    if ending == "parquet":
        pa.parquet.write_table(content.drop_columns(["far"]), path)
    else:
        with pa.ipc.new_file(path, content.schema) as file:
            file.write_table(content)
    with pytest.raises(BncliError, match=r"malformed row: column 'x' contains 'inf'.*row 2"):
        read(path)
    assert values(read(path, on_bad_row="skip"), "x") == [1, 3, 4, 5]
    bad = tmp_path / "bad.csv"
    read(path, on_bad_row=str(bad), ignore=("long",))
    assert bad.read_text().startswith("inf,2024-03-01 12:30:45.123456789,")


def learnt(columns: Columns) -> Any:
    return learn_dataset(columns, discretize="equal-width", bins=3).schema


@given(
    st.lists(
        st.tuples(st.datetimes(dt.datetime(1900, 1, 1)), st.decimals(-9999, 9999, places=2)), min_size=4, max_size=30
    ),
    st.sampled_from(["%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%d/%m/%Y", "%d %b %Y"]),
    st.integers(40, 400),
)
def test_scoring_converts_as_training_did(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[dt.datetime, Any]], form: str, block_size: int
) -> None:
    rows = [*rows, (dt.datetime(2024, 3, 31, 1), rows[0][1]), (dt.datetime(1999, 2, 28, 13), rows[0][1])]
    lines = [f"{m:{form}};{str(n).replace('.', ',')} €" for m, n in rows]
    path = write(tmp_path_factory.getbasetemp(), rows_of(lines, "d,x,class", ";"), "forms.csv")
    columns = read(path, block_size=block_size)
    if not any(isinstance(column, NumericColumn) and column.form for column in columns.attributes.values()):
        return  # all values alike
    schema = learnt(columns)
    with blocks_of(block_size):
        again = read_labelled(Source((path,)), schema)
        batches = list(read_batches(Source((path,)), schema, list(columns.attributes)))
        given = read_columns(Source((path,)), cuts=cuts_of(schema, "equal-width", {}))
    for name in columns.attributes:
        assert values(again, name) == values(given, name) == values(columns, name)
        scored = [v for batch in batches for v in values(batch.columns, name)]
        assert scored == values(columns, name)
        assert getattr(given.attributes[name], "form", None) == getattr(columns.attributes[name], "form", None)


def test_a_model_of_text_reads_a_parquet_file_and_the_reverse(tmp_path: Path) -> None:
    text = write(tmp_path, rows_of([f"{day:%d.%m.%Y}" for day in DAYS]))
    iso = write(tmp_path, rows_of([day.isoformat() for day in DAYS]), "iso.csv")
    typed = write_parquet(tmp_path, {"d": pa.array(DAYS, pa.date32()), "class": ["u", "v"] * 20})
    for learnt_from, others in ((text, (iso, typed)), (typed, (iso,)), (iso, (typed,))):
        columns = read(learnt_from)
        for other in others:
            found = read_labelled(Source((other,)), learnt(columns))
            for name in columns.attributes:
                assert values(found, name) == values(columns, name)
    with pytest.raises(BncliError, match=r"contains '30.12.2023', which is not a date with the year first, .*line 2"):
        read_labelled(Source((text,)), learnt(read(typed)))


def test_a_part_is_read_from_its_source_or_else_from_a_column_of_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, rows_of([day.isoformat() for day in DAYS]))
    schema = learnt(read(path))
    simulated = write(tmp_path, "d.month,class\n3,u\n4,v\n", "parts.csv")
    found = read_labelled(Source((simulated,)), schema, ["d.month"])
    assert values(found, "d.month") == [3, 4]
    with pytest.raises(ModelError, match="the table has no column 'd', which the model uses"):
        read_labelled(Source((simulated,)), schema, ["d.year", "d.days"])
    allowed = read_labelled(Source((simulated,), allow_missing_columns=True), schema)
    assert list(allowed.attributes) == ["d.month"]


@pytest.mark.parametrize(
    ("form", "words"), [("%d.%m.%y", "day.month.year"), ("%m/%d/%y", "month/day/year"), ("%y-%m-%d", "year-month-day")]
)
def test_a_column_of_dates_with_short_years(tmp_path: Path, form: str, words: str) -> None:
    days = [dt.date(1989, 12, 30) + dt.timedelta(days=409 * i) for i in range(40)]
    columns, notes = noted(tmp_path, rows_of([f"{day:{form}}" for day in days]))
    assert values(columns, "d.year") == [day.year for day in days]
    assert values(columns, "d.day") == [day.day for day in days]
    assert f"(read as {words}, years 1970 to 2069)" in notes[0]
    again = read_labelled(Source((str(tmp_path / "t.csv"),)), learnt(columns))
    assert values(again, "d.days") == values(columns, "d.days")


def test_few_short_dates_are_names(tmp_path: Path) -> None:
    few = ["1.2.10", "1.3.10", "1.4.11", "2.4.11", "3.4.12"]
    assert values(noted(tmp_path, rows_of(few * 4))[0], "d")[:2] == ["1.2.10", "1.3.10"]
    assert values(noted(tmp_path, rows_of(few * 4), dates="mdy")[0], "d.day")[:2] == [2, 3]
    more = [*few, "13.4.12"]
    assert values(noted(tmp_path, rows_of(more * 4))[0], "d.month")[:2] == [2, 3]
    _, notes = noted(tmp_path, rows_of([*few, "5.6.12"] * 4))
    assert "--dates mdy is possible too" in notes[0]


@pytest.mark.parametrize("days", [30, 600])
def test_short_dates_with_hyphens_begin_with_the_year_where_it_varies_least(tmp_path: Path, days: int) -> None:
    dates = [dt.date(2021, 1, 30) + dt.timedelta(days=i * days // 30) for i in range(30)]
    columns, notes = noted(tmp_path, rows_of([f"{date:%y-%m-%d}" for date in dates]))
    assert values(columns, "d.day") == [date.day for date in dates]
    assert "read as year-month-day, years 1970 to 2069; --dates dmy is possible too" in notes[0]
    columns, _ = noted(tmp_path, rows_of([f"{date:%y-%m-%d}" for date in dates]), dates="dmy")
    assert values(columns, "d.year") == [2000 + date.day for date in dates]
    year_last, _ = noted(tmp_path, rows_of([f"{date:%d-%m-%y}" for date in dates]))
    assert values(year_last, "d.day") == [date.day for date in dates]
    dotted, _ = noted(tmp_path, rows_of([f"31.12.{10 + i}" for i in range(12)]))
    assert values(dotted, "d.year") == [*range(2010, 2022)]


def numbers_and(*texts: str, n: int = 40, delimiter: str = ",") -> str:
    """A table whose column `a` is n different numbers, and from line n + 2 on some texts."""
    rows = [f"{i}.5{delimiter}{'uv'[i % 2]}\n" for i in range(n)]
    return f"a{delimiter}k\n" + "".join(rows) + "".join(f"{text}{delimiter}u\n" for text in texts)


SLIPS = ("1.2x", "1.3x", "1.4x", "1.5x")
"""One more than are taken for words that mean missing."""


def test_slips_among_numbers_are_noted(tmp_path: Path) -> None:
    content = numbers_and(*SLIPS)
    said = (
        r"column 'a': 40 of 44 values are numbers, but '1\.2x' \(.*t\.csv line 42\) is not; "
        r"add --missing \+1.2x to treat '1.2x' as missing, or --numeric a to read all values as numbers"
    )
    with pytest.raises(BncliError, match=f"look like identifiers.*{said}; add --categorical NAME to keep one"):
        table(tmp_path, content)
    notes: list[Event] = []
    table(
        tmp_path, content.replace("a,k", "a,b,k").replace(",", ",7,").replace("a,7,b,7,k", "a,b,k"), watch=notes.append
    )
    assert [note.text for note in notes if isinstance(note, Note) and re.fullmatch(said, note.text)]


@pytest.mark.parametrize("block_size", [64, 1 << 20])
def test_a_slip_is_counted_over_all_blocks(tmp_path: Path, block_size: int) -> None:
    notes: list[Event] = []
    content = numbers_and("?", "oops", *SLIPS, n=30) + "".join(f"{i % 7},v\n" for i in range(500))
    table(tmp_path, content, watch=notes.append, block_size=block_size)
    assert any("530 of 535 values are numbers, but 'oops'" in note.text for note in notes if isinstance(note, Note))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["k.A."] * 30,
            r"40 of 41 different values are numbers, but 'k.A.' is not; add --missing \+k.A. to treat it as missing",
        ),
        (
            ["k.A.", "<5", "a b", "n. b."] * 3,
            r"40 of 44 different values are numbers, but 'k.A.', '<5', 'a b', 'n. b.' are not; add --missing \+k.A. "
            r"--missing '\+<5' --missing '\+a b' --missing '\+n. b.' to treat them as missing",
        ),
        (
            [f"w{i}" for i in range(6)] * 3,
            r"60 of 66 different values are numbers, but 6 are not, such as 'w0'; "
            r"add --missing \+TOKEN to treat one as missing",
        ),
    ],
)
def test_words_that_are_not_few_are_named_with_an_option_for_each(tmp_path: Path, words: list[str], said: str) -> None:
    notes: list[Event] = []
    content = "a,k\n" + "".join(f"{word},u\n" for word in words)
    n = 60 if len(set(words)) > 5 else 40
    content += "".join(f"{i % n}.5,{'uv'[i % 2]}\n" for i in range(2 * n))
    table(tmp_path, content, watch=notes.append)
    assert [note.text for note in notes if isinstance(note, Note) and re.search(said, note.text)]


def test_no_doubt_about_columns_of_text(tmp_path: Path) -> None:
    notes: list[Event] = []
    words = "a,b,k\n" + "".join(f"{'w' if i % 5 == 0 else i % 9},{'xyz'[i % 3]},{'uv'[i % 2]}\n" for i in range(60))
    table(tmp_path, words, watch=notes.append)
    table(tmp_path, numbers_and(*SLIPS, n=19), watch=notes.append, categorical=("a",))
    table(tmp_path, numbers_and(*SLIPS), watch=notes.append, categorical=("a",))
    assert not [note for note in notes if isinstance(note, Note)]


def test_decimal_commas_are_told(tmp_path: Path) -> None:
    content = numbers_and("3,14", delimiter=";").replace(".5;", ",5;")
    notes: list[Event] = []
    columns = table(tmp_path, content, watch=notes.append)
    assert values(columns, "a")[-2:] == [39.5, 3.14]
    assert "read as numbers with a decimal comma: a" in [note.text for note in notes if isinstance(note, Note)]


@pytest.mark.parametrize(("n_words", "told"), [(4, True), (5, False)])
def test_nine_tenths_must_be_numbers(tmp_path: Path, n_words: int, told: bool) -> None:
    notes: list[Event] = []
    rows = [*(f"{i % 8}.5" for i in range(36)), *"vwxyz"[:n_words]]
    table(tmp_path, "a,k\n" + "".join(f"{a},{'uv'[i % 2]}\n" for i, a in enumerate(rows)), watch=notes.append)
    assert told == any("36 of 40 values are numbers" in note.text for note in notes if isinstance(note, Note))


def column_of(texts: list[str], header: str = "a;k") -> str:
    return header + "\n" + "".join(f"{text};{'uv'[i % 2]}\n" for i, text in enumerate(texts))


@pytest.mark.parametrize("words", [["k.A."], ["<5", "-"], ["unbekannt", "n/a", "keine Angabe"]])
@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("block_size", [64, 1 << 20])
def test_a_few_words_among_numbers_are_missing(tmp_path: Path, words: list[str], mark: str, block_size: int) -> None:
    numbers = [f"{i}{mark}5" for i in range(27)]
    content = column_of([*numbers, *words])
    columns, notes = noted(tmp_path, content, block_size=block_size)
    assert values(columns, "a") == [*(i + 0.5 for i in range(27)), *[None] * len(words)]
    (note,) = (note for note in notes if note.startswith("words in numeric columns were read as missing: "))
    assert all(f"'{word}' in a" in note for word in words)
    assert "--categorical NAME" in note
    schema = learn_dataset(columns, discretize="equal-width", bins=3).schema
    assert schema.attributes[0].form == NumberForm(mark, "", tuple(sorted(words)))  # type: ignore[union-attr]
    with blocks_of(block_size):
        again = read_labelled(Source((str(tmp_path / "t.csv"),)), schema)
    assert values(again, "a") == values(columns, "a")
    as_names, notes = noted(tmp_path, column_of([*numbers, *words] * 3), categorical=("a",))
    assert values(as_names, "a") == [*numbers, *words] * 3
    assert not notes
    said, notes = noted(tmp_path, content, missing_tokens=tuple(f"+{word}" for word in words))
    assert values(said, "a") == values(columns, "a")
    assert not any("words among" in note for note in notes)


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("is_coded", [False, True])
def test_numbers_with_words_are_numbers_in_a_columnar_file_too(tmp_path: Path, mark: str, is_coded: bool) -> None:
    """As pandas stores a column of objects that a CSV file with a few words became."""
    texts = [*(f" {i}{mark}5 " for i in range(40)), "k.A.", "<5"]
    labels = ["u", "v"] * 21
    stored = pa.array(texts).dictionary_encode() if is_coded else pa.array(texts)
    columnar = write_parquet(tmp_path, {"a": stored, "k": labels})
    notes: list[Event] = []
    columns, (expected, said) = read(columnar, watch=notes.append), noted(tmp_path, column_of(texts))
    assert values(columns, "a") == values(expected, "a") == [*(i + 0.5 for i in range(40)), None, None]
    (note,) = [note for note in said if note.startswith("words in numeric columns")]
    assert note in [event.text for event in notes if isinstance(event, Note)]
    schema = learnt(columns)
    assert schema == learnt(expected)
    assert values(read_labelled(Source((columnar,)), schema), "a") == values(columns, "a")
    assert values(read_labelled(Source((str(tmp_path / "t.csv"),)), schema), "a") == values(columns, "a")
    assert values(read(columnar, categorical=("a",)), "a") == [text.strip() for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        [f"{i % 9 + 10_115}" for i in range(40)],  # postal codes, and nothing that had to be text
        [f"{i % 9 + 10_115}" if i % 5 else None for i in range(40)],
        [f"{i % 9}.5" for i in range(40)],
        [*(f"{i % 9:05}" for i in range(39)), "k.A."],  # codes
        [*(f"{i % 9}.5" for i in range(36)), *"vwxy"],  # four words
    ],
)
def test_other_text_of_a_columnar_file_stays_text(tmp_path: Path, texts: list[str | None]) -> None:
    columns = read(write_parquet(tmp_path, {"a": pa.array(texts), "k": ["u", "v"] * 20}))
    assert values(columns, "a") == texts


def test_a_word_that_training_did_not_have_is_malformed(tmp_path: Path) -> None:
    columns, _ = noted(tmp_path, column_of([*(f"{i}" for i in range(40)), "k.A."]))
    schema = learn_dataset(columns, discretize="equal-width", bins=3).schema
    path = tmp_path / "more.csv"
    path.write_text("a;k\n1;u\nk.A.;v\nunbekannt;u\n")
    with pytest.raises(BncliError, match=r"column 'a' contains 'unbekannt', which is not a number.*line 4"):
        read_labelled(Source((str(path),)), schema)
    path.write_text("a;k\n1;u\nk.A.;v\n")
    assert values(read_labelled(Source((str(path),)), schema), "a") == [1, None]


@pytest.mark.parametrize(
    "texts",
    [
        [*(f"{i}" for i in range(36)), *"vwxy"],  # four words
        [*(f"{i}" for i in range(17)), "x", "x"],  # more than a tenth of the rows
        [*(f"{i}" for i in range(9)), "", "", "", "x", "y"],  # a tenth of the rows, more of those with a value
        [*("1", "2") * 20, "x"],  # two numbers
        [*(f"{i:03}" for i in range(40)), "x"],  # codes
        [*(f"{i}.5" for i in range(40)), "1,25"],  # a number, written in another way
        [*(f"{i}" for i in range(40)), "€ 1,25"],
        [*(f"{i}" for i in range(40)), "2024-03-01"],  # a date
    ],
)
def test_what_is_no_column_of_numbers_with_words(tmp_path: Path, texts: list[str]) -> None:
    columns, notes = noted(tmp_path, column_of([f"{text};{i % 3}.5" for i, text in enumerate(texts)], "a;b;k"))
    assert not isinstance(columns.attributes.get("a"), NumericColumn)
    assert not any("words among" in note for note in notes)


def test_identifiers_are_left_out_with_a_note(tmp_path: Path) -> None:
    content = "id,x,class\n" + "".join(f"n{i},{i},{i % 2}\n" for i in range(30))
    notes: list[Event] = []
    assert list(table(tmp_path, content, watch=notes.append).attributes) == ["x"]
    assert any(isinstance(note, Note) and "identifiers: id " in note.text for note in notes)
    assert list(table(tmp_path, content, categorical=("id",)).attributes) == ["id", "x"]
    with pytest.raises(BncliError, match="identifiers"):
        table(tmp_path, content, ignore=("x",))


def test_integer_columns_of_few_values_are_named_once(tmp_path: Path) -> None:
    content = "a,b,c,d,class\n" + "".join(
        f"{i % 10},{i % 11},{i % 3 * 1000000},{i % 4 / 2},{i % 2}\n" for i in range(50)
    )
    notes: list[Event] = []
    table(tmp_path, content, watch=notes.append)
    assert [note.text for note in notes if isinstance(note, Note)] == [
        (
            "read as numbers although at most 10 different whole numbers occur: a, c "
            "(if they are codes, add --categorical NAME)"
        )
    ]
    notes.clear()
    table(tmp_path, content, watch=notes.append, numeric=("a",), categorical=("c",))
    assert not [note for note in notes if isinstance(note, Note)]
