"""Free parameters and the tables they stand for: all that tells one discriminative parameter space from another.

A space gives the tables W (K, n_cells) of a parameter vector p (P,), and the transpose of that map's derivative:

    dCLL / dp_q = sum over y, c of dW[y, c] / dp_q  dCLL / dW[y, c]

Most spaces have one parameter per table entry, p = (K, n_cells) flat; where entries share parameters, `sharing` says
how: each follows one parameter (`Sharing`), or is the sum of those of its predictors, class 0 staying at 0, with
p = (K - 1, M) flat (`Predictors`, `CellPredictors`), or a sum of effects, with p = (K, effects) flat (`Effects`).

Indicators of complete sets: the predictors of a logistic regression that says what the families' tables say.

Every attribute has a reference value. For every non-empty subset S of a family's attributes, and all values x_S none of
which is a reference, there is one predictor, the indicator of x_S; and there is the intercept. With the parameters p of
class 0 fixed to 0,

    S[t, y] = p[y, intercept] + sum over S of p[y, x_S(t)],    the terms with a reference value in x_S(t) left out

(Feelders & Ivanovs 2006). No predictor follows from the others, so no other parameterisation of the same tables has
fewer parameters. A set that lies in several families has its predictors in the first of them, compiled into its table:

    W_f[c, y] = sum over subsets S of f's attributes that are in no earlier family of p[y, c_S]

Each predictor is *held* by one cell: the one of that family that has x_S, and references elsewhere. Tables are then the
sums over "lowered" cells, made one attribute at a time: add to each cell the one with that attribute lowered to its
reference. Cost: the cells times the attributes of a family; there is never a matrix of predictors by cells.

Log probabilities of a network from free numbers: every distribution is the softmax of its own betas.

    ln theta_kj = beta_kj - ln sum over k' of exp(beta_k'j)

for child value k and parent configuration j, the class among the parents where it is one; the class's own distribution
likewise, over the classes. The way back, for any function f of the tables W = ln theta:

    df/dbeta_kj = df/dW_kj - theta_kj sum over k' of df/dW_k'j

With f the (conditional) log-likelihood, df/dW are (differences of) expected counts, and this is the gradient of
Greiner, Su, Shen & Zhou 2005 (Machine Learning 59, proposition 4).

Log-odds against the first class as sums of predictors: the parameter spaces in which class 0 is fixed at 0.

ln P(y | x) / P(0 | x) = sum over the predictors active in x of p[y, predictor], y = 1, ..., K - 1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask, log_sum
from bncli.engine.parameters.effect_coding import Effects
from bncli.engine.structures.structure import Family


@dataclass(frozen=True)
class Predictors:
    """`holders` (M,): the cell that holds each predictor, the bias for the intercept, which is predictor 0.

    lowered[j] (n_cells,): each cell with the attribute at place j of its family at the reference. own (n_cells,): the
    predictor of the values that are not references in each cell, in whatever family it is held.
    """

    holders: Index
    lowered: Index
    own: Index

    @property
    def n_predictors(self) -> int:
        return len(self.holders)

    def tables(self, parameters: Array) -> Array:
        """Return tables (any, n_cells) of parameters (any, M), one row per class or any other quantity."""
        cells = np.zeros((len(parameters), len(self.own)))
        cells[:, self.holders] = parameters
        for raised, low in self._steps:
            cells[:, raised] += cells[:, low]
        return cells

    @property
    def factors(self) -> list[Any]:
        """Sparse matrices whose product is the map of `tables`, the last to be applied first."""
        from scipy.sparse import csr_array, eye_array

        n = len(self.own)
        added = [csr_array((np.ones(len(low)), (raised, low)), shape=(n, n)) for raised, low in self._steps]
        held = csr_array(
            (np.ones(self.n_predictors), (self.holders, np.arange(self.n_predictors))), shape=(n, self.n_predictors)
        )
        return [*(csr_array(eye_array(n) + one) for one in reversed(added)), held]

    def sums(self, cells: Array) -> Array:
        """Return the transpose of `tables`: each predictor's sum (any, M) over the cells in which it is active."""
        totals = cells.copy()
        for raised, low in reversed(self._steps):
            for row in totals:
                row += np.bincount(low, row[raised], len(row))
        return totals[:, self.holders]

    def parameters(self, tables: Array) -> Array:
        """Return the parameters (any, M) whose tables give every row the same sums as `tables` (any, n_cells)."""
        contrasts = tables.copy()
        for raised, low in self._steps:
            contrasts[:, raised] -= contrasts[:, low]
        sums = [np.bincount(self.own, row, self.n_predictors) for row in contrasts]
        return np.array(sums, np.float64).reshape(len(tables), self.n_predictors)

    def transposed(self, parameters: Array) -> Array:
        """Return the transpose of `parameters`: cells (any, n_cells) of (any, M)."""
        cells = np.take(parameters, self.own, axis=1)
        for raised, low in reversed(self._steps):
            for row in cells:
                row -= np.bincount(low, row[raised], len(row))
        return cells

    @cached_property
    def _steps(self) -> list[tuple[Index, Index]]:
        """For every place the cells away from the reference there, and these cells lowered."""
        cells = np.arange(len(self.own))
        raised = [np.flatnonzero(low != cells) for low in self.lowered]
        return [(r, low[r]) for r, low in zip(raised, self.lowered, strict=True)]


