"""Networks in full: to a model and back, against sums over all rows; models that are none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import code_dtype
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import Network, equivalent_network, network_of, table_shapes, true_model
from bncli.engine.networks.simulation import conditioning_network
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import ModelError
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.engine.small_networks import all_rows, asia, networks, probability, strong_network
from tests.missing_values import network_model, slow_log_joint


def counted(network: Network) -> list[list[float]]:
    """Some frequencies for each attribute."""
    return [[float(code + 1) for code in range(n)] for n in network.schema.cardinalities]


@given(networks())
def test_the_probabilities_of_all_rows_sum_to_1(network: Network) -> None:
    assert math.fsum(probability(network, row) for row in all_rows(network.schema)) == pytest.approx(1.0, abs=1e-12)


@given(networks())
def test_the_true_model_scores_as_the_joint_distribution_says(network: Network) -> None:
    model = true_model(network, counted(network), 10)
    scorer = compile_scorer(model)
    n_labels = len(network.schema.labels)
    rows = [row[:-1] for row in all_rows(network.schema)[::n_labels]]
    codes = [np.array([row[i] for row in rows], code_dtype(9)) for i in scorer.used]
    log_p = log_probabilities(scorer, codes, len(rows))
    for t, row in enumerate(rows):
        joint = [probability(network, (*row, y)) for y in range(n_labels)]
        np.testing.assert_allclose(np.exp(log_p[:, t]), np.array(joint) / sum(joint), rtol=1e-9)


@given(networks())
def test_a_model_gives_back_its_network(network: Network) -> None:
    model = true_model(network, counted(network), 10)
    children = network.structure.class_children
    if any(parents for i, parents in enumerate(network.structure.parents) if i not in children):
        with pytest.raises(ModelError, match="the model has no table for 'a"):
            network_of(model)
        return
    again = network_of(model)
    np.testing.assert_allclose(again.theta_class, network.theta_class, rtol=1e-12)
    for i, (theta, old) in enumerate(zip(again.theta, network.theta, strict=True)):
        frequencies = np.array(counted(network)[i])
        np.testing.assert_allclose(theta, old if i in children else frequencies / frequencies.sum(), rtol=1e-12)


@pytest.mark.parametrize("network", [asia(), conditioning_network(1.0), strong_network(5, 0), strong_network(6, 1)])
def test_the_true_model_of_rows_with_missing_values_marginalizes_them(network: Network) -> None:
    """Against sums over all rows, for every attribute alone, and all but one."""
    n, n_labels = len(network.schema.attributes), len(network.schema.labels)
    model = true_model(network, counted(network), 10, [1.0] * n)
    assert [a.missing_weight for a in model.schema.attributes] == [1.0] * n
    again, scorer = network_of(model), compile_scorer(model)
    for i in network.structure.nodes:
        np.testing.assert_allclose(again.theta[i], network.theta[i], rtol=1e-12, atol=1e-300)
    for observed in (*((i,) for i in range(n)), *(tuple({*range(n)} - {i}) for i in range(n))):
        joint = np.zeros(n_labels)
        for row in all_rows(network.schema):
            if all(row[i] == 0 for i in observed):
                joint[row[-1]] += probability(network, row)
        codes = [
            np.array([0 if i in observed else network.schema.cardinalities[i]], code_dtype(9)) for i in scorer.used
        ]
        found = np.exp(log_probabilities(scorer, codes, 1)[:, 0])
        np.testing.assert_allclose(found, joint / joint.sum(), rtol=1e-9, atol=1e-12)


@given(networks(), st.integers(0, 9))
def test_a_model_that_sums_out_is_a_network_on_any_graph(network: Network, seed: int) -> None:
    cardinalities = network.schema.cardinalities
    model = network_model(network.structure, cardinalities, len(network.schema.labels), seed)
    again = network_of(model)
    alone = set(range(len(cardinalities))) - set(network.structure.nodes)
    for t in range(3):
        row = [(t + i) % n for i, n in enumerate(cardinalities)]
        joint = slow_log_joint(model, dict(enumerate(row)))
        for y, expected in enumerate(joint):
            found = probability(again, (*row, y))
            found /= math.prod(float(again.theta[i][row[i]]) for i in alone)
            assert math.log(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def learnt(param: str = "map", smoothing: str = "m-estimate:1") -> Model:
    data = random_dataset(300, (3, 2, 4), 3)
    dag = Dag(((), (0,), (1, 0)), (0, 1, 2))
    tables = generative_tables(Counts(data), dag, smoothing)
    return Model(data.schema, dag, tables, Recipe(param=param), data.n_rows, "1.2.3")


@pytest.mark.parametrize("param", ["map", "extended"])
@pytest.mark.parametrize("smoothing", ["mle", "laplace:1", "fgg:5", "bdeu:1"])
def test_every_smoothing_gives_a_network(param: str, smoothing: str) -> None:
    network = network_of(learnt(param, smoothing))
    assert network.n_entries == 3 + 3 * 3 + 2 * 3 * 3 + 4 * 2 * 3 * 3
    assert [table.shape for table in network.theta] == [(3, 3), (2, 3, 3), (4, 2, 3, 3)]
    for table in network.theta:
        np.testing.assert_allclose(table.sum(axis=0), 1.0, atol=1e-6)


@pytest.mark.parametrize("param", ["weighted", "discriminative", "lr", "lr-roos"])
def test_weights_are_no_probabilities(param: str) -> None:
    with pytest.raises(ModelError, match=f"the parameters '{param}' of the model are not .*--param map, acll"):
        network_of(learnt(param))


def test_tables_that_are_not_what_the_recipe_says() -> None:
    model = learnt()
    weights = (model.tables.weights[0] + 0.1, *model.tables.weights[1:])
    with pytest.raises(ModelError, match="the table of 'a0' does not hold probabilities"):
        network_of(replace(model, predictor=Tables(model.tables.bias, model.tables.families, weights)))
    huge = Tables(model.tables.bias + 1e300, model.tables.families, model.tables.weights)
    with pytest.raises(ModelError, match="the table of 'class' does not hold probabilities"):
        network_of(replace(model, predictor=huge))


def test_tables_of_another_structure() -> None:
    with pytest.raises(ModelError, match="not those of its structure"):
        network_of(replace(learnt(), structure=Dag(((), (), ()), (0, 1, 2))))


def test_an_attribute_that_was_never_counted_has_equally_likely_codes() -> None:
    model = learnt()
    attributes = (replace(model.schema.attributes[0], frequencies=(0.0, 0.0, 0.0)), *model.schema.attributes[1:])
    dag = Dag(((), (0,), ()), (1,))
    tables = generative_tables(Counts(random_dataset(300, (3, 2, 4), 3)), dag, "m-estimate:1")
    network = network_of(
        replace(model, schema=replace(model.schema, attributes=attributes), structure=dag, predictor=tables)
    )
    assert network.theta[0].tolist() == [1 / 3] * 3
    assert network.theta[2].tolist() == [1 / 4] * 4


def test_an_impossible_value_has_a_finite_logarithm() -> None:
    tables = true_model(conditioning_network(4.0), [[1.0, 1.0]] * 3, 2).tables
    assert np.isfinite(tables.weights[0]).all()
    assert tables.weights[0][0b100].tolist() == [pytest.approx(-708.396, abs=1e-3), 0.0]


def test_shapes_of_tables() -> None:
    dag = Dag(((1,), (), (0, 1)), (0, 2), (1,))
    assert table_shapes(dag, (2, 3, 4), 5) == [(2, 3, 5), (3,), (4, 2, 3, 5), (3, 5)]


def test_regions_are_no_network() -> None:
    model = replace(learnt(), structure=Regions(((0, 1),)))
    for make in (network_of, equivalent_network):
        with pytest.raises(ModelError, match=r"made of regions, .* learn a network"):
            make(model)
