"""Points: tables of few distinct whole numbers, `--param points`, for the tables of `--structure card`.

1. The values of each table are joined to at most MOST_GROUPS groups by their class proportions
   (`bncli.engine.parameters.card_tables`). The numbers of all groups are fitted together, with a penalty.
   A table of several attributes then has the grid of their values that gains most on the residuals
   (`card_tables.join_codes`), and its groups are boxes: some values of each attribute.
2. The two groups of one table whose fusion costs least are fused (only neighbours if the attribute is numeric), and all
   numbers are fitted again, until at most `rows` groups are left and every fusion would cost at least LEAST_COST nats
   per class beyond the first. Fusing groups with the numbers b1 and b2 costs h1 h2 / (h1 + h2) (b1 - b2)^2 / 2, where
   h1 and h2 are the curvatures of the loss. Every table keeps at least two groups, one of several attributes three.
3. The scale makes the largest number `points`. The numbers are rounded one at a time, the largest first, each time to
   the neighbour of lower loss; then single numbers move by 1 while the loss falls by more than TIE.
4. Base rate and scale are fitted again, so that the total of points gives calibrated probabilities.

With two classes, points count for the second class. With more, each class has its own points, relative to the mean over
the classes. Cf. Liu, Zhong, Li, Seltzer & Rudin 2022, NeurIPS: FasterRisk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameters.card_tables import (
    PENALTY,
    STEPS,
    TOLERANCE,
    CardFit,
    join_codes,
    join_values,
    joinable_boxes,
    joinable_pairs,
    joined,
    n_ordered,
    n_ordered_groups,
    regrouped_cells,
)
from bncli.engine.structures.structure import Family, Regions, Structure
from bncli.watch import Iteration, Watch, silent

MOST_GROUPS = 5
"""The most groups per table before tables are fitted together."""
LEAST_COST = 0.5
TIE = 1e-9
SWEEPS = 5
"""The most rounds over all numbers."""


def learn(counts: Counts, structure: Structure, *, rows: int, points: int | str, watch: Watch = silent) -> Parameters:
    """Return tables with at most `rows` distinct entries in total, as points.

    Points are whole multiples of one scale, of which the largest is `points`; with "off", entries are not rounded.
    """
    assert isinstance(structure, Regions)
    data, n_labels = counts.data, counts.data.n_labels
    weights = np.ones(data.n_rows) if data.weights is None else np.asarray(data.weights, np.float64)
    labels = np.asarray(data.labels, np.intp)
    families = list[Family]()
    groups, columns, joinable = list[Index](), list[Index](), list[Callable[[Index], list[tuple[int, int]]]]()
    for region in sorted(structure.regions, key=lambda region: len(region) > 1):
        attributes = [data.schema.attributes[i] for i in region]
        codes = [np.asarray(data.codes[i], np.intp) for i in region]
        if len(region) == 1:
            family = Family.over(region, data.schema.cardinalities)
            table = np.bincount(codes[0] * n_labels + labels, weights, family.n_cells * n_labels)
            cost = LEAST_COST * (n_labels - 1)
            own = join_values(table.reshape(-1, n_labels), n_ordered(attributes[0]), cost=cost, most=MOST_GROUPS)
            columns.append(own[codes[0]])
            joinable.append(partial(_joinable_values, own, n_ordered(attributes[0])))
        else:
            fit, place = _distinct(columns, labels, n_labels, weights)
            _, bias, values = fit.free(fit.cells, [len(np.unique(g)) for g in groups])
            rows_fit = CardFit(labels, n_labels, weights)
            _, groupings = join_codes(rows_fit, fit.scores(bias, fit.cells, values)[place], codes, attributes)
            family = Family.over(region, data.schema.cardinalities, groupings=groupings)
            own = np.arange(family.n_cells, dtype=np.intp)
            columns.append(regrouped_cells(codes, groupings, family.shape))
            joinable.append(partial(joinable_boxes, shape=family.shape, ordered=n_ordered_groups(attributes, family)))
        families.append(family)
        groups.append(own)
    fit, _ = _distinct(columns, labels, n_labels, weights)
    merged: list[Index] = [np.arange(int(g.max()) + 1, dtype=np.intp) for g in groups]
    _, bias, values = fit.free(fit.columns(merged), [len(m) for m in merged])
    # groups that are left in each table
    fewest = [min(len(family.attributes), 2) + 1 for family in families]
    while True:
        pairs = [of(m) if len(v) > n else [] for of, m, v, n in zip(joinable, merged, values, fewest, strict=True)]
        candidate = fit.cheapest(merged, values, pairs, bias)
        n_rows = sum(len(v) for v in values)
        if candidate is None or (n_rows <= rows and candidate[0] >= LEAST_COST * (n_labels - 1)):
            break
        _, f, a, b = candidate
        merged[f] = joined(merged[f], a, b)
        values[f] = np.delete(values[f], b, axis=0)
        _, bias, values = fit.free(fit.columns(merged), [len(v) for v in values], (bias, values))
    groups = [m[g] for m, g in zip(merged, groups, strict=True)]
    if points != "off" and families:
        bias, values = fit.whole(merged, bias, values, int(points))
    tables = Tables(bias, tuple(families), tuple(v[g] for v, g in zip(values, groups, strict=True)))
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
    return Parameters(tables, n_parameters, start, cll, 1, 1, StoppedBy.TOLERANCE)


def _joinable_values(own: Index, ordered: int, merged: Index) -> list[tuple[int, int]]:
    """Return the pairs of merged groups of one attribute's codes that may be joined; own is the first group of each."""
    groups = merged[own]
    return joinable_pairs([int(np.flatnonzero(groups == k)[0]) for k in range(int(groups.max()) + 1)], ordered)


