"""The `.codes` file: discretized rows, which every learning command accepts in place of a table.

It is an ordinary, uncompressed Arrow IPC file with one column per attribute, then the class, then the row weights if
there are any. Codes have the narrowest unsigned type that holds them, usually uint8. Weights are float64, and nothing
is null. Each record batch with rows is a row block (`block_bounds`), so learning works on the memory-mapped file, which
several processes can share.

The header is JSON under one key of the Arrow schema's metadata, and defines the meaning of the codes:

    {"format": "bncli-codes", "version": 1, "rows": 1000, "cuts": {the content of a cuts file},
     "labels": ["no", "yes"], "missing": ["age"], "missing_tokens": null, "weights": null, "sampled_rows": null,
     "sources": {"files": 2, "bytes": 51200, "sha256": "..."}}

`missing` names the attributes with missing values; a missing value is coded as the attribute's number of values.
`weights` is the name of the weights column. `sampled_rows` is the number of rows that the cuts were computed from, or
null for all.

The last batch has no rows. Its metadata hold facts that are known only after all rows are written: the number of rows
per code and a checksum of the weights, by which damage is detected, and a sample of the rows as they were read. To
choose a penalty, `fit` discretizes this sample anew. It is a compressed Arrow stream with the same columns as the
codes: numeric columns (including parts of dates) as numbers, categorical columns as dictionary arrays. The sample has
its own checksum, which files written by early versions lack.

If another process truncates a mapped file, the system sends SIGBUS to the process that reads the lost part. By default,
this signal ends the process without a message. Python cannot handle this signal: its handlers run between two
instructions of Python, and the instruction that failed never ends. Therefore

- small files are read into memory at once;
- after each pass over a mapped file, its size is compared with its size at the beginning;
- a handler installed through ctypes prints the error and exits with code 1 if the file is truncated during a pass.

The handler cannot clean up. Output files have no name until they are complete (`atomic`), so no half-written file
remains on Linux. A signal for any other reason ends the process as before. A file that is cut off and restored to its
length within one pass, or overwritten at the same length, goes unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import signal
import stat
import struct
import sys
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from bncli.files.artifacts.arrow_sizes import check_sizes
from bncli.files.artifacts.cuts import cuts_json, parse_cuts
from bncli.files.atomic import atomic_writer
from bncli.files.json_documents import parse_json
from bncli.files.paths import cannot_read

VERSION = 1
HEADER_KEY = b"bncli"
"""The key of the header in the metadata of the Arrow schema."""
FORMAT_MARK = b'"format": "bncli-codes"'
"""Bytes that every header contains; they distinguish the file from other Arrow files."""
_HEADER_CHECKSUM = b"bncli.crc32"
_COUNTS, _WEIGHTS_CHECKSUM = b"bncli.counts", b"bncli.weights"
_SAMPLE, _SAMPLE_CHECKSUM = b"bncli.sample", b"bncli.sample.crc32"
_SEED = b"seed"
"""The key of the seed in the sample's own metadata; its value is empty if the sample is all rows of the table."""
_MAGIC = b"ARROW1\0\0"
_MOST_HEADER_BYTES = 1 << 28
_EDGE = 1 << 20
"""The number of bytes at each end of a source file that go into its fingerprint."""
MAPPED_FROM = 1 << 26
"""Files of at least this many bytes are memory-mapped; smaller ones are read into memory."""
LARGE_FILE = 1 << 28
"""The pages of a mapped file are released after use if the file has at least this many bytes."""
_PATHS: weakref.WeakKeyDictionary[mmap.mmap, str] = weakref.WeakKeyDictionary()
"""The path of each mapped file that is in use."""
_HANDLERS: list[Any] = []
"""The installed signal handler; this reference keeps it from being garbage-collected."""


