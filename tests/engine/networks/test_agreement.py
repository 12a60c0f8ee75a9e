"""Whether a network and a model agree: on all rows, on none, and by how much they differ."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.model import Model
from bncli.engine.networks.named_network import name_network
from bncli.engine.networks.network import Network, equivalent_network
from bncli.engine.prediction.verification import largest_difference, network_posteriors
from bncli.engine.structures.structure import Dag
from tests.datasets import schema_of
from tests.engine.networks.test_normalisation import model_of, modelled, perfect_models, told
from tests.engine.small_networks import networks


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@given(perfect_models())
def test_a_model_agrees_with_its_network(model: Model) -> None:
    assert largest_difference(model, name_network(equivalent_network(model)), 100, rng()) < 1e-12


@given(networks())
def test_posteriors_row_by_row(network: Network) -> None:
    network = equivalent_network(modelled(network))
    cardinalities = network.schema.cardinalities
    codes = {f"a{i}": rng().integers(0, n, 5) for i, n in enumerate(cardinalities)}
    found = network_posteriors(name_network(network), "class", codes, 5)
    for t in range(5):
        row = tuple(int(codes[f"a{i}"][t]) for i in range(len(cardinalities)))
        np.testing.assert_allclose(found[:, t], told(network, row), rtol=1e-9)


def test_a_difference_is_found_where_it_is_rare() -> None:
    model = model_of(schema_of((4, 5), 2), Dag(((), (0,)), (0, 1)), 1.0, 0)
    named = name_network(equivalent_network(model))
    wrong = np.array(named.nodes[2].probabilities)
    wrong[1, 3, :2] += (1e-3, -1e-3)
    nodes = (*named.nodes[:2], replace(named.nodes[2], probabilities=wrong))
    assert 1e-5 < largest_difference(model, replace(named, nodes=nodes), 10_000, rng()) < 1e-1


def test_a_row_without_a_probability_is_no_agreement() -> None:
    model = model_of(schema_of((2,), 2), Dag(((),), (0,)), 1.0, 0)
    named = name_network(equivalent_network(model))
    impossible = replace(named.nodes[1], probabilities=np.array([[0.0, 1.0], [0.0, 1.0]]))
    assert math.isnan(largest_difference(model, replace(named, nodes=(named.nodes[0], impossible)), 100, rng()))


@pytest.mark.parametrize("labels", [2, 3])
def test_a_class_without_attributes(labels: int) -> None:
    model = model_of(schema_of((2,), labels), Dag(((),), ()), 1.0, 0)
    assert largest_difference(model, name_network(equivalent_network(model)), 10, rng()) < 1e-15
