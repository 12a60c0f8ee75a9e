"""The values of one column counted against the class, in bounded memory, while its rows come by once.

Up to a cap every distinct value has its exact counts. Beyond it a value stays only if its hash, a fixed function of the
value that spreads evenly over 64 bits, begins with as many zero bits as the column's `level` says; the level rises by
one whenever too many values stay. A value that stays at the end has stayed from its first row on, so its counts are
exact, and each stands for 2^level values: sums over values times 2^level are unbiased estimates. The values that were
most frequent when the cap was reached, and those named in `always`, are kept whatever their hash, and stand for
themselves, so that what is common and what is missing stay exact.

Cost: O(1) a row; memory O(cap x classes), and as much again for rows that wait to be counted in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Mask

Hashes = NDArray[np.uint64]
_BASE, _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_LEAST_WAITING = 1024


@dataclass(frozen=True)
class Budget:
    """What a column may keep: table cells (values x classes), distinct values, bytes of text."""

    cells: int
    values: int
    text: int


@dataclass(frozen=True)
class Counted:
    """Distinct values in the order of their first rows, their counts, and how many values each stands for.

    rows (n,): number of rows with the value. by_class (n, K): their weight in each class. scale (n,): 1 where counts
    are exact for all values, else a power of two for the sampled ones.
    """

    values: pa.Array
    rows: Array
    by_class: Array
    scale: Array

    @property
    def exact(self) -> bool:
        return not (self.scale > 1).any()

    def take(self, which: Mask) -> Counted:
        return Counted(self.values.filter(pa.array(which)), self.rows[which], self.by_class[which], self.scale[which])


class Tally:
    """Counts so far. `low`, `high`: among the numbers that were not kept (NaN: there are none)."""

    def __init__(self, kind: pa.DataType, budget: Budget, always: Sequence[str]) -> None:
        self._budget = budget
        self._always = pa.array(always if kind == pa.string() else [np.nan], kind)
        self._values = pa.array([], kind)
        self._table = np.zeros((0, 1))
        self._common = np.zeros(0, np.bool_)
        self._level = 0
        self._waiting: list[tuple[pa.Array, Array]] = []
        self._n_waiting = self._waiting_text = 0
        self.dropped: list[pa.Array] = []
        """Values that were not kept, since the caller last emptied the list."""

    def add(self, values: pa.Array, hashes: Hashes, table: Array) -> None:
        """Counts in distinct values; table[i] is the rows of value i, then their weight in each class."""
        if self._level:
            keep = self._stays(values, hashes)
            self._drop(values, ~keep)
            values, table = values.filter(pa.array(keep)), table[keep]
        self._waiting.append((values, table))
        self._n_waiting += len(values)
        self._waiting_text += values.nbytes
        if self._n_waiting > max(_LEAST_WAITING, len(self._values)) or self._waiting_text > self._budget.text:
            self._count_in()

    def finish(self, n_classes: int) -> Counted:
        self._count_in()
        self._widen(1 + n_classes)
        scale = np.where(self._common, 1.0, 2.0**self._level)
        return Counted(self._values, self._table[:, 0], self._table[:, 1:], scale)

    def forget_classes(self) -> None:
        """Goes on with one class in place of all."""
        self._count_in()
        self._table = np.column_stack([self._table[:, 0], self._table[:, 1:].sum(axis=1)])

    def _count_in(self) -> None:
        width = max([self._table.shape[1], *(table.shape[1] for _, table in self._waiting)])
        self._widen(width)
        merged = pa.concat_arrays([self._values, *(values for values, _ in self._waiting)]).dictionary_encode()
        codes, first = merged.indices.to_numpy(), len(self._values)
        n = len(merged.dictionary)
        total = np.zeros((n, width))
        total[: len(self._table)] = self._table
        for _, table in self._waiting:
            total[codes[first : first + len(table)], : table.shape[1]] += table
            first += len(table)
        self._values, self._table = merged.dictionary, total
        self._common = np.append(self._common, self._is_named(self._values.slice(len(self._common))))
        self._waiting, self._n_waiting, self._waiting_text = [], 0, 0
        self._shrink()

    def _widen(self, width: int) -> None:
        lacking = width - self._table.shape[1]
        if lacking > 0:
            self._table = np.pad(self._table, ((0, 0), (0, lacking)))

    def _is_named(self, values: pa.Array) -> Mask:
        found: Mask = pc.is_in(values, value_set=self._always).to_numpy(zero_copy_only=False)
        return found

    def _shrink(self) -> None:
        """Raises the level until what is kept fits."""
        while self._is_over():
            if not self._level:
                self._common |= self._most_frequent()
            self._level += 1
            keep = self._common | _begins_with_zeros(hashes_of(self._values), self._level)
            if keep.all() and self._level > 60:
                return
            self._drop(self._values, ~keep)
            self._values = self._values.filter(pa.array(keep))
            self._table, self._common = self._table[keep], self._common[keep]

    def _is_over(self) -> bool:
        n, width = self._table.shape
        return n > self._budget.values or n * width > self._budget.cells or self._values.nbytes > self._budget.text

    def _most_frequent(self) -> Mask:
        """Of the values seen more than once, up to an eighth of all that may be kept, in cells and in bytes."""
        rows = self._table[:, 0]
        order = np.argsort(-rows, kind="stable")
        order = order[rows[order] > 1][: min(self._budget.values, self._budget.cells // self._table.shape[1]) // 8]
        if self._values.type == pa.string():
            sizes = pc.binary_length(self._values).to_numpy(zero_copy_only=False)[order]
            order = order[np.cumsum(sizes) <= self._budget.text // 8]
        common = np.zeros(len(rows), np.bool_)
        common[order] = True
        return common

    def _stays(self, values: pa.Array, hashes: Hashes) -> Mask:
        common = self._values.filter(pa.array(self._common))
        known: Mask = pc.is_in(values, value_set=common).to_numpy(zero_copy_only=False)
        return known | self._is_named(values) | _begins_with_zeros(hashes, self._level)

    def _drop(self, values: pa.Array, gone: Mask) -> None:
        if gone.any():
            self.dropped.append(values.filter(pa.array(gone)))


def _begins_with_zeros(hashes: Hashes, level: int) -> Mask:
    return np.asarray(hashes >> np.uint64(64 - min(level, 63)) == 0)


def hashes_of(values: pa.Array) -> Hashes:
    """64 bits of each value, spread evenly: of numbers their bits mixed, of texts a polynomial of their bytes mixed."""
    if values.type != pa.string():
        return mixed(values.to_numpy().view(np.uint64))
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets).astype(np.int64)
    sums = np.zeros(len(values), np.uint64)
    if lengths.any():
        data = data[offsets[0] : offsets[-1]]
        starts = offsets[:-1].astype(np.int64) - int(offsets[0])
        place = np.arange(len(data)) - np.repeat(starts, lengths)
        powers = np.cumprod(np.full(int(lengths.max()), _BASE))
        present = lengths > 0
        sums[present] = np.add.reduceat((data + np.uint64(1)) * powers[place], starts[present])
    return mixed(sums + lengths.astype(np.uint64) * _ODD)


def mixed(bits: NDArray[Any]) -> Hashes:
    """The finalizer of SplitMix64 (Steele, Lea & Flood 2014): a one-to-one map that spreads every bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    spread: Hashes = bits ^ (bits >> np.uint64(31))
    return spread
