from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.reading.csv_text import (
    _quoted_sections_by_regex,
    count_lines,
    last_boundary,
    quoted_sections,
    read_arrays,
    scan,
)
from bncli.files.reading.source import ValueKind
from tests.files.reading.oracles import read_rows

texts = st.lists(
    st.sampled_from([b"a", b'"', b'""', b",", b";", b"\n", b"\r", b"\r\n", b" ", b"\xc3\xa9"]), max_size=40
)
texts = texts.map(b"".join)


@given(texts)
def test_rows_are_where_a_reader_of_single_bytes_finds_them(data: bytes) -> None:
    rows = read_rows(data, b",")
    found = scan(data, b",")
    assert found.starts.tolist() == [row.start for row in rows]
    assert found.ends.tolist() == [row.end for row in rows]
    assert found.n_fields.tolist() == [len(row.fields) for row in rows]
    assert found.lines.tolist() == [row.line for row in rows]


@given(texts)
def test_both_ways_to_find_quoted_sections_agree(data: bytes) -> None:
    quick, slow = quoted_sections(data, b","), _quoted_sections_by_regex(data, b",")
    inside_quick, inside_slow = _inside(quick, len(data)), _inside(slow, len(data))
    assert inside_quick.tolist() == inside_slow.tolist()
    assert quick.unclosed == slow.unclosed
    rows = read_rows(data, b",")
    assert quick.unclosed == (bool(rows) and not rows[-1].closed)


def _inside(sections: object, length: int) -> np.ndarray:
    inside = np.zeros(length, bool)
    for start, end in zip(sections.starts, sections.ends, strict=True):  # type: ignore[attr-defined]
        inside[start:end] = True
    return inside


@given(texts)
def test_the_last_boundary_is_the_end_of_the_last_row_that_is_whole(data: bytes) -> None:
    boundary = last_boundary(data, quoted_sections(data, b","))
    for more in (b"", b"\n", b'a",\n'):
        whole = read_rows(data + more, b",")
        assert all(row.end <= boundary or row.start >= boundary for row in whole)
    if b"\r" not in data:
        ends = [row.end for row in read_rows(data, b",") if row.closed and data[row.end - 1 : row.end] == b"\n"]
        assert boundary >= max(ends, default=0)


@given(texts)
def test_lines_are_counted_however_they_end(data: bytes) -> None:
    assert count_lines(data) == len((data + b".").splitlines()) - 1


@given(texts)
def test_the_rows_are_those_that_arrow_sees(data: bytes) -> None:
    rows = read_rows(data, b",")
    if not rows or not rows[-1].closed:
        return
    n_columns = len(rows[0].fields)
    try:
        columns = read_arrays(data, n_columns, b",", dict.fromkeys(range(n_columns), ValueKind.TEXT), ())
    except pa.ArrowInvalid:
        assert any(len(row.fields) != n_columns for row in rows)
        return
    assert [[field.decode() for field in row.fields] for row in rows] == [
        list(row) for row in zip(*(column.to_pylist() for column in columns.values()), strict=True)
    ]


@pytest.mark.parametrize(
    ("data", "boundary"),
    [
        (b"", 0),
        (b"a,b", 0),
        (b"a\nb", 2),
        (b"a\rb", 2),
        (b"a\rb\r", 2),  # a line feed may follow
        (b'a,"x\ny', 0),
        (b'a\n"x\ny\nz', 2),
        (b'a\n"x\ny"\nz', 8),
    ],
)
def test_boundaries_of_small_texts(data: bytes, boundary: int) -> None:
    assert last_boundary(data, quoted_sections(data, b",")) == boundary