@dataclass(frozen=True)
class CellPredictors:
    """The same where every one of the `n_cells` cells has its own predictor: some of them follow from others.

    The bias, cell 0, has no predictor where `of_class` (the first cell and the end of a table over the class's parents)
    takes its place: the intercept is in each cell of that table.
    """

    n_cells: int
    of_class: tuple[int, int] | None = None

    @property
    def n_predictors(self) -> int:
        return self.n_cells - self._first

    @property
    def _first(self) -> int:
        return 0 if self.of_class is None else 1

    def tables(self, parameters: Array) -> Array:
        cells = np.zeros((len(parameters), self.n_cells))
        cells[:, self._first :] = parameters
        return cells

    @property
    def factors(self) -> list[Any]:
        from scipy.sparse import csr_array, eye_array

        return [csr_array(eye_array(self.n_cells, self.n_predictors, k=-self._first))]

    def sums(self, cells: Array) -> Array:
        return cells[:, self._first :]

    def parameters(self, tables: Array) -> Array:
        found = tables[:, self._first :].copy()
        if self.of_class is not None:
            start, end = self.of_class
            found[:, start - 1 : end - 1] += tables[:, :1]
        return found

    def transposed(self, parameters: Array) -> Array:
        cells = self.tables(parameters)
        if self.of_class is not None:
            cells[:, 0] = cells[:, slice(*self.of_class)].sum(axis=1)
        return cells


@dataclass(frozen=True)
class Sharing:
    """W[y, c] = scale[y, c] p[index[y, c]], both arrays (K, n_cells): every entry follows one of P parameters."""

    scale: Array
    index: Index
    n_parameters: int

    def tables(self, p: Array) -> Array:
        return self.scale * p[self.index]

    @property
    def factors(self) -> list[Any]:
        """A sparse matrix (K n_cells, P) that makes tables of p."""
        from scipy.sparse import csr_array

        entries = (self.scale.ravel(), (np.arange(self.index.size), self.index.ravel()))
        return [csr_array(entries, shape=(self.index.size, self.n_parameters))]

    def pull_back(self, d_tables: Array) -> Array:
        sums = np.bincount(self.index.ravel(), (self.scale * d_tables).ravel(), self.n_parameters)
        return sums.astype(np.float64)


class Parameterisation(Protocol):
    """What every optimization needs of a parameter space."""

    @property
    def n_parameters(self) -> int: ...

    @property
    def generative(self) -> Array:
        """The parameters whose tables score like the generative model, shape (P,)."""
        ...

    def tables(self, p: Array) -> Array:
        """Return W (K, n_cells) of p (P,)."""
        ...

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        """dCLL/dp (P,) from dCLL/dW (K, n_cells), at p."""
        ...


