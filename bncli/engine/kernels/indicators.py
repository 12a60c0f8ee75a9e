"""Rows' configurations as a sparse indicator matrix: Z[t, u] = 1 where row t has configuration u, one a group.

    sum over groups g of E_g[code_g(t)] = (Z E)[t],    sum over rows t with code_g(t) = u of r[t] = (Z' r)[u]

One product does the look-ups, or the sums, of all groups in a block of rows, and other threads compute meanwhile:
np.bincount (numpy 2.4) holds the interpreter lock, and two threads that sum by it take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Integers

MOST_ENTRIES = 1 << 19
"""Of one matrix, about: of many groups fewer rows are taken at a time."""


class Block(NamedTuple):
    """Some rows of Z in compressed rows, and the transpose over the same memory."""

    rows: slice
    z: Any
    transpose: Any


class Indicators:
    """Z of shape (rows, configurations of all groups in turn), by even blocks of about `at_a_time` rows.

    codes (rows, groups) are numbers within the group, sizes[g] the configurations of group g. `keep` holds the
    matrices, 4 bytes a code; else they are made anew whenever they are asked for.
    """

    def __init__(self, codes: Integers, sizes: Sequence[int], at_a_time: int, keep: bool) -> None:
        self._codes, self._sizes = codes, tuple(sizes)
        at_a_time = min(at_a_time, max(1, MOST_ENTRIES // len(sizes)))
        self.at_a_time = -(-len(codes) // max(1, round(len(codes) / at_a_time))) or 1
        self._kept = list(self._made()) if keep else None

    @property
    def n_rows(self) -> int:
        """Rows of Z."""
        return len(self._codes)

    def __sizeof__(self) -> int:
        """Bytes of the codes and of what is kept: by them a cluster weighs whether to move them."""
        of_matrices = np.dtype(np.int32).itemsize * self._codes.size if self._kept is not None else 0
        return self._codes.nbytes + of_matrices

    def __iter__(self) -> Iterator[Block]:
        return self._made() if self._kept is None else iter(self._kept)

    def _made(self) -> Iterator[Block]:
        from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

        for start in range(0, self.n_rows, self.at_a_time):
            codes = self._codes[start : start + self.at_a_time]
            ones, offsets, starts = _in_common(len(codes), self._sizes)
            columns = np.add(codes.reshape(-1), offsets, dtype=np.int32)
            z = csr_array((ones, columns, starts), shape=(len(codes), sum(self._sizes)))
            yield Block(slice(start, start + len(codes)), z, z.T)


@lru_cache(maxsize=4)
def _in_common(n_rows: int, sizes: tuple[int, ...]) -> tuple[Array, Integers, Integers]:
    """What matrices of one shape share: their entries, the first column of each one's group, where each row begins."""
    n_entries = n_rows * len(sizes)
    first = np.cumsum([0, *sizes[:-1]], dtype=np.int32)
    return np.ones(n_entries), np.tile(first, n_rows), np.arange(0, n_entries + 1, len(sizes), dtype=np.int32)
