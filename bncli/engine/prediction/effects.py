"""Effects: a model's score as curves of single attributes, tables of pairs, and so on, ordered by importance.

The score is purified (`prediction.purification`), so the effects do not depend on how it was spread over tables. If the
attributes are independent, each distributed by its training frequencies q, the variance of an effect g over T is

    Var(g_T) = 1/K sum over y and x_T of prod over i in T of q_i(x_i) g_T[x_T, y]^2,

and its share is the fraction Var(g_T) / sum of the variances of all effects. Ties go to the smaller set, then to the
order of the schema. The effects of an average of models are the effects of the averaged score.

With very many tables (`PureTable`s), all terms over the same attributes are one joint effect, however each table bins
these attributes. It is the sum of the terms over the common refinement of their groupings. If that has at most
MOST_CELLS cells, or if only one table contains the set, the variance is exact. Otherwise the variance is the mean
square over N_DRAWS random cells, each attribute drawn from its training frequencies and the class uniformly; its
standard error is about 2 %. Such an effect is shown by its averages over coarser groups, which are exact:

    E[g | cell of the coarser groups] = sum over terms f of sum over x of prod over i P(x_i | cell_i) g_f[x]

The draws have a fixed seed, so that a model always has the same effects. With very many tables, at most MOST_EFFECTS
effects are listed. Cost: one pass over the terms; the draws cost as much as explaining N_DRAWS rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model
from bncli.engine.prediction.purification import (
    ContrastTensor,
    PureTable,
    Score,
    common_refinement,
    mixture_of,
    with_unobserved,
)
from bncli.engine.structures.regrouping import group_intervals, relative_frequencies
from bncli.engine.structures.structure import Grouping

MOST_EFFECTS = 1000
"""The maximum number of effects listed for a model with very many tables."""
MOST_CELLS = 1 << 10
"""A joint effect of several tables with more cells is shown by averages over coarser groups."""
N_DRAWS = 1 << 13
NUMBERS_PER_BLOCK = 1 << 22
"""The approximate maximum number of values in the temporary arrays of a block of draws."""
_BINS = (64, 16, 8, 5, 4, 3)
"""The maximum number of groups per attribute, besides a missing level, in a coarsened effect of 1, 2, ... attributes.

The last one also holds for more attributes.
"""
_SEED = 0
_TINY = float(np.finfo(np.float64).tiny)
Attributes = tuple[int, ...]


@dataclass(frozen=True)
class Effect:
    """The effect of a set of attributes, and the fraction of the score's variance that it explains (`share`).

    averaged: whether the tensor holds averages of the effect over coarser binnings.
    """

    tensor: ContrastTensor
    share: float
    averaged: bool = False


class LeftOut(NamedTuple):
    """The number of effects that are not listed, and the fraction of the score's variance that they explain."""

    n_effects: int
    share: float


@dataclass(frozen=True)
class Effects:
    """The effects of a model, by decreasing fraction of the score's variance.

    constant (K,): the mean contrast of each class. models: the number of averaged models, 1 without averaging.
    left_out: a summary of the effects that are not listed, or None if all are.
    """

    constant: Array
    effects: tuple[Effect, ...]
    models: int
    left_out: LeftOut | None = None


def effects_of(model: Model) -> Effects:
    """Return the model's effects, divided by its temperature if it has one; other calibration maps are ignored.

    Raises BncliError if a table has too many attributes.
    """
    mixture, schema = mixture_of(model.predictor, model.schema), model.schema
    score = mixture.averaged().purified(schema).calibrated(model.calibration)
    values = [*(tensor.values for tensor in score.tensors), *(table.entries for table in score.tables)]
    # A power of two that brings the largest value near 1, so that no square overflows.
    largest = max((float(np.abs(array).max()) for array in values), default=0.0)
    unit = math.ldexp(1.0, min(1000, -math.frexp(largest)[1]))
    joint = joint_effects(score, schema, unit) if score.tables else []
    if score.tables:
        variances = [effect.variance for effect in joint]
    else:
        variances = [variance_of(tensor, schema, unit) for tensor in score.tensors]
    total = sum(variances)
    shares = [variance / total if total > 0 else 0.0 for variance in variances]
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    if not score.tables:
        return Effects(score.constant, tuple(Effect(score.tensors[i], shares[i]) for i in order), len(mixture.weights))
    effects = tuple(Effect(joint[i].tensor(schema), shares[i], joint[i].averaged) for i in order[:MOST_EFFECTS])
    hidden = order[MOST_EFFECTS:]
    left_out = LeftOut(len(hidden), sum(shares[i] for i in hidden)) if hidden else None
    return Effects(score.constant, effects, len(mixture.weights), left_out)


