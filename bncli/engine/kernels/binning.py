"""Numeric columns: interval codes, groups of about equal weight, and distinct values in order with their classes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes, Index, Mask

_BLOCK = 1 << 14
_MOST_COMPARED = 100
"""With at most this many cuts, comparing is faster than binary search, and the number of cuts below fits in a byte."""
Numbers = NDArray[np.generic]
_MOST_SCALED = 2.0**31
"""If a magnitude is at least this, the values cannot be 32-bit integer multiples of a tenth."""


def interval_codes(values: NDArray[np.generic], cuts: Sequence[float], dtype: np.dtype[np.unsignedinteger]) -> Codes:
    """Return the interval of every value, (N,): the number of cuts below the value; cuts are in ascending order.

        code_t = sum over cuts c of [x_t > c],   intervals (-inf, c1], (c1, c2], ..., (cm, inf)

    Infinities are compared like other values; the code of NaN is unspecified. With at most a hundred cuts, comparing a
    block of values with one cut after the other, and adding the results as bytes, is faster than a binary search for
    each value (several times faster if there are few cuts). Integers and float32 are compared in their own type. Cost:
    0.2 ns per value and cut by comparing, 5 to 40 ns per value by binary search.

    >>> interval_codes(np.array([-1.0, 0.5, 0.6, 9.0]), (0.5, 2.0), np.dtype(np.uint8)).tolist()
    [0, 0, 1, 2]
    """
    if not len(cuts):
        return np.zeros(len(values), dtype)
    n_below_all, thresholds = _thresholds(np.asarray(cuts, np.float64), values.dtype)
    codes, is_above = np.full(len(values), n_below_all, dtype), np.empty(_BLOCK, np.bool_)
    for first in range(0, len(values), _BLOCK):
        block = values[first : first + _BLOCK]
        if len(thresholds) <= _MOST_COMPARED:
            n_below = np.zeros(len(block), np.uint8)
            exceeds = is_above[: len(block)]
            for threshold in thresholds:
                np.greater(block, threshold, out=exceeds)
                n_below += exceeds.view(np.uint8)
            codes[first : first + _BLOCK] += n_below
        else:
            codes[first : first + _BLOCK] += np.searchsorted(thresholds, block).astype(dtype)
    return codes


def _thresholds(cuts: Array, dtype: np.dtype[Any]) -> tuple[int, NDArray[np.generic]]:
    """Return the number of cuts below every value of the type, and the other cuts rounded down to the type.

    For every x of the type, x > c has the same result as before rounding. For an integer type, cuts at or above its
    maximum are dropped, since no value exceeds them. For a floating-point type, the number is 0 and all cuts are kept.
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

    mass (M,) is the weight of each element. The end of a group is the position of its last element; ends are in
    ascending order. Plain quantiles collapse if one element holds much of the weight: most of them coincide with it,
    and the other elements end up in one group. So an element that alone holds more than total / n_groups gets a group
    of its own, and the remaining elements are divided into the remaining groups by equal weight.

    Conventions: the heavy elements split the others into stretches; every stretch gets one group, and each further
    group goes to the stretch with the most weight per group (ties: the first). So there are at most n_groups groups,
    unless the heavy elements and the stretches alone are more. Inside a stretch the next group ends at the element
    where its weight comes closest to the remaining weight divided by the number of remaining groups (ties: the earlier
    end), but early enough to leave one element for each of the other groups. Cost: linear, plus a binary search per
    group.

    >>> group_ends(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 3)  # {0, 1}, {2, 3}, {4, 5}
    [1, 3]
    >>> group_ends(np.array([1.0, 1.0, 9.0, 1.0, 1.0, 1.0]), 3)  # the heavy one alone: {0, 1}, {2}, {3, 4, 5}
    [1, 2]
    """
    heavy = np.flatnonzero(mass > mass.sum() / n_groups)
    # stretch s is mass[starts[s] : stops[s]]; running[b] - running[a] is the weight of mass[a : b]
    starts = np.concatenate(([0], heavy + 1))
    stops = np.append(heavy, len(mass))
    stretches = [(int(a), int(b)) for a, b in zip(starts, stops, strict=True) if a < b]
    running = np.concatenate(([0.0], np.cumsum(mass)))
    weights = [float(running[b] - running[a]) for a, b in stretches]
    # the number of groups of each stretch
    shares, n_light = [1] * len(weights), n_groups - len(heavy)
    if len(weights) == 1:
        shares = [max(1, n_light)]
    else:
        # the heap orders equal weights per group by stretch
        waiting = [(-weight, s) for s, weight in enumerate(weights)]
        heapq.heapify(waiting)
        for _ in range(n_light - len(weights) if weights else 0):
            neediest = waiting[0][1]
            shares[neediest] += 1
            heapq.heapreplace(waiting, (-weights[neediest] / shares[neediest], neediest))
    ends = set(heavy.tolist())
    for (start, stop), share in zip(stretches, shares, strict=True):
        for left in range(min(share, stop - start), 1, -1):
            # what is left, divided evenly among the groups that are left
            target = running[start] + (running[stop] - running[start]) / left
            end = int(np.searchsorted(running[start + 1 : stop + 1], target)) + start
            # `end` is the first element with which the group reaches the target; it may come closer without it
            if end > start and target - running[end] <= running[end + 1] - target:
                end -= 1
            # at least one element stays for each of the remaining groups
            end = min(end, stop - left)
            ends.add(end)
            start = end + 1
        ends.add(stop - 1)
    return sorted(ends - {len(mass) - 1})


@dataclass(frozen=True)
class Ordered:
    """A numeric column as M items sorted by value; an item consists of a value, a class and a weight.

    - keys (M,): an encoding of the values; `decode` converts some of the keys to values
    - labels (M,): the classes
    - weights (M,): the weights in their original type, or None if every item has weight 1
    - is_last (M,): whether the next item has another value; True for the last item
    """

    keys: NDArray[Any]
    decode: Callable[[NDArray[Any]], Array]
    labels: Codes
    weights: NDArray[np.generic] | None
    is_last: Mask

    def values_of(self, items: Index) -> Array:
        """Return the values of the items at these positions."""
        return self.decode(self.keys[items])

    @property
    def ends(self) -> Index:
        """The position one past the last item of each distinct value, (D,)."""
        return np.flatnonzero(self.is_last) + 1

    @property
    def values(self) -> Array:
        """The distinct values (D,) in ascending order."""
        return self.values_of(self.ends - 1)


def ordered(values: Numbers, labels: Codes, n_labels: int, weights: Numbers | None) -> Ordered:
    """Return the items of a column, sorted by value.

    values (N,) are finite, labels (N,) below n_labels, weights (N,) or None if all are 1. -0.0 and 0.0 are one value.
    The order of rows affects only the order and merging of items within a value, and the rounding of summed weights.

    Cost: one sort, O(N) memory. Integers from a small range are counted in a table instead of being sorted. Other
    columns without weights are sorted by keys that hold value and class in 32 bits or, if they do not fit, in 64 bits,
    several times faster than by `np.argsort`. Sorted rows with the same value and class are merged into one item only
    if that clearly reduces their number. Values with at most four decimals are ordered as integers if these fit in 32
    bits.
    """
    narrow = _narrowed(values)
    if narrow.dtype == np.float64 and (scaled := _whole_multiples(narrow.astype(np.float64, copy=False))) is not None:
        scale, multiples = scaled
        column = ordered(multiples, labels, n_labels, weights)
        return replace(column, decode=lambda keys: column.decode(keys) / scale)
    if narrow.dtype.kind in "iu":
        low = int(narrow.min()) if len(narrow) else 0
        width = int(narrow.max()) - low + 1 if len(narrow) else 0
        if width * n_labels <= max(4 * len(narrow), 1 << 12):
            cells, item_labels, item_weights = _occupied_cells(narrow, low, labels, width, n_labels, weights)
            numbers = cells // max(n_labels, 1)
            return Ordered(
                numbers, lambda keys: (keys + low).astype(np.float64), item_labels, item_weights, _last(numbers)
            )
    if weights is None and len(values):
        found = _sort_by_key(narrow, labels, n_labels)
        if found is not None:
            return found
    # sorted by row number
    in_order = values.astype(np.float64, copy=False)
    order = np.argsort(in_order)
    in_order, labels = in_order[order] + 0.0, labels[order]
    weights = None if weights is None else weights[order]
    is_last = _last(in_order)
    ends = np.flatnonzero(is_last) + 1
    if 4 * len(ends) * n_labels < len(in_order):
        groups = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        cells, labels, weights = _occupied_cells(groups, 0, labels, len(ends), n_labels, weights)
        numbers = cells // n_labels
        in_order, is_last = in_order[ends - 1][numbers], _last(numbers)
    return Ordered(in_order, np.copy, labels, weights, is_last)


def _narrowed(values: Numbers) -> Numbers:
    """Return float64 values as int32 or else float32, if that type represents all of them exactly.

    If neither does, or if the values have another type or are empty, return them unchanged.
    """
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
    """Return the lowest power of ten from 10 to 10,000 that makes all values 32-bit integers, and these integers.

    Dividing an integer by the power must restore the value exactly; return None if no power satisfies this.
    """
    if len(values) == 0 or not max(-float(values.min()), float(values.max())) < _MOST_SCALED:
        return None
    sample = values[:1000]
    for scale in (10.0, 100.0, 1000.0, 10_000.0):
        if (np.rint(sample * scale) / scale == sample).all():
            multiples = np.empty(len(values), np.int32)
            for first in range(0, len(values), _BLOCK):
                block = values[first : first + _BLOCK]
                whole = np.rint(block * scale)
                if not np.abs(whole).max() < 2**31 or not (whole / scale == block).all():
                    break
                multiples[first : first + _BLOCK] = whole
            else:
                return scale, multiples
    return None


def _occupied_cells(
    numbers: Numbers, low: int, labels: Codes, width: int, n_labels: int, weights: Numbers | None
) -> tuple[Index, Codes, Numbers]:
    """Return the cells (number - low) * n_labels + label of nonzero weight, ascending, and their labels and weights."""
    n_cells = width * n_labels
    table = np.zeros(n_cells, np.int64)
    # weights are added in row order in a single pass, so that sums round as in one bincount
    size = len(numbers) if weights is not None else max(_BLOCK, n_cells)
    for first in range(0, len(numbers), max(size, 1)):
        cells = numbers[first : first + size].astype(np.intp)
        cells -= low
        cells *= n_labels
        cells += labels[first : first + size]
        if weights is None:
            table += np.bincount(cells, minlength=n_cells)
        else:
            table = np.bincount(cells, weights, n_cells)
    cells = np.flatnonzero(table)
    sums = table[cells]
    cell_labels = (cells % max(n_labels, 1)).astype(labels.dtype)
    return cells, cell_labels, sums if weights is None else sums.astype(weights.dtype)


def _sort_by_key(values: Numbers, labels: Codes, n_labels: int) -> Ordered | None:
    """Order unweighted values by sorting keys of value and label; return None if the keys do not fit in 64 bits.

    The bits of floating-point values without their signs, read as integers, are in the order of the magnitudes. The
    integers between 0 and the smallest nonzero magnitude of a column do not occur, so they are skipped. Thus 64 bits
    hold magnitudes that span up to about a thousand powers of two, a sign and a label.
    """
    is_float = values.dtype.kind == "f"
    if values.dtype not in (np.float32, np.float64) and (is_float or values.dtype.itemsize == 8):
        values, is_float = values.astype(np.float64), True
    n_bits = max(n_labels - 1, 0).bit_length()
    ends = np.array([values.min(), values.max()])
    gap = 0
    if is_float:
        # 0 keeps the integer 0, and the smallest magnitude gets 1
        gap = max(int(_bits(np.array([_smallest_magnitude(values)], values.dtype))[0]) - 1, 0)
        ends = _images(ends, gap)
    low, high = ends.tolist()
    size = (high - low).bit_length() + n_bits
    if size > 64:
        return None
    key_type = np.dtype(np.uint32 if size <= 32 else np.uint64)
    keys = np.empty(len(values), key_type)
    for first in range(0, len(values), _BLOCK):
        rows = slice(first, first + _BLOCK)
        # differences that exceed int64 wrap around modulo 2^64, so they are right as unsigned numbers
        own = _images(values[rows], gap) if is_float else values[rows].astype(np.int64)
        own -= low
        own <<= n_bits
        own |= labels[rows]
        keys[rows] = own
    keys.sort()

    def decode(keys: NDArray[Any]) -> Array:
        images = (keys >> key_type.type(n_bits)).astype(np.int64) + low
        if not is_float:
            return np.asarray(images, np.float64)
        is_negative = images < 0
        # ~m = -m - 1 stands for a negative number, as in `_images`
        magnitudes = np.where(is_negative, ~images, images)
        magnitudes += np.where(magnitudes > 0, gap, 0)
        integer = np.int32 if values.dtype == np.float32 else np.int64
        numbers = magnitudes.astype(integer).view(values.dtype).astype(np.float64)
        return np.asarray(np.where(is_negative, -numbers, numbers), np.float64)

    weights = None
    is_new = keys[1:] != keys[:-1]
    if 2 * np.count_nonzero(is_new) < len(keys):
        starts = np.append(0, np.flatnonzero(is_new) + 1)
        weights = np.diff(starts, append=len(keys))
        keys = keys[starts]
    item_labels, is_last = np.empty(len(keys), labels.dtype), np.ones(len(keys), np.bool_)
    shift, mask = key_type.type(n_bits), key_type.type((1 << n_bits) - 1)
    for first in range(0, len(keys), _BLOCK):
        rows = slice(first, first + _BLOCK)
        item_labels[rows] = keys[rows] & mask
        # with the first key of the next block; the last key of all has no next one and stays the last of its value
        numbers = keys[first : first + _BLOCK + 1] >> shift
        is_last[first : first + len(numbers) - 1] = numbers[1:] != numbers[:-1]
    return Ordered(keys, decode, item_labels, weights, is_last)


def _bits(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the bits of float32 or float64 values as int64; -0.0 has the same bits as 0.0."""
    integer = np.int32 if values.dtype == np.float32 else np.int64
    bits: NDArray[Any] = (values + values.dtype.type(0.0)).view(integer)
    return bits.astype(np.int64, copy=False)


