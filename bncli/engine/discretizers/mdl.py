"""Cuts where they tell most about the class, as long as they pay for themselves (Fayyad & Irani 1993).

Among the candidate cuts of an interval S into S1, S2 the one of lowest class entropy is taken if its gain is worth
its description (N = |S|, k, k1, k2 = classes present, entropies in bits)

    Ent(S) - (|S1| Ent(S1) + |S2| Ent(S2)) / N  >  [ log2(N - 1) + Delta ] / N
    Delta = log2(3^k - 2) - [ k Ent(S) - k1 Ent(S1) - k2 Ent(S2) ]

and the search goes on in S1 and S2. A candidate lies midway between two neighbouring distinct values that do not
both belong purely to one and the same class: no other point can be best (their Theorem 1).

All candidates of an interval are weighed in one pass. When row t of class y crosses from the right side to the left,
only two terms of the entropies change, so with L, R the class counts on either side

    cost(t) = n_L log2 n_L + n_R log2 n_R - f(t),    f(t) = sum over y of L_y log2 L_y + R_y log2 R_y
    f(t) - f(t-1) = [L_y log2 L_y + R_y log2 R_y] after - before

and f is a running sum, exact in fixed point (`NLogN`): the cost does not grow with the number of classes.

Conventions: entropies that differ by less than 1e-12 are tied and the lowest cut wins; an interval of total weight
1 or less is never cut; fractional weights are rounded to about 2^-52 of their sum, so that equal weights stay equal.
Cost: one sort, then O(N) a level of the recursion; about 0.3 s for a million distinct values.
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
"""Class entropies (bits a row) closer than this are equal."""
FEW_ROWS = 256
"""Of so few rows `uncut` may be asked of many columns at once: wide tables have no time for a search in each."""
_BLOCK = 1 << 14
"""Items weighed at a time, so that the temporaries stay in the second-level cache."""


@dataclass(frozen=True)
class _Items:
    """A column ready to be searched; all counts are in units of `unit`.

    after (M,): weight of the item's class up to and with the item, on top of all of the classes before it, so that a
    difference of two of them counts one class over a range. total (M,): weight up to and with the item.
    start, end (K,): the values of `after` before the first and at the last item of each class.
    candidates: the items after which a cut may lie, ascending.
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
    """Items first .. stop - 1, and `after` of every class where they begin and end."""

    first: int
    stop: int
    start: Counts
    end: Counts

    @property
    def counts(self) -> Counts:
        """Weight of each class, in units."""
        return self.end - self.start


class NLogN:
    """n -> n log2 n in fixed point for whole numbers 0 <= n <= total; a table where it will be asked often enough.

    Searching for a cut adds and subtracts millions of such terms; in floating point the sum would drift with the order
    of rows. Here each term is rounded once, to a whole multiple of 2^-shift, and the rest is integer arithmetic:

        value(n) = rint(2^shift n log2 n),   shift the largest for which total log2 total stays below 2^60

    so that sums of differences telescope exactly. An entropy is right to about 1e-14 bits a row.
    """

    def __init__(self, total: int, n_lookups: int) -> None:
        self.shift = 60 - math.ceil(math.log2(max(total, 2)) + math.log2(math.log2(max(total, 4))))
        self._table = self._computed(np.arange(total + 1)) if total <= n_lookups else None

    def __call__(self, n: Counts) -> Counts:
        """Fixed-point n log2 n of every element."""
        return self._computed(n) if self._table is None else self._table[n]

    def _computed(self, n: Counts) -> Counts:
        number = n.astype(np.float64)
        # 0 log2 0 = 0: the maximum keeps the logarithm finite
        return np.rint(np.ldexp(number * np.log2(np.maximum(number, 1.0)), self.shift)).astype(np.int64)

    def entropy(self, counts: Counts) -> float:
        """Return n Ent = n log2 n - sum over k of n_k log2 n_k of class counts (K,), in bits.

        >>> NLogN(total=8, n_lookups=0).entropy(np.array([4, 2, 2]))
        12.0
        """
        return math.ldexp(int(self(counts.sum(keepdims=True))[0] - self(counts).sum()), -self.shift)


def cut_points(
    values: NDArray[np.generic],
    labels: Codes,
    n_labels: int,
    weights: Array | None,
) -> tuple[float, ...]:
    """Return the accepted cuts, ascending; none where no cut pays."""
    units, unit = whole_units(weights)
    if units is not None and not units.all():
        rows = np.flatnonzero(units)
        values, labels, units = values[rows], labels[rows], units[rows]
    if len(values) == 0:
        return ()
    column = ordered(values, labels, n_labels, units)
    accepted = np.array(sorted(_search(_prepared(column, n_labels, unit))), np.intp)
    left = np.searchsorted(column.ends, accepted, side="right")
    return tuple(midpoints(column.values[left], column.values[left + 1]).tolist())


def _search(items: _Items) -> list[int]:
    """Return every accepted cut, as the item after which it lies."""
    accepted: list[int] = []
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
        if _pays(items, whole, left, right):
            accepted.append(cut)
            pending += [left, right]
    return accepted


