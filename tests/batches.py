"""Batches of rows as a plain iterator, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bncli.engine.data.schema import Schema
from bncli.files.reading.rows_by_schema import Batch, Batches
from bncli.files.reading.source import Source


def read_batches(source: Source, schema: Schema, needed: Sequence[str], **options: Any) -> Iterator[Batch]:
    """Yield the rows in order, in batches."""
    yield from Batches(source, schema, needed, **options)
