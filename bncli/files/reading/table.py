"""A table open for reading: one or several files with the same columns, as raw blocks in order.

The columns of the files are matched by name, in the order of the first file. Raw blocks are blocks of text or record
batches; `parse` converts one to a row block, and `run_in_order` can run such tasks on several threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, TypeVar

import pyarrow as pa
from pyarrow import parquet

from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.arrow_sizes import check_sizes
from bncli.files.atomic import atomic_writer
from bncli.files.reading.arrow_files import ArrowBatch, ColumnarFile, TableInMemory, columnar_format, parse_batch
from bncli.files.reading.byte_streams import COMPRESSED_SUFFIXES, InputFile, check_encoding, find_inputs
from bncli.files.reading.csv_text import LATIN, TextBlock, TextFile, check_distinct, parse_block, parse_delimiter
from bncli.files.reading.source import NOT_UTF8, BadRow, ColumnRequest, MissingTokens, RowBlock, Source
from bncli.watch import Note, Progress, Watch

RawBlock = TextBlock | ArrowBatch
T = TypeVar("T")
_FORMATS = ("csv", "tsv", "parquet", "arrow")
_ZIP = b"PK\x03\x04"
TABLE_NAME = "the table"
"""The name, in error messages, of a table that is not a file."""
_HEAD_SIZE = 1 << 16
"""The number of bytes of text from which the length of a row is estimated."""
_EXPANSION = 5
"""The typical ratio of the sizes of a text before and after compression."""
_TYPICAL_ROW = 100.0
"""The assumed length of a row in bytes if nothing is known about it."""


class Table:
    """The table that a `Source` names, open for reading.

    - keep: whether `raw_blocks` may be called more than once
    - block_size: the size of a block of text in bytes, or None for the default
    - memory: the free memory in bytes, or None for no limit; an Arrow file is refused if one of its compressed batches
      needs more
    """

    def __init__(self, source: Source, *, keep: bool, block_size: int | None = None, memory: int | None = None) -> None:
        if source.format not in (None, *_FORMATS):
            raise UsageError(f"unknown format '{source.format}'", hint=f"choose one of {', '.join(_FORMATS)}")
        self._source = source
        self._delimiter = parse_delimiter(source.delimiter, source.format)
        self._encoding = check_encoding(source.encoding)
        self._block_size = block_size
        self._memory = memory
        self._inputs = find_inputs(source.paths, keep=keep) if source.rows is None else ()
        if source.on_bad_row in [file.path for file in self._inputs]:
            hint = "choose another file for the malformed rows"
            raise UsageError("--on-bad-row would overwrite the data", where=source.on_bad_row, hint=hint)
        self._spools: dict[str, BinaryIO] = {}
        """Copies of compressed and piped columnar files, which must be seekable, keyed by path."""
        self._first: TextFile | ColumnarFile | None = None
        """The first file, or None once the rows of a file have been requested."""
        try:
            first = self._first = self._open_rows() if source.rows is not None else self._open(self._inputs[0])
        except BaseException:
            self.close()
            raise
        self.name = self._inputs[0].name if self._inputs else TABLE_NAME
        """The name to show in messages."""
        self.names = first.names
        self.n_files = len(self._inputs)
        self.delimiter = first.delimiter if isinstance(first, TextFile) else None
        """The delimiter of the first file, or None if it is columnar."""
        self.nested: Mapping[str, str] = first.nested if isinstance(first, ColumnarFile) else {}
        """The type of each column of structs, lists or maps, keyed by column."""

    def close(self) -> None:
        for file in self._inputs:
            file.close()
        for spool in self._spools.values():
            spool.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def head(self) -> dict[str, ColumnRequest] | TextBlock | None:
        """Return the column requests of a columnar file, or the first block of a text file (None if it has none).

        The requests suit the types in the schema of the first file. Call it before `raw_blocks`, which yields the first
        block again.
        """
        if isinstance(self._first, ColumnarFile):
            return {name: self._first.request(name) for name in self.names}
        return None if self._first is None else self._first.first_block()

    def stated_rows(self) -> int | None:
        """Return the number of rows according to the metadata of the files, or None if one of them does not state it.

        Call it before `raw_blocks`. The metadata may be wrong.
        """
        if not isinstance(self._first, ColumnarFile):
            return None
        n_rows = self._first.stated_rows
        for file in self._inputs[1:]:
            stated = _stated_rows(file.path) if file.is_regular else None
            if stated is None:
                return None
            n_rows += stated
        return n_rows

    def raw_blocks(self, names: Sequence[str], watch: Watch, begin: int = 0) -> Iterator[RawBlock]:
        """Yield all rows as raw blocks, file by file from the file with index `begin`, with at least the named columns.

        Raises BncliError if the files have different columns.
        """
        if self._source.rows is not None:
            yield from self._open_rows().batches(names)
            return
        total = None
        if all(file.is_regular for file in self._inputs):
            total = sum(os.path.getsize(file.path) for file in self._inputs)
        done = 0
        for i, file in enumerate(self._inputs[begin:], begin):
            # the first file was opened for its header and may be in the middle of a pipe, so it is not opened again
            opened = self._first if i == 0 and self._first is not None else self._open(file)
            self._first = None
            differing = sorted(set(opened.names) ^ set(self.names))
            if differing:
                has, lacks = self.name, file.name
                if differing[0] not in self.names:
                    has, lacks = lacks, has
                what = f"the files have different columns: '{differing[0]}' is in {has} but not in {lacks}"
                raise BncliError(what, hint="give files with the same columns")
            blocks: Iterator[RawBlock] = opened.blocks if isinstance(opened, TextFile) else opened.batches(names)
            for raw in blocks:
                yield raw
                watch(Progress(done + file.n_done, total))
            done += file.n_done
            file.close_file()

    def _open_rows(self) -> TableInMemory:
        return TableInMemory(self._source.rows, TABLE_NAME, keep_bad_rows=self._source.bad_rows_file is not None)

    def _open(self, file: InputFile) -> TextFile | ColumnarFile:
        if file.path in self._spools:
            return self._open_columnar(file, self._spools[file.path])
        stream = file.open()
        if stream.first.startswith(_ZIP):
            what = "this is a ZIP archive (or a spreadsheet or a model), not a table"
            raise BncliError(what, where=file.name, hint="unpack it, or save the spreadsheet as CSV")
        kind = columnar_format(stream.first)
        file_format, names = self._source.format, self._source.names
        if kind is None:
            if file_format in ("parquet", "arrow"):
                raise BncliError(f"the file is not in {file_format} format", where=file.name)
            stream.decode(self._encoding)
            return TextFile(stream, self._delimiter, names, self._block_size)
        kind_name = "Parquet" if kind == "parquet" else "Arrow"
        if names is not None:
            what = f"--names has no effect on {kind_name}, which contains column names"
            raise UsageError(what, where=file.name, hint="leave --names out")
        if file_format in ("csv", "tsv"):
            raise BncliError(f"the file is not text but {kind_name}", where=file.name, hint="leave out --format")
        if stream.compression is None and file.is_regular:
            return self._open_columnar(file, pa.OSFile(file.path))
        # a columnar file must be seekable: a compressed or piped one is copied
        self._spools[file.path] = stream.spool()
        return self._open_columnar(file, self._spools[file.path])

    def _open_columnar(self, file: InputFile, seekable: BinaryIO) -> ColumnarFile:
        seekable.seek(0)
        kind = columnar_format(seekable.read(8))
        seekable.seek(0)
        assert kind is not None
        keep_bad_rows = self._source.bad_rows_file is not None
        opened = ColumnarFile(seekable, kind, file.name, keep_bad_rows=keep_bad_rows, memory=self._memory)
        check_distinct(opened.names, file.name, is_text=False)
        return opened


def parse(raw: RawBlock, requests: Sequence[ColumnRequest], tokens: MissingTokens, n_compact: int = 0) -> RowBlock:
    """Parse the requested columns of a raw block, and return a row block; `n_compact` is as in `parse_batch`."""
    if isinstance(raw, TextBlock):
        return parse_block(raw, requests, tokens)
    return parse_batch(raw, requests, tokens, n_compact)


def run_in_order(tasks: Iterable[Callable[[], T] | None], threads: int) -> Iterator[T]:
    """Run tasks and yield their results in order, on a pool of threads or, if `threads` <= 1, in the calling thread.

    In a pool, at most `threads` + 1 tasks are running or waiting to be yielded. `tasks` is iterated in the calling
    thread; None in it means that the next task may take long to arrive, so all pending results are yielded first.
    Closing the iterator cancels the tasks that have not begun, and ends the threads.
    """
    if threads <= 1:  # without a pool errors and ^C come directly out of the task
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
                # One more than there are threads, so that none idles while the caller processes the oldest result.
                while len(waiting) > (0 if task is None else threads):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # The caller has stopped or failed: tasks that have not begun are cancelled; leaving the pool waits for the
            # others.
            for future in waiting:
                future.cancel()


class BadRows:
    """A receiver of malformed rows, in file order, which raises BncliError, skips them, or writes them to a file.

    policy: fail, skip, or the path of the file. If the `with` block succeeds, the file is created, and a note reports
    the number of malformed rows, if there are any.
    """

    def __init__(self, policy: str, watch: Watch) -> None:
        self.count = 0
        self._policy = policy
        self._watch = watch
        self._first: BadRow | None = None
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    def __enter__(self) -> BadRows:
        if self._policy not in ("fail", "skip"):
            self._file = self._stack.enter_context(atomic_writer(self._policy))
        return self

    def take(self, rows: Iterable[BadRow]) -> None:
        for row in rows:
            if self._policy == "fail":
                hint = "add --on-bad-row skip to leave such rows out"
                if row.what == NOT_UTF8:
                    hint = f"{hint}; or, if the whole file is in another encoding, {LATIN}"
                raise BncliError(f"malformed row: {row.what}", where=row.where, hint=hint)
            self._first = self._first or row
            self.count += 1
            if self._file is not None:
                # The last row of a file may lack its line end; the first row of the next file must not follow it.
                self._file.write(row.raw if row.raw.endswith((b"\n", b"\r")) else row.raw + b"\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if error is None and self._first is not None:
            rows = "malformed row" if self.count == 1 else "malformed rows"
            place = "skipped" if self._file is None else f"written to {self._policy}"
            self._watch(Note(f"{self.count} {rows} {place}; the first: {self._first.what}, {self._first.where}"))


def read_column_names(source: Source) -> tuple[str, ...]:
    """Return the names of the table's columns, in order; only the beginning of the first file is read."""
    with Table(source, keep=True) as table:
        return table.names


