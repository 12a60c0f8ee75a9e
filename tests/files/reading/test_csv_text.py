"""Text files: where rows begin and end, blocks of whole rows, headers, malformed rows."""

from __future__ import annotations

import gzip
import io
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.errors import BncliError, UsageError
from bncli.files.reading import csv_text
from bncli.files.reading.csv_text import (
    TextBlock,
    TextLayout,
    _quoted_sections_by_regex,
    count_lines,
    cut_blocks,
    last_boundary,
    quoted_sections,
    read_arrays,
    scan,
)
from bncli.files.reading.source import Source, ValueKind
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Note
from tests.files.reading.oracles import read_rows
from tests.files.reading.tables import GOOD, check_good, read, table, values, write

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


block_texts = st.lists(st.sampled_from([b"a", b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"bc"]), max_size=60).map(
    b"".join
)
layout = TextLayout("f", ("x", "y"), b",")


class Pipe(io.BytesIO):
    """A stream that pauses before the bytes at the given positions."""

    def __init__(self, data: bytes, pauses: Collection[int]) -> None:
        super().__init__(data)
        self.pauses = pauses
        self.paused = 0 in pauses

    def read_ready(self, size: int) -> bytes:
        here = self.tell()
        stop = min((p for p in self.pauses if here < p < here + size), default=None)
        self.paused = stop is not None
        return self.read(size if stop is None else stop - here)


def cut_all(data: bytes, size: int, n_rest: int = 0, pauses: Collection[int] = ()) -> list[TextBlock]:
    stream = Pipe(data[n_rest:], pauses)
    return list(cut_blocks(stream, layout, data[:n_rest], 2, size))  # type: ignore[arg-type]


@given(block_texts, st.integers(1, 80), st.integers(0, 10), st.sets(st.integers(0, 100), max_size=8))
def test_blocks_hold_whole_rows_and_know_their_lines(data: bytes, size: int, n_rest: int, pauses: set[int]) -> None:
    rows = read_rows(data, b",")
    if rows and not rows[-1].closed:
        return
    found, position = cut_all(data, size, n_rest, pauses), 0
    assert b"".join(block.data for block in found) == data
    for block in found:
        assert not block.bad
        assert position == 0 or any(row.end <= position for row in rows) or not data[:position].strip(b"\r\n")
        assert all(row.end <= position or row.start >= position for row in rows)
        assert block.line == 2 + len((data[:position] + b".").splitlines()) - 1
        position += len(block.data)


@given(block_texts, st.integers(1, 80))
def test_nothing_is_lost_when_a_quote_has_no_end(data: bytes, size: int) -> None:
    found = cut_all(data, size)
    assert b"".join(block.data + b"".join(row.raw for row in block.bad) for block in found) == data
    for block in found:
        rows = read_rows(block.data, b",")
        assert all(row.closed for row in rows)


def test_only_the_line_of_an_open_quote_is_dropped() -> None:
    (first, second) = cut_all(b'1,2\n3,"4\n5,6\n7,8\n', 1000)
    assert (first.data, second.data) == (b"1,2\n", b"5,6\n7,8\n")
    (bad,) = first.bad
    assert (bad.where, bad.raw) == ("f line 3", b'3,"4\n')
    assert second.line == 4


def test_an_open_quote_does_not_swallow_a_long_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "MAX_ROW", 1000)
    data = b'1,"2\n' + b"3,4\n" * 5000
    stream = Pipe(data, ())
    blocks = cut_blocks(stream, layout, b"", 2, 100)  # type: ignore[arg-type]
    first = next(blocks)
    assert stream.tell() <= 1001
    found = [first, *blocks]
    assert [row.where for block in found for row in block.bad] == ["f line 2"]
    assert b"".join(block.data for block in found) == b"3,4\n" * 5000
    assert max(len(block.data) for block in found) <= 100


def test_an_endless_line_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "MAX_ROW", 1000)
    with pytest.raises(BncliError, match="a line is longer than"):
        cut_all(b"x" * 10_000, 100)