@dataclass(frozen=True)
class Fingerprint:
    """The identity of the encoded files: number, total bytes, and SHA-256 of their sizes, beginnings and ends."""

    files: int
    n_bytes: int
    sha256: str

    @staticmethod
    def of(paths: Sequence[str]) -> Fingerprint:
        """Compute the fingerprint of regular files; it depends on their order, but not on their names and times.

        Raises OSError if a file cannot be read.
        """
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
    """The header of a `.codes` file; the attributes of `cuts` have no frequencies."""

    cuts: Cuts
    labels: tuple[str, ...]
    rows: int
    missing: tuple[str, ...] = ()
    missing_tokens: tuple[str, ...] | None = None
    weights: str | None = None
    sources: Fingerprint | None = None

    @property
    def columns(self) -> list[tuple[str, str, int]]:
        """Name, Arrow type and number of codes of each column in file order.

        The code for missing values counts, if the attribute has one; the weights have 0 codes.
        """
        coded = [(a.name, a.n_values + (a.name in self.missing)) for a in self.cuts.attributes]
        coded.append((self.cuts.class_name, len(self.labels)))
        columns = [(name, code_dtype(n).name, n) for name, n in coded]
        return columns if self.weights is None else [*columns, (self.weights, "float64", 0)]


@dataclass(frozen=True)
class CodedRows:
    """Consecutive rows: one array of codes (n,) per attribute, label codes (n,), and weights (n,) or None."""

    codes: Sequence[Codes]
    labels: Codes
    weights: Array | None = None


@dataclass(frozen=True)
class Sample:
    """A sample of the rows as they were read, drawn with `seed`; a seed of None means all rows, in table order."""

    rows: Columns
    seed: int | None


@dataclass(frozen=True)
class CodesFile:
    """An open `.codes` file with its batches, which are memory-mapped if it is not small.

    batches: all batches except the last, which has no rows. counts: number of rows per code, for each column of codes
    in file order. tail: metadata of the last batch. `end_pass` is called after each pass over a mapped file (see
    `map_file`).
    """

    path: str
    header: CodesHeader
    batches: tuple[pa.RecordBatch, ...]
    counts: tuple[tuple[int, ...], ...]
    tail: dict[bytes, bytes]
    end_pass: Callable[[], None] | None = None

    def columns(self) -> Columns:
        """Return the rows, as views of the file where possible; raise BncliError if their data are damaged."""
        header = self.header
        parts = [tuple(b.column(i).to_numpy() for b in self.batches) for i in range(len(header.columns))]
        columns = [ChunkedColumn(column, self.end_pass) for column in parts]
        with _arrow_errors(self.path):
            for (name, _, n), column, counts in zip(header.columns, columns, (*self.counts, ()), strict=False):
                if n and column.count(n).tolist() != list(counts):
                    _fail(self.path, f"the codes of column '{name}' were changed after they were written")
                if not n:
                    checksum = 0
                    for part in column.parts:
                        checksum = zlib.crc32(np.ascontiguousarray(part).data, checksum)
                    is_written = str(checksum).encode() == self.tail.get(_WEIGHTS_CHECKSUM)
                    if not is_written or not (column.joined() > 0).all():
                        _fail(self.path, f"the weights '{name}' were changed after they were written")
        if self.end_pass is not None:
            self.end_pass()
        n = len(header.cuts.attributes)
        attributes = {a.name: CodedColumn(c, a) for a, c in zip(header.cuts.attributes, columns, strict=False)}
        label = CategoricalColumn(cast(Any, columns[n].joined()), header.labels)
        weights = None if header.weights is None else cast(Array, columns[n + 1].joined())
        origin = Origin(header.missing_tokens, file=True, sampled_rows=header.cuts.sampled_rows)
        sample, checksum_of_sample = self.tail.get(_SAMPLE), self.tail.get(_SAMPLE_CHECKSUM)
        if checksum_of_sample is not None and checksum_of_sample != _checksum(sample or b""):
            _fail(self.path, "the sample of rows was changed after it was written")
        if sample is not None:
            with _arrow_errors(self.path):
                rows, seed = _read_sample(sample, header)
            origin = replace(origin, sample=rows, seed=seed)
        return Columns(header.rows, attributes, header.cuts.class_name, label, weights, origin)


