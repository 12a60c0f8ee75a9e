"""Choose the columns of a score card: single attributes by a beam search, then pairs of attributes one by one.

1. The values of every attribute are joined into at most MOST_GROUPS groups, by their class proportions
   (`bncli.engine.parameters.card_tables.join_values`).
2. Starting from the class frequencies, sets of columns grow by one column at a time. The gain of a candidate is the
   gain of one Newton step of its table on the residuals. The TRIED candidates with the highest gain are fitted together
   with the columns of the set, and the WIDTH sets with the lowest penalised loss are kept. Every group of an attribute
   after the first costs COST nats for every class after the first, about what a group gains by chance.
3. The search ends when the set has `columns` attributes, or half as many as `rows`, or if no larger set is better. If
   the set has more than `rows` groups, the groups that cost least to join are joined, and a column that is left with
   one group is dropped. In that case columns are also exchanged, one at a time, as long as the loss of the card with
   its joined groups falls (`card_tables.GroupedFit.exchange`). Laplace's approximation chooses the penalty.
4. With `pairs`, tables of two attributes are added one at a time. The PAIRS_TRIED pairs with the largest gain on the
   residuals (`join_codes`) are fitted, and the best one is added if the penalised loss falls. The cost of a pair is
   COST times the number of its distinct cells after the first times the number of classes after the first, plus the
   logarithm of the number of candidate pairs, plus the logarithm of the number of ways to group its values. Because of
   these costs, the best of many pairs of noise is not added. If the card would exceed `columns` or `rows`, the single
   attributes that were added last are dropped.

For attributes with a monotonicity constraint, every fit keeps the order of the groups (`card_tables`), and so does the
gain of a candidate. Groups with equal values then count as one.

Cf. Liu, Zhong, Li, Seltzer & Rudin 2022, NeurIPS (FasterRisk). Conventions: with more than MOST_ROWS rows, a sample is
searched for columns, and with more than PAIR_ROWS one for pairs. Ties go to the attribute that comes first. Attributes
with more than MOST_CODES codes are in no pair. If more than MOST_IN_PAIRS attributes are left, only that many are
combined into pairs: the chosen single attributes first, then those with the largest single gain. Cost: TRIED times
WIDTH fits per column, and PAIRS_TRIED per pair.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.data.splits import stratified_sample
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.parameters.card_tables import (
    PENALTY,
    CardFit,
    GroupedFit,
    Order,
    TableGroups,
    ascending_pairs,
    join_codes,
    join_values,
    keep_orders,
    n_distinct,
    n_ordered,
    n_ordered_groups,
    regrouped_cells,
    rises_of,
)
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Family, Regions
from bncli.watch import Watch, silent

MOST_GROUPS, COST = 5, 1.0
WIDTH, TRIED = 2, 4
MANY_COLUMNS = 20
"""If it may choose more columns than this, the search keeps one set and tries one candidate per step."""
MOST_ROWS = 4_000
STEPS, TOLERANCE = 12, 1e-5
PAIR_ROWS, PAIRS_TRIED = 10_000, 4
MOST_CODES, MOST_IN_PAIRS = 64, 30
FINE_GROUPS, MOST_EXCHANGED = 20, 40
"""The maximum number of groups per column before an exchange joins them, and of columns that take part in exchanges.

