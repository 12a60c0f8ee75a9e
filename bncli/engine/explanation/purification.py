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
MOST_ATTRIBUTES it is refused (`bncli.engine.explanation.mixtures`). Cost: (1 + 1/cardinality)^n passes over a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bncli.engine.calibration.maps import Calibration, Temperature
from bncli.engine.data.schema import Schema
from bncli.engine.explanation.contrasts import ContrastTensor, gathered
from bncli.engine.explanation.pure_tables import PureTable
from bncli.engine.kernels.arrays import Array

MOST_ATTRIBUTES = 8


@dataclass(frozen=True)
class Score:
    """Contrasts of the classes as a sum: constant (K,) + the entry of every tensor, + the terms of purified `tables`.

    The constants of the tables are in `constant`.
    """

    constant: Array
    tensors: tuple[ContrastTensor, ...]
    tables: tuple[PureTable, ...] = ()


def calibrated(score: Score, calibration: Calibration | None) -> Score:
    """The score divided by the temperature, where there is one; other maps are of probabilities, and leave scores."""
    if calibration is None or not isinstance(calibration.map, Temperature):
        return score
    factor = 1 / calibration.map.temperature
    tensors = tuple(replace(tensor, values=tensor.values * factor) for tensor in score.tensors)
    return Score(score.constant * factor, tensors, tuple(table.times(factor) for table in score.tables))


def purified(score: Score, schema: Schema) -> Score:
    """The same score, one tensor a set of attributes, each with mean 0 along every axis."""
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
    """values (n_1, n_2, ..., K) as a sum of terms by their axes; weights[i] (n_i,) sum to 1."""
    terms: dict[tuple[int, ...], Array] = {(): values}
    for axis, frequencies in enumerate(weights):
        split: dict[tuple[int, ...], Array] = {}
        for axes, term in terms.items():
            mean = np.tensordot(frequencies, term, axes=(0, len(axes)))
            split[axes] = mean
            split[(*axes, axis)] = term - np.expand_dims(mean, len(axes))
        terms = split
    return terms
