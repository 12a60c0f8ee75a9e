"""Bayesian networks with all their probabilities, and networks that are equivalent to models.

    P(x, y) = P(y | pi(y)) prod over attributes i of theta_i(x_i | pi(i), y)

**Networks of models.** A classifier needs only the factors that contain the class; rows can be drawn only if every node
has a factor. So a model is a network if its tables are log probabilities (MARGINALIZED in the catalogue) and every
attribute has a table, or has no parents. A model that marginalizes missing values has a table for every node of its
network; any other model has tables only for the children of the class and, if it has parents, for the class.
Conventions: an attribute without a table (a root, or one that the model does not use) has its training frequencies as
probabilities; without frequencies all its codes are equally likely.

**Equivalent networks.** Other programs only read networks, whose tables sum to 1. Discriminative tables W do not, but
on a perfect graph (see `structures.structure`) there is a network with the same P(y | x) for every row. Children are
processed before their parents, and the logarithms of the sums of a table are passed on to a parent:

    Z_i[pi, y] = ln sum over x_i of exp W_i[x_i, pi, y],    ln theta_i = W_i - Z_i,    W_j += Z_i

j is the last parent of i, in the order of the graph, that is itself a child of the class: since the graph is perfect,
all other parents of i are parents of j. Without such a parent, Z_i goes to the table of the class, whose sum over y
does not depend on y and cancels. Nodes without the class as a parent cancel as well, regardless of their probabilities.

Conventions: tables that are probabilities of a network already (`map` and the like, `extended`) stay unchanged, on any
graph. A node without the class as a parent becomes a root with its training frequencies, unless the model has a table
for it, as it does if missing values are marginalized. If the probability of a value given its parents is below e^-30 in
every class, it is first multiplied by the same factor in all classes, so that the largest becomes e^-30: this changes
P(x) but no P(y | x), and keeps products of probabilities within the range of floating point. The P(x) of a network made
from discriminative tables has no meaning in any case. Cost: a few passes over the tables.

**Named networks** are the form that other programs read (BIF, XMLBIF): nodes, their states and parents, and their
tables, without schema, cuts or logarithms. They are checked when they are created. An interval is named like
(2.45,4.75], closed on the right, with each cut as the shortest string that parses to the same value. Only the nodes
that P(y | x) depends on are included, because attributes outside the Markov blanket of the class have no influence in a
complete row; if missing values are marginalized, every node with an arc is included. Conventions: the class comes
first, both among the nodes and among parents; attributes follow in schema order, parents in their listed order. A
probability below the smallest normal number is raised to it, so that no row is impossible under every class. In a table
without the class, which cancels from P(y | x) but may be multiplied in by other programs, the lower bound is 1e-12, so
that no product vanishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import count

import numpy as np

from bncli import __version__
from bncli.catalogue import MARGINALIZED
from bncli.catalogue.option_kinds import format_number
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, log_sum
from bncli.engine.model import Ensemble, Model, Tables
from bncli.engine.structures.named_structure import NamedDag
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError, ModelError, alternatives
from bncli.recipe import Recipe

LEARN_AGAIN = f"learn the model with --param {alternatives(MARGINALIZED)}"
TINY = float(np.finfo(np.float64).tiny)
"""The lower bound of probabilities in tables with the class, and in all tables of `true_model`, so that none is 0."""
TINY_WITHOUT_CLASS = 1e-12
"""The lower bound of probabilities in the tables of a named network without the class."""
LEAST_LOG = -30.0
"""The minimum log probability of a value in the class in which it is most likely."""
SLACK = 1e-6
ROUNDING = 0.005001
"""The tolerated error of each probability: networks are often written with two digits, and 0.33 three times is 0.99."""
MISSING_STATE = "missing"


@dataclass(frozen=True)
class Network:
    """A Bayesian network over attribute indices, with all its probabilities.

    theta[i] has shape (|X_i|, parents of i ..., K), without the K if i is not a child of the class. theta_class has
    shape (parents of the class ..., K). They are probabilities, not logarithms; theta[i] sums to 1 over its first axis,
    theta_class over its last.
    """

    schema: Schema
    structure: Dag
    theta_class: Array
    theta: tuple[Array, ...]

    @property
    def n_entries(self) -> int:
        """The number of probabilities in all tables."""
        return self.theta_class.size + sum(table.size for table in self.theta)


def table_shapes(structure: Dag, cardinalities: Sequence[int], n_labels: int) -> list[tuple[int, ...]]:
    """Return the shape of each table of a network: one per attribute, in order, then the shape for the class."""
    children = set(structure.class_children)
    shapes = [
        (cardinalities[i], *(cardinalities[j] for j in parents), *((n_labels,) if i in children else ()))
        for i, parents in enumerate(structure.parents)
    ]
    return [*shapes, (*(cardinalities[j] for j in structure.class_parents), n_labels)]


def graph_of(model: Model) -> Dag:
    """Return the graph of a model; raise ModelError for an ensemble or regions."""
    pooled = isinstance(model.predictor, Ensemble)
    if isinstance(model.structure, Dag) and not pooled:
        return model.structure
    kind = "an ensemble" if pooled else "made of regions"
    what = f"the model is {kind}, whose tables are not the probabilities of a Bayesian network"
    raise ModelError(what, hint="learn a network with --structure nb, tan or hill-climb and --param map")


def network_of(model: Model) -> Network:
    """Return the network whose log probabilities are a model's tables.

    Raises ModelError if the model is calibrated or has no graph, if its tables do not fit the graph or are not log
    probabilities, or if an attribute with parents has no table.
    """
    if model.calibration is not None:
        what = "the model is calibrated, but a network has the probabilities before calibration"
        raise ModelError(what, hint="use the model before calibration")
    graph, schema = graph_of(model), model.schema
    if model.recipe.param not in MARGINALIZED:
        what = f"the parameters {model.recipe.param!r} of the model are not the probabilities of a network"
        raise ModelError(what, hint=LEARN_AGAIN)
    tables = tables_by_child(model)
    *shapes, class_shape = table_shapes(graph, schema.cardinalities, len(schema.labels))
    of_class = tables[None] if graph.class_parents else model.tables.bias
    theta_class = _probabilities(of_class.reshape(class_shape), -1, schema.class_name)
    children, theta = set(graph.class_children), []
    for i, (attribute, shape) in enumerate(zip(schema.attributes, shapes, strict=True)):
        if i in tables:
            # Without the class as a parent all columns are alike.
            table = tables[i] if i in children else tables[i][:, 0]
            theta.append(_probabilities(table.reshape(shape), 0, attribute.name))
            continue
        if graph.parents[i]:
            what = f"the model has no table for {attribute.name!r}, which has parents but not the class among them"
            raise ModelError(what, hint="learn a structure in which the class is also its parent")
        weights = np.array(attribute.frequencies, np.float64)
        if not weights.sum() > 0:
            weights = np.ones(max(attribute.cardinality, 1))
        theta.append(np.asarray(weights / weights.sum()))
    return Network(schema, graph, theta_class, tuple(theta))


def _probabilities(log_theta: Array, axis: int, name: str) -> Array:
    theta = np.exp(np.minimum(log_theta, 1.0))
    if not (np.abs(theta.sum(axis=axis) - 1.0) < SLACK).all():
        raise ModelError(f"the probabilities in the table of {name!r} do not sum to 1", hint=LEARN_AGAIN)
    return np.asarray(theta)


def tables_by_child(model: Model) -> dict[int | None, Array]:
    """Return the table (cells, K) of each attribute that has one, keyed by attribute; None is the key for the class.

    The class has a table only if it has parents. Raises ModelError if the tables do not fit the structure.
    """
    families = model.structure.families(model.schema.cardinalities, all_factors=model.schema.marginalizes)
    if model.tables.families != families:
        raise ModelError("the tables of the model do not fit its structure", hint=LEARN_AGAIN)
    return {f.child: w for f, w in zip(model.tables.families, model.tables.weights, strict=True)}


def true_model(
    network: Network, frequencies: Sequence[Sequence[float]], n_rows: int, missing: Sequence[float] | None = None
) -> Model:
    """Return a model with the tables of a network.

    `frequencies` has the weights of each attribute's codes in `n_rows` rows drawn from the network. `missing` has the
    weight of each attribute's missing values, or is None if no value is missing. With `missing`, the model marginalizes
    missing values; without it, it has the missing policy of the network's schema. The factors without the class are
    included only in a model that marginalizes, since otherwise they cancel in P(y | x).
    """
    structure = network.structure
    members = zip(network.schema.attributes, frequencies, missing or [0.0] * len(frequencies), strict=True)
    attributes = tuple(replace(a, frequencies=tuple(f), missing_weight=float(n)) for a, f, n in members)
    policy = network.schema.missing_policy if missing is None else "marginalize"
    schema = replace(network.schema, attributes=attributes, missing_policy=policy)
    families = structure.families(schema.cardinalities, all_factors=schema.marginalizes)
    weights = []
    for family in families:
        theta = network.theta_class if family.child is None else network.theta[family.child]
        logs = np.log(np.maximum(theta, TINY)).reshape(family.n_cells, -1)
        weights.append(logs if family.by_class else np.repeat(logs, len(schema.labels), 1))
    log_prior = np.log(np.maximum(network.theta_class, TINY))
    bias = np.zeros(len(schema.labels)) if structure.class_parents else np.asarray(log_prior)
    # Nothing was learned, so no option had an effect.
    recipe = Recipe.of(param="map").replaced(smoothing=None).with_structure(structure.method, structure.options)
    recipe = recipe.replaced(missing_policy=schema.missing_policy)
    return Model(schema, structure, Tables(bias, families, tuple(weights)), recipe, n_rows, __version__)


def equivalent_network(model: Model) -> Network:
    """Return a network with the model's P(y | x) for every complete row; raise ModelError if none can be computed."""
    graph = graph_of(model)
    if not model.schema.marginalizes:
        # A node without the class as a parent becomes a root.
        children = set(graph.class_children)
        parents = tuple(p if i in children else () for i, p in enumerate(graph.parents))
        model = replace(model, structure=replace(graph, parents=parents))
    if model.recipe.param not in MARGINALIZED:
        unmarried = graph_of(model).unmarried
        if unmarried is not None:
            names = [model.schema.class_name if i is None else model.schema.attributes[i].name for i in unmarried]
            child, one, other = (repr(name) for name in names)
            raise ModelError(
                f"the parameters {model.recipe.param!r} can be written as a network only on a perfect graph, "
                f"but no arc joins {one} and {other}, both parents of {child}",
                hint="learn with --param map, or with --structure nb, tan, kdb --k 1 or hill-climb --perfect",
            )
        # The normalised tables are like those of map.
        model = replace(model, predictor=normalised_tables(model), recipe=model.recipe.replaced(param="map"))
    return network_of(model)


