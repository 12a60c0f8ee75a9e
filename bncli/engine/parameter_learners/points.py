"""Points: tables of few distinct whole numbers, `--param points`, for the tables of `--structure card`.

1. The values of each table are joined to at most MOST_GROUPS groups by their class proportions
   (`bncli.engine.parameters.card_tables`). The numbers of all groups are fitted together. Laplace's approximation of
   the likelihood of the labels chooses the penalty.
   A table of several attributes then has the grid of their values that gains most on the residuals
   (`card_tables.join_codes`), and its groups are boxes: some values of each attribute.
2. The two groups of one table that cost least to join are joined (only neighbours if the attribute is numeric), and all
   numbers are fitted again, until at most `rows` groups are left and every join would cost at least LEAST_COST nats
   per class beyond the first. If all rows are taken, groups are split again and others joined in their place. Joining
   groups with the numbers b1 and b2 costs h1 h2 / (h1 + h2) (b1 - b2)^2 / 2, where h1 and h2 are the curvatures of the
   loss. Every table keeps at least two groups, one of several attributes three.
3. The scale makes the largest number `points`. The numbers are rounded one at a time, the largest first, each time to
   the neighbour of lower loss; then single numbers move by 1 while the loss falls by more than TIE.
4. Base rate and scale are fitted again, so that the total of points gives calibrated probabilities.

With two classes, points count for the second class. With more, each class has its own points, relative to the mean over
the classes. Cf. Liu, Zhong, Li, Seltzer & Rudin 2022, NeurIPS: FasterRisk.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.splits import stratified_sample
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameters.card_tables import (
    STEPS,
    TOLERANCE,
    CardFit,
    GroupedFit,
    TableGroups,
    distinct_rows,
    join_codes,
    join_values,
    joinable_boxes,
    n_ordered,
    n_ordered_groups,
    regrouped_cells,
)
from bncli.engine.structures.structure import Family, Regions, Structure
from bncli.watch import Iteration, Watch, silent

MOST_GROUPS, FEW_GROUPS, MANY_TABLES = 8, 5, 10
"""The most groups per table before tables are fitted together, the same with more than MANY_TABLES tables."""
JOINED_ROWS = 2_000
"""With more rows, a sample of them shows which groups are joined."""
TIE = 1e-9
SWEEPS, FEW_POINTS = 5, 20
"""The most rounds over all numbers; with FEW_POINTS points or more, rounding costs so little that there is none."""


def learn(counts: Counts, structure: Structure, *, rows: int, points: int | str, watch: Watch = silent) -> Parameters:
    """Return tables with at most `rows` distinct entries in total, as points.

    Points are whole multiples of one scale, of which the largest is `points`; with "off", entries are not rounded.
    """
    assert isinstance(structure, Regions)
    data, n_labels = counts.data, counts.data.n_labels
    weights = np.ones(data.n_rows) if data.weights is None else np.asarray(data.weights, np.float64)
    labels = np.asarray(data.labels, np.intp)
    families = list[Family]()
    most = MOST_GROUPS if len(structure.regions) <= MANY_TABLES else FEW_GROUPS
    groups, columns, tables = list[Index](), list[Index](), list[TableGroups]()
    for region in sorted(structure.regions, key=lambda region: len(region) > 1):
        attributes = [data.schema.attributes[i] for i in region]
        codes = [np.asarray(data.codes[i], np.intp) for i in region]
        if len(region) == 1:
            family = Family.over(region, data.schema.cardinalities)
            counted = np.bincount(codes[0] * n_labels + labels, weights, family.n_cells * n_labels)
            own = join_values(counted.reshape(-1, n_labels), n_ordered(attributes[0]), cost=0.0, most=most)
            columns.append(own[codes[0]])
            tables.append(TableGroups.of_values(own, attributes[0]))
        else:
            cells, of_cells, mass, place = distinct_rows(columns, labels, weights)
            of_distinct = CardFit(of_cells, n_labels, mass)
            _, bias, values = of_distinct.free(cells, [table.size for table in tables])
            scores = of_distinct.scores(bias, cells, values)[place]
            _, groupings = join_codes(CardFit(labels, n_labels, weights), scores, codes, attributes)
            family = Family.over(region, data.schema.cardinalities, groupings=groupings)
            own = np.arange(family.n_cells, dtype=np.intp)
            columns.append(regrouped_cells(codes, groupings, family.shape))
            boxes = partial(joinable_boxes, shape=family.shape, ordered=n_ordered_groups(attributes, family))
            tables.append(TableGroups(family.n_cells, boxes, 3, None))
        families.append(family)
        groups.append(own)
    fit = _Fit(*distinct_rows(columns, labels, weights)[:3], n_labels, tables)
    sample = stratified_sample(data.labels, JOINED_ROWS, 0, data.split_by)
    drawn = distinct_rows([column[sample] for column in columns], labels[sample], weights[sample])[:3]
    joining = GroupedFit(*drawn, n_labels, tables)
    joining.choose_penalty(joining.cells, [table.size for table in tables])
    fit.penalty = joining.penalty
    merged = joining.join(rows).groups
    _, bias, values = fit.free(fit.columns(merged), [int(m.max()) + 1 for m in merged])
    groups = [m[g] for m, g in zip(merged, groups, strict=True)]
    if points != "off" and families:
        bias, values = fit.whole(merged, bias, values, int(points))
    whole = Tables(bias, tuple(families), tuple(v[g] for v, g in zip(values, groups, strict=True)))
    cll = 0.0 - fit.loss(fit.scores(bias, fit.columns(merged), values))
    start = 0.0 - fit.loss(np.tile(fit.frequencies(), (len(fit.mass), 1)))
    watch(
        Iteration(
            iteration=0, cll=start, penalty=0.0, gradient_norm=0.0, step=0, cll_evaluations=0, gradient_evaluations=0
        )
    )
    watch(
        Iteration(
            iteration=1, cll=cll, penalty=0.0, gradient_norm=0.0, step=0, cll_evaluations=0, gradient_evaluations=0
        )
    )
    n_parameters = n_labels - 1 + sum(len(v) for v in values) * (n_labels - 1)
    return Parameters(whole, n_parameters, start, cll, 1, 1, StoppedBy.TOLERANCE)


class _Fit(GroupedFit):
    """Fits whose numbers become whole."""

    def whole(
        self, groups: Sequence[Index], bias: Array, values: Sequence[Array], most: int
    ) -> tuple[Array, list[Array]]:
        """Round the entries to whole multiples of one scale, the largest `most`; fit base rate and scale again."""
        two, columns = self.target.shape[1] == 2, self.columns(groups)
        shift = np.array([-0.5, 0.5])
        own = [v[:, 1:] - v[:, :1] if two else v for v in values]
        largest = max(float(np.abs(v).max()) for v in own)
        if not largest > 0:
            return bias, list(values)
        scale = largest / most
        numbers = [v / scale for v in own]

        def tables() -> list[Array]:
            return [scale * n * shift if two else scale * n for n in numbers]

        places = [(f, c, y) for f, n in enumerate(numbers) for c in range(n.shape[0]) for y in range(n.shape[1])]
        places.sort(key=lambda at: -abs(numbers[at[0]][at[1], at[2]]))
        for f, c, y in places:
            low = np.floor(numbers[f][c, y])
            tried = []
            for number in (low, low + 1):
                if abs(number) <= most:
                    numbers[f][c, y] = number
                    tried.append((self.loss(self.scores(bias, columns, tables())), abs(number), number))
            numbers[f][c, y] = min(tried)[2]
        loss = self.loss(self.scores(bias, columns, tables()))
        for _ in range(SWEEPS if most < FEW_POINTS else 0):
            before = loss
            for f, c, y in places[1:]:  # the largest number stays, because it defines the scale
                for move in (-1, 1):
                    numbers[f][c, y] += move
                    moved = self.loss(self.scores(bias, columns, tables()))
                    if abs(numbers[f][c, y]) <= most and moved < loss - TIE:
                        loss = moved
                    else:
                        numbers[f][c, y] -= move
            if loss == before:
                break
        total = self.scores(np.zeros_like(bias), columns, tables())
        factor, ridge = 1.0, self.penalty * sum(float((table**2).sum()) for table in tables())
        for _ in range(STEPS):
            # Newton steps on base rate and factor; the last class's bias is the reference
            p = self.probabilities(bias + factor * total)
            residual = self.mass[:, np.newaxis] * (self.target - p)
            basis = [np.broadcast_to(row, total.shape) for row in np.eye(len(bias))[1:]] + [total]
            centred = [b - (p * b).sum(axis=1, keepdims=True) for b in basis]
            gradient = np.array([(residual * b).sum() for b in basis])
            hessian = np.array(
                [[(self.mass[:, np.newaxis] * p * a * b).sum() for b in centred] for a in centred]
            ) + 1e-6 * np.eye(len(basis))
            gradient[-1] -= ridge * factor
            hessian[-1, -1] += ridge
            step = np.linalg.solve(hessian, gradient)
            bias, factor = bias + np.array([0.0, *step[:-1]]), factor + float(step[-1])
            if np.abs(step).max() < TOLERANCE:
                break
        return bias - bias.mean(), [factor * table for table in tables()]
