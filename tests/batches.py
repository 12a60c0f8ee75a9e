"""Batches of rows as a plain iterator, and tables read in blocks of another size, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from bncli.engine.data.schema import Schema
from bncli.files.reading import csv_text
from bncli.files.reading.rows_by_schema import Batch, Batches
from bncli.files.reading.source import Source


def read_batches(source: Source, schema: Schema, needed: Sequence[str], **options: Any) -> Iterator[Batch]:
    """Yield the rows in order, in batches."""
    yield from Batches(source, schema, needed, **options)


@contextmanager
def blocks_of(n_bytes: int) -> Iterator[None]:
    """Cut text files into blocks of this many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "BLOCK_SIZE", n_bytes)
        patch.setattr(csv_text, "ROWS_PER_BLOCK", 0)  # else blocks of wide tables are larger
        yield
