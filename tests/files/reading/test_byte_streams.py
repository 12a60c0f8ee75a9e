"""Where the bytes of a table come from: compressed files, stdin, pipes, directories, encodings."""

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

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.errors import BncliError, UsageError
from bncli.files.reading.byte_streams import Transcoder
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests.files.reading.tables import GOOD, check_good, from_stdin, read, rows_of, table, values, write, write_parquet

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


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_stdin_may_be_read_twice(monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]) -> None:
    rows = "".join(f"{i % 50},{i % 2}\n" for i in range(5000)) + "".join(f"{word},1\n" for word in "wxyz")
    columns = from_stdin(monkeypatch, pack(b"a,class\n" + rows.encode()), block_size=1000)
    assert values(columns, "a") == [str(i % 50) for i in range(5000)] + [*"wxyz"]


def test_stdin_alone_and_named_in_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="stdin line 2"):
        from_stdin(monkeypatch, b"x,class\n1\n")
    with pytest.raises(BncliError, match="cannot be combined"):
        read_columns(Source(("-", write(tmp_path, GOOD))))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BncliError, match="the standard input is closed"):
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


def test_the_same_file_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "x,class\n1,a\n2,b\n")
    os.symlink(path, tmp_path / "other.csv")
    for again in (path, str(tmp_path / "." / "t.csv"), str(tmp_path / "other.csv"), str(tmp_path)):
        with pytest.raises(UsageError, match="the same file is given twice"):
            read_columns(Source((path, again)))


def test_a_directory_holds_the_files_in_order_of_names(tmp_path: Path) -> None:
    write(tmp_path, "x,c,class\n2,b,v\n3,a,u\n", "part2.csv")
    write(tmp_path, "x,c,class\n1,a,u\n", "part1.csv")
    write(tmp_path, "not data", "README.md")
    write(tmp_path, "not data", ".hidden.csv")
    check_good(read(str(tmp_path)))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BncliError, match="contains no data files"):
        read(str(empty))


def test_a_disk_that_is_full_for_the_copy_of_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    with pytest.raises(BncliError, match=r"cannot keep a copy of the input .*No space left"):
        from_stdin(monkeypatch, GOOD.encode())


@given(
    st.text(),
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
    path = write_parquet(tmp_path, {"x": np.arange(6), "k": ["u", "v"] * 3})
    assert values(read(path, encoding="utf-16"), "x") == list(range(6))
