"""The best branching against all branchings there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.structure_learners.tan import best_branching, spanning_forest, spanning_tree
from tests.branchings import arborescences, branchings, total

Array = NDArray[np.float64]


@st.composite
def whole_weights(draw: st.DrawFn, max_nodes: int = 5) -> Array:
    """Whole numbers, from a few values with many ties to many digits; some graphs lean to one side of 0."""
    n = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from([1, 3, 10**6, 10**12]))
    return np.rint(rng.uniform(-1, 1, (n, n)) * size + draw(st.sampled_from([-size, 0, size])))


def check(weights: Array, forest: bool) -> None:
    n = len(weights)
    choices = branchings(n) if forest else arborescences(n)
    found = tuple(-1 if u is None else u for u in best_branching(weights, forest=forest))
    totals = {parents: total(weights, parents) for parents in choices}
    best = max(totals.values())
    assert found in totals
    assert totals[found] == best
    if forest:
        assert all(weights[u, v] > 0 for v, u in enumerate(found) if u >= 0)
    else:
        assert found.index(-1) == min(parents.index(-1) for parents, t in totals.items() if t == best)


@given(whole_weights(), st.booleans())
def test_no_other_is_better(weights: Array, forest: bool) -> None:
    check(weights, forest)


@pytest.mark.parametrize("forest", [False, True])
@pytest.mark.parametrize("size", [2, 10**9])
def test_no_other_is_better_over_six_nodes(forest: bool, size: int) -> None:
    for seed in range(3):
        check(np.rint(np.random.default_rng(seed).normal(size=(6, 6)) * size), forest)


def test_cycles_within_cycles() -> None:
    """0 <-> 1 and 2 <-> 3 first, then the two pairs; the arc 4 -> 3 opens both the outer and an inner cycle."""
    weights = np.full((5, 5), -50.0)
    weights[0, 1] = weights[1, 0] = weights[2, 3] = weights[3, 2] = 20.0
    weights[1, 2], weights[3, 0], weights[4, 3], weights[0, 4] = 15.0, 14.0, 6.0, 1.0
    assert best_branching(weights, forest=False) == [3, 0, 3, 4, None]
    assert total(weights, (3, 0, 3, 4, -1)) == max(total(weights, p) for p in arborescences(5)) == 60.0


def test_a_forest_is_not_a_tree_without_its_losses() -> None:
    weights = np.array([[0.0, 5.0, -9.0], [6.0, 0.0, -9.0], [-1.0, -9.0, 0.0]])
    assert best_branching(weights, forest=False) == [2, 0, None]  # -1 + 5: without the loss 5
    assert best_branching(weights, forest=True) == [1, None, None]  # 6


def test_all_arcs_alike() -> None:
    for n in range(1, 9):
        parents = best_branching(np.ones((n, n)), forest=False)
        assert parents[0] is None
        assert None not in parents[1:]
        assert best_branching(np.zeros((n, n)), forest=True) == [None] * n


def test_the_weights_are_left_alone() -> None:
    weights = np.random.default_rng(0).normal(size=(7, 7))
    before = weights.copy()
    best_branching(weights, forest=False)
    np.testing.assert_array_equal(weights, before)


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_symmetric_weights_have_the_undirected_tree(seed: int, n: int) -> None:
    weights = np.rint(np.random.default_rng(seed).normal(size=(n, n)) * 1e9)
    weights += weights.T
    for forest, undirected in ((False, spanning_tree), (True, spanning_forest)):
        edges = undirected(weights, tuple(range(n)))
        arcs = [(u, v) for v, u in enumerate(best_branching(weights, forest=forest)) if u is not None]
        assert sum(weights[e] for e in arcs) == sum(weights[e] for e in edges)
