"""The spanning tree against all trees there are; directions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.structure_learners.tan import directed_away, spanning_forest, spanning_tree
from tests import oracles
from tests.branchings import branchings, total


@given(st.integers(1, 7), st.integers(0, 99), st.booleans())
def test_the_spanning_tree_of_any_weights(n: int, seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, (n, n)).astype(float) if coarse else rng.normal(size=(n, n))
    weights = weights + weights.T
    tree = spanning_tree(weights, tuple(range(n)))
    assert len(tree) == n - 1
    best = max((math.fsum(weights[e] for e in t) for t in oracles.spanning_trees(range(min(n, 5)))), default=0.0)
    if n <= 5:
        assert math.fsum(weights[e] for e in tree) == pytest.approx(best, abs=1e-12)
    assert len(directed_away(tree, [n - 1])) == n - 1


@given(st.integers(1, 5), st.integers(0, 99))
def test_no_forest_is_heavier(n: int, seed: int) -> None:
    weights = np.rint(np.random.default_rng(seed).normal(size=(n, n)) * 3)
    weights += weights.T
    forest = spanning_forest(weights, tuple(range(n)))
    assert sum(weights[e] for e in forest) == max(total(weights, parents) for parents in branchings(n))
    assert all(weights[e] > 0 for e in forest)


def test_nodes_may_be_some_of_the_graph() -> None:
    weights = np.arange(25.0).reshape(5, 5)
    weights += weights.T
    assert spanning_tree(weights, (0, 2, 4)) == [(0, 4), (2, 4)]
    assert spanning_tree(weights, (3,)) == []


def test_each_tree_starts_at_its_first_root() -> None:
    edges = [(0, 3), (3, 5), (1, 2)]
    assert directed_away(edges, [5, 2, 0, 1, 3, 4]) == {3: 5, 0: 3, 1: 2}
    assert directed_away(edges, [1]) == {2: 1}
    assert directed_away([], [0, 1]) == {}
