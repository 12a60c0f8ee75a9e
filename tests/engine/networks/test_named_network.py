"""A network by names is checked when it is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.errors import BncliError

HALF = np.full(2, 0.5)
AB = ("a", "b")


def node(name: str = "x", states: tuple[str, ...] = AB, parents: tuple[str, ...] = (), table: Any = HALF) -> Node:
    return Node(name, states, parents, table)


def test_it_holds_what_it_was_given() -> None:
    table = np.full((2, 3), 1 / 3)
    network = NamedNetwork("n", "x", (node("y", ("1", "2", "3"), ("x",), table), node()), "nb", {"k": 1})
    table[0, 0] = 7
    assert network.by_name["y"].probabilities[0, 0] == 1 / 3
    assert not network.by_name["y"].probabilities.flags.writeable
    assert network.dag.parents == {"y": ("x",), "x": ()}
    assert (network.dag.class_name, network.dag.method, network.dag.options) == ("x", "nb", {"k": 1})


def test_rounding_is_forgiven() -> None:
    node(states=("a", "b", "c"), table=[0.333333, 0.333333, 0.333333])
    node(states=tuple("abcdef"), table=[0.166667] * 6)


@pytest.mark.parametrize(
    ("states", "table", "message"),
    [
        ((), np.empty(0), "the node 'x' has no states"),
        (("a", "a"), HALF, "the node 'x' has the state 'a' twice"),
        (AB, [0.5, 0.6], "a row of the table of 'x' sums to 1.1"),
        (AB, [0.0, 0.0], "a row of the table of 'x' sums to 0"),
        (AB, [1.5, -0.5], "the table of 'x' holds 1.5"),
        (AB, [np.nan, 1.0], "the table of 'x' holds nan"),
    ],
)
def test_no_table_of_probabilities(states: tuple[str, ...], table: Any, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        node(states=states, table=table)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((node(), node()), "the node 'x' occurs twice"),
        ((node("y"),), "the class 'x' is not a node"),
        ((node(), node("y", parents=("z",))), "the parent 'z' of 'y' is not a node"),
        ((node(), node("y", parents=("x",))), r"the table of 'y' has the shape \(2,\), not \(2, 2\)"),
        ((node(table=np.full((2, 2), 0.5), parents=("x",)),), "the structure has a cycle: x -> x"),
        ((node(table=np.full((2, 2), 0.5)),), "the table of 'x' has the shape"),
    ],
)
def test_no_network(nodes: tuple[Node, ...], message: str) -> None:
    with pytest.raises(BncliError, match=message):
        NamedNetwork("n", "x", nodes)