def _images(values: Numbers, gap: int) -> NDArray[np.int64]:
    """Return an int64 for each float32 or float64 value, in the same order.

    With m = max(bits of |x| - gap, 0), a value x >= 0 becomes m, and x < 0 becomes -m - 1. `gap` is the number of
    unused integers between 0 and the bits of the smallest nonzero magnitude.
    """
    bits = _bits(values)
    # 0, or -1 for a negative number, whose exclusive or with m is ~m = -m - 1
    signs = bits >> 63
    bits &= np.iinfo(np.int32 if values.dtype == np.float32 else np.int64).max
    bits -= gap
    np.maximum(bits, 0, out=bits)
    bits ^= signs
    return bits


def _smallest_magnitude(values: Numbers) -> float:
    """Return the smallest nonzero magnitude, or infinity if all values are 0."""
    smallest = np.inf
    for first in range(0, len(values), _BLOCK):
        magnitudes = np.abs(values[first : first + _BLOCK])
        least = float(magnitudes.min())
        if least == 0:
            least = float(magnitudes.min(where=magnitudes > 0, initial=np.inf))
        smallest = min(smallest, least)
    return smallest


def _last(ascending: Numbers) -> Mask:
    """Return for each value of a sorted array whether the next one differs; True for the last value."""
    is_last = np.ones(len(ascending), np.bool_)
    is_last[:-1] = ascending[1:] != ascending[:-1]
    return is_last