def _best_cut(items: _Items, whole: _Range) -> int | None:
    """Return the item after which the cut of lowest class entropy lies; None without candidates."""
    low, high = np.searchsorted(items.candidates, [whole.first, whole.stop - 1])
    if low == high:
        return None
    costs = _costs(items, whole, items.candidates[low:high])
    n = int(whole.counts.sum())
    tolerance = int(math.ldexp(TIE * n, items.n_log_n.shift))
    # argmax takes the first that ties: the lowest cut
    return int(items.candidates[low + np.argmax(costs <= costs.min() + tolerance)])


def _costs(items: _Items, whole: _Range, candidates: Index) -> Counts:
    """Return n_L Ent(L) + n_R Ent(R) of a cut after each candidate, in fixed point."""
    n_log_n, n = items.n_log_n, whole.counts.sum()
    before_first = items.total[whole.first] - (1 if items.weights is None else items.weights[whole.first])
    costs = np.empty(len(candidates), np.int64)
    f = n_log_n(whole.counts).sum()
    low = 0
    for first in range(whole.first, int(candidates[-1]) + 1, _BLOCK):
        block = slice(first, min(first + _BLOCK, whole.stop))
        running = np.cumsum(_changes(items, whole, block))
        running += f
        f = running[-1]
        high = int(np.searchsorted(candidates, block.stop))
        here = candidates[low:high]
        n_left = items.total[here] - np.int64(before_first)
        costs[low:high] = n_log_n(n_left) + n_log_n(n - n_left) - running[here - first]
        low = high
    return costs


def _changes(items: _Items, whole: _Range, block: slice) -> Counts:
    """f(t) - f(t-1) for the items of a block."""
    n_log_n = items.n_log_n
    label = items.labels[block].astype(np.intp)
    left = items.after[block] - whole.start[label]
    right = whole.end[label] - items.after[block]
    weight = np.int64(1) if items.weights is None else items.weights[block]
    return n_log_n(left) - n_log_n(left - weight) + n_log_n(right) - n_log_n(right + weight)


def _pays(items: _Items, whole: _Range, left: _Range, right: _Range) -> bool:
    """Return the stopping rule: whether the gain is worth the description of the cut."""
    n = float(whole.counts.sum()) * items.unit
    # log2(n - 1) has no value there
    if n <= 1 + TIE:
        return False
    (bits, ent, k), (bits1, ent1, k1), (bits2, ent2, k2) = (_entropy(items, part) for part in (whole, left, right))
    gain = (bits - bits1 - bits2) * items.unit / n
    # log2(3^k - 2), taken apart so that many classes do not overflow
    delta = k * math.log2(3) + math.log2(1 - 2 * 3.0**-k) - (k * ent - k1 * ent1 - k2 * ent2)
    return gain > (math.log2(n - 1) + delta) / n


def _entropy(items: _Items, part: _Range) -> tuple[float, float, int]:
    """Return n Ent in units, Ent in bits a row, and the number of classes present."""
    counts = part.counts
    bits = items.n_log_n.entropy(counts)
    return bits, bits / float(counts.sum()), int(np.count_nonzero(counts))


def _prepared(column: Ordered, n_labels: int, unit: float) -> _Items:
    n_items = len(column.labels)
    weights = None if column.weights is None else column.weights.astype(np.int64)
    by_class = np.argsort(column.labels, kind="stable")
    running = np.cumsum(np.ones(n_items, np.int64) if weights is None else weights[by_class])
    total = int(running[-1])
    # half the memory to walk through, where the counts allow
    storage = np.int32 if total < 2**31 else np.int64
    after: Integers = np.empty(n_items, storage)
    after[by_class] = running
    last = np.cumsum(np.bincount(column.labels, minlength=n_labels))
    end = np.concatenate(([0], running))[last]
    return _Items(
        column.labels,
        weights,
        after,
        np.arange(1, n_items + 1, dtype=storage) if weights is None else np.cumsum(weights).astype(storage),
        np.concatenate(([0], end[:-1])),
        end,
        _boundaries(column),
        NLogN(total, 8 * n_items),
        unit,
    )


def _boundaries(column: Ordered) -> Index:
    """Last items of the values that are not pure in the class of the value after them."""
    last = column.ends - 1
    changes = column.labels[1:] != column.labels[:-1]
    # a change of class from one value to the next does not make either of them mixed
    changes[last[:-1]] = False
    mixed = np.zeros(len(last), np.bool_)
    mixed[np.searchsorted(last, np.flatnonzero(changes))] = True
    label = column.labels[last]
    boundary = mixed[:-1] | mixed[1:] | (label[:-1] != label[1:])
    candidates: Index = last[:-1][boundary]
    return candidates


def uncut(values: NDArray[np.generic], labels: Codes, n_labels: int) -> Mask:
    """Of each row of values (columns, N), N at most FEW_ROWS: whether no cut of that column gains what it costs.

    By the rule of `_pays` less a margin for rounding. Every place between two values counts as a cut, that between
    equal ones too: the rule is only ever met too easily, so what is not told to be without cuts may have none either.
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
