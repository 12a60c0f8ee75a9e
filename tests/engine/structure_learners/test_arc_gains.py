"""Gains against scores of tables counted row by row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners.arc_scores import arc_gains, family_score
from bncli.watch import Event, Progress
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.missing_values import complete_rows, with_missing
from tests.strategies import datasets

RULES = ("ll", "bic", "aic", "k2", "bdeu:1", "acll:5", "acll-uniform:5")


def slow_gain(data: Dataset, rule: str, parent: int, child: int) -> tuple[float, float]:
    """The gain of an arc, and the larger of the two scores."""
    table = oracles.count(data, (child, parent))
    score = family_score(rule).score
    alone, together = float(score(table.sum(axis=1, keepdims=True))), float(score(table))
    return together - alone, max(abs(alone), abs(together))


@given(datasets(max_rows=40), st.sampled_from(RULES))
def test_every_gain_to_the_twelfth_digit_of_the_largest(data: Dataset, rule: str) -> None:
    n = len(data.codes)
    gains = arc_gains(Counts(data), family_score(rule))
    arcs = [(j, i) for j in range(n) for i in range(n) if i != j]
    slow = {arc: slow_gain(data, rule, *arc) for arc in arcs}
    assert gains.shape == (n, n)
    np.testing.assert_array_equal(gains, np.rint(gains))
    assert np.abs(gains).max() <= 2e12
    np.testing.assert_array_equal(np.diag(gains), 0)
    top = max(arcs, key=lambda arc: abs(slow[arc][0]), default=None)
    if top is not None and abs(slow[top][0]) > 1e-6 * slow[top][1]:
        quantum = slow[top][0] / gains[top]
        for arc in arcs:
            assert gains[arc] * quantum == pytest.approx(slow[arc][0], rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_with_missing_values_both_scores_are_of_the_rows_that_have_both(rule: str) -> None:
    incomplete = with_missing(random_dataset(80, (2, 3, 4), 3, weighted=True), 0.4)
    gains = arc_gains(Counts(incomplete), family_score(rule))
    slow = np.zeros((3, 3))
    for j, i in itertools.permutations(range(3), 2):
        slow[j, i] = slow_gain(complete_rows(incomplete, {i, j}), rule, j, i)[0]
    np.testing.assert_allclose(gains / np.abs(gains).max(), slow / np.abs(slow).max(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rule", ["ll", "bic", "aic", "bdeu:1"])
def test_equivalent_scores_gain_alike_in_both_directions(rule: str) -> None:
    gains = arc_gains(Counts(random_dataset(60, (2, 3, 4, 2), 3, weighted=True)), family_score(rule))
    np.testing.assert_array_equal(gains, gains.T)


def test_independent_attributes_gain_exactly_nothing() -> None:
    """Every combination of values three times in each class, the classes of unequal sizes."""
    grid = np.array(list(np.ndindex(3, 5, 7)))
    rows = np.concatenate([grid] * 4)
    labels = np.repeat([0, 1], [3 * len(grid), len(grid)])
    gains = arc_gains(Counts(dataset_of([*rows.T], labels, (3, 5, 7), 2)), family_score("ll"))
    np.testing.assert_array_equal(gains, 0)


def test_uninformative_attributes_gain_nothing_and_progress_is_told() -> None:
    told: list[Event] = []
    gains = arc_gains(Counts(random_dataset(50, (1, 3, 2), 2)), family_score("k2"), told.append)
    assert gains[1, 2] != gains[2, 1]
    assert not gains[0].any()
    assert not gains[:, 0].any()
    assert told == [Progress(0, 1, "pairs of attributes")]
    assert arc_gains(Counts(random_dataset(50, (1,), 2)), family_score("k2")).shape == (1, 1)
