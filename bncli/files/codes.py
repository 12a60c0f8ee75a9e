"""The `.codes` file: rows already cut into codes, which every learning command takes as its table.

It is an ordinary Arrow IPC file, not compressed: a column an attribute, then the class, then (if rows have them) the
weights; codes are uint8, or uint16 where they are many, weights float64, none of them null. What the codes mean
stands in the schema's metadata (`codes_heading`). A record batch is a row block (`block_bounds`), so that a mapped file
is learnt from where it lies, and processes share it.

The last batch has no rows. Its own metadata hold what is known only after the rows: how many rows have each code, by
which damage is told, a checksum of the weights, and the sample of rows as they were read that the choice of a
penalty learns cuts anew on, with a checksum of its own (which the first files lack).
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
import pyarrow as pa

from bncli.engine.data.columns import CategoricalColumn, CodedColumn, Columns, Origin
from bncli.engine.data.parts import Parts
from bncli.engine.kernels.arrays import Array, Codes
from bncli.errors import BncliError
from bncli.files.atomic import atomic_writer
from bncli.files.codes_heading import KEY, MARK, PROOF, Heading, read_heading
from bncli.files.places import cannot_read
from bncli.files.reading.ipc_sizes import check_sizes
from bncli.files.samples import dump_sample, read_sample

_MAGIC = b"ARROW1\0\0"
_COUNTS, _WEIGHTS, _SAMPLE, _CHECKSUM = b"bncli.counts", b"bncli.weights", b"bncli.sample", b"bncli.sample.crc32"
_LONGEST_HEADING = 1 << 28
LARGE_FILE = 1 << 28
"""Bytes of a file from which on pages are let go."""


@dataclass(frozen=True)
class CodedRows:
    """Consecutive rows: codes (n,) an attribute, labels (n,), weights (n,) or None."""

    codes: Sequence[Codes]
    labels: Codes
    weights: Array | None = None


@dataclass(frozen=True)
class Sample:
    """Rows as they were read, drawn by a seed; None: all rows, in their order."""

    rows: Columns
    seed: int | None


def write_codes(path: str, heading: Heading, blocks: Iterable[CodedRows], sample: Sample | None = None) -> None:
    """Writes the file, whole or not at all; the blocks hold the rows of `heading`, in order, as `block_bounds` says."""
    schema = _schema(heading)
    tally = _Tally([n for _, _, n in heading.columns])
    options = pa.ipc.IpcWriteOptions(compression=None)
    with atomic_writer(path) as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for block in blocks:
            arrays = [np.ascontiguousarray(codes) for codes in (*block.codes, block.labels)]
            arrays += [] if block.weights is None else [block.weights]
            columns = [
                pa.array(a.astype(f.type.to_pandas_dtype(), copy=False)) for a, f in zip(arrays, schema, strict=True)
            ]
            tally.add(arrays)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        writer.write_batch(empty, custom_metadata=tally.metadata() | _sample_metadata(sample))


def _schema(heading: Heading) -> pa.Schema:
    fields = [pa.field(name, getattr(pa, kind)(), nullable=False) for name, kind, _ in heading.columns]
    text = heading.dump()
    return pa.schema(fields, {KEY: text, PROOF: _proof(text)})


def _proof(text: bytes) -> bytes:
    """By which damage of the heading is seen."""
    return str(zlib.crc32(text)).encode()


def _sample_metadata(sample: Sample | None) -> dict[bytes, bytes]:
    if sample is None:
        return {}
    dumped = dump_sample(sample.rows, sample.seed)
    return {_SAMPLE: dumped, _CHECKSUM: str(zlib.crc32(dumped)).encode()}


@dataclass
class _Tally:
    """How many rows have each code of each column (0: of weights, whose checksum is kept)."""

    sizes: list[int]
    counts: list[Array] = field(default_factory=list)
    checksum: int = 0

    def __post_init__(self) -> None:
        self.counts = [np.zeros(n) for n in self.sizes if n]

    def add(self, arrays: Sequence[Codes | Array]) -> None:
        for i, (codes, n) in enumerate(zip(arrays, self.sizes, strict=True)):
            if n:
                self.counts[i] += Parts.of(cast(Codes, codes)).count(n)
            else:
                self.checksum = zlib.crc32(np.ascontiguousarray(codes).data, self.checksum)

    def metadata(self) -> dict[bytes, bytes]:
        counts = [counts.astype(np.int64).tolist() for counts in self.counts]
        return {_COUNTS: json.dumps(counts).encode(), _WEIGHTS: str(self.checksum).encode()}


def is_codes(path: str) -> bool:
    """Whether a regular file is one of codes, by its first bytes; it may still turn out to be damaged."""
    try:
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return MARK in _first_message(file)
    except OSError:
        return False


def _first_message(file: BinaryIO) -> bytes:
    head = file.read(16)
    if len(head) < 16 or not head.startswith(_MAGIC):
        return b""
    length = struct.unpack("<i", head[12:])[0]
    return file.read(length) if 0 < length < _LONGEST_HEADING else b""


@dataclass(frozen=True)
class CodesFile:
    """An open file: its heading, its rows mapped, and the rows that have each code, by column in the file's order.

    `let_go` of pages that were read; None for a file that is not large.
    """

    path: str
    heading: Heading
    batches: tuple[pa.RecordBatch, ...]
    counts: tuple[tuple[int, ...], ...]
    tail: dict[bytes, bytes]
    let_go: Callable[[], None] | None = None

    def columns(self) -> Columns:
        """The rows as the engine takes them, views on the mapped file; BncliError where codes are damaged."""
        heading = self.heading
        columns = [tuple(b.column(i).to_numpy() for b in self.batches) for i in range(len(heading.columns))]
        parts = [Parts(column, self.let_go) for column in columns]
        with _faults(self.path):
            self._prove(parts)
        if self.let_go is not None:
            self.let_go()
        attributes = {a.name: CodedColumn(codes, a) for a, codes in zip(heading.cuts.attributes, parts, strict=False)}
        n = len(heading.cuts.attributes)
        label = CategoricalColumn(cast(Any, parts[n].whole()), heading.labels)
        weights = None if heading.weights is None else cast(Array, parts[n + 1].whole())
        name = heading.cuts.class_name
        return Columns(heading.rows, attributes, name, label, weights, self._origin(label, weights))

    def _prove(self, parts: Sequence[Parts]) -> None:
        for (name, _, n), column, counts in zip(self.heading.columns, parts, (*self.counts, ()), strict=False):
            if n and column.count(n).tolist() != list(counts):
                _damaged(self.path, f"the codes of column '{name}' are not those that were written")
            if not n:
                checksum = 0
                for part in column.parts:
                    checksum = zlib.crc32(np.ascontiguousarray(part).data, checksum)
                weights = column.whole()
                if str(checksum).encode() != self.tail.get(_WEIGHTS) or not (weights > 0).all():
                    _damaged(self.path, f"the weights '{name}' are not those that were written")

    def _origin(self, label: CategoricalColumn, weights: Array | None) -> Origin:
        tokens, written = self.heading.missing_tokens, self.tail.get(_SAMPLE)
        plain = Origin(tokens, file=True, sampled_rows=self.heading.cuts.sampled_rows)
        checksum = self.tail.get(_CHECKSUM)
        if checksum is not None and checksum != str(zlib.crc32(written or b"")).encode():
            _damaged(self.path, "the sample of rows is not the one that was written")
        if written is None:
            return plain
        with _faults(self.path):
            rows, seed = read_sample(written, self.heading)
        return replace(plain, sample=rows, seed=seed)


def read_codes(path: str) -> CodesFile:
    """Opens and maps a file; BncliError in one line for what is of another version, cut short or damaged."""
    with _faults(path):
        with open(path, "rb") as file:
            heading = _heading(file, path)
            file.seek(0)
            check_sizes(file, "file", path, None)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        reader = pa.ipc.open_file(pa.py_buffer(mapped))
        if not reader.schema.equals(_schema(heading)):
            _damaged(path, "its columns are not those of its heading")
        *batches, last = [reader.get_batch_with_custom_metadata(i) for i in range(reader.num_record_batches)]
        tail = {} if last.custom_metadata is None else dict(last.custom_metadata)
        found = tuple(one.batch for one in batches)
        _check_batches(path, heading, found, last.batch.num_rows)
        return CodesFile(path, heading, found, _counts(path, tail, heading), tail, _letting_go(mapped))


def _letting_go(mapped: mmap.mmap) -> Callable[[], None] | None:
    dont_need = getattr(mmap, "MADV_DONTNEED", None)  # Windows has none
    return None if dont_need is None or len(mapped) < LARGE_FILE else partial(mapped.madvise, dont_need)


def _heading(file: BinaryIO, path: str) -> Heading:
    schema = pa.ipc.read_schema(pa.py_buffer(_message(file, path)))
    told = schema.metadata or {}
    text = told.get(KEY, b"")
    if told.get(PROOF, _proof(text)) != _proof(text):
        _damaged(path, "its heading is not what was written")
    return read_heading(text, path)


def _message(file: BinaryIO, path: str) -> bytes:
    """The schema's message, with the marker and the length before it."""
    body = _first_message(file)
    if not body:
        _damaged(path, "it ends within its heading")
    return b"\xff\xff\xff\xff" + struct.pack("<i", len(body)) + body


