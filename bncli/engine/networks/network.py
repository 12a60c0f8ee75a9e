"""A Bayesian network in full: for every node the probabilities of its values given those of its parents.

    P(x, y) = P(y | pi(y)) prod over attributes i of theta_i(x_i | pi(i), y)

A classifier needs only the factors with the class in them; rows can be drawn only where every node has one. So a model
is a network in full where its tables are log probabilities (MARGINALIZED in the catalogue) and every attribute has
one of them, or has no parents at all. A model that marginalizes missing values has a table for every node of its
network, any other model for the children of the class. Conventions: an attribute without a table (a root, or one that
the model does not use) has its training frequencies for probabilities; without any, all its codes are equally likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bncli import __version__
from bncli.catalogue import MARGINALIZED
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Ensemble, Model, Tables
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from bncli.recipe import Recipe

_LEARN_AGAIN = f"learn the model with --param {', '.join(MARGINALIZED)}"
_LEAST = float(np.finfo(np.float64).tiny)
"""Stands for a probability of 0 where a logarithm is taken."""
_SLACK = 1e-6


@dataclass(frozen=True)
class Network:
    """theta[i] has shape (|X_i|, parents of i ..., K), without the K where i is no child of the class.

    theta_class has shape (parents of the class ..., K). All are probabilities, not logs; theta[i] sums to 1 over its
    first axis, theta_class over its last.
    """

    schema: Schema
    structure: Dag
    theta_class: Array
    theta: tuple[Array, ...]

    @property
    def n_entries(self) -> int:
        """Number of probabilities in all tables."""
        return self.theta_class.size + sum(table.size for table in self.theta)


def table_shapes(structure: Dag, cardinalities: Sequence[int], n_labels: int) -> list[tuple[int, ...]]:
    """The shapes of the tables of a network: of every attribute in order, then of the class."""
    children = set(structure.class_children)
    shapes = [
        (cardinalities[i], *(cardinalities[j] for j in parents), *((n_labels,) if i in children else ()))
        for i, parents in enumerate(structure.parents)
    ]
    return [*shapes, (*(cardinalities[j] for j in structure.class_parents), n_labels)]


def graph_of(model: Model) -> Dag:
    """The graph of the model; ModelError where it has none."""
    pooled = isinstance(model.predictor, Ensemble)
    if isinstance(model.structure, Dag) and not pooled:
        return model.structure
    kind = "an ensemble" if pooled else "made of regions"
    what = f"the model is {kind}, whose tables are not the probabilities of a Bayesian network"
    raise ModelError(what, hint="learn a network: --structure nb, tan or hill-climb with --param map")


def network_of(model: Model) -> Network:
    """The network whose log probabilities a model holds; ModelError where it holds none, or not all of them."""
    if model.calibration is not None:
        what = "the model is calibrated, and a network says the probabilities as they were before"
        raise ModelError(what, hint="use the model that was calibrated")
    graph = graph_of(model)
    if model.recipe.param not in MARGINALIZED:
        what = f"the parameters {model.recipe.param!r} of the model are not the probabilities of a network"
        raise ModelError(what, hint=_LEARN_AGAIN)
    tables = tables_by_child(model)
    *shapes, class_shape = table_shapes(graph, model.schema.cardinalities, len(model.schema.labels))
    of_class = tables[None] if graph.class_parents else model.tables.bias
    theta_class = _probabilities(of_class.reshape(class_shape), -1, model.schema.class_name)
    children = set(graph.class_children)
    theta = tuple(
        _probabilities(_columns(tables[i], i in children).reshape(shape), 0, model.schema.attributes[i].name)
        if i in tables
        else _frequencies(model, graph, i)
        for i, shape in enumerate(shapes)
    )
    return Network(model.schema, graph, theta_class, theta)


def _columns(table: Array, by_class: bool) -> Array:
    """One column is enough where all are alike."""
    return table if by_class else table[:, 0]


def tables_by_child(model: Model) -> dict[int | None, Array]:
    """The table (cells, K) of every attribute that has one, and under None that of the class's parents, if there is."""
    families = model.structure.families(model.schema.cardinalities, whole=model.schema.marginalizes)
    if model.tables.families != families:
        raise ModelError("the tables of the model are not those of its structure", hint=_LEARN_AGAIN)
    return {f.child: w for f, w in zip(model.tables.families, model.tables.weights, strict=True)}


def _probabilities(log_theta: Array, axis: int, name: str) -> Array:
    theta = np.exp(np.minimum(log_theta, 1.0))
    if not (np.abs(theta.sum(axis=axis) - 1.0) < _SLACK).all():
        raise ModelError(f"the table of {name!r} does not hold probabilities that sum to 1", hint=_LEARN_AGAIN)
    return np.asarray(theta)


def _frequencies(model: Model, graph: Dag, i: int) -> Array:
    """Of an attribute with neither the class nor an attribute as a parent."""
    attribute = model.schema.attributes[i]
    if graph.parents[i]:
        what = f"the model has no table for {attribute.name!r}, which has parents but not the class among them"
        raise ModelError(what, hint="learn with a structure in which the class is a parent of it too")
    weights = np.array(attribute.frequencies, np.float64)
    if not weights.sum() > 0:
        weights = np.ones(max(attribute.cardinality, 1))
    return np.asarray(weights / weights.sum())


def true_model(
    network: Network, frequencies: Sequence[Sequence[float]], n_rows: int, missing: Sequence[float] | None = None
) -> Model:
    """A model with the network's own tables; `frequencies` of every attribute's codes in `n_rows` rows drawn from it.

    Its factors without the class are no part of it: they cancel in P(y | x). Where the rows have `missing`, so many of
    each attribute, they do not: then they are part of the model, which marginalizes missing values.
    """
    schema = _met(network.schema, frequencies, missing)
    families = network.structure.families(schema.cardinalities, whole=schema.marginalizes)
    thetas = [network.theta_class if f.child is None else network.theta[f.child] for f in families]
    logs = [_logs(theta).reshape(f.n_cells, -1) for f, theta in zip(families, thetas, strict=True)]
    weights = tuple(
        w if f.by_class else np.repeat(w, len(schema.labels), 1) for f, w in zip(families, logs, strict=True)
    )
    bias = np.zeros(len(schema.labels)) if network.structure.class_parents else _logs(network.theta_class)
    recipe = _recipe(network).replaced(missing_policy=schema.missing_policy)
    return Model(schema, network.structure, Tables(bias, families, weights), recipe, n_rows, __version__)


def _met(schema: Schema, frequencies: Sequence[Sequence[float]], missing: Sequence[float] | None) -> Schema:
    """The schema after the rows were seen."""
    members = zip(schema.attributes, frequencies, missing or [0.0] * len(frequencies), strict=True)
    attributes = tuple(replace(a, frequencies=tuple(f), missing_weight=float(n)) for a, f, n in members)
    policy = schema.missing_policy if missing is None else "marginalize"
    return replace(schema, attributes=attributes, missing_policy=policy)


def _logs(theta: Array) -> Array:
    return np.asarray(np.log(np.maximum(theta, _LEAST)))


def _recipe(network: Network) -> Recipe:
    """Nothing was learnt: no option had an effect."""
    recipe = Recipe.of(param="map").replaced(smoothing=None)
    return recipe.with_structure(network.structure.method, network.structure.options)