def _distinct(columns: Sequence[Index], labels: Index, n_labels: int, weights: Array) -> tuple[_Fit, Index]:
    """Return a fit in which rows with the same groups and label count once, and the place of every row in it."""
    keys = np.stack([*columns, labels], axis=1)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    mass = np.bincount(place.ravel(), weights, len(distinct)).astype(np.float64)
    cells = [np.ascontiguousarray(column) for column in distinct[:, :-1].T]
    return _Fit(cells, distinct[:, -1], n_labels, mass), place.ravel()


class _Fit(CardFit):
    """Fits over distinct rows; cells[f] (n,) are the cells of the rows in table f."""

    def __init__(self, cells: Sequence[Index], labels: Index, n_labels: int, mass: Array) -> None:
        super().__init__(labels, n_labels, mass)
        self.cells = cells

    def columns(self, groups: Sequence[Index]) -> list[Index]:
        """Return the group of every row in each table."""
        return [group[cell] for group, cell in zip(groups, self.cells, strict=True)]

    def cheapest(
        self,
        groups: Sequence[Index],
        values: Sequence[Array],
        pairs: Sequence[Sequence[tuple[int, int]]],
        bias: Array,
    ) -> tuple[float, int, int, int] | None:
        """Return (cost, table, a, b) of the cheapest fusion among these pairs of groups; None without any."""
        columns = self.columns(groups)
        p = self.probabilities(self.scores(bias, columns, values))
        curvature = self.mass[:, np.newaxis] * p * (1 - p)
        best: tuple[float, int, int, int] | None = None
        for f, (column, own) in enumerate(zip(columns, values, strict=True)):
            m = len(own)
            h = np.stack([np.bincount(column, c, m) for c in curvature.T], axis=1) + 1e-9
            for a, b in pairs[f]:
                moved = h[a] * h[b] / (h[a] + h[b]) * (own[a] - own[b]) ** 2
                # with two classes, the difference between them moves twice as far as each
                cost = float(moved.sum()) / 2 * (2 if len(bias) == 2 else 1)
                if best is None or cost < best[0]:
                    best = (cost, f, a, b)
        return best

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
        for _ in range(SWEEPS if most < 20 else 0):
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
        factor, ridge = 1.0, PENALTY * sum(float((table**2).sum()) for table in tables())
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