class Coordinates(Parameterisation, Protocol):
    """A parameter space with all that the preconditioners for complete rows need of it."""

    def push(self, p: Array, v: Array) -> Array:
        """Return the derivative of the tables (K, n_cells) at p along v (P,)."""
        ...

    @property
    def sharing(self) -> Sharing | Predictors | CellPredictors | Effects | None:
        """How entries share parameters; None for one parameter per entry."""
        ...

    @property
    def is_scaled(self) -> bool:
        """Whether every entry follows its own parameter alone, so that `scale` is the whole derivative."""
        ...

    @property
    def scale(self) -> Array:
        """dW[y, c]/dp[y, c], (1 or K, n_cells), one row where all classes have the same; unused where entries share.

        Ones for effects: one for each of them.
        """
        ...

    def curvature(self, p: Array, mass: Array) -> Array:
        """Return sum over c' of mass[y, c'] (dW[y, c']/dp[y, c])^2, shapes (1 or K, n_cells).

        Used where not `is_scaled`.
        """
        ...

    def jacobian(self, p: Array, cells: Index) -> Array:
        """dW[y, c]/dp[y, c'] for c, c' in `cells`, at p, shape (1 or K, cells, cells); used where not `is_scaled`.

        What a parameter adds to all classes alike is left out: it changes no probability.
        """
        ...


class Linear(Coordinates, Protocol):
    """A parameter space whose tables are linear in p, as directions need it."""

    @property
    def factors(self) -> list[Any]:
        """Sparse matrices whose product (K n_cells, P) makes tables of p, the last to be applied first."""
        ...


@dataclass(frozen=True)
class PerCell:
    """What spaces with one parameter per table entry share; `log_theta` (K, n_cells) are the generative tables."""

    log_theta: Array

    @property
    def n_parameters(self) -> int:
        return self.log_theta.size

    @property
    def generative(self) -> Array:
        return self.log_theta.ravel()

    @property
    def sharing(self) -> Sharing | Predictors | CellPredictors | None:
        return None

    def tables(self, p: Array) -> Array:
        return self.scale * p.reshape(self.log_theta.shape)

    def push(self, p: Array, v: Array) -> Array:
        return self.tables(v)

    @property
    def factors(self) -> list[Any]:
        from scipy.sparse import csr_array, diags_array

        return [csr_array(diags_array(np.broadcast_to(self.scale, self.log_theta.shape).ravel()))]

    @property
    def is_scaled(self) -> bool:
        return True

    @property
    def scale(self) -> Array:
        return np.ones((1, self.log_theta.shape[1]))

    def curvature(self, p: Array, mass: Array) -> Array:
        return mass * self.scale**2

    def jacobian(self, p: Array, cells: Index) -> Array:
        return np.asarray(self.scale[:, cells, np.newaxis] * np.eye(len(cells)))