def _check_batches(path: str, heading: Heading, batches: Sequence[pa.RecordBatch], left_over: int) -> None:
    for batch in batches:
        batch.validate()
        if any(column.null_count for column in batch.columns):
            _damaged(path, "it has null values")
    if left_over or sum(batch.num_rows for batch in batches) != heading.rows:
        _damaged(path, f"it has not the {heading.rows:,} rows of its heading")


def _counts(path: str, tail: dict[bytes, bytes], heading: Heading) -> tuple[tuple[int, ...], ...]:
    counts = json.loads(tail.get(_COUNTS, b"null"))
    sizes = [n for _, _, n in heading.columns if n]
    if not isinstance(counts, list) or [len(c) if isinstance(c, list) else -1 for c in counts] != sizes:
        _damaged(path, "the counts of its codes are missing")
    return tuple(tuple(column) for column in counts)


def _damaged(path: str, what: str) -> NoReturn:
    raise BncliError(f"the codes are damaged or cut off: {what}", where=path, hint="encode the table again")


@contextmanager
def _faults(path: str) -> Iterator[None]:
    """Whatever Arrow, or the metadata, may say about a file that is damaged."""
    try:
        yield
    except OSError as error:
        if isinstance(error, pa.ArrowException) or error.errno is None:
            _damaged(path, str(error).splitlines()[0])
        raise cannot_read(path, error, is_data=True) from error
    except (pa.ArrowException, ValueError, TypeError, KeyError, IndexError, struct.error) as error:
        _damaged(path, str(error).splitlines()[0] if str(error) else type(error).__name__)
