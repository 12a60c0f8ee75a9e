"""Parquet and Arrow files: record batches in place of blocks of text.

Integers, floats and decimals are numbers, NaN among them missing, and durations are seconds; dates and times are read
without a way over text where they are asked for as such (see `dates`); everything else that has a text (strings,
booleans) is text, a null being the empty text. An infinite number makes its row malformed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.forms import DateForm, NumberForm
from bncli.errors import BncliError
from bncli.files.reading.dates import durations_of, holds_dates, is_temporal, order_of, seconds_of, text_of
from bncli.files.reading.row_blocks import BadRow, Kind, RowBlock, Values, Want, is_text, select
from bncli.files.reading.source import Tokens
from bncli.files.reading.values import find_faults, resolve

ROWS_PER_BATCH = 1 << 16
_MAGIC = {"parquet": b"PAR1", "file": b"ARROW1", "feather v1": b"FEA1"}


@dataclass(frozen=True)
class Batch:
    """Some rows of a columnar file; `row` is the number of the first one, from 1."""

    path: str
    data: pa.RecordBatch
    row: int


def recognise(first: bytes) -> str | None:
    """The columnar format that begins with these bytes: parquet, file or stream (of Arrow IPC), feather v1."""
    for name, magic in _MAGIC.items():
        if first.startswith(magic):
            return name
    # A stream has no magic word: its first message begins with the continuation marker.
    return "stream" if first.startswith(b"\xff\xff\xff\xff") else None


class ColumnarFile:
    """An opened Parquet or Arrow file; `file` can be seeked."""

    def __init__(self, file: BinaryIO, kind: str, path: str) -> None:
        self.path = path
        self._kind = kind
        self._reader = self._guarded(lambda: _open(file, kind, path))
        self._schema: pa.Schema = self._reader.schema_arrow if kind == "parquet" else self._reader.schema

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._schema.names)

    def want(self, name: str) -> Want:
        """How the column's values are best asked for."""
        kind = self._schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_integer(kind):
            return Want(name, Kind.INTEGER)
        if is_temporal(kind):
            return Want(name, Kind.TEXT, strict=True, form=DateForm(name, "days", order_of(kind)))
        return Want(name, Kind.NUMBER if _is_real(kind) else Kind.TEXT)

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """The rows in order, with at least the named columns."""
        row = 1
        batches = self._guarded(lambda: self._all(names))
        while (data := self._guarded(lambda: next(batches, None))) is not None:
            for start in range(0, data.num_rows, ROWS_PER_BATCH):
                rows = data.slice(start, ROWS_PER_BATCH)
                yield Batch(self.path, rows, row)
                row += rows.num_rows

    def _all(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self._kind == "parquet":
            return iter(self._reader.iter_batches(ROWS_PER_BATCH, columns=list(names), use_threads=False))
        if self._kind == "file":
            return (self._reader.get_batch(i) for i in range(self._reader.num_record_batches))
        return iter(self._reader)

    def _guarded(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (pa.ArrowException, OSError) as error:
            # Arrow's messages go on with C++ places, and some are empty.
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise BncliError(f"the file is damaged or cut off ({reason})", where=self.path) from error


def _open(file: BinaryIO, kind: str, path: str) -> Any:
    if kind == "feather v1":
        raise BncliError("Feather version 1 is not supported", where=path, hint="write the file again as Arrow IPC")
    if kind == "parquet":
        from pyarrow import parquet

        return parquet.ParquetFile(file)
    return pa.ipc.open_file(file) if kind == "file" else pa.ipc.open_stream(file)


def parse_batch(batch: Batch, wants: Sequence[Want], tokens: Tokens) -> RowBlock:
    """The wanted columns of a batch's rows."""
    found = [_values(batch, want) for want in wants]
    resolved = [resolve(want, values, tokens) for want, values in zip(wants, found, strict=True)]
    wrongs = [_also_infinite(values, wrong) for values, wrong in resolved]
    faults = find_faults(wants, found, wrongs)
    keep = np.ones(batch.data.num_rows, np.bool_)
    keep[list(faults)] = False
    rows = np.arange(batch.row, batch.row + len(keep))[keep]
    values = tuple(select(values, keep) if faults else values for values, _ in resolved)
    bad = (BadRow(what, batch.path, batch.row + r, _as_line(batch.data, wants, r), "row") for r, what in faults.items())
    return RowBlock(len(rows), values, tuple(bad), lambda row: f"{batch.path} row {rows[row]}")


def _also_infinite(values: Values, wrong: Any) -> Any:
    if is_text(values) or values.dtype.kind != "f":
        return wrong
    infinite = np.isinf(values)
    if not infinite.any():
        return wrong
    return infinite if wrong is None else wrong | infinite


def _values(batch: Batch, want: Want) -> Values:
    array = batch.data.column(batch.data.schema.get_field_index(want.name))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        as_numbers = want.kind is not Kind.TEXT or isinstance(want.form, NumberForm)
        if as_numbers and (pa.types.is_integer(array.type) or _is_real(array.type)):
            return _numbers(array)
        if isinstance(want.form, DateForm) and holds_dates(array.type, want.form.order):
            return seconds_of(array)
        if pa.types.is_floating(array.type):
            # NaN is missing, as in a column of numbers, and not the level "nan".
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        return array.cast(pa.string()).fill_null("")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        what = f"column '{want.name}' holds {array.type} values, which have no text"
        raise BncliError(what, where=batch.path, hint=f"--ignore '{want.name}'") from error


def _is_real(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_duration(kind))


def _numbers(array: pa.Array) -> Values:
    # Integers stay exact beyond 2^53; with nulls only a float has a value for missing, and uint64 may not fit int64.
    if pa.types.is_integer(array.type) and not array.null_count and not pa.types.is_uint64(array.type):
        return array.cast(pa.int64()).to_numpy()
    if pa.types.is_duration(array.type):
        return durations_of(array)
    return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _as_line(data: pa.RecordBatch, wants: Sequence[Want], row: int) -> bytes:
    """The wanted columns of a row, in the file's order; others may hold what has no text."""
    wanted = {want.name for want in wants}
    columns = zip(data.schema.names, data.columns, strict=True)
    values = [text_of(column[row]) for name, column in columns if name in wanted]
    quoted = ['"' + v.replace('"', '""') + '"' if any(c in v for c in ',"\r\n') else v for v in values]
    return ",".join(quoted).encode()
