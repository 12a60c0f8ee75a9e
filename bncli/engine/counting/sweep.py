"""The tables of families that differ in one parent, counted together in one sweep over the rows.

For a child i with the attribute parents P and every candidate j the table n[x_i, (x_P, x_j), y] is wanted. The cells
of (i, P, class) are numbered once a row; each candidate adds one digit to that number:

    cell_j(t) = cell(t) r_j + x_j(t),    r_j the number of values of j

Cost: about 4 ns a row and candidate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.cells import (
    MANY_INCREMENTS,
    MANY_ROWS,
    SPARSE_TABLE,
    add_counts,
    add_joint_counts,
    cell_numbers,
)

BLOCK = 1 << 15
"""Rows that are numbered at a time; more where a table has more cells, which are all added for every block."""
ROUND = 1 << 17
"""Cells of the tables (1 MiB) that are counted in one pass over the rows, or one a row if there are more rows.

Fresh memory costs more than counting: with tables that stay in the cache a search is twice as fast.
"""


def n_cells(data: Dataset, members: Sequence[int]) -> int:
    """Cells of the table over `members` and the class."""
    return math.prod(data.schema.cardinalities[i] for i in members) * data.n_labels


def tables_with_one_more(
    data: Dataset, child: int, parents: tuple[int, ...], candidates: Sequence[int]
) -> Iterator[tuple[list[int], Array]]:
    """Candidates with as many values each, and their tables n[x_i, (x_P, x_j), y], shape (candidates, r_i, q, K)."""
    cardinalities, family = data.schema.cardinalities, (child, *parents)
    # a search asks for one family after the other
    many = data.weights is None and data.n_rows * math.comb(len(cardinalities), 2) >= MANY_INCREMENTS
    kernel = _count_many if many else _count
    for together in _rounds(candidates, cardinalities, n_cells(data, family), max(ROUND, data.n_rows)):
        counted = zip(together, data.reduce(kernel, family, cardinalities, data.n_labels, together), strict=True)
        for r_j, alike in itertools.groupby(counted, key=lambda entry: cardinalities[entry[0]]):
            members, tables = zip(*alike, strict=True)
            apart = np.array(tables).reshape(len(members), cardinalities[child], -1, data.n_labels, r_j)
            tables_of_y = np.ascontiguousarray(apart.swapaxes(-1, -2), np.float64)
            yield list(members), tables_of_y.reshape(len(members), cardinalities[child], -1, data.n_labels)


def _rounds(candidates: Sequence[int], cardinalities: tuple[int, ...], base: int, at_most: int) -> Iterator[list[int]]:
    """The candidates by their number of values, as many at a time as their tables allow."""
    together: list[int] = []
    values = 0
    for j in sorted(candidates, key=lambda j: (cardinalities[j], j)):
        values += cardinalities[j]
        if together and base * values > at_most:
            yield together
            together, values = [], cardinalities[j]
        together.append(j)
    if together:
        yield together


def _count(
    block: RowBlock, base: tuple[int, ...], cardinalities: tuple[int, ...], n_labels: int, candidates: list[int]
) -> list[NDArray[np.generic]]:
    """Partial tables n[x_base, y, x_j] of one block, flat, for every candidate."""
    kind = np.int64 if block.weights is None else np.float64
    shape = (*(cardinalities[i] for i in base), n_labels)
    totals: list[NDArray[np.generic]] = [np.zeros(math.prod(shape) * cardinalities[j], kind) for j in candidates]
    for rows in block.slices(max(BLOCK, min(SPARSE_TABLE, max(map(len, totals))))):
        weights = None if block.weights is None else block.weights[rows]
        cells = cell_numbers([*(block.codes[i][rows] for i in base), block.labels[rows]], shape)
        for j, total in zip(candidates, totals, strict=True):
            joined = cells * cardinalities[j]
            joined += block.codes[j][rows]
            add_counts(total, joined, weights)
    return totals


def _count_many(
    block: RowBlock, base: tuple[int, ...], cardinalities: tuple[int, ...], n_labels: int, candidates: list[int]
) -> list[NDArray[np.int64]]:
    """The same of rows that weigh 1, by sparse matrices."""
    shape = (*(cardinalities[i] for i in base), n_labels)
    totals = [np.zeros(math.prod(shape) * cardinalities[j], np.int64) for j in candidates]
    for rows in block.slices(MANY_ROWS):
        cells = cell_numbers([*(block.codes[i][rows] for i in base), block.labels[rows]], shape).astype(np.int32)
        for j, total in zip(candidates, totals, strict=True):
            add_joint_counts(total, cells, block.codes[j][rows], cardinalities[j])
    return totals
