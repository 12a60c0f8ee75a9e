"""Effects: a model's score as curves of single attributes, tables of pairs, and so on, by how much they matter.

The score is purified (`bncli.engine.prediction.purification`), so the effects do not depend on how it was spread over
tables. With independent attributes, each from its training frequencies q, the variance of an effect g over T is

    Var(g_T) = 1/K sum over y and x_T of prod over i in T of q_i(x_i) g_T[x_T, y]^2,

and its share is that of the sum of all. Conventions: attributes are taken as independent, so that the shares add up
to 1; ties go to the smaller set, then to the schema's order. Of an average of models these are the effects of the
averaged score.

Of very many tables (`explanation.pure_tables`) those over the same attributes are one effect, however each of them sees
these; see `explanation.joint_effects`.

Effects of very many tables: all terms over the same attributes are one, however each table sees these.

The joint effect of a set is the sum of its terms over the cells that their groupings tell apart together. Where these
are few it is made, and its variance is exact; so is that of a set that one table alone has. Elsewhere the variance is
the mean square over N_DRAWS cells, each attribute drawn from its training frequencies and the class uniformly: the
standard error is about 2 % of it. Such an effect is told by its averages over coarser groups, which follow exactly:

    E[g | cell of the coarser groups] = sum over terms f of sum over x of prod over i P(x_i | cell_i) g_f[x]

Conventions: draws have a fixed seed, so that a model has the same effects whenever it is asked. Cost: one pass over the
terms, the draws like so many explained rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model
from bncli.engine.prediction.mixtures import mixture_of
from bncli.engine.prediction.purification import (
    ContrastTensor,
    PureTable,
    Score,
    calibrated,
    purified,
    refinement,
    with_unobserved,
)
from bncli.engine.structures.regrouping import group_intervals, relative_frequencies
from bncli.engine.structures.structure import Grouping

MOST_CELLS = 1 << 10
"""Cells of a joint effect that is made."""
N_DRAWS = 1 << 13
NUMBERS_PER_BLOCK = 1 << 22
"""Most numbers in the temporaries of a block of draws."""
_BINS = (64, 16, 8, 5, 4, 3)
"""Coarser groups of an attribute in an effect of one attribute, of two, ...; the last for more."""
_SEED = 0
_TINY = float(np.finfo(np.float64).tiny)
Attributes = tuple[int, ...]


@dataclass(frozen=True)
class EffectTable:
    """What a table says of a set of attributes: the term of its `axes`, these in the order of the set."""

    source: PureTable | ContrastTensor
    axes: tuple[int, ...]

    @property
    def groupings(self) -> tuple[Grouping | None, ...]:
        return tuple(self.source.groupings[axis] for axis in self.axes)

    @property
    def values(self) -> Array:
        """(n_i ..., K), the axes in the order of the set."""
        if isinstance(self.source, ContrastTensor):
            return self.source.shown
        order = sorted(self.axes)
        turned = [order.index(axis) for axis in self.axes]
        return self.source.values(self.axes).transpose(*turned, len(turned))

    def codes(self, axis: int, n_codes: int) -> Index:
        """Return the digit of every code of the set's attribute number `axis`."""
        if isinstance(self.source, PureTable):
            return self.source.codes[self.axes[axis]]
        return np.array(self.source.groupings[axis] or range(n_codes), np.intp)


@dataclass(frozen=True)
class JointEffect:
    """The effect of parts over the same attributes, over these groupings; variance times the square of the unit.

    `averaged`: the groupings are coarser than the parts tell apart together.
    """

    attributes: Attributes
    parts: tuple[EffectTable, ...]
    groupings: tuple[Grouping | None, ...]
    averaged: bool
    variance: float

    def tensor(self, schema: Schema) -> ContrastTensor:
        """Return the sum of the parts over the cells, or their averages over the coarser ones."""
        return _tensor(self.attributes, self.parts, self.groupings, self.averaged, schema)


MOST_EFFECTS = 1000
"""Of very many tables only so many effects are told; of the others how many, and their share."""


@dataclass(frozen=True)
class Effect:
    """What a set of attributes does; `share` of the score's variance, between 0 and 1.

    `averaged`: the tensor has averages over coarser binnings than the effect has.
    """

    tensor: ContrastTensor
    share: float
    averaged: bool = False


class LeftOut(NamedTuple):
    """How many effects are not told, and their share together."""

    n_effects: int
    share: float


@dataclass(frozen=True)
class Effects:
    """constant (K,): the contrasts of the average row; effects by falling share; `models`: how many are averaged."""

    constant: Array
    effects: tuple[Effect, ...]
    models: int
    left_out: LeftOut | None = None


