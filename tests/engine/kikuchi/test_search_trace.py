"""Steps along a path against models rebuilt row by row; naive Bayes and trees are special cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi.search_trace import GrowingModel, follow, log_prior, log_priors
from bncli.watch import Event, Progress
from tests import kikuchi_oracle, oracles
from tests.datasets import random_dataset
from tests.strategies import datasets

Region = tuple[int, ...]


@st.composite
def paths(draw: st.DrawFn) -> tuple[Dataset, list[Region]]:
    data = draw(datasets())
    members = st.integers(0, len(data.codes) - 1)
    region = st.lists(members, min_size=1, max_size=4, unique=True).map(sorted).map(tuple)
    return data, draw(st.lists(region, max_size=6))


@given(paths(), st.sampled_from([0.2, 1.0]), st.sampled_from(["conditional", "joint", "structural-zeros"]))
def test_every_step_is_the_model_rebuilt(case: tuple[Dataset, list[Region]], theta: float, kind: str) -> None:
    data, regions = case
    found = follow(Counts(data), regions, theta, degrees_of_freedom=kind)
    slow = kikuchi_oracle.Slow(data, theta, kind)
    steps = [slow.step(regions[:s]) for s in range(len(regions) + 1)]
    assert found.df == tuple(step.df for step in steps)
    np.testing.assert_allclose(found.log_likelihood, [step.log_likelihood for step in steps], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.log_posterior, [step.log_posterior for step in steps], rtol=1e-9, atol=1e-9)
    assert found.map_step == found.log_posterior.index(max(found.log_posterior))


@given(datasets())
def test_single_attributes_make_naive_bayes(data: Dataset) -> None:
    singles = [(i,) for i in range(len(data.codes))]
    assert follow(Counts(data), singles, 1.0).log_likelihood[-1] == pytest.approx(
        _network(data, dict.fromkeys(range(len(data.codes)), ())), rel=1e-9
    )


@given(datasets(), st.randoms())
def test_the_pairs_of_a_tree_make_its_network(data: Dataset, random: object) -> None:
    n = len(data.codes)
    parents: dict[int, Region] = {0: ()}
    for i in range(1, n):
        parents[i] = (random.randrange(i),)  # type: ignore[attr-defined]
    pairs = [tuple(sorted((i, *listed))) for i, listed in parents.items()]
    assert follow(Counts(data), pairs, 1.0).log_likelihood[-1] == pytest.approx(_network(data, parents), rel=1e-9)


@given(datasets())
def test_overlapping_triples_make_a_chain_of_second_order(data: Dataset) -> None:
    n = len(data.codes)
    parents = {i: tuple(range(max(0, i - 2), i)) for i in range(n)}
    regions = [(*listed, i) for i, listed in parents.items()]
    assert follow(Counts(data), regions, 1.0).log_likelihood[-1] == pytest.approx(_network(data, parents), rel=1e-9)


def _network(data: Dataset, parents: dict[int, Region]) -> float:
    """The log-likelihood of the classes under P(y) prod P(x_i | parents, y), as ratios of submodels, row by row."""
    slow = kikuchi_oracle.Slow(data, 1.0)
    terms = []
    for t, w in enumerate(slow.weights):
        row = [int(codes[t]) for codes in data.codes]
        scores = np.log(slow.submodel(()))
        for i, listed in parents.items():
            above = slow.submodel(listed)[tuple(row[j] for j in listed)]
            family = tuple(sorted((i, *listed)))
            scores = scores + np.log(slow.submodel(family)[tuple(row[j] for j in family)] / above)
        terms.append(w * oracles.log_posterior(scores.tolist())[int(data.labels[t])])
    return math.fsum(terms)


def test_a_region_inside_the_model_changes_nothing() -> None:
    data = random_dataset(100, (2, 3, 2), 3, seed=1)
    found = follow(Counts(data), [(0, 1), (1,), (0, 1)], 1.0)
    assert len(set(found.df[1:])) == len(set(found.log_posterior[1:])) == 1


def test_tables_counted_before_change_no_bit() -> None:
    data = random_dataset(300, (2, 3, 2), 3, seed=1, weighted=True)
    counts = Counts(data)
    counts.tables([(0, 1, 2)])
    assert follow(counts, [(0,), (0, 2)], 1.0) == follow(Counts(data), [(0,), (0, 2)], 1.0)


def test_what_add_returns_is_new() -> None:
    growing = GrowingModel(Counts(random_dataset(50, (2, 2, 2), 2)), 1.0)
    assert growing.add((0, 1)) == [(0,), (1,), (0, 1)]
    assert growing.add((0, 2)) == [(2,), (0, 2)]
    assert growing.regions == [(0, 1), (0, 2)]


def test_the_prior() -> None:
    assert log_prior(100.0, 10) == pytest.approx(-1000 / 89)
    assert log_prior(100.0, 98) == -9800
    assert log_prior(100.0, 99) == log_prior(100.0, 1000) == -math.inf
    np.testing.assert_array_equal(log_priors(100.0, np.array([0.0, 99.0])), [0, -math.inf])


def test_progress_is_told() -> None:
    events: list[Event] = []
    follow(Counts(random_dataset(50, (2, 2), 2)), [(0,), (1,)], 1.0, events.append)
    assert events == [Progress(0, 2, "regions"), Progress(1, 2, "regions")]
