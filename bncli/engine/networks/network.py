"""A Bayesian network in full: for every node the probabilities of its values given those of its parents.

    P(x, y) = P(y | pi(y)) prod over attributes i of theta_i(x_i | pi(i), y)

A classifier needs only the factors with the class in them; rows can be drawn only where every node has one. So a model
is a network in full where its tables are log probabilities (MARGINALIZED in the catalogue) and every attribute has
one of them, or has no parents at all. A model that marginalizes missing values has a table for every node of its
network, any other model for the children of the class. Conventions: an attribute without a table (a root, or one that
the model does not use) has its training frequencies for probabilities; without any, all its codes are equally likely.

The network that says what a model says: log-linear tables turned into conditional probabilities.

Other programs know networks only: tables that sum to 1. Discriminative tables W do not, yet on a perfect graph (see
`perfection`) a network gives every row the same P(y | x). Children are taken before their parents, and what keeps a
table from summing to 1 is passed on to the parent:

    Z_i[pi, y] = ln sum over x_i of exp W_i[x_i, pi, y],    ln theta_i = W_i - Z_i,    W_j += Z_i

j is the last parent of i in the order of the graph that is itself a child of the class: the graph being perfect, all
other parents of i are parents of j. Without such a parent Z_i goes to the table of the class, whose own sum over y does
not depend on y and cancels. Nodes without the class as a parent cancel as well, whatever their probabilities.

Conventions: tables that are a network's already (`map` and its like, `extended`) stay as they are, on any graph. A node
without the class as a parent becomes a root with its training frequencies, unless the model has a table for it, as it
does where missing values are marginalized. A value that no class makes likelier than e^-30 given its parents is first
raised to that for all classes alike: that changes P(x) and no P(y | x), and keeps products of probabilities within the
range of floating point. The P(x) of a network out of discriminative tables means nothing in any case. Cost: a few
passes over the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

import numpy as np

from bncli import __version__
from bncli.catalogue import MARGINALIZED
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, log_sum
from bncli.engine.model import Ensemble, Model, Tables
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from bncli.recipe import Recipe

_LEARN_AGAIN = f"learn the model with --param {', '.join(MARGINALIZED)}"
_NETWORK_LEAST = float(np.finfo(np.float64).tiny)
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


_NORMALISATION_LEAST = -30.0
"""Every value has at least so high a log probability under some class."""


def table_shapes(structure: Dag, cardinalities: Sequence[int], n_labels: int) -> list[tuple[int, ...]]:
    """Return the shapes of the tables of a network: of every attribute in order, then of the class."""
    children = set(structure.class_children)
    shapes = [
        (cardinalities[i], *(cardinalities[j] for j in parents), *((n_labels,) if i in children else ()))
        for i, parents in enumerate(structure.parents)
    ]
    return [*shapes, (*(cardinalities[j] for j in structure.class_parents), n_labels)]


def graph_of(model: Model) -> Dag:
    """Return the graph of the model; ModelError where it has none."""
    pooled = isinstance(model.predictor, Ensemble)
    if isinstance(model.structure, Dag) and not pooled:
        return model.structure
    kind = "an ensemble" if pooled else "made of regions"
    what = f"the model is {kind}, whose tables are not the probabilities of a Bayesian network"
    raise ModelError(what, hint="learn a network: --structure nb, tan or hill-climb with --param map")


def network_of(model: Model) -> Network:
    """Return the network whose log probabilities a model holds; ModelError where it holds none, or not all of them."""
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


def _probabilities(log_theta: Array, axis: int, name: str) -> Array:
    theta = np.exp(np.minimum(log_theta, 1.0))
    if not (np.abs(theta.sum(axis=axis) - 1.0) < _SLACK).all():
        raise ModelError(f"the table of {name!r} does not hold probabilities that sum to 1", hint=_LEARN_AGAIN)
    return np.asarray(theta)


def _columns(table: Array, by_class: bool) -> Array:
    """Return one column is enough where all are alike."""
    return table if by_class else table[:, 0]


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


def tables_by_child(model: Model) -> dict[int | None, Array]:
    """Return the table (cells, K) of every attribute that has one, and under None that of the class's parents."""
    families = model.structure.families(model.schema.cardinalities, whole=model.schema.marginalizes)
    if model.tables.families != families:
        raise ModelError("the tables of the model are not those of its structure", hint=_LEARN_AGAIN)
    return {f.child: w for f, w in zip(model.tables.families, model.tables.weights, strict=True)}


