"""Columns of a score card: attributes whose small tables together predict best, by a beam search; then pairs of them.

1. The values of every attribute are joined to at most MOST_GROUPS groups, by their class proportions
   (`bncli.engine.parameters.card_tables.join_values`).
2. Starting from the class frequencies, sets of columns grow by one column at a time. The gain of a candidate is that of
   one Newton step of its table on the residuals; the TRIED candidates of highest gain are fitted together with the
   columns of the set, and the WIDTH sets of lowest penalised loss are kept. A group costs COST nats per class beyond
   the first, about what a group gains by chance.
3. The search ends at `columns` attributes, at half as many attributes as the card has rows, or if no set is better.
   If the groups of the set are more than `rows`, those that cost least are joined, and a column of one group leaves.
4. With `pairs`, tables of two attributes join one at a time. Of all pairs those PAIRS_TRIED that gain most on what is
   left (`join_codes`) are fitted, and the best one joins if the penalised loss falls. A pair costs COST per cell, the
   logarithm of the number of pairs, and that of the ways to group its values, so that the best of many pairs of noise
   does not join. A pair of further attributes takes the place of those that joined last, if `columns` demands it.

Cf. Liu, Zhong, Li, Seltzer & Rudin 2022, NeurIPS (FasterRisk). Conventions: with more than MOST_ROWS rows, a sample is
searched for columns, and with more than PAIR_ROWS one for pairs. Ties go to the attribute that comes first. Attributes
of more than MOST_CODES codes are in no pair; with more than MOST_IN_PAIRS attributes, those are that gain most alone.
Cost: TRIED times WIDTH fits per column, and PAIRS_TRIED per pair.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
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
    TableGroups,
    distinct_rows,
    join_codes,
    join_values,
    n_ordered,
    regrouped_cells,
)
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Family, Regions
from bncli.watch import Watch, silent

MOST_GROUPS, COST = 5, 1.0
WIDTH, TRIED = 2, 4
MANY_COLUMNS = 20
"""If the card may have more columns than this, the search keeps one set and tries one candidate."""
MOST_ROWS = 2_000
STEPS, TOLERANCE = 12, 1e-5
PAIR_ROWS, PAIRS_TRIED = 10_000, 4
MOST_CODES, MOST_IN_PAIRS = 64, 30


class _Set(NamedTuple):
    """Columns in the order in which they joined, their penalised loss plus the cost of groups, and their fit."""

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
    """Return one region per chosen attribute, in the order in which they joined, and then at most `pairs` of two.

    With constraints only pairs that obey are candidates.
    """
    data = counts.with_missing_levels("card", watch).data
    attributes = [i for i in data.schema.informative if data.schema.cardinalities[i] > 1]
    regions: tuple[tuple[int, ...], ...] = ()
    if attributes and data.n_rows:
        sample = data
        if data.n_rows > MOST_ROWS:
            sample = data.take(stratified_sample(data.labels, MOST_ROWS, 0, data.split_by))
        fit, groups, grouped, sizes = _grouped(sample, attributes)
        chosen = _search(fit, grouped, sizes, min(columns, rows // 2))
        singles = chosen.columns
        if sum(sizes[i] for i in singles) > rows:
            # with fewer columns, the others may have more rows
            tables = [TableGroups.of_values(groups[i], data.schema.attributes[i], 1) for i in singles]
            distinct = distinct_rows([grouped[i] for i in singles], fit.labels, fit.mass)[:3]
            left = GroupedFit(*distinct, data.n_labels, tables).join(rows).groups
            singles = tuple(i for i, own in zip(singles, left, strict=True) if own.any()) or singles[:1]
        regions = tuple((i,) for i in singles)
        if pairs and data.n_labels > 1:
            rows_of_pairs = stratified_sample(data.labels, PAIR_ROWS, 0, data.split_by)
            allows = constraints.allows_region if constraints is not None else lambda region: True
            limits = (columns, rows, pairs)
            regions = _with_pairs(data.take(rows_of_pairs), singles, attributes, limits, allows)
    options = {"columns": columns, "rows": rows} | ({"pairs": pairs} if pairs else {})
    return Regions(regions, method="card", options=options)


def _grouped(
    data: Dataset, attributes: Sequence[int]
) -> tuple[CardFit, dict[int, Index], dict[int, Index], dict[int, int]]:
    """Return a fit over the rows, and by attribute the group of every code, that of every row, and their number."""
    mass = np.ones(data.n_rows) if data.weights is None else data.weights
    labels = np.asarray(data.labels, np.intp)
    fit = CardFit(labels, data.n_labels, np.asarray(mass, np.float64))
    groups, grouped, sizes = dict[int, Index](), dict[int, Index](), dict[int, int]()
    for i in attributes:
        n, own = data.schema.cardinalities[i], np.asarray(data.codes[i], np.intp)
        table = np.bincount(own * data.n_labels + labels, fit.mass, n * data.n_labels).reshape(n, -1)
        groups[i] = join_values(table, n_ordered(data.schema.attributes[i]), cost=0.0, most=MOST_GROUPS)
        grouped[i], sizes[i] = groups[i][own], int(groups[i].max()) + 1
    return fit, groups, grouped, sizes


def _search(fit: CardFit, grouped: dict[int, Index], sizes: dict[int, int], most: int) -> _Set:
    """Search for the best set of at most `most` columns."""
    width, tried = (WIDTH, TRIED) if most <= MANY_COLUMNS else (1, 1)
    n_contrasts = fit.target.shape[1] - 1

    def fitted(columns: tuple[int, ...], start: _Set | None) -> _Set:
        begin = None
        if start is not None:
            begin = start.bias, (*start.values, np.zeros((sizes[columns[-1]], n_contrasts + 1)))
        own = [grouped[i] for i in columns]
        loss, bias, values = fit.free(own, [sizes[i] for i in columns], begin, STEPS, TOLERANCE)
        loss += COST * n_contrasts * sum(sizes[i] - 1 for i in columns)
        return _Set(loss, columns, bias, tuple(values))

    best = fitted((), None)
    beam = [best]
    for _ in range(most):
        grown: dict[frozenset[int], _Set] = {}
        for one in beam:
            p = fit.probabilities(fit.scores(one.bias, [grouped[i] for i in one.columns], one.values))
            candidates = sorted((-_gain(fit, p, grouped[i], sizes[i]), i) for i in grouped if i not in one.columns)
            for _, i in candidates[:tried]:
                members = frozenset((*one.columns, i))
                if members not in grown:
                    grown[members] = fitted((*one.columns, i), one)
        beam = sorted(grown.values(), key=lambda one: (one.loss, one.columns))[:width]
        if not beam or beam[0].loss >= best.loss:
            break
        best = beam[0]
    return best


def _gain(fit: CardFit, p: Array, groups: Index, size: int) -> float:
    """Return the gain of one Newton step of a table where the classes have the probabilities p, less its groups' cost.

    groups (n,): the group of every row, below `size`; p (n, K).
    """
    n_labels, gain = p.shape[1], 0.0
    for y in range(n_labels):
        slope = np.bincount(groups, fit.mass * (fit.target[:, y] - p[:, y]), size)
        curvature = np.bincount(groups, fit.mass * p[:, y] * (1 - p[:, y]), size)
        gain += float((slope**2 / (curvature + PENALTY / 2)).sum()) / 2
    return float(gain * (n_labels - 1) / n_labels - COST * (n_labels - 1) * (size - 1))


def _with_pairs(
    data: Dataset,
    singles: tuple[int, ...],
    attributes: Sequence[int],
    limits: tuple[int, int, int],
    allows: Callable[[Sequence[int]], bool],
) -> tuple[tuple[int, ...], ...]:
    """Return the regions of the single attributes that stay, and of the pairs that join them.

    `limits` are the most columns, rows of the card and pairs.
    """
    columns, rows, most = limits
    fit, _, grouped, sizes = _grouped(data, attributes)
    schema = data.schema
    codes = {i: np.asarray(data.codes[i], np.intp) for i in attributes}
    p = np.tile(fit.probabilities(fit.frequencies()[np.newaxis]), (data.n_rows, 1))
    gains = {i: _gain(fit, p, grouped[i], sizes[i]) for i in attributes}
    small = [i for i in attributes if schema.cardinalities[i] <= MOST_CODES]
    members = sorted(small, key=lambda i: (i not in singles, -gains[i], i))[:MOST_IN_PAIRS]
    candidates = [pair for pair in itertools.combinations(sorted(members), 2) if allows(pair)]

    def fitted(own: tuple[int, ...], pairs: Sequence[tuple[int, int]]) -> tuple[float, Array]:
        """Return the penalised loss with its costs, and the scores (n, K); the pairs join one after the other."""
        cells, n_cells, cost = [grouped[i] for i in own], [sizes[i] for i in own], 0.0
        loss, bias, values = fit.free(cells, n_cells, None, STEPS, TOLERANCE)
        for pair in pairs:
            both = [schema.attributes[i] for i in pair]
            scores = fit.scores(bias, cells, values)
            _, groupings = join_codes(fit, scores, [codes[i] for i in pair], both)
            family = Family.over(pair, schema.cardinalities, groupings=groupings)
            cost += math.log(len(candidates)) + sum(map(_log_choices, both, family.shape))
            cells.append(regrouped_cells([codes[i] for i in pair], groupings, family.shape))
            n_cells.append(family.n_cells)
            loss, bias, values = fit.free(cells, n_cells, None, STEPS, TOLERANCE)
        loss += cost + COST * (data.n_labels - 1) * sum(n - 1 for n in n_cells)
        return loss, fit.scores(bias, cells, values)

    found: tuple[tuple[int, int], ...] = ()
    least, scores = fitted(singles, ())
    while len(found) < most:
        gain_of = {}
        for pair in candidates:
            if pair not in found:
                both = [schema.attributes[i] for i in pair]
                gain_of[pair] = join_codes(fit, scores, [codes[i] for i in pair], both)[0]
        best = None
        for pair in sorted(gain_of, key=lambda pair: (-gain_of[pair], pair))[:PAIRS_TRIED]:
            joined = (*found, pair)
            kept = _kept(singles, joined, columns, rows)
            if kept is not None:
                loss, after = fitted(kept, joined)
                if loss < least:
                    best, least = (kept, joined, after), loss
        if best is None:
            break
        singles, found, scores = best
    return (*((i,) for i in singles), *found)


def _log_choices(attribute: Attribute, n_groups: int) -> float:
    """Return the logarithm of the number of ways to form that many groups of an attribute's values, about."""
    n, k = attribute.n_values, min(n_groups - attribute.missing, attribute.n_values)
    if isinstance(attribute, NumericAttribute):
        return math.log(math.comb(max(n - 1, 0), max(k - 1, 0)))
    return 0.0 if k in (0, n) else n * math.log(k) - math.lgamma(k + 1)


def _kept(
    singles: tuple[int, ...], pairs: Sequence[tuple[int, int]], columns: int, rows: int
) -> tuple[int, ...] | None:
    """Return the single attributes that have room beside the pairs, the last ones left out; None if pairs have none."""
    in_pairs = set(itertools.chain.from_iterable(pairs))
    for n in range(len(singles), -1, -1):
        # every single attribute has two rows of the card or more, and every pair three
        if len(in_pairs | set(singles[:n])) <= columns and 2 * n + 3 * len(pairs) <= rows:
            return singles[:n]
    return None
