"""The effects of a model as tables that a program looks up: for scorecards, and for programs that explain themselves.

    contrast[y] (x) = constant[y] + sum over the tables of entries[y, cell],

the log-odds of class y against the geometric mean of the others, for two classes ln P(y)/P(other), where each table is
purified (`bncli.engine.explanation.purification`): one for every set of attributes, with mean 0 along each axis. Every
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
from bncli.engine.explanation.contrasts import ContrastTensor, gathered, ordered_tensor, refinement
from bncli.engine.explanation.mixtures import mixture_of
from bncli.engine.explanation.pure_tables import PureTable
from bncli.engine.explanation.purification import Score, calibrated, purified
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.prediction.portable import Input, PortableTable
from bncli.errors import ModelError

MOST_CELLS = 1 << 22
"""Of all effects together."""


@dataclass(frozen=True)
class PortableEffects:
    """constant (K,); tables with entries (K, cells), without averages, small sets first."""

    constant: Array
    tables: tuple[PortableTable, ...]


def portable_effects(model: Model, inputs: Sequence[Input]) -> PortableEffects:
    """The effects over the inputs of a program; ModelError where they are no sum of tables, or too large."""
    mixture = mixture_of(model.predictor, model.schema)
    if len(mixture.weights) > 1:
        what = f"the model averages the probabilities of {len(mixture.weights):,} models: no effects add up to them"
        raise ModelError(what, hint="learn one with --structure tan or interactions, say, and without --param kbma")
    score = purified(mixture.averaged(), model.schema)
    score = calibrated(Score(score.constant, (*score.tensors, *_terms(score.tables))), model.calibration)
    _refuse_large(score.tensors, model.schema)
    place = {one.name: p for p, one in enumerate(inputs)}
    places = [place.get(attribute.name, -1) for attribute in model.schema.attributes]
    tensors = gathered(score.tensors, model.schema)
    return PortableEffects(score.constant, tuple(_table(tensor, places) for tensor in tensors))


def _terms(tables: Sequence[PureTable]) -> Iterator[ContrastTensor]:
    """Every term of each of very many tables; along an axis unobserved it is 0."""
    for table in tables:
        for axes in table.subsets[1:]:
            values = table.values(axes)
            values = np.pad(values, [*([(0, 1)] * len(axes)), (0, 0)])
            attributes = [table.attributes[axis] for axis in axes]
            yield ordered_tensor(attributes, [table.groupings[axis] for axis in axes], values)


def _refuse_large(tensors: Sequence[ContrastTensor], schema: Schema) -> None:
    """Counts cells before tensors in different binnings are added."""
    by_set = defaultdict[tuple[int, ...], list[ContrastTensor]](list)
    for tensor in tensors:
        by_set[tensor.attributes].append(tensor)
    cells = 0
    for attributes, together in by_set.items():
        joint = [
            refinement([one.groupings[i] for one in together], schema.cardinalities[a])
            for i, a in enumerate(attributes)
        ]
        sizes = [len(set(g)) if g else schema.cardinalities[a] for g, a in zip(joint, attributes, strict=True)]
        cells += math.prod(n + 1 for n in sizes)
    if cells > MOST_CELLS:
        what = f"the effects of the model are too large to be written: {cells:,} cells"
        raise ModelError(what, hint=f"at most {MOST_CELLS:,} can be; learn with fewer parents, or with --effort 1")


def _table(tensor: ContrastTensor, places: Sequence[int]) -> PortableTable:
    shape = tensor.values.shape[:-1]
    digits = tuple((*(g or range(n - 1)), n - 1) for g, n in zip(tensor.groupings, shape, strict=True))
    entries = np.moveaxis(tensor.values, -1, 0).reshape(tensor.values.shape[-1], -1)
    return PortableTable(tuple(places[a] for a in tensor.attributes), digits, shape, entries)
