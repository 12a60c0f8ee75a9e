"""The `.codes` file: rows already cut into codes, which every learning command takes as its table.

It is an ordinary Arrow IPC file, not compressed: a column an attribute, then the class, then (if rows have them) the
weights; codes are uint8, or uint16 where they are many, weights float64, none of them null. What the codes mean
stands in the schema's metadata (`codes_heading`). A record batch is a row block (`block_bounds`), so that a mapped file
is learnt from where it lies, and processes share it.

The last batch has no rows. Its own metadata hold what is known only after the rows: how many rows have each code, by
which damage is told, a checksum of the weights, and the sample of rows as they were read that the choice of a
penalty learns cuts anew on, with a checksum of its own (which the first files lack).

What a `.codes` file says of its rows before the first of them: as JSON under one key of the Arrow schema.

    {"format": "bncli-codes", "version": 1, "rows": 1000, "cuts": {the content of a cuts file}, "labels": ["no",
    "yes"],
     "missing": ["age"], "missing_tokens": null, "weights": null, "sampled_rows": null,
     "sources": {"files": 2, "bytes": 51200, "sha256": "..."}}

`missing` names the attributes with missing values, whose code is the number of values; `weights` is the column of row
weights; `sampled_rows` says of how many rows the cuts were learnt, null: of all.

What the messages of Arrow IPC claim to hold, compared with the file's length before Arrow sets memory aside for it.

A message is a flatbuffer of metadata and a body. Arrow checks its form, but takes three kinds of number on trust: the
metadata's length (of a stream), the rows of a column that needs no bytes, and the length of a compressed buffer once
decompressed, which stands in the buffer's first eight bytes. Source: the Arrow columnar format 1.5, Message.fbs and
File.fbs; RFC 8878 (zstd), the LZ4 block format.

Rows as they were read, inside a `.codes` file: a compressed Arrow stream of numbers, and of names with their levels.

The columns are those of the codes, and a date's parts are numbers as they are there. The seed by which the rows were
drawn stands in the metadata, empty where they are all rows of the table.
"""

from __future__ import annotations

import hashlib
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

from bncli.engine.data.columns import (
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Column,
    Columns,
    NumericColumn,
    Origin,
)
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Attribute, Cuts, NumericAttribute
from bncli.engine.kernels.arrays import Array, Codes
from bncli.errors import BncliError
from bncli.files.artifacts.cuts import cuts_json, cuts_of_document
from bncli.files.atomic import atomic_writer
from bncli.files.documents import Node, parse_json
from bncli.files.paths import cannot_read

VERSION = 1
KEY = b"bncli"
PROOF = b"bncli.crc32"
"""The key of the CRC-32 of the heading."""
MARK = b'"format": "bncli-codes"'
"""Stands in every heading: by it a file is told from other Arrow files."""
_EDGE = 1 << 20


@dataclass(frozen=True)
class Fingerprint:
    """What was read: the number of files, their bytes together, and a digest of sizes, first and last megabytes."""

    files: int
    n_bytes: int
    sha256: str

    @staticmethod
    def of(paths: Sequence[str]) -> Fingerprint:
        """Of regular files, in this order; names and times play no part. OSError where one cannot be read."""
        digest, total = hashlib.sha256(), 0
        for path in paths:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                digest.update(f"{size}\n".encode() + file.read(_EDGE))
                file.seek(max(size - _EDGE, 0))
                digest.update(file.read(_EDGE))
            total += size
        return Fingerprint(len(paths), total, digest.hexdigest())


