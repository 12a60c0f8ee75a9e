"""Parquet and Arrow files: record batches in place of blocks of text.

Integers, floats and decimals are numbers, NaN among them missing, and durations are seconds; dates and times are read
without a way over text where they are asked for as such (see `dates`); everything else that has a text (strings,
booleans) is text, a null being the empty text. An infinite number makes its row malformed.

Arrow takes what such a file says of itself on trust: an offset or an index that points elsewhere is followed there, and
the process dies. So only the wanted columns are read, and every batch is validated in full before it is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.number_formats import DateForm, NumberForm
from bncli.errors import BncliError
from bncli.files.artifacts.arrow_sizes import check_sizes
from bncli.files.artifacts.codes import FORMAT_MARK, HEADER_KEY
from bncli.files.reading.dates import durations_of, holds_dates, is_temporal, order_of, seconds_of
from bncli.files.reading.source import (
    BadRow,
    ColumnRequest,
    MissingTokens,
    RowBlock,
    ValueKind,
    Values,
    is_text,
    select,
)
from bncli.files.reading.values import find_faults, resolve

ROWS_PER_BATCH = 1 << 16
_MAGIC = {"parquet": b"PAR1", "file": b"ARROW1", "feather v1": b"FEA1"}


@dataclass(frozen=True)
class Batch:
    """Some rows of a columnar file; `row` is the number of the first one, from 1.

    whole: all columns are there, and a malformed row is to be kept as text.
    """

    path: str
    data: pa.RecordBatch
    row: int
    whole: bool = False


class ColumnarFile:
    """An opened Parquet or Arrow file; `file` can be seeked, `memory` bytes are free (None: unknown)."""

    def __init__(self, file: BinaryIO, kind: str, path: str, memory: int | None = None) -> None:
        self.path = path
        if kind in ("file", "stream"):
            check_sizes(file, kind, path, memory)
        self._kind = kind
        self._file = file
        self._reader = self._guarded(lambda: _open(file, kind, path))
        self._schema: pa.Schema = self._reader.schema_arrow if kind == "parquet" else self._reader.schema
        if FORMAT_MARK in (self._schema.metadata or {}).get(HEADER_KEY, b""):
            what = "these are rows in codes, and not the values of a table"
            raise BncliError(
                what, where=path, hint="learn from a .codes file alone, named by its path; score its table"
            )
        self.names: tuple[str, ...] = self._guarded(lambda: _names(self._schema))
        if not self.names:
            raise BncliError("the file has no columns", where=path)
        kinds = zip(self.names, self._schema.types, strict=True)
        self.nested = {name: _nested_word(kind) for name, kind in kinds if pa.types.is_nested(kind)}
        """What the columns hold whose values are neither numbers nor text: struct, map, list."""

    def want(self, name: str) -> ColumnRequest:
        """Return how the column's values are best asked for."""
        kind = self._schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_integer(kind):
            return ColumnRequest(name, ValueKind.INTEGER)
        if is_temporal(kind):
            return ColumnRequest(name, ValueKind.TEXT, strict=True, form=DateForm(name, "days", order_of(kind)))
        return ColumnRequest(name, ValueKind.NUMBER if _is_real(kind) else ValueKind.TEXT)

    def batches(self, names: Sequence[str], *, whole: bool = False) -> Iterator[Batch]:
        """Yield the rows in order, with the named columns, or with all of them for `whole` rows."""
        row = 1
        batches = self._guarded(lambda: self._all(self.names if whole else names))
        while (data := self._guarded(lambda: _next_sound(batches))) is not None:
            for start in range(0, data.num_rows, ROWS_PER_BATCH):
                rows = data.slice(start, ROWS_PER_BATCH)
                yield Batch(self.path, rows, row, whole)
                row += rows.num_rows

    def _all(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self._kind == "parquet":
            return self._of_parquet(names)
        self._file.seek(0)
        wanted = sorted({self._schema.get_field_index(name) for name in names})
        reader = _open(self._file, self._kind, self.path, wanted)
        if self._kind == "file":
            return (reader.get_batch(i) for i in range(reader.num_record_batches))
        return iter(reader)

    def _of_parquet(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows; pa.ArrowInvalid where there are fewer or more than the footer says."""
        promised, found = self._reader.metadata.num_rows, 0
        for batch in self._reader.iter_batches(ROWS_PER_BATCH, columns=list(names), use_threads=False):
            found += batch.num_rows
            yield batch
        if found != promised:
            raise pa.ArrowInvalid(f"{found} rows where the footer says {promised}")

    def _guarded(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except pa.ArrowNotImplementedError as error:
            raise BncliError(f"the file cannot be read ({_reason(error)})", where=self.path) from error
        except MemoryError as error:  # Arrow's own is one
            what = f"the file is damaged, or asks for more memory than there is ({_reason(error)})"
            raise BncliError(what, where=self.path) from error
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise BncliError(f"the file is damaged or cut off ({_reason(error)})", where=self.path) from error


def recognise(first: bytes) -> str | None:
    """Return the columnar format that begins with these bytes: parquet, file or stream (of Arrow IPC), feather v1."""
    for name, magic in _MAGIC.items():
        if first.startswith(magic):
            return name
    # A stream has no magic word: its first message begins with the continuation marker.
    return "stream" if first.startswith(b"\xff\xff\xff\xff") else None


def parse_batch(batch: Batch, wants: Sequence[ColumnRequest], tokens: MissingTokens) -> RowBlock:
    """Return the wanted columns of a batch's rows."""
    found = [_values(batch, want) for want in wants]
    resolved = [resolve(want, values, tokens) for want, values in zip(wants, found, strict=True)]
    wrongs = [_also_infinite(values, wrong) for values, wrong in resolved]
    faults = find_faults(wants, found, wrongs)
    keep = np.ones(batch.data.num_rows, np.bool_)
    keep[list(faults)] = False
    rows = np.arange(batch.row, batch.row + len(keep))[keep]
    values = tuple(select(values, keep) if faults else values for values, _ in resolved)
    lines = _as_lines(batch.data, list(faults)) if batch.whole else [b""] * len(faults)
    bad = [
        BadRow(what, batch.path, batch.row + r, line, "row")
        for (r, what), line in zip(faults.items(), lines, strict=True)
    ]
    return RowBlock(len(rows), values, tuple(bad), lambda row: f"{batch.path} row {rows[row]}")


def _values(batch: Batch, want: ColumnRequest) -> Values:
    array = batch.data.column(batch.data.schema.get_field_index(want.name))
    if pa.types.is_dictionary(array.type):
        array = _plain_dictionary(array).dictionary_decode()
    try:
        as_numbers = want.kind is not ValueKind.TEXT or isinstance(want.form, NumberForm)
        if as_numbers and (pa.types.is_integer(array.type) or _is_real(array.type)):
            # Integers stay exact beyond 2^53; with nulls only a float has a value for missing, and uint64 may not fit
            # int64.
            if pa.types.is_integer(array.type) and not array.null_count and not pa.types.is_uint64(array.type):
                return array.cast(pa.int64()).to_numpy()
            if pa.types.is_duration(array.type):
                return durations_of(array)
            return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if isinstance(want.form, DateForm) and holds_dates(array.type, want.form.order):
            return seconds_of(array)
        if pa.types.is_floating(array.type):
            # NaN is missing, as in a column of numbers, and not the level "nan".
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        return array.cast(pa.string()).fill_null("")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        what = f"column '{want.name}' holds {array.type} values, which have no text"
        raise BncliError(what, where=batch.path, hint=f"--ignore '{want.name}'") from error


def _plain_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return texts that are views, as Polars has them, as Arrow can take them."""
    if pa.types.is_string_view(array.dictionary.type):
        return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array


def _is_real(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_duration(kind))


def _also_infinite(values: Values, wrong: Any) -> Any:
    if is_text(values) or values.dtype.kind != "f":
        return wrong
    infinite = np.isinf(values)
    if not infinite.any():
        return wrong
    return infinite if wrong is None else wrong | infinite


def _as_lines(data: pa.RecordBatch, rows: Sequence[int]) -> list[bytes]:
    """Return the rows as lines of CSV."""
    columns = [_texts(array) for array in data.take(rows).columns] if rows else []
    return [
        ",".join(
            ('"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text) for text in row
        ).encode()
        for row in zip(*columns, strict=True)
    ]


def _texts(array: pa.Array) -> list[str]:
    try:
        # Not by way of Python: its times know no nanoseconds and its dates no year beyond 9999.
        return list(array.cast(pa.string()).fill_null("").to_pylist())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a list, bytes that are no text: as Arrow prints them
        return [array.slice(i, 1).to_string(skip_new_lines=True)[1:-1] for i in range(len(array))]


def _nested_word(kind: pa.DataType) -> str:
    return "struct" if pa.types.is_struct(kind) else "map" if pa.types.is_map(kind) else str(kind).partition("<")[0]


def type_word(kind: pa.DataType) -> str | None:
    """Return what values of an Arrow type are read as, in a word; None: nothing, for all are missing."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return None
    if pa.types.is_integer(kind) or _is_real(kind):
        return "numbers"
    return order_of(kind) if is_temporal(kind) else "text"


def _names(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns' names; UnicodeDecodeError where they, or the names of time zones, are not UTF-8."""
    zones = [kind.tz for kind in schema.types if pa.types.is_timestamp(kind)]
    assert all(zone is None or isinstance(zone, str) for zone in zones)
    return tuple(schema.names)


def _reason(error: Exception) -> str:
    # Arrow's messages go on with C++ places, and some are empty.
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _open(file: BinaryIO, kind: str, path: str, wanted: Sequence[int] | None = None) -> Any:
    if kind == "feather v1":
        raise BncliError("Feather version 1 is not supported", where=path, hint="write the file again as Arrow IPC")
    if kind == "parquet":
        from pyarrow import parquet

        # buffers read ahead are kept until the end of the file: as much memory as the file is long
        return parquet.ParquetFile(file, page_checksum_verification=True, pre_buffer=False)
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=wanted)
    return pa.ipc.open_file(file, options=options) if kind == "file" else pa.ipc.open_stream(file, options=options)


def _next_sound(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Return the next batch, offsets, indices, UTF-8 and dictionaries checked."""
    data = next(batches, None)
    if data is not None:
        data.validate()
        for name, column in zip(data.schema.names, data.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise pa.ArrowInvalid(f"column '{name}': {_reason(error)}") from error
    return data
