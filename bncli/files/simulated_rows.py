"""Tables of rows to a file or to stdout, as CSV or Parquet, a block of rows at a time; any bncli reads them back.

Attributes come in their order, then the class. A number has the shortest text that reads back as the same float64; a
missing value is an empty field, in Parquet a null. Conventions: without a word about the format, the file's extension
decides. Parquet gathers rows into groups of at least 2^17, or fewer where they are wide.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.columns import CategoricalColumn, Column, Columns
from bncli.engine.data.number_formats import NumberForm
from bncli.errors import UsageError
from bncli.files.atomic import AbandonableStream, open_output, report_write_errors
from bncli.files.exports.csv import LINES
from bncli.files.reading.column_builder import more_than_two
from bncli.files.reading.numbers import to_numbers

FORMATS = ("csv", "parquet")
UNSUPPORTED_ENDINGS = (".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".arrow", ".feather", ".xlsx")
"""Endings of tables in formats that rows are not written in."""
SUPPORTED_FORMATS = "rows are written as CSV or Parquet (.parquet)"
_ROWS_PER_GROUP = 1 << 17
_VALUES_PER_GROUP = 1 << 23


class RowFile(Protocol):
    """Where rows go, block by block; every block has the columns and levels of the first."""

    def write(self, columns: Columns) -> None:
        """Write the next rows; all of them have a class."""

    def finish(self) -> None:
        """After the last block."""

    def abandon(self) -> None:
        """In place of `finish`, where something failed: no more bytes."""


class _CsvRows:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._levels: dict[str, pa.Array] = {}

    def write(self, columns: Columns) -> None:
        named = _named(columns)
        first = not self._levels
        if first:
            self._levels = {
                n: LINES.escape(pa.array(c.levels, pa.string()))
                for n, c in named.items()
                if isinstance(c, CategoricalColumn)
            }
        fields = [self._fields(name, column) for name, column in named.items()]
        with report_write_errors():
            if first:
                self._file.write(LINES.header(list(named)))
            self._file.write(LINES.join(list(named), fields))
            self._file.flush()  # whoever reads the pipe gets a block when it is there, and we hear when nobody does

    def _fields(self, name: str, column: Column) -> pa.Array:
        if isinstance(column, CategoricalColumn):
            return self._levels[name].take(_indices(column))
        texts = _numbers(column.values).cast(pa.string())
        if isinstance(column.form, NumberForm) and column.form.decimal == ",":
            return LINES.escape(pc.replace_substring(texts, ".", ","))
        return texts

    def finish(self) -> None:
        self._file.flush()

    def abandon(self) -> None:
        """Nothing is held back."""


class _ParquetRows:
    def __init__(self, file: BinaryIO) -> None:
        self._stream = AbandonableStream(file)
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []

    def write(self, columns: Columns) -> None:
        named = _named(columns)
        arrays = [_array(column) for column in named.values()]
        self._waiting.append(pa.record_batch(arrays, names=list(named)))
        n_rows = sum(batch.num_rows for batch in self._waiting)
        if n_rows >= _ROWS_PER_GROUP or n_rows * len(named) >= _VALUES_PER_GROUP:
            self._write_group()

    def finish(self) -> None:
        self._write_group()
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        self._stream.abandoned = True
        if self._writer is not None:
            self._writer.close()

    def _write_group(self) -> None:
        from pyarrow import parquet

        if not self._waiting:
            return
        with report_write_errors():
            if self._writer is None:
                self._writer = parquet.ParquetWriter(self._stream, self._waiting[0].schema)
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting.clear()


@contextmanager
def open_rows(output: str | None, output_format: str | None) -> Iterator[RowFile]:
    """Yield a place to write rows to: the file `output`, whole or not at all, or stdout (None or `-`)."""
    path = None if output == "-" else output
    by_ending = "parquet" if os.path.splitext(path or "")[1].lower() == ".parquet" else "csv"
    chosen = output_format or by_ending
    if chosen not in FORMATS:
        raise UsageError(f"there is no output format {chosen!r}", hint=f"choose one of {', '.join(FORMATS)}")
    with open_output(path) as file:
        rows: RowFile = _ParquetRows(file) if chosen == "parquet" else _CsvRows(file)
        try:
            yield rows
            with report_write_errors():
                rows.finish()
        except BaseException:
            rows.abandon()
            raise


def would_read_as_numbers(levels: Sequence[str]) -> bool:
    """Return whether a column of these levels would be taken for numbers by whoever reads it."""
    numbers, other = to_numbers(pa.array(levels, pa.string()), [])
    return other is None and more_than_two([numbers])


def _named(columns: Columns) -> dict[str, Column]:
    assert columns.label is not None
    return {**columns.as_read, columns.class_name: columns.label}


def _array(column: Column) -> pa.Array:
    if isinstance(column, CategoricalColumn):
        return pa.array(column.levels, pa.string()).take(_indices(column))
    return _numbers(column.values)


def _indices(column: CategoricalColumn) -> pa.Array:
    return pa.array(column.codes, mask=column.codes < 0)


def _numbers(values: Any) -> pa.Array:
    """As float64, NaN as null; + 0.0 makes -0 a 0."""
    floats = values.astype(np.float64) + 0.0
    return pa.array(floats, mask=np.isnan(floats))
