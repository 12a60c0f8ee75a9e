"""Parquet and Arrow files, read as record batches.

Integers, floats and decimals are read as numbers, with NaN for missing values; durations are read as numbers of
seconds. Dates and times are converted directly to seconds (see `dates`). All of these are read as text if text is
requested, and so is every other type that Arrow can cast to strings, such as Booleans. In text, a null becomes the
empty string. An infinite number makes its row malformed.

Arrow trusts the contents of such a file: it follows a wrong offset or index, and the process may crash. Therefore every
batch is validated in full before it is used. Columns that are not needed are not read, unless malformed rows are to be
written to a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.schema import DateForm, NumberForm
from bncli.errors import BncliError
from bncli.files.artifacts.arrow_sizes import check_sizes
from bncli.files.artifacts.codes import FORMAT_MARK, HEADER_KEY
from bncli.files.paths import CREATE_AGAIN
from bncli.files.reading.dates import durations_of, holds_dates, is_temporal, order_of, seconds_of
from bncli.files.reading.source import (
    BadRow,
    ColumnRequest,
    MissingTokens,
    RowBlock,
    ValueKind,
    Values,
    is_text,
    select_rows,
)
from bncli.files.reading.values import convert_values, find_faults

_ROWS_PER_BATCH, _MOST_ROWS_PER_BATCH = 1 << 16, 1 << 17
_FEW_COLUMNS = 32
"""With at most this many columns, batches have up to _MOST_ROWS_PER_BATCH rows, so that there are fewer of them."""
_MAGIC = {"parquet": b"PAR1", "file": b"ARROW1", "feather v1": b"FEA1"}


@dataclass(frozen=True)
class ArrowBatch:
    """Consecutive rows of a columnar file; `row` is the number of the first one, counted from 1.

    keeps_bad_rows: whether the batch has all columns of the file, so that malformed rows can be written to a file.
    """

    path: str
    data: pa.RecordBatch
    row: int
    keeps_bad_rows: bool = False


def columnar_format(first: bytes) -> str | None:
    """Return the format of a columnar file, given its first bytes, or None for any other file.

    The formats are "parquet", "file" and "stream" (the two formats of Arrow IPC), and "feather v1".
    """
    for name, magic in _MAGIC.items():
        if first.startswith(magic):
            return name
    # A stream has no magic word: its first message begins with the continuation marker.
    return "stream" if first.startswith(b"\xff\xff\xff\xff") else None


class ColumnarFile:
    """An open Parquet or Arrow file.

    - file: a seekable file; kind: its format, from `columnar_format`
    - keep_bad_rows: whether to read all columns, so that malformed rows can be written to a file
    - memory: the free memory in bytes, or None if unknown; an Arrow file is refused if one of its compressed batches
      needs more

    Raises BncliError if the file is damaged or not supported, or contains codes or no columns.
    """

    def __init__(self, file: BinaryIO, kind: str, path: str, *, keep_bad_rows: bool, memory: int | None) -> None:
        self.path = path
        self._keep_bad_rows = keep_bad_rows
        n_rows = check_sizes(file, kind, path, memory) if kind in ("file", "stream") else 0
        self._kind = kind
        self._file = file
        with _report_damage(path):
            self._reader = _open_reader(file, kind, path)
        self.stated_rows: int = self._reader.metadata.num_rows if kind == "parquet" else n_rows
        """The number of rows according to the metadata, which may be wrong."""
        self._describe(self._reader.schema_arrow if kind == "parquet" else self._reader.schema)

    def _describe(self, schema: pa.Schema) -> None:
        """Set the names and types of the columns; raise BncliError if these are not the columns of a table."""
        self._schema, path = schema, self.path
        if FORMAT_MARK in (self._schema.metadata or {}).get(HEADER_KEY, b""):
            what = "this file contains codes, not the values of a table"
            hint = "a .codes file can be used only for learning, and only by its path"
            raise BncliError(what, where=path, hint=hint)
        with _report_damage(path):
            # Raises UnicodeDecodeError if the names of columns or of time zones are not UTF-8.
            zones = [kind.tz for kind in self._schema.types if pa.types.is_timestamp(kind)]
            assert all(zone is None or isinstance(zone, str) for zone in zones)
            self.names = tuple(self._schema.names)
        if not self.names:
            raise BncliError("the file has no columns", where=path)
        self.nested: dict[str, str] = {}
        """The type of each nested column (struct, map, list or another nested type of Arrow), keyed by name."""
        for name, column_type in zip(self.names, self._schema.types, strict=True):
            if pa.types.is_struct(column_type) or pa.types.is_map(column_type):
                self.nested[name] = "struct" if pa.types.is_struct(column_type) else "map"
            elif pa.types.is_nested(column_type):
                word = str(column_type).partition("<")[0]
                self.nested[name] = "list" if "list" in word else word  # large_list, fixed_size_list, list_view

    def request(self, name: str) -> ColumnRequest:
        """Return the request for a column that suits its declared type."""
        kind = self._schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_integer(kind):
            return ColumnRequest(name, ValueKind.INTEGER)
        if is_temporal(kind):
            return ColumnRequest(name, ValueKind.TEXT, strict=True, form=DateForm(name, "days", order_of(kind)))
        return ColumnRequest(name, ValueKind.NUMBER if _is_real(kind) else ValueKind.TEXT)

    def batches(self, names: Sequence[str]) -> Iterator[ArrowBatch]:
        """Yield the rows in order, as validated batches with at least the named columns."""
        row = 1
        if self._keep_bad_rows:
            names = self.names
        size = _MOST_ROWS_PER_BATCH if len(names) <= _FEW_COLUMNS else _ROWS_PER_BATCH
        with _report_damage(self.path):
            batches = self._record_batches(names, size)
        while True:
            with _report_damage(self.path):
                data = next(batches, None)
                if data is None:
                    return
                # Checks offsets, indices, UTF-8 and dictionaries.
                data.validate()
                for name, column in zip(data.schema.names, data.columns, strict=True):
                    try:
                        _validate(column)
                    except pa.ArrowInvalid as error:
                        raise pa.ArrowInvalid(f"column '{name}': {_reason(error)}") from error
            for start in range(0, data.num_rows, size):
                rows = data.slice(start, size)
                yield ArrowBatch(self.path, rows, row, self._keep_bad_rows)
                row += rows.num_rows

    def _record_batches(self, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Yield the record batches, which have at most `size` rows for Parquet.

        Raises pa.ArrowInvalid if the footer of a Parquet file states a wrong number of rows.
        """
        if self._kind == "parquet":
            n_stated, n_rows = self._reader.metadata.num_rows, 0
            for batch in self._reader.iter_batches(size, columns=list(names), use_threads=False):
                n_rows += batch.num_rows
                yield batch
            if n_rows != n_stated:
                raise pa.ArrowInvalid(f"{n_rows} rows, but the footer states {n_stated}")
            return
        self._file.seek(0)
        fields = sorted({self._schema.get_field_index(name) for name in names})
        reader = _open_reader(self._file, self._kind, self.path, fields)
        if self._kind == "file":
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            yield from reader


