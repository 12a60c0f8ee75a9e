"""Numeric columns: interval codes, groups of about equal weight, and distinct values in order with their classes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes, Index

_BLOCK = 1 << 14
_MOST_COMPARED = 100
"""Up to this many cuts, comparing beats binary search, and the number of cuts below a value fits a byte."""
Numbers = NDArray[np.generic]
_SIGN = np.uint32(0x80000000)
_SIGN_64 = np.uint64(1 << 63)
_MOST_SCALED = 2.0**31
"""Only numbers below it can be whole multiples of a tenth in 32 bits."""


def interval_codes(values: NDArray[np.generic], cuts: Sequence[float], dtype: np.dtype[np.unsignedinteger]) -> Codes:
    """Return the interval of every value, shape (N,): the number of cuts, given in ascending order, below the value.

        code_t = sum over cuts c of [x_t > c],   intervals (-inf, c1], (c1, c2], ..., (cm, inf)

    Infinities are values; the code of a NaN is arbitrary. Up to a hundred cuts, it is faster (several times if cuts are
    few) to compare a block with one cut after the other and add the results as bytes than to search for each value.
    Integers and float32 are compared in their own width. Cost: 0.2 ns per value and cut by comparing, 5 to 40 ns per
    value by binary search.

    >>> interval_codes(np.array([-1.0, 0.5, 0.6, 9.0]), (0.5, 2.0), np.dtype(np.uint8)).tolist()
    [0, 0, 1, 2]
    """
    if not len(cuts):
        return np.zeros(len(values), dtype)
    n_below_all, thresholds = _thresholds(np.asarray(cuts, np.float64), values.dtype)
    codes = np.full(len(values), n_below_all, dtype)
    for first in range(0, len(values), _BLOCK):
        block = values[first : first + _BLOCK]
        if len(thresholds) <= _MOST_COMPARED:
            n_below = np.zeros(len(block), np.uint8)
            for threshold in thresholds:
                n_below += (block > threshold).view(np.uint8)
            codes[first : first + _BLOCK] += n_below
        else:
            codes[first : first + _BLOCK] += np.searchsorted(thresholds, block).astype(dtype)
    return codes


def _thresholds(cuts: Array, dtype: np.dtype[Any]) -> tuple[int, NDArray[np.generic]]:
    """Return the number of cuts below every number of the type, and the other cuts rounded down to the type.

    For every x of the type, x > c has the same result as before rounding. Cuts at or above the highest integer of the
    type are dropped, since nothing exceeds them.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # a whole number exceeds a cut exactly if it exceeds the whole number below it
        floors = np.floor(cuts)
        inside = floors[(floors >= float(limits.min)) & (floors < float(limits.max))]
        return int(np.count_nonzero(floors < float(limits.min))), inside.astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        rounded = cuts.astype(dtype)
        # a cut rounded upwards would include the values between it and the true cut
        return 0, np.where(rounded > cuts, np.nextafter(rounded, dtype.type(-np.inf)), rounded)