@dataclass(frozen=True)
class CodesHeader:
    """What is known of coded rows; attributes of `cuts` have no frequencies."""

    cuts: Cuts
    labels: tuple[str, ...]
    rows: int
    missing: tuple[str, ...] = ()
    missing_tokens: tuple[str, ...] | None = None
    weights: str | None = None
    sources: Fingerprint | None = None

    @property
    def columns(self) -> list[tuple[str, str, int]]:
        """Name, Arrow type and number of codes of every column, in the file's order; of weights 0."""
        coded = [(a.name, a.n_values + (a.name in self.missing)) for a in self.cuts.attributes]
        coded.append((self.cuts.class_name, len(self.labels)))
        found = [(name, code_dtype(n).name, n) for name, n in coded]
        return found if self.weights is None else [*found, (self.weights, "float64", 0)]

    def dump(self) -> bytes:
        """Return the text that `read_heading` reads."""
        sources = self.sources
        content: dict[str, Any] = {
            "format": "bncli-codes",
            "version": VERSION,
            "rows": self.rows,
            "cuts": cuts_json(replace(self.cuts, sampled_rows=None)),
            "labels": list(self.labels),
            "missing": list(self.missing),
            "missing_tokens": None if self.missing_tokens is None else list(self.missing_tokens),
            "weights": self.weights,
            "sampled_rows": self.cuts.sampled_rows,
            "sources": None
            if sources is None
            else {"files": sources.files, "bytes": sources.n_bytes, "sha256": sources.sha256},
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()


_ABOUT_ROWS = ("labels", "missing", "missing_tokens", "weights", "sampled_rows", "sources")
_FIELDS = ("format", "version", "rows", "cuts", *_ABOUT_ROWS)
_EXPANSION = {0: 255, 1: 1 << 15}
"""By codec, the most bytes that one can stand for: LZ4; zstd, whose blocks of 128 KB take at least four."""
_ROWS_PER_BYTE = 8 << 15
"""No column with values of its own has more: one bit a value, compressed by zstd."""
_DICTIONARY, _BATCH = 2, 3
_BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])
_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])


@dataclass(frozen=True)
class _Message:
    """Its flatbuffer, and where in the file its body begins and ends."""

    table: _Table
    begin: int
    end: int


class _ClaimError(Exception):
    pass


class _Table:
    """A table of a flatbuffer, its fields by their numbers; struct.error where it points out of its bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - self._read("<i", at)

    @staticmethod
    def root(data: bytes) -> _Table:
        return _Table(data, struct.unpack_from("<I", data)[0])

    def number(self, i: int, form: str) -> int:
        """Return 0 where it is absent."""
        at = self._place(i)
        return self._read(form, at) if at else 0

    def table(self, i: int) -> _Table | None:
        at = self._place(i)
        return _Table(self._data, at + self._read("<I", at)) if at else None

    def structs(self, i: int, form: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return a vector of structs, empty where it is absent."""
        at = self._place(i)
        if not at:
            return np.empty(0, form)
        at += self._read("<I", at)
        return np.frombuffer(self._data, form, self._read("<I", at), at + 4)

    def _place(self, i: int) -> int:
        if 4 + 2 * i >= self._read("<H", self._fields):
            return 0
        offset = self._read("<H", self._fields + 4 + 2 * i)
        return self._at + offset if offset else 0

    def _read(self, form: str, at: int) -> int:
        if at < 0:  # which would count from the end
            raise struct.error
        return int(struct.unpack_from(form, self._data, at)[0])


_SEED = b"seed"
_SAMPLES_WEIGHTS = "weights"
_MAGIC = b"ARROW1\0\0"
_COUNTS, _CODES_WEIGHTS, _SAMPLE, _CHECKSUM = b"bncli.counts", b"bncli.weights", b"bncli.sample", b"bncli.sample.crc32"
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


@dataclass
class _CodeCounts:
    """How many rows have each code of each column (0: of weights, whose checksum is kept)."""

    sizes: list[int]
    counts: list[Array] = field(default_factory=list)
    checksum: int = 0

    def __post_init__(self) -> None:
        self.counts = [np.zeros(n) for n in self.sizes if n]

    def add(self, arrays: Sequence[Codes | Array]) -> None:
        for i, (codes, n) in enumerate(zip(arrays, self.sizes, strict=True)):
            if n:
                self.counts[i] += ChunkedColumn.of(cast(Codes, codes)).count(n)
            else:
                self.checksum = zlib.crc32(np.ascontiguousarray(codes).data, self.checksum)

    def metadata(self) -> dict[bytes, bytes]:
        counts = [counts.astype(np.int64).tolist() for counts in self.counts]
        return {_COUNTS: json.dumps(counts).encode(), _CODES_WEIGHTS: str(self.checksum).encode()}


