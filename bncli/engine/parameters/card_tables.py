"""Fits of the small tables of a score card: values joined by their class proportions, penalised logistic regression.

The score of class y is a bias plus one number per table, that of the group of the row's value:

    S[t, y] = b[y] + sum over tables f of v_f[group_f(t), y]

The penalty is PENALTY / 2 times the sum of the squared numbers of all classes, which keeps the numbers of small groups
small.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.parameters.cut_grids import Axis, Grid
from bncli.engine.structures.structure import Family, Grouping

PENALTY = 8.0
STEPS, TOLERANCE = 100, 1e-8
"""The most steps of a fit; the fit ends when a step gains less than the share TOLERANCE of the objective."""
PSEUDO_ROWS = 0.5
"""Rows with the overall class frequencies, added to each value before values are compared."""
MOST_PAIRED = 64
"""With more levels, only neighbours in the order of the frequency of the first class are compared."""
MOST_STATES = 200
MOST_CELLS, CUT_COST = 9, 1.0
"""Most cells of a table of several attributes, each of which is cut once; the least gain of a further cut, in nats."""


def n_ordered(attribute: Attribute) -> int:
    """Return how many of the attribute's codes, counted from the first, are intervals; 0 if it is categorical."""
    return attribute.n_values if isinstance(attribute, NumericAttribute) else 0


def n_ordered_groups(attributes: Sequence[Attribute], family: Family) -> list[int]:
    """Return how many coarse codes of each attribute of a family are intervals."""
    sizes = zip(attributes, family.shape, strict=True)
    return [size - attribute.missing if n_ordered(attribute) else 0 for attribute, size in sizes]


def joinable_pairs(firsts: Sequence[int], ordered: int, rates: Array | None = None) -> list[tuple[int, int]]:
    """Return the pairs of groups (a < b) that may be joined; `firsts` is the first code of each group.

    An interval may be joined to its neighbours; a missing level, which follows the intervals, to any group. `rates` are
    the frequencies of the first class in each group, by which the pairs of very many levels are limited.
    """
    n = len(firsts)
    intervals = sorted((g for g in range(n) if firsts[g] < ordered), key=lambda g: firsts[g])
    others = [g for g in range(n) if firsts[g] >= ordered]
    if not ordered and n > MOST_PAIRED and rates is not None:
        others = np.argsort(rates, kind="stable").tolist()
        return [(min(pair), max(pair)) for pair in itertools.pairwise(others)]
    pairs = [*itertools.pairwise(intervals), *itertools.combinations(others, 2)]
    pairs += [(g, other) for g in intervals for other in others]
    return [(min(pair), max(pair)) for pair in pairs]


