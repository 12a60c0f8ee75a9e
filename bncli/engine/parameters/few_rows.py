"""Effects of few rows as one matrix, so that a pass over the rows is two matrix products.

With Z the indicators of the rows' cells and W = T p, the scores of the rows are S = p M', M = Z T (N, E), where p has
one row of E effects per class. A pass by look-ups takes some twenty calls of numpy, which for few rows cost more than
the arithmetic. Here a pass is

    CLL(S),    dCLL / dp = R M,    R[y, t] = w_t (1[y_t = y] - P(y | x_t))

If there are more effects than rows, the optimum with a penalty on |p|^2 lies in the span of the rows of M: among all
points with the same scores, the one in the span is shortest. So only that span is searched. Let M M' = L L', with the
pivoted Cholesky factor L (N, r), L_1 its r pivot rows, and M_1 the same rows of M. Then

    p = q L_1^-1 M_1,    S = q L',    |p| = |q|

so that q are coordinates in an orthonormal basis of the span. The penalty keeps its form, and each class has
r <= N parameters, where r is the dimension of the span.

The preconditioners are built as in `bncli.engine.parameters.preconditioner`, but from all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.kernels.passes import class_major, residuals
from bncli.engine.kernels.preconditioning import Precondition, SampledCurvature, dense_work, scaled_preconditioner
from bncli.engine.parameters.effect_coding import EffectCoordinates
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.parameters.optimization import ParameterSpace, Space
from bncli.engine.parameters.preconditioner import (
    LEAST_SIZE,
    MAX_ENTRIES,
    START_PASSES,
    STRETCH,
    row_factors,
    top_only,
    weighted_products,
)
from bncli.engine.structures.structure import Family

MOST_ROWS = 1_000
"""The maximum number of rows that count as few."""
MOST_NUMBERS = 1 << 18
"""The maximum number of matrix elements: if they fit in a second-level cache, a product is faster than look-ups."""
MOST_WORK = 1 << 30
"""The maximum number of multiplications for the scalar products of the rows."""
MOST_CELLS = 1 << 22
"""The maximum number of elements of Z, and of M."""
RANK = 1e-10
"""A row counts as lying in the span of other rows if its squared distance from that span is at most this fraction of
the largest squared norm of a row."""
CALL, EXPONENTIAL, PRODUCT = 5e4, 12.0, 0.6
"""The approximate time of an evaluation in nanoseconds: per call, per score, and per matrix element and class."""


def few_rows(space: ParameterSpace) -> FewRows | None:
    """Return `space` in the form for few rows, or None if it is not a small, unconstrained space of effects."""
    coordinates, likelihood = space.coordinates, space.likelihood
    if not isinstance(coordinates, EffectCoordinates) or space.monotone is not None:
        return None
    effects, data = coordinates.effects, likelihood.data
    if not _are_few(likelihood, effects.n_effects):
        return None
    z = np.zeros((data.n_rows, likelihood.n_cells))
    codes = data.map(_codes, states=likelihood.fusion.codes)
    for members, group_codes in zip(likelihood.fusion.members, zip(*codes, strict=True), strict=True):
        # of each row, the configuration of the group, and the cells that it activates
        np.put_along_axis(z, members[np.concatenate(group_codes)], 1.0, axis=1)
    matrix, span = effects.sums(z), None
    if effects.n_effects > len(matrix):
        # P'(M M')P = L L' with pivoting; LAPACK numbers the pivots from 1
        products = matrix @ matrix.T
        factor, order, rank, _ = lapack.dpstrf(products, lower=1, tol=RANK * products.diagonal().max())
        # rows back in their own order: M M' = L L' without the permutation
        matrix = np.empty((len(order), rank))
        matrix[order - 1] = np.tril(factor)[:, :rank]
        pivots = order[:rank].astype(np.intp) - 1
        span = _Span(pivots, matrix[pivots])
    scores = _RowScores(data, likelihood.families)
    return FewRows(scores, _MatrixCoordinates(data.n_labels, matrix), original=space, span=span)


def span_is_searched(likelihood: ConditionalLikelihood, n_effects: int) -> bool:
    """Return whether `few_rows` would search only the span of the rows, so that rotating effects has no influence.

    This is never the case if the schema has monotonicity constraints.
    """
    data = likelihood.data
    return n_effects > data.n_rows and not data.schema.directed and _are_few(likelihood, n_effects)


def _are_few(likelihood: ConditionalLikelihood, n_effects: int) -> bool:
    n, k = likelihood.data.n_rows, likelihood.data.n_labels
    if not (0 < n <= MOST_ROWS and k > 1) or n * min(n, n_effects) > MOST_NUMBERS:
        return False
    # only the span needs the scalar products of the rows
    work = n * n * n_effects if n_effects > n else 0
    return n * max(n_effects, likelihood.n_cells) <= MOST_CELLS and work <= MOST_WORK


def _codes(block: RowBlock) -> list[Integers]:
    return list(block.state)


class _Span(NamedTuple):
    """The span of the rows of M: the `pivots` (r,), which are row numbers, and L_1 (r, r)."""

    pivots: Index
    factor: Array


@dataclass(frozen=True)
class _RowScores:
    """The log-likelihood as a function of the rows' score differences from the first class, (K - 1, N)."""

    data: Dataset
    families: tuple[Family, ...]

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        of_classes = class_major(scores.T)
        cll = residuals(of_classes, self.data.labels, self.data.weights)
        return cll, of_classes[1:]


