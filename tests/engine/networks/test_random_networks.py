"""Random networks: who is whose parent, how large, and that their distributions are drawn uniformly."""

from __future__ import annotations

import math
from graphlib import TopologicalSorter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.networks.simulation import (
    MOST_ENTRIES,
    RandomNetworkKind,
    conditioning_network,
    named_spec,
    numbered,
    random_network,
)
from bncli.errors import UsageError
from tests.engine.small_networks import probability


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
        ("1.0.2.10", "a network of 0 attributes"),
        ("1.3.1.10", "a network of 1 values"),
        ("1.3.3-2.10", "a network of 3-2 values"),
        ("1.99999.2.10", "a network of 99999 attributes"),
        ("1.3.2.9999999999999999", "is too large"),
        ("3.40.1000.10", "would hold 1,000,000,000,000 probabilities or more"),
        ("900.1000.2.10", "would hold about 10^271 probabilities or more"),
        ("tree", "there is no network 'tree'"),
    ],
)
def test_hostile_names(name: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        random_network(name, rng())
    assert message in str(raised.value)


def test_the_tables_together_count() -> None:
    with pytest.raises(UsageError, match="probabilities or more"):
        random_network(RandomNetworkKind("nb", 0, 10_000, (100, 100), (50, 50)), rng())
    assert 10_000 * 100 * 50 > MOST_ENTRIES > 100 * 50


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 300.0])
def test_conditioning(exponent: float) -> None:
    network = conditioning_network(exponent)
    for x in np.ndindex(2, 2, 2):
        score = 10**exponent * x[0] + x[1] + x[2] / 10**exponent
        odds = math.exp(-min(score, 700.0))
        assert probability(network, (*x, 1)) == pytest.approx(1 / 8 / (1 + odds))
        assert probability(network, (*x, 0)) + probability(network, (*x, 1)) == pytest.approx(1 / 8)
    assert network.structure.class_parents == (0, 1, 2)
    assert network.schema.labels == ("0", "1")


@pytest.mark.parametrize("exponent", [-1.0, 301.0, math.nan, math.inf])
def test_exponents_beyond_all_numbers(exponent: float) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 300"):
        conditioning_network(exponent)
