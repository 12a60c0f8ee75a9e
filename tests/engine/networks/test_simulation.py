"""Random networks, rows drawn from networks, and removed values."""

from __future__ import annotations

import math
from collections import Counter
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.learn import learn
from bncli.engine.networks import simulation
from bncli.engine.networks.network import Network, true_model
from bncli.engine.networks.simulation import (
    MOST_ENTRIES,
    MissingCompletelyAtRandom,
    RandomNetworkKind,
    conditioning_network,
    count_missing,
    missing_shares,
    named_spec,
    numbered,
    random_network,
    sample,
    sample_blocks,
)
from bncli.engine.structure_learners import tan
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError, UsageError
from bncli.recipe import Recipe
from tests.datasets import coded_rows
from tests.engine.small_networks import all_rows, networks, probability


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(p=st.integers(1, 5), n=st.integers(1, 8), d=st.integers(2, 4), seed=st.integers(0, 99))
def test_a_named_network_is_perfect_and_looks_back(p: int, n: int, d: int, seed: int) -> None:
    network = random_network(f"{p}.{n}.{d}.100", rng(seed))
    dag = network.structure
    assert dag.class_children == tuple(range(n))
    assert dag.parents == tuple(tuple(j for j in reversed(range(i)) if i - j < p) for i in range(n))
    assert dag.unmarried is None
    assert network.schema.cardinalities == (d,) * n
    assert len(network.schema.labels) == d


def test_the_name_of_the_paper() -> None:
    spec = named_spec("2.30.2-3.1000")
    assert spec == RandomNetworkKind("2.30.2-3.1000", 1, 30, (2, 3), (2, 3), True, 1000, {"network": "2.30.2-3.1000"})
    assert named_spec("tan") is named_spec("2.30.1000") is named_spec("2.30.2-3-4.1000") is None


@pytest.mark.slow
def test_a_domain_size_is_drawn_for_each_attribute_and_the_class() -> None:
    networks = [random_network("1.1000.2-3.10", rng(seed)) for seed in range(40)]
    share = np.mean([n == 3 for network in networks for n in network.schema.cardinalities])
    assert abs(share - 0.5) < 4 * 0.5 / math.sqrt(40_000)
    assert {len(network.schema.labels) for network in networks} == {2, 3}


@given(k=st.integers(0, 4), n=st.integers(1, 8), seed=st.integers(0, 99))
def test_random_parents_come_earlier_in_some_order(k: int, n: int, seed: int) -> None:
    dag = random_network(RandomNetworkKind("kdb", k, n, classes=(2, 4)), rng(seed)).structure
    order = list(TopologicalSorter(dict(enumerate(dag.parents))).static_order())
    assert sorted(order) == list(range(n))
    assert dag.class_children == tuple(range(n))
    assert sorted(len(set(parents)) for parents in dag.parents) == [min(k, place) for place in range(n)]
    assert (dag.unmarried is None) or k > 1


def test_every_tree_of_three_attributes_occurs() -> None:
    trees = {random_network(RandomNetworkKind("tan", 1, 3), rng(seed)).structure.parents for seed in range(200)}
    assert len(trees) == 9


@pytest.mark.parametrize("d", [2, 3, 7])
def test_distributions_are_drawn_uniformly(d: int) -> None:
    """Each probability of a Dirichlet distribution of ones has the distribution Beta(1, d - 1)."""
    network = random_network(RandomNetworkKind("nb", 0, 300, (d, d), (10, 10)), rng(1))
    theta = np.stack(network.theta)
    assert theta.shape == (300, d, 10)
    assert (theta >= 0).all()
    np.testing.assert_allclose(theta.sum(axis=1), 1.0, rtol=1e-12)
    for value in range(d):
        assert stats.kstest(theta[:, value].ravel(), stats.beta(1, d - 1).cdf).pvalue > 1e-3
    if d > 2:
        covariance = np.cov(theta[:, 0].ravel(), theta[:, 1].ravel())[0, 1]
        assert covariance == pytest.approx(-1 / (d * d * (d + 1)), rel=0.25)


def test_names_sort_as_numbers() -> None:
    assert numbered("v", 11)[:3] == ("v00", "v01", "v02")
    assert numbered("x", 9, first=1)[-1] == "x9"
    assert numbered("x", 10, first=1)[0] == "x01"
    for n in (1, 9, 10, 11, 101):
        assert list(numbered("v", n)) == sorted(numbered("v", n))