def normalised_tables(model: Model) -> Tables:
    """Return tables of log probabilities with the same P(y | x) as a model, whose graph must be perfect.

    The probabilities of a child sum to 1 over its values, and the probabilities of the class over the labels. The table
    of the class is the bias or, if the class has attribute parents, the table over them; the bias is then 0.
    """
    structure, n_labels = graph_of(model), len(model.schema.labels)
    shapes = {f.child: (*f.shape, n_labels) for f in model.tables.families}
    # logs[i][x_i, parents of i ..., y]
    logs = {child: w.reshape(shapes[child]) for child, w in tables_by_child(model).items()}
    logs[None] = logs.get(None, 0.0) + model.tables.bias
    with np.errstate(over="ignore", invalid="ignore"):
        # The children of the class, in reverse topological order.
        order = list(TopologicalSorter(dict(enumerate(structure.parents))).static_order())
        place = {i: at for at, i in enumerate(order)}
        children = set(structure.class_children)
        for i in reversed([i for i in order if i in children]):
            parents = structure.parents[i]
            heir = max(children.intersection(parents), key=place.__getitem__, default=None)
            log = logs[i]
            likeliest = (log - log_sum(log, 0)).max(axis=-1, keepdims=True)
            log = log + np.maximum(LEAST_LOG - likeliest, 0.0)
            sums = log_sum(log, 0)
            logs[i], surplus = log - sums, sums[0]
            members = structure.class_parents if heir is None else (heir, *structure.parents[heir])
            # surplus[parents ..., y] with an axis for each of `members`, of length 1 for those that are not parents
            axes = sorted(range(len(parents)), key=lambda axis: members.index(parents[axis]))
            sizes = {parents[axis]: surplus.shape[axis] for axis in axes}
            aligned = surplus.transpose(*axes, len(parents)).reshape(*(sizes.get(m, 1) for m in members), -1)
            logs[heir] = logs[heir] + aligned
        logs[None] = logs[None] - log_sum(logs[None], -1)
    weights = tuple(logs[f.child].reshape(f.n_cells, n_labels) for f in model.tables.families)
    return Tables(np.zeros(n_labels) if structure.class_parents else logs[None], model.tables.families, weights)


