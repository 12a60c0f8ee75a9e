from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.errors import BncliError
from bncli.files.reading import csv_text as text_blocks
from bncli.files.reading.csv_text import TextBlock, TextLayout, cut_blocks
from tests.files.reading.oracles import read_rows

texts = st.lists(st.sampled_from([b"a", b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"bc"]), max_size=60).map(b"".join)
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


@given(texts, st.integers(1, 80), st.integers(0, 10), st.sets(st.integers(0, 100), max_size=8))
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


@given(texts, st.integers(1, 80))
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
    monkeypatch.setattr(text_blocks, "MAX_ROW", 1000)
    data = b'1,"2\n' + b"3,4\n" * 5000
    found = cut_all(data, 100)
    assert [row.where for block in found for row in block.bad] == ["f line 2"]
    assert b"".join(block.data for block in found) == b"3,4\n" * 5000
    assert max(len(block.data) for block in found) < 5000


def test_an_endless_line_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "MAX_ROW", 1000)
    with pytest.raises(BncliError, match="a line of more than"):
        cut_all(b"x" * 10_000, 100)


def test_no_bytes_no_blocks(tmp_path: Path) -> None:
    assert cut_all(b"", 10) == []
