"""The network that says what a model says: log-linear tables turned into conditional probabilities.

Other programs know networks only: tables that sum to 1. Discriminative tables W do not, yet on a perfect graph (see
`perfection`) a network gives every row the same P(y | x). Children are taken before their parents, and what keeps a
table from summing to 1 is passed on to the parent:

    Z_i[pi, y] = ln sum over x_i of exp W_i[x_i, pi, y],    ln theta_i = W_i - Z_i,    W_j += Z_i

j is the last parent of i in the order of the graph that is itself a child of the class: the graph being perfect, all
other parents of i are parents of j. Without such a parent Z_i goes to the table of the class, whose own sum over
y does not depend on y and cancels. Nodes without the class as a parent cancel as well, whatever their probabilities.

Conventions: tables that are a network's already (`map` and its like, `extended`) stay as they are, on any graph. A node
without the class as a parent becomes a root with its training frequencies, unless the model has a table for it, as it
does where missing values are marginalized. A value that no class makes likelier than e^-30 given its parents is first
raised to that for all classes alike: that changes P(x) and no P(y | x), and keeps products of probabilities within the
range of floating point. The P(x) of a network out of discriminative tables means nothing in any case. Cost: a few
passes over the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

import numpy as np

from bncli.catalogue import MARGINALIZED
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.logspace import log_sum
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import Network, graph_of, network_of, tables_by_child
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError

_LEAST = -30.0
"""Every value has at least so high a log probability under some class."""


def equivalent_network(model: Model) -> Network:
    """A network with the model's P(y | x) for every complete row; ModelError where there need not be one."""
    graph = graph_of(model)
    if not model.schema.marginalizes:
        model = replace(model, structure=_with_roots(graph))
    if model.recipe.param not in MARGINALIZED:
        _refuse_imperfect(model)
        recipe = model.recipe.replaced(param="map")  # for that is what the tables are now
        model = replace(model, predictor=normalised_tables(model), recipe=recipe)
    return network_of(model)


def _with_roots(dag: Dag) -> Dag:
    """The graph in which a node without the class as a parent has no parents at all."""
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
    """Log probabilities with the model's P(y | x); its graph must be perfect.

    The table of a child sums to 1 over its values, that of the class over the labels: it is the bias, or, where the
    class has attribute parents, the table over them, and the bias is 0.
    """
    structure, n_labels = graph_of(model), len(model.schema.labels)
    shapes = {f.child: (*f.shape, n_labels) for f in model.tables.families}
    logs = {child: w.reshape(shapes[child]) for child, w in tables_by_child(model).items()}
    logs[None] = logs.get(None, 0.0) + model.tables.bias
    with np.errstate(over="ignore", invalid="ignore"):
        _pass_on(logs, structure)
        logs[None] = logs[None] - log_sum(logs[None], -1)
    weights = tuple(logs[f.child].reshape(f.n_cells, n_labels) for f in model.tables.families)
    return Tables(np.zeros(n_labels) if structure.class_parents else logs[None], model.tables.families, weights)


def _pass_on(logs: dict[int | None, Array], structure: Dag) -> None:
    """Makes the tables of the class's children sum to 1, from the last one up; logs[i][x_i, parents of i ..., y]."""
    order = list(TopologicalSorter(dict(enumerate(structure.parents))).static_order())
    place = {i: at for at, i in enumerate(order)}
    children = set(structure.class_children)
    for i in reversed([i for i in order if i in children]):
        parents = structure.parents[i]
        heir = max(children.intersection(parents), key=place.__getitem__, default=None)
        logs[i], surplus = _normalise(logs[i])
        members = structure.class_parents if heir is None else (heir, *structure.parents[heir])
        logs[heir] = logs[heir] + _aligned(surplus, parents, members)


def _normalise(log: Array) -> tuple[Array, Array]:
    """Log probabilities of the first axis, and the logarithms of the sums, without that axis."""
    likeliest = (log - log_sum(log, 0)).max(axis=-1, keepdims=True)
    log = log + np.maximum(_LEAST - likeliest, 0.0)
    sums = log_sum(log, 0)
    return log - sums, sums[0]


def _aligned(table: Array, own: Sequence[int], members: Sequence[int]) -> Array:
    """table[own ..., y] with an axis for each of `members`, of length 1 for those that are not its own."""
    axes = sorted(range(len(own)), key=lambda axis: members.index(own[axis]))
    sorted_table = table.transpose(*axes, len(own))
    sizes = {own[axis]: table.shape[axis] for axis in axes}
    return sorted_table.reshape(*(sizes.get(member, 1) for member in members), -1)