@dataclass(frozen=True)
class Node:
    """A variable with its states and parents, and probabilities[state of parent 1, state of parent 2, ..., own state].

    Each distribution sums to 1, except for rounding. The constructor makes the table float64 and read-only. It raises
    BncliError for a node without states, for a state that occurs twice, and for probabilities that are outside [0, 1]
    or do not sum to 1, beyond rounding; the network checks the states of the parents.
    """

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    probabilities: Array

    def __post_init__(self) -> None:
        table = np.array(self.probabilities, dtype=np.float64)
        table.flags.writeable = False
        object.__setattr__(self, "probabilities", table)
        if not self.states:
            raise BncliError(f"the node '{self.name}' has no states", hint="list its states")
        repeated = _first_repeated(self.states)
        if repeated is not None:
            raise BncliError(f"the node '{self.name}' has the state '{repeated}' twice", hint="list every state once")
        valid = (table >= 0) & (table <= 1 + ROUNDING)
        if not np.all(valid):
            what = f"the table of '{self.name}' contains {table[~valid][0]:.17g}"
            raise BncliError(what, hint="probabilities must be between 0 and 1")
        sums = table.sum(axis=-1)
        off = np.abs(sums - 1) > ROUNDING * table.shape[-1]
        if np.any(off):
            what = f"a row of the table of '{self.name}' sums to {sums[off].flat[0]:.9g}"
            raise BncliError(what, hint="the probabilities of a node's states must sum to 1")


