"""Rows drawn from networks: frequencies against the joint distribution, streams, intervals, and learning them again."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.learn import learn
from bncli.engine.networks import simulation
from bncli.engine.networks.network import Network, true_model
from bncli.engine.networks.simulation import (
    RandomNetworkKind,
    conditioning_network,
    random_network,
    sample,
    sample_blocks,
)
from bncli.engine.structure_learners import tan
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from bncli.recipe import Recipe
from tests.datasets import coded_rows
from tests.engine.small_networks import all_rows, networks, probability


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def codes_of(columns: Columns, schema: Schema) -> NDArray[np.intp]:
    """(N, n + 1): the codes of the attributes and the label, as a reader of the rows would code them."""
    data = coded_rows(columns, schema)
    return np.stack([*(c.astype(np.intp) for c in data.codes), data.labels.astype(np.intp)], axis=1)


def assert_likely(counts: NDArray[Any], expected: NDArray[Any]) -> None:
    """Pearson's chi-square within five standard deviations of its mean; the sums are equal."""
    possible = expected > 0
    assert (counts[~possible] == 0).all()
    statistic = float(((counts - expected)[possible] ** 2 / expected[possible]).sum())
    freedom = max(int(possible.sum()) - 1, 1)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 5


@given(networks(), st.integers(0, 9))
def test_rows_occur_as_often_as_their_probability_says(network: Network, seed: int) -> None:
    n = 20_000
    drawn = Counter(map(tuple, codes_of(sample(network, n, rng(seed)), network.schema).tolist()))
    rows = all_rows(network.schema)
    expected = np.array([n * probability(network, row) for row in rows])
    order = np.argsort(expected)
    counts = np.array([float(drawn[row]) for row in rows])
    assert sum(counts) == n
    groups = np.cumsum(expected[order]) // 20  # rare rows together, so that the statistic is one of chi-square
    assert_likely(np.bincount(groups.astype(int), counts[order]), np.bincount(groups.astype(int), expected[order]))


def test_each_conditional_distribution_of_a_large_network() -> None:
    network = random_network("3.30.2-3.200000", rng(3))
    data = coded_rows(sample(network, 200_000, rng(4)), network.schema)
    counts = Counts(data)
    for i, parents in enumerate(network.structure.parents):
        table = counts.tables([(i, *parents)])[0]
        assert_likely(table.ravel(), (network.theta[i] * table.sum(axis=0)).ravel())


def test_conditioning() -> None:
    network = conditioning_network(0.5)
    codes = codes_of(sample(network, 100_000, rng(1)), network.schema)
    counts = np.zeros((2, 2, 2, 2))
    np.add.at(counts, tuple(codes.T), 1.0)
    expected = [100_000 * probability(network, row) for row in all_rows(network.schema)]
    assert_likely(counts.ravel(), np.array(expected))


def test_what_cannot_be_does_not_occur() -> None:
    schema = Schema("class", ("a", "b"), (CategoricalAttribute("x", False, (), ("u", "v", "w")),))
    theta = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    network = Network(schema, Dag(((),), (0,)), np.array([0.5, 0.5]), (theta,))
    codes = codes_of(sample(network, 5_000, rng()), schema)
    assert set(map(tuple, codes.tolist())) == {(1, 0), (0, 1)}


def values(columns: Columns) -> dict[str, NDArray[np.generic]]:
    named = {**columns.attributes, "label": columns.label}
    return {n: c.values if isinstance(c, NumericColumn) else c.codes for n, c in named.items() if c is not None}


@given(networks(), st.integers(1, 60), st.integers(0, 60))
def test_blocks_and_lengths_do_not_change_rows(network: Network, size: int, rows: int) -> None:
    whole = values(sample(network, rows, rng(5)))
    longer = values(sample(network, rows + 7, rng(5)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "ROWS_PER_BLOCK", size)
        blocks = [values(block) for block in sample_blocks(network, rows, rng(5))]
    for name, column in whole.items():
        np.testing.assert_array_equal(longer[name][:rows], column)
        pieces = [block[name] for block in blocks]
        np.testing.assert_array_equal(np.concatenate(pieces) if pieces else column[:0], column)


def test_wide_networks_come_in_short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "NUMBERS_PER_BLOCK", 50)
    blocks = list(sample_blocks(random_network("1.9.2.20", rng()), 20, rng()))
    assert [block.n_rows for block in blocks] == [6, 6, 6, 2]


