"""A table opened for reading: one or several files with the same columns, as row blocks in order.

The columns of the files are matched by name; their order is that of the first file.

From a block of text to a row block: the columns that are wanted, typed, and the malformed rows told apart.

The quick way is one call of Arrow's parser. Only when that fails, or the bytes are foul (NUL, not UTF-8), the rows of
this one block are looked at one by one: ragged and foul rows go, and a column that is not all numbers is read as text.

Numbers with leading zeros, as 01234, in a block of text whose columns are read as numbers: these are codes.

A parser of numbers does not tell 01234 from 1234, so the bytes are looked at: a zero at the start of a field, followed
by digits to its end. Which column it stands in follows from the number of delimiters before it, unless there are
quotes, blanks or rows that are malformed; then the columns in question are parsed as text. Cost: a few per cent of
parsing, and nothing where no column may still turn out to be codes.

What the heads and footers of a table's files say: its columns, and how many rows there are, without reading them.

Work done ahead of time on several threads, its results taken in order.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from bncli.engine.kernels.arrays import Index, Mask
from bncli.errors import BncliError, UsageError
from bncli.files.reading.arrow_files import Batch, ColumnarFile, parse_batch, recognise
from bncli.files.reading.byte_streams import COMPRESSED_SUFFIXES, Input, Stream, checked_encoding, find_inputs
from bncli.files.reading.csv_text import (
    BLOCK_SIZE,
    Records,
    TextBlock,
    TextLayout,
    check_distinct,
    cut,
    parse_delimiter,
    read_arrays,
    read_header,
    scan,
)
from bncli.files.reading.numbers import has_leading_zeros, padded, to_numpy
from bncli.files.reading.source import (
    NOT_UTF8,
    BadRow,
    ColumnRequest,
    MissingTokens,
    RowBlock,
    Source,
    ValueKind,
    Values,
    select,
)
from bncli.files.reading.values import find_faults, resolve
from bncli.watch import Progress, Watch


@dataclass(frozen=True)
class _Rows:
    """The good rows of a block. Once scanned, `records` tells where they stand in the `raw` bytes, from `line` on."""

    layout: TextLayout
    data: bytes
    line: int
    bad: tuple[BadRow, ...]
    records: Records | None = None
    raw: bytes = b""

    def scanned(self) -> tuple[Records, bytes]:
        """Where the rows are, and in which bytes."""
        if self.records is not None:
            return self.records, self.raw
        return scan(self.data, self.layout.delimiter), self.data


RawBlock = TextBlock | Batch
_FORMATS = ("csv", "tsv", "parquet", "arrow")
_ZIP = b"PK\x03\x04"


class TextFile:
    """An opened text file: its header read, its blocks to come."""

    def __init__(self, stream: Stream, delimiter: bytes | None, block_size: int, names: tuple[str, ...] | None) -> None:
        header = read_header(stream, delimiter, names)
        self.names = header.layout.names
        self.delimiter = header.layout.delimiter.decode()
        self._blocks: Iterator[TextBlock] = cut(stream, header, block_size)

    def raw_blocks(self, names: Sequence[str]) -> Iterator[RawBlock]:
        """Return the rows; which columns are needed plays no part."""
        return self._blocks

    def first(self) -> TextBlock | None:
        """Return the first block, which stays to be read."""
        block = next(self._blocks, None)
        if block is not None:
            self._blocks = itertools.chain((block,), self._blocks)
        return block


class ArrowFile:
    """An opened columnar file; `whole`: its malformed rows are to be kept."""

    def __init__(self, file: BinaryIO, kind: str, path: str, *, whole: bool, memory: int | None) -> None:
        self._file = ColumnarFile(file, kind, path, memory)
        self._whole = whole
        self.names = self._file.names
        self.nested = self._file.nested
        check_distinct(self.names, path)

    def raw_blocks(self, names: Sequence[str]) -> Iterator[RawBlock]:
        return self._file.batches(names, whole=self._whole)

    def wants(self) -> dict[str, ColumnRequest]:
        return {name: self._file.want(name) for name in self.names}


class Table:
    """The table that a Source names.

    keep: `raw_blocks` may be called more than once. memory: bytes that are free; a columnar file that asks for more at
    once is refused (None: not limited).
    """

    def __init__(self, source: Source, *, keep: bool, block_size: int = BLOCK_SIZE, memory: int | None = None) -> None:
        if source.format not in (None, *_FORMATS):
            raise UsageError(f"unknown format '{source.format}'", hint=f"one of {', '.join(_FORMATS)}")
        self._format = source.format
        self._keeps_bad_rows = source.bad_rows_file is not None
        self._delimiter = parse_delimiter(source.delimiter, source.format)
        self._encoding = checked_encoding(source.encoding)
        self._names = source.names
        self._block_size = block_size
        self._memory = memory
        self._inputs = find_inputs(source.paths, keep=keep)
        if source.on_bad_row in [file.path for file in self._inputs]:
            raise UsageError("--on-bad-row would overwrite the data", where=source.on_bad_row)
        self._spools: dict[str, BinaryIO] = {}
        self._first: TextFile | ArrowFile | None = None
        try:
            self._first = self._open(self._inputs[0])
        except BaseException:
            self.close()
            raise
        self.names = self._first.names
        self.delimiter = self._first.delimiter if isinstance(self._first, TextFile) else None
        """What separates the fields of the first file; None where that is columnar."""
        self.nested: Mapping[str, str] = self._first.nested if isinstance(self._first, ArrowFile) else {}
        """Columns whose values are structs, lists or maps, and what they hold."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._inputs[0].name

    @property
    def n_files(self) -> int:
        return len(self._inputs)

    def close(self) -> None:
        for file in self._inputs:
            file.close()
        for spool in self._spools.values():
            spool.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hint(self) -> dict[str, ColumnRequest] | TextBlock | None:
        """Return a first hint of the column types: the file's own schema, or the first rows of a text file."""
        if isinstance(self._first, ArrowFile):
            return self._first.wants()
        return None if self._first is None else self._first.first()

    def raw_blocks(self, names: Sequence[str], watch: Watch, begin: int = 0) -> Iterator[RawBlock]:
        """Yield all rows, file by file from that numbered `begin`, with at least the named columns."""
        total = self._total_size()
        done = 0
        for i, file in enumerate(self._inputs[begin:], begin):
            opened = self._first if i == 0 and self._first is not None else self._open(file)
            self._first = None
            assert opened is not None
            self._check_names(opened, file)
            for raw in opened.raw_blocks(names):
                yield raw
                watch(Progress(done + file.n_done, total))
            done += file.n_done
            file.close_file()

    def _total_size(self) -> int | None:
        sizes = [file.size for file in self._inputs]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def _check_names(self, opened: TextFile | ArrowFile, file: Input) -> None:
        differing = sorted(set(opened.names) ^ set(self.names))
        if differing:
            has, lacks = self._inputs[0].name, file.name
            if differing[0] not in self.names:
                has, lacks = lacks, has
            what = f"the files have different columns: '{differing[0]}' is in {has} but not in {lacks}"
            raise BncliError(what, hint="give files of one table")

    def _open(self, file: Input) -> TextFile | ArrowFile:
        if file.path in self._spools:
            return self._open_columnar(file, self._spools[file.path])
        stream = file.open()
        if stream.first.startswith(_ZIP):
            what = "this is a ZIP archive (or a spreadsheet or a model), not a table"
            raise BncliError(what, where=file.name, hint="unpack it, or save the spreadsheet as CSV")
        kind = recognise(stream.first)
        if kind is None and self._format in ("parquet", "arrow"):
            raise BncliError(f"the file is not in {self._format} format", where=file.name)
        if kind is None:
            stream.decode(self._encoding)
            return TextFile(stream, self._delimiter, self._block_size, self._names)
        if self._names is not None:
            what = f"--names has no effect on {_describe(kind)}, which names its columns"
            raise UsageError(what, where=file.name, hint="leave it out")
        if self._format in ("csv", "tsv"):
            raise BncliError(f"the file is not text but {_describe(kind)}", where=file.name, hint="leave out --format")
        if stream.compression is None and file.is_regular:
            return self._open_columnar(file, pa.OSFile(file.path))
        self._spools[file.path] = stream.spool()
        return self._open_columnar(file, self._spools[file.path])

    def _open_columnar(self, file: Input, seekable: BinaryIO) -> ArrowFile:
        seekable.seek(0)
        kind = recognise(seekable.read(8))
        seekable.seek(0)
        assert kind is not None
        return ArrowFile(seekable, kind, file.name, whole=self._keeps_bad_rows, memory=self._memory)


