"""Small networks for tests, and their joint distribution added up row by row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.networks.network import Network, table_shapes
from bncli.engine.networks.simulation import sample
from bncli.engine.structures.structure import Dag
from tests.datasets import coded_rows, schema_of
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


def asia() -> Network:
    """Lauritzen & Spiegelhalter 1988 (Journal of the Royal Statistical Society B 50), `lung` the class.

    Is it tuberculosis, lung cancer or bronchitis? `either` is the logical or of `tub` and `lung`.
    """
    names = ("asia", "tub", "smoke", "bronc", "either", "xray", "dysp")
    attributes = tuple(CategoricalAttribute(name, False, (), ("no", "yes")) for name in names)
    asia, tub, smoke, bronc, either, xray, dysp = range(7)
    parents: list[tuple[int, ...]] = [()] * 7
    parents[tub], parents[bronc], parents[either], parents[xray] = (asia,), (smoke,), (tub,), (either,)
    parents[dysp] = (bronc, either)
    yes: list[Any] = [None] * 7  # P(yes | parents), a "no" of each parent first
    yes[asia], yes[tub], yes[smoke], yes[bronc] = 0.01, [0.01, 0.05], 0.5, [0.3, 0.6]
    yes[either], yes[xray], yes[dysp] = [[0.0, 1.0], [1.0, 1.0]], [0.05, 0.98], [[0.1, 0.7], [0.8, 0.9]]
    theta = tuple(np.stack([1.0 - np.array(p), np.array(p)]) for p in yes)
    schema = Schema("lung", ("no", "yes"), attributes)
    return Network(schema, Dag(tuple(parents), (either,), (smoke,)), np.array([[0.99, 0.01], [0.9, 0.1]]), theta)


def strong_network(n_nodes: int, seed: int) -> Network:
    """The class a node like any other; up to two parents each; nodes of 2 or 3 values that rise with every parent.

    P(x = k | parents) is proportional to exp(3 k t), t = the sum of the parents' places between -1/2 and 1/2.
    """
    rng = np.random.default_rng(seed)
    order, cardinalities = rng.permutation(n_nodes), rng.integers(2, 4, n_nodes)
    parents: dict[int, tuple[int, ...]] = {}
    for place, i in enumerate(order.tolist()):
        near = order[max(0, place - 5) : place]
        parents[i] = tuple(rng.choice(near, min(place, int(rng.integers(0, 3))), replace=False).tolist())
    theta = [_rising(cardinalities[i], [cardinalities[j] for j in parents[i]]) for i in range(n_nodes)]
    label = n_nodes - 1  # the last node is the class, the last axis of a table that it is a parent of
    children = tuple(i for i in range(label) if label in parents[i])
    for i in children:
        theta[i] = np.moveaxis(theta[i], 1 + parents[i].index(label), -1)
    attributes = tuple(tuple(j for j in parents[i] if j != label) for i in range(label))
    structure = Dag(attributes, children, parents[label])
    schema = schema_of(cardinalities[:label].tolist(), int(cardinalities[label]))
    return Network(schema, structure, np.moveaxis(theta[label], 0, -1), tuple(theta[:label]))


def _rising(n: int, parents: list[int]) -> Array:
    places = np.meshgrid(*(np.linspace(-0.5, 0.5, m) for m in parents), indexing="ij")
    theta = np.exp(3.0 * np.arange(n).reshape(-1, *(1,) * len(parents)) * sum(places, np.zeros(parents)))
    return np.asarray(theta / theta.sum(axis=0))


def exact_rows(network: Network) -> Dataset:
    """Every combination of codes once, its probability for a weight: as many rows as one likes, without their noise."""
    rows = [row for row in all_rows(network.schema) if probability(network, row) > 0]
    weights = np.array([probability(network, row) for row in rows])
    *columns, labels = np.array(rows).T
    codes = tuple(column.astype(np.uint8) for column in columns)
    return Dataset(network.schema, codes, labels.astype(np.uint8), weights)


def drawn_rows(network: Network, rows: int, seed: int, threads: int = 1) -> Dataset:
    """Rows drawn from the network, in its own codes."""
    return coded_rows(sample(network, rows, np.random.default_rng(seed)), network.schema, threads)