Columns that were already chosen take part even if there are more of them.
"""


class _Set(NamedTuple):
    """Columns in the order in which they were added, their penalised loss with the costs of groups, and their fit."""

    loss: float
    columns: tuple[int, ...]
    bias: Array
    values: tuple[Array, ...]


def learn(
    counts: Counts,
    *,
    columns: int,
    rows: int,
    pairs: int = 0,
    constraints: ArcConstraints | None = None,
    watch: Watch = silent,
) -> Regions:
    """Return the regions: one per chosen attribute, then at most `pairs` pairs in the order in which they were added.

    With constraints, only pairs that obey them are candidates.
    """
    data = counts.with_missing_levels("card", watch).data
    attributes = [i for i in data.schema.informative if data.schema.cardinalities[i] > 1]
    regions: tuple[tuple[int, ...], ...] = ()
    if attributes and data.n_rows:
        sample = data
        if data.n_rows > MOST_ROWS:
            sample = data.take(stratified_sample(data.labels, MOST_ROWS, 0, data.split_by))
        grouped = _Columns.of(sample, attributes)
        singles = _search(grouped, min(columns, rows // 2)).columns
        if sum(grouped.sizes[i] for i in singles) > rows:
            singles = _exchanged(sample, grouped, singles, min(columns, rows // 2), rows)
        regions = tuple((i,) for i in singles)
        if pairs and data.n_labels > 1:
            rows_of_pairs = stratified_sample(data.labels, PAIR_ROWS, 0, data.split_by)
            allows = constraints.allows_region if constraints is not None else lambda region: True
            limits = (columns, rows, pairs)
            regions = _with_pairs(data.take(rows_of_pairs), singles, attributes, limits, allows)
    options = {"columns": columns, "rows": rows} | ({"pairs": pairs} if pairs else {})
    return Regions(regions, method="card", options=options)


class _PairFit(NamedTuple):
    """A fit of single attributes and pairs.

    `loss` is the penalised loss including all costs, and `cost` the cost of choosing the pairs and their groups, in
    nats. `scores` is (n, K), with its `residuals` (`CardFit.residuals`). `cells`, `sizes`, `orders` and `values` have
    one entry per table: the cell of each row, the number of cells, their order, and their values.
    """

    loss: float
    cost: float
    scores: Array
    residuals: list[Array]
    cells: list[Index]
    sizes: list[int]
    orders: list[Order]
    bias: Array
    values: list[Array]


class _Columns(NamedTuple):
    """Attributes with joined values.

    For each attribute, `groups` has the group of every code, `of_rows` the group of every row, `sizes` the number of
    groups, and `orders` their order.
    """

    fit: CardFit
    groups: dict[int, Index]
    of_rows: dict[int, Index]
    sizes: dict[int, int]
    orders: dict[int, Order]

    @classmethod
    def of(cls, data: Dataset, attributes: Sequence[int], most: int = MOST_GROUPS) -> _Columns:
        mass = np.ones(data.n_rows) if data.weights is None else data.weights
        labels = np.asarray(data.labels, np.intp)
        fit = CardFit(labels, data.n_labels, np.asarray(mass, np.float64), data.schema.direction_label)
        found = cls(fit, {}, {}, {}, {})
        for i in attributes:
            n, own = data.schema.cardinalities[i], np.asarray(data.codes[i], np.intp)
            table = np.bincount(own * data.n_labels + labels, fit.mass, n * data.n_labels).reshape(n, -1)
            groups = join_values(table, n_ordered(data.schema.attributes[i]), cost=0.0, most=most)
            found.groups[i], found.of_rows[i], found.sizes[i] = groups, groups[own], int(groups.max()) + 1
            first = np.arange(found.sizes[i], dtype=np.intp)
            found.orders[i] = TableGroups.of_values(groups, data.schema.attributes[i]).ascending(first)
        return found

    def gain(self, p: Array, i: int) -> float:
        """Return the gain in nats of one Newton step of the table of attribute i, less the cost of its groups."""
        gain, n_groups = newton_gain(self.fit, p, self.of_rows[i], self.sizes[i], self.orders[i])
        return gain - float(COST * (p.shape[1] - 1) * (n_groups - 1))


def newton_gain(fit: CardFit, p: Array, cells: Index, size: int, order: Order) -> tuple[float, int]:
    """Return the gain in nats of one Newton step of a table that keeps its order, and the number of distinct groups.

    cells (n,): the group of every row, below `size`; p (n, K): the probabilities of the classes before the step.
    """
    n_labels = p.shape[1]
    slopes = np.stack([np.bincount(cells, fit.mass * d, size) for d in (fit.target - p).T], axis=1)
    # The Newton step is slopes / scales^2. Multiplied by scales, it is in coordinates in which the curvature is the
    # identity, as `keep_orders` needs it.
    scales = np.sqrt(np.stack([np.bincount(cells, fit.mass * q * (1 - q), size) for q in p.T], axis=1) + PENALTY / 2)
    step = slopes / scales
    if order:
        rises = rises_of([order], np.array([0, size]))
        step = keep_orders(step, [rises / scale for scale in scales.T], fit.raised)
    # classes one against the rest gain K / (K - 1) times as much as a joint step
    return float((step**2).sum()) / 2 * (n_labels - 1) / n_labels, n_distinct(step / scales, order)


def _search(columns: _Columns, most: int) -> _Set:
    """Return the best set of at most `most` columns that the beam search finds."""
    width, tried = (WIDTH, TRIED) if most <= MANY_COLUMNS else (1, 1)
    fit, of_rows, sizes = columns.fit, columns.of_rows, columns.sizes
    n_contrasts = fit.target.shape[1] - 1

    def fitted(chosen: tuple[int, ...], start: _Set | None) -> _Set:
        begin = None
        if start is not None:
            # from the fit without the new column, whose numbers start at 0
            begin = start.bias, (*start.values, np.zeros((sizes[chosen[-1]], n_contrasts + 1)))
        orders = [columns.orders[i] for i in chosen]
        loss, bias, values = fit.free(
            [of_rows[i] for i in chosen], [sizes[i] for i in chosen], begin, STEPS, TOLERANCE, orders
        )
        loss += COST * n_contrasts * sum(n_distinct(v, order) - 1 for v, order in zip(values, orders, strict=True))
        return _Set(loss, chosen, bias, tuple(values))

    best = fitted((), None)
    beam = [best]
    for _ in range(most):
        grown: dict[frozenset[int], _Set] = {}
        for one in beam:
            p = fit.probabilities(fit.scores(one.bias, [of_rows[i] for i in one.columns], one.values))
            candidates = sorted((-columns.gain(p, i), i) for i in of_rows if i not in one.columns)
            for _, i in candidates[:tried]:
                # two sets of the beam may grow to the same one
                members = frozenset((*one.columns, i))
                if members not in grown:
                    grown[members] = fitted((*one.columns, i), one)
        beam = sorted(grown.values(), key=lambda one: (one.loss, one.columns))[:width]
        if not beam or beam[0].loss >= best.loss:
            break
        best = beam[0]
    return best


def _exchanged(data: Dataset, grouped: _Columns, singles: Sequence[int], most: int, rows: int) -> tuple[int, ...]:
    """Exchange columns of a card of `rows` rows, starting with `singles`; return at most `most` columns.

    Groups are joined first. A column may be dropped, so that the others have more rows. If none is left, the first of
    `singles` is returned.
    """
    # gains over the class frequencies alone
    p = np.tile(grouped.fit.probabilities(grouped.fit.frequencies()[np.newaxis]), (data.n_rows, 1))
    gains = {i: grouped.gain(p, i) for i in grouped.of_rows}
    attributes = sorted(gains, key=lambda i: (i not in singles, -gains[i], i))[: max(MOST_EXCHANGED, len(singles))]
    fine = _Columns.of(data, attributes, FINE_GROUPS)
    tables = [TableGroups.of_values(fine.groups[i], data.schema.attributes[i], 1) for i in attributes]
    columns = [fine.of_rows[i] for i in attributes]
    fit = GroupedFit(columns, fine.fit.labels, fine.fit.mass, data.n_labels, tables, fine.fit.raised)
    groups = []
    for i in attributes:
        # Groups of a column are unions of its fine groups, as both join the same values, one pair after the other:
        # one code of each fine group tells the group.
        codes = np.unique(fine.groups[i], return_index=True)[1]
        groups.append(grouped.groups[i][codes] if i in singles else np.zeros(len(codes), np.intp))
    used = [f for f, own in enumerate(groups) if own.any()]
    fit.choose_penalty([groups[f][columns[f]] for f in used], [int(groups[f].max()) + 1 for f in used])
    card = fit.exchange(fit.join_groups(groups, rows), rows, most)
    return tuple(i for i, own in zip(attributes, card.groups, strict=True) if own.any()) or tuple(singles[:1])


def _with_pairs(
    data: Dataset,
    singles: tuple[int, ...],
    attributes: Sequence[int],
    limits: tuple[int, int, int],
    allows: Callable[[Sequence[int]], bool],
) -> tuple[tuple[int, ...], ...]:
    """Return the regions of the single attributes that are kept, then the regions of the pairs that are added.

    `limits` are the maximum numbers of columns, of rows of the card, and of pairs.
    """
    columns, rows, most = limits
    grouped, schema = _Columns.of(data, attributes), data.schema
    fit = grouped.fit
    codes = {i: np.asarray(data.codes[i], np.intp) for i in attributes}
    p = np.tile(fit.probabilities(fit.frequencies()[np.newaxis]), (data.n_rows, 1))
    # gains over the class frequencies alone
    gains = {i: grouped.gain(p, i) for i in attributes}
    small = [i for i in attributes if schema.cardinalities[i] <= MOST_CODES]
    members = sorted(small, key=lambda i: (i not in singles, -gains[i], i))[:MOST_IN_PAIRS]
    candidates = [pair for pair in itertools.combinations(sorted(members), 2) if allows(pair)]

    def table_of(pair: tuple[int, int], before: _PairFit) -> tuple[float, Family, Index, Order]:
        """Return a two-attribute table's gain on the residuals, its family, the cell of each row, and its order."""
        both, own = [schema.attributes[i] for i in pair], [codes[i] for i in pair]
        gain, groupings = join_codes(before.residuals, own, both)
        family = Family.over(pair, schema.cardinalities, groupings=groupings)
        cells = regrouped_cells(own, groupings, family.shape)
        each = np.arange(family.n_cells, dtype=np.intp)
        order = ascending_pairs(each, both, family.shape, n_ordered_groups(both, family))
        # `join_codes` ignores orders: subtract what keeping the order costs
        if order:
            p = fit.probabilities(before.scores)
            free, kept = (newton_gain(fit, p, cells, family.n_cells, pairs)[0] for pairs in ([], order))
            gain -= free - kept
        return gain, family, cells, order

    @cache
    def fitted(own: tuple[int, ...], pairs: tuple[tuple[int, int], ...]) -> _PairFit:
        """Return the model of the attributes `own` and of `pairs`, refitted after each pair is added in turn."""
        if not pairs:
            cells, sizes = [grouped.of_rows[i] for i in own], [grouped.sizes[i] for i in own]
            orders, cost, start = [grouped.orders[i] for i in own], 0.0, None
        else:
            before, pair = fitted(own, pairs[:-1]), pairs[-1]
            _, family, cells_of_rows, order = table_of(pair, before)
            choices = zip((schema.attributes[i] for i in pair), family.shape, strict=True)
            # nats for the choice of a pair among the candidates, and of the groups of its values
            cost = before.cost + math.log(len(candidates)) + sum(itertools.starmap(_log_choices, choices))
            cells, sizes = [*before.cells, cells_of_rows], [*before.sizes, family.n_cells]
            orders = [*before.orders, order]
            start = before.bias, [*before.values, np.zeros((family.n_cells, data.n_labels))]
        loss, bias, values = fit.free(cells, sizes, start, STEPS, TOLERANCE, orders)
        n_groups = sum(n_distinct(v, order) - 1 for v, order in zip(values, orders, strict=True))
        loss += cost + COST * (data.n_labels - 1) * n_groups
        scores = fit.scores(bias, cells, values)
        return _PairFit(loss, cost, scores, fit.residuals(scores), cells, sizes, orders, bias, values)

    found: tuple[tuple[int, int], ...] = ()
    while len(found) < most:
        now = fitted(singles, found)
        least, best = now.loss, None
        # forward search: the pairs that gain most on the residuals are each fitted, and the best one stays
        gain_of = {pair: table_of(pair, now)[0] for pair in candidates if pair not in found}
        for pair in sorted(gain_of, key=lambda pair: (-gain_of[pair], pair))[:PAIRS_TRIED]:
            joined = (*found, pair)
            kept = _kept(singles, joined, columns, rows)
            if kept is not None:
                loss = fitted(kept, joined).loss
                if loss < least:
                    best, least = (kept, joined), loss
        if best is None:
            break
        singles, found = best
    return (*((i,) for i in singles), *found)


def _log_choices(attribute: Attribute, n_groups: int) -> float:
    """Return the approximate logarithm of the number of ways to divide an attribute's values into `n_groups` groups."""
    n, k = attribute.n_values, min(n_groups - attribute.missing, attribute.n_values)
    if isinstance(attribute, NumericAttribute):
        # k - 1 cuts among n - 1 boundaries
        return math.log(math.comb(max(n - 1, 0), max(k - 1, 0)))
    # k^n assignments, of which k! differ only in the numbers of the groups
    return 0.0 if k in (0, n) else n * math.log(k) - math.lgamma(k + 1)


def _kept(
    singles: tuple[int, ...], pairs: Sequence[tuple[int, int]], columns: int, rows: int
) -> tuple[int, ...] | None:
    """Return the longest prefix of `singles` that fits beside the pairs, or None if the pairs alone do not fit."""
    in_pairs = set(itertools.chain.from_iterable(pairs))
    for n in range(len(singles), -1, -1):
        # every single attribute has two rows of the card or more, and every pair three
        if len(in_pairs | set(singles[:n])) <= columns and 2 * n + 3 * len(pairs) <= rows:
            return singles[:n]
    return None