@dataclass(frozen=True)
class Softmax(PerCell):
    """beta (K, n_cells), flat: every class has its own, of every family."""

    families: tuple[Family, ...]

    def tables(self, p: Array) -> Array:
        beta = p.reshape(self.log_theta.shape)
        return self._blockwise(lambda b, axis: b - log_sum(b, axis), beta)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        def through_softmax(d: Array, log_theta: Array, axis: int) -> Array:
            return np.asarray(d - np.exp(log_theta) * d.sum(axis=axis, keepdims=True))

        return self._blockwise(through_softmax, d_tables, self.tables(p)).ravel()

    def push(self, p: Array, v: Array) -> Array:
        def through_softmax(b: Array, log_theta: Array, axis: int) -> Array:
            return np.asarray(b - (np.exp(log_theta) * b).sum(axis=axis, keepdims=True))

        return self._blockwise(through_softmax, v.reshape(self.log_theta.shape), self.tables(p))

    @property
    def is_scaled(self) -> bool:
        return False

    def curvature(self, p: Array, mass: Array) -> Array:
        def through_softmax(m: Array, log_theta: Array, axis: int) -> Array:
            if axis == 0:
                return m
            theta = np.exp(log_theta)
            return np.asarray(m * (1 - theta) ** 2 + (m.sum(axis=axis, keepdims=True) - m) * theta**2)

        return self._blockwise(through_softmax, np.broadcast_to(mass, self.log_theta.shape), self.tables(p))

    def jacobian(self, p: Array, cells: Index) -> Array:
        """dW[c]/dbeta[c'] = 1[c = c'] - theta[c'] where c and c' have the same normaliser, per class.

        Entries normalised over the class are free: what their normaliser adds to all classes changes no probability.
        """
        # A number for every cell: cells with the same number are normalised together (-1: over the class only).
        #
        # A bias that a table over the class's parents replaces is 0 whatever its beta: as if normalised by itself.
        replaced = any(family.child is None for family in self.families)
        numbers = [np.array([0 if replaced else -1])]
        used = 1
        for family in self.families:
            n_columns = family.n_cells // family.shape[0] if family.child is not None else 0
            columns = np.arange(family.n_cells) % n_columns + used if n_columns else np.full(family.n_cells, -1)
            numbers.append(columns)
            used += n_columns
        groups = np.concatenate(numbers)[cells]
        theta = np.where(groups < 0, 0.0, np.exp(self.tables(p)[:, cells]))
        same = (groups[:, np.newaxis] == groups).astype(np.float64)
        coupled: Array = np.eye(len(cells)) - same * theta[:, np.newaxis, :]
        return coupled[:1] if bool((theta == theta[0]).all()) else coupled

    def _blockwise(self, function: Callable[..., Array], *cells: Array) -> Array:
        """`function(*blocks, axis)` of each table's entries, `axis` the one over which its probabilities sum to 1."""
        out = np.zeros(self.log_theta.shape)
        if all(family.child is not None for family in self.families):  # else the class's table is its distribution
            out[:, :1] = function(*(c[:, :1] for c in cells), 0)
        start = 1
        for family in self.families:
            columns = slice(start, start + family.n_cells)
            shape = (len(out), family.shape[0] if family.child is not None else 1, -1)
            blocks = (c[:, columns].reshape(shape) for c in cells)
            result = function(*blocks, 1 if family.child is not None else 0)
            out[:, columns] = result.reshape(len(out), -1)
            start = columns.stop
        return out


@dataclass(frozen=True)
class SharedSoftmax:
    """Families whose child does not have the class as a parent have one beta a cell, the others one a class and cell.

    beta flat: (K, cells of the bias and of families with the class), then (cells of families without).
    """

    softmax: Softmax

    @property
    def n_parameters(self) -> int:
        return len(self.generative)

    @cached_property
    def generative(self) -> Array:
        log_theta = self.softmax.log_theta
        return np.concatenate([log_theta[:, self.by_class].ravel(), log_theta[0, ~self.by_class]])

    def tables(self, p: Array) -> Array:
        return self.softmax.tables(self._spread(p))

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.gathered(self.softmax.pull_back(self._spread(p), d_tables))

    def diagonal(self, p: Array, mass: Array) -> Array:
        """Return sum over entries (y, c) of mass[y, c] (dW[y, c]/dp_q)^2 for every q, mass (K, n_cells)."""
        return self.gathered(self.softmax.curvature(self._spread(p), mass))

    @cached_property
    def by_class(self) -> Mask:
        """Cells that every class has its own beta of."""
        families = self.softmax.families
        return np.repeat([True, *(f.by_class for f in families)], [1, *(f.n_cells for f in families)])

    def _spread(self, p: Array) -> Array:
        """Return every entry's beta, flat."""
        beta = np.empty(self.softmax.log_theta.shape)
        own = len(beta) * int(np.count_nonzero(self.by_class))
        beta[:, self.by_class] = p[:own].reshape(len(beta), -1)
        beta[:, ~self.by_class] = p[own:]
        return beta.ravel()

    def gathered(self, entries: Array) -> Array:
        """Return the sum over the entries that a beta stands for; the transpose of `_spread`."""
        by_entry = entries.reshape(self.softmax.log_theta.shape)
        return np.concatenate([by_entry[:, self.by_class].ravel(), by_entry[:, ~self.by_class].sum(axis=0)])


