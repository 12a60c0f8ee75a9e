"""Array types named after what the arrays hold (docstrings give the shapes), sums in the log domain, counts of cells.

Cells of tables have mixed-radix numbers,

    cell = (x_0 * shape_1 + x_1) * shape_2 + x_2 ...

where the first code is the most significant digit. Cost of a count: about 4 ns per row and table, spent on the
increments rather than on memory access.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real values: counts, weights, logarithms of probabilities, parameters."""

Index = NDArray[np.intp]
"""Positions of rows, cells, attributes or classes."""

Mask = NDArray[np.bool_]

Codes = NDArray[np.unsignedinteger]
"""Codes of values, in the narrowest unsigned type that holds them."""

Integers = NDArray[np.integer]
"""Integers of any type."""

Whole = TypeVar("Whole", bound=np.integer[Any])
"""A single integer type."""
SPARSE_TABLE = 1 << 18
"""Tables of at least this many cells are incremented in place; a bincount would write the whole table per block."""
MANY_INCREMENTS = 1 << 29
"""From this many increments (rows times tables), `add_joint_counts` saves more than importing scipy.sparse costs."""
MANY_ROWS = 1 << 17
"""The number of rows passed to `add_joint_counts` at a time."""


def distinct(values: NDArray[Whole]) -> NDArray[Whole]:
    """Return the distinct integers among values (N,), in ascending order.

    Sorting takes a twentieth of the time of `np.unique`, which fills a hash table (numpy 2.4).

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    # the first of every run of equal values; the slice drops the leading True if there are no values
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]])


def log_sum(values: Array, axis: int | tuple[int, ...]) -> Array:
    """Return ln sum exp over one or several axes, kept with length 1; the largest value along them must be finite.

        ln sum over u of exp(v_u) = m + ln sum over u of exp(v_u - m),    m = max over u of v_u

    Nothing overflows, and only terms that are negligible compared with the largest underflow. Cost: two passes.

    >>> log_sum(np.log([1.0, 2.0, 5.0]) - 1000, axis=0).round(9).tolist()  # ln 8 - 1000; exp(-1000) would be 0
    [-997.920558458]
    """
    highest = values.max(axis=axis, keepdims=True)
    return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True)))


def log_softmax(scores: Array, axis: int) -> Array:
    """Return ln [ exp v / sum exp v ] along an axis; it is accurate even where the fraction is close to 1."""
    below = scores - scores.max(axis=axis, keepdims=True)
    return np.asarray(below - np.log(np.expand_dims(sum_in_order(np.exp(below), axis), axis)))


def sum_in_order(values: Array, axis: int = 0) -> Array:
    """Return the sum along an axis, adding one value after the other.

    If there are several sums, `axis` must not be the last axis.

    numpy adds the values of a single sum pairwise, but adds in order when it computes several sums along such an axis.
    Always adding in order makes each sum the same to the last bit, however many are computed at once.
    """
    if values.size == values.shape[axis]:
        return np.asarray(np.add.accumulate(values, axis=axis).take(-1, axis))
    return np.asarray(values.sum(axis=axis))


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

    With many rows at a time this takes two thirds of the time of `add_counts`, and other threads can compute meanwhile:
    np.bincount (numpy 2.4) holds the interpreter lock. Tables of at least SPARSE_TABLE cells are incremented in place.
    """
    from scipy.sparse import coo_array  # costs more to import than to count few rows: only where it is used

    if table.size >= SPARSE_TABLE:
        # the radix of the leading digit is not used
        np.add.at(table, cell_numbers((cells, codes), (0, n_codes)), 1)
        return
    # toarray adds up the entries that share a position, so that it counts the rows of each cell
    entries = coo_array((_ones(len(cells)), (cells, codes.astype(np.int32))), shape=(table.size // n_codes, n_codes))
    table += entries.toarray().reshape(-1)


@lru_cache(maxsize=4)
def _ones(n: int) -> NDArray[np.int32]:
    return np.ones(n, np.int32)