def write_codes(path: str, header: CodesHeader, blocks: Iterable[CodedRows], sample: Sample | None = None) -> None:
    """Write a `.codes` file; `blocks` contain the rows of the table in order, split as by `block_bounds`."""
    schema = _arrow_schema(header)
    sizes = [n for _, _, n in header.columns]
    counts = [np.zeros(n) for n in sizes if n]
    checksum_of_weights = 0
    options = pa.ipc.IpcWriteOptions(compression=None)
    with atomic_writer(path) as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for block in blocks:
            arrays = [np.ascontiguousarray(codes) for codes in (*block.codes, block.labels)]
            arrays += [] if block.weights is None else [block.weights]
            columns = [
                pa.array(a.astype(f.type.to_pandas_dtype(), copy=False)) for a, f in zip(arrays, schema, strict=True)
            ]
            for i, (codes, n) in enumerate(zip(arrays, sizes, strict=True)):
                if n:
                    counts[i] += ChunkedColumn((cast(Codes, codes),)).count(n)
                else:
                    checksum_of_weights = zlib.crc32(np.ascontiguousarray(codes).data, checksum_of_weights)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        tail = {
            _COUNTS: json.dumps([column.astype(np.int64).tolist() for column in counts]).encode(),
            _WEIGHTS_CHECKSUM: str(checksum_of_weights).encode(),
        }
        if sample is not None:
            dumped = _dump_sample(sample.rows, sample.seed)
            tail |= {_SAMPLE: dumped, _SAMPLE_CHECKSUM: _checksum(dumped)}
        empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        writer.write_batch(empty, custom_metadata=tail)


