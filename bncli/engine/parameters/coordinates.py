"""Coordinates: maps from free parameters to the tables of a classifier, for discriminative learning.

Coordinates map a parameter vector p (P,) to the tables W (K, n_cells). Cell 0 is the bias; the cells of each family
follow in turn. Coordinates also apply the transpose of the map's derivative:

    dCLL / dp_q = sum over y, c of dW[y, c] / dp_q  dCLL / dW[y, c]

`EntryCoordinates`    one parameter per table entry, up to a fixed factor
`SharedWeights`       entries that share parameters
`Contrasts`           log-odds against class 0 as sums of predictors
`Softmax`             log probabilities of a network
`EffectCoordinates`   tables that are sums of effects (`bncli.engine.parameters.effect_coding`)

All but `Softmax` are linear, so that `tables(v)` is also the derivative of the tables along v.

**Contrasts.** With class 0 fixed at 0,

    ln P(y | x) / P(0 | x) = sum over the predictors active in x of p[y, predictor],    y = 1, ..., K - 1

The predictors of a logistic regression with the fewest parameters (Feelders & Ivanovs 2006) are indicators of complete
sets. Every attribute has a reference value. There is one predictor for every non-empty subset S of a family's
attributes and every combination x_S of values without a reference: the indicator of x_S. With the intercept,

    S[t, y] = p[y, intercept] + sum over S of p[y, x_S(t)],    without the terms with a reference value in x_S(t)

The predictors are linearly independent, so no other parameterisation of the same tables has fewer parameters. A set
that lies in several families belongs to the first of them:

    W_f[c, y] = sum over subsets S of f's attributes that are in no earlier family of p[y, c_S]

Each predictor has one *holder*: the cell of that family with the values x_S, and references elsewhere. Tables are
computed from the holders one attribute at a time: each cell receives the entry of the cell in which that attribute is
*lowered* to its reference. The cost is the number of cells times the number of attributes of a family; no matrix of
predictors by cells is formed.

**Softmax.** Every distribution of the network is the softmax of its own parameters:

    ln theta_kj = beta_kj - ln sum over k' of exp(beta_k'j)

for child value k and parent configuration j, which includes the class if it is a parent; likewise for the distribution
of the class. For any function f of the tables W = ln theta,

    df/dbeta_kj = df/dW_kj - theta_kj sum over k' of df/dW_k'j

If f is the log-likelihood, df/dW are expected counts. If f is the conditional log-likelihood, they are differences of
expected counts, and this is the gradient of Greiner, Su, Shen & Zhou 2005 (Machine Learning 59, proposition 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask, log_sum
from bncli.engine.parameters.effect_coding import EffectCoordinates
from bncli.engine.structures.structure import Family


class Coordinates(Protocol):
    """The map from parameters to tables that every optimization needs."""

    @property
    def n_parameters(self) -> int: ...

    @property
    def generative(self) -> Array:
        """The parameters (P,) whose tables give every row the same probabilities as the generative model."""
        ...

    def tables(self, p: Array) -> Array:
        """Return W (K, n_cells) at p (P,)."""
        ...

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        """Return dCLL/dp (P,) at p, given dCLL/dW (K, n_cells)."""
        ...


@dataclass(frozen=True)
class EntryCoordinates:
    """One parameter per table entry, up to a factor: W[y, c] = scale[y, c] p[y, c], with p (K, n_cells) flat.

    start (K, n_cells) holds the parameters of the generative model. scale (1 or K, n_cells) has one row if it is the
    same for all classes; None means 1.
    """

    start: Array
    scale: Array | None = None

    @property
    def n_parameters(self) -> int:
        return self.start.size

    def of_cells(self, cells: Index) -> EntryCoordinates:
        """Return the coordinates restricted to these cells."""
        return EntryCoordinates(self.start[:, cells], None if self.scale is None else self.scale[:, cells])

    @property
    def generative(self) -> Array:
        return self.start.ravel()

    def tables(self, p: Array) -> Array:
        entries = p.reshape(self.start.shape)
        return entries if self.scale is None else self.scale * entries

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return (d_tables if self.scale is None else self.scale * d_tables).ravel()

    @property
    def matrices(self) -> list[Any]:
        """The map as one sparse matrix (K n_cells, P), in a list."""
        from scipy.sparse import csr_array, diags_array

        return [
            csr_array(diags_array(np.broadcast_to(1.0 if self.scale is None else self.scale, self.start.shape).ravel()))
        ]


@dataclass(frozen=True)
class SharedWeights:
    """Entries that share P parameters: W[y, c] = scale[y, c] p[index[y, c]], with `scale` and `index` (K, n_cells).

    The generative model has p = 1.
    """

    scale: Array
    index: Index
    n_parameters: int

    @property
    def generative(self) -> Array:
        return np.ones(self.n_parameters)

    def tables(self, p: Array) -> Array:
        return self.scale * p[self.index]

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        sums = np.bincount(self.index.ravel(), (self.scale * d_tables).ravel(), self.n_parameters)
        return sums.astype(np.float64)

    @property
    def matrices(self) -> list[Any]:
        """The map as one sparse matrix (K n_cells, P), in a list."""
        from scipy.sparse import csr_array

        entries = (self.scale.ravel(), (np.arange(self.index.size), self.index.ravel()))
        return [csr_array(entries, shape=(self.index.size, self.n_parameters))]


@dataclass(frozen=True)
class Contrasts:
    """Log-odds against class 0 as sums of predictors: p is (K - 1, M), flattened, for the classes 1, 2, ...

    log_theta (K, n_cells) are the generative tables.
    """

    log_theta: Array
    predictors: Predictors | CellPredictors

    @property
    def n_parameters(self) -> int:
        return (len(self.log_theta) - 1) * self.predictors.n_predictors

    @property
    def generative(self) -> Array:
        return self.predictors.parameters(self.log_theta[1:] - self.log_theta[0]).ravel()

    def tables(self, p: Array) -> Array:
        tables = self.predictors.tables(p.reshape(-1, self.predictors.n_predictors))
        return np.concatenate([np.zeros((1, tables.shape[1])), tables])

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.predictors.sums(d_tables[1:]).ravel()

    @property
    def matrices(self) -> list[Any]:
        """The sparse matrices whose product, (K n_cells, P), is the map; the last one is applied first."""
        from scipy.sparse import csr_array, eye_array, kron

        # applied last, and listed first: puts the zeros of class 0 above the other classes
        n, matrices = len(self.log_theta), self.predictors.matrices
        of_class = [eye_array(n, n - 1, k=-1), *(eye_array(n - 1) for _ in matrices[1:])]
        return [csr_array(kron(y, matrix)) for y, matrix in zip(of_class, matrices, strict=True)]


@dataclass(frozen=True)
class Predictors:
    """The indicators of complete sets; made by `predictors_of`.

    holders (M,): the cell that holds each predictor; predictor 0 is the intercept, held by the bias. lowered[j]
    (n_cells,): for each cell, the cell in which the j-th attribute of the family has its reference instead. own
    (n_cells,): for each cell, the predictor of its values that are not references; another family may hold it.
    """

    holders: Index
    lowered: Index
    own: Index

    @property
    def n_predictors(self) -> int:
        return len(self.holders)

    def tables(self, parameters: Array) -> Array:
        """Return the tables (k, n_cells) for parameters (k, M), with one row per class, for example."""
        cells = np.zeros((len(parameters), len(self.own)))
        cells[:, self.holders] = parameters
        # after the step of an attribute, a cell also has what its lowered cell has: sums over subsets, as in a zeta
        # transform; in place, since a lowered cell is never raised in the same step
        for raised, low in self._steps:
            cells[:, raised] += cells[:, low]
        return cells

    def sums(self, cells: Array) -> Array:
        """Return the sums of `cells` (k, n_cells) over the cells in which each predictor is active, (k, M).

        This map is the transpose of `tables`.
        """
        totals = cells.copy()
        # the transposed steps in reverse; several raised cells add to one lowered cell
        for raised, low in reversed(self._steps):
            for row in totals:
                row += np.bincount(low, row[raised], len(row))
        return totals[:, self.holders]

    def parameters(self, tables: Array) -> Array:
        """Return the parameters (k, M) whose tables give every row the same sums as `tables` (k, n_cells)."""
        contrasts = tables.copy()
        # inverse of the steps of `tables` (Möbius inversion)
        for raised, low in self._steps:
            contrasts[:, raised] -= contrasts[:, low]
        # families that share a set of attributes add up in its predictor
        sums = [np.bincount(self.own, row, self.n_predictors) for row in contrasts]
        return np.array(sums, np.float64).reshape(len(tables), self.n_predictors)

    def transposed(self, parameters: Array) -> Array:
        """Apply the transpose of the map `parameters` to sums (k, M); the result is (k, n_cells)."""
        cells = np.take(parameters, self.own, axis=1)
        for raised, low in reversed(self._steps):
            for row in cells:
                row -= np.bincount(low, row[raised], len(row))
        return cells

    @property
    def matrices(self) -> list[Any]:
        """Sparse matrices whose product is the map of `tables`; the last one is applied first."""
        from scipy.sparse import csr_array, eye_array

        n, m = len(self.own), self.n_predictors
        steps = [csr_array((np.ones(len(low)), (raised, low)), shape=(n, n)) for raised, low in reversed(self._steps)]
        held = csr_array((np.ones(m), (self.holders, np.arange(m))), shape=(n, m))
        return [*(csr_array(eye_array(n) + step) for step in steps), held]

    @cached_property
    def _steps(self) -> list[tuple[Index, Index]]:
        """For each position in a family, the cells without the reference there, and the cells with it there instead."""
        cells = np.arange(len(self.own))
        raised = [np.flatnonzero(low != cells) for low in self.lowered]
        return [(r, low[r]) for r, low in zip(raised, self.lowered, strict=True)]


@dataclass(frozen=True)
class CellPredictors:
    """One predictor per cell; the predictors are linearly dependent.

    If the class has parents, `of_class` is the half-open range of cells of the table over them. Then the bias, cell 0,
    has no predictor: the intercept is part of each cell of that table.
    """

    n_cells: int
    of_class: tuple[int, int] | None = None

    @property
    def n_predictors(self) -> int:
        return self.n_cells - (self.of_class is not None)

    def tables(self, parameters: Array) -> Array:
        """Return the tables (k, n_cells) for parameters (k, M)."""
        cells = np.zeros((len(parameters), self.n_cells))
        cells[:, self.n_cells - self.n_predictors :] = parameters
        return cells

    def sums(self, cells: Array) -> Array:
        """Apply the transpose of `tables` to cells (k, n_cells); the result is (k, M)."""
        return cells[:, self.n_cells - self.n_predictors :]

    def parameters(self, tables: Array) -> Array:
        """Return the parameters (k, M) whose tables give every row the same sums as `tables` (k, n_cells)."""
        parameters = self.sums(tables).copy()
        if self.of_class is not None:
            start, end = self.of_class
            parameters[:, start - 1 : end - 1] += tables[:, :1]
        return parameters

    def transposed(self, parameters: Array) -> Array:
        """Apply the transpose of the map `parameters` to sums (k, M); the result is (k, n_cells)."""
        cells = self.tables(parameters)
        if self.of_class is not None:
            cells[:, 0] = cells[:, slice(*self.of_class)].sum(axis=1)
        return cells

    @property
    def matrices(self) -> list[Any]:
        """The map `tables` as one sparse matrix, in a list."""
        from scipy.sparse import csr_array, eye_array

        return [csr_array(eye_array(self.n_cells, self.n_predictors, k=self.n_predictors - self.n_cells))]


def predictors_of(families: Sequence[Family], references: Sequence[int]) -> Predictors:
    """Return the predictors of tables over `families`; references[i] is the reference value of attribute i."""
    first: dict[tuple[int, ...], int] = {(): 0}  # the first predictor of each set; the empty set has the intercept
    holders, own = [np.zeros(1, np.intp)], [np.zeros(1, np.intp)]
    n_places = max((len(family.attributes) for family in families), default=1)
    lowered = [np.zeros((n_places, 1), np.intp)]
    used = offset = 1
    for family in families:
        # (attributes, cells): the value of each attribute in each cell
        digits = np.array(np.unravel_index(np.arange(family.n_cells), family.shape))
        own_references = np.array([references[i] for i in family.attributes])[:, np.newaxis]
        # cells that differ from the references at the same positions have predictors of the same set
        away = digits != own_references
        # one bit per attribute
        patterns = (away * (1 << np.arange(len(away)))[:, np.newaxis]).sum(axis=0)
        order = np.argsort(patterns, kind="stable")
        of_family = np.zeros(family.n_cells, np.intp)
        for cells in np.split(order, np.flatnonzero(np.diff(patterns[order])) + 1):
            # in schema order, so that a set has the same ranks in every family
            places = sorted(np.flatnonzero(away[:, cells[0]]), key=family.attributes.__getitem__)
            # the rank of each cell's values among all joint values of the set without references
            ranks = np.zeros(len(cells), np.intp)
            for j in places:
                values = digits[j, cells]
                ranks = ranks * (family.shape[j] - 1) + values - (values > references[family.attributes[j]])
            subset = tuple(family.attributes[j] for j in places)
            if subset not in first:
                first[subset], used = used, used + len(cells)
                holders.append(offset + cells[np.argsort(ranks)])
            of_family[cells] = first[subset] + ranks
        own.append(of_family)
        # lowering attribute j moves a cell by (reference - value) times its stride; families of fewer attributes than
        # n_places have rows that lower nothing
        strides = np.array([math.prod(family.shape[j + 1 :]) for j in range(len(family.shape))])[:, np.newaxis]
        block = np.tile(offset + np.arange(family.n_cells), (n_places, 1))
        block[: len(strides)] += (own_references - digits) * strides
        lowered.append(block)
        offset += family.n_cells
    return Predictors(np.concatenate(holders), np.concatenate(lowered, axis=1), np.concatenate(own))


@dataclass(frozen=True)
class Softmax:
    """Log probabilities of a network; log_theta (K, n_cells) are the generative tables.

    The bias, and families whose table depends on the class, have one parameter beta per class and cell; other families
    have one per cell. p has the parameters of the former, (K, cells) flattened, then the parameters of the latter.
    """

    log_theta: Array
    families: tuple[Family, ...]

    @property
    def n_parameters(self) -> int:
        n_by_class = int(np.count_nonzero(self.by_class))
        return len(self.log_theta) * n_by_class + len(self.by_class) - n_by_class

    @property
    def generative(self) -> Array:
        return np.concatenate([self.log_theta[:, self.by_class].ravel(), self.log_theta[0, ~self.by_class]])

    @cached_property
    def by_class(self) -> Mask:
        """Whether every class has its own beta, for each cell, (n_cells,)."""
        families = self.families
        return np.repeat([True, *(f.by_class for f in families)], [1, *(f.n_cells for f in families)])

    def tables(self, p: Array) -> Array:
        beta = self._spread(p)
        out = np.zeros(beta.shape)
        for columns, shape, axis in self._blocks():
            block = beta[:, columns].reshape(shape)
            out[:, columns] = (block - log_sum(block, axis)).reshape(len(out), -1)
        return out

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        log_theta = self.tables(p)
        out = np.zeros(log_theta.shape)
        for columns, shape, axis in self._blocks():
            # the transposed derivative of the log-softmax: d - theta * sum of d
            d, theta = d_tables[:, columns].reshape(shape), np.exp(log_theta[:, columns].reshape(shape))
            out[:, columns] = (d - theta * d.sum(axis=axis, keepdims=True)).reshape(len(out), -1)
        return self.gather(out)

    def push(self, p: Array, v: Array) -> Array:
        """Return the derivative of the tables (K, n_cells) at p along v (P,)."""
        log_theta, beta = self.tables(p), self._spread(v)
        out = np.zeros(log_theta.shape)
        for columns, shape, axis in self._blocks():
            # the derivative of the log-softmax: b - mean of b under theta
            b, theta = beta[:, columns].reshape(shape), np.exp(log_theta[:, columns].reshape(shape))
            out[:, columns] = (b - (theta * b).sum(axis=axis, keepdims=True)).reshape(len(out), -1)
        return out

    def curvature(self, p: Array, mass: Array) -> Array:
        """Return sum over c' of mass[y, c'] (dW[y, c']/dbeta[y, c])^2, shape (K, n_cells); mass (1 or K, n_cells).

        For entries normalised over the classes, return the mass itself.
        """
        log_theta, masses = self.tables(p), np.broadcast_to(mass, self.log_theta.shape)
        out = np.zeros(log_theta.shape)
        for columns, shape, axis in self._blocks():
            m = masses[:, columns].reshape(shape)
            if axis:
                # dW[c'] / dbeta[c] = 1[c = c'] - theta[c]
                theta = np.exp(log_theta[:, columns].reshape(shape))
                m = m * (1 - theta) ** 2 + (m.sum(axis=axis, keepdims=True) - m) * theta**2
            out[:, columns] = m.reshape(len(out), -1)
        return out

    def squared_derivatives(self, p: Array) -> Array:
        """Return sum over c' of (dW[y, c]/dbeta[y, c'])^2 for every entry, (K, n_cells).

        For entries normalised over the classes, return 1: a common shift of the classes changes no prediction.
        """
        log_theta = self.tables(p)
        out = np.ones(log_theta.shape)
        for columns, shape, axis in self._blocks():
            if axis:
                # (1 - theta[c])^2 + sum over c' != c of theta[c']^2
                theta = np.exp(log_theta[:, columns].reshape(shape))
                squares = 1 - 2 * theta + np.square(theta).sum(axis=axis, keepdims=True)
                out[:, columns] = squares.reshape(len(out), -1)
        return out

    def jacobian(self, p: Array, cells: Index) -> Array:
        """Return dW[c]/dbeta[c'] for c, c' in `cells` and each class, (1 or K, cells, cells).

        It is 1[c = c'] - theta[c'] for cells with the same normaliser. A normaliser over the classes is left out,
        because adding the same to all classes changes no probability.
        """
        # The number of each cell's normaliser, -1 for entries normalised over the classes. If a table over the class's
        # parents replaces the bias, the bias is always 0, as if it were normalised by itself.
        replaced = any(family.child is None for family in self.families)
        numbers = [np.array([0 if replaced else -1])]
        used = 1
        for family in self.families:
            n_columns = family.n_cells // family.shape[0] if family.child is not None else 0
            # the child is the first digit of a cell, so the remainder is the configuration of its attribute parents
            columns = np.arange(family.n_cells) % n_columns + used if n_columns else np.full(family.n_cells, -1)
            numbers.append(columns)
            used += n_columns
        groups = np.concatenate(numbers)[cells]
        theta = np.where(groups < 0, 0.0, np.exp(self.tables(p)[:, cells]))
        same = (groups[:, np.newaxis] == groups).astype(np.float64)
        coupled: Array = np.eye(len(cells)) - same * theta[:, np.newaxis, :]
        return coupled[:1] if bool((theta == theta[0]).all()) else coupled

    def gather(self, entries: Array) -> Array:
        """Return the sums (P,) of the entries (K, n_cells) that have the same beta."""
        if self.by_class.all():
            return entries.ravel()
        by_class = entries[:, self.by_class].ravel()
        return np.concatenate([by_class, entries[:, ~self.by_class].sum(axis=0)])

    def _spread(self, p: Array) -> Array:
        """Return the beta of every entry, (K, n_cells), from p (P,)."""
        if self.by_class.all():
            return p.reshape(self.log_theta.shape)
        beta = np.empty(self.log_theta.shape)
        n_own = len(beta) * int(np.count_nonzero(self.by_class))
        beta[:, self.by_class] = p[:n_own].reshape(len(beta), -1)
        beta[:, ~self.by_class] = p[n_own:]
        return beta

    def _blocks(self) -> Iterator[tuple[slice, tuple[int, ...], int]]:
        """Yield the cells of each table, the shape of its entries, and the axis over which probabilities sum to 1."""
        n_labels = len(self.log_theta)
        # a table over the class's parents replaces the bias, which is then 0
        if all(family.child is not None for family in self.families):
            yield slice(0, 1), (n_labels, 1), 0
        start = 1
        for family in self.families:
            cells = slice(start, start + family.n_cells)
            start = cells.stop
            if family.child is None:
                yield cells, (n_labels, 1, -1), 0
            else:
                yield cells, (n_labels, family.shape[0], -1), 1


LinearCoordinates = EntryCoordinates | SharedWeights | Contrasts | EffectCoordinates
"""Coordinates whose tables are linear in p; the product of their `matrices` is that map."""
