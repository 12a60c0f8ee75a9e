"""Look-ups of the scorer: tables by cell, and what a table says of a row in which some attribute is unknown.

A `Factor` has the code "unobserved" built into its table and is looked up blindly. A `WideFactor` is one that this code
would blow up (k binary parents make 2^k cells, and 3^k with the code): it keeps the plain table, and the few
rows with an unknown are averaged one pattern of unknowns at a time,

    entry = sum over the values v of the unknown attributes of prod q(v) W[known, v, y],

which is 0 where the family's own attribute is unknown. Cost of such a row: the number of completions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask

Scores = Array | Sequence[Array]
"""(R, rows), or R arrays (rows,)."""
Averages = tuple[Array | None, ...]
"""By attribute, the frequencies that an unknown value is averaged with; None for the family's own attribute."""

GATHERED_ENTRIES = 1 << 18
"""Entries gathered at a time for the unknown rows of a wide factor."""


@dataclass(frozen=True)
class Factor:
    """tables (R, cells), R score rows; the cell is the mixed-radix number of the codes at `positions` (`cells_of`)."""

    positions: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array

    def add_to(self, scores: Scores, codes: Sequence[Index]) -> None:
        """scores (R, rows) += the entry of every row; codes[p] (rows,) are the codes at position p."""
        cells = cells_of([codes[p] for p in self.positions], self.shape)
        found = np.empty(len(cells))
        for row, table in zip(scores, self.tables, strict=True):
            np.take(table, cells, out=found, mode="clip")
            row += found


@dataclass(frozen=True)
class WideFactor:
    """Like `Factor`, without the code "unobserved" in the table: code shape[i] means that digit i is unknown."""

    positions: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array
    averages: Averages

    def add_to(self, scores: Scores, codes: Sequence[Index]) -> None:
        """scores (R, rows) += the entry of every row, averaged over what is unknown in it."""
        digits = [codes[p] for p in self.positions]
        unknown = np.array([digit == n for digit, n in zip(digits, self.shape, strict=True)])
        rows = np.flatnonzero(unknown.any(axis=0))
        cells = cells_of([np.where(u, 0, digit) for u, digit in zip(unknown, digits, strict=True)], self.shape)
        for row, table in zip(scores, self.tables, strict=True):
            found = np.take(table, cells, mode="clip")
            found[rows] = 0.0
            row += found
        for pattern in np.unique(unknown[:, rows], axis=1).T:
            alike = rows[(unknown[:, rows] == pattern[:, None]).all(axis=0)]
            self._add_averages(scores, alike, cells[alike], pattern)

    def _add_averages(self, scores: Scores, rows: Index, cells: Index, pattern: Mask) -> None:
        """scores[:, rows] += the averages of rows that have the same digits unknown, these being 0 in `cells`."""
        hidden = [i for i in range(len(self.shape)) if pattern[i]]
        offsets, weights = np.zeros(1, dtype=np.intp), np.ones(1)
        for i in hidden:
            average = self.averages[i]
            if average is None:
                return
            stride = int(np.prod(self.shape[i + 1 :], dtype=np.intp))
            offsets = np.add.outer(offsets, stride * np.arange(self.shape[i])).ravel()
            weights = np.multiply.outer(weights, average).ravel()
        step = max(1, GATHERED_ENTRIES // offsets.size)
        for start in range(0, rows.size, step):
            block = slice(start, start + step)
            for row, table in zip(scores, self.tables, strict=True):
                row[rows[block]] += table[cells[block, None] + offsets] @ weights


def cells_of(digits: Sequence[Index], shape: Sequence[int]) -> Index:
    """Mixed-radix number of the digits, the first the most significant."""
    cells = digits[0]
    for digit, n in zip(digits[1:], shape[1:], strict=True):
        cells = cells * n
        cells += digit
    return cells


def expand(tensor: Array, averages: Averages) -> Array:
    """(R, n_1, n_2, ...) -> (R, n_1 + 1, n_2 + 1, ...): the last code of every axis stands for "unobserved"."""
    for axis, frequencies in enumerate(averages, start=1):
        if frequencies is None:
            unobserved = np.zeros_like(tensor.take(0, axis))
        else:
            unobserved = np.tensordot(tensor, frequencies, axes=(axis, 0))
        tensor = np.concatenate([tensor, np.expand_dims(unobserved, axis)], axis=axis)
    return tensor
