"""Array types named after what the arrays hold (docstrings give the shapes), distinct values, sums of logarithms."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers: counts, weights, logarithms of probabilities, parameters."""

Index = NDArray[np.intp]
"""Positions: of rows, cells, attributes, classes."""

Mask = NDArray[np.bool_]

Codes = NDArray[np.unsignedinteger]
"""Codes of values, in the narrowest unsigned type that holds them."""

Integers = NDArray[np.integer]
"""Whole numbers of any type."""

Whole = TypeVar("Whole", bound=np.integer[Any])
"""One type of whole numbers."""


def distinct(values: NDArray[Whole]) -> NDArray[Whole]:
    """Return the distinct integers among `values`, (N,), ascending.

    Sorting takes a twentieth of the time of `np.unique`, which fills a hash table (numpy 2.4).

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    # the first of every run of equal values; the slice drops the leading True if there are no values
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]])


def log_sum(values: Array, axis: int | tuple[int, ...]) -> Array:
    """Return ln sum exp over one or several axes, which keep length 1; the largest value must be finite.

        ln sum over u of exp(v_u) = m + ln sum over u of exp(v_u - m),    m = max over u of v_u

    Nothing overflows, and only what is negligible beside the largest underflows. Cost: two passes.

    >>> log_sum(np.log([1.0, 2.0, 5.0]) - 1000, axis=0).round(9).tolist()  # ln 8 - 1000; exp(-1000) would be 0
    [-997.920558458]
    """
    highest = values.max(axis=axis, keepdims=True)
    return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True)))


def log_softmax(scores: Array, axis: int) -> Array:
    """Return ln [ exp v / sum exp v ] along an axis; the logarithm of a share close to 1 keeps its digits."""
    below = scores - scores.max(axis=axis, keepdims=True)
    return np.asarray(below - np.log(np.expand_dims(sum_in_order(np.exp(below), axis), axis)))


def sum_in_order(values: Array, axis: int = 0) -> Array:
    """Return the sum along an axis, added one number after the other.

    numpy adds the numbers of a single row pairwise but those of several rows in order. Adding always in order makes the
    sum of a row the same to the last bit whether or not other rows are summed with it.
    """
    if values.size == values.shape[axis]:
        return np.asarray(np.add.accumulate(values, axis=axis).take(-1, axis))
    return np.asarray(values.sum(axis=axis))
