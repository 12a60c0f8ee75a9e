"""Purification: a sum of overlapping tables rewritten so that each number means one thing.

Tables over overlapping sets of attributes can trade: what one attribute does may stand in its own table, or be spread
over the tables of all pairs that it is part of. The functional analysis of variance (Hooker 2007, Journal of
Computational and Graphical Statistics 16; Lengerich, Tan, Chang, Hooker & Caruana 2020, AISTATS) settles it. Where
attribute i has the values of its training rows, with frequencies q_i, whatever the others are, a table V over a set S
is the sum of one term for every subset T of S,

    g_T(x_T) = sum over U subset of T of (-1)^(|T| - |U|) E[V | x_U],

found axis by axis: V = mean along the axis + (V - mean along the axis). The score does not change; every term has mean
0 along each of its axes, so a curve is the deviation from the average row, and a pair's term holds nothing that two
curves could say. Terms over different sets are uncorrelated under the product of the q_i, so that their variances add.

Conventions: q is 0 for the code "unobserved", whose entries are split by the same rule and stay exact: where a table
averages over what it does not see, its purified terms are 0. A table over n attributes has 2^n terms; over more than
MOST_ATTRIBUTES it is refused (`bncli.engine.prediction.mixtures`). Cost: (1 + 1/cardinality)^n passes over a table.

Contrast tensors: a table with an axis an attribute, a place for "unobserved", and the contrasts of the classes.

What a table adds to all classes alike says nothing. So a contrast tensor holds, for every class, how far it is raised
above the others, the log-odds of the class against the geometric mean of the others:

    V[x, y] = W[x, y] - 1/(K - 1) sum over c != y of W[x, c]  =  K/(K - 1) (W[x, y] - mean over c of W[x, c])

For two classes these are the log-odds ln P(y)/P(other). Contrasts sum to 0 over the classes and determine the
probabilities. Conventions: with one class alone they are 0.

Purified tables of very many families, each in one array: what every set of its attributes says of a row.

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
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bncli.engine.calibration import Calibration, Temperature
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.prediction.factors import expand
from bncli.engine.structures.regrouping import relative_frequencies
from bncli.engine.structures.structure import BinnedAttribute, Family, Grouping


@dataclass(frozen=True)
class ContrastTensor:
    """values (n_1 + 1, n_2 + 1, ..., K): contrasts over the codes of `attributes`, ascending; the last is unobserved.

    An attribute in a coarser binning (`groupings`) has its coarse codes.
    """

    attributes: tuple[int, ...]
    groupings: tuple[Grouping | None, ...]
    values: Array

    @property
    def shown(self) -> Array:
        """The values of attributes that are observed, (n_1, n_2, ..., K)."""
        return self.values[tuple(slice(-1) for _ in self.attributes)]

    def weights(self, schema: Schema) -> tuple[Array, ...]:
        """For every axis the training frequencies of its codes, 0 for the last one."""
        seen = zip(self.attributes, self.groupings, strict=True)
        return tuple(np.append(relative_frequencies(schema.attributes[a], grouping), 0.0) for a, grouping in seen)


MANY_TABLES = 256
"""So many tables of a model, small and without a child, are explained through such arrays."""
MOST_CELLS = 1 << 16
"""Places, those of means included, of a table that is explained so."""
MOST_TOGETHER = 1 << 16
"""Cells that tables over one set of attributes may tell apart together, that one table over these cells is made."""


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
        """Return a family's table, weights (cells, K), purified."""
        binned = family.binned_attributes
        frequencies = tuple(relative_frequencies(schema.attributes[a], grouping) for a, grouping in binned)
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
        """Return every term times a number."""
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
        """Return the term of these axes, (n_i ..., K), in their order."""
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


MOST_ATTRIBUTES = 8


@dataclass(frozen=True)
class Score:
    """Contrasts of the classes as a sum: constant (K,) + the entry of every tensor, + the terms of purified `tables`.

    The constants of the tables are in `constant`.
    """

    constant: Array
    tensors: tuple[ContrastTensor, ...]
    tables: tuple[PureTable, ...] = ()


def contrasts(scores: Array) -> Array:
    """Return (..., K) -> (..., K): each class against the mean of the others."""
    n_labels = scores.shape[-1]
    if n_labels == 1:
        return np.zeros_like(scores)
    centred: Array = scores - scores.mean(axis=-1, keepdims=True)
    centred *= n_labels / (n_labels - 1)
    return centred


def with_unobserved(values: Array) -> Array:
    """Return (codes..., K) with a 0 after the codes of every axis: where its attribute is unobserved."""
    # np.pad takes 13 times as long, which very many small tensors make a fifth of a report
    whole = np.zeros([*(n + 1 for n in values.shape[:-1]), values.shape[-1]])
    whole[(*[slice(-1)] * (values.ndim - 1),)] = values
    return whole


def ordered_tensor(attributes: Sequence[int], groupings: Sequence[Grouping | None], values: Array) -> ContrastTensor:
    """Return the tensor whose axes, in whatever order, belong to these attributes."""
    order = sorted(range(len(attributes)), key=lambda axis: attributes[axis])
    turned = values.transpose(*order, len(order))
    return ContrastTensor(
        tuple(attributes[i] for i in order), tuple(groupings[i] for i in order), np.ascontiguousarray(turned)
    )


