"""The rows of a table that are kept as they were read: all, while they fit a budget, and then a sample of them.

A row's key is a number drawn from the seed and its place in the table; the sample holds the SAMPLE_ROWS rows of lowest
key, so it depends neither on how the table is cut into blocks nor on when the budget was spent. Beside them stay, of
every column, the first row of each of its first texts and the first without a value: levels and missing values are
known though they be rare. First is meant of the rows that count: those of weight 0, or without a class, will go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Index, Mask
from bncli.files.reading.column_builder import EMPTY, CodedTexts, ColumnBlock, ColumnBuilder, narrow_codes, strip
from bncli.files.reading.column_roles import ColumnRoles
from bncli.files.reading.source import MissingTokens

BUDGET = 2 << 30
"""Bytes of values that are kept, in their narrowest types; beyond it there is a sample."""
SAMPLE_ROWS = 1 << 20
MOST_TEXTS = 1 << 18
"""Of a column so many texts are sure to be in the sample."""
_Keys = NDArray[np.uint64]


class RowSampler:
    """Thins the blocks of columns that grow; `rows[i]` are those kept of block i, None: all of them."""

    def __init__(self, seed: int, budget: int | None, roles: ColumnRoles, tokens: MissingTokens) -> None:
        self.sizes: list[int] = []
        self.rows: list[Index | None] = []
        self.sampling = False
        self._seed, self._budget = seed, budget
        self._roles, self._tokens = roles, tokens
        self._bytes = 0
        self._limit = np.uint64(2**64 - 1)
        self._keys: list[_Keys] = []
        self._texts: dict[tuple[str, bool], pa.Array] = {}
        self._missing: set[tuple[str, bool]] = set()

    @property
    def n_rows(self) -> int:
        """Rows that came by."""
        return sum(self.sizes)

    @property
    def n_kept(self) -> int:
        """Rows at hand."""
        return sum(n if rows is None else len(rows) for n, rows in zip(self.sizes, self.rows, strict=True))

    def took(self, columns: Sequence[ColumnBuilder], n_rows: int) -> None:
        """Hear that the columns took one more block."""
        self.sizes.append(n_rows)
        self.rows.append(None)
        self._bytes += sum(_size(column.blocks[-1]) for column in columns)
        if self.sampling:
            self._draw(columns, len(self.sizes) - 1)
        elif self._budget is not None and self._bytes > self._budget:
            self.sampling = True
            # surely enough of them: the blocks must not be copied whole
            share = 2 * SAMPLE_ROWS / self.n_rows
            self._limit = np.uint64(int(share * 2**64) if share < 1.0 else 2**64 - 1)
            for i in range(len(self.sizes)):
                self._draw(columns, i)
            pa.default_memory_pool().release_unused()
        if self.sampling and sum(map(_n_drawn, self._keys)) > 2 * SAMPLE_ROWS:
            self._lower(columns)

    def finish(self, columns: Sequence[ColumnBuilder]) -> None:
        """End with a sample of its size."""
        if self.sampling and sum(map(_n_drawn, self._keys)) > SAMPLE_ROWS:
            self._lower(columns)

    def _draw(self, columns: Sequence[ColumnBuilder], i: int) -> None:
        keys = _keys(sum(self.sizes[:i]), self.sizes[i], self._seed)
        first = np.zeros(len(keys), np.bool_)
        exists, groups = self._counting(columns, i)
        for column in columns:
            block, name = column.blocks[i], column.want.name
            if name == self._roles.class_name:  # a row without a class is to be told
                first[self._first_of((name, True), block, exists)] = True
                continue
            for is_sure, rows in groups:
                first[self._first_of((name, is_sure), block, rows)] = True
        keys[first] = 0
        self._keys.append(keys)
        self._keep(columns, i, keys <= self._limit)

    def _counting(self, columns: Sequence[ColumnBuilder], i: int) -> tuple[Mask, list[tuple[bool, Mask]]]:
        """Return the rows of positive weight; of them those that surely have a class, and those that perhaps have one.

        A text that means a missing value among numbers alone is a label unless all others turn out to be numbers.
        """
        blocks = {column.want.name: column.blocks[i] for column in columns}
        weights = None if self._roles.weights is None else blocks[self._roles.weights]
        exists = np.ones(self.sizes[i], np.bool_) if weights is None else np.asarray(weights) > 0
        label = blocks[self._roles.class_name]
        if not isinstance(label, CodedTexts):
            return exists, [(True, exists)]
        none, perhaps = (strip(label.texts, tokens)[1] for tokens in (self._tokens.text, self._tokens.number))
        sure, doubtful = ~perhaps[label.codes], (perhaps & ~none)[label.codes]
        return exists, [(True, exists & sure), *([(False, exists & doubtful)] if doubtful.any() else [])]

    def _first_of(self, key: tuple[str, bool], block: ColumnBlock, mask: Mask) -> Index:
        """Of the rows that the mask marks: those whose texts were not met before, and the first without a number."""
        counting = np.flatnonzero(mask)
        if not isinstance(block, CodedTexts):
            if key in self._missing or block.dtype.kind != "f":
                return counting[:0]
            missing = counting[np.isnan(block[counting])][:1]
            self._missing.update([key] * len(missing))
            return missing
        known = self._texts.get(key, EMPTY)
        new = pc.invert(pc.is_in(block.texts, value_set=known)).to_numpy(zero_copy_only=False)
        if len(known) > MOST_TEXTS:
            new &= strip(block.texts, self._tokens.text)[1]
        if not new.any():
            return counting[:0]
        rows = np.full(len(block.texts), -1, np.intp)
        rows[block.codes[counting][::-1]] = counting[::-1]
        new &= rows >= 0
        self._texts[key] = pa.concat_arrays([known, block.texts.filter(pa.array(new))])
        found: Index = rows[new]
        return found

    def _lower(self, columns: Sequence[ColumnBuilder]) -> None:
        """Lowers the limit to the key of the last row of the sample."""
        drawn = np.concatenate([keys[keys > 0] for keys in self._keys])
        self._limit = np.partition(drawn, SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1]
        for i, keys in enumerate(self._keys):
            self._keep(columns, i, keys <= self._limit)

    def _keep(self, columns: Sequence[ColumnBuilder], i: int, mask: Mask) -> None:
        known = self.rows[i]
        self.rows[i] = np.flatnonzero(mask) if known is None else known[mask]
        self._keys[i] = self._keys[i][mask]
        for column in columns:
            column.blocks[i] = _part(column.blocks[i], mask)


def _n_drawn(keys: _Keys) -> int:
    return int(np.count_nonzero(keys))


def _size(block: ColumnBlock) -> int:
    return int(block.codes.nbytes if isinstance(block, CodedTexts) else block.nbytes)


def _part(block: ColumnBlock, mask: Mask) -> ColumnBlock:
    if not isinstance(block, CodedTexts):
        return block[mask]
    codes = block.codes[mask]
    if len(block.texts) <= len(codes):
        return CodedTexts(codes, block.texts)
    used, renumbered = np.unique(codes, return_inverse=True)
    return CodedTexts(narrow_codes(renumbered, len(used)), block.texts.take(pa.array(used)))


def _keys(start: int, n: int, seed: int) -> _Keys:
    """Of rows start, start + 1, ...: SplitMix64 (Steele, Lea & Flood 2014), never 0."""
    with np.errstate(over="ignore"):
        z = np.arange(start, start + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64((seed + 1) * 0xD1B54A32D192ED03 % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)