@dataclass(frozen=True)
class CodesFile:
    """An open file: its heading, its rows mapped, and the rows that have each code, by column in the file's order.

    `let_go` of pages that were read; None for a file that is not large.
    """

    path: str
    heading: CodesHeader
    batches: tuple[pa.RecordBatch, ...]
    counts: tuple[tuple[int, ...], ...]
    tail: dict[bytes, bytes]
    let_go: Callable[[], None] | None = None

    def columns(self) -> Columns:
        """Return the rows as the engine takes them, views on the mapped file; BncliError where codes are damaged."""
        heading = self.heading
        columns = [tuple(b.column(i).to_numpy() for b in self.batches) for i in range(len(heading.columns))]
        parts = [ChunkedColumn(column, self.let_go) for column in columns]
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

    def _prove(self, parts: Sequence[ChunkedColumn]) -> None:
        for (name, _, n), column, counts in zip(self.heading.columns, parts, (*self.counts, ()), strict=False):
            if n and column.count(n).tolist() != list(counts):
                _damaged(self.path, f"the codes of column '{name}' are not those that were written")
            if not n:
                checksum = 0
                for part in column.parts:
                    checksum = zlib.crc32(np.ascontiguousarray(part).data, checksum)
                weights = column.whole()
                if str(checksum).encode() != self.tail.get(_CODES_WEIGHTS) or not (weights > 0).all():
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


def write_codes(path: str, heading: CodesHeader, blocks: Iterable[CodedRows], sample: Sample | None = None) -> None:
    """Write the file, whole or not at all; the blocks hold the rows of `heading`, in order, as `block_bounds` says."""
    schema = _schema(heading)
    tally = _CodeCounts([n for _, _, n in heading.columns])
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


def _schema(heading: CodesHeader) -> pa.Schema:
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


def read_codes(path: str) -> CodesFile:
    """Open and maps a file; BncliError in one line for what is of another version, cut short or damaged."""
    with _faults(path):
        with open(path, "rb") as file:
            # The schema's message, with the marker and the length before it.
            body = _first_message(file)
            if not body:
                _damaged(path, "it ends within its heading")
            schema = pa.ipc.read_schema(pa.py_buffer(b"\xff\xff\xff\xff" + struct.pack("<i", len(body)) + body))
            told = schema.metadata or {}
            text = told.get(KEY, b"")
            if told.get(PROOF, _proof(text)) != _proof(text):
                _damaged(path, "its heading is not what was written")
            heading = read_heading(text, path)
            file.seek(0)
            check_sizes(file, "file", path, None)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        reader = pa.ipc.open_file(pa.py_buffer(mapped))
        if not reader.schema.equals(_schema(heading)):
            _damaged(path, "its columns are not those of its heading")
        *batches, last = [reader.get_batch_with_custom_metadata(i) for i in range(reader.num_record_batches)]
        tail = {} if last.custom_metadata is None else dict(last.custom_metadata)
        found = tuple(one.batch for one in batches)
        for batch in found:
            batch.validate()
            if any(column.null_count for column in batch.columns):
                _damaged(path, "it has null values")
        if last.batch.num_rows or sum(batch.num_rows for batch in found) != heading.rows:
            _damaged(path, f"it has not the {heading.rows:,} rows of its heading")
        return CodesFile(path, heading, found, _counts(path, tail, heading), tail, _letting_go(mapped))


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


def _damaged(path: str, what: str) -> NoReturn:
    raise BncliError(f"the codes are damaged or cut off: {what}", where=path, hint="encode the table again")


def _first_message(file: BinaryIO) -> bytes:
    head = file.read(16)
    if len(head) < 16 or not head.startswith(_MAGIC):
        return b""
    length = struct.unpack("<i", head[12:])[0]
    return file.read(length) if 0 < length < _LONGEST_HEADING else b""


def _counts(path: str, tail: dict[bytes, bytes], heading: CodesHeader) -> tuple[tuple[int, ...], ...]:
    counts = json.loads(tail.get(_COUNTS, b"null"))
    sizes = [n for _, _, n in heading.columns if n]
    if not isinstance(counts, list) or [len(c) if isinstance(c, list) else -1 for c in counts] != sizes:
        _damaged(path, "the counts of its codes are missing")
    return tuple(tuple(column) for column in counts)


