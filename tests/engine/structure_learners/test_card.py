"""Columns of cards: the informative ones, few of them, whatever the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.learn import learn_structure
from bncli.engine.parameter_learners.points import learn as learn_points
from bncli.engine.parameters.card_tables import fewest_boxes
from bncli.engine.structure_learners import card
from bncli.engine.structures.structure import Regions
from bncli.recipe import Recipe
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


def exclusive(n_labels: int = 2) -> tuple[list[np.ndarray], np.ndarray]:
    """Columns 2 and 4 decide the class only together, the others are noise."""
    rng = np.random.default_rng(7)
    codes = [rng.integers(0, 4, 600) for _ in range(6)]
    labels = ((codes[2] < 2) ^ (codes[4] < 2)) + (codes[0] == 3) * (n_labels - 2)
    return codes, np.where(rng.random(600) < 0.1, rng.integers(0, n_labels, 600), labels)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("columns", [8, 2])
def test_a_pair_that_decides_only_together_is_found(n_labels: int, columns: int) -> None:
    codes, labels = exclusive(n_labels)
    data = dataset_of(codes, labels, [4] * 6, n_labels)
    found = card.learn(Counts(data), columns=columns, rows=40, pairs=1)
    assert [region for region in found.regions if len(region) == 2] == [(2, 4)]
    assert len(found.attributes) <= columns
    order = np.random.default_rng(1).permutation(len(labels))
    again = dataset_of([c[order] for c in codes], labels[order], [4] * 6, n_labels)
    assert card.learn(Counts(again), columns=columns, rows=40, pairs=1).regions == found.regions


def test_no_pair_of_noise_and_none_that_is_forbidden_joins() -> None:
    codes, labels = exclusive()
    noise = np.random.default_rng(3).permutation(labels)
    assert all(
        len(region) == 1
        for region in card.learn(Counts(dataset_of(codes, noise, [4] * 6, 2)), columns=8, rows=40, pairs=3).regions
    )
    data = dataset_of(codes, labels, [4] * 6, 2)
    names = [data.schema.attributes[i].name for i in (4, 2)]
    recipe = Recipe.of(structure="card", pairs=1, knowledge={"no_interaction": [names]})
    structure = learn_structure(Counts(data), recipe)
    assert isinstance(structure, Regions)
    assert (2, 4) not in structure.regions


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(4, 14), st.integers(0, 3), st.integers(2, 3))
def test_the_limits_of_a_card_hold(seed: int, columns: int, n_rows: int, pairs: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 3, 120) for _ in range(5)]
    labels = (codes[0] * codes[1] + codes[2] * (codes[3] == 1) + rng.integers(0, 2, 120)) % n_labels
    counts = Counts(dataset_of(codes, labels, [3] * 5, n_labels))
    structure = card.learn(counts, columns=columns, rows=n_rows, pairs=pairs)
    assert len(structure.attributes) <= columns
    assert sum(len(region) == 2 for region in structure.regions) <= pairs
    for points in (100, 3, "off"):
        tables = learn_points(counts, structure, rows=n_rows, points=points).tables
        boxes = [
            fewest_boxes(weights, family.shape, [0] * len(family.shape)) if len(family.shape) == 2 else weights
            for family, weights in zip(tables.families, tables.weights, strict=True)
        ]
        assert sum(len(np.unique(groups, axis=0)) for groups in boxes) <= n_rows