class TableInMemory(ColumnarFile):
    """An Arrow table, read like a file."""

    def __init__(self, table: pa.Table, name: str, *, keep_bad_rows: bool) -> None:
        self.path, self._keep_bad_rows, self._table = name, keep_bad_rows, table
        self.stated_rows = table.num_rows
        self._describe(table.schema)

    def _record_batches(self, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        yield from self._table.select(list(names)).to_batches(size)


@contextmanager
def _report_damage(path: str) -> Iterator[None]:
    """Convert errors of Arrow, of reading and of decoding text inside the block into a BncliError about the file."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise BncliError(f"the file cannot be read ({_reason(error)})", where=path) from error
    except MemoryError as error:  # Arrow raises this class as well
        what = f"the file is damaged, or needs more memory than is available ({_reason(error)})"
        raise BncliError(what, where=path) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = f"the file is damaged or cut off ({_reason(error)})"
        raise BncliError(what, where=path, hint=CREATE_AGAIN) from error


def _validate(column: pa.Array) -> None:
    """Raise pa.ArrowInvalid if the contents of a column are invalid."""
    if pa.types.is_dictionary(column.type):
        column.indices.validate(full=True)
        column.dictionary.validate(full=True)
        extremes = pc.min_max(column.indices)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low is None or 0 <= low <= high < len(column.dictionary):
            return  # ten times as fast as the check of each index below
    column.validate(full=True)


def _reason(error: Exception) -> str:
    # Later lines of Arrow's messages name places in its C++ code; some messages are empty.
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _open_reader(file: BinaryIO, kind: str, path: str, fields: Sequence[int] | None = None) -> Any:
    if kind == "feather v1":
        raise BncliError("Feather version 1 is not supported", where=path, hint="save the file as Arrow IPC")
    if kind == "parquet":
        from pyarrow import parquet

        # Buffers that are read ahead stay in memory until the end of the file, so they would take its whole size.
        return parquet.ParquetFile(file, page_checksum_verification=True, pre_buffer=False)
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=fields)
    return pa.ipc.open_file(file, options=options) if kind == "file" else pa.ipc.open_stream(file, options=options)


def parse_batch(
    batch: ArrowBatch, requests: Sequence[ColumnRequest], tokens: MissingTokens, n_compact: int = 0
) -> RowBlock:
    """Return the requested columns of a batch as a row block, without the malformed rows.

    The first `n_compact` columns keep their types as far as possible: numbers other than weights may have narrower
    types than int64 and float64, and dictionary-encoded strings that are requested as text stay encoded if
    `_coded_texts` allows it. In this case neither their indices nor their dictionary has nulls, but the dictionary may
    contain a string twice, and strings that occur in no row.
    """
    stored = []
    for i, request in enumerate(requests):
        array = batch.data.column(batch.data.schema.get_field_index(request.name))
        coded = _coded_texts(array, request) if i < n_compact else None
        stored.append(_column_values(batch, request, compact=i < n_compact) if coded is None else coded)
    converted: list[Values] = []
    wrong = []
    for request, values in zip(requests, stored, strict=True):
        values, is_wrong = convert_values(request, values, tokens)
        if not is_text(values) and values.dtype.kind == "f":
            infinite = np.isinf(values)
            if infinite.any():
                is_wrong = infinite if is_wrong is None else is_wrong | infinite
        converted.append(values)
        wrong.append(is_wrong)
    faults = find_faults(requests, stored, wrong)
    keep = np.ones(batch.data.num_rows, np.bool_)
    keep[list(faults)] = False
    rows = np.arange(batch.row, batch.row + len(keep))[keep]
    if faults:
        converted = [select_rows(values, keep) for values in converted]
    lines = _csv_lines(batch.data, list(faults)) if batch.keeps_bad_rows else [b""] * len(faults)
    bad = [
        BadRow(what, batch.path, batch.row + r, line, "row")
        for (r, what), line in zip(faults.items(), lines, strict=True)
    ]
    return RowBlock(len(rows), tuple(converted), tuple(bad), lambda row: f"{batch.path} row {rows[row]}")


def _coded_texts(array: pa.Array, request: ColumnRequest) -> pa.DictionaryArray | None:
    """Return a dictionary-encoded text column with "" for null.

    Returns None for any other column, for a column that is not requested as plain text, and if the dictionary contains
    nulls or is longer than the column.
    """
    kind = array.type
    if not pa.types.is_dictionary(kind) or request.kind is not ValueKind.TEXT or request.form is not None:
        return None
    if not (pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)):
        return None
    texts, indices = array.dictionary, array.indices
    if texts.null_count or len(texts) > len(array):
        return None
    if indices.null_count:
        # a null is the empty text, which is added to the dictionary
        indices = indices.cast(pa.int32()) if indices.type.bit_width < 32 else indices
        indices = indices.fill_null(pa.scalar(len(texts), indices.type))
        texts = pa.concat_arrays([texts, pa.array([""], texts.type)])
    elif pa.types.is_string(kind.value_type):
        return array
    return pa.DictionaryArray.from_arrays(indices, texts.cast(pa.string()), safe=False)  # valid already


def _column_values(batch: ArrowBatch, request: ColumnRequest, *, compact: bool) -> Values:
    """Return a column as numbers or seconds if these are requested and stored, otherwise as strings.

    In strings, null and NaN become "". compact: whether numbers may keep their types. Raises BncliError if the values
    cannot be cast to strings.
    """
    array = batch.data.column(batch.data.schema.get_field_index(request.name))
    if pa.types.is_dictionary(array.type):
        if pa.types.is_string_view(array.dictionary.type):  # written by Polars; Arrow cannot decode these
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
        array = array.dictionary_decode()
    try:
        as_numbers = request.kind is not ValueKind.TEXT or isinstance(request.form, NumberForm)
        if as_numbers and (pa.types.is_integer(array.type) or _is_real(array.type)):
            # Integers stay exact beyond 2^53. With nulls they become floats, since only a float can be NaN; so do
            # unsigned 64-bit integers, which may not fit int64.
            compact = compact and not request.weight
            if pa.types.is_integer(array.type) and not array.null_count and not pa.types.is_uint64(array.type):
                keeps_type = compact and pa.types.is_signed_integer(array.type)
                return (array if keeps_type else array.cast(pa.int64())).to_numpy()
            if pa.types.is_duration(array.type):
                return durations_of(array)
            if compact and pa.types.is_float32(array.type):
                return array.to_numpy(zero_copy_only=False)
            return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if isinstance(request.form, DateForm) and holds_dates(array.type, request.form.order):
            return seconds_of(array)
        if pa.types.is_floating(array.type):
            # NaN is missing, as in a column of numbers, and not a level "nan".
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        return array.cast(pa.string()).fill_null("")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        what = f"column '{request.name}' has values of type {array.type}, which cannot be read as text"
        raise BncliError(what, where=batch.path, hint=f"leave it out with --ignore '{request.name}'") from error


def _is_real(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_duration(kind))


def _csv_lines(data: pa.RecordBatch, rows: Sequence[int]) -> list[bytes]:
    columns: list[list[str]] = []
    for array in data.take(rows).columns if rows else ():
        try:
            # Python objects are avoided: their times have no nanoseconds, and their dates end with the year 9999.
            columns.append(array.cast(pa.string()).fill_null("").to_pylist())
        # lists, or bytes that are not text: formatted as Arrow prints them
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            columns.append([array.slice(i, 1).to_string(skip_new_lines=True)[1:-1] for i in range(len(array))])
    lines = []
    for fields in zip(*columns, strict=True):
        quoted = ['"' + f.replace('"', '""') + '"' if any(c in f for c in ',"\r\n') else f for f in fields]
        lines.append(",".join(quoted).encode())
    return lines


def type_word(kind: pa.DataType) -> str | None:
    """Return how values of an Arrow type are read, or None for the null type.

    The result is "numbers", "text", "ymd" for dates, or "time" for times of the day.
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return None
    if pa.types.is_integer(kind) or _is_real(kind):
        return "numbers"
    return order_of(kind) if is_temporal(kind) else "text"
