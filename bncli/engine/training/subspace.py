"""The subspace on which a preconditioner is dense: frequent cells one by one, and sums of the others.

    R e_j = cell c_j                                             for the heaviest cells, the *top*
    R e_j = the other cells of family f with value v of its attribute i, together      for the heaviest (f, i, v)

A diagonal scaling treats every cell outside the top as if it were alone. Many light cells that share a value move
together, and the sums of them let a small dense matrix know it: a second, coarse level, as in domain decomposition.
Cells whose curvature comes from the penalty alone take no part: for them the diagonal is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.kernels.prolongation import Subspace
from bncli.engine.structures.structure import Family


def top_only(weights: Array, size: int) -> Subspace:
    """The `size` heaviest cells, ties to the lower; cell 0, the bias, is one of them."""
    n = min(size, len(weights))
    columns = np.full((1, len(weights)), n)
    columns[0, _heaviest(weights, n)] = np.arange(n)
    return Subspace(columns, n)


def subspace(families: Sequence[Family], weights: Array, curved: Mask, size: int) -> Subspace:
    """At most `size` columns, half of them sums where there are so many; weights (n_cells,) of the rows in each cell.

    `curved` tells the cells whose curvature is the data's. The bias, cell 0, is always in the top.
    """
    n_top = size if np.count_nonzero(weights) <= size else size - size // 2
    top = top_only(weights, n_top)
    free = curved & (weights > 0) & (top.columns[0] == top.n)
    candidates = list(_values(families, free))
    # the sum of one cell would be that cell again
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
    # the bias is active in every row: it always comes first
    ranked[0] = math.inf
    return np.sort(np.argsort(-ranked, kind="stable")[:n])


def _values(families: Sequence[Family], free: Mask) -> Iterator[tuple[int, Index]]:
    """For every value of every attribute of families of several attributes: its place, the free cells that have it."""
    offset = 1
    for family in families:
        if len(family.shape) > 1:
            cells = np.flatnonzero(free[offset : offset + family.n_cells])
            for place, size in enumerate(family.shape):
                value = cells // math.prod(family.shape[place + 1 :]) % size
                order = np.argsort(value, kind="stable")
                edges = np.cumsum(np.bincount(value, minlength=size))[:-1]
                yield from ((place, offset + cells[part]) for part in np.split(order, edges))
        offset += family.n_cells
