"""Points: tables of few distinct whole numbers, `--param points`, for the tables of `--structure card`.

1. Every cell of every table is free, with the penalty PENALTY on its square.
2. The two cells of one table whose fusion costs least are fused, neighbours only where the attribute is numeric, and
   all are fitted again, until `rows` cells are left and no fusion costs less than LEAST_COST nats a class beyond the
   first. Fusing b1 and b2, with the curvatures h1 and h2 of the loss, costs h1 h2 / (h1 + h2) (b1 - b2)^2 / 2. Two
   cells are left in each table.
3. The scale makes the largest number `points`. The numbers are rounded one at a time, the largest first, each time to
   the neighbour of lower loss; then single numbers move by 1 while the loss falls by more than TIE.
4. Base rate and scale are fitted again, so that the total of points gives calibrated probabilities.

With two classes the second has the points. With more, each has its own, against the mean of all. Cf. Liu, Zhong, Li,
Seltzer & Rudin 2022, NeurIPS: FasterRisk.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.structures.structure import Structure
from bncli.watch import Iteration, Watch, silent

PENALTY = 5.0
LEAST_COST = 1.0
TIE = 1e-9
SWEEPS = 5
"""Most rounds over all numbers."""
STEPS, TOLERANCE = 100, 1e-8
"""Most Newton steps of a fit, and the share of the loss below which a step ends it."""


def learn(counts: Counts, structure: Structure, *, rows: int, points: int | str, watch: Watch = silent) -> Parameters:
    """Return tables with at most `rows` distinct entries in all, whole multiples of one scale unless points are off."""
    data = counts.data
    families = structure.families(data.schema.cardinalities)
    n_labels = data.n_labels
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    codes = []
    for family in families:
        cell = np.zeros(data.n_rows, np.intp)
        for i, size in zip(family.attributes, family.shape, strict=True):
            cell = cell * size + data.codes[i]
        codes.append(cell)
    labels = np.asarray(data.labels, np.intp)
    groups: list[Index] = [np.arange(f.n_cells, dtype=np.intp) for f in families]
    ordered = []
    for family in families:
        attribute = data.schema.attributes[family.attributes[0]]
        is_ordered = len(family.attributes) == 1 and isinstance(attribute, NumericAttribute)
        ordered.append(attribute.n_values if is_ordered else 0)
    # Rows with the same cells and label count once.
    keys = np.stack([*codes, labels], axis=1)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    mass = np.bincount(place.ravel(), weights, len(distinct)).astype(np.float64)
    cells, labels = distinct[:, :-1], distinct[:, -1]
    target = np.eye(n_labels)[labels]

    fit = _Fit(cells, target, mass)
    bias, values = fit.free(groups, np.zeros(n_labels), None)
    limit = max(rows, 2 * len(families))
    while True:
        candidate = fit.cheapest(groups, values, ordered, bias)
        n_rows = sum(int(g.max()) + 1 for g in groups)
        if candidate is None or (n_rows <= limit and candidate[0] >= LEAST_COST * (n_labels - 1)):
            break
        _, f, a, b = candidate
        groups[f] = _fused(groups[f], a, b)
        values[f] = np.delete(values[f], b, axis=0)
        bias, values = fit.free(groups, bias, values)
    if points != "off" and families:
        bias, values = fit.whole(groups, bias, values, int(points))
    tables = Tables(bias, families, tuple(v[g] for v, g in zip(values, groups, strict=True)))
    cll = 0.0 - fit.loss(fit.scores(groups, bias, values))
    start = 0.0 - fit.loss(
        np.broadcast_to(np.log(np.maximum(mass @ target, 1e-300) / max(float(mass.sum()), 1e-300)), target.shape)
    )
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


def _fused(groups: Index, a: int, b: int) -> Index:
    """Return the groups with b > a joined to a, numbered without gaps."""
    joined: Index = np.where(groups == b, a, groups)
    return joined - (joined > b).astype(np.intp)


class _Fit:
    """Losses and fits over distinct rows: cells (n, tables), target (n, K) of 0 and 1, mass (n,)."""

    def __init__(self, cells: Index, target: Array, mass: Array) -> None:
        self.cells, self.target, self.mass = cells, target, mass

    def scores(self, groups: Sequence[Index], bias: Array, values: Sequence[Array]) -> Array:
        total = np.tile(bias, (len(self.mass), 1))
        for f, (group, own) in enumerate(zip(groups, values, strict=True)):
            total += own[group[self.cells[:, f]]]
        return total

    def probabilities(self, scores: Array) -> Array:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Array = p / p.sum(axis=1, keepdims=True)
        return shares

    def loss(self, scores: Array) -> float:
        top = scores.max(axis=1)
        log_sum = top + np.log(np.exp(scores - top[:, np.newaxis]).sum(axis=1))
        return float(self.mass @ (log_sum - (scores * self.target).sum(axis=1)))

    def free(self, groups: Sequence[Index], bias: Array, values: list[Array] | None) -> tuple[Array, list[Array]]:
        """Return the penalised optimum, by steps with Böhning's bound 1/2 (I - 1 1'/K) of the curvature."""
        sizes = [int(g.max()) + 1 for g in groups]
        edges = np.cumsum([1, *sizes])
        k = self.target.shape[1]
        beta = np.zeros((edges[-1], k))
        beta[0] = bias - bias.mean()
        if values is not None:
            beta[1:] = np.concatenate(values) if values else 0
        index = [np.zeros(len(self.mass), np.intp)]
        index += [edges[f] + g[self.cells[:, f]] for f, g in enumerate(groups)]
        ridge = np.full(edges[-1], PENALTY)
        ridge[0] = 1e-6
        design = np.zeros((len(self.mass), edges[-1]))
        for column in index:
            design[np.arange(len(self.mass)), column] = 1
        inverse = np.linalg.inv(0.5 * design.T @ (design * self.mass[:, np.newaxis]) + np.diag(ridge))
        before = np.inf
        for _ in range(STEPS):
            scores = design @ beta
            now = self.loss(scores) + 0.5 * float(ridge @ (beta**2).sum(axis=1))
            if before - now <= TOLERANCE * max(now, 1.0):
                break
            before = now
            gradient = design.T @ (self.mass[:, np.newaxis] * (self.target - self.probabilities(scores)))
            step = inverse @ (gradient - ridge[:, np.newaxis] * beta)
            beta = beta + step - step.mean(axis=1, keepdims=True)
        return beta[0], [beta[a:b] for a, b in itertools.pairwise(edges)]

    def cheapest(
        self, groups: Sequence[Index], values: Sequence[Array], ordered: Sequence[int], bias: Array
    ) -> tuple[float, int, int, int] | None:
        """Return (cost, table, a, b) of the cheapest fusion; None if no table has more than two cells."""
        p = self.probabilities(self.scores(groups, bias, values))
        curvature = self.mass[:, np.newaxis] * p * (1 - p)
        best: tuple[float, int, int, int] | None = None
        for f, (group, own) in enumerate(zip(groups, values, strict=True)):
            m = len(own)
            if m <= 2:
                continue
            h = np.stack([np.bincount(group[self.cells[:, f]], c, m) for c in curvature.T], axis=1) + 1e-9
            n_ordered = int(group[: ordered[f]].max()) + 1 if ordered[f] else 0
            pairs = [(c, c + 1) for c in range(n_ordered - 1)] if n_ordered else []
            if not n_ordered:
                pairs = [(a, b) for a in range(m) for b in range(a + 1, m)]
            for a, b in pairs:
                cost = float((h[a] * h[b] / (h[a] + h[b]) * (own[a] - own[b]) ** 2).sum() / 2)
                # the score of every class moves, and only the differences matter
                if best is None or cost < best[0]:
                    best = (cost, f, a, b)
        return best

    def whole(
        self, groups: Sequence[Index], bias: Array, values: Sequence[Array], most: int
    ) -> tuple[Array, list[Array]]:
        """Return whole multiples of one scale, the largest `most`, with base rate and scale fitted again."""
        two = self.target.shape[1] == 2
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
                    tried.append((self.loss(self.scores(groups, bias, tables())), abs(number), number))
            numbers[f][c, y] = min(tried)[2]
        loss = self.loss(self.scores(groups, bias, tables()))
        for _ in range(SWEEPS if most < 20 else 0):
            before = loss
            for f, c, y in places[1:]:  # the largest stays, so that it tells the scale
                for move in (-1, 1):
                    numbers[f][c, y] += move
                    moved = self.loss(self.scores(groups, bias, tables()))
                    if abs(numbers[f][c, y]) <= most and moved < loss - TIE:
                        loss = moved
                    else:
                        numbers[f][c, y] -= move
            if loss == before:
                break
        total = self.scores(groups, np.zeros_like(bias), tables())
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
