"""Hypothesis strategies for networks by names, plain or with names that no format likes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.networks.network import NamedNetwork, Node

KEYWORDS = ["network", "variable", "probability", "property", "type", "discrete", "table", "default", "node", "graph"]
NASTY = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    [*KEYWORDS, "Table", "table1", "tablee5", "my_variable", "default2", "a", "A", "a_2", "1", "-1", "1e5", "a b",
     "a  b", " a", 'a"', "a\\", "a\\n", "a;b", "{a}", "(-inf, 2.5]", "a//b", "/*", "<b>", "&lt;", "]]>", "=", "%",
     "%41", "é", "\x00", "a\nb", "\ufeff", "\u2028", "subgraph", "digraph", "#a", "_", "", "inf", "nan", "None"]
)  # fmt: skip


@st.composite
def networks(draw: st.DrawFn, names: st.SearchStrategy[str] = NASTY, max_nodes: int = 5) -> NamedNetwork:
    """Parents come before their children in a hidden order; cardinalities differ; the class is any node."""
    order = draw(st.lists(names, unique=True, min_size=1, max_size=max_nodes))
    states = {name: tuple(draw(st.lists(names, unique=True, min_size=2, max_size=4))) for name in order}
    nodes = []
    for place, name in enumerate(order):
        parents = draw(st.lists(st.sampled_from(order[:place]), unique=True, max_size=3)) if place else []
        shape = (*(len(states[parent]) for parent in parents), len(states[name]))
        nodes.append(Node(name, states[name], tuple(parents), probabilities(draw(st.integers(0, 10**6)), shape)))
    options = draw(st.dictionaries(names, st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | names, max_size=2))
    class_name = draw(st.sampled_from(order))
    return NamedNetwork(draw(names), class_name, tuple(draw(st.permutations(nodes))), draw(names), options)


def probabilities(seed: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Rows of positive numbers that sum to 1."""
    table = np.random.default_rng(seed).random(shape) + 0.01
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def assert_same(one: NamedNetwork, other: NamedNetwork) -> None:
    """Everything is the same, the order of nodes and all digits included."""
    assert (one.name, one.class_name, one.method, one.options) == (
        other.name, other.class_name, other.method, other.options,
    )  # fmt: skip
    assert [(n.name, n.states, n.parents) for n in one.nodes] == [(n.name, n.states, n.parents) for n in other.nodes]
    for left, right in zip(one.nodes, other.nodes, strict=True):
        assert np.array_equal(left.probabilities, right.probabilities)


def posterior(network: NamedNetwork, row: dict[str, str]) -> NDArray[np.float64]:
    """P(class | the states of all other nodes), by multiplying everything out."""
    assert network.class_name is not None
    scores = []
    for label in network.by_name[network.class_name].states:
        states = row | {network.class_name: label}
        product = 1.0
        for node in network.nodes:
            cell = [network.by_name[p].states.index(states[p]) for p in node.parents]
            product *= node.probabilities[(*cell, node.states.index(states[node.name]))]
        scores.append(product)
    return np.array(scores) / sum(scores)
