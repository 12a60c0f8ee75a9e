"""Networks by names: the nodes that tell of the class, each number where it belongs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.networks.named_network import name_network
from bncli.engine.networks.network import Network, equivalent_network
from bncli.engine.structures.structure import Dag
from tests.datasets import schema_of
from tests.engine.networks.test_normalisation import model_of, modelled
from tests.engine.small_networks import all_rows, network_on, networks, probability


def test_the_class_comes_first_and_the_unused_are_left_out() -> None:
    network = equivalent_network(model_of(schema_of((2, 3, 4), 2), Dag(((2,), (), ()), (0, 2)), 1.0, 0))
    named = name_network(network)
    assert [(node.name, node.parents) for node in named.nodes] == [
        ("class", ()),
        ("a0", ("class", "a2")),
        ("a2", ("class",)),
    ]
    assert [node.states for node in named.nodes] == [("y0", "y1"), ("0", "1"), ("0", "1", "2", "3")]
    assert (named.name, named.class_name, named.method) == ("class", "class", "file")
    a0 = named.by_name["a0"].probabilities
    assert a0.shape == (2, 4, 2)
    assert a0[1, 3, 0] == network.theta[0][0, 3, 1]


@given(networks())
def test_the_product_over_nodes_is_the_joint_probability(network: Network) -> None:
    schema = network.schema
    network = equivalent_network(modelled(network))
    named = name_network(network)
    left_out = [i for i, attribute in enumerate(schema.attributes) if attribute.name not in named.by_name]
    for row in all_rows(schema)[:50]:
        code = dict(zip([a.name for a in schema.attributes] + ["class"], row, strict=True))
        told = math.prod(float(network.theta[i][row[i]]) for i in left_out)
        for node in named.nodes:
            told *= float(node.probabilities[tuple(code[name] for name in (*node.parents, node.name))])
        assert told == pytest.approx(probability(network, row), rel=1e-12)


def test_nothing_is_impossible() -> None:
    schema = schema_of((2,), 2)
    network = network_on(schema, Dag(((),), (0,)), 0)
    sure = Network(schema, network.structure, network.theta_class, (np.array([[0.0, 1.0], [1.0, 0.0]]),))
    assert name_network(sure).by_name["a0"].probabilities.min() > 0
