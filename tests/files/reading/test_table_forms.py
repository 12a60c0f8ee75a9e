"""Dates, national numbers, codes and marks of missing values in whole tables, and what is told of them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import Columns, NumericColumn
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.number_formats import DateForm, NumberForm
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.reading.byte_streams import Transcoder
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Note
from tests.batches import blocks_of, read_batches
from tests.files.reading.test_table import read, table, values, write

DAYS = [dt.date(2023, 12, 30) + dt.timedelta(days=9 * i) for i in range(40)]


def rows_of(column: list[str], header: str = "d,class", delimiter: str = ",") -> str:
    """A table of one column and a class."""
    lines = [f"{value}{delimiter}{'uv'[i % 2]}" for i, value in enumerate(column)]
    return "\n".join([header.replace(",", delimiter), *lines, ""])


def noted(path: Path, content: str | bytes, **options: Any) -> tuple[Columns, list[str]]:
    notes: list[Event] = []
    columns = table(path, content, watch=notes.append, **options)
    return columns, [note.text for note in notes if isinstance(note, Note)]


# Dates


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
    assert "left out as dates that do not vary: d" in notes


@pytest.mark.parametrize("mark", ["/", ".", "-"])
def test_day_or_month_first_is_decided_over_all_values(tmp_path: Path, mark: str) -> None:
    either = [f"{i % 12 + 1}/{(i * 5 + i // 12) % 12 + 1}/2024".replace("/", mark) for i in range(30)]
    columns, notes = noted(tmp_path, rows_of(either))
    assert values(columns, "d.day")[:3] == [1, 2, 3]
    assert f"(read as day{mark}month{mark}year; --dates mdy fits too)" in notes[0]
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
    with pytest.raises(BncliError, match=r"dates in several forms, as '2023-12-30' and '01\.02\.2024'"):
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
    with pytest.raises(BncliError, match="no attribute left"):
        noted(tmp_path, rows_of([*column, "n/a", "-"]))


def test_what_the_user_says_of_dates_wins(tmp_path: Path) -> None:
    content = rows_of([f"{day.isoformat()},{i}" for i, day in enumerate(DAYS)], "d,x,class")
    assert list(noted(tmp_path, content, categorical=("d",))[0].attributes) == ["d", "x"]
    columns, notes = noted(tmp_path, content, dates="off")
    assert list(columns.attributes) == ["x"]
    assert "left out as dates (--dates off): d (--categorical NAME keeps one)" in notes
    assert list(noted(tmp_path, content, ignore=("d",))[0].attributes) == ["x"]
    kept = list(noted(tmp_path, content, ignore=("d.month", "d.hour"), numeric=("d.day",))[0].attributes)
    assert kept == ["d.year", "d.day", "d.weekday", "d.days", "x"]
    with pytest.raises(UsageError, match=r"'d.month' can only be a number.*--categorical d keeps"):
        noted(tmp_path, content, categorical=("d.month",))
    with pytest.raises(UsageError, match=r"there is no column 'x.month'"):
        noted(tmp_path, content, ignore=("x.month",))
    with pytest.raises(UsageError, match=r"there is no column 'd.minute'"):
        noted(tmp_path, content, ignore=("d.minute",))


def test_a_part_whose_name_is_taken_is_left_out(tmp_path: Path) -> None:
    content = rows_of([f"{day.isoformat()},{i}" for i, day in enumerate(DAYS)], "d,d.month,class")
    columns, notes = noted(tmp_path, content)
    assert values(columns, "d.month") == list(range(40))
    assert "parts of dates left out because columns have their names: d.month" in notes


def test_the_origin_is_that_of_the_rows_that_count(tmp_path: Path) -> None:
    content = rows_of([f"{day.isoformat()},{min(i, 1)}" for i, day in enumerate(DAYS)], "d,w,class")
    assert values(noted(tmp_path, content, weights="w")[0], "d.days") == [9 * i for i in range(39)]


# Codes


@pytest.mark.parametrize("block_size", [64, 1 << 20])
@pytest.mark.parametrize(("before", "after"), [("", ""), ('"', '"'), (" ", ""), ("", "\t")])
def test_leading_zeros_make_codes(tmp_path: Path, block_size: int, before: str, after: str) -> None:
    column = [f"{i % 50 + 1},{i}" for i in range(300)]
    content = rows_of([*column, f"{before}007{after},5"], "a,b,class")
    columns, notes = noted(tmp_path, content, block_size=block_size)
    assert values(columns, "a")[-3:] == ["49", "50", "007"]
    assert values(columns, "b")[-2:] == [299, 5]
    assert notes == ["read as codes because of leading zeros: a (else --numeric NAME)"]
    assert values(noted(tmp_path, content, numeric=("a",), block_size=block_size)[0], "a")[-1] == 7
    for other in ("8.5", "-8", "1e1"):
        columns, notes = noted(tmp_path, content + f"{other},1,u\n", block_size=block_size)
        assert values(columns, "a")[-2:] == [7, float(other)]
        assert "read as numbers although some have leading zeros" in notes[0]


def test_numbers_padded_with_zeros_that_are_mostly_zero_stay_numbers(tmp_path: Path) -> None:
    columns, notes = noted(tmp_path, rows_of([f"{i if i % 3 else 0:04}" for i in range(60)]))
    assert values(columns, "d")[:4] == [0, 1, 2, 0]
    assert "read as numbers although some have leading zeros" in notes[0]
    columns, _ = noted(tmp_path, rows_of([f"{i % 9:04}" for i in range(60)]))
    assert values(columns, "d")[:2] == ["0000", "0001"]


def test_codes_are_found_beside_malformed_rows_and_missing_values(tmp_path: Path) -> None:
    content = rows_of([f"{i % 50 + 1},{i % 7}" for i in range(300)] + ["", "08,"], "a,b,class")
    columns, _ = noted(tmp_path, content, block_size=128, on_bad_row="skip")
    assert values(columns, "a")[-1] == "08"


# Numbers


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


# Missing values


def test_marks_of_missing_values_are_told_once_for_the_whole_table(tmp_path: Path) -> None:
    rows = [f"{i}.5;{'n/a' if i % 7 == 0 else i};{['-', 'red', 'blue'][i % 3]};{'+-'[i % 2]}" for i in range(60)]
    content = rows_of(rows, "a,b,c,d,class", ";")
    columns, notes = noted(tmp_path, content)
    assert list(columns.attributes) == ["a", "c", "d"]
    assert notes == [
        "left out as numbers but for marks of missing values: b (--categorical NAME keeps one)",
        "values that may mean missing: 'n/a' in b; '-' in c "
        "(--missing +n/a --missing +- makes them missing, and b numbers)",
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
        ([f"C{i % 25}" for i in range(40)], "names of too many values"),
        ([f"the customer {i} was not amused" for i in range(40)], "free text"),
        ([f"{i}.5" if i > 3 else "wxyz"[i] for i in range(40)], "numbers but for a few values"),
        ([f"{i},5" if i > 3 else "wxyz"[i] for i in range(40)], "numbers with a decimal comma but for a few values"),
        ([f"{i},5" if i % 2 else f"{i}.5" for i in range(40)], "numbers with contradictory marks"),
        ([f"2024-01-{i:02}" if i < 22 else f"{i}.01.2024" for i in range(1, 32)] * 2, "dates in several forms"),
    ],
)
def test_the_reason_for_leaving_a_column_out_is_the_true_one(tmp_path: Path, column: list[str], why: str) -> None:
    rows = [f"{value};{i % 30}" for i, value in enumerate(column[:40])]
    columns, notes = noted(tmp_path, rows_of(rows, "d,x,class", ";"))
    assert list(columns.attributes) == ["x"]
    assert f"left out as {why}: d (--categorical NAME keeps one)" in notes


# Columnar files


def parquet(path: Path, table: dict[str, Any]) -> str:
    pa.parquet.write_table(pa.table(table), path / "t.parquet")
    return str(path / "t.parquet")


def test_temporal_columns_of_a_parquet_file(tmp_path: Path) -> None:
    moments = [dt.datetime.combine(day, dt.time(i % 24, 30)) for i, day in enumerate(DAYS)]
    path = parquet(
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
    with pytest.raises(BncliError, match=r"malformed row: column 'x' holds 'inf'.*row 2"):
        read(path)
    assert values(read(path, on_bad_row="skip"), "x") == [1, 3, 4, 5]
    bad = tmp_path / "bad.csv"
    read(path, on_bad_row=str(bad), ignore=("long",))
    assert bad.read_text().startswith("inf,2024-03-01 12:30:45.123456789,")


# A model reads rows as its training rows were read


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
    typed = parquet(tmp_path, {"d": pa.array(DAYS, pa.date32()), "class": ["u", "v"] * 20})
    for learnt_from, others in ((text, (iso, typed)), (typed, (iso,)), (iso, (typed,))):
        columns = read(learnt_from)
        for other in others:
            found = read_labelled(Source((other,)), learnt(columns))
            for name in columns.attributes:
                assert values(found, name) == values(columns, name)
    with pytest.raises(BncliError, match=r"holds '30.12.2023', which is not a date, the year first, .*line 2"):
        read_labelled(Source((text,)), learnt(read(typed)))


def test_a_part_is_read_from_its_source_or_else_from_a_column_of_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, rows_of([day.isoformat() for day in DAYS]))
    schema = learnt(read(path))
    simulated = write(tmp_path, "d.month,class\n3,u\n4,v\n", "parts.csv")
    found = read_labelled(Source((simulated,)), schema, ["d.month"])
    assert values(found, "d.month") == [3, 4]
    with pytest.raises(ModelError, match="the data has no column 'd', which the model uses"):
        read_labelled(Source((simulated,)), schema, ["d.year", "d.days"])
    allowed = read_labelled(Source((simulated,), allow_missing_columns=True), schema)
    assert list(allowed.attributes) == ["d.month"]


# Encodings


@given(
    st.text(st.characters(codec="utf-16", exclude_categories=["Cs"])),
    st.sampled_from(["utf-16", "utf-16-le", "utf-32", "utf-8"]),
    st.lists(st.integers(1, 5), min_size=1),
    st.integers(1, 9),
)
def test_any_cut_of_the_bytes_decodes_alike(text: str, encoding: str, cuts: list[int], size: int) -> None:
    data = text.encode(encoding)
    first, rest = data[:3], [data[3:]]

    class Pieces:
        def __init__(self) -> None:
            self.sizes = iter(cuts * (len(data) + 1))

        def read(self, _: int, /) -> bytes:
            n = next(self.sizes)
            piece, rest[0] = rest[0][:n], rest[0][n:]
            return piece

    transcoder = Transcoder(first, Pieces(), encoding, "t")
    found = []
    while piece := transcoder.read(size):
        assert len(piece) <= size
        found.append(piece)
    assert b"".join(found).decode() == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("block_size", [64, 1 << 20])
def test_wide_text_with_a_mark_is_known(tmp_path: Path, encoding: str, block_size: int) -> None:
    content = rows_of([f"é€{i % 5}𝄞" for i in range(200)])
    assert values(table(tmp_path, content.encode(encoding), block_size=block_size), "d")[-1] == "é€4𝄞"


def test_other_encodings_on_request(tmp_path: Path) -> None:
    content = rows_of([f"{i},5 €" if i else "ü" for i in range(40)], delimiter=";")
    assert values(table(tmp_path, content.encode("cp1252"), encoding="cp1252", categorical=("d",)), "d")[0] == "ü"
    for name in ("utf-8", "UTF8", "utf-8-sig"):
        table(tmp_path, content.encode(), encoding=name, categorical=("d",))
    for name in ("klingon", "base64", "rot13", "", "a\0b"):
        with pytest.raises(UsageError, match="unknown encoding"):
            table(tmp_path, content, encoding=name)
    with pytest.raises(BncliError, match=r"malformed row: not UTF-8 text.*line 2; .*--encoding latin-1"):
        table(tmp_path, content.encode("latin-1", "replace"))
    with pytest.raises(BncliError, match=r"malformed row: not UTF-8 text.*line 2"):
        table(tmp_path, b"d,class\n\x81,u\na,v\n", encoding="cp1252")
    with pytest.raises(BncliError, match=r"the text is not utf-16 \(truncated data\)"):
        table(tmp_path, content.encode("utf-16")[:-1])


def test_an_encoding_is_of_no_effect_on_a_columnar_file(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"x": np.arange(6), "k": ["u", "v"] * 3})
    assert values(read(path, encoding="utf-16"), "x") == list(range(6))


# Years of two digits


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
    assert "--dates mdy fits too" in notes[0]
