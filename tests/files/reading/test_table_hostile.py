"""Files that no reader should trip over: one clear line, the right kind of error, nothing half done."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bncli.engine.data.columns import Columns
from bncli.errors import BncliError, UsageError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Note, Progress
from tests.files.reading.test_table import read, table, values, write

GOOD = "x,c,class\n1,a,u\n2,b,v\n3,a,u\n"


# Text that is no table


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
        ("x,class\n1,a\n".encode("utf-16-le"), "--encoding utf-16-le"),
        ("x,class\n1,a\n".encode("utf-16-be"), "--encoding utf-16-be"),
        ("x,class\n1,a\n".encode("utf-32-be"), "--encoding utf-32-be"),
        ("x,class\n1,é\n".encode("latin-1"), "line 2; .* or it is encoded otherwise: --encoding latin-1"),
        ("é,class\n1,a\n".encode("latin-1"), "how is it encoded. --encoding latin-1"),
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
        GOOD.replace("x,c,class", '"x","c","class"'),
        GOOD.replace("a", '"a"').replace('cl"a"ss', "class"),
    ],
)
def test_the_same_table_in_other_clothes(tmp_path: Path, content: str) -> None:
    check_good(table(tmp_path, content))


def check_good(columns: Columns) -> None:
    assert values(columns, "x") == [1, 2, 3]
    assert values(columns, "c") == ["a", "b", "a"]
    assert values(columns, "class") == ["u", "v", "u"]


def test_the_delimiter_is_the_most_frequent_candidate_outside_quotes(tmp_path: Path) -> None:
    assert list(table(tmp_path, '"a;b;c",y,class\n1,2,u\n2,3,v\n3,4,u\n').attributes) == ["a;b;c", "y"]
    assert list(table(tmp_path, "a,b;y;class\n1;2;u\n2;3;v\n3;4;u\n", delimiter=";").attributes) == ["a,b", "y"]
    assert list(table(tmp_path, "a y class\n1 2 u\n2 3 v\n3 4 u\n", delimiter="space").attributes) == ["a", "y"]
    assert list(table(tmp_path, "a,b\ty\tclass\n1\t2\tu\n2\t3\tv\n3\t4\tu\n", format="tsv").attributes) == ["a,b", "y"]


def test_a_header_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    names = [f"a_column_with_a_rather_long_name_{i}" for i in range(10_000)]
    content = (
        ",".join([*names, "class"])
        + "\n"
        + "".join(",".join("123"[i] for _ in names) + f",{i % 2}\n" for i in range(3))
    )
    assert len(table(tmp_path, content).attributes) == 10_000


# Malformed rows

RAGGED = "x,c,class\n1,a,u\n2,b\n3,a,v\n4,a,u,9\n5,b,v\n"


@pytest.mark.parametrize("block_size", [1, 10, 1000])
def test_a_ragged_row_is_named_with_its_line(tmp_path: Path, block_size: int) -> None:
    with pytest.raises(BncliError, match=r"expected 3 fields, found 2, .*t\.csv line 3; --on-bad-row skip"):
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
    with pytest.raises(BncliError, match=r"column 'x' holds 'low', which is not a finite number, .* line 3"):
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


@pytest.mark.parametrize("head", [b"", b"x,class\n1,a\n2,b\n"])
def test_kilobytes_that_become_one_line_of_gigabytes(tmp_path: Path, head: bytes) -> None:
    packed_once = gzip.compress(b" " * (1 << 20))
    content = gzip.compress(head) + packed_once * 140
    with pytest.raises(BncliError, match=r"more than 64 MB"):
        read(write(tmp_path, content))


# Where bytes come from

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: packed(data, "zstd"),
}


def packed(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("codec", PACKERS)
def test_compressed_files_are_told_by_their_first_bytes(tmp_path: Path, codec: str) -> None:
    pack = PACKERS[codec]
    check_good(read(write(tmp_path, pack(GOOD.encode()), "misnamed.txt")))
    two_members = pack(GOOD[:14].encode()) + pack(GOOD[14:].encode())
    check_good(read(write(tmp_path, two_members, "t.csv." + codec)))


@pytest.mark.parametrize("codec", PACKERS)
def test_a_compressed_file_cut_off(tmp_path: Path, codec: str) -> None:
    whole = PACKERS[codec](("x,class\n" + "".join(f"{i * i},{i % 2}\n" for i in range(5000))).encode())
    for size in (len(whole) // 2, len(whole) - 5):
        with pytest.raises(BncliError, match="damaged or cut off") as caught:
            table(tmp_path, whole[:size])
        assert "t.csv" in str(caught.value)


class FakeStdin:
    """A pipe: it can be read once and never seeked."""

    def __init__(self, data: bytes) -> None:
        reader, writer = os.pipe()
        self.buffer = open(reader, "rb")  # noqa: SIM115
        self._thread = threading.Thread(target=self._feed, args=(writer, data))
        self._thread.start()

    @staticmethod
    def _feed(writer: int, data: bytes) -> None:
        with open(writer, "wb") as file:
            file.write(data)

    def close(self) -> None:
        self.buffer.close()
        self._thread.join()


def from_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes, **options: Any) -> Columns:
    stdin = FakeStdin(data)
    monkeypatch.setattr(sys, "stdin", stdin)
    try:
        return read("-", **options)
    finally:
        stdin.close()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_stdin_may_be_read_twice(monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]) -> None:
    rows = "".join(f"{i % 50},{i % 2}\n" for i in range(5000)) + "".join(f"{word},1\n" for word in "wxyz")
    columns = from_stdin(monkeypatch, pack(b"a,class\n" + rows.encode()), block_size=1000)
    assert values(columns, "a") == [str(i % 50) for i in range(5000)] + [*"wxyz"]


def test_stdin_alone_and_named_in_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="stdin line 2"):
        from_stdin(monkeypatch, b"x,class\n1\n")
    with pytest.raises(BncliError, match="cannot be read together"):
        read_columns(Source(("-", write(tmp_path, GOOD))))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BncliError, match="stdin is closed"):
        read("-")


def test_a_named_pipe_is_read_like_stdin(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    rows = "".join(f"{i % 50},{i % 2}\n" for i in range(5000)) + "".join(f"{word},1\n" for word in "wxyz")
    feeder = threading.Thread(target=lambda: Path(pipe).write_text("a,class\n" + rows))
    feeder.start()
    assert len(values(read(pipe, block_size=1000), "a")) == 5004
    feeder.join()


def test_no_such_file_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "train.csv")
    with pytest.raises(BncliError, match=r"no such file, .*trian\.csv; did you mean .*train\.csv\?"):
        read(str(tmp_path / "trian.csv"))
    with pytest.raises(BncliError, match=r"there is no folder '.*nowhere', .*nowhere/x\.csv"):
        read(str(tmp_path / "nowhere" / "x.csv"))


def test_several_files_of_one_table_in_any_order_of_columns(tmp_path: Path) -> None:
    a = write(tmp_path, "x,c,class\n1,a,u\n", "a.csv")
    b = write(tmp_path, gzip.compress(b"class;x;c\nv;2;b\nu;3;a\n"), "b.csv.gz")
    check_good(read_columns(Source((a, b))))
    with pytest.raises(BncliError, match=r"'z' is in \S*z\.csv but not in \S*a\.csv"):
        read_columns(Source((a, write(tmp_path, "x,c,class,z\n", "z.csv"))))


def test_the_same_file_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "x,class\n1,a\n2,b\n")
    os.symlink(path, tmp_path / "other.csv")
    for again in (path, str(tmp_path / "." / "t.csv"), str(tmp_path / "other.csv"), str(tmp_path)):
        with pytest.raises(UsageError, match="the same file is given twice"):
            read_columns(Source((path, again)))


def test_a_wrong_delimiter_is_hinted_at(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,k\n1,2,u\n2,3,v\n")
    (tmp_path / "t.schema.json").write_text('{"class": "k"}')
    with pytest.raises(BncliError, match=r"no column 'k', .*json; .*t\.csv has a single column.*--delimiter"):
        read(path, delimiter=";")
    with pytest.raises(UsageError, match=r"no column 'b', .*t\.csv has a single column.*--delimiter"):
        read(path, delimiter=";", schema_file=None, class_name="b")


def test_a_directory_holds_the_files_in_order_of_names(tmp_path: Path) -> None:
    write(tmp_path, "x,c,class\n2,b,v\n3,a,u\n", "part2.csv")
    write(tmp_path, "x,c,class\n1,a,u\n", "part1.csv")
    write(tmp_path, "not data", "README.md")
    write(tmp_path, "not data", ".hidden.csv")
    check_good(read(str(tmp_path)))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BncliError, match="holds no data files"):
        read(str(empty))


def test_a_directory_of_text_and_parquet(tmp_path: Path) -> None:
    from pyarrow import parquet

    write(tmp_path, "x,c,class\n1,a,u\n", "part1.csv")
    parquet.write_table(pa.table({"class": ["v", "u"], "x": [2, 3], "c": ["b", "a"]}), tmp_path / "part2.parquet")
    check_good(read(str(tmp_path)))


def test_progress_is_in_bytes_of_the_files(tmp_path: Path) -> None:
    events: list[Event] = []
    a = write(tmp_path, GOOD, "a.csv")
    b = write(tmp_path, gzip.compress(GOOD.encode()), "b.csv.gz")
    read_columns(Source((a, b)), watch=events.append)
    progress = [event for event in events if isinstance(event, Progress)]
    total = os.path.getsize(a) + os.path.getsize(b)
    assert {event.total for event in progress} == {total}
    assert progress[-1].done == total
    assert [event.done for event in progress] == sorted(event.done for event in progress)


def test_a_disk_that_is_full_for_the_copy_of_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    with pytest.raises(BncliError, match=r"cannot keep a copy of the input .*No space left"):
        from_stdin(monkeypatch, GOOD.encode())
