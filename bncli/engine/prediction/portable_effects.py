"""The effects of a model as tables that a program looks up: for scorecards, and for programs that explain themselves.

    contrast[y] (x) = constant[y] + sum over the tables of entries[y, cell],

the log-odds of class y against the geometric mean of the others, for two classes ln P(y)/P(other), where each table is
purified (`bncli.engine.prediction.purification`): one for every set of attributes, with mean 0 along each axis. Every
table has entries for "unobserved".

Conventions: an average of models has no such sum and is refused, and so are effects that would have more cells than
MOST_CELLS.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.prediction.mixtures import mixture_of
from bncli.engine.prediction.portable import Input, PortableTable
from bncli.engine.prediction.purification import (
    ContrastTensor,
    PureTable,
    Score,
    calibrated,
    gathered,
    ordered_tensor,
    purified,
    refinement,
    with_unobserved,
)
from bncli.errors import ModelError

MOST_CELLS = 1 << 22
"""Of all effects together."""


@dataclass(frozen=True)
class PortableEffects:
    """constant (K,); tables with entries (K, cells), without averages, small sets first; those of a set are added."""

    constant: Array
    tables: tuple[PortableTable, ...]


def portable_effects(model: Model, inputs: Sequence[Input], *, apart: bool = False) -> PortableEffects:
    """Return the effects over the inputs of a program; ModelError where they are no sum of tables, or too large.

    A set of attributes has one table; `apart`: several in different binnings, where one would have more cells.
    """
    mixture = mixture_of(model.predictor, model.schema)
    if len(mixture.weights) > 1:
        what = f"the model averages the probabilities of {len(mixture.weights):,} models: no effects add up to them"
        raise ModelError(what, hint="learn one with --structure tan or interactions, say, and without --param kbma")
    score = purified(mixture.averaged(), model.schema)
    score = calibrated(Score(score.constant, (*score.tensors, *_terms(score.tables))), model.calibration)
    parts = list(_parts(score.tensors, model.schema, apart))
    _refuse_large(parts, model.schema)
    place = {one.name: p for p, one in enumerate(inputs)}
    places = [place.get(attribute.name, -1) for attribute in model.schema.attributes]
    tensors = [tensor for part in parts for tensor in gathered(part, model.schema)]
    return PortableEffects(score.constant, tuple(_table(tensor, places) for tensor in tensors))


def _terms(tables: Sequence[PureTable]) -> Iterator[ContrastTensor]:
    """Yield every term of each of very many tables; along an axis unobserved it is 0."""
    for table in tables:
        for axes in table.subsets[1:]:
            values = table.values(axes)
            attributes = [table.attributes[axis] for axis in axes]
            yield ordered_tensor(attributes, [table.groupings[axis] for axis in axes], with_unobserved(values))


def _parts(tensors: Sequence[ContrastTensor], schema: Schema, apart: bool) -> Iterator[list[ContrastTensor]]:
    """Tensors of one set that become one table; the sets in order."""
    by_set = defaultdict[tuple[int, ...], list[ContrastTensor]](list)
    for tensor in tensors:
        by_set[tensor.attributes].append(tensor)
    for attributes in sorted(by_set, key=lambda key: (len(key), key)):
        together = by_set[attributes]
        alike = defaultdict[object, list[ContrastTensor]](list)
        for tensor in together:
            alike[tensor.groupings].append(tensor)
        smaller = apart and sum(_cells(one, schema) for one in alike.values()) < _cells(together, schema)
        yield from alike.values() if smaller else [together]


def _cells(tensors: Sequence[ContrastTensor], schema: Schema) -> int:
    """Of the sum of tensors over one set."""
    sizes = []
    for i, a in enumerate(tensors[0].attributes):
        grouping = refinement([one.groupings[i] for one in tensors], schema.cardinalities[a])
        sizes.append(len(set(grouping)) if grouping else schema.cardinalities[a])
    return math.prod(n + 1 for n in sizes)


def _refuse_large(parts: Sequence[Sequence[ContrastTensor]], schema: Schema) -> None:
    """Count cells before tensors in different binnings are added."""
    cells = sum(_cells(part, schema) for part in parts)
    if cells > MOST_CELLS:
        what = f"the effects of the model are too large to be written: {cells:,} cells"
        raise ModelError(what, hint=f"at most {MOST_CELLS:,} can be; learn with fewer parents, or with --effort 1")


def _table(tensor: ContrastTensor, places: Sequence[int]) -> PortableTable:
    shape = tensor.values.shape[:-1]
    digits = tuple((*(g or range(n - 1)), n - 1) for g, n in zip(tensor.groupings, shape, strict=True))
    entries = np.moveaxis(tensor.values, -1, 0).reshape(tensor.values.shape[-1], -1)
    return PortableTable(tuple(places[a] for a in tensor.attributes), digits, shape, entries)
