"""The small tables of a score card: groups of values, with entries fitted by penalised logistic regression.

The score of class y is a bias plus one entry per table, the entry of the group to which the row's value belongs:

    S[t, y] = b[y] + sum over tables f of v_f[group_f(t), y]

The penalty is lambda / 2 times the sum of the squared entries of all classes, which keeps the entries of small groups
small; lambda is PENALTY, or the member of PENALTIES that `CardFit.choose_penalty` chooses.

A table over a column with a monotonicity constraint has an *order*: pairs of groups (low, high) between which the
log-odds of the raised label against each other label must not fall (`ascending_pairs`). Each table keeps its own order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Index, cell_numbers
from bncli.engine.parameters.cut_grids import Axis, Grid
from bncli.engine.structures.structure import Family, Grouping

PENALTY = 8.0
PENALTIES, USUAL_LEAST, PENALTY_ROWS = (32.0, 16.0, 8.0, 4.0, 2.0, 1.0), 4.0, 1_000.0
"""The penalties to choose from. A penalty below USUAL_LEAST is tried only if the rows have a total weight of at least
PENALTY_ROWS / penalty."""
STEPS, TOLERANCE, JOIN_TOLERANCE = 100, 1e-8, 1e-5
"""The maximum number of steps of a fit; a fit ends when a step gains at most the fraction TOLERANCE of the objective.
Fits that only prepare the next join, or the choice of the penalty, end at JOIN_TOLERANCE."""
PSEUDO_ROWS = 0.5
"""The number of rows with the overall class frequencies that are added to each value before values are compared."""
MOST_PAIRED = 64
"""With more groups of levels than this, only neighbours in the order of the first class's frequency are compared."""
LEAST_COST, LEAST_FALL, MOST_SWAPS = 0.5, 1e-6, 6
"""The cost of a group in nats, for each class beyond the first; the minimum decrease of the objective by a split; and
the maximum number of splits tried."""
MOST_EXCHANGES, EXCHANGE_COST, TRIED, MOST_NEW = 12, 4.0, 2, 5
"""The maximum number of exchanges of tables; the minimum decrease of the objective by an exchange, in nats; the maximum
number of tables that are tried in place of each; and the maximum number of groups of a new table before further splits.
"""
MOST_STATES = 200
"""The maximum number of partitions of a grid into boxes that are kept at a time."""
MOST_CELLS, CUT_COST = 9, 1.0
"""The maximum number of cells of a table of several attributes, unless cutting each attribute once makes more; and the
minimum gain of a new cut, in nats."""
EQUAL, HALVINGS = 1e-9, 30
"""Entries that differ by at most about EQUAL count as equal; HALVINGS is the maximum number of halvings of a step under
orders."""

Order = list[tuple[int, int]]
"""Pairs of groups (low, high) of a table: from low to high, the log-odds of one label must not fall."""


def n_ordered(attribute: Attribute) -> int:
    """Return the number of the attribute's codes that are intervals, which come first; 0 if it is categorical."""
    return attribute.n_values if isinstance(attribute, NumericAttribute) else 0


def n_ordered_groups(attributes: Sequence[Attribute], family: Family) -> list[int]:
    """Return the number of coarse codes that are intervals, for each attribute of a family."""
    sizes = zip(attributes, family.shape, strict=True)
    return [size - attribute.missing if n_ordered(attribute) else 0 for attribute, size in sizes]


