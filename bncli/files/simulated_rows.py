"""Write tables of simulated rows as CSV or Parquet, block by block, to a file or to the standard output.

Attributes come in their order, then the class. In CSV, a number is written as the shortest string that reads back as
the same float64, with a decimal comma if its attribute has one; in Parquet, numbers are stored as float64. A missing
value is an empty field in CSV and a null in Parquet. If no format is named, a file with the
extension .parquet is written as Parquet, and any other output as CSV. Each Parquet row group has at least 2^17 rows or
2^23 values, except the last one, which may be smaller.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.columns import CategoricalColumn, Column, Columns
from bncli.engine.data.schema import NumberForm
from bncli.errors import UsageError
from bncli.files.atomic import AbandonableStream, open_output
from bncli.files.exports.csv import LINES
from bncli.files.reading.column_builder import has_more_than_two
from bncli.files.reading.numbers import to_numbers

FORMATS = ("csv", "parquet")
UNSUPPORTED_ENDINGS = (".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".arrow", ".feather", ".xlsx")
"""File name extensions of table formats that are not written."""
SUPPORTED_FORMATS = "rows are written as CSV or Parquet (.parquet)"
_ROWS_PER_GROUP = 1 << 17
_VALUES_PER_GROUP = 1 << 23


@contextmanager
def open_rows(output: str | None, output_format: str | None) -> Iterator[_CsvRows | _ParquetRows]:
    """Yield a writer whose method `write` takes the rows block by block.

    The rows go to the file `output`, which appears only if the `with` block succeeds, or to the standard output (None
    or `-`). Every block of rows must have the columns and levels of the first one. Raises UsageError for an unknown
    format.
    """
    path = None if output == "-" else output
    by_ending = "parquet" if os.path.splitext(path or "")[1].lower() == ".parquet" else "csv"
    chosen = output_format or by_ending
    if chosen not in FORMATS:
        raise UsageError(f"there is no output format {chosen!r}", hint=f"choose one of {', '.join(FORMATS)}")
    with open_output(path) as file:
        if chosen == "csv":
            yield _CsvRows(file)
            file.flush()
            return
        rows = _ParquetRows(file)
        try:
            yield rows
            rows.finish()
        except BaseException:
            rows.abandon()
            raise


class _CsvRows:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._levels: dict[str, pa.Array] = {}
        """Levels of each categorical column, quoted for CSV; empty before the first block."""

    def write(self, columns: Columns) -> None:
        """Write the next rows, all of which have a class; the first call also writes the header."""
        by_name = _columns_by_name(columns)
        is_first = not self._levels
        if is_first:
            self._levels = {
                name: LINES.escape(pa.array(column.levels, pa.string()))
                for name, column in by_name.items()
                if isinstance(column, CategoricalColumn)
            }
        fields = []
        for name, column in by_name.items():
            if isinstance(column, CategoricalColumn):
                texts = _take_levels(self._levels[name], column)
            else:
                texts = _to_float64(column.values).cast(pa.string())
                if isinstance(column.form, NumberForm) and column.form.decimal == ",":
                    texts = LINES.escape(pc.replace_substring(texts, ".", ","))
            fields.append(texts)
        if is_first:
            self._file.write(LINES.header(list(by_name)))
        self._file.write(LINES.join(list(by_name), fields))
        # A reader of a pipe gets every block at once, and a closed pipe is noticed at once.
        self._file.flush()


class _ParquetRows:
    def __init__(self, file: BinaryIO) -> None:
        self._stream = AbandonableStream(file)
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []

    def write(self, columns: Columns) -> None:
        """Write the next rows, all of which have a class."""
        by_name = _columns_by_name(columns)
        arrays = [
            _take_levels(pa.array(column.levels, pa.string()), column)
            if isinstance(column, CategoricalColumn)
            else _to_float64(column.values)
            for column in by_name.values()
        ]
        self._waiting.append(pa.record_batch(arrays, names=list(by_name)))
        n_rows = sum(batch.num_rows for batch in self._waiting)
        if n_rows >= _ROWS_PER_GROUP or n_rows * len(by_name) >= _VALUES_PER_GROUP:
            self._write_group()

    def finish(self) -> None:
        """Write the remaining rows and the footer."""
        self._write_group()
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Close the writer after a failure without writing anything more."""
        self._stream.abandoned = True
        if self._writer is not None:
            self._writer.close()

    def _write_group(self) -> None:
        from pyarrow import parquet

        if not self._waiting:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._stream, self._waiting[0].schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting.clear()


def _columns_by_name(columns: Columns) -> dict[str, Column]:
    assert columns.label is not None
    return {**columns.as_read, columns.class_name: columns.label}


def _take_levels(levels: pa.Array, column: CategoricalColumn) -> pa.Array:
    """Return the level of each row, null for a missing value."""
    return levels.take(pa.array(column.codes, mask=column.codes < 0))


def _to_float64(values: Any) -> pa.Array:
    """Convert numbers to float64, with nulls for NaN."""
    floats = values.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    return pa.array(floats, mask=np.isnan(floats))


def would_read_as_numbers(levels: Sequence[str]) -> bool:
    """Return whether all levels are plain decimal numbers, with more than two distinct values.

    Such a column is usually read as numeric.
    """
    numbers, non_numeric = to_numbers(pa.array(levels, pa.string()), [])
    return non_numeric is None and has_more_than_two([numbers])
