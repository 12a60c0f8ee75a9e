"""Points: tables of few distinct whole numbers, `--param points`, for the tables of `--structure card`.

1. The values of each table are joined to at most MOST_GROUPS groups by their class proportions
   (`bncli.engine.parameters.card_tables`). The numbers of all groups are fitted together, with a penalty.
2. The two groups of one table whose fusion costs least are fused (only neighbours if the attribute is numeric), and all
   numbers are fitted again, until at most `rows` groups are left and every fusion would cost at least LEAST_COST nats
   per class beyond the first. Fusing groups with the numbers b1 and b2 costs h1 h2 / (h1 + h2) (b1 - b2)^2 / 2, where
   h1 and h2 are the curvatures of the loss. Every table keeps at least two groups.
3. The scale makes the largest number `points`. The numbers are rounded one at a time, the largest first, each time to
   the neighbour of lower loss; then single numbers move by 1 while the loss falls by more than TIE.
4. Base rate and scale are fitted again, so that the total of points gives calibrated probabilities.

With two classes, points count for the second class. With more, each class has its own points, relative to the mean over
the classes. Cf. Liu, Zhong, Li, Seltzer & Rudin 2022, NeurIPS: FasterRisk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameters.card_tables import (
    PENALTY,
    STEPS,
    TOLERANCE,
    CardFit,
    join_values,
    joinable_pairs,
    joined,
    n_ordered,
)
from bncli.engine.structures.structure import Structure
from bncli.watch import Iteration, Watch, silent

MOST_GROUPS = 5
"""The most groups per table before tables are fitted together."""
LEAST_COST = 0.5
TIE = 1e-9
SWEEPS = 5
"""The most rounds over all numbers."""


def learn(counts: Counts, structure: Structure, *, rows: int, points: int | str, watch: Watch = silent) -> Parameters:
    """Return tables with at most `rows` distinct entries in total (but two per table), as points.

    Points are whole multiples of one scale, of which the largest is `points`; with "off", entries are not rounded.
    """
    data = counts.data
    families = structure.families(data.schema.cardinalities)
    n_labels = data.n_labels
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    labels = np.asarray(data.labels, np.intp)
    cells, groups, ordered = [], list[Index](), []
    for family in families:
        cell = np.zeros(data.n_rows, np.intp)
        for i, size in zip(family.attributes, family.shape, strict=True):
            cell = cell * size + data.codes[i]
        cells.append(cell)
        attribute = data.schema.attributes[family.attributes[0]]
        ordered.append(n_ordered(attribute) if len(family.attributes) == 1 else 0)
        table = np.bincount(cell * n_labels + labels, weights, family.n_cells * n_labels).reshape(-1, n_labels)
        cost = LEAST_COST * (n_labels - 1)
        groups.append(join_values(table, ordered[-1], cost=cost, most=MOST_GROUPS))
    # Rows with the same groups and label count once.
    keys = np.stack([*(g[cell] for g, cell in zip(groups, cells, strict=True)), labels], axis=1)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    mass = np.bincount(place.ravel(), weights, len(distinct)).astype(np.float64)
    fit = _Fit([np.ascontiguousarray(column) for column in distinct[:, :-1].T], distinct[:, -1], n_labels, mass)
    merged: list[Index] = [np.arange(int(g.max()) + 1, dtype=np.intp) for g in groups]
    _, bias, values = fit.free(fit.columns(merged), [len(m) for m in merged])
    limit = max(rows, 2 * len(families))
    firsts = [[int(np.flatnonzero(g == k)[0]) for k in range(int(g.max()) + 1)] for g in groups]
    while True:
        candidate = fit.cheapest(merged, values, firsts, ordered, bias)
        n_rows = sum(len(v) for v in values)
        if candidate is None or (n_rows <= limit and candidate[0] >= LEAST_COST * (n_labels - 1)):
            break
        _, f, a, b = candidate
        merged[f] = joined(merged[f], a, b)
        firsts[f][a] = min(firsts[f][a], firsts[f].pop(b))
        values[f] = np.delete(values[f], b, axis=0)
        _, bias, values = fit.free(fit.columns(merged), [len(v) for v in values], (bias, values))
    groups = [m[g] for m, g in zip(merged, groups, strict=True)]
    if points != "off" and families:
        bias, values = fit.whole(merged, bias, values, int(points))
    tables = Tables(bias, families, tuple(v[g] for v, g in zip(values, groups, strict=True)))
    cll = 0.0 - fit.loss(fit.scores(bias, fit.columns(merged), values))
    start = 0.0 - fit.loss(np.tile(fit.frequencies(), (len(mass), 1)))
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
        firsts: Sequence[Sequence[int]],
        ordered: Sequence[int],
        bias: Array,
    ) -> tuple[float, int, int, int] | None:
        """Return (cost, table, a, b) of the cheapest fusion, or None if no table has more than two groups."""
        columns = self.columns(groups)
        p = self.probabilities(self.scores(bias, columns, values))
        curvature = self.mass[:, np.newaxis] * p * (1 - p)
        best: tuple[float, int, int, int] | None = None
        for f, (column, own) in enumerate(zip(columns, values, strict=True)):
            m = len(own)
            if m <= 2:
                continue
            h = np.stack([np.bincount(column, c, m) for c in curvature.T], axis=1) + 1e-9
            for a, b in joinable_pairs(firsts[f], ordered[f]):
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