_ZERO, _LINE_FEED, _RETURN, _QUOTE = b'0\n\r"'
_SLICE = 1 << 16
_HEAD = 1 << 16
_EXPANSION = 5
"""A byte of compressed text stands for about so many."""


@dataclass(frozen=True)
class TableHead:
    """The columns, the rows (`exact`: told by footers; else guessed from the first rows), the bytes of all files."""

    names: tuple[str, ...]
    rows: int
    exact: bool
    n_bytes: int
    nested: Mapping[str, str] = field(default_factory=dict)


T = TypeVar("T")


def parse_block(block: TextBlock, wants: Sequence[ColumnRequest], tokens: MissingTokens) -> RowBlock:
    """Return the wanted columns of a block's rows."""
    rows = _Rows(block.layout, block.data, block.line, block.bad)
    if _has_malformed_rows(rows.data):
        rows = _keep_whole_rows(rows)
    position = {name: i for i, name in enumerate(block.layout.names)}
    positions = [position[want.name] for want in wants]
    kinds = _kinds(positions, wants) or {0: ValueKind.TEXT}
    try:
        found = _typed(rows, kinds, tokens)
    except pa.ArrowInvalid:
        if rows.records is None:  # not weeded yet: ragged rows are what Arrow most often refuses
            rows = _keep_whole_rows(rows)
        found = _typed_or_text(rows, kinds, tokens)
    n_rows = len(next(iter(found.values())))
    values = [resolve(want, found[i], tokens) for want, i in zip(wants, positions, strict=True)]
    return _without_wrong_values(rows, n_rows, wants, values, [found[i] for i in positions])