def test_no_bytes_no_blocks(tmp_path: Path) -> None:
    assert cut_all(b"", 10) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"x,class", "no rows"),
        (b"x,class\n", "no rows"),
        (b"x,class\r\n\r\n", "no rows"),
        (b"class\na\nb\n", "no column besides the class"),
        (b"x,x,class\n1,2,a\n2,3,b\n", "'x' appears twice"),
        (b"x,x ,class\n1,2,a\n2,3,b\n", "'x' appears twice"),
        (
            b"x,class,,\n1,a,,\n2,b,,\n",
            "columns 3, 4 have no name, .*t.csv line 1; delete the columns if they are empty",
        ),
        (b"Report;;\nx;c;class\n1;2;a\n", "columns 2, 3 have no name, .*; the header must be the first row"),
        (b"sep=;\n", "the file is empty"),
        (b"sep=;\nx;x;class\n1;2;a\n", "'x' appears twice, .*t.csv line 2"),
        ("x,class\n1,a\n".encode("utf-16-le"), "--encoding utf-16-le"),
        ("x,class\n1,a\n".encode("utf-16-be"), "--encoding utf-16-be"),
        ("x,class\n1,a\n".encode("utf-32-be"), "--encoding utf-32-be"),
        ("x,class\n1,é\n".encode("latin-1"), "line 2; .* set the encoding, as in --encoding latin-1"),
        ("é,class\n1,a\n".encode("latin-1"), "set the encoding, as in --encoding latin-1"),
        (b"x\xff,class\n1,a\n", "not UTF-8"),
        (b"xy\0,class\n1,a\n", "NUL"),
        (b'x,"class\n1,a\n2,b\n', "a quote is never closed"),
        (b"x,class\n1,a\n", "only one value"),
        (b"PK\x03\x04 a workbook", "a ZIP archive"),
        (b"FEA1....", "Feather version 1"),
        (b"PAR1 this is no Parquet file", "damaged or cut off"),
        (b"ARROW1\0\0 this is no Arrow file", "damaged or cut off"),
        (b"\xff\xff\xff\xff not a stream", "damaged or cut off"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(BncliError, match=message) as caught:
        table(tmp_path, content)
    assert "t.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.removesuffix("\n"),
        "\ufeff" + GOOD,
        "\n\n" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\n\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace(",", "|"),
        "sep=,\n" + GOOD,
        "\ufeffsep=;\r\n\r\n" + GOOD.replace(",", ";").replace("\n", "\r\n"),
        '"sep=;"\n' + GOOD.replace(",", ";"),
        "SEP=\t\r" + GOOD.replace(",", "\t").replace("\n", "\r"),
        "sep=!\n" + GOOD.replace(",", "!"),
        GOOD.replace("x,c,class", '"x","c","class"'),
        GOOD.replace("a", '"a"').replace('cl"a"ss', "class"),
    ],
)
def test_the_same_table_in_other_clothes(tmp_path: Path, content: str) -> None:
    check_good(table(tmp_path, content))


def test_the_delimiter_is_the_most_frequent_candidate_outside_quotes(tmp_path: Path) -> None:
    assert list(table(tmp_path, '"a;b;c",y,class\n1,2,u\n2,3,v\n3,4,u\n').attributes) == ["a;b;c", "y"]
    assert list(table(tmp_path, "a,b;y;class\n1;2;u\n2;3;v\n3;4;u\n", delimiter=";").attributes) == ["a,b", "y"]
    assert list(table(tmp_path, "a y class\n1 2 u\n2 3 v\n3 4 u\n", delimiter="space").attributes) == ["a", "y"]
    assert list(table(tmp_path, "a,b\ty\tclass\n1\t2\tu\n2\t3\tv\n3\t4\tu\n", format="tsv").attributes) == ["a,b", "y"]


def test_a_header_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    names = [f"a_column_with_a_{'rather_' * 20}long_name_{i}" for i in range(2_000)]
    content = (
        ",".join([*names, "class"])
        + "\n"
        + "".join(",".join("123"[i] for _ in names) + f",{i % 2}\n" for i in range(3))
    )
    assert len(table(tmp_path, content).attributes) == 2_000


RAGGED = "x,c,class\n1,a,u\n2,b\n3,a,v\n4,a,u,9\n5,b,v\n"


@pytest.mark.parametrize("block_size", [1, 10, 1000])
def test_a_ragged_row_is_named_with_its_line(tmp_path: Path, block_size: int) -> None:
    with pytest.raises(BncliError, match=r"expected 3 fields, found 2, .*t\.csv line 3; add --on-bad-row skip"):
        table(tmp_path, RAGGED, block_size=block_size)


@pytest.mark.parametrize("block_size", [1, 10, 1000])
def test_malformed_rows_are_skipped_and_counted(tmp_path: Path, block_size: int) -> None:
    notes: list[Event] = []
    columns = table(tmp_path, RAGGED, block_size=block_size, on_bad_row="skip", watch=notes.append)
    assert values(columns, "x") == [1, 3, 5]
    assert values(columns, "c") == ["a", "a", "b"]
    (note,) = [note.text for note in notes if isinstance(note, Note) and "malformed" in note.text]
    assert note.startswith("2 malformed rows skipped; the first: expected 3 fields, found 2, ")


def test_malformed_rows_go_to_a_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    table(tmp_path, RAGGED, block_size=10, on_bad_row=str(bad))
    assert bad.read_bytes() == b"2,b\n4,a,u,9\n"


