"""The subspace on which a preconditioner is dense: frequent cells one by one, and sums of the others.

    R e_j = cell c_j                                             for the heaviest cells, the *top*
    R e_j = the other cells of family f with value v of its attribute i, together      for the heaviest (f, i, v)

A diagonal scaling treats every cell outside the top as if it were alone. Many light cells that share a value move
together, and the sums of them let a small dense matrix know it: a second, coarse level, as in domain decomposition.
Cells whose curvature comes from the penalty alone take no part: for them the diagonal is right.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bncli.engine.structure import Family

Array = NDArray[np.float64]
Index = NDArray[np.intp]


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


def top_only(weights: Array, size: int) -> Subspace:
    """The `size` heaviest cells (or whatever else has these weights), ties to the lower; number 0 is one of them."""
    n = min(size, len(weights))
    columns = np.full((1, len(weights)), n)
    columns[0, _heaviest(weights, n)] = np.arange(n)
    return Subspace(columns, n)


def subspace(families: Sequence[Family], weights: Array, curved: NDArray[np.bool_], size: int) -> Subspace:
    """At most `size` columns, half of them sums where there are so many; weights (n_cells,) of the rows in each cell.

    `curved` tells the cells whose curvature is the data's. The bias, cell 0, is always in the top.
    """
    n_top = size if np.count_nonzero(weights) <= size else size - size // 2
    top = top_only(weights, n_top)
    free = curved & (weights > 0) & (top.columns[0] == top.n)
    candidates = list(_values(families, free))
    totals = [float(weights[cells].sum()) if len(cells) > 1 else 0.0 for _, cells in candidates]
    chosen = sorted(np.argsort(np.negative(totals), kind="stable")[: size - top.n])
    chosen = [i for i in chosen if totals[i] > 0]
    n = top.n + len(chosen)
    columns = np.full((1 + max((len(f.shape) for f in families), default=0), len(weights)), n)
    columns[0, top.top] = np.arange(top.n)
    for column, i in enumerate(chosen, start=top.n):
        place, cells = candidates[i]
        columns[1 + place, cells] = column
    used = [0, *(row for row in range(1, len(columns)) if (columns[row] < n).any())]
    return Subspace(columns[used], n)


def _heaviest(weights: Array, n: int) -> Index:
    """Ascending; the heaviest n - 1 and 0, or the heaviest n if 0 is among them."""
    ranked = weights.copy()
    ranked[0] = math.inf
    return np.sort(np.argsort(-ranked, kind="stable")[:n])


def _values(families: Sequence[Family], free: NDArray[np.bool_]) -> Iterator[tuple[int, Index]]:
    """For every value of every attribute of families of several attributes: its place, the free cells that have it."""
    offset = 1
    for family in families:
        cells = np.flatnonzero(free[offset : offset + family.n_cells])
        if len(family.shape) > 1:
            for place, size in enumerate(family.shape):
                value = cells // math.prod(family.shape[place + 1 :]) % size
                order = np.argsort(value, kind="stable")
                edges = np.cumsum(np.bincount(value, minlength=size))[:-1]
                yield from ((place, offset + cells[part]) for part in np.split(order, edges))
        offset += family.n_cells