def _letting_go(mapped: mmap.mmap) -> Callable[[], None] | None:
    dont_need = getattr(mmap, "MADV_DONTNEED", None)  # Windows has none
    return None if dont_need is None or len(mapped) < LARGE_FILE else partial(mapped.madvise, dont_need)


def read_heading(text: bytes, path: str) -> CodesHeader:
    """Return the heading, checked; BncliError for a newer version or what is not well made."""
    document = parse_json(text, f"{path}, heading")
    document.check_format("codes", VERSION)
    fields = document.fields(_FIELDS)
    cuts = cuts_of_document(fields["cuts"])
    labels = fields["labels"].texts()
    if len(labels) < 2:
        fields["labels"].fail("a class has two labels or more")
    missing = fields["missing"].texts()
    for name in missing:
        if name not in {attribute.name for attribute in cuts.attributes}:
            fields["missing"].fail(f"there is no attribute '{name}'")
    weights = None if fields["weights"].value is None else fields["weights"].text()
    if weights is not None and weights in {cuts.class_name, *(attribute.name for attribute in cuts.attributes)}:
        fields["weights"].fail(f"the name '{weights}' is given twice")
    tokens = None if fields["missing_tokens"].value is None else fields["missing_tokens"].texts()
    sampled = None if fields["sampled_rows"].value is None else fields["sampled_rows"].integer(1)
    rows = fields["rows"].integer(1)
    cuts = replace(cuts, sampled_rows=sampled)
    return CodesHeader(cuts, labels, rows, missing, tokens, weights, _read_sources(fields["sources"]))


def _read_sources(node: Node) -> Fingerprint | None:
    if node.value is None:
        return None
    fields = node.fields(("files", "bytes", "sha256"))
    return Fingerprint(fields["files"].integer(1), fields["bytes"].integer(0), fields["sha256"].text())


def check_sizes(file: BinaryIO, kind: str, path: str, memory: int | None) -> None:
    """Raise BncliError if a message claims more than the file, or the free memory (bytes, None: unknown), can hold."""
    size = file.seek(0, os.SEEK_END)
    try:
        messages = _of_stream(file, size) if kind == "stream" else _of_file(file, size)
        for message in messages:
            _check(file, message, size, memory)
    except (struct.error, ValueError) as error:
        raise BncliError("the file is damaged or cut off (invalid metadata)", where=path) from error
    except _ClaimError as error:
        raise BncliError(f"the file is damaged or cut off ({error})", where=path) from error
    finally:
        file.seek(0)


def _of_stream(file: BinaryIO, size: int) -> Iterator[_Message]:
    at = 0
    while (message := _message_at(file, at, size)) is not None:
        yield message
        at = message.end


def _message_at(file: BinaryIO, at: int, size: int) -> _Message | None:
    """Return None at the end of a stream."""
    if not 0 <= at <= size:
        raise _ClaimError(f"a message at byte {at} of a file of {size}")
    file.seek(at)
    prefix = file.read(8)
    if len(prefix) < 8:  # a stream may end without the mark of its end
        return None
    mark, length = struct.unpack("<Ii", prefix)
    # Before Arrow 0.15 the length stood by itself.
    begin, length = (at + 8, length) if mark == 0xFFFFFFFF else (at + 4, mark)
    if length == 0:
        return None
    if not 0 < length <= size - begin:
        raise _ClaimError(f"{length} bytes of metadata where {size - begin} are left")
    file.seek(begin)
    table = _Table.root(file.read(length))
    begin, body = begin + length, table.number(3, "<q")
    if not 0 <= body <= size - begin:
        raise _ClaimError(f"a message of {body} bytes where {size - begin} are left")
    return _Message(table, begin, begin + body)


def _of_file(file: BinaryIO, size: int) -> Iterator[_Message]:
    """Yield the messages that the footer names; it ends with its length and the magic word."""
    file.seek(max(0, size - 10))
    (length,) = struct.unpack("<i6x", file.read(10))
    if not 0 < length <= size - 10:
        raise _ClaimError(f"a footer of {length} bytes in a file of {size}")
    file.seek(size - 10 - length)
    footer = _Table.root(file.read(length))
    for blocks in (footer.structs(2, _BLOCK), footer.structs(3, _BLOCK)):
        for block in blocks:
            message = _message_at(file, int(block["offset"]), size)
            if message is not None:
                yield message