def group_ends(mass: Array, n_groups: int) -> list[int]:
    """Divide a sequence into about `n_groups` groups of equal weight; return the end of each group but the last.

    mass (any,) is the weight of every element. The end of a group is the position of its last element; the ends ascend.
    Plain quantiles collapse if one element holds much of the weight: most of them fall into it, and the rest is left in
    one group. So an element that alone holds more than total / n_groups gets a group of its own, and the remaining
    groups go to the remaining elements at equal weight.

    Conventions: the heavy elements split the others into stretches; every stretch gets one group, and each further
    group goes to the stretch with the most weight per group (ties: the first). So there are at most n_groups, unless
    the heavy elements leave more stretches than groups. Inside a stretch the next group ends at the element where its
    weight comes closest to the remaining weight over the remaining groups (ties: the earlier end), but early enough to
    leave one element to each of them. Cost: linear, and a binary search per group.

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
    weights = [float(running[b] - running[a]) for a, b in stretches]
    shares = _share_groups(weights, n_groups - len(heavy))
    ends = set(heavy.tolist())
    for (start, stop), share in zip(stretches, shares, strict=True):
        for left in range(min(share, stop - start), 1, -1):
            target = running[start] + (running[stop] - running[start]) / left
            end = int(np.searchsorted(running[start + 1 : stop + 1], target)) + start
            if end > start and target - running[end] <= running[end + 1] - target:
                end -= 1
            # at least one element stays for each of the remaining groups
            end = min(end, stop - left)
            ends.add(end)
            start = end + 1
        ends.add(stop - 1)
    return sorted(ends - {len(mass) - 1})


def _share_groups(weights: list[float], n_groups: int) -> list[int]:
    """Return the number of groups that each stretch gets, given the weights of the stretches."""
    if len(weights) == 1:
        return [max(1, n_groups)]
    shares = [1] * len(weights)
    # the heap orders equal weights per group by stretch
    waiting = [(-weight, s) for s, weight in enumerate(weights)]
    heapq.heapify(waiting)
    for _ in range(n_groups - len(weights) if weights else 0):
        neediest = waiting[0][1]
        shares[neediest] += 1
        heapq.heapreplace(waiting, (-weights[neediest] / shares[neediest], neediest))
    return shares


@dataclass(frozen=True)
class Ordered:
    """The distinct values (D,) of a column, ascending, and its items: their ends (D,), labels (M,) and weights (M,).

    An item is a value, a class and the weight of the class on the value; values[g] has the items ends[g-1] ..
    ends[g]-1. Weights keep their type; None means that every item weighs 1. Without rows D = M = 0.
    """

    values: Array
    ends: Index
    labels: Codes
    weights: NDArray[np.generic] | None


def ordered(values: Numbers, labels: Codes, n_labels: int, weights: Numbers | None) -> Ordered:
    """Return a column's distinct values in ascending order, each with the weight of every class that it occurs with.

    values (N,) finite, labels (N,) below n_labels, weights (N,) or None for all 1. The result does not depend on the
    order of rows, apart from the order of items within a value. -0.0 and 0.0 are one value. Cost: one sort, O(N)
    memory. Columns of small whole numbers are counted in a table and never sorted. Columns whose values fit 32 bits
    (whole numbers, or numbers that float32 holds exactly) are sorted by 64-bit keys that hold value and class, about
    three times faster than by row number. Other unweighted numbers are sorted twice, alone and with the class in place
    of their lowest bits, which is also faster unless two of them differ only in these bits. All others are sorted by
    row number. Numbers of at most four decimals are ordered as whole numbers.
    """
    narrow = _narrowed(values)
    if narrow.dtype == np.float64 and (scaled := _whole_multiples(narrow.astype(np.float64, copy=False))) is not None:
        scale, multiples = scaled
        column = ordered(multiples, labels, n_labels, weights)
        return replace(column, values=column.values / scale)
    if narrow.dtype.kind in "iu":
        low = int(narrow.min()) if len(narrow) else 0
        width = int(narrow.max()) - low + 1 if len(narrow) else 0
        if width * n_labels <= max(4 * len(narrow), 1 << 12):
            groups = narrow.astype(np.intp)
            groups -= low
            cells, item_labels, item_weights = _occupied_cells(groups, labels, width, n_labels, weights)
            present, first = np.unique(cells // n_labels, return_index=True)
            ends = np.append(first[1:], len(cells))
            return Ordered((present + low).astype(np.float64), ends, item_labels, item_weights)
    if weights is None and n_labels <= 1 << 16 and len(values):
        if narrow.dtype.itemsize <= 4:
            return _sort_by_key(narrow, labels)
        found = _sort_twice(values.astype(np.float64, copy=False), labels, n_labels)
        if found is not None:
            return found
    return _sort_by_row(values.astype(np.float64, copy=False), labels, n_labels, weights)


def _narrowed(values: Numbers) -> Numbers:
    """Return the same numbers as whole numbers of at most 32 bits, else as float32, else unchanged."""
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


def _whole_multiples(values: Array) -> tuple[float, Numbers] | None:
    """Return a power of ten and values * power as 32-bit integers, or None if dividing does not restore each value."""
    if len(values) == 0 or not max(-float(values.min()), float(values.max())) < _MOST_SCALED:
        return None
    sample = values[:1000]
    for scale in (10.0, 100.0, 1000.0, 10_000.0):
        if (np.rint(sample * scale) / scale == sample).all():
            multiples = np.rint(values * scale)
            if np.abs(multiples).max() < 2**31 and (multiples / scale == values).all():
                return scale, multiples.astype(np.int32)
    return None


def _occupied_cells(
    groups: Index, labels: Codes, n_groups: int, n_labels: int, weights: Numbers | None
) -> tuple[Index, Codes, Numbers]:
    """Return the nonempty cells group * n_labels + label, ascending, with labels and weights; overwrite `groups`."""
    groups *= n_labels
    groups += labels.astype(np.intp)
    table = np.bincount(groups, weights=weights, minlength=n_groups * n_labels)
    cells = np.flatnonzero(table)
    sums = table[cells]
    cell_labels = (cells % max(n_labels, 1)).astype(labels.dtype)
    return cells, cell_labels, sums if weights is None else sums.astype(weights.dtype)


def _sort_by_key(values: Numbers, labels: Codes) -> Ordered:
    """Order 32-bit values by sorting 64-bit keys: an order-preserving unsigned image of the value, then the label."""
    are_integers = values.dtype.kind in "iu"
    low = int(values.min()) if are_integers and len(values) else 0
    if are_integers:
        bits = (values.astype(np.int64) - low).astype(np.uint32)
    else:
        signed = (values.astype(np.float32, copy=False) + np.float32(0.0)).view(np.uint32)
        bits = np.where(signed & _SIGN, ~signed, signed | _SIGN)
    keys = bits.astype(np.uint64)
    keys <<= np.uint64(16)
    keys |= labels.astype(np.uint64)
    keys.sort()
    starts = _run_starts(keys)
    weights = np.diff(np.append(starts, len(keys)))
    keys = keys[starts]
    images = keys >> np.uint64(16)
    firsts = _run_starts(images)
    if are_integers:
        distinct = (images[firsts].astype(np.int64) + low).astype(np.float64)
    else:
        bits = images[firsts].astype(np.uint32)
        distinct = np.where(bits & _SIGN, bits & ~_SIGN, ~bits).view(np.float32).astype(np.float64)
    ends = np.append(firsts[1:], len(keys))
    return Ordered(distinct, ends, (keys & np.uint64(0xFFFF)).astype(labels.dtype), weights)


def _sort_twice(values: Array, labels: Codes, n_labels: int) -> Ordered | None:
    """Order 64-bit values by sorting them alone, and by sorting keys of their leading bits and the label.

    Return None if the leading bits, of an order-preserving unsigned image, do not tell all values apart. If they do,
    a value and its labels have the same positions in both orders. Sorting numbers is several times faster than sorting
    row numbers.
    """
    n_bits = np.uint64(max(n_labels - 1, 1).bit_length())
    signed = (values + 0.0).view(np.int64)
    # negative numbers: all bits flip; others: the sign bit does
    images = (signed >> 63).view(np.uint64)
    images |= _SIGN_64
    images ^= signed.view(np.uint64)
    keys = images >> n_bits
    keys <<= n_bits
    keys |= labels.astype(np.uint64)
    keys.sort()
    images.sort()
    starts = _run_starts(images)
    if ((keys[starts[1:]] ^ keys[starts[1:] - 1]) >> n_bits == 0).any():
        return None
    distinct = images[starts]
    distinct ^= (~distinct.view(np.int64) >> 63).view(np.uint64) | _SIGN_64
    found = distinct.view(np.float64)
    ends = np.append(starts[1:], len(values))
    weights = None
    if 4 * len(found) * n_labels < len(values):
        items = _run_starts(keys)
        keys, ends, weights = keys[items], np.searchsorted(items, ends), np.diff(items, append=len(keys))
    own_labels = keys & ((np.uint64(1) << n_bits) - np.uint64(1))
    return Ordered(found, ends, own_labels.astype(labels.dtype), weights)


def _sort_by_row(values: Array, labels: Codes, n_labels: int, weights: Numbers | None) -> Ordered:
    order = np.argsort(values)
    values, labels = values[order], labels[order]
    weights = None if weights is None else weights[order]
    starts = _run_starts(values)
    ends = np.append(starts[1:], len(values)) if len(values) else starts
    distinct = values[starts] + 0.0
    if 4 * len(distinct) * n_labels >= len(values):
        return Ordered(distinct, ends, labels, weights)
    groups = np.repeat(np.arange(len(distinct)), np.diff(ends, prepend=0))
    cells, item_labels, item_weights = _occupied_cells(groups, labels, len(distinct), n_labels, weights)
    ends = np.cumsum(np.bincount(cells // n_labels, minlength=len(distinct)))
    return Ordered(distinct, ends, item_labels, item_weights)


def _run_starts(ascending: Numbers) -> Index:
    """Return the positions at which a value differs from the one before it, the first position included."""
    if len(ascending) == 0:
        return np.zeros(0, np.intp)
    return np.concatenate(([0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1))


def midpoints(below: Array, above: Array) -> Array:
    """Return cuts between neighbouring values: below/2 + above/2, or `below` where that rounds to `above`.

    >>> midpoints(np.array([1.0, 1e308]), np.array([2.0, 1.5e308])).tolist()
    [1.5, 1.25e+308]
    """
    middle = below / 2 + above / 2
    return np.where(middle == above, below, middle) + 0.0


def round_cuts(cuts: Sequence[float], values: NDArray[np.generic]) -> tuple[float, ...]:
    """Return cuts with few digits, each strictly between the two of the values that its cut lies between.

    Of the numbers with the fewest digits, the one nearest to the cut is taken. A cut stays if no number is found.

    >>> round_cuts([0.24864999999999998, 1.5, 10_234.5], np.array([0.2482, 0.2491, 1, 2, 10_178, 10_291]))
    (0.249, 1.5, 10200.0)
    """
    distinct = np.unique(values).astype(np.float64)
    above = np.searchsorted(distinct, cuts, side="right")
    rounded = []
    for cut, low, high in zip(cuts, distinct[above - 1].tolist(), distinct[above].tolist(), strict=True):
        first = -math.ceil(math.log10(high - low)) if high - low < 1e300 else 0  # larger numbers may overflow
        numbers = (round(cut, digits) + 0.0 for digits in range(first, first + 4))
        rounded.append(next((number for number in numbers if low < number < high), cut))
    return tuple(rounded)


def whole_units(weights: Array | None) -> tuple[NDArray[np.int64] | None, float]:
    """Return the weights as integer multiples of a unit, and the unit; None and 1 if there are no weights.

    The unit is 1 if the weights are whole numbers, else about 2^-52 of their sum. Sums of integers are exact, so that
    the order of rows cannot change the last digit.
    """
    if weights is None or len(weights) == 0:
        return None, 1.0
    largest = math.frexp(float(weights.max()))[1]
    bits = largest + math.frexp(float(np.ldexp(weights, -largest).sum()))[1]  # total < 2^bits, without overflow
    are_integers = bits <= 52 and bool((weights == np.rint(weights)).all())
    unit = 1.0 if are_integers else max(math.ldexp(1.0, bits - 52), 5e-324)
    return np.rint(weights / unit).astype(np.int64), unit