def joint_effects(score: Score, schema: Schema, unit: float) -> list[JointEffect]:
    """Return the effects of a purified score, small sets first, then in the schema's order."""
    parts = _parts(score)
    fine = {key: _common_grouping(key, some, schema) for key, some in parts.items()}
    variances = _variances_of_single(score, parts, unit)
    variances |= _sampled_variances(score, [key for key in parts if fine[key] is None], schema, unit)
    effects = []
    for key in sorted(parts, key=lambda key: (len(key), key)):
        some, groupings = tuple(parts[key]), fine[key]
        averaged = groupings is None
        if groupings is None:
            # A few groups of every attribute: those that the parts tell apart, or if they are more, coarser ones.
            bins = _BINS[min(len(key), len(_BINS)) - 1]
            coarser = []
            for a, seen in zip(key, zip(*(part.groupings for part in some), strict=True), strict=True):
                attribute, own = schema.attributes[a], refinement(seen, schema.cardinalities[a])
                if _size(own, attribute.cardinality) - attribute.missing <= bins:
                    coarser.append(own)
                elif isinstance(attribute, NumericAttribute):
                    coarser.append(group_intervals(attribute, bins))
                else:
                    coarser.append(_frequent_levels(attribute, bins))
            groupings = tuple(coarser)
        if key not in variances:
            variances[key] = variance(_tensor(key, some, groupings, averaged, schema), schema, unit)
        effects.append(JointEffect(key, some, groupings, averaged, variances[key]))
    return effects


def _parts(score: Score) -> dict[Attributes, list[EffectTable]]:
    """Return what the tensors and tables of a score say of each set of attributes."""
    found: dict[Attributes, list[EffectTable]] = {}
    for tensor in score.tensors:
        found.setdefault(tensor.attributes, []).append(EffectTable(tensor, tuple(range(len(tensor.attributes)))))
    for table in score.tables:
        for key, axes in zip(table.terms, table.subsets[1:], strict=True):
            ordered = tuple(sorted(axes, key=table.attributes.__getitem__))
            found.setdefault(key, []).append(EffectTable(table, ordered))
    return found


def _common_grouping(
    key: Attributes, parts: Sequence[EffectTable], schema: Schema
) -> tuple[Grouping | None, ...] | None:
    """Return the groupings that the parts tell apart together; None where they have too many cells."""
    if len(parts) == 1:
        return parts[0].groupings
    cells = 1
    groupings = []
    for a, seen in zip(key, zip(*(part.groupings for part in parts), strict=True), strict=True):
        groupings.append(refinement(seen, schema.cardinalities[a]))
        cells *= _size(groupings[-1], schema.cardinalities[a])
        if cells > MOST_CELLS:
            return None
    return tuple(groupings)


def _size(grouping: Grouping | None, cardinality: int) -> int:
    return cardinality if grouping is None else max(grouping) + 1


def _variances_of_single(
    score: Score, parts: Mapping[Attributes, Sequence[EffectTable]], unit: float
) -> dict[Attributes, float]:
    """Of sets that one table alone has."""
    by_table = (zip(table.terms, table.times(unit).variances().tolist(), strict=True) for table in score.tables)
    return {key: value for terms in by_table for key, value in terms if len(parts[key]) == 1}


