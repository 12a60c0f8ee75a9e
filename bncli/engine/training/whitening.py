"""Preconditioners from the Hessian of the log-likelihood, estimated on a sample of rows at the most frequent cells.

With z_t the indicators of row t's cells, the Hessian of -CLL couples the classes y and y' by

    H_yy' = sum over rows t of w_t P(y | x_t) (1[y = y'] - P(y' | x_t)) z_t z_t'

It is summarised by one matrix of co-occurrences per class, C_y = sum_t w_t q_ty z_t z_t'; see
`bncli.engine.kernels.preconditioning` for what is made of them. A row's q is such that the summary of this row alone,
1[y = y'] q_y - q_y q_y' / sum(q), has the trace of its Hessian:

    q_y = h_y / (1 - sum_k h_k^2 / (sum_k h_k)^2),    h_y = P(y | x) (1 - P(y | x))

Exact for two classes, where q_0 = q_1 = 2 P(0|x) P(1|x), and for uniform P. (P(y | x) in its place is exact for one row
and far too stiff for the sum over rows, most of which leave no doubt about their class.) At W = 0 all C_y are C/K, and
one matrix serves. Later the matrices can be *refreshed* at the present tables; with rare classes or almost separable
data that saves most of the remaining passes.

Cells by themselves have the diagonal of C_y, exact where it is refreshed: in some cells hardly a row is in doubt. Along
what several families tell alike the penalty alone curves (`bncli.engine.training.null_space`): that is added.

A preconditioner need not be exact: evenly spaced rows serve, and only a subspace of the tables gets a dense block (see
`bncli.engine.training.subspace`). How many rows, and how large a subspace, follows from what it may cost,
counted in passes over the data by a rough model of the time of all parts. Where tables follow predictors, the way leads
through free tables: a function of the tables has one curvature, however it is written. Effects are as many as cells or
fewer, and take the place of cells: their co-occurrences, their diagonal, the most massive of them in the dense block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.kernels.gram import ROWS, Packing, co_occurrences, pack
from bncli.engine.kernels.preconditioning import (
    Precondition,
    Sample,
    curved,
    dense_work,
    scaled,
    shared,
)
from bncli.engine.kernels.prolongation import Subspace
from bncli.engine.parameter_spaces.coordinates import Coordinates, Sharing
from bncli.engine.parameter_spaces.effect_features import ROWS as ROWS_OF_EFFECTS
from bncli.engine.parameter_spaces.effect_features import Features, features, weighted_products
from bncli.engine.parameter_spaces.effects import Effects
from bncli.engine.parameter_spaces.predictors import CellPredictors, Predictors
from bncli.engine.training.likelihood import ConditionalLikelihood
from bncli.engine.training.null_space import NullSpace, null_space
from bncli.engine.training.subspace import subspace, top_only

LEAST_SIZE = 64
"""Of a subspace, whatever the budget."""
STRETCH = 1.6
"""A subspace may be so many times larger than the budget allows if no cell is then left out."""
MAX_ENTRIES = 1 << 22
"""The dense blocks of all classes together hold at most so many numbers."""
LEAST_ROWS = 1 << 12
"""Sampled whatever the budget."""
MANY_ROWS, LEAST_OF_MANY = 3_000, 1 << 10
"""Of effects, where there are more rows than MANY_ROWS, fewer are sampled whatever the budget: they vary less."""
CELLS_OF_PREDICTOR = 4.0
"""A factor of lambda, found by trial."""
START_PASSES = 15.0
"""The budget of the first preconditioner."""
FLAT_WORK = 0.3
"""Nanoseconds, roughly, that so many flat directions take, by the cube of their number."""


@dataclass(frozen=True)
class Whitening:
    """What the preconditioners of one optimization share: lambda, and the weight of every cell.

    Of effects, `weights` are the weighted sums of their squares over the rows: their masses. `packings` are how rows
    are looked up for subspaces that were met, by their size and the number of dense blocks; no penalty changes them.
    `values` are the effects of few rows, by the same, looked up once.
    `flat`: where no row curves; None where tables do not follow parameters one by one.
    """

    likelihood: ConditionalLikelihood
    space: Coordinates
    penalty: float
    weights: Array
    packings: dict[tuple[int, int], Packing | Features] = field(default_factory=dict)
    values: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    flat: NullSpace | None = None

    def under(self, penalty: float) -> Whitening:
        """The same for another penalty."""
        return replace(self, penalty=penalty)

    def start(self, p: Array) -> Precondition:
        """The preconditioner of uniform P(y | x), in the metric of the space at p."""
        size = self._size(START_PASSES, 1 if len(self.space.scale) == 1 else self._n_inverses)
        return self._build(p, None, size, START_PASSES)

    def refresh(self, p: Array, passes: float) -> Precondition:
        """The preconditioner at the probabilities of p, at the cost of about so many passes."""
        return self._build(p, self.space.tables(p), self._size(passes, self._n_inverses), passes)

    @property
    def _n_inverses(self) -> int:
        n_labels = self.likelihood.data.n_labels
        return 1 if n_labels == 2 and len(self.space.scale) == 1 else n_labels

    @property
    def _least_rows(self) -> int:
        many = isinstance(self.space.sharing, Effects) and self.likelihood.data.n_rows > MANY_ROWS
        return LEAST_OF_MANY if many else LEAST_ROWS

    @property
    def _cell_penalty(self) -> float:
        """The penalty as one on the tables: of predictors it is spread over the cells that share them.

        Of cells with class 0 at 0 it is spread over the classes: a contrast is met most cheaply by moving all of them.
        """
        sharing, n_labels = self.space.sharing, self.likelihood.data.n_labels
        if isinstance(sharing, CellPredictors):
            return self.penalty * n_labels / max(n_labels - 1, 1)
        return CELLS_OF_PREDICTOR * self.penalty if isinstance(sharing, Predictors) else self.penalty

    def _size(self, passes: float, n_inverses: int) -> int:
        """The columns of a subspace on which half of the cost is spent; more where that makes it the whole."""
        budget = passes * self.likelihood.pass_work / 2
        largest = int((MAX_ENTRIES / self._n_inverses) ** 0.5)
        affordable = max(LEAST_SIZE, int((budget / dense_work(n_inverses)) ** (1 / 3)))
        whole = int(np.count_nonzero(self.weights)) if self.space.is_scaled else len(self.weights)
        return min(largest, whole if whole <= STRETCH * affordable else affordable)

    def _build(self, p: Array, tables: Array | None, size: int, passes: float) -> Precondition:
        budget = passes * self.likelihood.pass_work / 2
        n_labels = self.likelihood.data.n_labels
        n_blocks = 1 if tables is None or n_labels == 2 else n_labels
        columns = self._subspace(size)
        grams = self._co_occurrences(columns, n_blocks, tables, budget)
        is_whole = len(columns.top) >= np.count_nonzero(self.weights)
        # without a penalty, cells whose rows leave no doubt would have next to no curvature of their own
        if tables is None or is_whole or self.penalty == 0 or isinstance(self.space.sharing, Effects):
            mass = np.multiply.outer(grams[:, 0, 0] / self.weights[0], self.weights)  # column 0 is active in every row
        else:
            mass = self._masses(tables)
        sample, space = Sample(grams, columns, mass), self.space
        if isinstance(space.sharing, Predictors | CellPredictors):
            return _of_predictors(space.sharing, scaled(sample, space.scale, self._cell_penalty, n_labels), n_labels)
        if isinstance(space.sharing, Sharing):
            return shared(sample, space.sharing.scale, space.sharing.index, space.n_parameters, self.penalty)
        if space.is_scaled:
            found = scaled(sample, space.scale, self._cell_penalty, n_labels)
            # a dense block of all cells has the penalty exactly
            lacks = self.flat is not None and self.penalty > 0 and not is_whole
            return self.flat.added(found, self.penalty, n_labels) if self.flat is not None and lacks else found
        jacobian = space.jacobian(p, columns.top)
        return curved(sample, space.curvature(p, mass), jacobian, self.penalty, n_labels)

    def _masses(self, tables: Array) -> Array:
        """The diagonal of C_y, (1 or K, n_cells), from all rows."""
        fusion, data = self.likelihood.fusion, self.likelihood.data
        sizes = [len(members) for members in fusion.members]
        return np.asarray(fusion.gather(data.reduce(_masses, sizes, fusion.expand(tables), states=fusion.codes)))

    def _subspace(self, size: int) -> Subspace:
        n_labels, space = self.likelihood.data.n_labels, self.space
        if isinstance(space.sharing, Sharing | Effects) or not space.is_scaled:
            return top_only(self.weights, size)
        curved = self.weights / n_labels * np.square(space.scale).min(axis=0) > self._cell_penalty
        return subspace(self.likelihood.families, self.weights, curved, size)

    def _co_occurrences(self, columns: Subspace, n_blocks: int, tables: Array | None, budget: float) -> Array:
        """C_y on the subspace, (1 or K, n, n), scaled up from the sampled rows."""
        fusion, data, sharing = self.likelihood.fusion, self.likelihood.data, self.space.sharing
        packing: Packing | Features
        if isinstance(sharing, Effects):
            packing = self._effect_packing(sharing, columns, n_blocks)
        else:
            packing = pack([columns.places(members) for members in fusion.members], columns.n)
        n_rows = max(self._least_rows, packing.affordable_rows(budget, n_blocks))
        # evenly spaced and not drawn: the same rows every time
        stride = max(1, data.n_rows // n_rows)
        expanded = None if tables is None else fusion.expand(tables)
        mean = data.total_weight / data.n_rows
        if isinstance(packing, Features) and data.n_rows <= ROWS_OF_EFFECTS:
            states = self._looked_up(packing, n_blocks)
            total, weight = data.reduce(_grams_of_values, expanded, mean, states=states)
        else:
            total, weight = data.reduce(_grams, packing, n_blocks, stride, expanded, mean, states=fusion.codes)
        share = 1.0 / data.n_labels if tables is None else 1.0
        return np.asarray(total * (share * data.total_weight / weight), np.float64)

    def _looked_up(self, found: Features, n_blocks: int) -> list[Any]:
        """Of every row block the codes and the effects of its rows."""
        key = (found.n, n_blocks)
        if key not in self.values:
            codes = self.likelihood.fusion.codes
            kept = self.likelihood.data.keep(_values, found, states=codes)
            self.values[key] = list(zip(codes, kept, strict=True))
        return self.values[key]

    def _effect_packing(self, effects: Effects, columns: Subspace, n_blocks: int) -> Packing | Features:
        """Of effects the size alone tells which are in the subspace: the most massive."""
        key = (columns.n, n_blocks)
        if key not in self.packings:
            n_rows = min(self._least_rows, self.likelihood.data.n_rows)
            self.packings[key] = features(effects, self.likelihood.fusion, columns.top, n_rows, n_blocks)
        return self.packings[key]


def whitening(likelihood: ConditionalLikelihood, space: Coordinates, penalty: float) -> Whitening:
    """The preconditioners of an optimization of `likelihood` in `space` under `penalty`."""
    weights = likelihood.cell_weights()
    if isinstance(space.sharing, Effects):
        weights = space.sharing.masses(weights)
    flat = None
    if space.sharing is None and space.is_scaled:
        most = int((START_PASSES * likelihood.pass_work / FLAT_WORK) ** (1 / 3))
        flat = null_space(likelihood.families, weights, space.scale, most)
    return Whitening(likelihood, space, penalty, weights, flat=flat)


def _of_predictors(predictors: Predictors | CellPredictors, precondition: Precondition, n_labels: int) -> Precondition:
    """C Q C', Q of free tables, C the map from tables to predictors; the inverse Hessian if Q is one without lambda."""

    def apply(g: Array) -> Array:
        cells = predictors.transposed(g.reshape(n_labels - 1, predictors.n_predictors))
        tables = precondition(np.concatenate([-cells.sum(axis=0, keepdims=True), cells]).ravel()).reshape(n_labels, -1)
        return predictors.parameters(tables[1:] - tables[0]).ravel()

    return apply


