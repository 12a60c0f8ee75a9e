"""A subspace of the tables, as the matrix R that leads from it to them: 0 and 1, every cell in a few columns.

R is kept as the columns of each cell, one row of numbers for every kind of column. Cost of a product: that of looking
at the cells once a row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bncli.engine.kernels.arrays import Array, Index


@dataclass(frozen=True)
class Subspace:
    """columns (sets, n_cells): the column of R that each cell belongs to, n where none.

    Row 0 has the top cells, the others the sums; two cells of one family never share a column of row 0.
    """

    columns: Index
    n: int

    @cached_property
    def top(self) -> Index:
        """The top cells in the order of their columns."""
        cells = np.flatnonzero(self.columns[0] < self.n)
        return cells[np.argsort(self.columns[0][cells])]

    def places(self, members: Index) -> Index:
        """The columns that configurations activate, given the cells (configurations, any) that they activate."""
        return np.concatenate([columns[members] for columns in self.columns], axis=1)

    def restrict(self, cells: Array) -> Array:
        """R' of cells (any, n_cells), shape (any, n)."""
        if len(self.top) == self.n:
            out = cells.take(self.top, axis=1)
        else:
            out = np.zeros((len(cells), self.n))
            out[:, : len(self.top)] = cells[:, self.top]
        if len(self._flat_cells):
            for row, total in zip(cells, out, strict=True):
                total += np.bincount(self._flat_columns, row[self._flat_cells], self.n)
        return out

    def add(self, out: Array, columns: Array) -> None:
        """out (any, n_cells) += R columns (any, n)."""
        out[:, self.top] += columns[:, : len(self.top)]
        for cells, numbers in self._sums:
            out[:, cells] += columns[:, numbers]

    def gram(self, weights: Array) -> Array:
        """R' diag(weights) R, (n, n), weights (n_cells,)."""
        total = np.zeros(self.n * self.n)
        diagonal = np.arange(len(self.top)) * (self.n + 1)
        total[diagonal] = weights[self.top]
        for one, other in itertools.product(self.columns[1:], repeat=2):
            both = np.flatnonzero((one < self.n) & (other < self.n))
            total += np.bincount(one[both] * self.n + other[both], weights[both], len(total))
        return total.reshape(self.n, self.n)

    @cached_property
    def _sums(self) -> list[tuple[Index, Index]]:
        found = [np.flatnonzero(columns < self.n) for columns in self.columns[1:]]
        return [(cells, columns[cells]) for cells, columns in zip(found, self.columns[1:], strict=True)]

    @cached_property
    def _flat_cells(self) -> Index:
        return np.concatenate([np.zeros(0, np.intp), *(cells for cells, _ in self._sums)])

    @cached_property
    def _flat_columns(self) -> Index:
        return np.concatenate([np.zeros(0, np.intp), *(columns for _, columns in self._sums)])