def joinable_pairs(firsts: Sequence[int], ordered: int, rates: Array | None = None) -> list[tuple[int, int]]:
    """Return the pairs of groups (a < b) that may be joined; `firsts` is the first code of each group.

    An interval may be joined to its neighbours, and a missing level, which follows the intervals, to any group. Any two
    groups of levels of a categorical attribute may be joined. But if there are more than MOST_PAIRED groups and `rates`
    (the frequency of the first class in each group) is given, only neighbours in the order of `rates` may be joined.
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
    """Return the pairs of groups (a < b) of a grid's cells whose union is a box.

    A box consists of all combinations of one set of codes per axis. The intervals in such a set, which are among the
    first `ordered` codes of the axis, must be consecutive.
    """
    members = [np.unravel_index(np.flatnonzero(groups == g), shape) for g in range(int(groups.max()) + 1)]
    pairs = []
    for (a, one), (b, other) in itertools.combinations(enumerate(members), 2):
        axes = [set(x.tolist()) | set(y.tolist()) for x, y in zip(one, other, strict=True)]
        runs = [sorted(c for c in axis if c < n) for axis, n in zip(axes, ordered, strict=True)]
        # the union is a box if it fills its bounding box
        if math.prod(map(len, axes)) == len(one[0]) + len(other[0]) and all(
            not run or run[-1] - run[0] == len(run) - 1 for run in runs
        ):
            pairs.append((a, b))
    return pairs


def fewest_boxes(numbers: ArrayLike, shape: Sequence[int], ordered: Sequence[int]) -> Index:
    """Return the box of every cell, (cells,), after joining cells with equal `numbers` (cells, K) into few boxes.

    Boxes are joined in pairs, and a partition into the fewest boxes reached is returned; at most MOST_STATES partitions
    are kept at a time.
    """
    numbers = np.asarray(numbers)
    # breadth-first: every round joins one pair, so all states of a round have equally many boxes, the last the fewest
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


def ascending_pairs(
    groups: Index, attributes: Sequence[Attribute], shape: Sequence[int], ordered: Sequence[int]
) -> Order:
    """Return the pairs of groups (low, high) that are neighbours along an attribute with a monotonicity constraint.

    groups (cells,): the group of every cell of a grid of that shape, whose first `ordered` codes on each axis are
    intervals. Other codes, such as a missing level, have no order.
    """
    pairs: dict[tuple[int, int], None] = {}
    for axis, (attribute, n) in enumerate(zip(attributes, ordered, strict=True)):
        direction = attribute.direction if isinstance(attribute, NumericAttribute) else 0
        if direction:
            # (intervals, other axes): from one interval to the next, at the same codes of the other attributes
            line = np.moveaxis(groups.reshape(shape), axis, 0)[:n]
            # a direction of -1 swaps the two
            low, high = (line[:-1], line[1:])[::direction]
            pairs |= dict.fromkeys(
                (a, b) for a, b in zip(low.ravel().tolist(), high.ravel().tolist(), strict=True) if a != b
            )
    return list(pairs)


def equal_rows(numbers: ArrayLike, shape: Sequence[int], ordered: Sequence[int]) -> Index:
    """Return the row of a card for each cell of a table, (cells,); all cells of a row have equal `numbers` (cells, K).

    With one attribute, neighbouring intervals with equal entries share a row, and a level or a missing value joins the
    first row with the same entries. With several attributes, rows are the boxes of `fewest_boxes`. `ordered` has the
    number of intervals of each axis, which come first.
    """
    if len(shape) > 1:
        return fewest_boxes(numbers, shape, ordered)
    listed = [tuple(row) for row in np.asarray(numbers).tolist()]
    groups: list[int] = []
    place: dict[tuple[float, ...], int] = {}
    for code, row in enumerate(listed):
        if 0 < code < ordered[0]:
            groups.append(groups[-1] + (row != listed[code - 1]))
        else:
            groups.append(place.get(row, max(groups, default=-1) + 1))
        place.setdefault(row, groups[-1])
    return np.array(groups, np.intp)


def join_codes(
    residuals: Sequence[Array], codes: Sequence[Index], attributes: Sequence[Attribute]
) -> tuple[float, tuple[Grouping | None, ...]]:
    """Return the gain of a common table of the attributes, in nats, and the grouping of the codes of each attribute.

    The table is fitted to the residuals (`CardFit.residuals`) by one Newton step (`Grid`). Neighbouring intervals are
    joined. So are levels, after they have been sorted by the leading singular vector of their standardised residuals. A
    missing level stays alone. A grouping is None if every code is a group.
    """
    n_labels = max(len(residuals) // 2, 2)
    shape = tuple(attribute.cardinality for attribute in attributes)
    cells, n_cells = cell_numbers(codes, shape), math.prod(shape)
    # slopes of all classes, then their curvatures, in each cell of the table
    sums = np.array([np.bincount(cells, each, n_cells) for each in residuals], np.float64).reshape(-1, *shape)
    orders = []
    for axis, attribute in enumerate(attributes, 1):
        order = np.arange(attribute.cardinality)
        if not isinstance(attribute, NumericAttribute) and attribute.n_values > 2:
            # levels first, then slopes and curvatures, then the codes of the other attributes
            along = np.moveaxis(sums, axis, 0)[: attribute.n_values]
            slopes, curvatures = np.split(along, 2, axis=1)
            # PENALTY on the two numbers -d/2 and d/2 is PENALTY / 2 on the log-odds d
            standardised = slopes / np.sqrt(curvatures + PENALTY / 2)
            # levels with similar residuals across the other attributes have similar entries: neighbours in the order
            vector = np.linalg.svd(standardised.reshape(attribute.n_values, -1))[0][:, 0]
            order[: attribute.n_values] = np.argsort(vector, kind="stable")
            sums = np.take(sums, order, axis)
        orders.append(order)
    axes = tuple(Axis(a.cardinality, a.n_values) for a in attributes)
    grid, whole = Grid(sums, axes, PENALTY / 2), Grid(sums, axes, PENALTY / 2)
    grid.grow(MOST_CELLS, CUT_COST)
    # Growing cut by cut misses cuts that only help together, as in exclusive or: try the grid with all cuts too.
    if n_cells <= MOST_CELLS:
        whole.starts = [list(range(size)) for size in shape]
        n_cuts = sum(shape) - sum(map(len, grid.starts))
        grid = whole if whole.value > grid.value + CUT_COST * n_cuts else grid
    groupings: list[Grouping | None] = []
    for starts, order in zip(grid.starts, orders, strict=True):
        # argsort(order) is the position of each code in the order; its group is the last that starts at or before it
        group_of = (np.searchsorted(starts, np.argsort(order), side="right") - 1).tolist()
        # groupings number their groups in the order of the codes
        number = {group: k for k, group in enumerate(dict.fromkeys(group_of))}
        groupings.append(None if len(number) == len(order) else tuple(number[group] for group in group_of))
    # K one-against-rest steps gain K / (K - 1) times as much as a joint step if all classes are equally likely.
    gain = grid.value * (1 if n_labels == 2 else (n_labels - 1) / n_labels)
    return gain, tuple(groupings)


def regrouped_cells(codes: Sequence[Index], groupings: Sequence[Grouping | None], shape: Sequence[int]) -> Index:
    """Return the cell of every row, (rows,), in a table of the given shape over attributes with the given groupings."""
    pairs = zip(codes, groupings, strict=True)
    return cell_numbers([own if grouping is None else np.array(grouping)[own] for own, grouping in pairs], shape)


def join_values(counts: ArrayLike, ordered: int, *, cost: float, most: int) -> Index:
    """Join the groups whose class proportions differ least, one pair after the other; return the group of every value.

    counts (values, K). The cost of a pair is the log-likelihood of the classes, in nats, that is lost if both groups
    have the same class frequencies. Groups are joined while there are more than `most`, or while a pair costs less than
    `cost`; at least two groups are left.
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
        # loss of likelihood by joining: two multinomial distributions against one
        costs = np.maximum(own[pairs[:, 0]] + own[pairs[:, 1]] - joint, 0.0)  # equal groups: rounding may fall below
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