def _grams(
    block: RowBlock,
    packing: Packing | Features,
    n_blocks: int,
    stride: int,
    tables: Sequence[Array] | None,
    unit: float,
) -> tuple[Array, float]:
    """The block's part of the co-occurrences (blocks, n, n), and the weight of its sampled rows, in `unit`s."""
    total, weight = np.zeros((n_blocks, packing.n, packing.n)), 0.0
    sampled = np.arange(0, block.n_rows, stride)
    for start in range(0, len(sampled), ROWS):
        rows = sampled[start : start + ROWS]
        codes = [np.asarray(c[rows], np.intp) for c in block.state]
        weights = np.ones(len(rows)) if block.weights is None else block.weights[rows] / unit
        factors = weights[np.newaxis] if tables is None else _factors(codes, tables) * weights
        of_rows = packing.products if isinstance(packing, Features) else partial(co_occurrences, packing)
        total += of_rows(codes, factors)
        weight += float(weights.sum())
    return total, weight


def _masses(block: RowBlock, sizes: Sequence[int], tables: Sequence[Array]) -> list[Array]:
    """The block's part of sum_t w_t q_ty in each configuration, (1 or K, configurations) a group."""
    totals: list[Array] = [np.zeros((1, 1)) for _ in sizes]
    for rows in block.slices():
        codes = [np.asarray(c[rows], np.intp) for c in block.state]
        factors = _factors(codes, tables)
        if block.weights is not None:
            factors *= block.weights[rows]
        parts = [np.stack([np.bincount(c, q, n) for q in factors]) for c, n in zip(codes, sizes, strict=True)]
        totals = [total + part for total, part in zip(totals, parts, strict=True)]
    return totals