@dataclass(frozen=True)
class Contrasts(PerCell):
    """p (K - 1, M), flat: the predictors' parameters for the classes 1, 2, ...; `log_theta` are generative tables."""

    predictors: Predictors | CellPredictors

    @property
    def n_parameters(self) -> int:
        return (len(self.log_theta) - 1) * self.predictors.n_predictors

    @property
    def generative(self) -> Array:
        return self.predictors.parameters(self.log_theta[1:] - self.log_theta[0]).ravel()

    @property
    def sharing(self) -> Predictors | CellPredictors:
        return self.predictors

    @property
    def factors(self) -> list[Any]:
        from scipy.sparse import csr_array, eye_array, kron

        n = len(self.log_theta)
        of_class = [eye_array(n, n - 1, k=-1), *(eye_array(n - 1) for _ in self.predictors.factors[1:])]
        return [csr_array(kron(y, factor)) for y, factor in zip(of_class, self.predictors.factors, strict=True)]

    def tables(self, p: Array) -> Array:
        tables = self.predictors.tables(p.reshape(-1, self.predictors.n_predictors))
        return np.concatenate([np.zeros((1, tables.shape[1])), tables])

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.predictors.sums(d_tables[1:]).ravel()


def predictors_of(families: Sequence[Family], references: Sequence[int]) -> Predictors:
    """Return the predictors of tables over `families`; references[i] is the reference value of attribute i."""
    first: dict[tuple[int, ...], int] = {(): 0}  # of each set, its first predictor; the intercept is that of no value
    holders, own = [np.zeros(1, np.intp)], [np.zeros(1, np.intp)]
    used = offset = 1
    for family in families:
        digits = _digits(family)
        own.append(np.zeros(family.n_cells, np.intp))
        for places, cells in _patterns(digits != _references(family, references)):
            subset, ranks = _ranks(family, references, places, digits[:, cells])
            if subset not in first:
                first[subset], used = used, used + len(cells)
                holders.append(offset + cells[np.argsort(ranks)])
            own[-1][cells] = first[subset] + ranks
        offset += family.n_cells
    return Predictors(np.concatenate(holders), _lowered(families, references), np.concatenate(own))


def _digits(family: Family) -> Index:
    """Return values of each cell, shape (attributes, cells)."""
    return np.array(np.unravel_index(np.arange(family.n_cells), family.shape))


def _patterns(away: Mask) -> Iterator[tuple[Index, Index]]:
    """Yield each set of places away from their references, with the cells that have exactly this set."""
    codes = (away * (1 << np.arange(len(away)))[:, np.newaxis]).sum(axis=0)
    order = np.argsort(codes, kind="stable")
    for cells in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        yield np.flatnonzero(away[:, cells[0]]), cells


def _references(family: Family, references: Sequence[int]) -> Index:
    return np.array([references[i] for i in family.attributes])[:, np.newaxis]


def _ranks(family: Family, references: Sequence[int], places: Index, digits: Index) -> tuple[tuple[int, ...], Index]:
    """Return the attributes at `places`, ascending, and the rank of each cell's values there, references left out."""
    in_order = sorted(places, key=lambda j: family.attributes[j])
    ranks = np.zeros(digits.shape[1], np.intp)
    for j in in_order:
        ranks = ranks * (family.shape[j] - 1) + digits[j] - (digits[j] > references[family.attributes[j]])
    return tuple(family.attributes[j] for j in in_order), ranks


def _lowered(families: Sequence[Family], references: Sequence[int]) -> Index:
    n_places = max((len(family.attributes) for family in families), default=1)
    blocks, offset = [np.zeros((n_places, 1), np.intp)], 1
    for family in families:
        strides = np.array([math.prod(family.shape[j + 1 :]) for j in range(len(family.shape))])[:, np.newaxis]
        block = np.tile(offset + np.arange(family.n_cells), (n_places, 1))
        block[: len(strides)] += (_references(family, references) - _digits(family)) * strides
        blocks.append(block)
        offset += family.n_cells
    return np.concatenate(blocks, axis=1)
