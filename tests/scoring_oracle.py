"""A slow, obvious reference for scoring: one row, one family, one completion of the unknowns at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import Schema
from bncli.engine.model import Model
from bncli.engine.structures.structure import Family
from tests.oracles import digit


def slow_log_probabilities(model: Model, row: dict[int, int]) -> list[float]:
    """One row by the definition: an unknown child drops its family, unknown parents are averaged out."""
    scores = [float(b) for b in model.tables.bias]
    for family, weights in zip(model.tables.families, model.tables.weights, strict=True):
        for y in range(len(scores)):
            scores[y] += slow_entry(model.schema, family, weights[:, y], row)
    top = max(scores)
    log_sum = top + math.log(math.fsum(math.exp(s - top) for s in scores))
    return [s - log_sum for s in scores]


def slow_entry(schema: Schema, family: Family, weights: NDArray[np.float64], row: dict[int, int]) -> float:
    unknown = [a for a in family.attributes if row[a] == schema.attributes[a].cardinality]
    if family.child in unknown:
        return 0.0
    total = 0.0
    for values in itertools.product(*(range(schema.attributes[a].cardinality) for a in unknown)):
        completed = row | dict(zip(unknown, values, strict=True))
        share = math.prod(
            schema.attributes[a].frequencies[completed[a]] / sum(schema.attributes[a].frequencies) for a in unknown
        )
        cell = 0
        for position, (a, n) in enumerate(zip(family.attributes, family.shape, strict=True)):
            cell = cell * n + digit(family, position, completed[a])
        total += share * float(weights[cell])
    return total