def test_a_seed_gives_the_same_network_on_any_machine() -> None:
    network = random_network("2.3.2-3.10", rng(7))
    assert network.schema.cardinalities == (3, 3, 3)
    assert network.theta_class.tolist() == [0.6397171669425262, 0.10205378041933089, 0.2582290526381429]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("0.3.2.10", "needs at least one parent"),
        ("1.3.2.0", "needs at least one row"),
        ("1.0.2.10", "a random network cannot have 0 attributes"),
        ("1.3.1.10", "a random network cannot have 1 values"),
        ("1.3.3-2.10", "a random network cannot have 3-2 values"),
        ("1.99999.2.10", "a random network cannot have 99999 attributes"),
        ("1.3.2.9999999999999999", "is too large"),
        ("3.40.1000.10", "would have 1,000,000,000,000 probabilities or more"),
        ("900.1000.2.10", "would have about 10^271 probabilities or more"),
        ("tree", "there is no network 'tree'"),
    ],
)
def test_invalid_names(name: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        random_network(name, rng())
    assert message in str(raised.value)


def test_the_sum_of_all_tables_is_limited() -> None:
    with pytest.raises(UsageError, match="probabilities or more"):
        random_network(RandomNetworkKind("nb", 0, 10_000, (100, 100), (50, 50)), rng())
    assert 10_000 * 100 * 50 > MOST_ENTRIES > 100 * 50


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 300.0])
def test_conditioning_network(exponent: float) -> None:
    network = conditioning_network(exponent)
    for x in np.ndindex(2, 2, 2):
        score = 10**exponent * x[0] + x[1] + x[2] / 10**exponent
        odds = math.exp(-min(score, 700.0))
        assert probability(network, (*x, 1)) == pytest.approx(1 / 8 / (1 + odds))
        assert probability(network, (*x, 0)) + probability(network, (*x, 1)) == pytest.approx(1 / 8)
    assert network.structure.class_parents == (0, 1, 2)
    assert network.schema.labels == ("0", "1")


@pytest.mark.parametrize("exponent", [-1.0, 301.0, math.nan, math.inf])
def test_invalid_exponents(exponent: float) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 300"):
        conditioning_network(exponent)


def codes_of(columns: Columns, schema: Schema) -> NDArray[np.intp]:
    """Return the codes of the attributes and of the label, as reading the rows gives them, as (N, n + 1)."""
    data = coded_rows(columns, schema)
    return np.stack([*(c.astype(np.intp) for c in data.codes), data.labels.astype(np.intp)], axis=1)


def assert_likely(counts: NDArray[Any], expected: NDArray[Any]) -> None:
    """Check that Pearson's chi-square is within five standard deviations of its mean; the sums are equal."""
    possible = expected > 0
    assert (counts[~possible] == 0).all()
    statistic = float(((counts - expected)[possible] ** 2 / expected[possible]).sum())
    freedom = max(int(possible.sum()) - 1, 1)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 5


@pytest.mark.slow
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


def test_rows_of_the_conditioning_network() -> None:
    network = conditioning_network(0.5)
    codes = codes_of(sample(network, 100_000, rng(1)), network.schema)
    counts = np.zeros((2, 2, 2, 2))
    np.add.at(counts, tuple(codes.T), 1.0)
    expected = [100_000 * probability(network, row) for row in all_rows(network.schema)]
    assert_likely(counts.ravel(), np.array(expected))


def test_impossible_rows_do_not_occur() -> None:
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
    assert simulation._finite_edges((1.0, 3.0, 4.0)).tolist() == [-1.0, 1.0, 3.0, 4.0, 5.0]
    assert simulation._finite_edges((4.0,)).tolist() == [0.0, 4.0, 8.0]
    assert simulation._finite_edges((0.0,)).tolist() == [-1.0, 0.0, 1.0]
    assert simulation._finite_edges(()).tolist() == [0.0, 1.0]


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


def test_a_model_learned_from_the_rows_of_a_model_is_that_model() -> None:
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