def variance_of(tensor: ContrastTensor, schema: Schema, unit: float) -> float:
    """Return the variance of `unit` times an effect."""
    moments: Array = ((unit * tensor.values) ** 2).mean(axis=-1)
    for weights in tensor.weights(schema):
        # the mean over the first axis, so that the next one is first
        moments = np.tensordot(weights, moments, axes=(0, 0))
    return float(moments)


@dataclass(frozen=True)
class EffectPart:
    """The term of one table or tensor over a set of attributes.

    axes: the axes of the source that belong to the attributes, in the order of the set.
    """

    source: PureTable | ContrastTensor
    axes: tuple[int, ...]

    @property
    def groupings(self) -> tuple[Grouping | None, ...]:
        return tuple(self.source.groupings[axis] for axis in self.axes)

    @property
    def values(self) -> Array:
        """The term's values (n_1, ..., K), with the axes in the order of the set."""
        if isinstance(self.source, ContrastTensor):
            return self.source.shown
        order = sorted(self.axes)
        # the source has its axes in ascending order
        turned = [order.index(axis) for axis in self.axes]
        return self.source.values(self.axes).transpose(*turned, len(turned))

    def codes(self, axis: int, n_codes: int) -> Index:
        """Return the term's digit for each of the `n_codes` codes of the attribute at index `axis` of the set."""
        if isinstance(self.source, PureTable):
            return self.source.codes[self.axes[axis]]
        return np.array(self.source.groupings[axis] or range(n_codes), np.intp)


@dataclass(frozen=True)
class JointEffect:
    """The sum of the terms over one set of attributes, with the groupings over which it is shown.

    averaged: whether it is shown by averages, because the common refinement of the parts' groupings has more than
    MOST_CELLS cells. variance: the variance of `unit` times the effect, as in `joint_effects`.
    """

    attributes: Attributes
    parts: tuple[EffectPart, ...]
    groupings: tuple[Grouping | None, ...]
    averaged: bool
    variance: float

    def tensor(self, schema: Schema) -> ContrastTensor:
        """Return the effect in the cells of the groupings, with value 0 where an attribute is unobserved."""
        attributes = [schema.attributes[a] for a in self.attributes]
        if self.averaged:
            total: Array | float = 0.0
            for part in self.parts:
                # averaged over the cells of the coarser groupings; a cell without training rows has 0
                values = part.values
                for i, (attribute, grouping) in enumerate(zip(attributes, self.groupings, strict=True)):
                    codes = np.arange(attribute.cardinality) if grouping is None else np.array(grouping)
                    shape = (int(codes.max()) + 1, values.shape[i])
                    # P(code of the part | coarse group), from the joint weights of both
                    cells = codes * shape[1] + part.codes(i, attribute.cardinality)
                    joint = np.bincount(cells, relative_frequencies(attribute, None), math.prod(shape)).reshape(shape)
                    conditional = joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY)
                    values = np.moveaxis(np.tensordot(conditional, values, axes=(1, i)), 0, i)
                total = total + values
        else:
            # the first code of every cell; all codes of a cell have the same values in every part
            firsts = [
                np.arange(a.cardinality) if grouping is None else np.unique(grouping, return_index=True)[1]
                for a, grouping in zip(attributes, self.groupings, strict=True)
            ]
            total = sum(
                part.values[
                    np.ix_(*(part.codes(i, attributes[i].cardinality)[codes] for i, codes in enumerate(firsts)))
                ]
                for part in self.parts
            )
        return ContrastTensor(self.attributes, self.groupings, with_unobserved(np.asarray(total)))


def joint_effects(score: Score, schema: Schema, unit: float) -> list[JointEffect]:
    """Return the joint effects of a purified score, ordered by the number of attributes and then by the schema.

    Each variance is computed for `unit` times the effect, a scale on which no square overflows.
    """
    parts: dict[Attributes, list[EffectPart]] = {}
    for tensor in score.tensors:
        parts.setdefault(tensor.attributes, []).append(EffectPart(tensor, tuple(range(len(tensor.attributes)))))
    for table in score.tables:
        for key, axes in zip(table.terms, table.subsets[1:], strict=True):
            # the axes in the order of their attributes, as in the set
            ordered = tuple(sorted(axes, key=table.attributes.__getitem__))
            parts.setdefault(key, []).append(EffectPart(table, ordered))
    groupings_of = {key: _joint_groupings(key, members, schema) for key, members in parts.items()}
    # Terms of one table have exact variances. Sets with too many joint cells are sampled; for the others, see below.
    variances: dict[Attributes, float] = {}
    for table in score.tables:
        of_terms = zip(table.terms, table.times(unit).variances().tolist(), strict=True)
        variances.update((key, variance) for key, variance in of_terms if len(parts[key]) == 1)
    variances |= _sampled_variances(score, [key for key in parts if groupings_of[key] is None], schema, unit)
    effects = []
    for key in sorted(parts, key=lambda key: (len(key), key)):
        members, groupings = tuple(parts[key]), groupings_of[key]
        is_averaged = groupings is None
        if groupings is None:
            groupings = _coarse_groupings(key, members, schema)
        effect = JointEffect(key, members, groupings, is_averaged, variances.get(key, math.nan))
        if key not in variances:
            # from the values of the whole effect, to which several tables may add
            effect = replace(effect, variance=variance_of(effect.tensor(schema), schema, unit))
        effects.append(effect)
    return effects


