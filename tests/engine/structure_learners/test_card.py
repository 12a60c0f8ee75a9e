"""Columns of cards: the informative ones, few of them, whatever the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners import card
from tests.datasets import dataset_of


def rows(seed: int = 0, n_labels: int = 2) -> list[np.ndarray]:
    """Columns 1 and 3 decide the class together, columns 0, 2 and 4 are noise; the class is the last."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 4, 600) for _ in range(5)]
    labels = (codes[1] // 2 + codes[3] // 2 + (rng.random(600) < 0.1)) % n_labels
    if n_labels == 2:
        labels = (codes[1] + codes[3] + 3 * (rng.random(600) < 0.1) > 3).astype(int)
    return [*codes, labels]


@pytest.mark.parametrize("n_labels", [2, 3])
def test_columns_that_decide_the_class_are_chosen(n_labels: int) -> None:
    *codes, labels = rows(n_labels=n_labels)
    found = card.learn(Counts(dataset_of(codes, labels, [4] * 5, n_labels)), columns=8, rows=40)
    assert {(1,), (3,)} <= set(found.regions)
    order = np.random.default_rng(1).permutation(len(labels))
    again = dataset_of([c[order] for c in codes], labels[order], [4] * 5, n_labels)
    assert card.learn(Counts(again), columns=8, rows=40).regions == found.regions


def test_limits_hold_and_a_class_of_one_label_needs_no_column() -> None:
    *codes, labels = rows()
    data = dataset_of(codes, labels, [4] * 5, 2)
    assert len(card.learn(Counts(data), columns=1, rows=40).regions) == 1
    assert len(card.learn(Counts(data), columns=8, rows=3).regions) == 1
    constant = dataset_of(codes, np.zeros(600, int), [4] * 5, 2)
    assert card.learn(Counts(constant), columns=8, rows=40).regions == ()


def test_weight_two_is_a_row_twice() -> None:
    *codes, labels = rows()
    twice = dataset_of([np.tile(c, 2) for c in codes], np.tile(labels, 2), [4] * 5, 2)
    weighted = dataset_of(codes, labels, [4] * 5, 2, weights=np.full(600, 2.0))
    found = [card.learn(Counts(data), columns=8, rows=40).regions for data in (twice, weighted)]
    assert found[0] == found[1]


def test_a_sample_of_many_rows_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card, "MOST_ROWS", 300)
    *codes, labels = rows()
    found = card.learn(Counts(dataset_of(codes, labels, [4] * 5, 2)), columns=8, rows=40)
    assert {(1,), (3,)} <= set(found.regions)