def midpoints(below: Array, above: Array) -> Array:
    """Return a cut between each pair of neighbouring values: below/2 + above/2, or `below` if that rounds to `above`.

    >>> midpoints(np.array([1.0, 1e308]), np.array([2.0, 1.5e308])).tolist()
    [1.5, 1.25e+308]
    """
    middle = below / 2 + above / 2
    return np.where(middle == above, below, middle) + 0.0


def round_cuts(cuts: Sequence[float], values: NDArray[np.generic]) -> tuple[float, ...]:
    """Round each cut to as few decimals as possible, strictly between the two values that the cut separates.

    A cut that cannot be rounded in this way is kept.

    >>> round_cuts([0.24864999999999998, 1.5, 10_234.5], np.array([0.2482, 0.2491, 1, 2, 10_178, 10_291]))
    (0.249, 1.5, 10200.0)
    """
    distinct = np.unique(values).astype(np.float64)
    # the first value above each cut
    above = np.searchsorted(distinct, cuts, side="right")
    rounded = []
    for cut, low, high in zip(cuts, distinct[above - 1].tolist(), distinct[above].tolist(), strict=True):
        # numbers with `first` decimals lie at least the gap apart; those with fewer decimals are among them
        first = -math.ceil(math.log10(high - low)) if high - low < 1e300 else 0  # larger numbers may overflow
        numbers = (round(cut, digits) + 0.0 for digits in range(first, first + 4))
        rounded.append(next((number for number in numbers if low < number < high), cut))
    return tuple(rounded)


def whole_units(weights: Array | None) -> tuple[NDArray[np.int64] | None, float]:
    """Return the weights rounded to integer multiples of a unit, and the unit; None and 1 if there are no weights.

    The unit is 1 if the weights are integers with a sum below about 2^52; otherwise it is about 2^-52 of the sum. Sums
    of integers are exact, so that the order of rows cannot change the last digit.
    """
    if weights is None or len(weights) == 0:
        return None, 1.0
    largest = math.frexp(float(weights.max()))[1]
    bits = largest + math.frexp(float(np.ldexp(weights, -largest).sum()))[1]  # total < 2^bits, without overflow
    are_integers = bits <= 52 and bool((weights == np.rint(weights)).all())
    unit = 1.0 if are_integers else max(math.ldexp(1.0, bits - 52), 5e-324)
    return np.rint(weights / unit).astype(np.int64), unit
