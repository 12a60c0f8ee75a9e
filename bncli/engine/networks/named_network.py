"""A Bayesian network by names, as a network file holds it: nodes, their states and parents, their tables.

    P(x) = product over nodes i of theta_i[x_parents(i), x_i]

This is the record between a model and the formats that other programs read (BIF, XMLBIF): no schema, no cuts, no
logarithms. It is checked when it is made, so that whoever holds one need not ask.

What each code of an attribute is called: its interval, its level, or the name of the missing level.

An interval is written like (2.45,4.75], closed on the right, with the cuts as the shortest texts that read back as the
same numbers; so a binned table and an exported network call it the same.

From a network by index to one by names, as other programs know it.

Only the nodes that P(y | x) depends on are named: an attribute that the structure does not use, or that is not in the
class's Markov blanket, tells nothing of the class in a complete row. Where missing values are marginalized, rows need
not be complete, and every node with an arc is named. Conventions: the class comes first, both among the nodes and among
parents; attributes follow in schema order, parents in their listed order. A probability of 0 is written as the smallest
normal number, so that no row is impossible under every class; in a table without the class, which cancels from P(y | x)
but may be multiplied in by other programs, as 1e-12, so that no product of them vanishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array
from bncli.engine.networks.network import Network
from bncli.engine.structures.named_structure import NamedDag
from bncli.errors import BncliError

ROUNDING = 0.005001
"""Each probability may be off by so much: people write networks with two digits, and three thirds are then 0.99."""


@dataclass(frozen=True)
class Node:
    """A variable: theta = probabilities[state of parent 1, state of parent 2, ..., own state].

    Every row sums to 1, except for rounding.
    The constructor makes the table float64 and read-only. Raises BncliError for a state that occurs twice and for
    numbers that are no probabilities; the number of states of the parents is the network's business.
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
            raise BncliError(f"the node '{self.name}' has no states", hint="name its states")
        twice = _first_repeated(self.states)
        if twice is not None:
            raise BncliError(f"the node '{self.name}' has the state '{twice}' twice", hint="name every state once")
        if not np.all((table >= 0) & (table <= 1 + ROUNDING)):
            worst = table[~((table >= 0) & (table <= 1 + ROUNDING))][0]
            raise BncliError(f"the table of '{self.name}' holds {worst:.17g}", hint="probabilities lie between 0 and 1")
        sums = table.sum(axis=-1)
        off = np.abs(sums - 1) > ROUNDING * table.shape[-1]
        if np.any(off):
            what = f"a row of the table of '{self.name}' sums to {sums[off].flat[0]:.9g}"
            raise BncliError(what, hint="the probabilities of a node's states sum to 1")


@dataclass(frozen=True)
class NamedNetwork:
    """A discrete network; `class_name` is None where the file does not say which node is the class.

    `method` and `options` say how the structure came about. Raises BncliError for nodes that occur twice, parents that
    are no nodes, a cycle, and a table whose shape is not that of its parents and states.
    """

    name: str
    class_name: str | None
    nodes: tuple[Node, ...]
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        twice = _first_repeated(tuple(node.name for node in self.nodes))
        if twice is not None:
            raise BncliError(f"the node '{twice}' occurs twice", hint="define every node once")
        if self.class_name is not None and self.class_name not in self.by_name:
            raise BncliError(f"the class '{self.class_name}' is not a node", hint="name one of the nodes")
        for node in self.nodes:
            for parent in node.parents:
                if parent not in self.by_name:
                    raise BncliError(
                        f"the parent '{parent}' of '{node.name}' is not a node", hint="define it as a node"
                    )
            shape = (*(len(self.by_name[parent].states) for parent in node.parents), len(node.states))
            if node.probabilities.shape != shape:
                what = f"the table of '{node.name}' has the shape {node.probabilities.shape}, not {shape}"
                raise BncliError(what, hint="give one row per combination of the parents' states")
        assert self.dag is not None

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by their names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def dag(self) -> NamedDag:
        """The structure alone."""
        parents = {node.name: node.parents for node in self.nodes}
        return NamedDag(self.class_name, parents, self.method, dict(self.options))


_MISSING = "missing"
_LEAST = float(np.finfo(np.float64).tiny)
_LEAST_APART = 1e-12


def value_names(attribute: Attribute) -> tuple[str, ...]:
    """Return the interval or level of each code, the missing level left out."""
    if not isinstance(attribute, NumericAttribute):
        return attribute.levels
    edges = ["-inf", *map(number_text, attribute.cuts), "inf"]
    closings = ["]"] * len(attribute.cuts) + [")"]
    return tuple(f"({a},{b}{end}" for a, b, end in zip(edges[:-1], edges[1:], closings, strict=True))


def state_names(attribute: Attribute) -> tuple[str, ...]:
    """Return a name for each code; the missing level is `missing`, or `missing_2`, ... where a level is called that."""
    names = value_names(attribute)
    if not attribute.missing:
        return names
    if _MISSING not in names:
        return (*names, _MISSING)
    return (*names, next(name for i in count(2) if (name := f"{_MISSING}_{i}") not in names))


def number_text(number: float) -> str:
    """Return the shortest text that reads back as the number; a whole number as such."""
    return repr(number).removesuffix(".0")


def name_network(network: Network) -> NamedNetwork:
    """Return the class and what tells of it, with named states; the network is called like its class.

    Every parent of a node must be one of these: as in what `equivalent_network` makes.
    """
    schema, structure = network.schema, network.structure
    names = [attribute.name for attribute in schema.attributes]
    above_class = tuple(names[j] for j in structure.class_parents)
    nodes = [Node(schema.class_name, schema.labels, above_class, np.maximum(network.theta_class, _LEAST))]
    children = set(structure.class_children)
    for i in structure.nodes if schema.marginalizes else structure.attributes:
        parents = tuple(names[j] for j in structure.parents[i])
        theta = np.moveaxis(network.theta[i], 0, -1)
        if i in children:
            parents = (schema.class_name, *parents)
            theta = np.moveaxis(theta, -2, 0)
        least = _LEAST if i in children else _LEAST_APART
        nodes.append(Node(names[i], state_names(schema.attributes[i]), parents, np.maximum(theta, least)))
    return NamedNetwork(schema.class_name, schema.class_name, tuple(nodes), structure.method, dict(structure.options))


def _first_repeated(names: tuple[str, ...]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
