"""Rows with missing values that are to be marginalized, and what such rows say, one completion at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Schema
from bncli.engine.model import Model
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.structures.structure import Dag
from bncli.recipe import Recipe
from tests.datasets import random_dataset


def marginalizing(schema: Schema) -> Schema:
    """The schema, its missing values marginalized."""
    attributes = tuple(replace(a, missing=False, frequencies=a.frequencies[: a.n_values]) for a in schema.attributes)
    return replace(schema, attributes=attributes, missing_policy="marginalize")


def with_missing(data: Dataset, share: float, seed: int = 0) -> Dataset:
    """Every value removed with this probability."""
    rng = np.random.default_rng(seed)
    codes = tuple(
        np.where(rng.random(data.n_rows) < share, n, c).astype(code_dtype(n + 1))
        for c, n in zip(data.codes, data.schema.cardinalities, strict=True)
    )
    return replace(data, schema=marginalizing(data.schema), codes=codes)


def complete_rows(data: Dataset, attributes: set[int]) -> Dataset:
    """The rows in which these are observed."""
    observed = [data.codes[i] != data.schema.cardinalities[i] for i in sorted(attributes)]
    return data.take(np.flatnonzero(np.logical_and.reduce(observed)) if observed else np.arange(data.n_rows))


def network_model(dag: Dag, cardinalities: tuple[int, ...], n_labels: int, seed: int) -> Model:
    """The probabilities of the graph on rows at random, their missing values marginalized."""
    data = with_missing(random_dataset(40, cardinalities, n_labels, seed=seed), 0.2, seed)
    tables = generative_tables(Counts(data), dag, "m-estimate:1")
    recipe = Recipe.of(missing_policy="marginalize", param="map", smoothing="m-estimate:1")
    return Model(data.schema, dag, tables, recipe, data.n_rows, "1.2.3")


def slow_log_joint(model: Model, row: Mapping[int, int]) -> list[float]:
    """ln P(y, what the row shows) by enumeration; row[i] is the code of schema attribute i."""
    cardinalities = model.schema.cardinalities
    used = sorted({a for family in model.tables.families for a in family.attributes})
    choices = [range(cardinalities[i]) if row[i] == cardinalities[i] else [row[i]] for i in used]
    totals = [0.0] * len(model.schema.labels)
    for values in itertools.product(*choices):
        completed = dict(zip(used, values, strict=True))
        for y in range(len(totals)):
            totals[y] += math.exp(_log_term(model, completed, y))
    return [math.log(total) for total in totals]


def _log_term(model: Model, row: Mapping[int, int], y: int) -> float:
    term = float(model.tables.bias[y])
    for family, weights in zip(model.tables.families, model.tables.weights, strict=True):
        cell = int(np.ravel_multi_index([row[a] for a in family.attributes], family.shape))
        term += float(weights[cell, y])
    return term


def slow_posterior(model: Model, row: Mapping[int, int]) -> list[float]:
    """ln P(y | what the row shows)."""
    joint = slow_log_joint(model, row)
    top = max(joint)
    log_sum = top + math.log(math.fsum(math.exp(j - top) for j in joint))
    return [j - log_sum for j in joint]


def rows_with_unknowns(model: Model, n: int, seed: int) -> list[NDArray[np.unsignedinteger]]:
    """Codes at random by schema attribute, one in three unobserved."""
    rng = np.random.default_rng(seed)
    return [
        np.where(rng.random(n) < 0.35, c, rng.integers(0, c, n)).astype(code_dtype(c + 1))
        for c in model.schema.cardinalities
    ]