def table(n: int) -> Columns:
    """Return a categorical column, a numeric one, a narrow one of whole numbers, the class and weights."""
    codes = np.arange(n, dtype=np.int8) % 3
    attributes: dict[str, Column] = {
        "a": CategoricalColumn(codes, ("x", "y", "z")),
        "b": NumericColumn(np.linspace(0.0, 1.0, n)),
        "c": NumericColumn(np.arange(n, dtype=np.int16)),
    }
    return Columns(n, attributes, "class", CategoricalColumn(codes % 2, ("n", "p")), np.linspace(1.0, 2.0, n))


def missing(rows: Columns) -> np.ndarray:
    """Return where a value is missing, as (attributes, N)."""
    return np.stack(
        [c.codes < 0 if isinstance(c, CategoricalColumn) else np.isnan(c.values) for c in rows.attributes.values()]
    )


def removal(*shares: float, seed: int = 0) -> MissingCompletelyAtRandom:
    return MissingCompletelyAtRandom(shares, np.random.default_rng(seed))


def test_values_are_removed_at_the_given_shares() -> None:
    found = missing(removal(0.0, 0.25, 0.9).applied_to(table(20_000))).mean(axis=1)
    assert found[0] == 0
    assert found[1:] == pytest.approx([0.25, 0.9], abs=0.015)


def test_removals_are_independent_of_the_values_and_of_each_other() -> None:
    rows = table(30_000)
    a, b, c = missing(removal(0.3, 0.3, 0.3).applied_to(rows))
    codes = np.arange(30_000) % 3
    assert [a[codes == v].mean() for v in range(3)] == pytest.approx([0.3] * 3, abs=0.02)
    assert [(a & b).mean(), (b & c).mean(), (a & c).mean()] == pytest.approx([0.09] * 3, abs=0.01)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.0, 0.99), st.integers(0, 9))
def test_blocks_do_not_change_what_is_removed(n: int, cut: int, share: float, seed: int) -> None:
    rows, cut = table(n), min(cut, n)
    whole = missing(removal(share, share, share, seed=seed).applied_to(rows))
    applied_to = removal(share, share, share, seed=seed).applied_to
    blocks = [missing(applied_to(rows.take(part))) for part in (np.arange(cut), np.arange(cut, n))]
    assert (np.concatenate(blocks, axis=1) == whole).all()


@given(st.integers(0, 40), st.floats(0.0, 0.99), st.floats(0.0, 0.99), st.integers(0, 9))
def test_a_larger_share_removes_a_superset(n: int, share: float, other: float, seed: int) -> None:
    few, many = (missing(removal(s, s, s, seed=seed).applied_to(table(n))) for s in sorted((share, other)))
    assert (many | ~few).all()


def test_values_that_are_not_removed_do_not_change() -> None:
    rows = table(500)
    before = missing(rows).copy()
    removed = removal(0.4, 0.4, 0.4).applied_to(rows)
    assert (missing(rows) == before).all()
    assert (removed.label, removed.class_name, removed.n_rows) == (rows.label, "class", 500)
    assert removed.weights is rows.weights
    for name, column in removed.attributes.items():
        original = rows.attributes[name]
        if isinstance(column, CategoricalColumn) and isinstance(original, CategoricalColumn):
            remains = column.codes != MISSING
            assert (column.codes[remains] == original.codes[remains]).all()
            assert column.levels == original.levels
        elif isinstance(column, NumericColumn) and isinstance(original, NumericColumn):
            remains = ~np.isnan(column.values)
            assert (column.values[remains] == original.values[remains]).all()


def test_existing_missing_values_remain() -> None:
    rows = removal(0.3, 0.3, 0.3).applied_to(table(300))
    again = removal(0.3, 0.3, 0.3, seed=1).applied_to(rows)
    assert (missing(again) | ~missing(rows)).all()
    for name, column in again.attributes.items():
        before = rows.attributes[name]
        assert count_missing(column) > count_missing(before) > count_missing(table(300).attributes[name]) == 0


def test_the_shares_of_a_schema() -> None:
    attributes = (
        NumericAttribute("a", False, (3.0, 4.5), (0.0,), missing_weight=2.5),
        CategoricalAttribute("b", True, (6.0, 4.0), ("x",)),
        CategoricalAttribute("c", False, (0.0,), ("x",), missing_weight=10.0),
        CategoricalAttribute("d", False, (), ()),
    )
    assert missing_shares(Schema("class", ("n", "p"), attributes)) == (0.25, 0.0, 1.0, 0.0)