def _values(block: RowBlock, found: Features) -> Array:
    return found.values([np.asarray(codes, np.intp) for codes in block.state])


def _grams_of_values(block: RowBlock, tables: Sequence[Array] | None, unit: float) -> tuple[Array, float]:
    """As `_grams`, of all rows of the block and their effects (rows, n)."""
    codes, values = block.state
    weights = np.ones(block.n_rows) if block.weights is None else block.weights / unit
    factors = weights[np.newaxis] if tables is None else _factors(codes, tables) * weights
    return weighted_products(values, factors), float(weights.sum())


def _factors(codes: Sequence[Integers], tables: Sequence[Array]) -> Array:
    """q, shape (K, rows); for two classes, which have the same, (1, rows)."""
    scores = np.zeros((len(tables[0]), len(codes[0])))
    for table, code in zip(tables, codes, strict=True):
        scores += table[:, code]
    return row_factors(scores)


def row_factors(scores: Array) -> Array:
    """q of the module's formula from scores (K, rows), which are overwritten; for two classes, alike, (1, rows)."""
    # the largest exponent is then 0: nothing overflows
    scores -= np.maximum.reduce(scores, axis=0)
    p = np.exp(scores)
    p /= np.add.reduce(p, axis=0)
    if len(p) == 2:
        return 2.0 * p[:1] * p[1:]
    h = p * (1.0 - p)
    total = h.sum(axis=0) ** 2
    ratio = total / np.maximum(total - np.square(h).sum(axis=0), np.finfo(float).tiny)
    h *= np.minimum(ratio, 2.0)  # never more, but for rounding: 1 - p is 0 where p is within 1e-16 of 1
    return h
