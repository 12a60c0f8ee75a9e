"""Columns of a score card: the few attributes whose small tables together predict best, by a beam search.

1. The values of every attribute are joined to at most MOST_GROUPS groups, by their class proportions
   (`bncli.engine.parameters.card_tables.join_values`).
2. Starting from the class frequencies, sets of columns grow by one column at a time. The gain of a candidate is that of
   one Newton step of its table on the residuals; the TRIED candidates of highest gain are fitted together with the
   columns of the set, and the WIDTH sets of lowest penalised loss are kept. A group costs COST nats per class beyond
   the first, about what a group gains by chance.
3. The search ends at `columns` attributes, at half as many attributes as the card has rows, or if no set is better.

Cf. Liu, Zhong, Li, Seltzer & Rudin 2022, NeurIPS (FasterRisk). Conventions: with more than MOST_ROWS rows, a sample is
searched. Ties go to the attribute that comes first. Cost: TRIED times WIDTH fits per column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.splits import stratified_sample
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.parameters.card_tables import PENALTY, CardFit, join_values, n_ordered
from bncli.engine.structures.structure import Regions
from bncli.watch import Watch, silent

MOST_GROUPS, JOIN_COST, COST = 5, 0.5, 1.0
WIDTH, TRIED = 2, 4
MANY_COLUMNS = 20
"""If the card may have more columns than this, the search keeps one set and tries one candidate."""
MOST_ROWS = 2_000
STEPS, TOLERANCE = 12, 1e-5


class _Set(NamedTuple):
    """Columns in the order in which they joined, their penalised loss plus the cost of groups, and their fit."""

    loss: float
    columns: tuple[int, ...]
    bias: Array
    values: tuple[Array, ...]


def learn(counts: Counts, *, columns: int, rows: int, watch: Watch = silent) -> Regions:
    """Return one region per chosen attribute, in the order in which they joined."""
    data = counts.with_missing_levels("card", watch).data
    attributes = [i for i in data.schema.informative if data.schema.cardinalities[i] > 1]
    chosen = _Set(0.0, (), np.zeros(data.n_labels), ())
    if attributes and data.n_rows:
        sample = stratified_sample(data.labels, MOST_ROWS, 0, data.split_by) if data.n_rows > MOST_ROWS else slice(None)
        mass = np.ones(data.n_rows) if data.weights is None else data.weights
        labels = np.asarray(data.labels[sample], np.intp)
        cells = {i: np.asarray(data.codes[i][sample], np.intp) for i in attributes}
        fit = CardFit(labels, data.n_labels, np.asarray(mass[sample], np.float64))
        grouped, sizes = {}, {}
        for i, own in cells.items():
            n = data.schema.cardinalities[i]
            table = np.bincount(own * data.n_labels + labels, fit.mass, n * data.n_labels).reshape(n, -1)
            cost = JOIN_COST * (data.n_labels - 1)
            groups = join_values(table, n_ordered(data.schema.attributes[i]), cost=cost, most=MOST_GROUPS)
            grouped[i], sizes[i] = groups[own], int(groups.max()) + 1
        chosen = _search(fit, grouped, sizes, min(columns, rows // 2))
    options = {"columns": columns, "rows": rows}
    return Regions(tuple((i,) for i in chosen.columns), method="card", options=options)


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
            candidates = sorted((-_gain(fit, one, grouped, sizes, i), i) for i in grouped if i not in one.columns)
            for _, i in candidates[:tried]:
                members = frozenset((*one.columns, i))
                if members not in grown:
                    grown[members] = fitted((*one.columns, i), one)
        beam = sorted(grown.values(), key=lambda one: (one.loss, one.columns))[:width]
        if not beam or beam[0].loss >= best.loss:
            break
        best = beam[0]
    return best


def _gain(fit: CardFit, one: _Set, grouped: dict[int, Index], sizes: dict[int, int], i: int) -> float:
    """Return the gain of one Newton step of attribute i's table, with the set's fit fixed, less the cost of groups."""
    n_labels = fit.target.shape[1]
    scores = fit.scores(one.bias, [grouped[j] for j in one.columns], one.values)
    p = fit.probabilities(scores)
    gain = 0.0
    for y in range(n_labels):
        slope = np.bincount(grouped[i], fit.mass * (fit.target[:, y] - p[:, y]), sizes[i])
        curvature = np.bincount(grouped[i], fit.mass * p[:, y] * (1 - p[:, y]), sizes[i])
        gain += float((slope**2 / (curvature + PENALTY / 2)).sum()) / 2
    return float(gain * (n_labels - 1) / n_labels - COST * (n_labels - 1) * (sizes[i] - 1))