def test_malformed_rows_do_not_go_to_the_data_file(tmp_path: Path) -> None:
    path = write(tmp_path, RAGGED)
    with pytest.raises(UsageError, match="overwrite the data"):
        read(path, on_bad_row=path)
    assert Path(path).read_text() == RAGGED


def test_no_file_of_malformed_rows_when_the_reading_fails(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    first, second = write(tmp_path, RAGGED, "a.csv"), write(tmp_path, "other,columns\n", "b.csv")
    with pytest.raises(BncliError, match="different columns"):
        read_columns(Source((first, second), on_bad_row=str(bad)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (b"2,\xff,v", "not UTF-8 text"),
        (b"2,\xc3,v", "not UTF-8 text"),
        (b"2,a\0b,v", "a NUL byte"),
        (b'2,"b,v', "a quote is opened and never closed"),
        (b'2,"b"x"y",v,w', "expected 3 fields, found 4"),
        (b"just a sentence", "expected 3 fields, found 1"),
        (b'2,"two\nlines"', "expected 3 fields, found 2"),
    ],
)
@pytest.mark.parametrize("block_size", [3, 1000])
def test_one_malformed_row_among_good_ones(tmp_path: Path, row: bytes, what: str, block_size: int) -> None:
    content = b"x,c,class\n1,a,u\n" + row + b"\n3,b,v\n4,\xc3\xa9,u\n"
    with pytest.raises(BncliError, match=what) as caught:
        table(tmp_path, content, block_size=block_size)
    assert caught.value.where.endswith("t.csv line 3")
    columns = table(tmp_path, content, block_size=block_size, on_bad_row="skip")
    assert values(columns, "x") == [1, 3, 4]
    assert values(columns, "c") == ["a", "b", "é"]


def test_lines_are_right_after_quoted_line_ends_and_empty_lines(tmp_path: Path) -> None:
    content = 'x,c,class\n1,"a\n\nb",u\n\n\n2,b,v\r\n3,c\n'
    for block_size in (1, 12, 1000):
        with pytest.raises(BncliError, match="line 8;"):
            table(tmp_path, content, block_size=block_size)


def test_text_in_a_column_said_to_be_numeric(tmp_path: Path) -> None:
    content = "x,c,class\n1,a,u\nlow,b,v\n3,a,u\n2,\xe9,v\n"
    with pytest.raises(BncliError, match=r"column 'x' contains 'low', which is not a finite number, .* line 3"):
        table(tmp_path, content, numeric=("x",))
    columns = table(tmp_path, content, numeric=("x",), on_bad_row="skip")
    assert values(columns, "x") == [1, 3, 2]


def test_a_column_read_again_keeps_the_rows_that_were_kept(tmp_path: Path) -> None:
    rows = [f"{i},{'bad' if i % 10 == 3 else i},{i % 2}" for i in range(1000)]
    content = "a,b,class\n" + "\n".join(rows) + "\ntext,1,0\n"
    columns = table(tmp_path, content, numeric=("b",), categorical=("a",), on_bad_row="skip", block_size=500)
    assert values(columns, "a") == [str(i) for i in range(1000) if i % 10 != 3] + ["text"]
    content = (
        "a,b,class\n"
        + "".join(f"{i % 9},{'bad' if i % 10 == 3 else i},{i % 2}\n" for i in range(1000))
        + "".join(f"{word},1,0\n" for word in "wxyz")
    )
    columns = table(tmp_path, content, numeric=("b",), on_bad_row="skip", block_size=500)
    assert values(columns, "a") == [str(i % 9) for i in range(1000) if i % 10 != 3] + [*"wxyz"]


def test_every_row_malformed(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="the table has no rows"):
        table(tmp_path, "x,class\n1\n2,3,4\n", on_bad_row="skip")


def test_a_file_of_quotes_that_are_never_closed(tmp_path: Path) -> None:
    content = "x,c,class\n1,a,u\n" + '2,"b\n' + 'b","c\n' * 300
    with pytest.raises(BncliError, match=r"a quote is opened and never closed, .* line 3"):
        table(tmp_path, content)
    with pytest.raises(BncliError, match=r"more than 8 quotes are opened and never closed, .* line 11"):
        table(tmp_path, content, on_bad_row="skip")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "said"), [(b"", "it has more than 64 MB"), (b"x,class\n1,a\n2,b\n", "a line is longer than 64 MB")]
)
def test_kilobytes_that_become_one_line_of_gigabytes(tmp_path: Path, head: bytes, said: str) -> None:
    packed_once = gzip.compress(b" " * (1 << 20))
    content = gzip.compress(head) + packed_once * 140
    with pytest.raises(BncliError, match=said):
        read(write(tmp_path, content))
