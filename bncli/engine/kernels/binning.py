"""From numbers to interval codes: the number of cuts that lie strictly below each value.

    code_t = sum over cuts c of [x_t > c],   intervals (-inf, c1], (c1, c2], ..., (cm, inf)

Up to a hundred cuts, comparing a block with one cut after the other and adding the outcomes as bytes beats a binary
search for each value, several times where cuts are few. Whole numbers and float32 are compared in their own width.
Cost: 0.2 ns a value and cut by comparing, 5 to 40 ns a value by binary search.

Neighbours joined to groups of equal weight, as far as they allow: what is heavy stands alone.

Plain quantiles collapse where one element holds much of the weight: most of them fall into it, and the rest is left in
one group. So an element that alone holds more than its share of the weight, total / B, gets a group of its own, and the
remaining groups go to the remaining elements at equal weight.

Conventions: the heavy elements split the row into stretches; every stretch gets one group, and each group still to give
goes to the stretch with the most weight per group (ties: the first). So there are at most B groups, unless the heavy
elements leave more stretches than groups. Inside a stretch the next group ends at the element where its weight comes
closest to what remains over the groups that remain (ties: the earlier end), which is never later than leaves one
element to each of them. Cost: linear, and a binary search a group.

A numeric column in ascending order, as runs of equal values and the classes found in each.

Every discretizer starts from the same question: which distinct values are there, in order, and how much weight of each
class lies on each? `ordered` answers it without the order of rows:

    item m = (a value, a class, a weight);  items ascend by value;  values[g] owns the items ends[g-1] .. ends[g]-1

Conventions: -0.0 and 0.0 are one value. Columns that hold small whole numbers are counted in a table and never sorted;
columns whose values fit 32 bits (whole numbers, or numbers that float32 holds exactly) are sorted as one 64-bit key,
value and class together, which is about three times faster than sorting row numbers; the rest is sorted by row number.
All three give the same items but for the order inside a value. Cost: one sort, O(N) memory.

Weights as whole numbers, so that sums of them are exact and the order of rows cannot show in the last digit.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes, Index

_BLOCK = 1 << 14
_CUTS_COMPARED = 100
"""Up to so many cuts comparing beats binary search; their sum fits a byte."""
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


@dataclass(frozen=True)
class _Occupied:
    cells: Index
    labels: Codes
    weights: NDArray[np.generic]


def interval_codes(values: NDArray[np.generic], cuts: Sequence[float], dtype: np.dtype[np.unsignedinteger]) -> Codes:
    """Interval of every value, shape (N,); cuts ascending. Infinities are values; the code of a NaN is arbitrary.

    >>> interval_codes(np.array([-1.0, 0.5, 0.6, 9.0]), (0.5, 2.0), np.dtype(np.uint8)).tolist()
    [0, 0, 1, 2]
    """
    if not len(cuts):
        return np.zeros(len(values), dtype)
    below_all, thresholds = _thresholds(np.asarray(cuts, np.float64), values.dtype)
    codes = np.full(len(values), below_all, dtype)
    for first in range(0, len(values), _BLOCK):
        block = slice(first, first + _BLOCK)
        if len(thresholds) <= _CUTS_COMPARED:
            codes[block] += _compared(values[block], thresholds)
        else:
            codes[block] += np.searchsorted(thresholds, values[block]).astype(dtype)
    return codes


def _thresholds(cuts: Array, dtype: np.dtype[Any]) -> tuple[int, NDArray[np.generic]]:
    """Return how many cuts lie below every number of the type, and the others rounded down to the type.

    X > c stays as it was.

    Cuts at or above the highest number of the type drop out: nothing exceeds them.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # a whole number exceeds a cut just where it exceeds the whole number below it
        floors = np.floor(cuts)
        inside = floors[(floors >= float(limits.min)) & (floors < float(limits.max))]
        return int(np.count_nonzero(floors < float(limits.min))), inside.astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        rounded = cuts.astype(dtype)
        # a cut rounded upwards would swallow the values between it and the true cut
        return 0, np.where(rounded > cuts, np.nextafter(rounded, dtype.type(-np.inf)), rounded)


def _compared(values: NDArray[np.generic], thresholds: NDArray[np.generic]) -> NDArray[np.uint8]:
    total = np.zeros(len(values), np.uint8)
    for threshold in thresholds:
        total += (values > threshold).view(np.uint8)
    return total