def _has_malformed_rows(data: bytes) -> bool:
    if b"\0" in data:
        return True
    if data.isascii():  # the usual case, told without decoding
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _keep_whole_rows(rows: _Rows) -> _Rows:
    """Return the rows that are whole: as many fields as the header, no NUL bytes, UTF-8."""
    layout, data = rows.layout, rows.data
    records = scan(data, layout.delimiter)
    faults: dict[int, str] = dict.fromkeys(_rows_not_utf8(data, records), NOT_UTF8)
    nul = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    faults |= {int(row): "a NUL byte" for row in np.unique(np.searchsorted(records.ends, nul, side="right"))}
    expected = len(layout.names)
    for row in np.flatnonzero(records.n_fields != expected):
        faults[int(row)] = f"expected {expected} fields, found {records.n_fields[row]}"
    bad = [_bad_row(rows, records, data, row, faults[row]) for row in sorted(faults)]
    keep = np.ones(len(records), np.bool_)
    keep[list(faults)] = False
    kept = records.take(keep)
    clean = b"".join(data[a:b] for a, b in zip(kept.starts, kept.ends, strict=True)) if faults else data
    return _Rows(layout, clean, rows.line, _in_order(rows.bad, bad), kept, data)


def _rows_not_utf8(data: bytes, records: Records) -> Iterator[int]:
    view, start = memoryview(data), 0
    while start < len(data):
        try:
            str(view[start:], "utf-8")
            return
        except UnicodeDecodeError as error:
            row = records.holding(start + error.start)
            yield row
            start = int(records.ends[row])


def _bad_row(rows: _Rows, records: Records, raw: bytes, row: int, what: str) -> BadRow:
    line = rows.line + int(records.lines[row])
    return BadRow(what, rows.layout.path, line, raw[records.starts[row] : records.ends[row]])


def _in_order(earlier: tuple[BadRow, ...], later: Sequence[BadRow]) -> tuple[BadRow, ...]:
    return tuple(sorted((*earlier, *later), key=lambda bad: bad.number))


def _kinds(positions: Sequence[int], wants: Sequence[ColumnRequest]) -> dict[int, ValueKind]:
    """Return how each column is parsed: as text if anyone wants it so, for numbers can be had from text."""
    kinds: dict[int, ValueKind] = {}
    for i, want in zip(positions, wants, strict=True):
        kinds[i] = ValueKind.TEXT if kinds.get(i, want.kind) is not want.kind else want.kind
    return kinds


