"""Lines of CSV and JSON against the readers of the standard library."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.exports import csv as csv_format
from bncli.files.exports import jsonl
from bncli.files.exports.score_layout import LineFormat

text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=6)
nasty = st.one_of(text, st.text('",\r\n\\ \t', max_size=5))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    names = draw(st.lists(nasty, min_size=2, max_size=4, unique=True))
    n_rows = draw(st.integers(0, 5))
    return names, [draw(st.lists(nasty, min_size=n_rows, max_size=n_rows)) for _ in names]


def written(lines: LineFormat, names: list[str], columns: list[list[str]]) -> bytes:
    arrays = [lines.escape(pa.array(column, pa.string())) for column in columns]
    return lines.header(names) + bytes(lines.join(names, arrays))


@given(tables())
def test_csv_reads_back(table: tuple[list[str], list[list[str]]]) -> None:
    names, columns = table
    data = written(csv_format.LINES, names, columns).decode()
    rows = list(csv.reader(io.StringIO(data, newline=""), strict=True))
    assert rows == [names, *(list(row) for row in zip(*columns, strict=True))]


@given(tables())
def test_json_reads_back(table: tuple[list[str], list[list[str]]]) -> None:
    names, columns = table
    data = written(jsonl.LINES, names, columns).decode()
    rows = [json.loads(line) for line in data.split("\n")[:-1]]
    assert rows == [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def test_only_what_must_be_is_quoted() -> None:
    data = written(csv_format.LINES, ["a b", "c,d"], [["x", "y,z"], ["", 'say "hi"']])
    assert data == b'a b,"c,d"\nx,\n"y,z","say ""hi"""\n'


@pytest.mark.parametrize(("lines", "expected"), [(csv_format.LINES, b"x,1\n,2\n"), (jsonl.LINES, None)])
def test_missing_values(lines: LineFormat, expected: bytes | None) -> None:
    columns = [lines.escape(pa.array(["x", None])), pa.array(["1", "2"])]
    data = bytes(lines.join(["a", "b"], columns))
    assert data == (expected or b'{"a":"x","b":1}\n{"a":null,"b":2}\n')


def test_missing_values_beside_escapes() -> None:
    lines = jsonl.LINES
    data = bytes(lines.join(["a"], [lines.escape(pa.array(['"', None, "ü"]))]))
    assert data == '{"a":"\\""}\n{"a":null}\n{"a":"ü"}\n'.encode()


def test_slices_of_arrays() -> None:
    column = pa.array(["a", 'b"', "c"]).slice(1)
    assert bytes(csv_format.LINES.join(["x"], [csv_format.LINES.escape(column)])) == b'"b"""\nc\n'
    assert bytes(jsonl.LINES.join(["x"], [jsonl.LINES.escape(column)])) == b'{"x":"b\\""}\n{"x":"c"}\n'