def group_ends(mass: Array, n_groups: int) -> list[int]:
    """Return the last element of each of about `n_groups` groups, ascending; the last of all is left out. mass (any,).

    >>> group_ends(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 3)  # {0, 1}, {2, 3}, {4, 5}
    [1, 3]
    >>> group_ends(np.array([1.0, 1.0, 9.0, 1.0, 1.0, 1.0]), 3)  # the heavy one alone: {0, 1}, {2}, {3, 4, 5}
    [1, 2]
    """
    heavy = np.flatnonzero(mass > mass.sum() / n_groups)
    starts = np.concatenate(([0], heavy + 1))
    stops = np.append(heavy, len(mass))
    stretches = [(int(a), int(b)) for a, b in zip(starts, stops, strict=True) if a < b]
    running = np.concatenate(([0.0], np.cumsum(mass)))
    shares = _shares([float(running[b] - running[a]) for a, b in stretches], n_groups - len(heavy))
    ends = set(heavy.tolist())
    for (start, stop), share in zip(stretches, shares, strict=True):
        ends.update(_ends(running, start, stop, share))
    return sorted(ends - {len(mass) - 1})


def _shares(weights: list[float], n_groups: int) -> list[int]:
    """Return how many groups each stretch gets."""
    if len(weights) == 1:
        return [max(1, n_groups)]
    shares = [1] * len(weights)
    # the first of equals is the least of them
    waiting = [(-weight, s) for s, weight in enumerate(weights)]
    heapq.heapify(waiting)
    for _ in range(n_groups - len(weights) if weights else 0):
        neediest = waiting[0][1]
        shares[neediest] += 1
        heapq.heapreplace(waiting, (-weights[neediest] / shares[neediest], neediest))
    return shares


def _ends(running: Array, start: int, stop: int, n_groups: int) -> list[int]:
    """Return the last element of each group of the stretch start .. stop - 1.

    Running[g] is the weight of all before g.
    """
    ends: list[int] = []
    for left in range(min(n_groups, stop - start), 1, -1):
        target = running[start] + (running[stop] - running[start]) / left
        end = int(np.searchsorted(running[start + 1 : stop + 1], target)) + start
        if end > start and target - running[end] <= running[end + 1] - target:
            end -= 1
        # at least one element stays for each of the groups to come
        start = min(end, stop - left) + 1
        ends.append(start - 1)
    return [*ends, stop - 1]


def ordered(values: Numbers, labels: Codes, n_labels: int, weights: Numbers | None) -> Ordered:
    """Return the items of a column: values (N,) finite, labels (N,) below n_labels, weights (N,) or None for all 1."""
    narrow = _narrowed(values)
    if narrow.dtype.kind in "iu":
        low, width = _range(narrow)
        if width * n_labels <= max(4 * len(narrow), 1 << 12):
            cells = narrow.astype(np.intp)
            cells -= low
            items = _occupied(cells, labels, width, n_labels, weights)
            present, first = np.unique(items.cells // n_labels, return_index=True)
            return Ordered(
                (present + low).astype(np.float64), np.append(first[1:], len(items.cells)), items.labels, items.weights
            )
    if weights is None and narrow.dtype.itemsize <= 4 and n_labels <= 1 << 16:
        return _sorted_by_key(narrow, labels)
    return _sorted_by_row(values.astype(np.float64, copy=False), labels, n_labels, weights)


def _narrowed(values: Numbers) -> Numbers:
    """Return the same numbers as whole numbers of at most 32 bits, else as float32, else as they are."""
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
    """Return the lowest whole number and how many there are up to the highest."""
    if len(values) == 0:
        return 0, 0
    low = int(values.min())
    return low, int(values.max()) - low + 1


def _occupied(
    groups: Index,
    labels: Codes,
    n_groups: int,
    n_labels: int,
    weights: Numbers | None,
) -> _Occupied:
    """Return the non-empty cells group * n_labels + label, ascending, and their weights. Overwrites `groups`."""
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


def _run_starts(ascending: Numbers) -> Index:
    """Return positions where a value differs from the one before it, the first position included."""
    if len(ascending) == 0:
        return np.zeros(0, np.intp)
    return np.concatenate(([0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1))


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


def midpoints(below: Array, above: Array) -> Array:
    """Return cuts between neighbouring values: below/2 + above/2 (no overflow), or `below` if that rounds to above.

    >>> midpoints(np.array([1.0, 1e308]), np.array([2.0, 1.5e308])).tolist()
    [1.5, 1.25e+308]
    """
    middle = below / 2 + above / 2
    return np.where(middle == above, below, middle) + 0.0


def whole_units(weights: Array | None) -> tuple[NDArray[np.int64] | None, float]:
    """Return the weights as integers: multiples of 1 if they are whole numbers, else of about 2^-52 of their sum."""
    if weights is None or len(weights) == 0:
        return None, 1.0
    largest = math.frexp(float(weights.max()))[1]
    bits = largest + math.frexp(float(np.ldexp(weights, -largest).sum()))[1]  # total < 2^bits, whatever overflows
    whole = bits <= 52 and bool((weights == np.rint(weights)).all())
    unit = 1.0 if whole else max(math.ldexp(1.0, bits - 52), 5e-324)
    return np.rint(weights / unit).astype(np.int64), unit
