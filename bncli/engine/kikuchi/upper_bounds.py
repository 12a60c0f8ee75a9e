"""Upper bounds on what candidates would gain, from how often sets of unusual values are expected in the rows.

With d and z[t] as `bncli.engine.kikuchi.candidate_batches` has them, and p[t, y] = P(y | x_t) of the model as it is, a
candidate gains sum of n d - sum over t of w_t ln z_t. The first sum needs no row; and z being the mean of exp(d) under
p,

    ln z >= E d + phi(r) Var d,    phi(r) = (exp(-r) - 1 + r) / r^2

for any r that the differences among the d of a cell do not exceed, because the third cumulant of exp(s d) p is at most
r times the second (self-concordance: Bach 2010, Electronic Journal of Statistics 4). E d and Var d are sums over y and
y' of p[t, y] and p[t, y] p[t, y'] times coefficients of the cell, so what a candidate gains at most is known from the
sums of these *moments* over the rows of each cell. With more than CURVED classes phi is left out, and with it the
moments of second order.

Call the most frequent value of each attribute its usual one, and let c be the coefficients in contrasts to the usual
values (from each axis the usual slice is subtracted, which itself stays). Then a sum over cells and rows is

    sum over cells v of c[v] M[Q(v)],    Q(v): the values of v that are not usual
    M[Q] = sum of the moments of the rows that have all values in Q, whatever else they have

and a row adds to M once for every set of at most `size` of its own unusual values: where rows have few of them these
are far fewer than the candidates. A set of values f_1 < f_2 < ... of M is numbered, after all smaller sets, by

    C(f_1, 1) + C(f_2, 2) + ...        (combinatorial number system: Knuth, The Art of Computer Programming 4A, 7.2.1.3)

Cost of a step: about 5 ns a row's set and moment, 2 ns an entry of all tables and moment.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kikuchi.candidate_batches import Batch, CandidateGroup, log_probabilities

SETS = 1 << 24
"""Sets of unusual values of all rows, at most: they take 8 bytes each."""
SUMS = 1 << 23
"""Entries of M, at most."""
FEWER = 4
"""Bounds are used where rows have so many times fewer sets of unusual values, times moments, than candidates."""
CURVED = 3
"""Up to so many classes, moments of second order are used."""
ROUNDING = 1e-9
"""Of the largest possible sum: far above what the additions round off."""


class RowSets(NamedTuple):
    """Of a row block: the numbers of the sets of unusual values, and the row of each; both of 32 bits."""

    numbers: NDArray[np.int32]
    rows: NDArray[np.int32]


@dataclass(frozen=True)
class UnusualValues:
    """first[i]: the number of the first unusual value of attribute i; usual[i]: its usual value, by its code.

    binomials[k, f] = C(f, k); offsets[s]: how many sets have fewer than s values.
    """

    first: Index
    usual: Index
    members: tuple[int, ...]
    binomials: Index
    offsets: Index

    @property
    def size(self) -> int:
        """The most values of a set."""
        return len(self.offsets) - 2

    @property
    def n_sets(self) -> int:
        return int(self.offsets[-1])

    def of_values(self, attribute: int, radix: int) -> Index:
        """Return the numbers of the values of an attribute; -1 for the usual one."""
        usual = int(self.usual[attribute])
        numbers = self.first[attribute] + np.arange(radix) - (np.arange(radix) > usual)
        numbers[usual] = -1
        return np.asarray(numbers)

    def of_cells(self, group: CandidateGroup) -> Index:
        """Q of every cell of a group, in their order."""
        size = np.zeros((), np.intp)
        numbers = np.zeros((), np.intp)
        lasts = zip(group.lasts.tolist(), group.last_radices.tolist(), strict=True)
        axes = [self.of_values(i, radix) for i, radix in zip(group.shared, group.radices, strict=True)]
        axes.append(np.concatenate([self.of_values(i, radix) for i, radix in lasts]))
        for values in axes:
            unusual = values >= 0
            size = np.add.outer(size, unusual.astype(np.intp))
            numbers = np.add.outer(numbers, np.zeros(len(values), np.intp))
            numbers += np.where(unusual, self.binomials[size, np.maximum(values, 0)], 0)
        return np.asarray((numbers + self.offsets[size]).ravel())


class UpperBounds:
    """Of one data set and one size of candidates."""

    def __init__(self, data: Dataset, values: UnusualValues, n_row_sets: int) -> None:
        self._data, self._values, self.n_row_sets = data, values, n_row_sets

    @cached_property
    def _rows(self) -> list[RowSets]:
        return self._data.map(_row_sets, self._values)

    def contrasts(self, batch: Batch) -> Contrasts:
        """Return what bounds need of a batch."""
        group = batch.group
        d = batch.tables if batch.steep else np.log(batch.tables)
        coefficients = _coefficients(d)
        c = coefficients.reshape(len(coefficients), *group.radices, group.width)
        for axis, i in enumerate(group.shared, 1):
            along = np.moveaxis(c, axis, 0)
            usual = along[self._values.usual[i]].copy()
            along -= usual
            along[self._values.usual[i]] = usual
        places = group.starts + self._values.usual[group.lasts]
        of_usual = c[..., places]
        c -= np.repeat(of_usual, group.last_radices, axis=-1)
        c[..., places] = of_usual
        slack = ROUNDING * self._data.total_weight * (1.0 + float(np.abs(c).max(initial=0.0)))
        return Contrasts(group, coefficients, self._values.of_cells(group), batch.sums + slack)

    def moments(self, scores: list[Array]) -> Array:
        """M, shape (moments, sets), at the scores of every row block."""
        states = list(zip(scores, self._rows, strict=True))
        return np.asarray(self._data.reduce(_moment_sums, self._values.n_sets, states=states))


class Contrasts(NamedTuple):
    """c (moments, cells) of a group, the sets of its cells, and the sums of n d with what additions may round off."""

    group: CandidateGroup
    c: Array
    sets: Index
    sums: Array

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.c.size + self.sets.size

    def bounds(self, moments: Array) -> Array:
        """Return what every candidate of the group gains at most."""
        by_value = np.einsum("mv,mv->v", self.c, moments[:, self.sets])
        by_value = by_value.reshape(-1, self.group.width).sum(axis=0)
        return np.asarray(self.sums - np.add.reduceat(by_value, self.group.starts))


def upper_bounds(data: Dataset, sets: Index) -> UpperBounds | None:
    """For candidates (M, size), where it pays."""
    members = tuple(np.unique(sets).tolist())
    cardinalities = np.array(data.schema.cardinalities, np.intp)
    size, n_values = sets.shape[1], int((cardinalities[list(members)] - 1).sum())
    n_sets = sum(math.comb(n_values, s) for s in range(size + 1))
    moments = n_moments(data.n_labels)
    if size < 2 or n_sets * moments > SUMS:
        return None
    usual = data.reduce(_value_counts, data.schema.cardinalities)
    values = _unusual_values(members, np.array([counts.argmax() for counts in usual]), cardinalities, size)
    by_number = data.reduce(_unusual_by_row, values)
    of_rows = sum(int(rows) * math.comb(n, s) for n, rows in enumerate(by_number) for s in range(size + 1))
    if of_rows > SETS or FEWER * moments * (of_rows + n_sets) > len(sets) * data.n_rows * data.n_labels:
        return None
    return UpperBounds(data, values, of_rows)


def _value_counts(block: RowBlock, cardinalities: tuple[int, ...]) -> list[Index]:
    return [np.bincount(codes, minlength=n) for codes, n in zip(block.codes, cardinalities, strict=True)]


def _unusual_values(members: tuple[int, ...], usual: Index, cardinalities: Index, size: int) -> UnusualValues:
    taken = np.zeros(len(cardinalities), np.intp)
    taken[list(members)] = cardinalities[list(members)] - 1
    n_values = int(taken.sum())
    binomials = np.array([[math.comb(f, k) for f in range(n_values + 1)] for k in range(size + 1)])
    offsets = np.cumsum([0, *(math.comb(n_values, s) for s in range(size + 1))])
    return UnusualValues(np.cumsum(taken) - taken, usual, members, binomials, offsets)


def _unusual_by_row(block: RowBlock, values: UnusualValues) -> Index:
    """Return how many rows have 0, 1, 2, ... unusual values."""
    found = np.zeros(block.n_rows, np.intp)
    for i in values.members:
        found += block.codes[i] != values.usual[i]
    return np.bincount(found, minlength=len(values.members) + 1)


def n_moments(n_labels: int) -> int:
    """Return numbers that each row adds up."""
    return n_labels - 1 + (len(_pairs(n_labels - 1)) if n_labels <= CURVED else 0)


def _pairs(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations_with_replacement(range(n), 2))


def _coefficients(d: Array) -> Array:
    """Of the moments of each cell, by its d (K - 1, cells) and the 0 of the first class: (moments, cells)."""
    if len(d) >= CURVED:
        return np.array(d)
    r = np.maximum(d.max(axis=0), 0.0) - np.minimum(d.min(axis=0), 0.0)
    phi = np.full(r.shape, 0.4999)  # below 1/2 - r/6 up to where the formula does not round too much
    np.divide(np.expm1(-r) + r, r * r, out=phi, where=r > 1e-4)
    pairs = _pairs(len(d))
    return np.array([*(d + phi * d * d), *(-phi * (1 if y == z else 2) * d[y] * d[z] for y, z in pairs)])


def _row_sets(block: RowBlock, values: UnusualValues) -> RowSets:
    unusual = np.array([block.codes[i] != values.usual[i] for i in values.members]).T
    per_row = unusual.sum(axis=1)
    numbers, rows = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for n in np.unique(per_row).tolist():
        here = np.flatnonzero(per_row == n)
        attributes = np.array(values.members)[np.nonzero(unusual[here])[1]].reshape(len(here), n)
        codes = np.array([block.codes[i][here] for i in values.members], np.intp).T[unusual[here]].reshape(len(here), n)
        which = values.first[attributes] + codes - (codes > values.usual[attributes])
        found = _subsets(which, values)
        numbers.append(found.astype(np.int32).ravel())
        rows.append(np.tile(here.astype(np.int32), len(found)))
    return RowSets(np.concatenate(numbers), np.concatenate(rows))


def _subsets(which: Index, values: UnusualValues) -> Index:
    """Return the numbers of all sets of at most so many of each row's values (rows, n), ascending: (sets, rows)."""
    found = []
    for size in range(min(values.size, which.shape[1]) + 1):
        for places in itertools.combinations(range(which.shape[1]), size):
            numbers = np.full(len(which), values.offsets[size])
            for k, place in enumerate(places, 1):
                numbers += values.binomials[k, which[:, place]]
            found.append(numbers)
    return np.array(found)


def _moment_sums(block: RowBlock, n_sets: int) -> Array:
    scores, (numbers, rows) = block.state
    p = np.exp(log_probabilities(scores))[1:]
    moments = [*p, *(p[y] * p[z] for y, z in _pairs(len(p)))] if len(scores) <= CURVED else [*p]
    if block.weights is not None:
        moments = [moment * block.weights for moment in moments]
    numbers, rows = numbers.astype(np.intp), rows.astype(np.intp)
    return np.array([np.bincount(numbers, moment.take(rows), n_sets) for moment in moments])
