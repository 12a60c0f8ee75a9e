"""Columns of codes that lie in parts: the record batches of a mapped file, or what was read block by block.

A part is used where it lies. Only a question that goes over the ends of parts, or for the whole column, makes a copy.
Pages of a mapped file that were read count as memory of the process until they are let go; the file's cache keeps them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes

ROWS_AT_ONCE = 1 << 16
"""Codes are counted so many at a time: what counts them makes 8 bytes of each."""


@dataclass(frozen=True)
class Parts:
    """One column: its parts (n_p,) in row order, all of one type; `let_go` of the pages if they are a mapped file's."""

    parts: tuple[Codes, ...]
    let_go: Callable[[], None] | None = None

    @staticmethod
    def of(codes: Codes) -> Parts:
        """A column in one part."""
        return Parts((codes,))

    def __len__(self) -> int:
        return self._edges[-1]

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(map(len, self.parts), initial=0))

    def whole(self) -> Codes:
        """All rows, (N,): a copy unless there is one part."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def rows(self, start: int, stop: int) -> Codes:
        """Consecutive rows: a view where they lie in one part."""
        joined = list(zip(self.parts, itertools.pairwise(self._edges), strict=True))
        found = [part[max(start - a, 0) : stop - a] for part, (a, b) in joined if a < stop and start < b]
        if not found:
            return self.parts[0][:0]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def count(self, n: int, weights: Array | None = None) -> Array:
        """The number, or the weight, of the rows of each code below n or above, (at least n,), added in row order."""
        if weights is not None:
            return np.bincount(self.whole(), weights, n).astype(np.float64)
        counted = self._counted.astype(np.float64)
        return np.append(counted, np.zeros(max(0, n - len(counted))))

    @cached_property
    def _counted(self) -> NDArray[np.int64]:
        """The rows of each code up to the largest; those of a file prove it, and are its frequencies."""
        counted = np.zeros(0, np.int64)
        for part in self.parts:
            for start in range(0, len(part), ROWS_AT_ONCE):
                found = np.bincount(part[start : start + ROWS_AT_ONCE], minlength=len(counted))
                counted = np.append(counted, np.zeros(len(found) - len(counted), np.int64)) + found
        return counted


class Joined(Sequence[Codes]):
    """Columns in parts, as if they were arrays: one is joined when it is asked for, and not kept."""

    def __init__(self, columns: Sequence[Parts]) -> None:
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns)

    def let_go(self) -> None:
        """Of the pages of mapped files."""
        for let_go in {column.let_go for column in self.columns}:
            if let_go is not None:
                let_go()

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        if isinstance(i, slice):
            return tuple(self[j] for j in range(len(self))[i])
        found = self.columns[i].whole()
        self.let_go()
        return found
