"""Rank the values of a column: find its distinct values in order, and which of them each row has.

The values of a column are sorted, or counted if they are integers in a small range, but the row indices are not sorted
with them: sorting values alone is about six times faster. The rank of a row is found by search where it is needed.
"""

from __future__ import annotations

import bisect
from abc import abstractmethod
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Column
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.engine.kernels.binning import interval_codes, ordered

_BLOCK = 1 << 16
_FEW = 1 << 12
_FEW_ROWS = 1 << 16
"""Up to this many rows, counting the rows of all values is faster than searching for the ends of intervals."""


class RankedValues(Protocol):
    """The distinct values of a column in their order, missing values last.

    - sizes: the number of rows with each value, (n_values,); 0 for a level that no row has
    - pairs: the number of rows with each value and class, (n_values, K), or None if they were not counted
    - is_small: whether the object takes little memory in addition to the column
    """

    sizes: NDArray[np.int64]
    pairs: NDArray[np.int64] | None
    is_small: bool

    @abstractmethod
    def ranks(self, rows: Index | None = None) -> Integers:
        """Return the rank, from 0, of the value of each of the given rows, or of all rows if `rows` is None."""

    @abstractmethod
    def groups_of_rows(self, groups: Integers) -> Integers:
        """Return the group of each row, (N,), given the group of each value, (n_values,).

        Groups of values are ascending numbers below 256.
        """

    @property
    def n_values(self) -> int:
        return len(self.sizes)

    def positions(self, rows: Index) -> tuple[Index, Index]:
        """Return, for each of the given rows, the number of rows with lower values, and with lower or equal values."""
        own, ends = self.ranks(rows), np.cumsum(self.sizes)
        return ends[own] - self.sizes[own], ends[own]

    def intervals_of_values(self, n: int) -> Integers:
        """Return the interval of each value, (n_values,), where n intervals divide the sorted rows evenly.

        A value belongs to the interval of the middle one of its rows.
        """
        middles = (np.cumsum(self.sizes) - self.sizes / 2) / self.sizes.sum()
        return np.asarray(np.minimum((middles * n).astype(np.int64), n - 1))

    def intervals(self, n: int) -> tuple[Integers, int]:
        """Return the interval of each row, (N,), and the highest interval used, for n < 255 intervals.

        Some kinds of columns have missing values in an interval of their own, n.
        """
        of_value = self.intervals_of_values(n)
        return self.groups_of_rows(of_value), int(of_value[-1])


def rank_values(column: Column, labels: Integers | None = None, n_labels: int = 1) -> RankedValues:
    """Rank the values of a column.

    With labels (N,), levels and integers in a small range are counted together with the classes, unless the counts
    would take much memory. Cost: a sort of the values, or one pass for levels and integers in a small range.
    """
    if isinstance(column, CategoricalColumn):
        return _Levels(column, labels, n_labels)
    values = column.values
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < max(len(values), _FEW):
            return _FewNumbers(values, low, high, labels, n_labels)
    return _Numbers(values)


def order_numbers(column: Column, labels: Integers, n_labels: int) -> OrderedNumbers | None:
    """Sort the numbers of a column together with the classes of their rows.

    Returns None for a categorical or empty column, for integers in a small range, and if a number is infinite or all
    are missing. Cost: a sort, or one pass if the numbers are integers or have few decimals, and lie in a small range.
    """
    if isinstance(column, CategoricalColumn) or not len(column.values):
        return None
    low, high = np.fmin.reduce(column.values), np.fmax.reduce(column.values)
    if column.values.dtype.kind in "iu":
        if int(high) - int(low) < max(len(column.values), _FEW):
            return None
    elif not (np.isfinite(low) and np.isfinite(high)):
        return None
    return OrderedNumbers(column.values, labels, n_labels)


