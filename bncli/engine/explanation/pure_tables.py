"""Purified tables of very many families, each in one array: what every set of its attributes says of a row.

Purification (`explanation.purification`) of a table over n attributes yields 2^n terms, a thousand tables 64,000. They
stand in one array each, whose axis i has a place for every value and a last one for the mean: along it

    V[x_i] = (V[x_i] - mean) at the place of x_i, + mean at the last place,

so that the term of a set T has its values where the axes outside T are at their last place. With the strides s_i the
entries that a row needs are at

    last cell + sum over i in T of (x_i - n_i) s_i,

found for all T by doubling: one addition a term. An unobserved attribute is averaged over: every term that has it is 0,
the others stay. Cost per row and table: 2^n look-ups and additions; memory: prod(n_i + 1) numbers a table and class.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.explanation.contrasts import contrasts
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.structures.binning import frequencies_of
from bncli.engine.structures.structure import BinnedAttribute, Family, Grouping

MANY_TABLES = 256
"""So many tables of a model, small and without a child, are explained through such arrays."""
MOST_CELLS = 1 << 12
MOST_TOGETHER = 1 << 16
"""Cells that tables over one set of attributes may tell apart together, that one table over these cells is made."""


def are_many(families: Sequence[Family], cardinalities: Sequence[int]) -> bool:
    """Whether small families are to be explained through arrays: they are many, or their binnings differ widely."""
    return len(families) >= MANY_TABLES or _most_together(families, cardinalities) > MOST_TOGETHER


def _most_together(families: Sequence[Family], cardinalities: Sequence[int]) -> int:
    """At most so many cells are told apart by the tables over any set of attributes, where these differ in binning."""
    number: dict[BinnedAttribute, int] = {}
    groups: dict[int, int] = {}
    together: dict[tuple[int, ...], list[set[int]]] = {}
    for family in families:
        seen = [number.setdefault(binned, len(number)) for binned in family.binned_attributes]
        groups.update(zip(seen, family.shape, strict=True))
        axes = sorted(zip(family.attributes, seen, strict=True))
        for size in range(1, len(axes) + 1):
            for subset in itertools.combinations(axes, size):
                found = together.setdefault(tuple(a for a, _ in subset), [set() for _ in subset])
                for binnings, (_, binning) in zip(found, subset, strict=True):
                    binnings.add(binning)
    sizes = (
        math.prod(
            min(cardinalities[a], 1 + sum(groups[b] - 1 for b in seen)) for a, seen in zip(key, found, strict=True)
        )
        for key, found in together.items()
        if any(len(binnings) > 1 for binnings in found)
    )
    return max(sizes, default=0)


def is_small(family: Family) -> bool:
    """Whether the family can be one of many: what it does not see it averages over."""
    return family.by_class and family.child is None and math.prod(n + 1 for n in family.shape) <= MOST_CELLS


@dataclass(frozen=True)
class PureTable:
    """entries: contrasts by cell, with a place for the mean on every axis, and by class, then a 0.

    codes[i] (cardinality,): the digit of every code of attribute i.
    """

    attributes: tuple[int, ...]
    groupings: tuple[Grouping | None, ...]
    shape: tuple[int, ...]
    codes: tuple[Index, ...]
    frequencies: tuple[Array, ...]
    entries: Array

    @classmethod
    def of(cls, family: Family, weights: Array, schema: Schema) -> PureTable:
        """A family's table, weights (cells, K), purified."""
        binned = family.binned_attributes
        frequencies = tuple(frequencies_of(schema.attributes[a], grouping) for a, grouping in binned)
        values = contrasts(weights).reshape(*family.shape, -1)
        for axis, q in enumerate(frequencies):
            mean = np.expand_dims(np.tensordot(q, values, axes=(0, axis)), axis)
            values = np.concatenate([values - mean, mean], axis=axis)
        codes = tuple(
            np.array(grouping if grouping else range(n), np.intp)
            for (_, grouping), n in zip(binned, family.shape, strict=True)
        )
        entries = np.append(values.ravel(), 0.0)
        seen = tuple(grouping for _, grouping in binned)
        return cls(family.attributes, seen, family.shape, codes, frequencies, entries)

    @property
    def constant(self) -> Array:
        """The term of no attribute, (K,)."""
        return np.asarray(self._grid.reshape(-1, self._grid.shape[-1])[-1])

    def times(self, factor: float) -> PureTable:
        """Every term times a number."""
        return PureTable(
            self.attributes, self.groupings, self.shape, self.codes, self.frequencies, factor * self.entries
        )

    @property
    def _grid(self) -> Array:
        """(n_1 + 1, n_2 + 1, ..., K)."""
        return np.asarray(self.entries[:-1].reshape(*(n + 1 for n in self.shape), -1))

    @cached_property
    def subsets(self) -> tuple[tuple[int, ...], ...]:
        """The axes of every term, the constant first, in the order of doubling."""
        found: list[tuple[int, ...]] = [()]
        for axis in range(len(self.shape)):
            found += [(*axes, axis) for axes in found]
        return tuple(found)

    @property
    def terms(self) -> list[tuple[int, ...]]:
        """The attributes of every term but the constant, ascending."""
        return [tuple(sorted(self.attributes[axis] for axis in axes)) for axes in self.subsets[1:]]

    def values(self, axes: Sequence[int]) -> Array:
        """The term of these axes, (n_i ..., K), in their order."""
        places = tuple(slice(n) if axis in axes else n for axis, n in enumerate(self.shape))
        return np.asarray(self._grid[places])

    def variances(self) -> Array:
        """Of every term but the constant: the mean of squares over values and classes, (2^n - 1,), as `subsets`."""
        moments: Array = (self._grid**2).mean(axis=-1)
        for axis, q in enumerate(self.frequencies):
            seen = np.tensordot(q, moments.take(range(len(q)), axis), axes=(0, axis))
            moments = np.stack([moments.take(-1, axis), seen], axis=axis)
        # the first axis doubles first: it is the fastest
        return np.asarray(moments.transpose().ravel()[1:])

    def add_to(
        self, sums: Array, rows: Index, codes: Mapping[int, Integers], labels: Index, share: Array | float
    ) -> None:
        """sums[rows[t]] (N,) += share times term t of every row and its label, in the order of `terms`."""
        cells = math.prod(n + 1 for n in self.shape)
        places = np.empty((1 << len(self.shape), len(labels)), np.intp)
        places[0] = cells - 1
        for axis, (a, steps) in enumerate(zip(self.attributes, self._steps, strict=True)):
            half = 1 << axis
            np.add(places[:half], steps[codes[a]], out=places[half : 2 * half])
        places *= len(self.entries) // cells
        places += labels
        sums[rows] += share * np.take(self.entries, places[1:], mode="clip")

    @cached_property
    def _steps(self) -> tuple[Index, ...]:
        """What every code adds to the place of a cell; "unobserved" leads beyond the last, where there are zeros."""
        strides = [math.prod(n + 1 for n in self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        beyond = 2 * math.prod(n + 1 for n in self.shape)
        joined = zip(self.codes, self.shape, strides, strict=True)
        return tuple(np.append((digits - n) * stride, beyond) for digits, n, stride in joined)
