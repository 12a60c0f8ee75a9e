"""A table opened for reading: one or several files with the same columns, as row blocks in order.

The columns of the files are matched by name; their order is that of the first file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa

from bncli.errors import BncliError, UsageError
from bncli.files.reading.columnar import Batch, ColumnarFile, parse_batch, recognise
from bncli.files.reading.encodings import checked_encoding
from bncli.files.reading.headers import check_distinct, parse_delimiter, read_header
from bncli.files.reading.inputs import Input, Stream, find_inputs
from bncli.files.reading.parse import parse_block
from bncli.files.reading.row_blocks import RowBlock, Want
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.text_blocks import BLOCK_SIZE, TextBlock, cut
from bncli.watch import Progress, Watch

RawBlock = TextBlock | Batch
_FORMATS = ("csv", "tsv", "parquet", "arrow")
_ZIP = b"PK\x03\x04"


class TextFile:
    """An opened text file: its header read, its blocks to come."""

    def __init__(self, stream: Stream, delimiter: bytes | None, block_size: int) -> None:
        header = read_header(stream, delimiter)
        self.names = header.layout.names
        self.delimiter = header.layout.delimiter.decode()
        self._blocks: Iterator[TextBlock] = cut(stream, header, block_size)

    def raw_blocks(self, names: Sequence[str]) -> Iterator[RawBlock]:
        """The rows; which columns are needed plays no part."""
        return self._blocks

    def first(self) -> TextBlock | None:
        """The first block, which stays to be read."""
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
        check_distinct(self.names, path)

    def raw_blocks(self, names: Sequence[str]) -> Iterator[RawBlock]:
        return self._file.batches(names, whole=self._whole)

    def wants(self) -> dict[str, Want]:
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

    def hint(self) -> dict[str, Want] | TextBlock | None:
        """What tells the columns' types beforehand: the file's own word, or the first rows of a text file, if any."""
        if isinstance(self._first, ArrowFile):
            return self._first.wants()
        return None if self._first is None else self._first.first()

    def raw_blocks(self, names: Sequence[str], watch: Watch, begin: int = 0) -> Iterator[RawBlock]:
        """All rows, file by file from that numbered `begin`, with at least the named columns."""
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
            return TextFile(stream, self._delimiter, self._block_size)
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


def _describe(kind: str) -> str:
    return "Parquet" if kind == "parquet" else "Arrow"


def parse(raw: RawBlock, wants: Sequence[Want], tokens: Tokens) -> RowBlock:
    """The wanted columns of some rows, whatever file they are from."""
    return parse_block(raw, wants, tokens) if isinstance(raw, TextBlock) else parse_batch(raw, wants, tokens)