def joinable_boxes(groups: Index, shape: Sequence[int], ordered: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of groups (a < b) of cells of a grid that together are a box.

    A box is a choice of codes on every axis. Those of the first `ordered` codes of an axis, intervals, are neighbours.
    """
    members = [np.unravel_index(np.flatnonzero(groups == g), shape) for g in range(int(groups.max()) + 1)]
    pairs = []
    for (a, one), (b, other) in itertools.combinations(enumerate(members), 2):
        axes = [set(x.tolist()) | set(y.tolist()) for x, y in zip(one, other, strict=True)]
        runs = [sorted(c for c in axis if c < n) for axis, n in zip(axes, ordered, strict=True)]
        if math.prod(map(len, axes)) == len(one[0]) + len(other[0]) and all(
            not run or run[-1] - run[0] == len(run) - 1 for run in runs
        ):
            pairs.append((a, b))
    return pairs


def fewest_boxes(numbers: ArrayLike, shape: Sequence[int], ordered: Sequence[int]) -> Index:
    """Return the box of every cell, (cells,), where cells (cells, K) of equal numbers are joined to the fewest boxes.

    At most MOST_STATES partitions are followed at a time.
    """
    numbers = np.asarray(numbers)
    states: list[tuple[int, ...]] = [tuple(range(len(numbers)))]
    while True:
        following: dict[tuple[int, ...], None] = {}
        for state in states:
            groups = np.array(state, np.intp)
            firsts = [state.index(g) for g in range(max(state) + 1)]
            for a, b in joinable_boxes(groups, shape, ordered):
                if np.array_equal(numbers[firsts[a]], numbers[firsts[b]]):
                    following[tuple(joined(groups, a, b).tolist())] = None
        if not following:
            return np.array(min(states), np.intp)
        states = sorted(following)[:MOST_STATES]


def join_codes(
    fit: CardFit, scores: Array, codes: Sequence[Index], attributes: Sequence[Attribute]
) -> tuple[float, tuple[Grouping | None, ...]]:
    """Return a grouping of the codes of each attribute for a common table, and what the table gains in nats.

    The table is fitted to what is left by the scores (n, K), by one Newton step (`Grid`). Intervals are cut, levels are
    first put in the order of the leading singular vector of their residuals, and a missing level stays alone.
    """
    p = fit.probabilities(scores)
    labels = range(p.shape[1]) if p.shape[1] > 2 else (1,)
    shape = tuple(attribute.cardinality for attribute in attributes)
    cells, n_cells = cell_numbers(codes, shape), math.prod(shape)
    slopes = [np.bincount(cells, fit.mass * (fit.target[:, y] - p[:, y]), n_cells) for y in labels]
    curvatures = [np.bincount(cells, fit.mass * p[:, y] * (1 - p[:, y]), n_cells) for y in labels]
    sums = np.array(slopes + curvatures, np.float64).reshape(-1, *shape)
    orders = []
    for axis, attribute in enumerate(attributes, 1):
        order = np.arange(attribute.cardinality)
        if not isinstance(attribute, NumericAttribute) and attribute.n_values > 2:
            along = np.moveaxis(sums, axis, 0)[: attribute.n_values]
            standardised = along[:, : len(labels)] / np.sqrt(along[:, len(labels) :] + PENALTY / 2)
            vector = np.linalg.svd(standardised.reshape(attribute.n_values, -1))[0][:, 0]
            order[: attribute.n_values] = np.argsort(vector, kind="stable")
            sums = np.take(sums, order, axis)
        orders.append(order)
    axes = tuple(Axis(a.cardinality, a.n_values) for a in attributes)
    grid, whole = Grid(sums, axes, PENALTY / 2), Grid(sums, axes, PENALTY / 2)
    grid.grow(MOST_CELLS, CUT_COST)
    if n_cells <= MOST_CELLS:  # cuts that say something together only
        whole.starts = [list(range(size)) for size in shape]
        n_cuts = sum(shape) - sum(map(len, grid.starts))
        grid = whole if whole.value > grid.value + CUT_COST * n_cuts else grid
    groupings: list[Grouping | None] = []
    for starts, order in zip(grid.starts, orders, strict=True):
        group_of = (np.searchsorted(starts, np.argsort(order), side="right") - 1).tolist()
        number = {group: k for k, group in enumerate(dict.fromkeys(group_of))}
        groupings.append(None if len(number) == len(order) else tuple(number[group] for group in group_of))
    gain = grid.value * (1 if len(labels) == 1 else (p.shape[1] - 1) / p.shape[1])
    return gain, tuple(groupings)


def regrouped_cells(codes: Sequence[Index], groupings: Sequence[Grouping | None], shape: Sequence[int]) -> Index:
    """Return the cell of every row of a table with groupings."""
    pairs = zip(codes, groupings, strict=True)
    return cell_numbers([own if grouping is None else np.array(grouping)[own] for own, grouping in pairs], shape)


def join_values(counts: ArrayLike, ordered: int, *, cost: float, most: int) -> Index:
    """Join the groups whose class proportions differ least, one pair after the other; return the group of every value.

    counts (values, K). The cost of a pair is the log-likelihood of the classes, in nats, that is lost if both groups
    have the same frequencies. Groups are joined while there are more than `most`, or while a pair costs less than
    `cost`; at least two are left.
    """
    counts = np.asarray(counts, np.float64)
    base = counts.sum(axis=0) / max(float(counts.sum()), 1e-300)
    groups: Index = np.arange(len(counts), dtype=np.intp)
    table = counts + PSEUDO_ROWS * base
    firsts = list(range(len(counts)))
    while len(table) > 2:
        rates = table[:, 0] / np.maximum(table.sum(axis=1), 1e-300)
        pairs = np.array(joinable_pairs(firsts, ordered, rates))
        if not len(pairs):
            break
        own, joint = _log_likelihood(table), _log_likelihood(table[pairs[:, 0]] + table[pairs[:, 1]])
        costs = own[pairs[:, 0]] + own[pairs[:, 1]] - joint
        best = int(np.argmin(costs))
        if len(table) <= most and costs[best] >= cost:
            break
        a, b = pairs[best].tolist()
        groups = joined(groups, a, b)
        table[a] += table[b]
        table = np.delete(table, b, axis=0)
        firsts[a] = min(firsts[a], firsts.pop(b))
    return groups


def joined(groups: Index, a: int, b: int) -> Index:
    """Join group b > a to group a, and number the groups without gaps."""
    merged: Index = np.where(groups == b, a, groups)
    return merged - (merged > b).astype(np.intp)


def _log_likelihood(table: Array) -> Array:
    total = table.sum(axis=1, keepdims=True)
    terms = table * np.log(np.maximum(table, 1e-300) / np.maximum(total, 1e-300))
    return np.asarray(terms.sum(axis=1))


class CardFit:
    """Losses and fits over rows: labels (n,) of K classes, weights `mass` (n,)."""

    def __init__(self, labels: Index, n_labels: int, mass: Array) -> None:
        self.labels, self.mass = labels, mass
        self.target = np.eye(n_labels)[labels]

    def probabilities(self, scores: Array) -> Array:
        """Return P(y | x), (n, K), from scores (n, K)."""
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Array = p / p.sum(axis=1, keepdims=True)
        return shares

    def loss(self, scores: Array) -> float:
        """Return the weighted log-loss, summed, in nats."""
        top = scores.max(axis=1)
        log_sum = top + np.log(np.exp(scores - top[:, np.newaxis]).sum(axis=1))
        return float(self.mass @ (log_sum - scores[np.arange(len(scores)), self.labels]))

    def frequencies(self) -> Array:
        """Return the scores (K,) of the class frequencies."""
        return np.asarray(np.log((self.mass @ self.target + 1e-3) / (self.mass.sum() + 1e-3 * self.target.shape[1])))

    def scores(self, bias: Array, columns: Sequence[Index], values: Sequence[Array]) -> Array:
        """Return S (n, K); columns[f] (n,): the group of every row in table f; values[f]: the numbers of the groups."""
        total: Array = np.tile(bias, (len(self.mass), 1))
        for column, own in zip(columns, values, strict=True):
            total += own[column]
        return total

    def free(
        self,
        columns: Sequence[Index],
        sizes: Sequence[int],
        start: tuple[Array, Sequence[Array]] | None = None,
        steps: int = STEPS,
        tolerance: float = TOLERANCE,
    ) -> tuple[float, Array, list[Array]]:
        """Minimise the penalised loss; return the objective in nats, the bias and the tables.

        With two classes the method is Newton's, in the log-odds. With more classes the curvature is replaced by
        Böhning's bound 1/2 (I - 1 1'/K), with which steps never overshoot.
        """
        n, n_labels = self.target.shape
        edges = np.cumsum([1, *sizes])
        design = np.zeros((n, int(edges[-1])))
        design[:, 0] = 1
        for edge, column in zip(edges, columns, strict=False):
            design[np.arange(n), edge + column] = 1
        beta = np.zeros((int(edges[-1]), n_labels))
        beta[0] = self.frequencies() if start is None else start[0]
        if start is not None and len(start[1]):
            beta[1:] = np.concatenate(list(start[1]))
        beta -= beta.mean(axis=1, keepdims=True)
        ridge = np.full(int(edges[-1]), PENALTY)
        ridge[0] = 1e-6
        two = n_labels == 2
        inverse = None
        if not two:
            inverse = np.linalg.inv(0.5 * design.T @ (design * self.mass[:, np.newaxis]) + np.diag(ridge))
        best, before = beta, np.inf
        for _ in range(steps):
            scores = design @ beta
            now = self.loss(scores) + 0.5 * float(ridge @ (beta**2).sum(axis=1))
            if now < before:
                best = beta
            if before - now <= tolerance * max(now, 1.0):
                before = min(now, before)
                break
            before = now
            p = self.probabilities(scores)
            gradient = design.T @ (self.mass[:, np.newaxis] * (self.target - p)) - ridge[:, np.newaxis] * beta
            if two:
                curvature = self.mass * p[:, 0] * p[:, 1]
                hessian = design.T @ (design * curvature[:, np.newaxis]) + np.diag(ridge / 2)
                step = np.linalg.solve(hessian, gradient[:, 1])
                beta = beta + np.stack([-step, step], axis=1) / 2
            else:
                assert inverse is not None
                step = inverse @ gradient
                beta = beta + step - step.mean(axis=1, keepdims=True)
        return before, best[0], [best[a:b] for a, b in itertools.pairwise(edges)]
