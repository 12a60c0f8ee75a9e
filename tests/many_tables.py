"""Models of very many small tables: each a random oblivious tree, which cuts alike in all of its leaves.

A tree of up to six cuts over up to six attributes is a table whose attributes are seen through groupings: intervals by
the cuts of a numeric attribute, any parts of the levels of a category, a missing level always apart.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Component, Ensemble, Model, Tables, TriedCandidate
from bncli.engine.structures.structure import Family, Grouping, Regions, maximal
from bncli.recipe import Recipe

MOST_CELLS = 200


def random_schema(n_attributes: int, n_labels: int, seed: int = 0, intervals: int = 256) -> Schema:
    """Numeric attributes of up to so many intervals and categories in turn, every third with a missing level."""
    generator = np.random.default_rng(seed)
    labels = tuple(f"c{y}" for y in range(n_labels))
    return Schema("class", labels, tuple(_attribute(i, intervals, generator) for i in range(n_attributes)))


def _attribute(i: int, intervals: int, generator: np.random.Generator) -> Attribute:
    missing = i % 3 == 0
    n = int(generator.integers(2, intervals + 1)) if i % 2 == 0 else int(generator.integers(2, 9))
    frequencies = tuple(generator.integers(1, 50, n + missing).astype(float).tolist())
    if i % 2 == 0:
        return NumericAttribute(f"x{i}", missing, frequencies, tuple(np.sort(generator.normal(size=n - 1)).tolist()))
    return CategoricalAttribute(f"x{i}", missing, frequencies, tuple(f"v{v}" for v in range(n)))


def boosted_tables(schema: Schema, n_families: int, seed: int = 0, most: int = 6, scale: float = 0.1) -> Tables:
    """So many random trees over up to `most` attributes each, and a bias."""
    generator = np.random.default_rng(seed)
    n_labels = len(schema.labels)
    families = tuple(_tree(schema, most, generator) for _ in range(n_families))
    weights = tuple(generator.normal(scale=scale, size=(family.n_cells, n_labels)) for family in families)
    return Tables(generator.normal(size=n_labels), families, weights)


def _tree(schema: Schema, most: int, generator: np.random.Generator) -> Family:
    n_attributes = min(int(generator.integers(1, most + 1)), len(schema.attributes))
    attributes = sorted(generator.choice(len(schema.attributes), n_attributes, replace=False).tolist())
    cuts = np.bincount(generator.integers(0, n_attributes, 6 - n_attributes), minlength=n_attributes) + 1
    groupings = tuple(_grouping(schema.attributes[a], int(n), generator) for a, n in zip(attributes, cuts, strict=True))
    family = Family.over(tuple(attributes), schema.cardinalities, groupings=groupings)
    return family if family.n_cells <= MOST_CELLS else _tree(schema, most, generator)


def _grouping(attribute: Attribute, cuts: int, generator: np.random.Generator) -> Grouping | None:
    """By so many cuts, or None where they tell all codes apart."""
    n = attribute.n_values
    if isinstance(attribute, NumericAttribute):
        codes = np.isin(np.arange(n), generator.integers(1, n, cuts)).cumsum()
    else:
        codes = generator.integers(0, 2, (min(cuts, 2), n)).T @ np.array([1, 2])[: min(cuts, 2)]
    groups = np.unique(codes, return_inverse=True)[1].ravel().tolist()
    if len(set(groups)) == n:
        return None
    return (*groups, *[max(groups) + 1] * attribute.missing)


def boosted_model(schema: Schema, n_families: int, seed: int = 0, most: int = 6) -> Model:
    """A model of such tables alone."""
    tables = boosted_tables(schema, n_families, seed, most)
    return Model(schema, _regions(tables), tables, Recipe(), 100, "1.2.3")


def mixed_ensemble(schema: Schema, n_families: int, seed: int = 0, most: int = 6) -> Model:
    """Two components of many tables, one of which shares families with a third of few."""
    many = boosted_tables(schema, n_families, seed, most)
    other = boosted_tables(schema, n_families // 2, seed + 1, most)
    few = Tables(other.bias, many.families[:3], tuple(2.0 * weights for weights in many.weights[:3]))
    shares = (("boosted", 0.5, many), ("again", 0.3, other), ("few", 0.2, few))
    components = tuple(Component(weight, tables, name) for name, weight, tables in shares)
    trials = tuple(TriedCandidate(name, 1.0, 0.5, 0.25, weight) for name, weight, _ in shares)
    return Model(schema, _regions(many), Ensemble(components, trials), Recipe(), 100, "1.2.3")


def _regions(tables: Tables) -> Regions:
    return Regions(tuple(maximal(sorted({tuple(sorted(family.attributes)) for family in tables.families}))))


def random_codes(schema: Schema, n: int, seed: int = 0, unknown: float = 0.0) -> list[np.ndarray]:
    """Codes (n,) of every attribute; of each so large a share is unobserved."""
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, size, n) for size in schema.cardinalities]
    hidden = [generator.random(n) < unknown for _ in columns]
    joined = zip(columns, hidden, schema.cardinalities, strict=True)
    return [np.where(gone, size, column).astype(np.uint16) for column, gone, size in joined]
