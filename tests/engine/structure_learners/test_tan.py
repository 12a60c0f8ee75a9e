"""The tree against all trees there are, its root and directions, and what it promises: the highest likelihood."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counts import Counts
from bncli.engine.dataset import Dataset
from bncli.engine.structure import Dag
from bncli.engine.structure_learners import tan
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.strategies import datasets

Edges = list[tuple[int, int]]


def edges_of(dag: Dag) -> Edges:
    return sorted((min(i, j), max(i, j)) for i, parents in enumerate(dag.parents) for j in parents)


def weight(data: Dataset, edges: Edges) -> float:
    return math.fsum(oracles.conditional_mutual_information(oracles.count(data, edge)) for edge in edges)


@given(datasets(max_rows=40, max_attributes=5))
def test_no_spanning_tree_is_heavier(data: Dataset) -> None:
    nodes = range(len(data.codes))
    dependence = {e: weight(data, [e]) for e in itertools.combinations(nodes, 2)}
    totals = sorted((math.fsum(dependence[e] for e in tree), sorted(tree)) for tree in oracles.spanning_trees(nodes))
    found = edges_of(tan.learn(Counts(data)))
    assert math.fsum(dependence[e] for e in found) == pytest.approx(totals[-1][0], rel=1e-11, abs=1e-11)
    unique = len(totals) == 1 or totals[-1][0] - totals[-2][0] > 1e-9
    assert not unique or found == totals[-1][1]


@given(datasets(max_rows=40))
def test_one_root_the_most_relevant_and_all_arcs_away_from_it(data: Dataset) -> None:
    dag = tan.learn(Counts(data))
    relevance = [oracles.mutual_information(oracles.count(data, (i,))) for i in range(len(data.codes))]
    (root,) = (i for i, parents in enumerate(dag.parents) if not parents)
    assert relevance[root] == pytest.approx(max(relevance), abs=1e-11)
    assert dag.class_children == tuple(range(len(data.codes)))
    assert dag.class_parents == ()
    for i in dag.class_children:
        path = [i]
        while dag.parents[path[-1]]:
            path += dag.parents[path[-1]]
            assert len(path) <= len(data.codes)
        assert path[-1] == root


def log_likelihood(data: Dataset, dag: Dag) -> float:
    """sum N ln(N / N) over the attributes' families."""
    total = 0.0
    for i, parents in enumerate(dag.parents):
        counts = oracles.count(data, (i, *parents))
        column = np.broadcast_to(counts.sum(axis=0), counts.shape)
        seen = counts > 0
        total += float((counts[seen] * np.log(counts[seen] / column[seen])).sum())
    return total


def test_no_tree_has_a_higher_likelihood() -> None:
    data = random_dataset(80, (2, 3, 2, 3, 2), 2, seed=5)
    best = log_likelihood(data, tan.learn(Counts(data)))
    for tree in oracles.spanning_trees(range(5)):
        parents: list[tuple[int, ...]] = [()] * 5
        for child, parent in tan.directed_away(tree, 0).items():
            parents[child] = (parent,)
        assert log_likelihood(data, Dag(tuple(parents), tuple(range(5)))) <= best + 1e-9


def test_the_chain_it_was_drawn_from() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    chain = [rng.integers(0, 3, 4000)]
    for _ in range(4):
        chain.append(np.where(rng.random(4000) < 0.7, chain[-1], rng.integers(0, 3, 4000)))
    data = dataset_of([chain[i] for i in (2, 0, 3, 1, 4)], labels, (3,) * 5, 2)
    assert edges_of(tan.learn(Counts(data))) == [(0, 2), (0, 3), (1, 3), (2, 4)]


def test_every_tie_goes_to_the_first_attribute() -> None:
    """All attributes copy one: all edges weigh the same, all are as relevant."""
    x = np.tile([0, 1], 10)
    data = dataset_of([x] * 4, np.tile([0, 1, 1, 0], 5), (2,) * 4, 2)
    assert tan.learn(Counts(data)).parents == ((), (0,), (0,), (0,))
    independent = dataset_of(
        [*np.array(list(itertools.product((0, 1), repeat=5))).T[:4]], np.tile([0, 1], 16), (2,) * 4, 2
    )
    assert tan.learn(Counts(independent)).parents == ((), (0,), (0,), (0,))


@given(st.integers(1, 7), st.integers(0, 99), st.booleans())
def test_the_spanning_tree_of_any_weights(n: int, seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, (n, n)).astype(float) if coarse else rng.normal(size=(n, n))
    weights = weights + weights.T
    tree = tan.spanning_tree(weights, tuple(range(n)))
    assert len(tree) == n - 1
    best = max((math.fsum(weights[e] for e in t) for t in oracles.spanning_trees(range(min(n, 5)))), default=0.0)
    if n <= 5:
        assert math.fsum(weights[e] for e in tree) == pytest.approx(best, abs=1e-12)
    assert len(tan.directed_away(tree, n - 1)) == n - 1


def test_uninformative_attributes_stay_outside() -> None:
    dag = tan.learn(Counts(random_dataset(40, (1, 3, 1, 2), 2)))
    assert dag.class_children == (1, 3)
    assert dag.parents[0] == dag.parents[2] == ()
    assert sorted(map(len, dag.parents)) == [0, 0, 0, 1]
    assert tan.learn(Counts(random_dataset(40, (1,), 2))).class_children == ()