def _logistic(margin: Array) -> Array:
    """Return 1 / (1 + exp(-margin)) without overflow."""
    small = np.exp(-np.abs(margin))
    share: Array = np.where(margin < 0, small, 1.0) / (1 + small)
    return share


class CardFit:
    """Losses and penalised fits on rows with labels (n,) of K classes and weights `mass` (n,).

    `raised` is the class whose log-odds follow the orders of tables.
    """

    def __init__(self, labels: Index, n_labels: int, mass: Array, raised: int = 1) -> None:
        self.labels, self.mass, self.penalty, self.raised = labels, mass, PENALTY, raised
        self.target = np.eye(n_labels)[labels]

    def _margin_loss(self, margin: Array) -> float:
        """Return the total weighted log-loss in nats for two classes, given log-odds `margin` (n,) of the second."""
        wrong = np.where(self.labels == 1, -margin, margin)
        return float(self.mass @ (np.maximum(wrong, 0.0) + np.log1p(np.exp(-np.abs(wrong)))))

    def probabilities(self, scores: Array) -> Array:
        """Return P(y | x), (n, K), from scores (n, K)."""
        if scores.shape[1] == 2:  # reductions over an axis of two elements take most of the time otherwise
            second = _logistic(scores[:, 1] - scores[:, 0])
            return np.stack([1 - second, second], axis=1)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Array = p / p.sum(axis=1, keepdims=True)
        return shares

    def loss(self, scores: Array) -> float:
        """Return the total weighted log-loss in nats, given scores (n, K)."""
        if scores.shape[1] == 2:
            return self._margin_loss(scores[:, 1] - scores[:, 0])
        top = scores.max(axis=1)
        log_sum = top + np.log(np.exp(scores - top[:, np.newaxis]).sum(axis=1))
        return float(self.mass @ (log_sum - scores[np.arange(len(scores)), self.labels]))

    def residuals(self, scores: Array) -> list[Array]:
        """Return the slopes of each row's log-likelihood in the score of each class, then the curvatures, (n,) each.

        Curvatures are minus the second derivatives. With two classes, only the slopes and curvatures of the second
        class are returned.
        """
        p = self.probabilities(scores)
        labels = range(p.shape[1]) if p.shape[1] > 2 else (1,)
        slopes = [self.mass * (self.target[:, y] - p[:, y]) for y in labels]
        return [*slopes, *(self.mass * p[:, y] * (1 - p[:, y]) for y in labels)]

    def frequencies(self) -> Array:
        """Return the logarithms of the class frequencies (K,), slightly smoothed, to be used as scores."""
        return np.asarray(np.log((self.mass @ self.target + 1e-3) / (self.mass.sum() + 1e-3 * self.target.shape[1])))

    def scores(self, bias: Array, columns: Sequence[Index], values: Sequence[Array]) -> Array:
        """Return S (n, K), given the group of every row in table f, columns[f] (n,), and the entries values[f]."""
        total: Array = np.tile(bias, (len(self.mass), 1))
        for column, own in zip(columns, values, strict=True):
            total += own.take(column, axis=0)
        return total

    def _design(self, columns: Sequence[Index], sizes: Sequence[int]) -> Array:
        """Return the indicators (n, 1 + sum of sizes) of the bias and of the groups."""
        edges, rows = np.cumsum([1, *sizes]), np.arange(len(self.mass))
        design = np.zeros((len(rows), int(edges[-1])))
        design[:, 0] = 1
        for edge, column in zip(edges, columns, strict=False):
            design[rows, edge + column] = 1
        return design

    def choose_penalty(self, columns: Sequence[Index], sizes: Sequence[int]) -> None:
        """Set `penalty` to the member of PENALTIES with the highest evidence, by Laplace's approximation.

        The evidence is the probability of the labels, where the penalty is a normal prior of the entries. Penalties are
        tried in descending order until the evidence no longer rises. With more than two classes, each class is
        approximated separately.
        """
        n_labels, most, best = self.target.shape[1], -math.inf, PENALTIES[0]
        design = self._design(columns, sizes)
        least = min(USUAL_LEAST, PENALTY_ROWS / float(self.mass.sum()))
        start = None
        for penalty in (penalty for penalty in PENALTIES if penalty >= least):
            self.penalty = penalty
            objective, bias, values = self.free(columns, sizes, start, STEPS, JOIN_TOLERANCE, design=design)
            start = bias, values
            p = self.probabilities(self.scores(bias, columns, values))
            # half of it for log-odds (see `join_codes`); the bias has hardly any prior, so its volume is left out
            prior = np.full(design.shape[1], penalty / 2)
            prior[0] = 1e-6
            volume = 0.0
            for y in range(1 if n_labels == 2 else 0, n_labels):
                scaled = design * np.sqrt(self.mass * p[:, y] * (1 - p[:, y]))[:, np.newaxis]
                hessian = scaled.T @ scaled + np.diag(prior)
                # evidence = exp(-objective) sqrt(det prior / det Hessian), here in logarithms
                volume += float(np.log(prior[1:]).sum() - np.linalg.slogdet(hessian)[1]) / 2
            evidence = volume * (1.0 if n_labels == 2 else (n_labels - 1) / n_labels) - objective
            if evidence <= most:
                break
            most, best = evidence, penalty
        self.penalty = best

    def free(
        self,
        columns: Sequence[Index],
        sizes: Sequence[int],
        start: tuple[Array, Sequence[Array]] | None = None,
        steps: int = STEPS,
        tolerance: float = TOLERANCE,
        orders: Sequence[Order] = (),
        design: Array | None = None,
    ) -> tuple[float, Array, list[Array]]:
        """Minimise the penalised loss; return the objective in nats, the bias and the tables.

        `design` is the result of `_design`, if it is known.

        With two classes it takes Newton steps in the log-odds. With more classes the curvature is replaced by Böhning's
        bound 1/2 (I - 1 1'/K), with which steps never overshoot. If the optimum breaks one of the `orders`,
        one per table, the optimum that keeps them all is returned.
        """
        n_labels = self.target.shape[1]
        edges = np.cumsum([1, *sizes])
        design = self._design(columns, sizes) if design is None else design
        beta = np.zeros((int(edges[-1]), n_labels))
        beta[0] = self.frequencies() if start is None else start[0]
        if start is not None and len(start[1]):
            beta[1:] = np.concatenate(list(start[1]))
        # adding the same to all classes changes no probability, so numbers are kept at mean 0 over the classes
        beta -= beta.mean(axis=1, keepdims=True)
        ridge = np.full(int(edges[-1]), self.penalty)
        # next to nothing for the bias, but enough to make the Hessian invertible
        ridge[0] = 1e-6
        two = n_labels == 2
        scaled, inverse = np.empty_like(design), None
        if not two:
            # on numbers of mean 0 Böhning's bound is 1/2 for every class, and does not change: inverted once
            inverse = np.linalg.inv(0.5 * design.T @ (design * self.mass[:, np.newaxis]) + np.diag(ridge))
        best, before = beta, np.inf
        for _ in range(steps):
            scores = design @ (beta[:, 1] - beta[:, 0] if two else beta)
            now = self._margin_loss(scores) if two else self.loss(scores)
            now += 0.5 * float(ridge @ (beta**2).sum(axis=1))
            # the last step may have raised the objective
            if now < before:
                best = beta
            if before - now <= tolerance * max(now, 1.0):
                before = min(now, before)
                break
            before = now
            if two:
                # With numbers -d/2 and d/2, the penalty on d is half: ridge / 2 in the Hessian, and in the gradient
                # ridge / 2 * d = ridge * beta[:, 1].
                second = _logistic(scores)
                # a matrix times its own transpose takes half the operations
                np.multiply(design, np.sqrt(self.mass * second * (1 - second))[:, np.newaxis], out=scaled)
                hessian = scaled.T @ scaled + np.diag(ridge / 2)
                step = np.linalg.solve(
                    hessian, design.T @ (self.mass * (self.target[:, 1] - second)) - ridge * beta[:, 1]
                )
                # half of the step in d for each class
                beta = beta + np.stack([-step, step], axis=1) / 2
            else:
                assert inverse is not None
                residuals = self.mass[:, np.newaxis] * (self.target - self.probabilities(scores))
                gradient = design.T @ residuals - ridge[:, np.newaxis] * beta
                step = inverse @ gradient
                beta = beta + step - step.mean(axis=1, keepdims=True)
        rises = rises_of(orders, edges)
        # a row of rises is a high group less a low one
        if len(rises) and (rises @ (best[:, [self.raised]] - best)).min() < -EQUAL:
            before, best = self._ordered(design, ridge, best, rises, steps, tolerance)
        return before, best[0], [best[a:b] for a, b in itertools.pairwise(edges)]

    def _ordered(
        self, design: Array, ridge: Array, beta: Array, rises: Array, steps: int, tolerance: float
    ) -> tuple[float, Array]:
        """Return the minimum of the objective under orders, and its entries (p, K).

        `beta` is the optimum without orders. Every step minimises a quadratic model on the cone of entries that keep
        the orders. In coordinates in which the model's curvature is the identity, this is a projection of the free
        minimum (`keep_orders`).
        """
        n_labels, before, scores = beta.shape[1], math.inf, design @ beta
        for _ in range(steps):
            p = self.probabilities(scores)
            gradient = design.T @ (self.mass[:, np.newaxis] * (self.target - p)) - ridge[:, np.newaxis] * beta
            # per class; with two classes, moving both numbers moves d by twice as much: 4 p (1 - p), shared by the two
            curvature = self.mass * (2 * p[:, 0] * p[:, 1] if n_labels == 2 else 0.5)
            # H = L L'; in u = L'b the model is |u - (L'beta + L^-1 gradient)|^2 / 2, and rises @ b = (rises @ L^-T) u
            lower = np.linalg.cholesky(design.T @ (design * curvature[:, np.newaxis]) + np.diag(ridge))
            root = np.linalg.inv(lower)
            nearest = keep_orders(lower.T @ beta + root @ gradient, [rises @ root.T] * n_labels, self.raised)
            point = root.T @ nearest
            point -= point.mean(axis=1, keepdims=True)
            # The first point is always accepted. It keeps the orders, and so do all points between two that keep them.
            for _ in range(HALVINGS):
                scores = design @ point
                now = self.loss(scores) + 0.5 * float(ridge @ (point**2).sum(axis=1))
                if now <= before:
                    break
                point = (point + beta) / 2
            if now > before:
                break
            done = before - now <= tolerance * max(now, 1.0)
            before, beta = now, point
            if done:
                break
        return before, beta