def true_model(
    network: Network, frequencies: Sequence[Sequence[float]], n_rows: int, missing: Sequence[float] | None = None
) -> Model:
    """Return a model with the network's own tables.

    `frequencies` of every attribute's codes in `n_rows` rows drawn from it.

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
    """Return the schema after the rows were seen."""
    members = zip(schema.attributes, frequencies, missing or [0.0] * len(frequencies), strict=True)
    attributes = tuple(replace(a, frequencies=tuple(f), missing_weight=float(n)) for a, f, n in members)
    policy = schema.missing_policy if missing is None else "marginalize"
    return replace(schema, attributes=attributes, missing_policy=policy)


def _logs(theta: Array) -> Array:
    return np.asarray(np.log(np.maximum(theta, _NETWORK_LEAST)))


def _recipe(network: Network) -> Recipe:
    """Nothing was learnt: no option had an effect."""
    recipe = Recipe.of(param="map").replaced(smoothing=None)
    return recipe.with_structure(network.structure.method, network.structure.options)


def equivalent_network(model: Model) -> Network:
    """Return a network with the model's P(y | x) for every complete row; ModelError where there need not be one."""
    graph = graph_of(model)
    if not model.schema.marginalizes:
        model = replace(model, structure=_with_roots(graph))
    if model.recipe.param not in MARGINALIZED:
        _refuse_imperfect(model)
        recipe = model.recipe.replaced(param="map")  # for that is what the tables are now
        model = replace(model, predictor=normalised_tables(model), recipe=recipe)
    return network_of(model)


def _with_roots(dag: Dag) -> Dag:
    """Return the graph in which a node without the class as a parent has no parents at all."""
    children = set(dag.class_children)
    return replace(dag, parents=tuple(p if i in children else () for i, p in enumerate(dag.parents)))


def _refuse_imperfect(model: Model) -> None:
    found = graph_of(model).unmarried
    if found is None:
        return
    names = [model.schema.class_name if i is None else model.schema.attributes[i].name for i in found]
    child, one, other = (repr(name) for name in names)
    raise ModelError(
        f"the parameters {model.recipe.param!r} can be written as a network only on a perfect graph, "
        f"but no arc joins {one} and {other}, both parents of {child}",
        hint="learn with --param map, or with --structure nb, tan, kdb --k 1 or hill-climb --perfect",
    )


def normalised_tables(model: Model) -> Tables:
    """Return log probabilities with the model's P(y | x); its graph must be perfect.

    The table of a child sums to 1 over its values, that of the class over the labels: it is the bias, or, where the
    class has attribute parents, the table over them, and the bias is 0.
    """
    structure, n_labels = graph_of(model), len(model.schema.labels)
    shapes = {f.child: (*f.shape, n_labels) for f in model.tables.families}
    logs = {child: w.reshape(shapes[child]) for child, w in tables_by_child(model).items()}
    logs[None] = logs.get(None, 0.0) + model.tables.bias
    with np.errstate(over="ignore", invalid="ignore"):
        # Makes the tables of the class's children sum to 1, from the last one up; logs[i][x_i, parents of i ..., y].
        order = list(TopologicalSorter(dict(enumerate(structure.parents))).static_order())
        place = {i: at for at, i in enumerate(order)}
        children = set(structure.class_children)
        for i in reversed([i for i in order if i in children]):
            parents = structure.parents[i]
            heir = max(children.intersection(parents), key=place.__getitem__, default=None)
            # Log probabilities of the first axis, and the logarithms of the sums, without that axis.
            log = logs[i]
            likeliest = (log - log_sum(log, 0)).max(axis=-1, keepdims=True)
            log = log + np.maximum(_NORMALISATION_LEAST - likeliest, 0.0)
            sums = log_sum(log, 0)
            logs[i], surplus = log - sums, sums[0]
            members = structure.class_parents if heir is None else (heir, *structure.parents[heir])
            logs[heir] = logs[heir] + _aligned(surplus, parents, members)
        logs[None] = logs[None] - log_sum(logs[None], -1)
    weights = tuple(logs[f.child].reshape(f.n_cells, n_labels) for f in model.tables.families)
    return Tables(np.zeros(n_labels) if structure.class_parents else logs[None], model.tables.families, weights)


def _aligned(table: Array, own: Sequence[int], members: Sequence[int]) -> Array:
    """table[own ..., y] with an axis for each of `members`, of length 1 for those that are not its own."""
    axes = sorted(range(len(own)), key=lambda axis: members.index(own[axis]))
    sorted_table = table.transpose(*axes, len(own))
    sizes = {own[axis]: table.shape[axis] for axis in axes}
    return sorted_table.reshape(*(sizes.get(member, 1) for member in members), -1)
