"""One column of a table that is learnt from, while its rows come in chunks and its type is still open.

A column is taken for numbers as long as nothing speaks against it, and for text from the first chunk that does; the
chunks that were read as numbers before are then read again as text, this column alone. Chunks are kept small: numbers
in the narrowest type that holds them exactly, text as codes.

Decided here: a column is numeric when every value that is present is a finite decimal number and there are more than
two different ones; a column all empty is categorical, without levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, NumericColumn
from bncli.engine.kernels.arrays import Mask
from bncli.files.reading.narrow import join_numbers, narrow_numbers
from bncli.files.reading.non_numeric import Stranger, first_stranger
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.pieces import Kind, Values, Want, is_text
from bncli.files.reading.source import Tokens
from bncli.files.reading.vocabulary import (
    EMPTY,
    MAX_SHARED,
    TextChunk,
    codes_of,
    distinct_levels,
    encode,
    merged,
    narrow_codes,
    sort_levels,
)

Chunk = TextChunk | NDArray[Any]


class Growing:
    """A column's chunks so far. `want` says how the next rows are asked for; `free`: its type is not yet settled."""

    def __init__(self, want: Want, *, free: bool, tokens: Tokens) -> None:
        self.want = want
        self.shared: pa.Array = EMPTY
        self.chunks: list[Chunk] = []
        self.stranger: Stranger | None = None
        """The text that settled that a column of free type is no column of numbers."""
        self._free = free
        self._tokens = tokens

    def add(self, chunk: Chunk, locate: Callable[[int], str]) -> None:
        """Takes the next chunk and learns from it; `locate` tells where its rows stand."""
        self.chunks.append(chunk)
        if isinstance(chunk, TextChunk):
            if chunk.texts is not self.shared:
                self._learn_texts(chunk, locate)
        elif self.want.kind is Kind.INTEGER and chunk.dtype.kind == "f":
            self.want = Want(self.want.name, Kind.NUMBER)

    def _learn_texts(self, chunk: TextChunk, locate: Callable[[int], str]) -> None:
        texts = chunk.texts
        if len(self.shared) < MAX_SHARED:
            self.shared = merged(self.shared, texts)
        if not self._free:
            return
        numbers, wrong = to_numbers(texts, self._tokens.number)
        if wrong is not None:
            self._free = False
            self.stranger = first_stranger(chunk, wrong, locate)
            self.want = Want(self.want.name, Kind.TEXT)
        elif self.want.kind is Kind.TEXT and more_than_two([numbers]):
            self.want = Want(self.want.name, Kind.NUMBER)

    def settle(self) -> list[int]:
        """Ends the search for the type; returns the chunks that must be read again as text and put in by `replace`."""
        if self._free:
            kind = Kind.NUMBER if more_than_two(self._numbers(chunk) for chunk in self.chunks) else Kind.TEXT
            self.want = Want(self.want.name, kind)
            self._free = False
        if self.want.kind is not Kind.TEXT:
            return []
        return [i for i, chunk in enumerate(self.chunks) if not isinstance(chunk, TextChunk)]

    def replace(self, index: int, values: pa.Array) -> None:
        self.chunks[index] = encode(values, self.shared)

    def _numbers(self, chunk: Chunk) -> NDArray[Any]:
        """The different numbers of a chunk of text, the numbers of another."""
        return to_numbers(chunk.texts, self._tokens.number)[0] if isinstance(chunk, TextChunk) else chunk

    def texts(self, rows: Mask | None = None) -> pa.Array:
        """All raw texts of a column of text, or those of the rows that are marked, once each."""
        chunks = [chunk for chunk in self.chunks if isinstance(chunk, TextChunk)]
        different = {id(chunk.texts): chunk.texts for chunk in chunks}.values()
        return pa.concat_arrays([EMPTY, *(different if rows is None else _marked(chunks, rows))]).unique()

    def numeric(self) -> NumericColumn:
        """The finished column of numbers; the chunks are gone."""
        parts = []
        for chunk in self.chunks:
            if isinstance(chunk, TextChunk):
                chunk = narrow_numbers(self._numbers(chunk)[chunk.codes])
            parts.append(chunk)
        self.chunks = []
        return NumericColumn(join_numbers(parts))

    def label(self, *, as_text: bool) -> CategoricalColumn:
        """The finished class: in one whose values are all numbers a hole is what it is among numbers."""
        numbers, wrong = to_numbers(self.texts(), self._tokens.number)
        if not as_text and wrong is None and not np.isnan(numbers).all():
            self._tokens = Tokens(self._tokens.number, self._tokens.number)
        return self.categorical()

    def categorical(self, levels: tuple[str, ...] | None = None) -> CategoricalColumn:
        """The finished column of text; the chunks are gone. `levels`: as found, sorted, unless given.

        A text that is not among the given levels has the code MISSING: see `unknown`.
        """
        if levels is None:
            levels = sort_levels(distinct_levels(self.texts(), self._tokens.text))
        tables: dict[int, NDArray[Any]] = {}
        parts = [np.empty(0, np.int8)]
        for chunk in self.chunks:
            assert isinstance(chunk, TextChunk)
            if id(chunk.texts) not in tables:
                codes = codes_of(chunk.texts, levels, self._tokens.text)
                tables[id(chunk.texts)] = narrow_codes(codes, len(levels))
            parts.append(tables[id(chunk.texts)][chunk.codes])
        self.chunks = []
        return CategoricalColumn(np.concatenate(parts), levels)


def _marked(chunks: Iterable[TextChunk], rows: Mask) -> Iterable[pa.Array]:
    first = 0
    for chunk in chunks:
        end = first + len(chunk.codes)
        yield chunk.texts.take(pa.array(np.unique(chunk.codes[rows[first:end]])))
        first = end


def digest(values: Values, shared: pa.Array) -> Chunk:
    """The values of a piece in the form that is kept."""
    return encode(values, shared) if is_text(values) else narrow_numbers(values)


def more_than_two(chunks: Iterable[NDArray[Any]]) -> bool:
    """Whether there are more than two different numbers in all."""
    seen: list[float] = []
    for values in chunks:
        rest = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        for known in seen:
            rest = rest[rest != known]
        while len(rest):
            seen.append(rest[0])
            if len(seen) > 2:
                return True
            rest = rest[rest != rest[0]]
    return False
