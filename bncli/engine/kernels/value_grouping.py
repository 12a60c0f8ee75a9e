"""Group the values of a categorical column by the class, with the minimum description length criterion MODL.

A partition of V values into G groups, of which group g holds N_g rows and N_gk of class k (K classes), costs in nats

    ln V + V ln G - ln G! + sum over g of [ ln C(N_g + K - 1, K - 1) + ln ( N_g! / prod over k of N_gk! ) ]

The first terms encode the number of groups and the group of each value, all groups being equally likely and unnamed.
The sum encodes the class counts of each group, every table of counts being equally likely, and then the class of each
of its rows. This is the criterion of Boulle (2005), MODL, with a prior over partitions in closed form. One group is the
model of no dependence, so a grouping must cost less than one group.

Encoding which of two groups a value belongs to costs 0.7 nats, more than a rare value can gain, so that thousands of
rare values would hide the common ones. Therefore values rarer than a threshold may be joined at the start; thresholds
of 1, 2, 4, 8, ... rows are tried, and the cheapest partition of all is returned.

For each threshold, values with the same proportions of classes are joined first into *units*. Then the two groups whose
merger adds least to the cost are merged, until one is left, and the cheapest partition on the way is improved by moving
one unit at a time to the group where it costs least.

Conventions: counts are integer multiples of `unit`; ties (1e-9 nats) are broken by an order that depends on the counts
alone, not on the names or their order. If there are more than MOST_UNITS different proportions, they are sorted by the
class with the highest lift and by its lift (for two classes, by the lift of the first), and neighbours are joined.
Cost: one sort of the values and MOST_UNITS^2 (MOST_UNITS + K) operations per threshold; 0.3 s for 3,500 values and two
classes.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Index

Counts = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)
MOST_UNITS = 256
_PASSES = 8
_TIE = 1e-9


def group_values(counts: Counts, unit: float = 1.0, most: int | None = None) -> Index:
    """Return the group of every value in the cheapest partition found, (V,), numbered 0 .. G - 1 by first member.

    counts (V, K): the weight of the rows of each value and class, in multiples of `unit`. most: the maximum number of
    groups, or None for any number.
    """
    groups, least = np.zeros(len(counts), np.intp), partition_cost(counts.sum(axis=0, keepdims=True) * unit, 1)
    weights = counts.sum(axis=1) * unit
    threshold, n_rare_before = 1.0, -1
    while n_rare_before < len(counts):
        rare = weights < threshold
        # skip a threshold that joins the same values as before, or leaves a single one
        n_rare = int(np.count_nonzero(rare))
        if n_rare != n_rare_before and len(counts) - n_rare + min(n_rare, 1) > 1:
            # the rare values count as one value: number 0 is that of all of them together, if there are any
            value = np.where(rare, 0, np.cumsum(~rare) - 1 + int(rare.any()))
            values = _sum_by_index(counts, value)
            unit_of = _join_proportional(values)
            units: Array = _sum_by_index(values, unit_of) * np.float64(unit)
            group_of = _move_units(units, _merge_groups(units, len(values), most))
            cost = partition_cost(_sum_by_index(units, group_of), len(values))
            if cost < least - _TIE:
                groups, least = _number_by_first(group_of[unit_of][value]), cost
        threshold, n_rare_before = 2 * threshold, n_rare
    return groups


def partition_cost(counts: Array, n_values: int) -> float:
    """Return the cost in nats of groups with these class counts (G, K) as a partition of `n_values` values."""
    return float(_label_costs(counts).sum()) + _description_cost(n_values, len(counts))


def _label_costs(counts: Array) -> Array:
    """Return ln C(N + K - 1, K - 1) + ln (N! / prod N_k!) for class counts along the last axis."""
    from scipy.special import gammaln  # takes long to load: only where it is used

    n_labels = counts.shape[-1]
    costs: Array = gammaln(counts.sum(axis=-1) + n_labels) - gammaln(n_labels) - gammaln(counts + 1).sum(axis=-1)
    return costs


def _description_cost(n_values: int, n_groups: int) -> float:
    """Return ln V + V ln G - ln(G!)."""
    from scipy.special import gammaln

    return float(np.log(n_values) + n_values * np.log(n_groups) - gammaln(n_groups + 1))


def _sum_by_index(counts: NDArray[Number], index: Index) -> NDArray[Number]:
    """Return the sum of the rows of counts (V, K) for each index from 0 to the maximum of `index` (V,)."""
    sums = np.zeros((int(index.max()) + 1, counts.shape[1]), counts.dtype)
    np.add.at(sums, index, counts)
    return sums


def _join_proportional(counts: Counts) -> Index:
    """Return the unit of every value, (V,): values with the same class proportions share one of at most MOST_UNITS."""
    # values with the same proportions of classes have the same counts once divided by their common divisor
    divisor = np.gcd.reduce(counts, axis=1)
    directions, unit = np.unique(counts // np.maximum(divisor, 1)[:, None], axis=0, return_inverse=True)
    unit, n = unit.ravel(), len(directions)
    if n <= MOST_UNITS:
        return unit
    sums = _sum_by_index(counts, unit)
    total = np.maximum(sums.sum(axis=0), 1)
    # P(k | unit) / N_k, the lift of class k divided by the number of rows
    lifts = sums / np.maximum(sums.sum(axis=1, keepdims=True), 1) / total
    # with two classes the lift of one gives the order; with more, the highest lift
    lifts = lifts[:, :1] if lifts.shape[1] == 2 else lifts
    outstanding = lifts.argmax(axis=1)
    order = np.lexsort((lifts[np.arange(n), outstanding], outstanding))
    position = np.empty(n, np.intp)
    position[order] = np.arange(n)
    # stretches of neighbours, of as equal a number of proportions as possible
    joined: Index = (position * MOST_UNITS // n)[unit]
    return joined


def _merge_groups(units: Array, n_values: int, most: int | None) -> Index:
    """Merge two groups at a time, at the least cost, until one is left; return the cheapest partition on the way.

    The result is the group of every unit, in a partition into at most `most` groups, or into any number if `most` is
    None.
    """
    sums, costs = units.copy(), _label_costs(units)
    # losses[i, j]: the rise of the label costs if i and j are merged; inf on the diagonal and for groups merged away
    losses = np.stack([_label_costs(sums + counts) for counts in sums]) - costs - costs[:, None]
    np.fill_diagonal(losses, np.inf)
    groups = np.arange(len(units))
    total, cheapest, best = float(costs.sum()), np.inf, groups
    # invariants: total = sum of the costs of the groups that are left; losses are up to date between these
    for n_groups in range(len(units), 0, -1):
        cost = total + _description_cost(n_values, n_groups)
        if (most is None or n_groups <= most) and cost < cheapest - _TIE:
            cheapest, best = cost, groups.copy()
        if n_groups == 1:
            break
        # the lower of the two keeps its number
        target, merged = sorted(divmod(int(losses.argmin()), len(units)))
        total += float(losses[target, merged])
        groups[groups == merged] = target
        sums[target] += sums[merged]
        costs[target] = _label_costs(sums[target])
        losses[merged, :] = losses[:, merged] = np.inf
        # groups that still exist, without `target` itself
        others = np.flatnonzero(np.isfinite(losses[target]))
        changed = _label_costs(sums[target] + sums[others]) - costs[target] - costs[others]
        losses[target, others] = losses[others, target] = changed
    return _number_by_first(best)


def _number_by_first(groups: Index) -> Index:
    """Renumber the groups in the order of their first members."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    numbers: Index = np.argsort(np.argsort(first))[group.ravel()]
    return numbers


def _move_units(units: Array, groups: Index) -> Index:
    """Move one unit at a time to the group where it costs least; return the group of every unit.

    Passes over the units are repeated until no unit moves, at most _PASSES times. No group is emptied.
    """
    groups, sums, size = groups.copy(), _sum_by_index(units, groups), np.bincount(groups)
    for _ in range(_PASSES if len(size) > 1 else 0):
        before = groups.copy()
        for u, counts in enumerate(units):
            own = groups[u]
            # moving it would empty the group
            if size[own] == 1:
                continue
            # taken out, so that change[g] is the cost of putting it into group g, its own included
            sums[own] -= counts
            change = _label_costs(sums + counts) - _label_costs(sums)
            to = int(change.argmin())
            if change[to] < change[own] - _TIE:
                groups[u] = to
                size[own] -= 1
                size[to] += 1
            sums[groups[u]] += counts
        if (groups == before).all():
            break
    return groups