def _check(file: BinaryIO, message: _Message, size: int, memory: int | None) -> None:
    header = message.table.number(1, "<B")
    if header not in (_DICTIONARY, _BATCH):
        return
    batch = message.table.table(2)
    if batch is not None and header == _DICTIONARY:
        batch = batch.table(1)
    if batch is None:
        return
    rows = batch.number(0, "<q")
    if not 0 <= rows <= size * _ROWS_PER_BYTE:
        raise _ClaimError(f"{rows} rows in {size} bytes")
    compression = batch.table(3)
    if compression is not None:
        n_bytes = sum(_decompressed_sizes(file, message, batch, _EXPANSION.get(compression.number(0, "<b"), 0)))
        if memory is not None and n_bytes > memory:
            raise _ClaimError(f"a batch of {n_bytes} bytes, where {memory} are free")


def _decompressed_sizes(file: BinaryIO, message: _Message, batch: _Table, expansion: int) -> Iterator[int]:
    for offset, length in batch.structs(2, _BUFFER).tolist():
        if not length:
            continue
        if not (offset >= 0 and 8 <= length <= message.end - message.begin - offset):
            raise _ClaimError(f"a buffer of {length} bytes at {offset} of {message.end - message.begin}")
        file.seek(message.begin + offset)
        (claim,) = struct.unpack("<q", file.read(8))
        # -1: this one was not worth compressing.
        if not -1 <= claim <= length * expansion:
            raise _ClaimError(f"{claim} bytes out of {length} compressed ones")
        yield max(claim, length)


def dump_sample(rows: Columns, seed: int | None) -> bytes:
    """Return what `read_sample` reads."""
    assert rows.label is not None
    columns = [_array(column) for column in (*rows.as_read.values(), rows.label)]
    columns += [] if rows.weights is None else [pa.array(rows.weights)]
    # numbered, for the weights may be called like a column
    schema = pa.schema(
        [(str(i), c.type) for i, c in enumerate(columns)], {_SEED: b"" if seed is None else b"%d" % seed}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return bytes(sink.getvalue())


def _array(column: Column) -> pa.Array:
    if isinstance(column, NumericColumn):
        return pa.array(column.values)
    codes = column.codes.astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(column.levels, pa.string()))


def read_sample(data: bytes, heading: CodesHeader) -> tuple[Columns, int | None]:
    """Return the rows, and the seed; ValueError or Arrow's own errors for what is not well made."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        batch = next(iter(reader), None)
    if batch is None:
        raise ValueError("the sample is empty")
    batch.validate(full=True)
    attributes, metadata = heading.cuts.attributes, reader.schema.metadata or {}
    if batch.num_columns != len(attributes) + 1 + (heading.weights is not None):
        raise ValueError("the sample has not the columns of the codes")
    read = {a.name: _column(column, a) for a, column in zip(attributes, batch.columns, strict=False)}
    label = _column(batch.column(len(attributes)), None)
    if not isinstance(label, CategoricalColumn) or label.levels != heading.labels or (label.codes < 0).any():
        raise ValueError("the sample has not the labels of the codes")
    weights = None if heading.weights is None else batch.column(batch.num_columns - 1).to_numpy()
    seed = metadata.get(_SEED, b"")
    if not seed and batch.num_rows != heading.rows:
        raise ValueError("the sample has not all rows")
    name = heading.cuts.class_name
    return Columns(batch.num_rows, read, name, label, weights), int(seed) if seed else None


def _column(array: pa.Array, attribute: Attribute | None) -> Column:
    """Return the column of an attribute; None: the class."""
    if isinstance(attribute, NumericAttribute):
        if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)) or array.null_count:
            raise ValueError(f"the sample's column '{attribute.name}' holds no numbers")
        return NumericColumn(array.to_numpy(zero_copy_only=False), attribute.form)
    if not isinstance(array, pa.DictionaryArray):
        raise ValueError("a column of names in the sample has no levels")
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return CategoricalColumn(codes, tuple(array.dictionary.to_pylist()))


def is_codes(path: str) -> bool:
    """Return whether a regular file is one of codes, by its first bytes; it may still turn out to be damaged."""
    try:
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return MARK in _first_message(file)
    except OSError:
        return False
