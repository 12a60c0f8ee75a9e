"""Hypothesis strategies: small random schemas, graphs, tables and models."""

from __future__ import annotations

import itertools
from graphlib import TopologicalSorter

import numpy as np
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Model, Tables
from bncli.engine.structures.structure import Dag, Family, Grouping, Regions
from bncli.recipe import Recipe
from tests.datasets import random_dataset


@st.composite
def attributes(draw: st.DrawFn, name: str, max_values: int = 4) -> Attribute:
    """An informative attribute of either kind, with or without a missing level; some codes may never have been seen."""
    missing = draw(st.booleans())
    n_values = draw(st.integers(1 if missing else 2, max_values))
    counts = draw(st.lists(st.integers(0, 9), min_size=n_values + missing, max_size=n_values + missing))
    counts[draw(st.integers(0, len(counts) - 1))] += 1
    frequencies = tuple(float(count) for count in counts)
    if draw(st.booleans()):
        return NumericAttribute(name, missing, frequencies, tuple(float(c) for c in range(n_values - 1)))
    return CategoricalAttribute(name, missing, frequencies, tuple(f"v{v}" for v in range(n_values)))


@st.composite
def schemas(draw: st.DrawFn, min_attributes: int = 0, max_attributes: int = 5, max_labels: int = 4) -> Schema:
    """Informative attributes `a0`, `a1`, ... and a class of 2 or more labels."""
    n = draw(st.integers(min_attributes, max_attributes))
    labels = tuple(f"y{y}" for y in range(draw(st.integers(2, max_labels))))
    return Schema("class", labels, tuple(draw(attributes(f"a{i}")) for i in range(n)))


@st.composite
def dags(draw: st.DrawFn, n_attributes: int, max_parents: int = 3) -> Dag:
    """Any graph along a random order; attributes may lack the class as a parent, the class may have parents."""
    order = draw(st.permutations(range(n_attributes)))
    class_at = draw(st.integers(0, n_attributes))
    parents: list[tuple[int, ...]] = [()] * n_attributes
    for place, i in enumerate(order):
        parents[i] = _some(draw, order[:place], max_parents)
    children = tuple(sorted(i for i in order[class_at:] if draw(st.integers(0, 4))))
    return Dag(tuple(parents), children, _some(draw, order[:class_at], 2))


def graphs_for(space: str, n_attributes: int) -> st.SearchStrategy[Dag]:
    """Any graph that the parameter space takes (named as in `tests.spaces`)."""
    return dags(n_attributes).map(perfected) if space.split()[0] == "lr" else dags(n_attributes)


def perfected(dag: Dag) -> Dag:
    """The graph with arcs added until all parents of a common child, the class among them, are joined."""
    nodes: dict[int, set[int]] = {i: set(listed) for i, listed in enumerate(dag.parents)}
    the_class = len(nodes)
    nodes[the_class] = set(dag.class_parents)
    for i in dag.class_children:
        nodes[i].add(the_class)
    order = list(TopologicalSorter(nodes).static_order())
    for child in reversed(order):
        *earlier, last = sorted(nodes[child], key=order.index) or [None]
        if last is not None:
            nodes[last].update(earlier)
    parents = tuple(tuple(sorted(nodes[i] - {the_class})) for i in range(the_class))
    children = tuple(i for i in range(the_class) if the_class in nodes[i])
    return Dag(parents, children, tuple(sorted(nodes[the_class])))


def _some(draw: st.DrawFn, candidates: list[int], most: int) -> tuple[int, ...]:
    if not candidates:
        return ()
    return tuple(draw(st.lists(st.sampled_from(candidates), unique=True, max_size=most)))


@st.composite
def models(draw: st.DrawFn, max_attributes: int = 5, max_labels: int = 4) -> Model:
    """A model with arbitrary tables."""
    schema = draw(schemas(max_attributes=max_attributes, max_labels=max_labels))
    dag = draw(dags(len(schema.attributes)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.1, 1.0, 30.0]))
    families = dag.families(schema.cardinalities)
    n_labels = len(schema.labels)
    weights = tuple(scale * generator.normal(size=(family.n_cells, n_labels)) for family in families)
    tables = Tables(scale * generator.normal(size=n_labels), families, weights)
    return Model(schema, dag, tables, Recipe(), 100, "1.2.3")


@st.composite
def groupings(draw: st.DrawFn, attribute: Attribute) -> Grouping | None:
    """None, or neighbouring values joined in any way, the missing level apart."""
    joined = draw(st.lists(st.booleans(), min_size=attribute.n_values - 1, max_size=attribute.n_values - 1))
    codes = list(itertools.accumulate((not join for join in joined), initial=0))
    return None if not any(joined) else (*codes, *[codes[-1] + 1] * attribute.missing)


@st.composite
def regrouped_families(draw: st.DrawFn, attributes: tuple[Attribute, ...]) -> tuple[Family, ...]:
    """Up to 5 families over up to 3 of the attributes each, with a child or without, that grouping what they please."""
    if not attributes:
        return ()
    members = st.lists(st.integers(0, len(attributes) - 1), unique=True, min_size=1, max_size=3)
    return tuple(_regrouped_family(draw, listed, attributes) for listed in draw(st.lists(members, max_size=5)))


def _regrouped_family(draw: st.DrawFn, members: list[int], attributes: tuple[Attribute, ...]) -> Family:
    seen = tuple(draw(groupings(attributes[a])) for a in members)
    shape = tuple(attributes[a].cardinality if m is None else max(m) + 1 for a, m in zip(members, seen, strict=True))
    child = draw(st.sampled_from([None, members[0]])) if members[0] == max(members) else None  # no cycle of children
    return Family(tuple(members), shape, child, groupings=seen if any(seen) else ())


@st.composite
def regrouped_models(draw: st.DrawFn, max_labels: int = 4) -> Model:
    """A model with arbitrary tables, some over regrouped attributes."""
    schema = draw(schemas(max_attributes=4, max_labels=max_labels))
    families = draw(regrouped_families(schema.attributes))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels = len(schema.labels)
    weights = tuple(generator.normal(size=(family.n_cells, n_labels)) for family in families)
    used = tuple(sorted({attribute for family in families for attribute in family.attributes}))
    regions = Regions((used,) if used else ())
    return Model(schema, regions, Tables(generator.normal(size=n_labels), families, weights), Recipe(), 100, "1.2.3")


@st.composite
def datasets(draw: st.DrawFn, min_rows: int = 1, max_rows: int = 60, max_attributes: int = 5) -> Dataset:
    """Coded rows, weighted or not, of informative attributes that depend on the class and on each other."""
    cardinalities = draw(st.lists(st.integers(2, 4), min_size=1, max_size=max_attributes))
    return random_dataset(
        draw(st.integers(min_rows, max_rows)),
        cardinalities,
        draw(st.integers(2, 4)),
        seed=draw(st.integers(0, 2**32 - 1)),
        weighted=draw(st.booleans()),
    )
