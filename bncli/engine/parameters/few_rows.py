"""Effects of few rows as one matrix: what a fit needs of the rows are two products of arrays, whatever the tables.

With Z the cells of the rows as indicators and W = T p, the scores of the rows are S = p M', M = Z T (N, E). A pass by
look-ups costs some twenty calls of numpy, of few rows more than all that they do; here it is

    CLL(S),    dCLL / dp = R M,    R[y, t] = w_t (1[y_t = y] - P(y | x_t))

Where there are more effects than rows, the optimum under a penalty on |p|^2 lies in the span of the rows of M: of two
points with the same scores the one in the span is the shorter. So the search is in that span. With the pivoted Cholesky
factor of the rows' scalar products, M M' = L L' (N, r), L_1 its r pivotal rows and M_1 theirs,

    p = q L_1^-1 M_1,    S = q L',    |p| = |q|

an orthonormal basis of the span: the penalty keeps its form, and the parameters of a class are as many as rows, r <= N.

Preconditioners are those of `bncli.engine.parameters.preconditioner`, of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.kernels.passes import class_major, residuals
from bncli.engine.kernels.preconditioning import Precondition, Sample, dense_work, scaled
from bncli.engine.model import Tables
from bncli.engine.parameters.effect_coding import Effects
from bncli.engine.parameters.flops import Costs
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.parameters.optimization import ParameterSpace, Product
from bncli.engine.parameters.preconditioner import (
    LEAST_SIZE,
    MAX_ENTRIES,
    START_PASSES,
    STRETCH,
    row_factors,
    top_only,
    weighted_products,
)

MOST_ROWS = 1_000
"""Rows that are few."""
MOST_NUMBERS = 1 << 18
"""Of the matrix: about a second-level cache, from which a product takes less than the look-ups that it replaces."""
MOST_WORK = 1 << 30
"""Multiplications for the rows' scalar products."""
MOST_CELLS = 1 << 22
"""Of Z, and numbers of M."""
RANK = 1e-10
"""Rows that differ from the span of others by no more than such a share of the longest, squared, are in it."""
CALL, EXPONENTIAL, PRODUCT = 5e4, 12.0, 0.6
"""Nanoseconds, roughly, of an evaluation: in any case, for each score, and for each number of the matrix and class."""


@dataclass(frozen=True)
class _Span:
    """The span of the rows of M: `pivots` (r,) of the rows, and L_1 (r, r)."""

    pivots: Index
    factor: Array


@dataclass(frozen=True)
class FewRows:
    """A space of optimization: the effects of `whole`, or where `span` is not None what of them the rows tell.

    matrix (N, r) is M or L: the scores of a class are its product with the parameters of that class.
    """

    whole: ParameterSpace
    matrix: Array
    span: _Span | None = None

    can_separate = True
    costs: Costs | None = None

    @property
    def likelihood(self) -> _Scores:
        return _Scores(self.whole.likelihood)

    @property
    def coordinates(self) -> FewRows:
        return self

    @property
    def n_labels(self) -> int:
        return self.whole.likelihood.data.n_labels

    @property
    def n_parameters(self) -> int:
        return int(self.n_labels * self.matrix.shape[1])

    @property
    def generative(self) -> Array:
        """Parameters of 0: what the effects of `whole` take for it, too."""
        return np.zeros(self.n_parameters)

    def tables(self, p: Array) -> Array:
        """Return scores of the rows, their differences from the first class, (K - 1, N).

        What takes the place of tables.
        """
        of_classes = p.reshape(self.n_labels, -1)
        return np.asarray((of_classes[1:] - of_classes[0]) @ self.matrix.T)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        """dCLL/dp (P,) from the residuals (K - 1, N)."""
        out = np.empty((self.n_labels, self.matrix.shape[1]))
        np.matmul(d_tables, self.matrix, out=out[1:])
        np.negative(np.add.reduce(out[1:], axis=0), out=out[0])
        return out.ravel()

    @cached_property
    def masses(self) -> Array:
        """Weighted sums over the rows of the squares of `matrix`, (r,)."""
        weights = self.whole.likelihood.data.weights
        squares = np.square(self.matrix)
        return np.asarray(squares.sum(axis=0) if weights is None else weights @ squares)

    def curvature(self, penalty: float) -> _Curvature:
        return _Curvature(self, penalty)

    def effects(self, p: Array) -> Array:
        """Return the parameters of `whole`, flat."""
        if self.span is None:
            return p
        likelihood = self.whole.likelihood
        shares = np.zeros((self.n_labels, likelihood.data.n_rows))
        of_pivots = solve_triangular(self.span.factor, p.reshape(self.n_labels, -1).T, lower=True, trans=1)
        shares[:, self.span.pivots] = of_pivots.T
        return self.whole.coordinates.pull_back(p, likelihood.sums(shares))

    def cells(self, p: Array) -> Array:
        return self.whole.cells(self.effects(p))

    def on(self, data: Dataset) -> ConditionalLikelihood:
        return self.whole.on(data)