def _arrow_schema(header: CodesHeader) -> pa.Schema:
    """Return the Arrow schema of the file, with the header in its metadata."""
    sources = header.sources
    content: dict[str, Any] = {
        "format": "bncli-codes",
        "version": VERSION,
        "rows": header.rows,
        "cuts": cuts_json(replace(header.cuts, sampled_rows=None)),
        "labels": list(header.labels),
        "missing": list(header.missing),
        "missing_tokens": None if header.missing_tokens is None else list(header.missing_tokens),
        "weights": header.weights,
        "sampled_rows": header.cuts.sampled_rows,
        "sources": None
        if sources is None
        else {"files": sources.files, "bytes": sources.n_bytes, "sha256": sources.sha256},
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    fields = [pa.field(name, getattr(pa, kind)(), nullable=False) for name, kind, _ in header.columns]
    return pa.schema(fields, {HEADER_KEY: text, _HEADER_CHECKSUM: _checksum(text)})


def _checksum(data: bytes) -> bytes:
    return str(zlib.crc32(data)).encode()


def read_codes(path: str) -> CodesFile:
    """Open a `.codes` file, and memory-map it unless it is small.

    Raises BncliError if the file cannot be read, is damaged, truncated, or written by a newer bncli.
    """
    with _arrow_errors(path):
        with open(path, "rb") as file:
            message = _schema_message(file)
            if not message:
                _fail(path, "the file ends inside its header")
            # `read_schema` expects the marker and the length in front of the message.
            schema = pa.ipc.read_schema(pa.py_buffer(b"\xff\xff\xff\xff" + struct.pack("<i", len(message)) + message))
            metadata = schema.metadata or {}
            text = metadata.get(HEADER_KEY, b"")
            if metadata.get(_HEADER_CHECKSUM, _checksum(text)) != _checksum(text):
                _fail(path, "the header was changed after it was written")
            header = _read_header(text, path)
            file.seek(0)
            check_sizes(file, "file", path, None)
            content, end_pass = map_file(path, file)
        reader = pa.ipc.open_file(pa.py_buffer(content))
        if not reader.schema.equals(_arrow_schema(header)):
            _fail(path, "the columns do not match the header")
        *with_rows, last = [reader.get_batch_with_custom_metadata(i) for i in range(reader.num_record_batches)]
        tail = {} if last.custom_metadata is None else dict(last.custom_metadata)
        batches = tuple(each.batch for each in with_rows)
        for batch in batches:
            batch.validate()
            if any(column.null_count for column in batch.columns):
                _fail(path, "there are null values")
        if last.batch.num_rows or sum(batch.num_rows for batch in batches) != header.rows:
            _fail(path, f"the file does not have the {header.rows:,} rows that its header states")
        counts = json.loads(tail.get(_COUNTS, b"null"))
        sizes = [n for _, _, n in header.columns if n]
        if not isinstance(counts, list) or [len(c) if isinstance(c, list) else -1 for c in counts] != sizes:
            _fail(path, "the counts of the codes are missing")
        return CodesFile(path, header, batches, tuple(map(tuple, counts)), tail, end_pass)


@contextmanager
def _arrow_errors(path: str) -> Iterator[None]:
    """Convert exceptions from Arrow, the file system or damaged metadata into BncliError."""
    try:
        yield
    except OSError as error:
        if isinstance(error, pa.ArrowException) or error.errno is None:
            _fail(path, str(error).splitlines()[0])
        raise cannot_read(path, error, is_data=True) from error
    except (pa.ArrowException, ValueError, TypeError, KeyError, IndexError, struct.error) as error:
        _fail(path, str(error).splitlines()[0] if str(error) else type(error).__name__)


def _fail(path: str, what: str) -> NoReturn:
    raise BncliError(f"the codes are damaged or cut off: {what}", where=path, hint="encode the table again")


def is_codes(path: str) -> bool:
    """Return whether the path is a readable regular file that starts like a `.codes` file, even if it is damaged."""
    try:
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return FORMAT_MARK in _schema_message(file)
    except OSError:
        return False


def _schema_message(file: BinaryIO) -> bytes:
    """Return the metadata of the first message of an Arrow file.

    The result is empty if the file does not begin like an Arrow file or if its header length is implausible.
    """
    head = file.read(16)
    if len(head) < 16 or not head.startswith(_MAGIC):
        return b""
    length = struct.unpack("<i", head[12:])[0]
    return file.read(length) if 0 < length < _MOST_HEADER_BYTES else b""


def _read_header(text: bytes, path: str) -> CodesHeader:
    """Parse and validate the header; raise BncliError if it is invalid or written by a newer bncli."""
    document = parse_json(text, f"{path}, heading")
    document.check_format("codes", VERSION)
    about_rows = ("labels", "missing", "missing_tokens", "weights", "sampled_rows", "sources")
    fields = document.fields(("format", "version", "rows", "cuts", *about_rows))
    cuts = parse_cuts(fields["cuts"])
    names = {attribute.name for attribute in cuts.attributes}
    labels = fields["labels"].texts()
    if len(labels) < 2:
        fields["labels"].fail("a class needs at least two labels")
    missing = fields["missing"].texts()
    for name in missing:
        if name not in names:
            fields["missing"].fail(f"there is no attribute '{name}'")
    weights = None if fields["weights"].value is None else fields["weights"].text()
    if weights is not None and weights in {cuts.class_name, *names}:
        fields["weights"].fail(f"the name '{weights}' is given twice")
    tokens = None if fields["missing_tokens"].value is None else fields["missing_tokens"].texts()
    sampled_rows = None if fields["sampled_rows"].value is None else fields["sampled_rows"].integer(1)
    rows = fields["rows"].integer(1)
    sources = None
    if fields["sources"].value is not None:
        source = fields["sources"].fields(("files", "bytes", "sha256"))
        sources = Fingerprint(source["files"].integer(1), source["bytes"].integer(0), source["sha256"].text())
    return CodesHeader(replace(cuts, sampled_rows=sampled_rows), labels, rows, missing, tokens, weights, sources)


def _dump_sample(rows: Columns, seed: int | None) -> bytes:
    """Serialize the rows and the seed as a compressed Arrow stream."""
    assert rows.label is not None
    columns = []
    for column in (*rows.as_read.values(), rows.label):
        if isinstance(column, NumericColumn):
            columns.append(pa.array(column.values))
        else:
            codes = column.codes.astype(np.int32)
            levels = pa.array(column.levels, pa.string())
            columns.append(pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), levels))
    if rows.weights is not None:
        columns.append(pa.array(rows.weights))
    # Columns are numbered, because the weights may have the name of another column.
    fields = [(str(i), column.type) for i, column in enumerate(columns)]
    schema = pa.schema(fields, {_SEED: b"" if seed is None else b"%d" % seed})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return bytes(sink.getvalue())


