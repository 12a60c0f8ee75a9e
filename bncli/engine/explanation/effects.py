"""Effects: a model's score as curves of single attributes, tables of pairs, and so on, by how much they matter.

The score is purified (`bncli.engine.explanation.purification`), so the effects do not depend on how it was spread over
tables. With independent attributes, each from its training frequencies q, the variance of an effect g over T is

    Var(g_T) = 1/K sum over y and x_T of prod over i in T of q_i(x_i) g_T[x_T, y]^2,

and its share is that of the sum of all. Conventions: attributes are taken as independent, so that the shares add up
to 1; ties go to the smaller set, then to the schema's order. Of an average of models these are the effects of the
averaged score.

Of very many tables (`explanation.pure_tables`) those over the same attributes are one effect, however each of them sees
these; see `explanation.joint_effects`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.explanation.contrasts import ContrastTensor
from bncli.engine.explanation.joint_effects import joint_effects, variance
from bncli.engine.explanation.mixtures import mixture_of
from bncli.engine.explanation.purification import Score, calibrated, purified
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model

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


def effects_of(model: Model) -> Effects:
    """The effects of what the model scores by: with a temperature divided by it, without the other calibration maps."""
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
    """Those of a score with very many tables, the first of them told."""
    unit = _unit([*(tensor.values for tensor in score.tensors), *(table.entries for table in score.tables)])
    joint = joint_effects(score, schema, unit)
    shares = _shares([effect.variance for effect in joint])
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    told, hidden = order[:MOST_EFFECTS], order[MOST_EFFECTS:]
    effects = tuple(Effect(joint[i].tensor(schema), shares[i], joint[i].averaged) for i in told)
    left_out = LeftOut(len(hidden), sum(shares[i] for i in hidden)) if hidden else None
    return Effects(score.constant, effects, models, left_out)


def _shares(variances: Sequence[float]) -> list[float]:
    total = sum(variances)
    return [variance / total if total > 0 else 0.0 for variance in variances]


def _unit(values: Sequence[Array]) -> float:
    """A power of two that brings the largest value near 1, so that no square overflows."""
    largest = max((float(np.abs(one).max()) for one in values), default=0.0)
    return math.ldexp(1.0, min(1000, -math.frexp(largest)[1]))
