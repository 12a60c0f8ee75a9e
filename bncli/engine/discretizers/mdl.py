"""Entropy-based cuts, accepted by the minimum description length criterion (Fayyad & Irani 1993).

Among the candidate cuts of an interval S into S1 and S2, the one of lowest class entropy is accepted if its gain
exceeds the cost of describing it (N = |S|; k, k1, k2 = number of classes present; entropies in bits)

    Ent(S) - (|S1| Ent(S1) + |S2| Ent(S2)) / N  >  [ log2(N - 1) + Delta ] / N
    Delta = log2(3^k - 2) - [ k Ent(S) - k1 Ent(S1) - k2 Ent(S2) ]

and the search goes on in S1 and S2. A candidate lies midway between two neighbouring distinct values that do not both
belong purely to one and the same class: no other point can be best (their Theorem 1).

All candidates of an interval are evaluated in one pass. When row t of class y crosses from the right side to the left,
only two terms of the entropies change, so with L, R the class counts on either side

    cost(t) = n_L log2 n_L + n_R log2 n_R - f(t),    f(t) = sum over y of L_y log2 L_y + R_y log2 R_y
    f(t) - f(t-1) = [L_y log2 L_y + R_y log2 R_y] after - before

and f is a running sum, exact in fixed point (`NLogN`): the cost does not grow with the number of classes.

Conventions: entropies that differ by less than 1e-12 are tied and the lowest cut wins; an interval of total weight 1 or
less is never cut; fractional weights are rounded to about 2^-52 of their sum, so that equal weights stay equal. Cost:
one sort, then O(N) per level of the recursion; about 0.3 s for a million distinct values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes, Index, Integers, Mask
from bncli.engine.kernels.binning import Ordered, midpoints, ordered, whole_units

Counts = NDArray[np.int64]
TIE = 1e-12
"""Class entropies (bits per row) that differ by less are tied."""
FEW_ROWS = 256
"""Up to this many rows, `uncut` tests many columns at once: in wide tables a search in each would take too long."""
_FEW_CLASSES = 16
_BLOCK = 1 << 14
"""Items evaluated at a time, so that the temporaries stay in the second-level cache."""


def cut_points(
    values: NDArray[np.generic],
    labels: Codes,
    n_labels: int,
    weights: Array | None,
) -> tuple[float, ...]:
    """Return the accepted cuts, ascending; empty if no cut is accepted."""
    units, unit = whole_units(weights)
    if units is not None and not units.all():
        rows = np.flatnonzero(units)
        values, labels, units = values[rows], labels[rows], units[rows]
    if len(values) == 0:
        return ()
    column = ordered(values, labels, n_labels, units)
    items = _prepare(column, n_labels, unit)
    accepted: list[int] = []  # items after which a cut lies
    pending = [_Range(0, len(items.labels), items.start, items.end)]
    while pending:
        whole = pending.pop()
        cut = _best_cut(items, whole)
        if cut is None:
            continue
        middle = whole.start.copy()
        middle[items.labels[whole.first : cut + 1]] = items.after[whole.first : cut + 1]
        left = _Range(whole.first, cut + 1, whole.start, middle)
        right = _Range(cut + 1, whole.stop, middle, whole.end)
        if _is_accepted(items, whole, left, right):
            accepted.append(cut)
            pending += [left, right]
    below = np.searchsorted(column.ends, np.array(sorted(accepted), np.intp), side="right")
    return tuple(midpoints(column.values[below], column.values[below + 1]).tolist())


@dataclass(frozen=True)
class _Items:
    """A column prepared for the search; all weights are in multiples of `unit`.

    after (M,): the weight of the item's class up to and including the item, plus the weight of all earlier classes, so
    that a difference of two elements of one class is the weight of that class between them. total (M,): the weight up
    to and including the item. start, end (K,): the values of `after` before the first and at the last item of each
    class. candidates: the items after which a cut may lie, ascending.
    """

    labels: Codes
    weights: Counts | None
    after: Integers
    total: Integers
    start: Counts
    end: Counts
    candidates: Index
    n_log_n: NLogN
    unit: float


@dataclass(frozen=True)
class _Range:
    """Items first .. stop - 1, and the value of `after` for every class before and at the end of them."""

    first: int
    stop: int
    start: Counts
    end: Counts

    @property
    def counts(self) -> Counts:
        """The weight of each class, in units."""
        return self.end - self.start


def _prepare(column: Ordered, n_labels: int, unit: float) -> _Items:
    n_items = len(column.labels)
    weights = None if column.weights is None else column.weights.astype(np.int64)
    by_class = _rows_by_class(column.labels, n_labels)
    running = np.arange(1, n_items + 1) if weights is None else np.cumsum(weights[by_class])
    total = int(running[-1])
    # half the memory to walk through, if the counts allow it
    storage = np.int32 if total < 2**31 else np.int64
    after: Integers = np.empty(n_items, storage)
    after[by_class] = running
    last_of_class = np.cumsum(np.bincount(column.labels, minlength=n_labels))
    end = np.concatenate(([0], running))[last_of_class]
    # Candidates follow the last items of values that are not purely of the class of the next value.
    last = column.ends - 1
    changes = column.labels[1:] != column.labels[:-1]
    # a change of class from one value to the next does not make either of them mixed
    changes[last[:-1]] = False
    mixed = np.zeros(len(last), np.bool_)
    mixed[np.searchsorted(last, np.flatnonzero(changes))] = True
    label = column.labels[last]
    candidates: Index = last[:-1][mixed[:-1] | mixed[1:] | (label[:-1] != label[1:])]
    return _Items(
        column.labels,
        weights,
        after,
        np.arange(1, n_items + 1, dtype=storage) if weights is None else np.cumsum(weights).astype(storage),
        np.concatenate(([0], end[:-1])),
        end,
        candidates,
        NLogN(total, 8 * n_items),
        unit,
    )


def _rows_by_class(labels: Codes, n_labels: int) -> Index:
    """Return the positions of the labels, class by class; for few classes faster than a stable argsort."""
    if n_labels > _FEW_CLASSES:
        return np.argsort(labels, kind="stable")
    return np.concatenate([np.flatnonzero(labels == y) for y in range(n_labels)])


def _best_cut(items: _Items, whole: _Range) -> int | None:
    """Return the item after which the cut of lowest class entropy lies, or None if there is no candidate."""
    low, high = np.searchsorted(items.candidates, [whole.first, whole.stop - 1])
    if low == high:
        return None
    candidates = items.candidates[low:high]
    n_log_n, n = items.n_log_n, whole.counts.sum()
    before_first = items.total[whole.first] - (1 if items.weights is None else items.weights[whole.first])
    # n_L Ent(L) + n_R Ent(R) of a cut after each candidate, in fixed point
    costs = np.empty(len(candidates), np.int64)
    f = n_log_n(whole.counts).sum()
    done = 0
    for first in range(whole.first, int(candidates[-1]) + 1, _BLOCK):
        block = slice(first, min(first + _BLOCK, whole.stop))
        label = items.labels[block].astype(np.intp)
        left = items.after[block] - whole.start[label]
        right = whole.end[label] - items.after[block]
        if items.weights is None:
            changes = n_log_n.step(left) - n_log_n.step(right + 1)
        else:
            weight = items.weights[block]
            changes = n_log_n(left) - n_log_n(left - weight) + n_log_n(right) - n_log_n(right + weight)
        running = np.cumsum(changes)
        running += f
        f = running[-1]
        end = int(np.searchsorted(candidates, block.stop))
        here = candidates[done:end]
        n_left = items.total[here] - np.int64(before_first)
        costs[done:end] = n_log_n(n_left) + n_log_n(n - n_left) - running[here - first]
        done = end
    tolerance = int(math.ldexp(TIE * int(n), n_log_n.shift))
    # argmax takes the first that ties: the lowest cut
    return int(candidates[np.argmax(costs <= costs.min() + tolerance)])


def _is_accepted(items: _Items, whole: _Range, left: _Range, right: _Range) -> bool:
    """Return whether the gain of a cut exceeds the cost of its description."""
    n = float(whole.counts.sum()) * items.unit
    # log2(n - 1) has no value there
    if n <= 1 + TIE:
        return False
    # n Ent in units, Ent in bits per row, and the number of classes present
    parts = []
    for counts in (whole.counts, left.counts, right.counts):
        bits = items.n_log_n.entropy(counts)
        parts.append((bits, bits / float(counts.sum()), int(np.count_nonzero(counts))))
    (bits, ent, k), (bits1, ent1, k1), (bits2, ent2, k2) = parts
    gain = (bits - bits1 - bits2) * items.unit / n
    # log2(3^k - 2) in two terms, so that many classes do not overflow
    delta = k * math.log2(3) + math.log2(1 - 2 * 3.0**-k) - (k * ent - k1 * ent1 - k2 * ent2)
    return gain > (math.log2(n - 1) + delta) / n


class NLogN:
    """The function n log2 n in fixed point for whole numbers 0 <= n <= total; a table if there are enough look-ups.

    The search adds and subtracts millions of such terms; in floating point the sum would depend on the order of rows.
    Here each term is rounded once, to a whole multiple of 2^-shift, and the rest is integer arithmetic:

        value(n) = rint(2^shift n log2 n),   shift the largest for which total log2 total stays below 2^60

    so that sums of differences telescope exactly. An entropy is accurate to about 1e-14 bits per row.
    """

    def __init__(self, total: int, n_lookups: int) -> None:
        self.shift = 60 - math.ceil(math.log2(max(total, 2)) + math.log2(math.log2(max(total, 4))))
        self._table: Counts | None = None
        if total <= n_lookups:
            self._table = np.empty(total + 1, np.int64)
            for first in range(0, total + 1, _BLOCK):
                self._table[first : first + _BLOCK] = self._compute(np.arange(first, min(first + _BLOCK, total + 1)))
        self._steps: Counts | None = None

    def __call__(self, n: Counts) -> Counts:
        """Return n log2 n of every element, in multiples of 2^-shift."""
        return self._compute(n) if self._table is None else self._table[n]

    def step(self, n: Counts) -> Counts:
        """Return the value of every n >= 1 minus that of n - 1, in multiples of 2^-shift."""
        if self._table is None:
            return self._compute(n) - self._compute(n - 1)
        if self._steps is None:
            self._steps = self._table.copy()
            self._steps[1:] -= self._table[:-1]
        return self._steps[n]

    def _compute(self, n: Counts) -> Counts:
        number = n.astype(np.float64)
        # 0 log2 0 = 0: the maximum keeps the logarithm finite
        values = np.log2(np.maximum(number, 1.0))
        values *= number
        values *= math.ldexp(1.0, self.shift)
        return np.rint(values, out=values).astype(np.int64)

    def entropy(self, counts: Counts) -> float:
        """Return n Ent = n log2 n - sum over k of n_k log2 n_k of class counts (K,), in bits.

        >>> NLogN(total=8, n_lookups=0).entropy(np.array([4, 2, 2]))
        12.0
        """
        return math.ldexp(int(self(counts.sum(keepdims=True))[0] - self(counts).sum()), -self.shift)


def uncut(values: NDArray[np.generic], labels: Codes, n_labels: int) -> Mask:
    """Return, for each row of values (columns, N), N <= FEW_ROWS, whether that column certainly has no cut.

    The test is one-sided: a column for which the result is False may have no cut either. Every gap between two values
    counts as a cut, even between equal values, and the criterion of `_is_accepted` has a margin for rounding.
    """
    n_columns, n = values.shape
    if n < 2:
        return np.ones(n_columns, np.bool_)
    n_log_n, ranks = _small_n_log_n(n), np.arange(1, n)
    sorted_labels = labels[np.argsort(values, axis=1)]
    whole = np.bincount(labels, minlength=n_labels)
    bits_left, bits_right = n_log_n[ranks], n_log_n[n - ranks]
    k_left, k_right = np.zeros((n_columns, n - 1), np.intp), np.zeros((n_columns, n - 1), np.intp)
    for y in np.flatnonzero(whole):
        left = (sorted_labels[:, :-1] == y).cumsum(axis=1)
        right = whole[y] - left
        bits_left, bits_right = bits_left - n_log_n[left], bits_right - n_log_n[right]
        k_left += left > 0
        k_right += right > 0
    bits, k = float(n_log_n[n] - n_log_n[whole].sum()), int(np.count_nonzero(whole))
    described = k_left * bits_left / ranks + k_right * bits_right / (n - ranks)
    delta = k * math.log2(3) + math.log2(1 - 2 * 3.0**-k) - k * bits / n
    gains = (bits - bits_left - bits_right - described).max(axis=1)
    return np.asarray(gains < math.log2(n - 1) + delta - 1e-6, np.bool_)


@lru_cache
def _small_n_log_n(total: int) -> Array:
    """Return n log2 n for 0 <= n <= total."""
    n = np.arange(total + 1)
    return np.asarray(n * np.log2(np.maximum(n, 1)), np.float64)