def _count(
    codes: NDArray[Any], low: int, n_codes: int, labels: Integers | None, n_labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return the number of rows with each of the `n_codes` codes from `low` on, and with each of these and each label.

    The second result is None if `labels` is None, or if the counts would take much memory.
    """
    if labels is None or n_codes * n_labels > max(len(codes) // 8, _FEW):
        labels, n_labels = None, 1
    counts = np.zeros(n_codes * n_labels, np.int64)
    for first in range(0, len(codes), block := max(_BLOCK, len(counts))):
        cells = codes[first : first + block].astype(np.intp)
        if low:
            cells -= low
        if labels is not None:
            cells *= n_labels
            cells += labels[first : first + block]
        counts += np.bincount(cells, minlength=len(counts))
    pairs = counts.reshape(n_codes, n_labels)
    return (counts, None) if labels is None else (pairs.sum(axis=1), pairs)


class _Levels(RankedValues):
    """The levels of a categorical column, and its missing values."""

    def __init__(self, column: CategoricalColumn, labels: Integers | None, n_labels: int) -> None:
        codes: Integers = column.codes
        self.is_small = True
        if len(codes) and codes.min() < 0:
            n = len(column.levels)
            codes = np.where(codes < 0, np.int64(n), codes).astype(np.min_scalar_type(n))
            self.is_small = False
        self._codes = codes
        n = int(codes.max()) + 1 if len(codes) else 0
        self.sizes, self.pairs = _count(codes, 0, n, labels, n_labels)

    def ranks(self, rows: Index | None = None) -> Integers:
        return self._codes if rows is None else self._codes[rows]

    def groups_of_rows(self, groups: Integers) -> Integers:
        return groups.astype(np.uint8).take(self._codes)


class _FewNumbers(RankedValues):
    """Integers from `low` to `high`, a range of at most _FEW integers, or of at most one integer per row."""

    def __init__(self, values: NDArray[Any], low: int, high: int, labels: Integers | None, n_labels: int) -> None:
        self._values, self._low = values, low
        counts, pairs = _count(values, low, high - low + 1, labels, n_labels)
        self._rank_of = np.cumsum(counts > 0) - 1
        self.sizes = counts[counts > 0]
        self.pairs = None if pairs is None else pairs[counts > 0]
        self.is_small = len(counts) <= _BLOCK

    def _offsets(self, values: NDArray[Any]) -> Index:
        offsets = values.astype(np.intp)
        offsets -= self._low
        return offsets

    def ranks(self, rows: Index | None = None) -> Integers:
        narrow = self._rank_of.astype(np.min_scalar_type(len(self.sizes)))
        return narrow.take(self._offsets(self._values if rows is None else self._values[rows]))

    def groups_of_rows(self, groups: Integers) -> Integers:
        of_number: Integers = groups.astype(np.uint8)[self._rank_of]
        return of_number.take(self._offsets(self._values))


class OrderedNumbers:
    """Numbers in ascending order with the classes of their rows.

    n_values: the number of distinct numbers, where NaN counts as one. column: the numbers that are not missing.
    """

    def __init__(self, values: NDArray[Any], labels: Integers, n_labels: int) -> None:
        is_missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, np.bool_)
        self._n_rows, self._n_labels, self._of_missing = len(values), n_labels, np.zeros(n_labels, np.int64)
        codes = labels.astype(np.min_scalar_type(max(n_labels - 1, 0)), copy=False)
        self._has_missing = bool(is_missing.any())
        if self._has_missing:
            self._of_missing = np.bincount(codes[is_missing], minlength=n_labels)
            values, codes = values[~is_missing], codes[~is_missing]
        self.column = ordered(values, codes, n_labels, None)
        self.n_values = int(np.count_nonzero(self.column.is_last)) + self._has_missing

    def repeated(self, values: NDArray[Any]) -> RepeatedNumbers | None:
        """Return the ranks of `values`, the unsorted numbers, or None if there are more than N / 16 distinct ones."""
        if self.n_values > self._n_rows // 16:
            return None
        column, distinct = self.column, self.column.values
        weights = np.ones(len(column.labels), np.int64) if column.weights is None else column.weights
        sizes = np.diff(np.cumsum(weights)[column.ends - 1], prepend=0)
        if self._has_missing:
            distinct, sizes = np.append(distinct, np.nan), np.append(sizes, self._of_missing.sum())
        return RepeatedNumbers(values, distinct, sizes)

    def interval_counts(self, n: int) -> NDArray[np.int64]:
        """Return the number of rows in each interval and class, (at most n + 1, K).

        The intervals are as in `RankedValues.intervals`, with missing values in the interval n.
        """
        column, n_items = self.column, len(self.column.labels)
        is_plain = column.weights is None and self.n_values - self._has_missing == n_items
        ends = range(1, n_items + 1) if is_plain else column.ends  # of the items of each value
        row_ends = ends if column.weights is None else np.cumsum(column.weights)[np.asarray(ends) - 1]

        def interval_of(value: int) -> int:
            first, stop = int(row_ends[value - 1]) if value else 0, int(row_ends[value])
            return min(int((first + stop) / 2 / self._n_rows * n), n - 1)

        counts = np.zeros((n + 1, self._n_labels), np.int64)
        first, last = 0, -1
        for interval in range(n):
            upto = bisect.bisect_right(range(len(ends)), interval, key=interval_of)
            stop = int(ends[upto - 1]) if upto else 0
            if stop > first:
                weights, last = None if column.weights is None else column.weights[first:stop], interval
                counts[interval] = np.bincount(column.labels[first:stop], weights, self._n_labels)
                first = stop
        counts[n] = self._of_missing
        return counts if self._has_missing else counts[: last + 1]


class RepeatedNumbers(RankedValues):
    """The ranks of numbers with few distinct values.

    distinct: the distinct values in ascending order, with NaN last if it occurs. sizes: the number of rows with each.
    """

    pairs = None
    is_small = True

    def __init__(self, values: NDArray[Any], distinct: Array, sizes: NDArray[np.int64]) -> None:
        self._values, self._distinct, self.sizes = values, distinct, sizes

    def ranks(self, rows: Index | None = None) -> Integers:
        return np.searchsorted(self._distinct, self._values if rows is None else self._values[rows])

    def groups_of_rows(self, groups: Integers) -> Integers:
        return groups.astype(np.uint8).take(self.ranks())


class _Numbers(RankedValues):
    """Any other numbers; NaN is the last value."""

    pairs = None
    is_small = False

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values
        self._ascending = np.sort(values)
        self._n_present = len(values)
        if values.dtype.kind == "f":
            self._n_present = int(np.searchsorted(self._ascending, values.dtype.type(np.nan)))
        self._has_missing = self._n_present < len(values)

    @cached_property
    def _is_first(self) -> Mask:
        """Whether each of the sorted values differs from the one before it."""
        is_first = np.ones(len(self._values), np.bool_)
        is_first[1:] = self._ascending[1:] != self._ascending[:-1]
        is_first[self._n_present + 1 :] = False  # a missing value differs from itself
        return is_first

    @property
    def n_values(self) -> int:
        return int(np.count_nonzero(self._is_first))

    @cached_property
    def _starts(self) -> Index:
        return np.flatnonzero(self._is_first)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:  # type: ignore[override]
        starts = self._starts
        sizes = np.append(starts[1:], len(self._values)) if len(starts) else np.zeros(0, np.int64)
        sizes -= starts
        return sizes

    def ranks(self, rows: Index | None = None) -> Integers:
        distinct = self._ascending[self._starts]
        found = np.searchsorted(distinct, self._values if rows is None else self._values[rows])
        return found.astype(np.min_scalar_type(len(distinct)))

    def positions(self, rows: Index) -> tuple[Index, Index]:
        # searching in order finds most of the column in the cache
        order = np.argsort(self._values[rows])
        own, before, upto = self._values[rows[order]], np.empty(len(rows), np.intp), np.empty(len(rows), np.intp)
        before[order] = np.searchsorted(self._ascending, own)
        upto[order] = np.searchsorted(self._ascending, own, side="right")
        return before, upto

    def groups_of_rows(self, groups: Integers) -> Integers:
        n_present = len(groups) - self._has_missing
        ends = np.flatnonzero(groups[1:n_present] != groups[: max(n_present - 1, 0)])
        of_group = np.append(groups[ends], groups[n_present - 1 : n_present])
        return self._groups(self._ascending[self._starts[ends]], of_group, int(groups[-1]) if len(groups) else 0)

    def _groups(self, cuts: NDArray[Any], of_group: Integers, missing: int) -> Integers:
        """Return of_group[number of cuts below the value] for each row, and `missing` for rows without a value."""
        of_group = of_group.astype(np.uint8)
        groups = interval_codes(self._values, cuts.tolist(), np.dtype(np.uint8))
        if (of_group != np.arange(len(of_group))).any():
            groups = np.append(of_group, np.uint8(0)).astype(np.uint8).take(groups)
        return np.where(np.isnan(self._values), np.uint8(missing), groups) if self._has_missing else groups

    def intervals(self, n: int) -> tuple[Integers, int]:
        if len(self._values) <= _FEW_ROWS:
            of_value = self.intervals_of_values(n)
            if self._has_missing:
                of_value[-1] = n
            return self.groups_of_rows(of_value), int(of_value[-1])
        # without the sizes of the values: only values near the ends of intervals are looked at
        ascending, n_present, n_rows = self._ascending[: self._n_present], self._n_present, len(self._values)

        def value_at(position: int) -> tuple[int, int, int]:
            """Return the first sorted position of the value at a position, the one after its last, and its interval."""
            value = ascending[position]
            first, stop = int(np.searchsorted(ascending, value)), int(np.searchsorted(ascending, value, side="right"))
            return first, stop, min(int((first + stop) / 2 / n_rows * n), n - 1)

        starts, of_group, position = list[int](), list[int](), 0
        while position < n_present:
            _, _, own = value_at(position)
            starts.append(position)
            of_group.append(own)
            # the first value of a later interval
            first, stop, other = value_at(min(-(-(own + 1) * n_rows // n), n_present - 1))
            while other <= own and stop < n_present:
                first, stop, other = value_at(stop)
            position = first if other > own else n_present
            while position < n_present and (before := value_at(position - 1))[2] > own:
                position = before[0]
        cuts = ascending[np.array(starts[1:], np.intp) - 1]
        return self._groups(cuts, np.array(of_group, np.uint8), n), n if self._has_missing else of_group[-1]
