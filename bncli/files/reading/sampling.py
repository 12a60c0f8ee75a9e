"""The rows of a table that are kept as they were read: all, while they fit a budget, and then a sample of them.

A row's key is a number drawn from the seed and its place in the table; the sample holds the SAMPLE_ROWS rows of lowest
key, so it depends neither on how the table is cut into blocks nor on when the budget was spent. Beside them stay, of
every column, the first row of each of its first texts and the first without a value: levels and missing values are
known though they be rare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Index, Mask
from bncli.files.reading.growing import ColumnBlock, Growing
from bncli.files.reading.vocabulary import EMPTY, CodedTexts, narrow_codes

BUDGET = 2 << 30
"""Bytes of values that are kept, in their narrowest types; beyond it there is a sample."""
SAMPLE_ROWS = 1 << 20
MOST_TEXTS = 1 << 18
"""Of a column so many texts are sure to be in the sample."""
_Keys = NDArray[np.uint64]


class RowSampler:
    """Thins the blocks of columns that grow; `rows[i]` are those kept of block i, None: all of them."""

    def __init__(self, seed: int, budget: int | None) -> None:
        self.sizes: list[int] = []
        self.rows: list[Index | None] = []
        self.sampling = False
        self._seed, self._budget = seed, budget
        self._bytes = 0
        self._limit = np.uint64(2**64 - 1)
        self._keys: list[_Keys] = []
        self._texts: dict[str, pa.Array] = {}
        self._missing: set[str] = set()

    @property
    def n_rows(self) -> int:
        """Rows that came by."""
        return sum(self.sizes)

    @property
    def n_kept(self) -> int:
        """Rows at hand."""
        return sum(n if rows is None else len(rows) for n, rows in zip(self.sizes, self.rows, strict=True))

    def took(self, columns: Sequence[Growing], n_rows: int) -> None:
        """Hears that the columns took one more block."""
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

    def finish(self, columns: Sequence[Growing]) -> None:
        """Ends with a sample of its size."""
        if self.sampling and sum(map(_n_drawn, self._keys)) > SAMPLE_ROWS:
            self._lower(columns)

    def _draw(self, columns: Sequence[Growing], i: int) -> None:
        keys = _keys(sum(self.sizes[:i]), self.sizes[i], self._seed)
        first = np.zeros(len(keys), np.bool_)
        for column in columns:
            first[self._first_of(column.want.name, column.blocks[i])] = True
        keys[first] = 0
        self._keys.append(keys)
        self._keep(columns, i, keys <= self._limit)

    def _first_of(self, name: str, block: ColumnBlock) -> Index:
        """The rows of the block whose texts were not met before, and the first without a number."""
        if not isinstance(block, CodedTexts):
            missing = np.flatnonzero(np.isnan(block))[:1] if block.dtype.kind == "f" else np.zeros(0, np.intp)
            if name in self._missing or not len(missing):
                return np.zeros(0, np.intp)
            self._missing.add(name)
            return missing
        known = self._texts.get(name, EMPTY)
        if block.texts is known or len(known) > MOST_TEXTS:
            return np.zeros(0, np.intp)
        new = pc.invert(pc.is_in(block.texts, value_set=known)).to_numpy(zero_copy_only=False)
        self._texts[name] = pc.unique(pa.concat_arrays([known, block.texts])) if new.any() else known
        rows = np.full(len(block.texts), -1, np.intp)
        rows[block.codes[::-1]] = np.arange(len(block.codes))[::-1]
        found: Index = rows[new & (rows >= 0)]
        return found

    def _lower(self, columns: Sequence[Growing]) -> None:
        """Lowers the limit to the key of the last row of the sample."""
        drawn = np.concatenate([keys[keys > 0] for keys in self._keys])
        self._limit = np.partition(drawn, SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1]
        for i, keys in enumerate(self._keys):
            self._keep(columns, i, keys <= self._limit)

    def _keep(self, columns: Sequence[Growing], i: int, mask: Mask) -> None:
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
