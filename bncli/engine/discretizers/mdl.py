"""Entropy-based cuts, accepted by the minimum description length criterion (Fayyad & Irani 1993).

Among the candidate cuts of an interval S into S1 and S2, the cut with the lowest class entropy is accepted if its gain
exceeds the cost of describing it (N = |S|; k, k1, k2 = numbers of classes in S, S1, S2; entropies in bits)

    Ent(S) - (|S1| Ent(S1) + |S2| Ent(S2)) / N  >  [ log2(N - 1) + Delta ] / N
    Delta = log2(3^k - 2) - [ k Ent(S) - k1 Ent(S1) - k2 Ent(S2) ]

and the search goes on in S1 and S2. A candidate lies midway between two neighbouring distinct values that do not both
belong purely to one and the same class: no other point can be best (their Theorem 1).

Candidates are compared by the following cost, where L, R are the class counts on either side:

    n_L Ent(L) + n_R Ent(R) = h(n_L) + h(n_R) - sum over y of [h(L_y) + h(R_y)],    h(n) = n log2 n

Few candidates are evaluated. Rows are divided into blocks, with known class counts A up to the start of a block and B
up to its end, so that A_y <= L_y <= B_y for the cuts in the block. This bounds their costs from below, and for most
blocks the bound is above the cost of a candidate found earlier. n_A and n_B are the sums of A and B, and N the total.
Since h is convex, h(n_L) + h(n_R) lies above its tangent at a point m, of slope s, and each class adds a concave
function, whose minimum is at A_y or B_y:

    cost >= N log2(N - m) + sum over y of min over L_y in {A_y, B_y} of [s L_y - h(L_y) - h(R_y)]
    m = (n_A + n_B) / 2,    s = log2 m - log2(N - m)

In the other blocks, and in intervals of few rows, candidates are evaluated in one pass, as cumulative sums of the
change that each row makes. Costs near the lowest are computed again in fixed point (`NLogN`), so that ties are exact.

Conventions: entropies that differ by at most 1e-12 bits are tied and the lowest cut wins; an interval of total weight 1
or less is never cut; fractional weights are rounded to multiples of about 2^-52 of their sum, so that equal weights
stay equal.
Cost: one sort, which takes most of the time, O(N), and per interval the bounds of its blocks and the evaluation of some
of them (about 4 % of a million rows in total).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes, Index, Mask
from bncli.engine.kernels.binning import Ordered, midpoints, ordered, whole_units

Counts = NDArray[np.int64]
TIE = 1e-12
"""Class entropies (bits per row) that differ by at most this are tied."""
FEW_ROWS = 256
"""Up to this many rows, `uncut` tests many columns at once: in wide tables a search in each would take too long."""
_FEW_CLASSES = 16
_BLOCK = 1 << 12
"""Items evaluated at a time, so that the temporaries stay in the second-level cache."""
_GRAIN, _STRIDE = 32, 16
"""Costs are bounded in blocks of _STRIDE grains and then, where that does not rule them out, of one grain.

