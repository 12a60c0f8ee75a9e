"""Contrast tensors: a table with an axis an attribute, a place for "unobserved", and the contrasts of the classes.

What a table adds to all classes alike says nothing. So a contrast tensor holds, for every class, how far it is raised
above the others, the log-odds of the class against the geometric mean of the others:

    V[x, y] = W[x, y] - 1/(K - 1) sum over c != y of W[x, c]  =  K/(K - 1) (W[x, y] - mean over c of W[x, c])

For two classes these are the log-odds ln P(y)/P(other). Contrasts sum to 0 over the classes and determine the
probabilities. Conventions: with one class alone they are 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.factors import expand
from bncli.engine.structures.binning import frequencies_of
from bncli.engine.structures.structure import Family, Grouping


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
        return tuple(np.append(frequencies_of(schema.attributes[a], grouping), 0.0) for a, grouping in seen)


def contrasts(scores: Array) -> Array:
    """(..., K) -> (..., K): each class against the mean of the others."""
    n_labels = scores.shape[-1]
    if n_labels == 1:
        return np.zeros_like(scores)
    centred: Array = scores - scores.mean(axis=-1, keepdims=True)
    centred *= n_labels / (n_labels - 1)
    return centred


def with_unobserved(values: Array) -> Array:
    """(codes..., K) with a 0 after the codes of every axis: where its attribute is unobserved."""
    # np.pad takes 13 times as long, which very many small tensors make a fifth of a report
    whole = np.zeros([*(n + 1 for n in values.shape[:-1]), values.shape[-1]])
    whole[(*[slice(-1)] * (values.ndim - 1),)] = values
    return whole


def ordered_tensor(attributes: Sequence[int], groupings: Sequence[Grouping | None], values: Array) -> ContrastTensor:
    """The tensor whose axes, in whatever order, belong to these attributes."""
    order = sorted(range(len(attributes)), key=lambda axis: attributes[axis])
    turned = values.transpose(*order, len(order))
    return ContrastTensor(
        tuple(attributes[i] for i in order), tuple(groupings[i] for i in order), np.ascontiguousarray(turned)
    )


def tensor_of(family: Family, weights: Array, schema: Schema) -> ContrastTensor:
    """A family's table, weights (cells, K), with what it says where an attribute is unobserved."""
    averages = tuple(
        None if axis == 0 and family.child is not None else frequencies_of(schema.attributes[a], grouping)
        for axis, (a, grouping) in enumerate(family.binned_attributes)
    )
    rows = contrasts(weights).T.reshape(-1, *family.shape)
    values = np.moveaxis(expand(rows, averages), 0, -1)
    return ordered_tensor(family.attributes, [grouping for _, grouping in family.binned_attributes], values)


def gathered(tensors: Iterable[ContrastTensor], schema: Schema) -> tuple[ContrastTensor, ...]:
    """One tensor for each set of attributes, the sum of those over it; small sets first, then in the schema's order.

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


def refinement(groupings: Sequence[Grouping | None], cardinality: int) -> Grouping | None:
    """The coarsest binning that each of these can tell: it joins two codes only where all do; None: it joins none."""
    distinct = list(dict.fromkeys(groupings))
    if None in distinct or len(distinct) == 1:
        return None if None in distinct else distinct[0]
    number: dict[tuple[int, ...], int] = {}
    told_apart = zip(*(grouping for grouping in distinct if grouping is not None), strict=True)
    finest = tuple(number.setdefault(codes, len(number)) for codes in told_apart)
    return None if len(number) == cardinality else finest


def _lifted(tensor: ContrastTensor, groupings: Sequence[Grouping | None], schema: Schema) -> Array:
    """The tensor's values over the finer codes of `groupings`."""
    values = tensor.values
    for axis, (own, finer, a) in enumerate(zip(tensor.groupings, groupings, tensor.attributes, strict=True)):
        if own != finer and own is not None:
            codes = dict(zip(finer or range(schema.cardinalities[a]), own, strict=True))
            values = values.take([*(codes[code] for code in range(len(codes))), max(own) + 1], axis=axis)
    return values
