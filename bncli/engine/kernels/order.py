"""A numeric column in ascending order, as runs of equal values and the classes found in each.

Every discretizer starts from the same question: which distinct values are there, in order, and how much weight of
each class lies on each? `ordered` answers it without the order of rows:

    item m = (a value, a class, a weight);  items ascend by value;  values[g] owns the items ends[g-1] .. ends[g]-1

Conventions: -0.0 and 0.0 are one value. Columns that hold small whole numbers are counted in a table and never
sorted; columns whose values fit 32 bits (whole numbers, or numbers that float32 holds exactly) are sorted as one
64-bit key, value and class together, which is about three times faster than sorting row numbers; the rest is
sorted by row number. All three give the same items but for the order inside a value. Cost: one sort, O(N) memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes, Index

Numbers = NDArray[np.generic]
_SIGN = np.uint32(0x80000000)


@dataclass(frozen=True)
class Ordered:
    """Distinct values (D,) ascending, ends (D,) of their items, labels (M,) and weights (M,) of the items.

    Weights keep the type they came in; None means that every item weighs 1. Without rows D = M = 0.
    """

    values: Array
    ends: Index
    labels: Codes
    weights: NDArray[np.generic] | None


def ordered(values: Numbers, labels: Codes, n_labels: int, weights: Numbers | None) -> Ordered:
    """The items of a column: values (N,) finite, labels (N,) below n_labels, weights (N,) or None for all 1."""
    narrow = _narrowed(values)
    if narrow.dtype.kind in "iu":
        low, width = _range(narrow)
        if width * n_labels <= max(4 * len(narrow), 1 << 12):
            return _counted(narrow, low, width, labels, n_labels, weights)
    if weights is None and narrow.dtype.itemsize <= 4 and n_labels <= 1 << 16:
        return _sorted_by_key(narrow, labels)
    return _sorted_by_row(values.astype(np.float64, copy=False), labels, n_labels, weights)


def midpoints(below: Array, above: Array) -> Array:
    """Cuts between neighbouring values: below/2 + above/2 (no overflow), or `below` if that rounds to above."""
    middle = below / 2 + above / 2
    return np.where(middle == above, below, middle) + 0.0


def _narrowed(values: Numbers) -> Numbers:
    """The same numbers as whole numbers of at most 32 bits, else as float32, else as they are."""
    if values.dtype != np.float64 or len(values) == 0:
        return values
    low, high = float(values.min()), float(values.max())
    types: list[type[np.generic]] = [np.int32] if low >= -(2**31) and high < 2**31 else []
    for narrow_type in [*types, np.float32]:
        with np.errstate(over="ignore", under="ignore"):
            sample = values[:1000]
            if (sample == sample.astype(narrow_type)).all():
                narrow: Numbers = values.astype(narrow_type)
                if (narrow == values).all():
                    return narrow
    return values


def _range(values: Numbers) -> tuple[int, int]:
    """The lowest whole number and how many there are up to the highest."""
    if len(values) == 0:
        return 0, 0
    low = int(values.min())
    return low, int(values.max()) - low + 1


def _counted(
    values: Numbers,
    low: int,
    width: int,
    labels: Codes,
    n_labels: int,
    weights: Numbers | None,
) -> Ordered:
    cells = values.astype(np.intp)
    cells -= low
    items = _occupied(cells, labels, width, n_labels, weights)
    present, first = np.unique(items.cells // n_labels, return_index=True)
    return Ordered(
        (present + low).astype(np.float64), np.append(first[1:], len(items.cells)), items.labels, items.weights
    )


@dataclass(frozen=True)
class _Occupied:
    cells: Index
    labels: Codes
    weights: NDArray[np.generic]


def _occupied(
    groups: Index,
    labels: Codes,
    n_groups: int,
    n_labels: int,
    weights: Numbers | None,
) -> _Occupied:
    """The non-empty cells group * n_labels + label, ascending, with their summed weights. Overwrites `groups`."""
    groups *= n_labels
    groups += labels.astype(np.intp)
    table = np.bincount(groups, weights=weights, minlength=n_groups * n_labels)
    cells = np.flatnonzero(table)
    sums = table[cells]
    return _Occupied(
        cells, (cells % max(n_labels, 1)).astype(labels.dtype), sums if weights is None else sums.astype(weights.dtype)
    )


def _sorted_by_key(values: Numbers, labels: Codes) -> Ordered:
    bits, decode = _ordered_bits(values)
    keys = bits.astype(np.uint64)
    keys <<= np.uint64(16)
    keys |= labels.astype(np.uint64)
    keys.sort()
    starts = _run_starts(keys)
    weights = np.diff(np.append(starts, len(keys)))
    keys = keys[starts]
    images = keys >> np.uint64(16)
    firsts = _run_starts(images)
    return Ordered(
        decode(images[firsts]),
        np.append(firsts[1:], len(keys)),
        (keys & np.uint64(0xFFFF)).astype(labels.dtype),
        weights,
    )


def _ordered_bits(values: Numbers) -> tuple[Codes, Callable[[NDArray[np.uint64]], Array]]:
    """Unsigned 32-bit images in the order of the numbers, and the way back."""
    if values.dtype.kind in "iu":
        low, _ = _range(values)
        return (values.astype(np.int64) - low).astype(np.uint32), lambda images: (images.astype(np.int64) + low).astype(
            np.float64
        )
    bits = (values.astype(np.float32, copy=False) + np.float32(0.0)).view(np.uint32)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN), _float_of_bits


def _float_of_bits(images: NDArray[np.uint64]) -> Array:
    bits = images.astype(np.uint32)
    return np.where(bits & _SIGN, bits & ~_SIGN, ~bits).view(np.float32).astype(np.float64)


def _sorted_by_row(values: Array, labels: Codes, n_labels: int, weights: Numbers | None) -> Ordered:
    order = np.argsort(values)
    values, labels = values[order], labels[order]
    weights = None if weights is None else weights[order]
    starts = _run_starts(values)
    ends = np.append(starts[1:], len(values)) if len(values) else starts
    distinct = values[starts] + 0.0
    if 4 * len(distinct) * n_labels >= len(values):
        return Ordered(distinct, ends, labels, weights)
    groups = np.repeat(np.arange(len(distinct)), np.diff(ends, prepend=0))
    items = _occupied(groups, labels, len(distinct), n_labels, weights)
    ends = np.cumsum(np.bincount(items.cells // n_labels, minlength=len(distinct)))
    return Ordered(distinct, ends, items.labels, items.weights)


def _run_starts(ascending: Numbers) -> Index:
    """Positions where a value differs from the one before it, the first position included."""
    if len(ascending) == 0:
        return np.zeros(0, np.intp)
    return np.concatenate(([0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1))