def rises_of(orders: Sequence[Order], edges: Array) -> Array:
    """Return a matrix with a row (p,) for every pair of the orders: 1 at the high group, -1 at the low group."""
    pairs = [(edge + low, edge + high) for edge, order in zip(edges, orders, strict=False) for low, high in order]
    rises = np.zeros((len(pairs), int(edges[-1])))
    for row, (low, high) in zip(rises, pairs, strict=True):
        row[low], row[high] = -1.0, 1.0
    return rises


def keep_orders(free: Array, rises: Sequence[Array], raised: int) -> Array:
    """Return the point w (p, K) closest to `free` with rises[k] @ w_k >= rises[j] @ w_j for k = raised and every j.

    rises[y] is (C, p); with two classes w_0 = -w_1 and rises[0] = rises[1]. The projection on the cone {w: B w >= 0} is
    w + B'm, where m >= 0 minimises |w + B'm| (Lawson & Hanson 1974: Solving Least Squares Problems, chapter 23).
    """
    from scipy.optimize import nnls  # costs more to import than a small fit: only where it is used

    n, n_labels = free.shape
    own = rises[raised]
    others = [y for y in range(n_labels) if y != raised]
    if all((own @ free[:, raised] >= rises[y] @ free[:, y]).all() for y in others):
        return free
    # w_0 = -w_1: the condition own @ w >= own @ -w is own @ w >= 0
    if n_labels == 2:
        half = free[:, raised] + own.T @ nnls(own.T, -free[:, raised], maxiter=30 * len(own))[0]
        return np.stack([-half, half] if raised else [half, -half], axis=1)
    # B of all conditions, (other classes, C, p, K): own at the raised class, -rises[y] at class y
    cone = np.zeros((len(others), len(own), n, n_labels))
    for rows, y in zip(cone, others, strict=True):
        rows[:, :, raised], rows[:, :, y] = own, -rises[y]
    flat = cone.reshape(-1, free.size)
    nearest: Array = free + (flat.T @ nnls(flat.T, -free.ravel(), maxiter=30 * len(flat))[0]).reshape(free.shape)
    return nearest


