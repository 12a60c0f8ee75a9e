"""Mixed-radix numbers of table cells, and counts of rows per cell.

    cell = (x_0 * shape_1 + x_1) * shape_2 + x_2 ...

The first code is the most significant digit. Cost of a count: about 4 ns per row and table; the increments take the
time, not the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Index, Integers

SPARSE_TABLE = 1 << 18
"""Tables of at least this many cells are incremented in place; a bincount would write the whole table per block."""
MANY_INCREMENTS = 1 << 29
"""With so many increments (rows times tables), `add_joint_counts` saves more than importing scipy.sparse costs."""
MANY_ROWS = 1 << 17
"""The number of rows passed to `add_joint_counts` at a time."""


def cell_numbers(codes: Sequence[Integers], shape: Sequence[int]) -> Index:
    """Return the cell of every row, shape (rows,), from one code array per digit.

    >>> cell_numbers([np.array([0, 1, 2]), np.array([3, 0, 1])], (3, 4)).tolist()
    [3, 4, 9]
    """
    # widened first: products of bytes would wrap around
    cells = codes[0].astype(np.intp)
    for code, radix in zip(codes[1:], shape[1:], strict=True):
        cells *= radix
        cells += code
    return cells


def add_counts(table: NDArray[Any], cells: Index, weights: Array | None) -> None:
    """Add the weight of every row (1 if weights is None) to its cell: table[cells[t]] += weights[t]."""
    if table.size >= SPARSE_TABLE:
        np.add.at(table, cells, 1 if weights is None else weights)
    else:
        table += np.bincount(cells, weights, table.size)


def add_joint_counts(table: NDArray[np.int64], cells: NDArray[np.int32], codes: Integers, n_codes: int) -> None:
    """Add 1 to table[cells[t] * n_codes + codes[t]] for every row t, by summing the entries of a sparse matrix.

    With many rows at a time this takes two thirds of the time of `add_counts`, and other threads compute meanwhile:
    np.bincount (numpy 2.4) holds the interpreter lock.
    """
    from scipy.sparse import coo_array  # costs more to import than to count few rows: only where it is used

    if table.size >= SPARSE_TABLE:
        # the radix of the leading digit plays no part
        np.add.at(table, cell_numbers((cells, codes), (0, n_codes)), 1)
        return
    # toarray adds up the entries that share a position, so that it counts the rows of each cell
    entries = coo_array((_ones(len(cells)), (cells, codes.astype(np.int32))), shape=(table.size // n_codes, n_codes))
    table += entries.toarray().reshape(-1)


@lru_cache(maxsize=4)
def _ones(n: int) -> NDArray[np.int32]:
    return np.ones(n, np.int32)
