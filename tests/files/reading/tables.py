"""Tables written to files and read again, for tests."""

from __future__ import annotations

import io
import math
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyarrow import feather, parquet

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.files.reading import csv_text
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Note
from tests.batches import blocks_of


def write(path: Path, content: str | bytes, name: str = "t.csv") -> str:
    file = path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


def read(path: str, **options: Any) -> Columns:
    """Read a file; `block_size` is in bytes."""
    reading = {key: options.pop(key) for key in ("threads", "cuts", "watch") if key in options}
    with blocks_of(options.pop("block_size", csv_text.BLOCK_SIZE)):
        return read_columns(Source((path,), **options), **reading)


def table(path: Path, content: str | bytes, **options: Any) -> Columns:
    return read(write(path, content), **options)


def values(columns: Columns, name: str) -> list[Any]:
    """The column as Python values, a missing value as None."""
    column = columns.label if name == columns.class_name else columns.attributes[name]
    if isinstance(column, CategoricalColumn):
        return [None if code < 0 else column.levels[code] for code in column.codes]
    assert isinstance(column, NumericColumn)
    return [None if math.isnan(value) else value for value in column.values.tolist()]


def noted(path: Path, content: str | bytes, **options: Any) -> tuple[Columns, list[str]]:
    notes: list[Event] = []
    columns = table(path, content, watch=notes.append, **options)
    return columns, [note.text for note in notes if isinstance(note, Note)]


GOOD = "x,c,class\n1,a,u\n2,b,v\n3,a,u\n"


def check_good(columns: Columns) -> None:
    assert values(columns, "x") == [1, 2, 3]
    assert values(columns, "c") == ["a", "b", "a"]
    assert values(columns, "class") == ["u", "v", "u"]


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


def as_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def as_file(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_feather(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    feather.write_feather(table, sink)
    return sink.getvalue()


def rows_of(column: list[str], header: str = "d,class", delimiter: str = ",") -> str:
    """A table of one column and a class."""
    lines = [f"{value}{delimiter}{'uv'[i % 2]}" for i, value in enumerate(column)]
    return "\n".join([header.replace(",", delimiter), *lines, ""])


def write_parquet(path: Path, table: dict[str, Any]) -> str:
    pa.parquet.write_table(pa.table(table), path / "t.parquet")
    return str(path / "t.parquet")