@dataclass(frozen=True)
class NamedNetwork:
    """A discrete network over named nodes; `class_name` is None if the file does not name the node of the class.

    `method` and `options` describe how the structure was made. The constructor raises BncliError for nodes that occur
    twice, a class or parents that are not nodes, a parent that is listed twice, a cycle, and a table whose shape does
    not fit the parents and states.
    """

    name: str
    class_name: str | None
    nodes: tuple[Node, ...]
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        repeated = _first_repeated(tuple(node.name for node in self.nodes))
        if repeated is not None:
            raise BncliError(f"the node '{repeated}' occurs twice", hint="define every node once")
        if self.class_name is not None and self.class_name not in self.by_name:
            raise BncliError(f"the class '{self.class_name}' is not a node", hint="name one of the nodes")
        for node in self.nodes:
            for parent in node.parents:
                if parent not in self.by_name:
                    what = f"the parent '{parent}' of '{node.name}' is not a node"
                    raise BncliError(what, hint="define it as a node")
            shape = (*(len(self.by_name[parent].states) for parent in node.parents), len(node.states))
            if node.probabilities.shape != shape:
                what = f"the table of '{node.name}' has the shape {node.probabilities.shape}, not {shape}"
                raise BncliError(what, hint="give one row per combination of the parents' states")
        # Building the structure raises BncliError for a cycle.
        assert self.dag is not None

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def dag(self) -> NamedDag:
        """The structure alone."""
        parents = {node.name: node.parents for node in self.nodes}
        return NamedDag(self.class_name, parents, self.method, dict(self.options))


def name_network(network: Network) -> NamedNetwork:
    """Convert a network to named form, keeping only the nodes that P(y | x) depends on.

    If missing values are marginalized, it has every node with an arc. Its name is the name of the class. Every parent
    of a node must be one of these nodes, as in the result of `equivalent_network`.
    """
    schema, structure = network.schema, network.structure
    names = [attribute.name for attribute in schema.attributes]
    class_parents = tuple(names[j] for j in structure.class_parents)
    nodes = [Node(schema.class_name, schema.labels, class_parents, np.maximum(network.theta_class, TINY))]
    children = set(structure.class_children)
    for i in structure.nodes if schema.marginalizes else structure.attributes:
        parents = tuple(names[j] for j in structure.parents[i])
        theta = np.moveaxis(network.theta[i], 0, -1)
        if i in children:
            parents = (schema.class_name, *parents)
            theta = np.moveaxis(theta, -2, 0)
        least = TINY if i in children else TINY_WITHOUT_CLASS
        nodes.append(Node(names[i], state_names(schema.attributes[i]), parents, np.maximum(theta, least)))
    return NamedNetwork(schema.class_name, schema.class_name, tuple(nodes), structure.method, dict(structure.options))


def state_names(attribute: Attribute) -> tuple[str, ...]:
    """Return a name for each code; the missing level is `missing`, or `missing_2`, ... if that is a level already."""
    names = value_names(attribute)
    if not attribute.missing:
        return names
    if MISSING_STATE not in names:
        return (*names, MISSING_STATE)
    return (*names, next(name for i in count(2) if (name := f"{MISSING_STATE}_{i}") not in names))


def value_names(attribute: Attribute) -> tuple[str, ...]:
    """Return the interval or level of each code, without the missing level."""
    if not isinstance(attribute, NumericAttribute):
        return attribute.levels
    edges = ["-inf", *map(format_number, attribute.cuts), "inf"]
    closings = ["]"] * len(attribute.cuts) + [")"]
    return tuple(f"({a},{b}{end}" for a, b, end in zip(edges[:-1], edges[1:], closings, strict=True))


def _first_repeated(names: tuple[str, ...]) -> str | None:
    earlier_names: set[str] = set()
    for name in names:
        if name in earlier_names:
            return name
        earlier_names.add(name)
    return None