def _typed(rows: _Rows, kinds: dict[int, ValueKind], tokens: MissingTokens) -> dict[int, Values]:
    """Return the columns by position; raises pa.ArrowInvalid when they are not what `kinds` says."""
    # Arrow refuses no bytes at all ("Empty CSV file"); here that is a block without rows, as are empty lines.
    if rows.data[:1] in b"\r\n" and not rows.data.strip(b"\r\n"):
        return {i: pa.array([], pa.string()) for i in kinds}
    asked = kinds
    if ValueKind.INTEGER in kinds.values() and any(x in rows.data and b"0" + x in rows.data for x in (b"x", b"X")):
        # Arrow takes 0x1F for an integer, but not for a double.
        asked = {i: ValueKind.NUMBER if kind is ValueKind.INTEGER else kind for i, kind in kinds.items()}
    layout = rows.layout
    found = read_arrays(rows.data, len(layout.names), layout.delimiter, asked, padded(tokens.number))
    not_finite = []
    for i, array in found.items():
        if asked[i] is not ValueKind.TEXT:
            found[i] = numbers = to_numpy(array)
            if numbers is None:
                not_finite.append(i)
    if not_finite:
        texts = dict.fromkeys(not_finite, ValueKind.TEXT)
        found |= read_arrays(rows.data, len(layout.names), layout.delimiter, texts, ())
    return found


def _typed_or_text(rows: _Rows, kinds: dict[int, ValueKind], tokens: MissingTokens) -> dict[int, Values]:
    try:
        return _typed(rows, kinds, tokens)
    except pa.ArrowInvalid:
        return _typed(rows, dict.fromkeys(kinds, ValueKind.TEXT), tokens)


def _without_wrong_values(
    rows: _Rows,
    n_rows: int,
    wants: Sequence[ColumnRequest],
    resolved: Sequence[tuple[Values, Mask | None]],
    found: Sequence[Values],
) -> RowBlock:
    faults = find_faults(wants, found, [wrong for _, wrong in resolved])
    if not faults:
        return RowBlock(n_rows, tuple(values for values, _ in resolved), rows.bad, _locator(rows))
    keep = np.ones(n_rows, np.bool_)
    keep[list(faults)] = False
    records, raw = rows.scanned()
    bad = [_bad_row(rows, records, raw, row, what) for row, what in faults.items()]
    left = _Rows(rows.layout, b"", rows.line, _in_order(rows.bad, bad), records.take(keep), raw)
    values = tuple(select(values, keep) for values, _ in resolved)
    return RowBlock(int(keep.sum()), values, left.bad, _locator(left))


def _locator(rows: _Rows) -> Callable[[int], str]:
    return lambda row: f"{rows.layout.path} line {rows.line + int(rows.scanned()[0].lines[row])}"


def parse(raw: RawBlock, wants: Sequence[ColumnRequest], tokens: MissingTokens) -> RowBlock:
    """Return the wanted columns of some rows, whatever file they are from."""
    return parse_block(raw, wants, tokens) if isinstance(raw, TextBlock) else parse_batch(raw, wants, tokens)


def columns_with_leading_zeros(
    block: TextBlock, n_rows: int, watched: Collection[str], tokens: MissingTokens
) -> frozenset[str]:
    """Return those of the watched columns that hold a number with leading zeros; `n_rows` are well formed."""
    if not watched:
        return frozenset()
    text = np.frombuffer(block.data, np.uint8)
    # The positions of zeros that begin a field, more or less, and are followed by a digit.
    delimiter = block.layout.delimiter[0]
    padded = np.concatenate(([np.uint8(_LINE_FEED)], text, [np.uint8(_LINE_FEED)]))
    found = []
    for start in range(0, len(text), _SLICE):  # in slices, for masks that stay in the cache
        here = padded[start : start + _SLICE + 2]
        zeros = here[1:-1] == _ZERO
        zeros &= here[2:] - np.uint8(_ZERO) < 10
        before = here[:-2]
        zeros &= (before == delimiter) | (before <= _QUOTE)
        found.append(np.flatnonzero(zeros) + start)
    starts = np.concatenate(found) if found else np.empty(0, np.intp)
    if not len(starts):
        return frozenset()
    fields = _fields(block, text, starts, n_rows)
    names = sorted(watched)
    if fields is None:
        texts = parse_block(block, [ColumnRequest(name, ValueKind.TEXT) for name in names], tokens).values
        return frozenset(name for name, values in zip(names, texts, strict=True) if has_leading_zeros(values))
    end = re.escape(block.layout.delimiter) + rb"\r\n"
    is_number = re.compile(rb"0[0-9]+[ \t]*(?:[%s]|\Z)" % end).match
    positions = {name: starts[fields == block.layout.names.index(name)] for name in names}
    return frozenset(name for name, at in positions.items() if any(is_number(block.data, i) for i in at.tolist()))


