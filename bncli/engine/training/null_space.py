"""Directions of the tables that change no score: what one family adds for a value, another takes away.

The cells of a family that have value v of attribute i are, taken together, the indicator of that value in every row;
so are those of any other family over i, and all cells of a family together are the bias. With R the sums of cells,

    N = differences of columns of R,    sum over cells c of N[c, j] z_t[c] = 0 in every row t

Along N the likelihood is flat, and the penalty lambda alone curves. A preconditioner Q that sees the rows of every cell
is hundreds of times too stiff there: a descent leaves the span of the rows by Q's own steps, and is long in coming
back. Where tables are W = s p for a factor s a cell, the directions are N / s, and

    Q + N' (N'^T N')^-1 N'^T / lambda,    N' = N / s

has the eigenvalues 1 along them, and elsewhere those of Q, less what it has along them: H N' = lambda N', so Q times
the Hessian is block triangular. Where s is another one for every class, (N'^T N')^-1 is taken from the mean over the
classes of its correlations. Equal sums over pairs of values are not looked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.preconditioning import LEAST_SCALE, Precondition, inverse
from bncli.engine.kernels.prolongation import Subspace
from bncli.engine.structures.structure import BinnedAttribute, Family

MOST = 1024
"""Directions at most, those of the heaviest values."""


@dataclass(frozen=True)
class NullSpace:
    """N: column j is column plus[j] of the sums less column minus[j]; `scale` (1 or K, n_cells) is s."""

    sums: Subspace
    plus: Index
    minus: Index
    scale: Array

    def added(self, precondition: Precondition, penalty: float, n_labels: int) -> Precondition:
        """The preconditioner with what it lacks along N."""
        units, inner = self._inner

        def apply(g: Array) -> Array:
            along = units * self._restrict(g.reshape(n_labels, -1) / self._factor)
            along = units * (along @ inner)
            out = precondition(g)
            out += (self._prolong(along) / (penalty * self._factor)).ravel()
            return out

        return apply

    @cached_property
    def _factor(self) -> Array:
        return np.copysign(np.maximum(np.abs(self.scale), LEAST_SCALE), self.scale)

    @cached_property
    def _inner(self) -> tuple[Array, Array]:
        """The reciprocal lengths of N', (1 or K, columns), and the inverse of its correlations, (columns, columns)."""
        units, total = np.empty((len(self._factor), len(self.plus))), np.zeros((len(self.plus), len(self.plus)))
        for unit, row in zip(units, self._factor, strict=True):
            gram = self._gram(row**-2.0)
            unit[:] = np.maximum(np.diag(gram), np.finfo(float).tiny) ** -0.5
            total += unit[:, np.newaxis] * gram * unit
        return units, inverse(total / len(units))

    def _gram(self, weights: Array) -> Array:
        """N' diag(weights) N, (columns, columns)."""
        gram = self.sums.gram(weights)
        rows = gram[self.plus] - gram[self.minus]
        return np.asarray(rows[:, self.plus] - rows[:, self.minus])

    def _restrict(self, cells: Array) -> Array:
        sums = self.sums.restrict(cells)
        return np.asarray(sums[:, self.plus] - sums[:, self.minus])

    def _prolong(self, numbers: Array) -> Array:
        out = np.zeros((len(numbers), self.sums.columns.shape[1]))
        sums = np.zeros((len(numbers), self.sums.n))
        sums[:, self.plus] = numbers
        for row, of in zip(sums, numbers, strict=True):
            row -= np.bincount(self.minus, of, self.sums.n)
        self.sums.add(out, sums)
        return out


class _Pair(NamedTuple):
    """Two sets of cells that are active in the same rows, each with its row in a table of columns; those rows' weight.

    Row 0 is the bias's, 1 that of whole families, 2 + i that of the values of the i-th attribute of a family.
    """

    plus: tuple[int, Index]
    minus: tuple[int, Index]
    weight: float


def null_space(families: Sequence[Family], weights: Array, scale: Array, most: int = MOST) -> NullSpace | None:
    """What tables over `families` can move without a change of scores; weights (n_cells,) of the rows in each cell.

    `most`: so many directions at most.
    """
    pairs = sorted(_pairs(families, weights), key=lambda pair: -pair.weight)[: min(most, MOST)]
    if not pairs:
        return None
    n, none = 1, -1
    columns = np.full((2 + max(len(family.shape) for family in families), len(weights)), none)
    columns[0, 0] = 0
    numbers = np.empty((2, len(pairs)), np.intp)
    for j, pair in enumerate(pairs):
        for side, (row, cells) in enumerate(pair[:2]):
            if columns[row, cells[0]] == none:
                columns[row, cells] = n
                n += 1
            numbers[side, j] = columns[row, cells[0]]
    columns[columns == none] = n
    used = [0, *(row for row in range(1, len(columns)) if (columns[row] < n).any())]
    return NullSpace(Subspace(columns[used], n), numbers[0], numbers[1], scale)


def _pairs(families: Sequence[Family], weights: Array) -> Iterator[_Pair]:
    """Every family against the first one over the same values, and one of each connected part against the bias."""
    first: dict[BinnedAttribute, list[tuple[int, Index]]] = {}
    part: dict[BinnedAttribute, BinnedAttribute] = {}
    whole: dict[BinnedAttribute, Index] = {}
    offset = 1
    for family in families:
        live = offset + np.flatnonzero(weights[offset : offset + family.n_cells] > 0)
        for place, key in enumerate(family.binned_attributes):
            values = [(2 + place, cells) for cells in _by_value(family, place, live, offset)]
            for plus, minus in zip(values, first.setdefault(key, values), strict=True):
                if plus is not minus and len(plus[1]):
                    yield _Pair(plus, minus, float(weights[plus[1]].sum()))
            _join(part, key, family.binned_attributes[0])
            whole.setdefault(key, live)
        offset += family.n_cells
    for key in part:
        if _root(part, key) == key:
            yield _Pair((1, whole[key]), (0, np.zeros(1, np.intp)), math.inf)


def _by_value(family: Family, place: int, cells: Index, offset: int) -> list[Index]:
    """Those of the cells that have each value of the attribute in a place of the family."""
    size = family.shape[place]
    value = (cells - offset) // math.prod(family.shape[place + 1 :]) % size
    order = np.argsort(value, kind="stable")
    return np.split(cells[order], np.cumsum(np.bincount(value, minlength=size))[:-1])


def _join(part: dict[BinnedAttribute, BinnedAttribute], one: BinnedAttribute, other: BinnedAttribute) -> None:
    """Let two attributes, new or not, be in one part."""
    for key in (one, other):
        part.setdefault(key, key)
    part[_root(part, one)] = _root(part, other)


def _root(part: dict[BinnedAttribute, BinnedAttribute], key: BinnedAttribute) -> BinnedAttribute:
    while part[key] != key:
        key = part[key]
    return key
