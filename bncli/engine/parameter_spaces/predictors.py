"""Indicators of complete sets: the predictors of a logistic regression that says what the families' tables say.

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
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask
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
        """Tables (any, n_cells) of parameters (any, M), one row a class or any other quantity."""
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
        """The transpose of `tables`: each predictor's sum (any, M) over the cells in which it is active."""
        totals = cells.copy()
        for raised, low in reversed(self._steps):
            for row in totals:
                row += np.bincount(low, row[raised], len(row))
        return totals[:, self.holders]

    def parameters(self, tables: Array) -> Array:
        """The parameters (any, M) whose tables give every row the same sums as `tables` (any, n_cells)."""
        contrasts = tables.copy()
        for raised, low in self._steps:
            contrasts[:, raised] -= contrasts[:, low]
        sums = [np.bincount(self.own, row, self.n_predictors) for row in contrasts]
        return np.array(sums, np.float64).reshape(len(tables), self.n_predictors)

    def transposed(self, parameters: Array) -> Array:
        """The transpose of `parameters`: cells (any, n_cells) of (any, M)."""
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


def predictors_of(families: Sequence[Family], references: Sequence[int]) -> Predictors:
    """The predictors of tables over `families`; references[i] is the reference value of attribute i."""
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
    """Values of each cell, shape (attributes, cells)."""
    return np.array(np.unravel_index(np.arange(family.n_cells), family.shape))


def _references(family: Family, references: Sequence[int]) -> Index:
    return np.array([references[i] for i in family.attributes])[:, np.newaxis]


def _patterns(away: Mask) -> Iterator[tuple[Index, Index]]:
    """The places away from their references and the cells that have just these so, for every such set of places."""
    codes = (away * (1 << np.arange(len(away)))[:, np.newaxis]).sum(axis=0)
    order = np.argsort(codes, kind="stable")
    for cells in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        yield np.flatnonzero(away[:, cells[0]]), cells


def _ranks(family: Family, references: Sequence[int], places: Index, digits: Index) -> tuple[tuple[int, ...], Index]:
    """The attributes at `places`, ascending, and the rank of each cell's values there, references left out."""
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