def _sampled_variances(
    score: Score, keys: Sequence[Attributes], schema: Schema, unit: float
) -> dict[Attributes, float]:
    """Return mean squares of the effects of these sets over drawn cells."""
    rows = {key: row for row, key in enumerate(keys)}
    others = len(keys)
    tables = [(table, np.array([rows.get(key, others) for key in table.terms])) for table in score.tables]
    tables = [(table, places) for table, places in tables if (places < others).any()]
    tensors = [tensor for tensor in score.tensors if tensor.attributes in rows]
    squares = np.zeros(others + 1)
    step = min(N_DRAWS, max(64, NUMBERS_PER_BLOCK // (others + 1)))
    generator = np.random.default_rng(_SEED)
    for start in range(0, N_DRAWS if keys else 0, step):
        n = min(step, N_DRAWS - start)
        codes = [_sampled_codes(generator, attribute, n) for attribute in schema.attributes]
        labels = generator.integers(0, len(schema.labels), n)
        sums = np.zeros((others + 1, n))
        for table, places in tables:
            table.add_to(sums, places, dict(enumerate(codes)), labels, unit)
        for tensor in tensors:
            sums[rows[tensor.attributes]] += unit * _looked_up(tensor, codes, labels)
        squares += (sums**2).sum(axis=1)
    return {key: float(squares[row]) / N_DRAWS for key, row in rows.items()}


def _sampled_codes(generator: np.random.Generator, attribute: Attribute, n: int) -> Index:
    """Return codes of so many rows by the training frequencies.

    Of an attribute without values, which no table is over, 0.
    """
    if not attribute.cardinality:
        return np.zeros(n, np.intp)
    return generator.choice(attribute.cardinality, n, p=relative_frequencies(attribute, None))


def _looked_up(tensor: ContrastTensor, codes: Sequence[Index], labels: Index) -> Array:
    seen = zip(tensor.attributes, tensor.groupings, strict=True)
    digits = (codes[a] if grouping is None else np.array(grouping)[codes[a]] for a, grouping in seen)
    return np.asarray(tensor.values[(*digits, labels)])


def _frequent_levels(attribute: Attribute, bins: int) -> Grouping | None:
    """Return the most frequent levels by themselves, the others together, the last but a missing level.

    Ties: the first.
    """
    n = attribute.n_values
    if n <= bins:
        return None
    order = sorted(range(n), key=lambda level: -attribute.frequencies[level])
    kept = {level: code for code, level in enumerate(sorted(order[: bins - 1]))}
    values = (kept.get(level, bins - 1) for level in range(n))
    return (*values, *[bins] * attribute.missing)


def _tensor(
    key: Attributes,
    parts: Sequence[EffectTable],
    groupings: tuple[Grouping | None, ...],
    averaged: bool,
    schema: Schema,
) -> ContrastTensor:
    """Return the sum of the parts; 0 where an attribute is unobserved."""
    attributes = [schema.attributes[a] for a in key]
    if averaged:
        total = np.asarray(sum(_averaged(part, groupings, attributes) for part in parts))
    else:
        firsts = [
            np.arange(a.cardinality) if grouping is None else np.unique(grouping, return_index=True)[1]
            for a, grouping in zip(attributes, groupings, strict=True)
        ]
        total = np.asarray(sum(_lifted(part, firsts, attributes) for part in parts))
    return ContrastTensor(key, groupings, with_unobserved(total))


def _averaged(part: EffectTable, groupings: Sequence[Grouping | None], attributes: Sequence[Attribute]) -> Array:
    """Return the part's averages over the cells of coarser groupings; 0 where training had no row."""
    values = part.values
    for i, (attribute, grouping) in enumerate(zip(attributes, groupings, strict=True)):
        codes = np.arange(attribute.cardinality) if grouping is None else np.array(grouping)
        shape = (int(codes.max()) + 1, values.shape[i])
        cells = codes * shape[1] + part.codes(i, attribute.cardinality)
        joint = np.bincount(cells, relative_frequencies(attribute, None), math.prod(shape)).reshape(shape)
        given = joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY)
        values = np.moveaxis(np.tensordot(given, values, axes=(1, i)), 0, i)
    return values


def _lifted(part: EffectTable, firsts: Sequence[Index], attributes: Sequence[Attribute]) -> Array:
    """Return the part's values over the cells of finer groupings, of whose cells these are the first codes."""
    digits = [part.codes(i, attributes[i].cardinality)[codes] for i, codes in enumerate(firsts)]
    return np.asarray(part.values[np.ix_(*digits)])


def variance(tensor: ContrastTensor, schema: Schema, unit: float) -> float:
    """Of the effect times `unit`."""
    moments: Array = ((unit * tensor.values) ** 2).mean(axis=-1)
    for weights in tensor.weights(schema):
        moments = np.tensordot(weights, moments, axes=(0, 0))
    return float(moments)


def effects_of(model: Model) -> Effects:
    """Return the effects on the model's scores: divided by a temperature, without other calibration maps."""
    mixture = mixture_of(model.predictor, model.schema)
    score = calibrated(purified(mixture.averaged(), model.schema), model.calibration)
    if score.tables:
        return _of_many(score, model.schema, len(mixture.weights))
    unit = _unit([tensor.values for tensor in score.tensors])
    shares = _shares([variance(tensor, model.schema, unit) for tensor in score.tensors])
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    effects = tuple(Effect(score.tensors[i], shares[i]) for i in order)
    return Effects(score.constant, effects, len(mixture.weights))


def _of_many(score: Score, schema: Schema, models: int) -> Effects:
    """Return those of a score with very many tables, the first of them told."""
    unit = _unit([*(tensor.values for tensor in score.tensors), *(table.entries for table in score.tables)])
    joint = joint_effects(score, schema, unit)
    shares = _shares([effect.variance for effect in joint])
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    told, hidden = order[:MOST_EFFECTS], order[MOST_EFFECTS:]
    effects = tuple(Effect(joint[i].tensor(schema), shares[i], joint[i].averaged) for i in told)
    left_out = LeftOut(len(hidden), sum(shares[i] for i in hidden)) if hidden else None
    return Effects(score.constant, effects, models, left_out)


def _unit(values: Sequence[Array]) -> float:
    """Return a power of two that brings the largest value near 1, so that no square overflows."""
    largest = max((float(np.abs(one).max()) for one in values), default=0.0)
    return math.ldexp(1.0, min(1000, -math.frexp(largest)[1]))


def _shares(variances: Sequence[float]) -> list[float]:
    total = sum(variances)
    return [variance / total if total > 0 else 0.0 for variance in variances]
