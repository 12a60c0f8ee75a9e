"""Log-linear tables as networks: P(y | x) of every row, compared with sums of table entries, row by row."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.schema import Schema
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import Network, equivalent_network, network_of, normalised_tables, true_model
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from bncli.recipe import Recipe
from tests.datasets import random_dataset, schema_of
from tests.engine.small_networks import all_rows, networks, probability
from tests.spaces import fit
from tests.strategies import dags, perfected, schemas


def model_of(schema: Schema, dag: Dag, scale: float, seed: int, param: str = "discriminative") -> Model:
    """Tables at random, normal with this deviation."""
    rng = np.random.default_rng(seed)
    families, n_labels = dag.families(schema.cardinalities), len(schema.labels)
    weights = tuple(scale * rng.normal(size=(family.n_cells, n_labels)) for family in families)
    return Model(schema, dag, Tables(scale * rng.normal(size=n_labels), families, weights), Recipe(param=param), 9, "1")


@st.composite
def perfect_models(draw: st.DrawFn, scales: tuple[float, ...] = (0.1, 1.0, 10.0)) -> Model:
    schema = draw(schemas(max_attributes=4, max_labels=3))
    dag = perfected(draw(dags(len(schema.attributes))))
    return model_of(schema, dag, draw(st.sampled_from(scales)), draw(st.integers(0, 2**32 - 1)))


def scored(model: Model) -> dict[tuple[int, ...], list[float]]:
    """P(y | x) of every complete row, by adding up table entries."""
    result = {}
    for row in {row[:-1] for row in all_rows(model.schema)}:
        scores = [float(s) for s in model.tables.bias]
        for family, table in zip(model.tables.families, model.tables.weights, strict=True):
            cell = 0
            for i, n in zip(family.attributes, family.shape, strict=True):
                cell = cell * n + row[i]
            scores = [s + float(table[cell, y]) for y, s in enumerate(scores)]
        powers = [math.exp(s - max(scores)) for s in scores]
        result[row] = [p / sum(powers) for p in powers]
    return result


def told(network: Network, row: tuple[int, ...]) -> list[float]:
    """P(y | x), by multiplying probabilities; those of nodes without the class cancel, even where they are 0."""
    children = network.structure.class_children
    theta = tuple(t if i in children else np.ones_like(t) for i, t in enumerate(network.theta))
    network = replace(network, theta=theta)
    joint = [probability(network, (*row, y)) for y in range(len(network.schema.labels))]
    return [p / sum(joint) for p in joint]


def assert_equivalent(model: Model, network: Network) -> None:
    for row, expected in scored(model).items():
        assert told(network, row) == pytest.approx(expected, abs=1e-12, rel=0)


@given(perfect_models())
def test_every_row_keeps_its_posterior_on_perfect_graphs(model: Model) -> None:
    network = equivalent_network(model)
    assert_equivalent(model, network)
    for theta in network.theta:
        np.testing.assert_allclose(theta.sum(axis=0), 1.0, atol=1e-12)
    np.testing.assert_allclose(network.theta_class.sum(axis=-1), 1.0, atol=1e-12)


@given(perfect_models(scales=(100.0, 250.0)))
def test_large_weights_stay_finite_and_keep_what_is_likely(model: Model) -> None:
    network = equivalent_network(model)
    for theta in (*network.theta, network.theta_class):
        assert np.isfinite(theta).all()
        assert (theta >= 0).all()
    assert_equivalent_in_logs(model)


def assert_equivalent_in_logs(model: Model) -> None:
    """The same, before probabilities underflow."""
    again = replace(model, predictor=normalised_tables(model))
    found = scored(again)
    for row, expected in scored(model).items():
        assert found[row] == pytest.approx(expected, abs=1e-9, rel=0)


@pytest.mark.parametrize("scale", [300.0, 700.0, 1e6])
def test_a_value_is_never_impossible_under_every_class(scale: float) -> None:
    """All classes shun the first value: what they say of it must not drown."""
    schema = schema_of((3, 2), 2)
    dag = Dag(((), (0,)), (0, 1))
    weights = (np.array([[-scale, -scale + 1], [0, 0], [scale, scale]]), np.zeros((6, 2)))
    model = Model(schema, dag, Tables(np.zeros(2), dag.families((3, 2)), weights), Recipe(), 9, "1")
    network = equivalent_network(model)
    assert network.theta[0].max(axis=-1).min() > 1e-14
    assert_equivalent(model, network)


def test_the_class_takes_over_what_children_of_its_parents_hand_up() -> None:
    """0 -> class, 0 -> 1, class -> 1: the sums of the table of 1 depend on 0 and on the class."""
    schema = schema_of((2, 3), 3)
    model = model_of(schema, Dag(((), (0,)), (1,), (0,)), 2.0, 0)
    network = equivalent_network(model)
    assert_equivalent(model, network)
    assert network.theta_class.shape == (2, 3)
    assert network.theta[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("param", ["weighted 4", "weighted 1", "discriminative", "lr", "lr_roos"])
def test_what_was_learnt_becomes_a_network(param: str) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (1,)), (0, 1, 2))
    tables = fit(param, data, dag, penalty=1.0).tables
    model = Model(data.schema, dag, tables, Recipe(param=param.split()[0].replace("_", "-")), data.n_rows, "1")
    assert_equivalent(model, equivalent_network(model))


@pytest.mark.parametrize("param", ["map", "extended", "acll", "acll-uniform"])
def test_a_network_stays_as_it_is(param: str) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (), (0, 1)), (0, 1, 2))
    assert dag.unmarried is not None
    tables = generative_tables(Counts(data), dag, "mle")
    model = Model(data.schema, dag, tables, Recipe(param=param), data.n_rows, "1")
    network = equivalent_network(model)
    for theta, own in zip(network.theta, network_of(model).theta, strict=True):
        assert (theta == own).all()
    assert_equivalent(model, network)


def modelled(network: Network) -> Model:
    """The model that a network is."""
    return true_model(network, [[float(code + 1) for code in range(n)] for n in network.schema.cardinalities], 9)


@given(networks())
def test_any_network_is_written_whatever_its_graph(network: Network) -> None:
    assert_equivalent(modelled(network), equivalent_network(modelled(network)))


def test_on_a_perfect_graph_probabilities_are_left_alone() -> None:
    """Tables that sum to 1 have nothing to hand up."""
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0, 1)), (0, 1, 2))
    tables = generative_tables(Counts(data), dag, "laplace:1")
    model = Model(data.schema, dag, tables, Recipe(param="map"), data.n_rows, "1")
    again = normalised_tables(model)
    for one, other in zip((tables.bias, *tables.weights), (again.bias, *again.weights), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_a_graph_that_is_not_perfect_is_refused() -> None:
    model = model_of(schema_of((2, 2, 2), 2), Dag(((), (), (0, 1)), (0, 1, 2)), 1.0, 0, "weighted")
    with pytest.raises(ModelError, match="no arc joins 'a0' and 'a1', both parents of 'a2'; learn with --param map"):
        equivalent_network(model)


def test_tables_of_another_structure() -> None:
    model = model_of(schema_of((2, 2), 2), Dag(((), (0,)), (0, 1)), 1.0, 0)
    with pytest.raises(ModelError, match="not those of its structure"):
        equivalent_network(replace(model, structure=Dag(((), ()), (0, 1))))


def test_no_attributes_at_all() -> None:
    model = model_of(schema_of((), 3), Dag((), ()), 1.0, 0)
    assert_equivalent(model, equivalent_network(model))
