"""Rows with directions, and a slow look at every row that a model can meet."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute, Schema, direction_of
from bncli.engine.model import Ensemble, Model
from tests.datasets import random_dataset
from tests.scoring_oracle import slow_log_probabilities


def directed_dataset(
    n_rows: int,
    cardinalities: Sequence[int],
    directions: Sequence[int],
    *,
    missing: Sequence[bool] = (),
    labels: int = 2,
    towards: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Rows of so many classes, which follow no direction; every attribute is numeric.

    Where one has a missing level, that is the last of its codes. Directions are about the label at `towards`.
    """
    data = random_dataset(n_rows, cardinalities, labels, seed=seed)
    has = missing or (False,) * len(cardinalities)
    attributes = []
    for i, (n, direction) in enumerate(zip(cardinalities, directions, strict=True)):
        counts = np.bincount(data.codes[i], minlength=n).astype(float)
        cuts = tuple(float(c) for c in range(n - 1 - has[i]))
        attributes.append(NumericAttribute(f"a{i}", has[i], tuple(counts), cuts, direction=direction))
    label = None if towards is None else data.schema.labels[towards]
    return replace(data, schema=replace(data.schema, attributes=tuple(attributes), towards=label))


def log_odds(model: Model, codes: Sequence[int]) -> float:
    """Of the label that directions are about against all others, for a row of codes; one past the last: unknown."""
    tables = model.predictor.combined if isinstance(model.predictor, Ensemble) else model.tables
    found = list(slow_log_probabilities(replace(model, predictor=tables), dict(enumerate(codes))))
    towards = model.schema.towards
    own = found.pop(1 if towards is None else model.schema.labels.index(towards))
    return float(own - np.logaddexp.reduce(found))


def worst_fall(model: Model) -> float:
    """The smallest change of the log-odds along any attribute with a direction, in it, over all rows there can be."""
    schema = model.schema
    worst = np.inf
    for i in range(len(schema.attributes)):
        if sign := direction_of(schema, i):
            for others in _others(schema, i):
                line = [log_odds(model, (*others[:i], u, *others[i:])) for u in range(schema.attributes[i].n_values)]
                worst = min(worst, *(sign * np.diff(line)), np.inf)
    return float(worst)


def _others(schema: Schema, i: int) -> itertools.product[tuple[int, ...]]:
    """The codes of all other attributes, unknown ones included."""
    return itertools.product(*(range(n + 1) for j, n in enumerate(schema.cardinalities) if j != i))
