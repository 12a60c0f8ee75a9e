"""Points: score cards of `--structure card` with few rows and small integers, `--param points`.

1. The values of a table of one attribute are joined into at most MOST_GROUPS groups (FEW_GROUPS in cards of more than
   MANY_TABLES tables) by their class proportions (`bncli.engine.parameters.card_tables`). A table of several attributes
   has the grid of their values that gains most on the residuals of the tables before it (`card_tables.join_codes`), and
   its groups are boxes: some values of each attribute. The entries of all groups are fitted together. Laplace's
   approximation of the likelihood of the labels chooses the penalty.
2. In rounds, the two groups of a table that cost least to join are joined (only neighbours if the attribute is
   numeric), in several tables at a time, and all entries are fitted again. The rounds end when at most `rows` groups
   are left and every join would cost at least LEAST_COST nats per class beyond the first. If exactly `rows` groups are
   left, groups are split again and others joined in their place. If at least `rows` - 1 are left, one table at a time
   gets the groups that are best given the other tables (`card_tables.GroupedFit.exchange`). Joining groups with the
   entries b1 and b2 costs h1 h2 / (h1 + h2) (b1 - b2)^2 / 2, where h1 and h2 are the curvatures of the loss. A table
   keeps at least two groups, or three if it is over several attributes, unless an exchange replaces it.
3. The scale is chosen so that the largest entry has `points` points. The entries are rounded one at a time, the largest
   first, each to the neighbouring integer with the lower loss. With fewer than FEW_POINTS points, single entries then
   move by 1 while the loss falls by more than TIE, in at most SWEEPS rounds.
4. Base rate and scale are fitted again, so that the total of points gives calibrated probabilities.

Under monotonicity constraints, every fit keeps the order of the groups of every table (`card_tables`). Neighbouring
groups that then have equal entries are joined. If rounding breaks an order, two groups are joined, and the entries are
fitted and rounded again.

With two classes, points count for the second class. With more, each class has its own points, relative to the mean over
the classes. Cf. Liu, Zhong, Li, Seltzer & Rudin 2022, NeurIPS: FasterRisk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.splits import stratified_sample
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameters.card_tables import (
    EQUAL,
    STEPS,
    TOLERANCE,
    CardFit,
    GroupedFit,
    Order,
    TableGroups,
    ascending_pairs,
    distinct_rows,
    join_codes,
    join_values,
    joinable_boxes,
    joined,
    n_ordered,
    n_ordered_groups,
    regrouped_cells,
)
from bncli.engine.parameters.monotone import directions_of
from bncli.engine.structures.structure import Family, Regions, Structure
from bncli.watch import Iteration, Watch, silent

MOST_GROUPS, FEW_GROUPS, MANY_TABLES = 20, 5, 10
"""The maximum number of groups per table of one attribute before tables are fitted together: MOST_GROUPS, or FEW_GROUPS
with more than MANY_TABLES tables."""
JOINED_ROWS = 4_000
"""With more rows, a sample of this size decides which groups are joined."""
TIE = 1e-9
SWEEPS, FEW_POINTS = 5, 20
"""The maximum number of rounds over all entries; with FEW_POINTS points or more, rounding costs so little that there
are no rounds."""


def learn(counts: Counts, structure: Structure, *, rows: int, points: int | str, watch: Watch = silent) -> Parameters:
    """Return the parameters of a score card with at most `rows` rows.

    Each group of a table is one row of the card; a table with a single group has no row. Points are table entries or,
    with two classes, the differences between the entries of the second and of the first class. They are integer
    multiples of one scale, and the largest magnitude is `points` times the scale. With "off", entries are not rounded.
    """
    assert isinstance(structure, Regions)
    data, n_labels = counts.data, counts.data.n_labels
    weights = np.ones(data.n_rows) if data.weights is None else np.asarray(data.weights, np.float64)
    labels, raised = np.asarray(data.labels, np.intp), data.schema.direction_label
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
            of_distinct = GroupedFit(cells, of_cells, mass, n_labels, tables, raised)
            _, bias, values = of_distinct.fitted([np.arange(table.size) for table in tables])
            scores = of_distinct.scores(bias, cells, values)[place]
            _, groupings = join_codes(CardFit(labels, n_labels, weights).residuals(scores), codes, attributes)
            family = Family.over(region, data.schema.cardinalities, groupings=groupings)
            own = np.arange(family.n_cells, dtype=np.intp)
            columns.append(regrouped_cells(codes, groupings, family.shape))
            ordered = n_ordered_groups(attributes, family)
            boxes = partial(joinable_boxes, shape=family.shape, ordered=ordered)
            order = partial(ascending_pairs, attributes=attributes, shape=family.shape, ordered=ordered)
            tables.append(TableGroups(family.n_cells, boxes, 3, None, order))
        families.append(family)
        groups.append(own)
    fit = _Fit(*distinct_rows(columns, labels, weights)[:3], n_labels, tables, raised)
    sample = stratified_sample(data.labels, JOINED_ROWS, 0, data.split_by)
    drawn = distinct_rows([column[sample] for column in columns], labels[sample], weights[sample])[:3]
    joining = GroupedFit(*drawn, n_labels, tables, raised)
    joining.choose_penalty(joining.cells, [table.size for table in tables])
    fit.penalty = joining.penalty
    best = joining.join(rows)
    if best.n_rows >= rows - 1:
        best = joining.exchange(best, rows, len(families))
    merged, bias, values = fit.join_equal_groups(best.groups)
    if points != "off" and families:
        rounded = fit.rounded_to_points(merged, bias, values, int(points))
        while (fewer := fit.join_violating_groups(merged, rounded[1])) is not None:
            merged, bias, values = fit.join_equal_groups(fewer)
            rounded = fit.rounded_to_points(merged, bias, values, int(points))
        bias, values = rounded
    groups = [m[g] for m, g in zip(merged, groups, strict=True)]
    result = Tables(bias, tuple(families), tuple(v[g] for v, g in zip(values, groups, strict=True)))
    directions = directions_of(data.schema, families)
    if directions is not None:
        result = Tables.of_cells(directions.repaired(result.cells), result.families)
    cll = 0.0 - fit.loss(fit.scores(bias, fit.columns(merged), values))
    start = 0.0 - fit.loss(np.tile(fit.frequencies(), (len(fit.mass), 1)))
    for iteration, value in enumerate((start, cll)):
        watch(Iteration(iteration, value, 0.0, 0.0, 0, cll_evaluations=0, gradient_evaluations=0))
    n_parameters = n_labels - 1 + sum(len(v) for v in values) * (n_labels - 1)
    return Parameters(result, n_parameters, start, cll, 1, 1, StoppedBy.TOLERANCE)


class _Fit(GroupedFit):
    """A grouped fit whose table entries can be rounded to integer points."""

    def join_equal_groups(self, groups: Sequence[Index]) -> tuple[list[Index], Array, list[Array]]:
        """Fit the groups, and join groups with equal entries that are neighbours in the order of their table.

        Return the groups, the bias and the entries. Without monotonicity constraints, tables have no order, and no
        groups are joined.
        """
        merged = list(groups)
        while True:
            _, bias, values = self.fitted(merged)
            for f, a, b, rise in self._differences_of_ordered_groups(merged, values):
                if np.abs(rise).max() <= EQUAL and (a, b) in self.tables[f].joinable(merged[f]):
                    merged[f] = joined(merged[f], a, b)
                    break
            else:
                return merged, bias, values

    def join_violating_groups(self, groups: Sequence[Index], values: Sequence[Array]) -> list[Index] | None:
        """Join two groups whose entries violate a monotonicity constraint; return the groups, or None if none do.

        If the two groups cannot be joined, all groups of the table are joined.
        """
        for f, a, b, rise in self._differences_of_ordered_groups(groups, values):
            if (rise[self.raised] - rise).min() < -EQUAL:
                is_group = (a, b) in self.tables[f].joinable(groups[f])
                own = joined(groups[f], a, b) if is_group else np.zeros_like(groups[f])
                return [*groups[:f], own, *groups[f + 1 :]]
        return None

    def _differences_of_ordered_groups(
        self, groups: Sequence[Index], values: Sequence[Array]
    ) -> Iterator[tuple[int, int, int, Array]]:
        """Yield (table, a, b, rise) for each pair of groups, a < b, in the order of a table.

        The rise (K,) is the difference of their entries: the high group of the pair minus the low group.
        """
        for f, (table, merged, own) in enumerate(zip(self.tables, groups, values, strict=True)):
            for low, high in table.ascending(merged):
                yield f, min(low, high), max(low, high), own[high] - own[low]

    def rounded_to_points(
        self, groups: Sequence[Index], bias: Array, values: Sequence[Array], most: int
    ) -> tuple[Array, list[Array]]:
        """Round the entries to integer multiples of one scale, the largest being `most`; return bias and entries.

        With two classes, these are the differences between the entries of the second and of the first class. Bias and
        scale are fitted again after the rounding. If all entries are 0, nothing changes. With two classes the orders of
        the tables are kept, since one of the two integers next to an entry always keeps them. With more classes, they
        are kept only if one of these integers keeps them.
        """
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
        settled = [np.zeros(n.shape, np.bool_) for n in numbers]
        orders = [_closed(table.ascending(own)) for table, own in zip(self.tables, groups, strict=True)]

        def falls(f: int, c: int) -> bool:
            return self._falls(orders[f], c, numbers[f], settled[f])

        for f, c, y in places:
            low = np.floor(numbers[f][c, y])
            settled[f][c, y] = True
            tried = []
            for number in (low, low + 1):
                if abs(number) <= most:
                    numbers[f][c, y] = number
                    loss = self.loss(self.scores(bias, columns, tables()))
                    tried.append((falls(f, c), loss, abs(number), number))
            numbers[f][c, y] = min(tried)[3]
        loss = self.loss(self.scores(bias, columns, tables()))
        for _ in range(SWEEPS if most < FEW_POINTS else 0):
            before = loss
            for f, c, y in places[1:]:  # the largest number stays, because it defines the scale
                for move in (-1, 1):
                    numbers[f][c, y] += move
                    moved = self.loss(self.scores(bias, columns, tables()))
                    if abs(numbers[f][c, y]) <= most and moved < loss - TIE and not falls(f, c):
                        loss = moved
                    else:
                        numbers[f][c, y] -= move
            if loss == before:
                break
        bias, factor = self._calibrated(bias, self.scores(np.zeros_like(bias), columns, tables()), tables())
        return bias, [factor * table for table in tables()]

    def _falls(self, order: Order, group: int, numbers: Array, settled: Mask) -> bool:
        """Return whether settled numbers of `group` violate `order`; numbers (groups, K), or (groups, 1) for K = 2."""
        for low, high in order:
            if group in (low, high):
                rise, known = numbers[high] - numbers[low], settled[high] & settled[low]
                if len(rise) == 1:
                    if known[0] and (rise[0] if self.raised else -rise[0]) < 0:
                        return True
                elif known[self.raised] and (rise[known] > rise[self.raised]).any():
                    return True
        return False

    def _calibrated(self, bias: Array, total: Array, tables: Sequence[Array]) -> tuple[Array, float]:
        """Return the bias (K,) and the factor of `tables` that minimise the penalised loss.

        total (n, K) holds the scores of the rows under `tables` without a bias.
        """
        factor, ridge = 1.0, self.penalty * sum(float((table**2).sum()) for table in tables)
        for _ in range(STEPS):
            # Newton steps on base rate and factor; the first class's bias is the reference
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
        return bias - bias.mean(), factor


def _closed(order: Order) -> Order:
    """Return the transitive closure of an order: its pairs and all pairs that they imply."""
    pairs = dict.fromkeys(order)
    for middle in dict.fromkeys(g for pair in order for g in pair):
        below, above = [a for a, b in pairs if b == middle], [b for a, b in pairs if a == middle]
        pairs |= dict.fromkeys((a, b) for a in below for b in above if a != b)
    return list(pairs)