def n_distinct(values: Array, order: Order) -> int:
    """Return the number of groups of a table with entries `values` (groups, K).

    If the table has an order, groups with equal entries count as one.
    """
    return len(set(map(tuple, np.round(values / EQUAL).tolist()))) if order else len(values)


def distinct_rows(columns: Sequence[Index], labels: Index, weights: Array) -> tuple[list[Index], Index, Array, Index]:
    """Merge rows with equal groups and labels; return columns, labels, weights, and the new index of each old row."""
    distinct, place = np.unique(np.stack([*columns, labels], axis=1), axis=0, return_inverse=True)
    mass = np.bincount(place.ravel(), weights, len(distinct)).astype(np.float64)
    return [np.ascontiguousarray(column) for column in distinct[:, :-1].T], distinct[:, -1], mass, place.ravel()


class TableGroups(NamedTuple):
    """The initial groups of a table: their number, and which of them may be joined.

    - joinable(merged): the pairs of groups (a < b) that may be joined, where merged[g] is the group of initial group g.
    - fewest: the minimum number of groups after joining; 1 if the table may be left out.
    - ordered: whether initial groups are in the order of intervals; None if groups are never split again.
    - ascending(merged): the order of the merged groups.
    """

    size: int
    joinable: Callable[[Index], list[tuple[int, int]]]
    fewest: int
    ordered: bool | None
    ascending: Callable[[Index], Order] = lambda merged: []

    @classmethod
    def of_values(cls, groups: Index, attribute: Attribute, fewest: int = 2) -> TableGroups:
        """Return the initial groups of an attribute's codes; groups[code] is the group of a code."""
        n = n_ordered(attribute)

        def joinable(merged: Index) -> list[tuple[int, int]]:
            own = merged[groups]
            return joinable_pairs([int(np.flatnonzero(own == k)[0]) for k in range(int(own.max()) + 1)], n)

        def ascending(merged: Index) -> Order:
            return ascending_pairs(merged[groups], [attribute], [len(groups)], [n])

        return cls(int(groups.max()) + 1, joinable, fewest, n > 0, ascending)


