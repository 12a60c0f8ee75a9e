from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.splits import nested_order, stratified_folds, stratified_sample
from bncli.errors import BncliError


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.integers(2, 10), st.integers(0, 99))
def test_every_class_and_the_whole_are_spread_evenly(classes: list[int], n_folds: int, seed: int) -> None:
    labels = np.array(classes)
    if n_folds > len(labels):
        return
    folds = stratified_folds(labels, n_folds, seed)
    assert folds.shape == labels.shape
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for label in set(classes):
        assert np.ptp(np.bincount(folds[labels == label], minlength=n_folds)) <= 1


def test_the_seed_decides() -> None:
    labels = np.arange(100) % 3
    first = stratified_folds(labels, 5, 1)
    assert (stratified_folds(labels, 5, 1) == first).all()
    assert (stratified_folds(labels, 5, 2) != first).any()
    assert (stratified_folds(labels, 5, (1, 0)) != stratified_folds(labels, 5, (1, 1))).any()


@pytest.mark.parametrize(("n_folds", "message"), [(1, "at least 2 folds"), (4, "4 folds are more than the 3 rows")])
def test_too_few_and_too_many(n_folds: int, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        stratified_folds(np.zeros(3, np.uint8), n_folds, 0)


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 70), st.integers(0, 99))
def test_a_sample_keeps_the_share_of_every_class(classes: list[int], n_rows: int, seed: int) -> None:
    labels = np.array(classes, np.uint8)
    rows = stratified_sample(labels, n_rows, seed)
    assert len(rows) == min(n_rows, len(labels))
    assert (np.diff(rows) > 0).all()
    assert (stratified_sample(labels, n_rows, seed) == rows).all()
    for label in set(classes):
        share = (labels == label).sum() * len(rows) / len(labels)
        assert abs((labels[rows] == label).sum() - share) < 1


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 99))
def test_nested_samples_share_rows_out_as_seats_are(classes: list[int], seed: int) -> None:
    """Sainte-Laguë: the next seat goes to the largest of n_c / (2 seats + 1), here with ties to either."""
    labels = np.array(classes, np.uint8)
    order = nested_order(labels, seed)
    assert sorted(order.tolist()) == list(range(len(labels)))
    assert (nested_order(labels, seed) == order).all()
    votes, seats = Counter(classes), Counter[int]()
    for row in order:
        quotients = {label: Fraction(n, 2 * seats[label] + 1) for label, n in votes.items()}
        assert quotients[classes[row]] == max(quotients.values())
        seats[classes[row]] += 1


def test_the_seed_decides_nested_samples_and_ties_fall_to_either_class() -> None:
    labels = np.arange(40) % 2
    orders = [nested_order(labels, (seed, 0, 1)) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    assert {int(labels[order[0]]) for order in orders} == {0, 1}
