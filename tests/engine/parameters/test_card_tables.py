"""Groups and fits of cards against exhaustive search and against the conditions of the optimum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.parameters.card_tables import PENALTY, PSEUDO_ROWS, CardFit, join_values, joinable_pairs


def loss(counts: np.ndarray, groups: list[int]) -> float:
    """The entropy that a grouping leaves, in nats, with the rows that are added."""
    base = counts.sum(axis=0) / counts.sum()
    total = 0.0
    for g in set(groups):
        row = sum(counts[i] + PSEUDO_ROWS * base for i in range(len(groups)) if groups[i] == g)
        total -= sum(n * math.log(n / row.sum()) for n in row if n > 0)
    return total


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=6), st.booleans())
def test_the_first_pair_that_is_joined_costs_least(rows: list[tuple[int, int]], is_ordered: bool) -> None:
    counts = np.array(rows, np.float64)
    if not counts.sum(axis=0).all():
        return
    n = len(rows)
    groups = join_values(counts, n if is_ordered else 0, cost=0.0, most=n - 1).tolist()
    assert max(groups) == n - 2
    pairs = itertools.pairwise(range(n)) if is_ordered else itertools.combinations(range(n), 2)
    least = min(loss(counts, [a if i == b else i for i in range(n)]) for a, b in pairs)
    assert loss(counts, groups) == pytest.approx(least, abs=1e-9)


@given(st.integers(3, 9), st.integers(0, 1000))
def test_intervals_stay_together_and_two_groups_are_left(n: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 30, (n + 1, 3)).astype(float)
    groups = join_values(counts, n, cost=1e9, most=4)
    assert len(set(groups.tolist())) == 2
    kept = join_values(counts, n, cost=0.0, most=4)
    assert len(set(kept.tolist())) <= 4
    runs = [value for value, _ in itertools.groupby(kept[:n].tolist())]
    assert len(runs) == len(set(runs))


def test_a_missing_level_may_join_any_interval() -> None:
    assert set(joinable_pairs([0, 2, 3, 5], 5)) == {(0, 1), (1, 2), (0, 3), (1, 3), (2, 3)}
    assert set(joinable_pairs([0, 1, 2], 0)) == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_gradient_at_the_optimum_is_zero(n_labels: int) -> None:
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, 3, 200), rng.integers(0, 2, 200)]
    labels = (columns[0] + rng.integers(0, 2, 200)) % n_labels
    mass = rng.uniform(0.5, 2.0, 200)
    fit = CardFit(labels, n_labels, mass)
    objective, bias, values = fit.free(columns, [3, 2], tolerance=1e-15)
    scores = fit.scores(bias, columns, values)
    residuals = mass[:, None] * (fit.target - fit.probabilities(scores))
    for column, own in zip(columns, values, strict=True):
        slope = np.stack([residuals[column == k].sum(axis=0) for k in range(len(own))])
        np.testing.assert_allclose(slope, PENALTY * own, atol=1e-4)
    norm = sum(float((own**2).sum()) for own in values)
    assert objective == pytest.approx(fit.loss(scores) + PENALTY / 2 * norm, rel=1e-4)
    assert fit.loss(scores) == pytest.approx(-(mass * np.log(fit.probabilities(scores)[np.arange(200), labels])).sum())
