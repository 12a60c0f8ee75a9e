"""A slow, obvious analysis of variance: every cell of all attributes, one conditional mean after the other."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import Schema
from bncli.engine.model import Model, Tables
from tests.scoring_oracle import slow_entry

Floats = NDArray[np.float64]
Row = dict[int, int]


def slow_contrasts(tables: Tables, schema: Schema, row: Row) -> Floats:
    """Return how far every class is raised above the mean of the others."""
    scores = [float(b) for b in tables.bias]
    for family, weights in zip(tables.families, tables.weights, strict=True):
        for y in range(len(scores)):
            scores[y] += slow_entry(schema, family, weights[:, y], row)
    return against_others(scores)


def against_others(scores: list[float]) -> Floats:
    n = len(scores)
    return np.array([s - (math.fsum(scores) - s) / (n - 1) for s in scores])


def frequencies(schema: Schema, attribute: int) -> Floats:
    counts = np.array(schema.attributes[attribute].frequencies)
    return counts / counts.sum()


def slow_terms(tables: Tables, schema: Schema) -> dict[tuple[int, ...], Floats]:
    """Return g_T over all cells of T and classes, by inclusion and exclusion of conditional means."""
    n = len(schema.attributes)
    every = [range(c) for c in schema.cardinalities]
    score = np.array([slow_contrasts(tables, schema, dict(enumerate(cell))) for cell in itertools.product(*every)])
    score = score.reshape(*schema.cardinalities, -1)
    means = {}
    for subset in subsets(range(n)):
        mean = score
        for axis in reversed([a for a in range(n) if a not in subset]):
            mean = np.tensordot(mean, frequencies(schema, axis), axes=(axis, 0))
        means[subset] = mean
    return {subset: sum_of_signs(means, subset, schema) for subset in means}


def sum_of_signs(means: dict[tuple[int, ...], Floats], subset: tuple[int, ...], schema: Schema) -> Floats:
    total = np.zeros(means[subset].shape)
    for part in subsets(subset):
        shape = [schema.cardinalities[a] if a in part else 1 for a in subset]
        total += (-1) ** (len(subset) - len(part)) * means[part].reshape(*shape, -1)
    return total


def slow_variance(term: Floats, subset: tuple[int, ...], schema: Schema) -> float:
    total = 0.0
    for cell in itertools.product(*(range(schema.cardinalities[a]) for a in subset)):
        share = math.prod(frequencies(schema, a)[code] for a, code in zip(subset, cell, strict=True))
        total += share * float((term[cell] ** 2).mean())
    return total


def subsets(members: range | tuple[int, ...]) -> list[tuple[int, ...]]:
    listed = tuple(members)
    return [part for size in range(len(listed) + 1) for part in itertools.combinations(listed, size)]


def rows_of(model: Model, n: int, seed: int, *, unknown: bool = True) -> list[NDArray[np.uint8]]:
    """Return random codes by attribute, some of them "unobserved"."""
    generator = np.random.default_rng(seed)
    return [generator.integers(c + unknown, size=n).astype(np.uint8) for c in model.schema.cardinalities]