@dataclass(frozen=True)
class _MatrixCoordinates:
    """The map from parameters to the scores of the rows, which are used instead of tables; matrix (N, r) is M or L."""

    n_labels: int
    matrix: Array

    @property
    def n_parameters(self) -> int:
        return int(self.n_labels * self.matrix.shape[1])

    @property
    def generative(self) -> Array:
        """Zeros, because the effects also start from 0."""
        return np.zeros(self.n_parameters)

    def tables(self, p: Array) -> Array:
        """Return the rows' score differences from the first class, (K - 1, N)."""
        of_classes = p.reshape(self.n_labels, -1)
        return np.asarray((of_classes[1:] - of_classes[0]) @ self.matrix.T)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        """Return dCLL/dp (P,) from the residuals (K - 1, N)."""
        out = np.empty((self.n_labels, self.matrix.shape[1]))
        np.matmul(d_tables, self.matrix, out=out[1:])
        # residuals sum to 0 over the classes
        np.negative(np.add.reduce(out[1:], axis=0), out=out[0])
        return out.ravel()


@dataclass(frozen=True)
class FewRows(Space):
    """A space for few rows: the effects of `original`, or with `span` their coordinates in the span of the rows."""

    likelihood: _RowScores
    coordinates: _MatrixCoordinates
    original: ParameterSpace = field(kw_only=True)
    span: _Span | None = field(kw_only=True, default=None)

    def effects(self, p: Array) -> Array:
        """Return the parameters of `original`, flattened, at the point p of this space."""
        if self.span is None:
            return p
        likelihood, n_labels = self.original.likelihood, self.coordinates.n_labels
        shares = np.zeros((n_labels, likelihood.data.n_rows))
        # q L_1^-1, as the solution of L_1' x = q'
        of_pivots = solve_triangular(self.span.factor, p.reshape(n_labels, -1).T, lower=True, trans=1)
        shares[:, self.span.pivots] = of_pivots.T
        # shares M_1 = (shares Z) T: sums of the shares over the cells, then the transpose of the map from effects
        return self.original.coordinates.pull_back(p, likelihood.sums(shares))

    def cells(self, p: Array) -> Array:
        return self.original.cells(self.effects(p))

    def on(self, data: Dataset) -> ConditionalLikelihood:
        return self.original.on(data)

    def first_preconditioner(self, p: Array, penalty: float) -> Precondition:
        n_labels, n_rows = self.coordinates.n_labels, len(self.coordinates.matrix)
        return self._precondition(np.full((1, n_rows), 1.0 / n_labels), START_PASSES, penalty)

    def preconditioner(self, p: Array, cost: float, penalty: float) -> Precondition:
        return self._precondition(row_factors(class_major(self.coordinates.tables(p).T)), cost, penalty)

    def hessian(self, p: Array, penalty: float) -> Callable[[Array], Array]:
        """Return a function that multiplies by the Hessian at p.

        With P the class probabilities of a row at p and d its scores at v, the product is
        lambda v + sum over rows of w (P d - P sum_y P_y d_y) z', where z is the row of the matrix.
        """
        coordinates, weights = self.coordinates, self.likelihood.data.weights
        probabilities = class_major(coordinates.tables(p).T)
        probabilities -= np.maximum.reduce(probabilities, axis=0)
        np.exp(probabilities, out=probabilities)
        probabilities /= np.add.reduce(probabilities, axis=0)

        def product(v: Array) -> Array:
            # P v, then minus P times its sum over the classes
            moved = probabilities * class_major(coordinates.tables(v).T)
            moved -= probabilities * np.add.reduce(moved, axis=0)
            if weights is not None:
                moved *= weights
            return penalty * v + coordinates.pull_back(p, moved[1:])

        return product

    @cached_property
    def _masses(self) -> Array:
        """The weighted sum over the rows of the squares of each column of the matrix, (r,)."""
        weights, squares = self.likelihood.data.weights, np.square(self.coordinates.matrix)
        return np.asarray(squares.sum(axis=0) if weights is None else weights @ squares)

    def _precondition(self, factors: Array, passes: float, penalty: float) -> Precondition:
        """Return the preconditioner for factors q (1 or K, N), at the cost of about `passes` evaluations."""
        data, matrix, n_labels = self.likelihood.data, self.coordinates.matrix, self.coordinates.n_labels
        if data.weights is not None:
            factors = factors * data.weights
        # the dense block may take half of the cost, but has at least LEAST_SIZE columns
        n_rows, n_effects = matrix.shape
        work = CALL + n_rows * (n_labels - 1) * (EXPONENTIAL + PRODUCT * n_effects)
        affordable = max(LEAST_SIZE, int((passes * work / 2 / dense_work(len(factors))) ** (1 / 3)))
        largest = int((MAX_ENTRIES / n_labels) ** 0.5)
        columns = top_only(self._masses, min(largest, n_effects if n_effects <= STRETCH * affordable else affordable))
        grams = weighted_products(matrix[:, columns.top], factors)
        # the uncertain share of all weight, taken to be the same for every parameter
        mass = np.multiply.outer(np.add.reduce(factors, axis=1) / data.total_weight, self._masses)
        return scaled_preconditioner(
            SampledCurvature(grams, columns, mass), np.ones((1, mass.shape[1])), penalty, n_labels
        )
