"""Small networks for tests, and their joint distribution added up row by row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from bncli.engine.network import Network, table_shapes
from bncli.engine.schema import Schema
from bncli.engine.structure import Dag
from tests.strategies import dags, schemas

Row = tuple[int, ...]
"""The codes of all attributes, then that of the class."""


def network_on(schema: Schema, dag: Dag, seed: int) -> Network:
    """Positive probabilities at random."""
    rng = np.random.default_rng(seed)
    *shapes, class_shape = table_shapes(dag, schema.cardinalities, len(schema.labels))
    theta = [rng.random(shape) + 0.05 for shape in shapes]
    theta_class = rng.random(class_shape) + 0.05
    normalised = tuple(table / table.sum(axis=0) for table in theta)
    return Network(schema, dag, theta_class / theta_class.sum(axis=-1, keepdims=True), normalised)


@st.composite
def networks(draw: st.DrawFn, max_attributes: int = 4) -> Network:
    """Over any graph, numeric and categorical attributes, with and without a missing level."""
    schema = draw(schemas(max_attributes=max_attributes, max_labels=3))
    return network_on(schema, draw(dags(len(schema.attributes))), draw(st.integers(0, 2**32 - 1)))


def all_rows(schema: Schema) -> list[Row]:
    """Every combination of codes."""
    return list(itertools.product(*map(range, (*schema.cardinalities, len(schema.labels)))))


def probability(network: Network, row: Sequence[int]) -> float:
    """P(x, y): the product of one number out of each table."""
    *x, y = row
    children = network.structure.class_children
    factors = [float(network.theta_class[tuple(x[j] for j in network.structure.class_parents)][y])]
    for i, parents in enumerate(network.structure.parents):
        by_class = (y,) if i in children else ()
        factors.append(float(network.theta[i][(x[i], *(x[j] for j in parents), *by_class)]))
    return math.prod(factors)
