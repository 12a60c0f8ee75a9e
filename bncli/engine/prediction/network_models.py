"""Models made from networks with given probabilities, such as networks written by experts or other programs.

    P(x, y) = P(y | pi(y)) prod over attributes i of theta_i(x_i | pi(i), y)

Every node with an arc keeps its table, so a model of the network computes P(y | e) by exact inference, whichever values
e are known. The exception is a network with missing levels (see below). Conventions:

- States that are intervals become cuts. They may be written as `(a,b]`, `(a-b]`, `[a,b)`, `<=b`, `<b`, `>a` or `>=a`,
  in any order, but must not leave gaps. Since b belongs to `(a,b]` and not to `[a,b)`, the cut of the latter is the
  next smaller floating-point number. The outermost bounds are ignored, since a model must code every number.
- A last state called `missing` is the missing level of its attribute. Models of such networks do not marginalize, and
  keep only the tables that P(y | x) depends on.
- Marginal probabilities replace the training frequencies of an attribute's values. If the network is too dense or too
  large for inference, they are estimated from DRAWN_ROWS rows drawn from it.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, CategoricalAttribute, MissingPolicy, NumericAttribute, Schema
from bncli.engine.inference.incomplete_likelihood import IncompleteLikelihood
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Model
from bncli.engine.networks.network import MISSING_STATE, NamedNetwork, Network, Node, true_model
from bncli.engine.networks.simulation import Sampler
from bncli.engine.structures.structure import CLASS, Dag
from bncli.errors import BncliError, UsageError

MOST_VALUES = 2_000
"""Above this total number of values, marginal probabilities are estimated, since exact ones take a row per value."""
DRAWN_ROWS = 20_000
CLASS_NAME = "class"
"""The name of the node that is the class, if there is such a node and neither the file nor the user names one."""
_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[iI]nf(?:inity)?)"
_INTERVAL = re.compile(rf"(?P<opening>[(\[])\s*(?P<low>{_NUMBER})\s*[,;:-]\s*(?P<high>{_NUMBER})\s*(?P<closing>[)\]])")
_HALF = re.compile(rf"(?P<sign><=|>=|<|>|≤|≥)\s*(?P<bound>{_NUMBER})")


def model_of_network(network: NamedNetwork, class_name: str | None = None) -> tuple[Model, bool]:
    """Return a model that predicts the node `class_name` from all others, and whether the network is dense.

    In a dense network, inference for rows with no more than one known value would need tables that are too large; rows
    with few missing values can still be predicted. With more than MOST_VALUES values this is not tried, and the
    network does not count as dense. If `class_name` is None, the class is the node that the file marks. If the
    file marks none, it is the node called CLASS_NAME, or the last node if there is no such node. The model marginalizes
    missing values unless an attribute has a missing level. Raises UsageError if there is no node `class_name`, and
    BncliError if the class has a single state or if there is no other node.
    """
    label = _class_node(network, class_name)
    others = [node for node in network.nodes if node is not label]
    if not others:
        raise BncliError(f"the network has no node besides the class {label.name!r}", hint="add the attributes")
    if len(label.states) < 2:
        what = f"the class {label.name!r} has a single state, {label.states[0]!r}"
        raise BncliError(what, hint="choose another node with --class")
    read = [_attribute_of_node(node) for node in others]
    orders = {node.name: order for node, (_, order) in zip(others, read, strict=True)}
    orders[label.name] = np.arange(len(label.states))
    place = {node.name: i for i, node in enumerate(others)}
    policy: MissingPolicy = "level" if any(attribute.missing for attribute, _ in read) else "marginalize"
    schema = Schema(label.name, label.states, tuple(attribute for attribute, _ in read), missing_policy="marginalize")
    structure = Dag(
        parents=tuple(tuple(place[p] for p in node.parents if p != label.name) for node in others),
        class_children=tuple(place[node.name] for node in others if label.name in node.parents),
        class_parents=tuple(place[p] for p in label.parents),
        method=network.method,
        options=network.options,
    )
    tables = Network(
        schema,
        structure,
        _probability_table(label, label, orders),
        tuple(_probability_table(n, label, orders) for n in others),
    )
    unknown = [[1.0] * attribute.cardinality for attribute in schema.attributes]
    is_dense = False
    found = None
    if sum(schema.cardinalities) <= MOST_VALUES:
        try:
            found = _marginal_probabilities(true_model(tables, unknown, 0, [0.0] * len(unknown)))
        except BncliError:
            is_dense = True
    if found is None:
        # estimates from rows drawn from the network
        codes = Sampler(tables, np.random.Generator(np.random.PCG64(0))).draw_codes(DRAWN_ROWS)
        sizes = (len(schema.labels), *schema.cardinalities)
        columns = (codes[CLASS], *(codes[i] for i in range(len(tables.theta))))
        shares = [(np.bincount(c, minlength=n) / DRAWN_ROWS).tolist() for c, n in zip(columns, sizes, strict=True)]
        found = tuple(shares[0]), shares[1:]
    of_labels, marginals = found
    # A node without an arc has no table in the model; its probabilities are its marginals.
    marginals = [
        list(marginal) if i in structure.nodes else theta.tolist()
        for i, (marginal, theta) in enumerate(zip(marginals, tables.theta, strict=True))
    ]
    model = true_model(
        replace(tables, schema=replace(schema, missing_policy=policy, label_frequencies=of_labels)),
        marginals,
        0,
        None if policy == "level" else [0.0] * len(marginals),
    )
    return replace(model, recipe=model.recipe.with_cuts("file", {})), is_dense


def _class_node(network: NamedNetwork, class_name: str | None) -> Node:
    """Return the node that is the class; raise UsageError if no node is called `class_name`."""
    names = list(network.by_name)
    if class_name is not None and class_name not in names:
        from difflib import get_close_matches

        similar = get_close_matches(class_name, names, n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"the nodes are {', '.join(names[:10])}"
        raise UsageError(f"the network has no node {class_name!r}", hint=hint)
    found = class_name or network.class_name or (CLASS_NAME if CLASS_NAME in names else names[-1])
    return network.by_name[found]


def _attribute_of_node(node: Node) -> tuple[Attribute, Index]:
    """Return the node as an attribute, and for each code the index of its state in `node.states`."""
    states, has_missing = node.states, len(node.states) > 1 and node.states[-1] == MISSING_STATE
    values = states[:-1] if has_missing else states
    unknown = (0.0,) * len(states)
    bounds = [_parse_interval(state) for state in values]
    known = [pair for pair in bounds if pair is not None]
    if len(known) == len(values) >= 2:
        # adjacent intervals have cuts between them; their outermost bounds are ignored
        order = sorted(range(len(known)), key=lambda i: known[i])
        highs, lows = [known[i][1] for i in order[:-1]], [known[i][0] for i in order[1:]]
        if highs == lows and all(math.isfinite(cut) for cut in highs) and len(set(highs)) == len(highs):
            positions = np.array([*order, *([len(values)] if has_missing else [])])
            return NumericAttribute(node.name, has_missing, unknown, cuts=tuple(highs)), positions
    return CategoricalAttribute(node.name, has_missing, unknown, levels=values), np.arange(len(states))


def _parse_interval(state: str) -> tuple[float, float] | None:
    """Parse the name of a state as an interval a < x <= b; return (a, b), or None if it is not an interval."""
    interval, half = _INTERVAL.fullmatch(state.strip()), _HALF.fullmatch(state.strip())
    if interval is not None:
        low, high = float(interval["low"]), float(interval["high"])
        if interval["opening"] == "[":
            low = math.nextafter(low, -math.inf)
        return low, math.nextafter(high, -math.inf) if interval["closing"] == ")" else high
    if half is None:
        return None
    bound, sign = float(half["bound"]), half["sign"]
    if sign in ("<", ">=", "≥"):
        bound = math.nextafter(bound, -math.inf)
    return (-math.inf, bound) if sign[0] in "<≤" else (bound, math.inf)


def _probability_table(node: Node, label: Node, orders: dict[str, Index]) -> Array:
    """Return the node's probabilities, normalised, with the axes (own value, parents without the class, class).

    There is no class axis if the class is not a parent. The table of the class node has the axes (parents, own value).
    orders[name]: for each code of a node, the index of its state.
    """
    table = node.probabilities
    for axis, name in enumerate((*node.parents, node.name)):
        table = np.take(table, orders[name], axis)
    table = table / table.sum(axis=-1, keepdims=True)
    if node is label:
        return np.asarray(table)
    if label.name in node.parents:
        # the class goes last; before it is then the node's own value, which goes first
        table = np.moveaxis(table, node.parents.index(label.name), -1)
        return np.asarray(np.moveaxis(table, -2, 0))
    return np.asarray(np.moveaxis(table, -1, 0))


def _marginal_probabilities(model: Model) -> tuple[tuple[float, ...], list[list[float]]]:
    """Return the probabilities of the labels, and of the values of each attribute, by inference in the network.

    The probabilities returned for nodes without an arc are meaningless, since these have no table in the model.
    """
    schema = model.schema
    cardinalities = np.array(schema.cardinalities)
    # one row per attribute and value, in which all other attributes are unknown, and one in which all are
    owners = np.repeat(np.arange(len(cardinalities)), cardinalities)
    rows = np.tile(cardinalities, (len(owners) + 1, 1))
    rows[np.arange(len(owners)), owners] = np.concatenate([np.arange(n) for n in cardinalities])
    codes = tuple(np.ascontiguousarray(column, np.uint32) for column in rows.T)
    likelihood = IncompleteLikelihood(Dataset(schema, codes, np.zeros(len(rows), np.uint8)), model.tables.families)
    joint = np.exp(likelihood.log_joint(model.tables.cells))
    of_labels = joint[:, -1] / joint[:, -1].sum()
    # P(x_i = v), summed over the classes, attribute by attribute
    values = np.split(joint[:, :-1].sum(axis=0), np.cumsum(cardinalities)[:-1])
    return tuple(of_labels.tolist()), [(p / p.sum()).tolist() for p in values]