CUTS = [
    (),
    (0.0,),
    (-2.5,),
    (1e-300, 2e-300),
    (5e-324,),
    (1.0, 1.0000000000000002),
    (0.9999999999999999, 1.0),
    (-1.7e308, 1.7e308),
    (1.7976931348623157e308,),
    (-1.7976931348623157e308, 0.0),
    (1.0, 2.5, 7.0, 7.5),
]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_a_number_lies_in_its_interval(cuts: tuple[float, ...], missing: bool) -> None:
    attribute = NumericAttribute("x", missing, (), cuts)
    schema = Schema("class", ("a", "b"), (attribute,))
    for code in range(attribute.cardinality):
        theta = np.eye(attribute.cardinality)[code]
        network = Network(schema, Dag(((),), ()), np.array([0.5, 0.5]), (theta,))
        column = sample(network, 200, rng(code)).attributes["x"]
        assert isinstance(column, NumericColumn)
        if code == attribute.n_values:
            assert np.isnan(column.values).all()
            continue
        assert np.isfinite(column.values).all()
        assert (np.searchsorted(cuts, column.values, side="left") == code).all() or (
            cuts == (1.7976931348623157e308,) and code == 1  # nothing is larger than the largest number
        )


def test_outer_intervals_are_as_wide_as_their_neighbours() -> None:
    assert simulation._edges((1.0, 3.0, 4.0)).tolist() == [-1.0, 1.0, 3.0, 4.0, 5.0]
    assert simulation._edges((4.0,)).tolist() == [0.0, 4.0, 8.0]
    assert simulation._edges((0.0,)).tolist() == [-1.0, 0.0, 1.0]
    assert simulation._edges(()).tolist() == [0.0, 1.0]


def test_numbers_are_uniform_inside_their_interval() -> None:
    schema = Schema("class", ("a", "b"), (NumericAttribute("x", False, (), (0.0, 4.0)),))
    network = Network(schema, Dag(((),), ()), np.array([0.5, 0.5]), (np.array([0.0, 1.0, 0.0]),))
    column = sample(network, 40_000, rng(2)).attributes["x"]
    assert isinstance(column, NumericColumn)
    assert_likely(np.histogram(column.values, 8, (0.0, 4.0))[0].astype(float), np.full(8, 5_000.0))


def test_the_missing_level_is_a_missing_value() -> None:
    schema = Schema("class", ("a", "b"), (CategoricalAttribute("x", True, (), ("u",)),))
    network = Network(schema, Dag(((),), ()), np.array([0.5, 0.5]), (np.array([0.25, 0.75]),))
    column = sample(network, 1_000, rng()).attributes["x"]
    assert isinstance(column, CategoricalColumn)
    assert set(column.codes.tolist()) == {-1, 0}
    assert column.codes.dtype == np.int8


def test_two_samples_of_one_generator_differ() -> None:
    network, generator = random_network("1.5.5.9", rng()), rng()
    first, second = sample(network, 100, generator), sample(network, 100, generator)
    assert any((values(first)[name] != values(second)[name]).any() for name in values(first))


@pytest.mark.parametrize("seed", range(5))
def test_learning_recovers_the_tree(seed: int) -> None:
    generator = rng(seed)
    network = random_network(RandomNetworkKind("tan", 1, 8), generator)
    data = coded_rows(sample(network, 100_000, generator), network.schema)
    assert edges(tan.learn(Counts(data))) == edges(network.structure)


def edges(dag: Dag) -> set[frozenset[int]]:
    return {frozenset((i, j)) for i, parents in enumerate(dag.parents) for j in parents}


GENERATIVE = Recipe.of(param="map")


def test_a_model_learnt_from_the_rows_of_a_model_is_that_model() -> None:
    generator = rng(1)
    network = random_network(RandomNetworkKind("tan", 1, 5), generator)
    model = learn(sample(network, 200_000, generator), GENERATIVE).model
    again = learn(sample(model, 200_000, generator), GENERATIVE).model
    assert again.structure == model.structure
    for theta, other in zip(model.tables.weights, again.tables.weights, strict=True):
        assert np.abs(np.exp(theta) - np.exp(other)).max() < 0.1


def test_a_model_that_is_no_network() -> None:
    network = random_network("1.2.2.9", rng())
    model = true_model(network, [[1.0, 1.0]] * 2, 2)
    weighted = type(model)(model.schema, model.structure, model.tables, Recipe(), 2, "1.2.3")
    with pytest.raises(ModelError, match="'weighted'"):
        sample(weighted, 10, rng())