@dataclass(frozen=True)
class _Scores:
    """The log-likelihood as a function of what the rows score."""

    of: ConditionalLikelihood

    @property
    def data(self) -> Dataset:
        return self.of.data

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        scores = class_major(cells.T)
        cll = residuals(scores, self.data.labels, self.data.weights)
        return cll, scores[1:]

    def tables(self, cells: Array) -> Tables:
        return self.of.tables(cells)


@dataclass(frozen=True)
class _Curvature:
    """The Hessian and its preconditioners under a penalty."""

    of: FewRows
    penalty: float

    def start(self, p: Array) -> Precondition:
        return self._build(np.full((1, self._n_rows), 1.0 / self.of.n_labels), START_PASSES)

    def refresh(self, p: Array, passes: float) -> Precondition:
        return self._build(row_factors(class_major(self.of.tables(p).T)), passes)

    def hessian(self, p: Array) -> Product:
        """H v = lambda v + sum over rows of w (P v - P sum_y P_y v_y) z, P at p."""
        of, weights = self.of, self.of.likelihood.data.weights
        probabilities = class_major(of.tables(p).T)
        probabilities -= np.maximum.reduce(probabilities, axis=0)
        np.exp(probabilities, out=probabilities)
        probabilities /= np.add.reduce(probabilities, axis=0)

        def product(v: Array) -> Array:
            moved = probabilities * class_major(of.tables(v).T)
            moved -= probabilities * np.add.reduce(moved, axis=0)
            if weights is not None:
                moved *= weights
            return self.penalty * v + of.pull_back(v, moved[1:])

        return product

    @property
    def _n_rows(self) -> int:
        return len(self.of.matrix)

    def _build(self, factors: Array, passes: float) -> Precondition:
        """From q (1 or K, N)."""
        of, weights = self.of, self.of.likelihood.data.weights
        if weights is not None:
            factors = factors * weights
        columns = top_only(of.masses, self._size(len(factors), passes))
        grams = weighted_products(of.matrix[:, columns.top], factors)
        # the share of all weight that is in doubt, the same for every parameter
        mass = np.multiply.outer(np.add.reduce(factors, axis=1) / of.likelihood.data.total_weight, of.masses)
        return scaled(Sample(grams, columns, mass), np.ones((1, mass.shape[1])), self.penalty, of.n_labels)

    def _size(self, n_inverses: int, passes: float) -> int:
        """Of the dense block, which may cost half of so many evaluations, but has LEAST_SIZE columns in any case."""
        n_rows, whole = self.of.matrix.shape
        work = CALL + n_rows * (self.of.n_labels - 1) * (EXPONENTIAL + PRODUCT * whole)
        affordable = max(LEAST_SIZE, int((passes * work / 2 / dense_work(n_inverses)) ** (1 / 3)))
        largest = int((MAX_ENTRIES / self.of.n_labels) ** 0.5)
        return min(largest, whole if whole <= STRETCH * affordable else affordable)


def few_rows(space: ParameterSpace) -> FewRows | None:
    """Return the same space, of effects on few rows; None where rows are not few, or directions are to be kept."""
    effects, likelihood = space.coordinates.sharing, space.likelihood
    if not isinstance(effects, Effects) or space.monotone is not None:
        return None
    if not _are_few(likelihood, effects.n_effects):
        return None
    # Z (N, n_cells).
    out = np.zeros((likelihood.data.n_rows, likelihood.n_cells))
    fusion = likelihood.fusion
    of_blocks = likelihood.data.map(_codes, states=fusion.codes)
    for members, of_group in zip(fusion.members, zip(*of_blocks, strict=True), strict=True):
        np.put_along_axis(out, members[np.concatenate(of_group)], 1.0, axis=1)
    matrix = effects.sums(out)
    return _in_span(space, matrix @ matrix.T) if effects.n_effects > len(matrix) else FewRows(space, matrix)


def _are_few(likelihood: ConditionalLikelihood, n_effects: int) -> bool:
    n, k = likelihood.data.n_rows, likelihood.data.n_labels
    if not (0 < n <= MOST_ROWS and k > 1) or n * min(n, n_effects) > MOST_NUMBERS:
        return False
    work = n * n * n_effects if n_effects > n else 0
    return n * max(n_effects, likelihood.n_cells) <= MOST_CELLS and work <= MOST_WORK


def _codes(block: RowBlock) -> list[Integers]:
    return list(block.state)


def _in_span(space: ParameterSpace, products: Array) -> FewRows:
    """From M M'."""
    factor, order, rank, _ = lapack.dpstrf(products, lower=1, tol=RANK * products.diagonal().max())
    matrix = np.empty((len(order), rank))
    matrix[order - 1] = np.tril(factor)[:, :rank]
    pivots = order[:rank].astype(np.intp) - 1
    return FewRows(space, matrix, _Span(pivots, matrix[pivots]))


def span_is_searched(likelihood: ConditionalLikelihood, n_effects: int) -> bool:
    """Whether `few_rows` knows of so many effects no more than the span of the rows, which no turn of them changes."""
    data = likelihood.data
    return n_effects > data.n_rows and not data.schema.directed and _are_few(likelihood, n_effects)