A grain is _GRAIN items, or more if there are many classes.
"""
_MOST_STORED = 1 << 13
"""The largest weight, in units, of a range in which all candidates are evaluated with a table of n log2 n."""
_FEW_ITEMS = 1024
"""In ranges of at most this many items, all candidates are evaluated."""


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
    return cuts_of_ordered(ordered(values, labels, n_labels, units), n_labels, unit)


def cuts_of_ordered(column: Ordered, n_labels: int, unit: float = 1.0) -> tuple[float, ...]:
    """Return the accepted cuts, ascending, of a column in order, whose weights are in multiples of `unit`."""
    items = _Items.of(column, n_labels, unit)
    accepted: list[int] = []  # items after which a cut lies
    pending = [_Range(0, len(items.labels), items.counts_before(0), items.counts_before(len(items.labels)))]
    while pending:
        whole = pending.pop()
        cut = _best_cut(items, whole)
        if cut is None:
            continue
        middle = items.counts_before(cut + 1)
        left = _Range(whole.first, cut + 1, whole.start, middle)
        right = _Range(cut + 1, whole.stop, middle, whole.end)
        if _is_accepted(items, whole, left, right):
            accepted.append(cut)
            pending += [left, right]
    cuts = np.array(sorted(accepted), np.intp)
    return tuple(midpoints(items.column.values_of(cuts), items.column.values_of(cuts + 1)).tolist())


@dataclass(frozen=True)
class _Items:
    """A column prepared for the search; all weights are in multiples of `unit`.

    `before` has the weight of each class before items 0, grain, 2 grain, ..., and in its last row the weight of all
    items. is_candidate (M,) tells whether a cut may lie after each of the M items.
    """

    column: Ordered
    labels: Codes
    weights: Counts | None
    grain: int
    before: Counts
    is_candidate: Mask
    n_log_n: NLogN
    unit: float

    @staticmethod
    def of(column: Ordered, n_labels: int, unit: float) -> _Items:
        """Return the items of a column; `grain` is large enough for `before` to take at most 2 bytes per item."""
        n_items, labels = len(column.labels), column.labels
        weights = None if column.weights is None else column.weights.astype(np.int64)
        grain = max(_GRAIN, 1 << (4 * n_labels - 1).bit_length())
        counts = np.zeros((-(-n_items // grain) + 1, n_labels), np.int64)
        at_a_time = max(grain, _BLOCK)
        cells = np.repeat(np.arange(at_a_time // grain) * n_labels, grain)
        for first in range(0, n_items, at_a_time):
            rows = slice(first, min(first + at_a_time, n_items))
            n_cells = -(-(rows.stop - first) // grain) * n_labels
            # sums of integers below 2^53 are exact
            own = np.bincount(
                cells[: rows.stop - first] + labels[rows], None if weights is None else weights[rows], n_cells
            )
            counts[first // grain + 1 :][: n_cells // n_labels] = own.reshape(-1, n_labels)
        before = np.cumsum(counts, axis=0)
        # a cut may lie after the last item of a value unless that value and the next are pure
        candidates = np.zeros(len(column.labels), np.bool_)
        candidates[:-1] = column.labels[1:] != column.labels[:-1]
        if not column.is_last.all():
            # a change of class within a value makes it mixed, and not a change from one value to the next
            inside = np.flatnonzero(candidates & ~column.is_last)
            candidates &= column.is_last
            last = np.flatnonzero(column.is_last)
            mixed = np.searchsorted(last, inside)
            candidates[last[mixed]] = True
            candidates[last[mixed[mixed > 0] - 1]] = True
            candidates[-1] = False
        return _Items(
            column,
            labels,
            weights,
            grain,
            before,
            candidates,
            _n_log_n(int(before[-1].sum())),
            unit,
        )

    def counts_before(self, item: int) -> Counts:
        """Return the weight of each class before an item, (K,)."""
        full, rest = divmod(item, self.grain)
        if rest == 0 or item == len(self.labels):
            return np.asarray(self.before[-1 if rest else full])
        rows = slice(item - rest, item)
        weights = None if self.weights is None else self.weights[rows]
        own = np.bincount(self.labels[rows], weights, self.before.shape[1])
        return np.asarray(self.before[full] + own.astype(np.int64))


@dataclass(frozen=True)
class _Range:
    """Items first .. stop - 1, and the weight of each class in all items before `first` and before `stop`, (K,)."""

    first: int
    stop: int
    start: Counts
    end: Counts

    @property
    def counts(self) -> Counts:
        """The weight of each class, in units."""
        return self.end - self.start


def _best_cut(items: _Items, whole: _Range) -> int | None:
    """Return the item after which the cut of lowest class entropy lies, or None if there is no candidate."""
    if whole.counts.sum() <= _MOST_STORED:
        return _scan(items, whole)
    search = _Search(items, whole)
    n_blocks = -(-whole.stop // items.grain) - whole.first // items.grain
    blocks, bounds = np.arange(n_blocks), np.zeros(n_blocks)
    if whole.stop - whole.first > _FEW_ITEMS:
        parts = np.arange(n_blocks + 1)[None]
        if n_blocks > 4 * _STRIDE:
            # Long blocks are bounded first. The costs of cuts at their ends rule most of them out.
            long = np.append(np.arange(0, n_blocks, _STRIDE), n_blocks)
            is_kept = search.bounds(long) <= search.limit()
            parts = np.minimum(long[:-1][is_kept][:, None] + np.arange(_STRIDE + 1), n_blocks)
        is_block = parts[:, :-1] < n_blocks
        blocks, bounds = parts[:, :-1][is_block], search.bounds(parts)[is_block]
        order = np.argsort(bounds)
        blocks, bounds = blocks[order], bounds[order]
    done, at_a_time = 0, _STRIDE
    while done < (n_left := int(np.searchsorted(bounds, search.limit(), side="right"))):
        now = blocks[done : min(done + at_a_time, n_left)]
        search.evaluate(now)
        done, at_a_time = done + len(now), 4 * at_a_time
    return search.found()


def _scan(items: _Items, whole: _Range) -> int | None:
    """Return the same as `_best_cut` for a range of small weight, by evaluating every candidate in fixed point."""
    rows, table, total = slice(whole.first, whole.stop), items.n_log_n.table, whole.counts
    cuts = np.flatnonzero(items.is_candidate[whole.first : whole.stop - 1])
    if not len(cuts):
        return None
    labels = items.labels[rows].astype(np.intp)
    weights = np.ones(len(labels), np.int64) if items.weights is None else items.weights[rows]
    left = _sums_within_class(labels[None], weights[None], total)[0].astype(np.intp)
    right = total[labels] - left
    f = np.cumsum(table.take(left) - table.take(left - weights) + table.take(right) - table.take(right + weights))
    n, n_left = int(total.sum()), np.cumsum(weights)[cuts]
    costs = table.take(n_left) + table.take(n - n_left) - f[cuts]
    tolerance = int(math.ldexp(TIE * n, items.n_log_n.shift))
    # the first of those that tie; the term of the whole range is left out of all of them
    return whole.first + int(cuts[np.argmax(costs <= costs.min() + tolerance)])


class _Search:
    """The search for the best cut of a range, whose blocks are evaluated in any order and are numbered from 0.

    Costs are computed in floating point, and those that may be the lowest again in fixed point.
    """

    def __init__(self, items: _Items, whole: _Range) -> None:
        self._items, self._whole, self._total = items, whole, whole.counts
        self._n = int(self._total.sum())
        self._tolerance = int(math.ldexp(TIE * self._n, items.n_log_n.shift))
        self._lowest: int | None = None
        self._found = list[tuple[int, int]]()  # costs and cuts
        self._upper = math.inf  # a cost in bits, in floating point, of some cut
        # far more than the rounding errors of a sum over a block
        self._rounding = math.ldexp(self._n * (1 + math.log2(self._n)), -50) * (1000 + items.grain)

    def limit(self) -> float:
        """Return the highest bound, in bits, of a block that may have the best cut or one that ties with it."""
        shift = -self._items.n_log_n.shift
        lowest = self._upper + 2 * self._rounding
        if self._lowest is not None:
            lowest = min(lowest, math.ldexp(self._lowest, shift))
        return lowest + math.ldexp(self._tolerance, shift) + self._rounding

    def _edges(self, blocks: Index) -> tuple[Index, Counts]:
        """Return the first item of some blocks of the range, and the weight of each class in the range before it."""
        items, whole = self._items, self._whole
        blocks = blocks + whole.first // items.grain
        edges = np.minimum(np.maximum(blocks * items.grain, whole.first), whole.stop)
        counts = items.before[blocks]
        counts[edges == whole.first] = whole.start
        counts[edges == whole.stop] = whole.end
        counts -= whole.start
        return edges, counts

    def bounds(self, blocks: Index) -> Array:
        """Return lower bounds (..., E - 1), in bits, of the costs of the cuts between consecutive edges.

        The edges are the beginnings of `blocks` (..., E). The costs of the cuts at the edges bound the lowest cost from
        above; this bound is kept for `limit`.
        """
        edges, counts = self._edges(blocks)
        left, n = counts.astype(np.float64), float(self._n)
        f = _x_log_x(left) + _x_log_x(self._total - left)
        n_left = left.sum(axis=-1)
        is_cut = (edges > self._whole.first) & (edges < self._whole.stop) & self._items.is_candidate[edges - 1]
        if is_cut.any():
            own = n_left[is_cut]
            costs = _x_log_x(own) + _x_log_x(n - own) - f[is_cut].sum(axis=-1)
            self._upper = min(self._upper, float(costs.min()))
        # an empty block at the end has no cut
        middle = np.minimum((n_left[..., :-1] + n_left[..., 1:]) / 2, n - 0.5)
        log_right = np.log2(n - middle)
        slope = (np.log2(middle) - log_right)[..., None]
        terms = np.minimum(slope * left[..., :-1, :] - f[..., :-1, :], slope * left[..., 1:, :] - f[..., 1:, :])
        return np.asarray(n * log_right + terms.sum(axis=-1))

    def evaluate(self, blocks: Index) -> None:
        """Evaluate the cuts of some blocks, and record those that may have the lowest cost."""
        size = max(1, _BLOCK // self._items.grain)
        items, total = self._items, self._total
        for start in range(0, len(blocks), size):
            part = blocks[start : start + size]
            (first, counts), (stop, _) = self._edges(part), self._edges(part + 1)
            at = first[:, None] + np.arange((stop - first).max())
            is_inside = at < stop[:, None]
            at = np.minimum(at, self._whole.stop - 1)
            labels = items.labels[at].astype(np.intp)
            weights = is_inside.astype(np.float64)
            if items.weights is not None:
                weights *= items.weights[at]
            # on either side: the weight of the item's class for cuts after and before the item; the total weight
            terms = np.empty((6, *at.shape))
            left, right, left_before, right_before, n_left, n_right = terms
            left[:] = counts[np.arange(len(counts))[:, None], labels] + _sums_within_class(labels, weights, total)
            np.subtract(total[labels], left, out=right)
            np.subtract(left, weights, out=left_before)
            np.add(right, weights, out=right_before)
            n_left[:] = np.cumsum(weights, axis=1) + counts.sum(axis=1, keepdims=True)
            np.subtract(self._n, n_left, out=n_right)
            left, right, left_before, right_before, n_left, n_right = _x_log_x(terms)
            f = np.cumsum(left - left_before + right - right_before, axis=1)
            both = np.concatenate((counts, total - counts), axis=1)
            f += _x_log_x(both.astype(np.float64)).sum(axis=1, keepdims=True)
            costs = n_left + n_right - f
            is_cut = items.is_candidate[at] & is_inside
            is_cut &= at < self._whole.stop - 1
            costs[~is_cut] = np.inf
            tolerance = math.ldexp(self._tolerance, -items.n_log_n.shift)
            near = costs <= min(float(costs.min()) + tolerance + 2 * self._rounding, self.limit())
            for block, item in zip(*np.nonzero(near & is_cut), strict=True):
                own = np.bincount(labels[block, : item + 1], weights[block, : item + 1], len(total)).astype(np.int64)
                n_log_n, before = items.n_log_n, counts[block] + own
                both = np.array([before.sum(), self._n - before.sum()])
                cost = int(n_log_n(both).sum() - n_log_n(before).sum() - n_log_n(total - before).sum())
                self._lowest = cost if self._lowest is None else min(self._lowest, cost)
                self._found.append((cost, int(at[block, item])))

    def found(self) -> int | None:
        """Return the first of the cuts whose costs tie with the lowest, or None if no cut was recorded."""
        if self._lowest is None:
            return None
        return min(cut for cost, cut in self._found if cost <= self._lowest + self._tolerance)


def _x_log_x(x: Array) -> Array:
    """Return x log2 x for x >= 0, with 0 log2 0 = 0."""
    return x * np.log2(np.maximum(x, 0.25))


def _sums_within_class(labels: Index, weights: Array | Counts, total: Counts) -> Array:
    """Return, for every item (B, n), the total weight of the items of its class in its row up to and including it.

    total (K,) is the weight of each class; classes without weight do not occur.
    """
    sums: Array
    classes, n_labels = np.flatnonzero(total), len(total)
    if len(classes) <= _FEW_CLASSES:
        sums = np.zeros(labels.shape)
        for y in classes:
            own = labels == y
            np.copyto(sums, np.cumsum(own * weights, axis=1), where=own)
        return sums
    groups = (np.arange(len(labels))[:, None] * n_labels + labels).ravel()
    order = np.argsort(groups, kind="stable")
    running = np.append(0.0, np.cumsum(weights.ravel()[order]))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sums = np.empty(len(groups))
    sums[order] = running[1:] - np.repeat(running[starts], np.diff(starts, append=len(groups)))
    return sums.reshape(labels.shape)


def _is_accepted(items: _Items, whole: _Range, left: _Range, right: _Range) -> bool:
    """Return whether the gain of a cut exceeds the cost of its description."""
    n = float(whole.counts.sum()) * items.unit
    # log2(n - 1) has no value there
    if n <= 1 + TIE:
        return False
    # n Ent in units, Ent in bits per row, and the number of classes present
    counts = np.stack((whole.counts, left.counts, right.counts))
    totals = counts.sum(axis=1)
    terms = items.n_log_n(np.concatenate((totals[:, None], counts), axis=1))
    entropies = np.ldexp((terms[:, 0] - terms[:, 1:].sum(axis=1)).astype(np.float64), -items.n_log_n.shift)
    parts = zip(
        entropies.tolist(), (entropies / totals).tolist(), np.count_nonzero(counts, axis=1).tolist(), strict=True
    )
    (bits, ent, k), (bits1, ent1, k1), (bits2, ent2, k2) = parts
    gain = (bits - bits1 - bits2) * items.unit / n
    # log2(3^k - 2) in two terms, so that many classes do not overflow
    delta = k * math.log2(3) + math.log2(1 - 2 * 3.0**-k) - (k * ent - k1 * ent1 - k2 * ent2)
    return bool(gain > (math.log2(n - 1) + delta) / n)


class NLogN:
    """The function n log2 n in fixed point for integers 0 <= n <= total.

    The search adds and subtracts millions of such terms; in floating point the sum would depend on the order of rows.
    Here each term is rounded once, to an integer multiple of 2^-shift, and the rest is integer arithmetic:

        value(n) = rint(2^shift n log2 n),   shift about the largest for which value(total) is at most 2^60

    so that sums of differences telescope exactly. An entropy is accurate to about 1e-14 bits per row.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self.shift = 60 - math.ceil(math.log2(max(total, 2)) + math.log2(math.log2(max(total, 4))))

    def __call__(self, n: Counts) -> Counts:
        """Return n log2 n of every element, in multiples of 2^-shift."""
        number = n.astype(np.float64)
        # 0 log2 0 = 0: the maximum keeps the logarithm finite
        values = np.log2(np.maximum(number, 1.0))
        values *= number
        values *= math.ldexp(1.0, self.shift)
        return np.rint(values, out=values).astype(np.int64)

    @cached_property
    def table(self) -> Counts:
        """The values for n from 0 to _MOST_STORED, or to the total if it is lower."""
        return self(np.arange(min(self._total, _MOST_STORED) + 1))

    def entropy(self, counts: Counts) -> float:
        """Return n Ent = n log2 n - sum over k of n_k log2 n_k of class counts (K,), in bits.

        >>> NLogN(total=8).entropy(np.array([4, 2, 2]))
        12.0
        """
        return math.ldexp(int(self(counts.sum(keepdims=True))[0] - self(counts).sum()), -self.shift)


@lru_cache(maxsize=4)
def _n_log_n(total: int) -> NLogN:
    """Return the function for a total weight, cached with its table because most columns have the same total."""
    return NLogN(total)


def uncut(values: NDArray[np.generic], labels: Codes, n_labels: int) -> Mask:
    """Return, for each row of values (columns, N), N <= FEW_ROWS, whether that column certainly has no cut.

    All rows have weight 1. The test is one-sided: a column for which the result is False may have no cut either. Every
    gap between two rows in order counts as a cut, even between equal values, and the criterion of `_is_accepted` is
    applied with a margin for rounding.
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