class _Joined(NamedTuple):
    """The groups of every table, with the penalised optimum: the objective, the bias, and the entries of the groups."""

    objective: float
    groups: list[Index]
    bias: Array
    values: list[Array]

    @property
    def n_rows(self) -> int:
        """The number of rows of the card; a table of one group has none."""
        return sum(len(own) for own in self.values if len(own) > 1)


class GroupedFit(CardFit):
    """Fits of tables whose groups are joined and split; cells[f] (n,) holds each row's initial group in table f."""

    def __init__(
        self,
        cells: Sequence[Index],
        labels: Index,
        mass: Array,
        n_labels: int,
        tables: Sequence[TableGroups],
        raised: int = 1,
    ) -> None:
        super().__init__(labels, n_labels, mass, raised)
        self.cells, self.tables = cells, tables

    def columns(self, groups: Sequence[Index]) -> list[Index]:
        """Return the group of every row in each table."""
        return [group[cell] for group, cell in zip(groups, self.cells, strict=True)]

    def fitted(
        self,
        groups: Sequence[Index],
        start: tuple[Array, Sequence[Array]] | None = None,
        steps: int = STEPS,
        tolerance: float = TOLERANCE,
    ) -> tuple[float, Array, list[Array]]:
        """Return the optimum of `free` for tables with these groups, under their orders.

        A table of one group is not fitted; its entries are 0.
        """
        # a table of one group says nothing that the bias does not
        used = [f for f, own in enumerate(groups) if own.any()]
        orders = [self.tables[f].ascending(groups[f]) for f in used]
        begin = None if start is None else (start[0], [start[1][f] for f in used])
        columns, sizes = [groups[f][self.cells[f]] for f in used], [int(groups[f].max()) + 1 for f in used]
        objective, bias, fitted = self.free(columns, sizes, begin, steps, tolerance, orders)
        values = [np.zeros((1, len(bias))) for _ in groups]
        for f, own in zip(used, fitted, strict=True):
            values[f] = own
        return objective, bias, values

    def join(self, rows: int) -> _Joined:
        """Join groups until the card has at most `rows` rows and no join costs less than a group.

        If it then has exactly `rows` rows, splits of groups are tried, in descending order of gain, and other groups
        are joined instead. A split is kept if this lowers the objective plus the costs of the groups.
        """
        best = self.join_groups([np.arange(table.size, dtype=np.intp) for table in self.tables], rows)
        tried: set[tuple[int, bytes]] = set()
        for _ in range(MOST_SWAPS):
            split = self._best_split(best, tried) if best.n_rows == rows else None
            if split is None:
                break
            f, split_groups = split
            tried.add((f, split_groups.tobytes()))
            groups = [*best.groups[:f], split_groups, *best.groups[f + 1 :]]
            other = self.join_groups(groups, rows)
            if self._cost(other) < self._cost(best) - LEAST_FALL:
                best = other
        return best

    def _cost(self, state: _Joined) -> float:
        """Return the objective plus the costs of the groups, in nats."""
        return state.objective + float(LEAST_COST * (self.target.shape[1] - 1) * state.n_rows)

    def exchange(self, state: _Joined, rows: int, most: int) -> _Joined:
        """Exchange tables while the objective, with the costs of groups, falls by more than EXCHANGE_COST.

        An exchange replaces one table by another, or by the same table with other groups; or it adds a table, for which
        groups are joined if there are too many. At most MOST_EXCHANGES exchanges are made, and at most `most` tables
        have more than one group. Tables of more than two groups may give up rows to further tables (`_spread`), each of
        which must be worth EXCHANGE_COST.
        """
        for _ in range(MOST_EXCHANGES):
            best, found = self._cost(state) - EXCHANGE_COST, None
            used = [f for f, own in enumerate(state.values) if len(own) > 1]
            offers = list[_Joined]()
            for f in used:
                if self.tables[f].ordered is not None:
                    # table f is taken out; it may come back with other groups
                    without = self._regrouped(state, f, np.zeros_like(state.groups[f]))
                    most_groups = min(rows - without.n_rows, MOST_NEW)
                    for g, own in self._new_tables(without, most_groups, (f, state.groups[f])):
                        offers.append(self._filled(self._regrouped(without, g, own), rows))
            if len(used) < most:
                # a table of two groups is added
                for g, own in self._new_tables(state, 2):
                    groups = [*state.groups[:g], own, *state.groups[g + 1 :]]
                    if state.n_rows + 2 > rows:
                        offers.append(self.join_groups(groups, rows))
                    else:
                        offers.append(self._filled(self._regrouped(state, g, own), rows))
            if len(used) < most and state.n_rows > 2 * len(used):
                spread = self._spread(state, rows, most)
                n_new = sum(len(own) > 1 for own in spread.values) - len(used)
                if self._cost(spread) < self._cost(state) - EXCHANGE_COST * n_new:
                    offers.append(spread)
            for one in offers:
                if one.n_rows <= rows and self._cost(one) < best:
                    best, found = self._cost(one), one
            if found is None:
                return state
            state = found
        return state

    def _regrouped(self, state: _Joined, f: int, groups: Index) -> _Joined:
        """Return the optimum with other `groups` of table f; the fit starts with 0 for the entries of these groups."""
        merged, values = [*state.groups], [*state.values]
        merged[f], values[f] = groups, np.zeros((int(groups.max()) + 1, len(state.bias)))
        objective, bias, values = self.fitted(merged, (state.bias, values), STEPS, JOIN_TOLERANCE)
        return _Joined(objective, merged, bias, values)

    def _spread(self, state: _Joined, rows: int, most: int) -> _Joined:
        """Return the optimum after reducing tables to two groups and using the rows left for new tables of two groups.

        A single exchange cannot do this if two tables of three groups take the rows that a new table needs. Any rows
        that remain are used for splits.
        """
        for f, own in enumerate(state.values):
            if len(own) > 2 and self.tables[f].ordered is not None:
                state = self._regrouped(state, f, np.zeros_like(state.groups[f]))
                _, g, h = next(self._sums(state, [f]))
                two = self._split(g, h, state.groups[f], bool(self.tables[f].ordered))[1]
                state = self._regrouped(state, f, two)
        while state.n_rows + 2 <= rows and sum(len(own) > 1 for own in state.values) < most:
            new = self._new_tables(state, 2)
            if not new:
                break
            state = self._regrouped(state, *new[0])
        return self._filled(state, rows)

    def _filled(self, state: _Joined, rows: int) -> _Joined:
        """Split groups as long as rows are left and the objective, with the costs of groups, falls."""
        while state.n_rows < rows and (split := self._best_split(state, set())) is not None:
            other = self._regrouped(state, *split)
            if self._cost(other) >= self._cost(state) - LEAST_FALL:
                break
            state = other
        return state

    def _new_tables(
        self, state: _Joined, most: int, beyond: tuple[int, Index] | None = None
    ) -> list[tuple[int, Index]]:
        """Return the tables of one group that gain most by a Newton step, up to TRIED of them, and their new groups.

        The costs of the groups are subtracted from the gains. Groups are split one at a time, into two to `most`
        groups. With `beyond`, a table and its groups, only tables that gain more than that table are returned.
        """
        n_labels = len(state.bias)
        # a Newton step gains g^2 / 2 (h + ridge); classes one against the rest gain K / (K - 1) times as much
        share, least = (n_labels - 1) / n_labels / 2, LEAST_COST * (n_labels - 1)
        found, floor = list[tuple[float, int, Index]](), -math.inf
        for f, g, h in self._sums(state, [f for f, own in enumerate(state.values) if len(own) == 1]):
            table = self.tables[f]
            if beyond is not None and f == beyond[0]:
                own_g, own_h = (np.stack([np.bincount(beyond[1], c) for c in sums.T], axis=1) for sums in (g, h))
                # what the table that is taken out gains by the same measure
                floor = share * float((own_g**2 / (own_h + self.penalty / 2)).sum()) - least * len(own_g)
            own, total, best = np.zeros(table.size, np.intp), 0.0, (-math.inf, f, state.groups[f])
            for size in range(2, min(most, table.size) + 1):
                gain, own = self._split(g, h, own, bool(table.ordered))
                total += share * gain
                if total - least * size > best[0]:
                    best = total - least * size, f, own
            if best[2].any():
                found.append(best)
        found.sort(key=lambda one: (-one[0], one[1]))
        return [(f, own) for gain, f, own in found[:TRIED] if gain > floor + LEAST_FALL]

    def _sums(self, state: _Joined, tables: Sequence[int]) -> Iterator[tuple[int, Array, Array]]:
        """Yield each table whose groups can be split, with sums of residuals and of curvatures (initial groups, K)."""
        p = self.probabilities(self.scores(state.bias, self.columns(state.groups), state.values))
        residual = self.mass[:, np.newaxis] * (self.target - p)
        curvature = self.mass[:, np.newaxis] * p * (1 - p)
        for f in tables:
            if self.tables[f].ordered is not None:
                g, h = (
                    np.stack([np.bincount(self.cells[f], c, self.tables[f].size) for c in rows.T], axis=1)
                    for rows in (residual, curvature)
                )
                yield f, g.astype(np.float64, copy=False), h.astype(np.float64, copy=False)

    def _divisions(self, g: Array, h: Array, members: Index, ordered: bool) -> tuple[Index, Array, Array]:
        """Return the ways to divide a group in two: its members in order, and the gains and rises by a Newton step.

        members (m,) are the initial groups in the group. They are returned in an order such that way k separates the
        first k + 1 members from the others. gains (m - 1,) are the gains of both parts together, up to a factor of 2;
        rises (m - 1, K) are the Newton steps of the others minus the Newton steps of the first members.
        """
        ridge = self.penalty / 2
        # levels in the order of their Newton steps for the last class: only divisions of this order are tried
        if not ordered:
            members = members[np.argsort(g[members, -1] / (h[members, -1] + ridge), kind="stable")]
        left, left_h = np.cumsum(g[members], axis=0)[:-1], np.cumsum(h[members], axis=0)[:-1]
        right, right_h = g[members].sum(axis=0) - left, h[members].sum(axis=0) - left_h
        gains = left**2 / (left_h + ridge) + right**2 / (right_h + ridge)
        return members, gains.sum(axis=1), right / (right_h + ridge) - left / (left_h + ridge)

    def _split(self, g: Array, h: Array, groups: Index, ordered: bool) -> tuple[float, Index]:
        """Return the gain of the best split of one group of a table, up to a factor of 2, and the groups after it.

        g, h (initial groups, K) are the sums of the residuals and of the curvatures. If no split gains anything, return
        0 and the same groups.
        """
        best, found = 0.0, groups
        for group in range(int(groups.max()) + 1):
            members = np.flatnonzero(groups == group)
            if len(members) < 2:
                continue
            members, gains, _ = self._divisions(g, h, members, ordered)
            whole, whole_h = g[members].sum(axis=0), h[members].sum(axis=0)
            # what both parts gain beyond the group as a whole
            gain = gains - (whole**2 / (whole_h + self.penalty / 2)).sum()
            k = int(np.argmax(gain))
            if gain[k] > best:
                best, found = float(gain[k]), groups.copy()
                found[members[k + 1 :]] = groups.max() + 1
        return best, found

    def join_groups(self, groups: list[Index], rows: int) -> _Joined:
        """Join groups in rounds until at most `rows` are left, if possible, and no join costs less than a group.

        A round joins at most one pair of groups, or all groups, of each table. It makes all joins that cost less than a
        group or, if there are none, the cheapest ones: a quarter of the number of rows above `rows`, but at least one.
        After each round all entries are fitted again.
        """
        least = LEAST_COST * (self.target.shape[1] - 1)
        objective, bias, values = self.fitted(groups, None, STEPS, JOIN_TOLERANCE)
        state = _Joined(objective, groups, bias, values)
        while True:
            joints = sorted(self._cheapest(state), key=lambda one: one[0])
            n = sum(cost < least for cost, *_ in joints)
            if not n and state.n_rows > rows:
                n = max((state.n_rows - rows) // 4, 1)
            if not n or not joints:
                return state
            groups, values = list(state.groups), list(state.values)
            for _, f, a, b in joints[:n]:
                if b is None:
                    groups[f], values[f] = np.zeros_like(groups[f]), np.zeros((1, len(state.bias)))
                else:
                    groups[f], values[f] = joined(groups[f], a, b), np.delete(values[f], b, axis=0)
            objective, bias, values = self.fitted(groups, (state.bias, values), STEPS, JOIN_TOLERANCE)
            state = _Joined(objective, groups, bias, values)

    def _cheapest(self, state: _Joined) -> list[tuple[float, int, int, int | None]]:
        """Return (cost per group, table, a, b) for the cheapest join of each table, of its groups a and b.

        If b is None, all groups of the table are joined, and it leaves the card. Tables without a join are omitted.
        """
        columns = self.columns(state.groups)
        p = self.probabilities(self.scores(state.bias, columns, state.values))
        curvature = self.mass[:, np.newaxis] * p * (1 - p)
        # with two classes, the difference between them moves twice as far as each
        share = 1.0 if len(state.bias) == 2 else 0.5
        joints: list[tuple[float, int, int, int | None]] = []
        for f, (column, own, table) in enumerate(zip(columns, state.values, self.tables, strict=True)):
            m = len(own)
            best: tuple[float, int, int, int | None] = (math.inf, f, 0, None)
            # curvature of each group and class; never 0, since it divides
            h = np.stack([np.bincount(column, c, m) for c in curvature.T], axis=1) + 1e-9
            if table.fewest < 2 <= m:
                # the rise of the quadratic loss if all groups get their mean, per group that is saved
                mean = (h * own).sum(axis=0) / h.sum(axis=0)
                best = (share * float((h * (own - mean) ** 2).sum()) / m, f, 0, None)
            for a, b in table.joinable(state.groups[f]) if m > max(table.fewest, 2) else ():
                # the same for two groups: the weighted sum of squares around their common mean
                cost = share * float((h[a] * h[b] / (h[a] + h[b]) * (own[a] - own[b]) ** 2).sum())
                if cost < best[0]:
                    best = (cost, f, a, b)
            if math.isfinite(best[0]):
                joints.append(best)
        return joints

    def _best_split(self, state: _Joined, tried: set[tuple[int, bytes]]) -> tuple[int, Index] | None:
        """Return the table and its groups after the split with the largest gain by a Newton step.

        Splits in `tried`, and splits that would break the order of a table, are excluded; if none is left, return None.
        """
        best, found = 0.0, None
        for f, g, h in self._sums(state, [f for f, own in enumerate(state.values) if len(own) > 1]):
            table, new = self.tables[f], len(state.values[f])
            for group in range(new):
                members = np.flatnonzero(state.groups[f] == group)
                members, gains, rises = self._divisions(g, h, members, bool(table.ordered))
                # from the best division down, until one is allowed or none can be better than the best so far
                for k in np.argsort(-gains, kind="stable").tolist():
                    if gains[k] <= best:
                        break
                    split_groups = state.groups[f].copy()
                    split_groups[members[k + 1 :]] = new
                    order = table.ascending(split_groups)
                    # 1 or -1 if the new group, of the members from k + 1 on, is higher or lower; 0 without an order
                    sign = int((group, new) in order) - int((new, group) in order)
                    falls = bool((sign * (rises[k][self.raised] - rises[k])).min() < 0)
                    if (f, split_groups.tobytes()) not in tried and not falls:
                        best, found = float(gains[k]), (f, split_groups)
                        break
        return found
