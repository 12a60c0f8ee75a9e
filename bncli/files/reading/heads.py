"""What the heads and footers of a table's files say: its columns, and how many rows there are, without reading them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from bncli.errors import UsageError
from bncli.files.reading.inputs import COMPRESSED_SUFFIXES, Input, find_inputs
from bncli.files.reading.reader import Table
from bncli.files.reading.source import Source
from bncli.files.reading.text_blocks import TextBlock

_HEAD = 1 << 16
_EXPANSION = 5
"""A byte of compressed text stands for about so many."""


@dataclass(frozen=True)
class Head:
    """The columns, the rows (`exact`: told by footers; else guessed from the first rows), the bytes of all files."""

    names: tuple[str, ...]
    rows: int
    exact: bool
    n_bytes: int


def read_head(source: Source) -> Head:
    """The head of a table of regular files; UsageError for one that can be read only once."""
    inputs = find_inputs(source.paths, keep=False)
    for one in inputs:
        if not one.is_regular:
            raise UsageError(f"{one.name} has no head to look at: it can be read only once", hint="save it first")
    with Table(source, keep=True, block_size=_HEAD) as table:
        names, first = table.names, table.hint()
    # the first rows tell how long a row is
    width = None
    if isinstance(first, TextBlock):
        width = max(len(first.data), 1) / max(first.data.count(b"\n"), 1)
    counted = [_rows(one, width) for one in inputs]
    rows = sum(n for n, _ in counted)
    return Head(names, rows, all(exact for _, exact in counted), sum(os.stat(one.path).st_size for one in inputs))


def _rows(one: Input, width: float | None) -> tuple[int, bool]:
    """How many rows a file has, and whether it says so itself."""
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