def tensor_of(family: Family, weights: Array, schema: Schema) -> ContrastTensor:
    """Return a family's table, weights (cells, K), with what it says where an attribute is unobserved."""
    averages = tuple(
        None if axis == 0 and family.child is not None else relative_frequencies(schema.attributes[a], grouping)
        for axis, (a, grouping) in enumerate(family.binned_attributes)
    )
    rows = contrasts(weights).T.reshape(-1, *family.shape)
    values = np.moveaxis(expand(rows, averages), 0, -1)
    return ordered_tensor(family.attributes, [grouping for _, grouping in family.binned_attributes], values)


def gathered(tensors: Iterable[ContrastTensor], schema: Schema) -> tuple[ContrastTensor, ...]:
    """Return one tensor for each set of attributes, the sum of those over it.

    Small sets first, then in the schema's order.

    Tensors with different binnings of an attribute are added over the coarsest codes that each of them can tell.
    """
    groups = defaultdict[tuple[int, ...], list[ContrastTensor]](list)
    for tensor in tensors:
        groups[tensor.attributes].append(tensor)
    return tuple(_sum(groups[key], schema) for key in sorted(groups, key=lambda key: (len(key), key)))


def _sum(tensors: Sequence[ContrastTensor], schema: Schema) -> ContrastTensor:
    first = tensors[0]
    if len(tensors) == 1:
        return first
    groupings = tuple(
        refinement([tensor.groupings[axis] for tensor in tensors], schema.cardinalities[a])
        for axis, a in enumerate(first.attributes)
    )
    total = sum(_lifted(tensor, groupings, schema) for tensor in tensors)
    return ContrastTensor(first.attributes, groupings, np.asarray(total))


def _lifted(tensor: ContrastTensor, groupings: Sequence[Grouping | None], schema: Schema) -> Array:
    """Return the tensor's values over the finer codes of `groupings`."""
    values = tensor.values
    for axis, (own, finer, a) in enumerate(zip(tensor.groupings, groupings, tensor.attributes, strict=True)):
        if own != finer and own is not None:
            codes = dict(zip(finer or range(schema.cardinalities[a]), own, strict=True))
            values = values.take([*(codes[code] for code in range(len(codes))), max(own) + 1], axis=axis)
    return values


def refinement(groupings: Sequence[Grouping | None], cardinality: int) -> Grouping | None:
    """Return the coarsest binning that each of these can tell: it joins two codes only where all do.

    None: it joins none.
    """
    distinct = list(dict.fromkeys(groupings))
    if None in distinct or len(distinct) == 1:
        return None if None in distinct else distinct[0]
    number: dict[tuple[int, ...], int] = {}
    told_apart = zip(*(grouping for grouping in distinct if grouping is not None), strict=True)
    finest = tuple(number.setdefault(codes, len(number)) for codes in told_apart)
    return None if len(number) == cardinality else finest


def are_many(families: Sequence[Family], cardinalities: Sequence[int]) -> bool:
    """Return whether small families are to be explained through arrays.

    They are many, or their binnings differ widely.
    """
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
    """Return whether the family can be one of many: what it does not see it averages over."""
    return family.by_class and family.child is None and math.prod(n + 1 for n in family.shape) <= MOST_CELLS


def calibrated(score: Score, calibration: Calibration | None) -> Score:
    """Return the score divided by the temperature, where there is one.

    Other maps are of probabilities, and leave scores.
    """
    if calibration is None or not isinstance(calibration.map, Temperature):
        return score
    factor = 1 / calibration.map.temperature
    tensors = tuple(replace(tensor, values=tensor.values * factor) for tensor in score.tensors)
    return Score(score.constant * factor, tensors, tuple(table.times(factor) for table in score.tables))


def purified(score: Score, schema: Schema) -> Score:
    """Return the same score, one tensor a set of attributes, each with mean 0 along every axis."""
    constant = score.constant.copy()
    terms = []
    for tensor in score.tensors:
        for axes, values in terms_of(tensor.values, tensor.weights(schema)).items():
            if axes:
                attributes = tuple(tensor.attributes[axis] for axis in axes)
                terms.append(ContrastTensor(attributes, tuple(tensor.groupings[axis] for axis in axes), values))
            else:
                constant += values
    return Score(constant, gathered(terms, schema), score.tables)


def terms_of(values: Array, weights: Sequence[Array]) -> dict[tuple[int, ...], Array]:
    """Return values (n_1, n_2, ..., K) as a sum of terms by their axes; weights[i] (n_i,) sum to 1."""
    terms: dict[tuple[int, ...], Array] = {(): values}
    for axis, frequencies in enumerate(weights):
        split: dict[tuple[int, ...], Array] = {}
        for axes, term in terms.items():
            mean = np.tensordot(frequencies, term, axes=(0, len(axes)))
            split[axes] = mean
            split[(*axes, axis)] = term - np.expand_dims(mean, len(axes))
        terms = split
    return terms