def _joint_groupings(
    key: Attributes, parts: Sequence[EffectPart], schema: Schema
) -> tuple[Grouping | None, ...] | None:
    """Return the common refinement of the parts' groupings, one per attribute.

    Returns None if several parts have a refinement with more than MOST_CELLS cells.
    """
    if len(parts) == 1:
        return parts[0].groupings
    cells = 1
    groupings = []
    for a, of_parts in zip(key, zip(*(part.groupings for part in parts), strict=True), strict=True):
        groupings.append(common_refinement(of_parts, schema.cardinalities[a]))
        cells *= _n_groups(groupings[-1], schema.cardinalities[a])
        if cells > MOST_CELLS:
            return None
    return tuple(groupings)


def _n_groups(grouping: Grouping | None, cardinality: int) -> int:
    return cardinality if grouping is None else max(grouping) + 1


def _coarse_groupings(key: Attributes, parts: Sequence[EffectPart], schema: Schema) -> tuple[Grouping | None, ...]:
    """Return a grouping with few groups for each attribute: the common refinement of the parts, or a coarser one.

    A coarser grouping of a numeric attribute has intervals of about equal weight. A coarser grouping of a categorical
    attribute keeps the most frequent levels (ties: the first) and pools the others. A missing level remains a group of
    its own, the last.
    """
    bins = _BINS[min(len(key), len(_BINS)) - 1]
    groupings: list[Grouping | None] = []
    for a, of_parts in zip(key, zip(*(part.groupings for part in parts), strict=True), strict=True):
        attribute = schema.attributes[a]
        own = common_refinement(of_parts, attribute.cardinality)
        n = attribute.n_values
        if _n_groups(own, attribute.cardinality) - attribute.missing <= bins:
            groupings.append(own)
        elif isinstance(attribute, NumericAttribute):
            groupings.append(group_intervals(attribute, bins))
        elif n <= bins:
            groupings.append(None)
        else:
            by_frequency = sorted(range(n), key=lambda level: -attribute.frequencies[level])
            separate = {level: code for code, level in enumerate(sorted(by_frequency[: bins - 1]))}
            values = (separate.get(level, bins - 1) for level in range(n))
            groupings.append((*values, *[bins] * attribute.missing))
    return tuple(groupings)


def _sampled_variances(
    score: Score, keys: Sequence[Attributes], schema: Schema, unit: float
) -> dict[Attributes, float]:
    """Return the mean square of `unit` times the effect of each set in `keys`, over N_DRAWS random cells."""
    rows = {key: row for row, key in enumerate(keys)}
    others = len(keys)  # an extra row for the terms of all other sets
    tables = [(table, np.array([rows.get(key, others) for key in table.terms])) for table in score.tables]
    tables = [(table, own_rows) for table, own_rows in tables if (own_rows < others).any()]
    tensors = [tensor for tensor in score.tensors if tensor.attributes in rows]
    squares = np.zeros(others + 1)
    step = min(N_DRAWS, max(64, NUMBERS_PER_BLOCK // (others + 1)))
    generator = np.random.default_rng(_SEED)
    for start in range(0, N_DRAWS if keys else 0, step):
        n = min(step, N_DRAWS - start)
        codes: list[Index] = []
        for attribute in schema.attributes:
            if attribute.cardinality:
                codes.append(generator.choice(attribute.cardinality, n, p=relative_frequencies(attribute, None)))
            else:
                codes.append(np.zeros(n, np.intp))  # no table uses an attribute without values
        labels = generator.integers(0, len(schema.labels), n)
        sums = np.zeros((others + 1, n))
        for table, own_rows in tables:
            table.add_to(sums, own_rows, dict(enumerate(codes)), labels, unit)
        for tensor in tensors:
            digits = [
                codes[a] if grouping is None else np.array(grouping)[codes[a]]
                for a, grouping in zip(tensor.attributes, tensor.groupings, strict=True)
            ]
            sums[rows[tensor.attributes]] += unit * tensor.values[(*digits, labels)]
        # the row of all other sets is computed and thrown away
        squares += (sums**2).sum(axis=1)
    return {key: float(squares[row]) / N_DRAWS for key, row in rows.items()}