def _fields(block: TextBlock, text: NDArray[np.uint8], starts: Index, n_rows: int) -> Index | None:
    """Return the number of the column that each field stands in; None if counting delimiters does not tell."""
    delimiter, n_columns = block.layout.delimiter[0], len(block.layout.names)
    delimiters = np.flatnonzero(text == delimiter)
    before = np.where(starts > 0, text[starts - 1], np.uint8(_LINE_FEED))
    is_first = (before == _LINE_FEED) | (before == _RETURN)
    if len(delimiters) != n_rows * (n_columns - 1) or b'"' in block.data:
        return None
    if not (is_first | (before == delimiter)).all():
        return None
    n_before = np.searchsorted(delimiters, starts)
    return np.where(is_first, 0, (n_before - 1) % max(n_columns - 1, 1) + 1)


def read_head(source: Source) -> TableHead:
    """Return the head of a table of regular files; UsageError for one that can be read only once."""
    inputs = find_inputs(source.paths, keep=False)
    for one in inputs:
        if not one.is_regular:
            raise UsageError(f"{one.name} has no head to look at: it can be read only once", hint="save it first")
    with Table(source, keep=True, block_size=_HEAD) as table:
        names, nested, first = table.names, table.nested, table.hint()
    # the first rows tell how long a row is
    width = None
    if isinstance(first, TextBlock):
        width = max(len(first.data), 1) / max(first.data.count(b"\n"), 1)
    counted = [_rows(one, width) for one in inputs]
    rows = sum(n for n, _ in counted)
    n_bytes = sum(os.stat(one.path).st_size for one in inputs)
    return TableHead(names, rows, all(exact for _, exact in counted), n_bytes, nested)


def _rows(one: Input, width: float | None) -> tuple[int, bool]:
    """Return how many rows a file has, and whether it says so itself."""
    path = Path(one.path)
    with path.open("rb") as file:
        magic = file.read(6)
    try:
        if magic.startswith(b"PAR1"):
            with parquet.ParquetFile(path) as opened:
                return opened.metadata.num_rows, True
        if magic == b"ARROW1":
            with pa.memory_map(one.path) as mapped, pa.ipc.open_file(mapped) as reader:
                if hasattr(reader, "count_rows"):
                    return reader.count_rows(), True
                # an older Arrow decompresses the values on the way
                return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches)), True
    except (pa.ArrowException, OSError):
        pass  # reading it will say what is wrong
    size = path.stat().st_size * (_EXPANSION if path.suffix.lower() in COMPRESSED_SUFFIXES else 1)
    return round(size / (width or 100.0)), False


def in_order(tasks: Iterator[Callable[[], T] | None], threads: int) -> Iterator[T]:
    """Yield the result of every task, in order; at most `threads` + 1 of them are under way or waiting to be taken.

    `tasks` is drawn from on the caller's thread; a None among them says that the next may be long in coming, so all
    results are handed over. Closing the iterator ends the threads.
    """
    if threads <= 1:  # no pool: errors and ^C come straight out of the work
        for task in tasks:
            if task is not None:
                yield task()
        return
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                if task is not None:
                    waiting.append(pool.submit(task))
                # One more than there are threads, so that none idles while the caller takes the oldest.
                while len(waiting) > (0 if task is None else threads):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # The caller stopped or failed: what has not begun never will, and leaving the pool waits for the rest.
            for future in waiting:
                future.cancel()


def _describe(kind: str) -> str:
    return "Parquet" if kind == "parquet" else "Arrow"


def read_column_names(source: Source) -> tuple[str, ...]:
    """Return the names of the table's columns in order; only the head is read."""
    with Table(source, keep=True) as table:
        return table.names
