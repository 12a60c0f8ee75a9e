"""Effects: a model's score as curves of single attributes, tables of pairs, and so on, by how much they matter.

The score is purified (`bncli.engine.explanation.purification`), so the effects do not depend on how it was spread over
tables. With independent attributes, each from its training frequencies q, the variance of an effect g over T is

    Var(g_T) = 1/K sum over y and x_T of prod over i in T of q_i(x_i) g_T[x_T, y]^2,

and its share is that of the sum of all. Conventions: attributes are taken as independent, so that the shares add up
to 1; ties go to the smaller set, then to the schema's order. Of an average of models these are the effects of the
averaged score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.explanation.contrasts import ContrastTensor
from bncli.engine.explanation.mixtures import mixture_of
from bncli.engine.explanation.purification import purified
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model


@dataclass(frozen=True)
class Effect:
    """What a set of attributes does; `share` of the score's variance, between 0 and 1."""

    tensor: ContrastTensor
    share: float


@dataclass(frozen=True)
class Effects:
    """constant (K,): the contrasts of the average row; effects by falling share; `models`: how many are averaged."""

    constant: Array
    effects: tuple[Effect, ...]
    models: int


def effects_of(model: Model) -> Effects:
    """The effects of what the model scores by."""
    mixture = mixture_of(model.predictor, model.schema)
    score = purified(mixture.averaged(), model.schema)
    unit = _unit(score.tensors)
    variances = [_variance(tensor, model.schema, unit) for tensor in score.tensors]
    total = sum(variances)
    shares = [variance / total if total > 0 else 0.0 for variance in variances]
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    effects = tuple(Effect(score.tensors[i], shares[i]) for i in order)
    return Effects(score.constant, effects, len(mixture.weights))


def _unit(tensors: Sequence[ContrastTensor]) -> float:
    """A power of two that brings the largest value near 1, so that no square overflows."""
    largest = max((float(np.abs(tensor.values).max()) for tensor in tensors), default=0.0)
    return math.ldexp(1.0, min(1000, -math.frexp(largest)[1]))


def _variance(tensor: ContrastTensor, schema: Schema, unit: float) -> float:
    """Of the effect times `unit`."""
    moments: Array = ((unit * tensor.values) ** 2).mean(axis=-1)
    for weights in tensor.weights(schema):
        moments = np.tensordot(weights, moments, axes=(0, 0))
    return float(moments)