def _read_sample(data: bytes, header: CodesHeader) -> tuple[Columns, int | None]:
    """Parse the rows and the seed written by `_dump_sample`; raise ValueError or an Arrow error if they are invalid."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        batch = next(iter(reader), None)
    if batch is None:
        raise ValueError("the sample is empty")
    batch.validate(full=True)
    attributes, metadata = header.cuts.attributes, reader.schema.metadata or {}
    if batch.num_columns != len(attributes) + 1 + (header.weights is not None):
        raise ValueError("the sample does not have the columns of the codes")
    columns = {a.name: _sample_column(column, a) for a, column in zip(attributes, batch.columns, strict=False)}
    label = _sample_column(batch.column(len(attributes)), None)
    if not isinstance(label, CategoricalColumn) or label.levels != header.labels or (label.codes < 0).any():
        raise ValueError("the sample does not have the labels of the codes")
    weights = None if header.weights is None else batch.column(batch.num_columns - 1).to_numpy()
    seed = metadata.get(_SEED, b"")
    if not seed and batch.num_rows != header.rows:
        raise ValueError("the sample does not have all rows")
    rows = Columns(batch.num_rows, columns, header.cuts.class_name, label, weights)
    return rows, int(seed) if seed else None


def _sample_column(array: pa.Array, attribute: Attribute | None) -> Column:
    """Convert a column of the sample; raise ValueError for a wrong type. The attribute of the class column is None."""
    if isinstance(attribute, NumericAttribute):
        if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)) or array.null_count:
            raise ValueError(f"the sample's column '{attribute.name}' contains no numbers")
        return NumericColumn(array.to_numpy(zero_copy_only=False), attribute.form)
    if not isinstance(array, pa.DictionaryArray):
        raise ValueError("a categorical column of the sample has no levels")
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return CategoricalColumn(codes, tuple(array.dictionary.to_pylist()))


def map_file(path: str, file: BinaryIO) -> tuple[bytes | mmap.mmap, Callable[[], None] | None]:
    """Return the content of an open file, and a function to call after each pass over it.

    The function raises BncliError if the file has become shorter, and releases the pages of a large one. It is None for
    a file smaller than MAPPED_FROM, which is read into memory.
    """
    if os.fstat(file.fileno()).st_size < MAPPED_FROM:
        file.seek(0)
        return file.read(), None
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _PATHS[mapped] = path
    _install_handler()
    return mapped, partial(_end_pass, mapped, path)


def _end_pass(mapped: mmap.mmap, path: str) -> None:
    if mapped.size() < len(mapped):
        raise _shorter(path)
    dont_need = getattr(mmap, "MADV_DONTNEED", None)  # Windows does not have it
    if dont_need is not None and len(mapped) >= LARGE_FILE:
        mapped.madvise(dont_need)


def _shorter(path: str) -> BncliError:
    return BncliError(
        "the file was truncated while it was in use", where=path, hint="write the file again, then repeat the command"
    )


def _install_handler() -> None:
    """Install the SIGBUS handler once per process, on systems that have this signal."""
    if _HANDLERS or not hasattr(signal, "SIGBUS"):
        return
    import ctypes

    try:
        install = ctypes.CDLL(None).signal
    except (OSError, AttributeError):
        return
    install.argtypes, install.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p

    def end(number: int) -> None:
        for mapped, path in list(_PATHS.items()):
            if mapped.size() < len(mapped):
                print(f"Error: {_shorter(path)}", file=sys.stderr, flush=True)
                os._exit(1)
        install(number, None)  # the default action: the instruction is repeated, and the signal ends the process

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    _HANDLERS.append(handler)
    install(int(signal.SIGBUS), ctypes.cast(handler, ctypes.c_void_p))