@dataclass(frozen=True)
class TableHead:
    """Facts about a table that are known without reading its rows.

    - n_rows: the number of rows, from the metadata of columnar files if `exact`, otherwise estimated
    - n_bytes: the total size of the files
    - nested: the type of each column of structs, lists or maps, keyed by column
    """

    names: tuple[str, ...]
    n_rows: int
    exact: bool
    n_bytes: int
    nested: Mapping[str, str] = field(default_factory=dict)


def read_head(source: Source) -> TableHead:
    """Return facts about a table of regular files; raise UsageError for a file that can be read only once."""
    inputs = find_inputs(source.paths, keep=False)
    for file in inputs:
        if not file.is_regular:
            raise UsageError(
                f"{file.name} cannot be previewed: it can be read only once", hint="save the table as a file first"
            )
    with Table(source, keep=True, block_size=_HEAD_SIZE) as table:
        names, nested, first = table.names, table.nested, table.head()
    row_size = _TYPICAL_ROW
    if isinstance(first, TextBlock):
        row_size = max(len(first.data), 1) / max(first.data.count(b"\n"), 1)
    n_rows, n_bytes, exact = 0, 0, True
    for file in inputs:
        stated = _stated_rows(file.path)
        size = os.stat(file.path).st_size
        n_bytes += size
        if stated is None:
            exact = False
            is_compressed = Path(file.path).suffix.lower() in COMPRESSED_SUFFIXES
            stated = round(size * (_EXPANSION if is_compressed else 1) / row_size)
        n_rows += stated
    return TableHead(names, n_rows, exact, n_bytes, nested)


def _stated_rows(path: str) -> int | None:
    """Return the number of rows in the metadata of a columnar file, or None for any other or a damaged file."""
    try:
        with open(path, "rb") as file:
            kind = columnar_format(file.read(8))
            if kind in ("file", "stream"):
                return check_sizes(file, kind, path, None)
        if kind == "parquet":
            with parquet.ParquetFile(path) as opened:
                return int(opened.metadata.num_rows)
    except (pa.ArrowException, BncliError, OSError):
        pass  # reading the file will report the problem
    return None
