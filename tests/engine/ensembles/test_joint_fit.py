"""Leaves fitted jointly: against the optimum that scipy finds leaf by leaf, and when they are left as they were."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles import budget, joint_fit
from bncli.engine.ensembles.boosted_trees import Boosted, Settings, boost, log_loss
from bncli.engine.ensembles.joint_fit import jointly_fitted
from bncli.engine.kernels.arrays import Array
from tests.datasets import random_dataset
from tests.effects import mixed_datasets
from tests.engine.ensembles.test_boosting import halves, scores
from tests.sweeps import every_value


@pytest.fixture(autouse=True)
def _looks_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_fit, "DOUBT", np.inf)


def joined(a: Dataset, b: Dataset) -> Dataset:
    codes = tuple(np.concatenate(two) for two in zip(a.codes, b.codes, strict=True))
    weights = None if a.weights is None or b.weights is None else np.concatenate([a.weights, b.weights])
    return replace(a, codes=codes, labels=np.concatenate([a.labels, b.labels]), weights=weights)


def with_values(member: Boosted, point: Array) -> Boosted:
    trees, first = [], 0
    for tree in member.trees:
        trees.append(replace(tree, values=point[first : first + tree.values.size].reshape(tree.values.shape)))
        first += tree.values.size
    return replace(member, trees=tuple(trees))


def flat(member: Boosted) -> Array:
    return np.concatenate([tree.values.ravel() for tree in member.trees])


def optimum(member: Boosted, grown: Array, data: Dataset, penalty: float) -> Array:
    """By differences, one leaf after the other, from the scores of every row."""

    def objective(point: Array) -> float:
        loss = log_loss(scores(with_values(member, point), data), data) * data.total_weight
        return loss + 0.5 * penalty * float(((point - grown) ** 2).sum())

    first: Array = grown.copy()
    return np.asarray(minimize(objective, first, method="BFGS").x)


def two_ways(data: Dataset, **settings: float) -> tuple[Boosted, Boosted, Dataset, Dataset]:
    """As grown, and fitted jointly."""
    train, held_out = halves(data)
    few = replace(Settings(trees=3, patience=3, depth=2), **settings)  # type: ignore[arg-type]
    grown = boost(train, held_out, few, np.random.default_rng(1))
    return grown, jointly_fitted(grown, train, held_out), train, held_out


def noiseless(n_labels: int, weighted: bool = False) -> Dataset:
    """The class follows from two of three attributes."""
    data = random_dataset(120, [n_labels, 2, 3], n_labels)
    labels = ((data.codes[0].astype(int) + data.codes[1]) % n_labels).astype(data.labels.dtype)
    weights = np.random.default_rng(5).integers(1, 4, data.n_rows).astype(float) if weighted else None
    return replace(data, labels=labels, weights=weights)


@pytest.mark.parametrize(("n_labels", "weighted"), every_value([2, 3], [True, False]))
def test_leaves_are_the_optimum_on_all_rows(monkeypatch: pytest.MonkeyPatch, n_labels: int, weighted: bool) -> None:
    monkeypatch.setattr(joint_fit, "PENALTIES", (2.0,))
    monkeypatch.setattr(joint_fit, "ITERATIONS", 500)
    grown, fitted, train, held_out = two_ways(noiseless(n_labels, weighted))
    assert fitted.log_loss < 0.95 * grown.log_loss
    wanted = optimum(grown, flat(grown), joined(train, held_out), 2.0)
    np.testing.assert_allclose(flat(fitted), wanted, atol=2e-4)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_what_is_said_of_rows_held_out_has_not_seen_them(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    monkeypatch.setattr(joint_fit, "PENALTIES", (2.0,))
    monkeypatch.setattr(joint_fit, "ITERATIONS", 500)
    grown, fitted, train, held_out = two_ways(noiseless(n_labels))
    apart = with_values(grown, optimum(grown, flat(grown), train, 2.0))
    np.testing.assert_allclose(fitted.held_out, scores(apart, held_out), atol=1e-3)
    assert fitted.log_loss == pytest.approx(log_loss(fitted.held_out, held_out), abs=1e-12)


@given(mixed_datasets(), st.integers(0, 9))
def test_rows_held_out_never_lose(data: Dataset, seed: int) -> None:
    train, held_out = halves(data)
    grown = boost(train, held_out, Settings(trees=12, patience=4), np.random.default_rng(seed))
    fitted = jointly_fitted(grown, train, held_out)
    assert fitted.log_loss <= grown.log_loss
    assert [tree.splits for tree in fitted.trees] == [tree.splits for tree in grown.trees]
    if fitted.log_loss == grown.log_loss:
        assert fitted is grown


def test_smaller_penalties_are_tried_while_rows_held_out_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = []
    for penalties in ((100.0,), (100.0, 10.0), (100.0, 10.0, 1.0)):
        monkeypatch.setattr(joint_fit, "PENALTIES", penalties)
        losses.append(two_ways(noiseless(2), trees=20, depth=3)[1].log_loss)
    assert losses[2] < 0.9 * losses[1] < 0.9 * losses[0]


def test_rows_held_out_that_say_the_opposite_leave_everything_as_it_was() -> None:
    grown, fitted, train, held_out = two_ways(noiseless(2), trees=20, depth=3)
    assert fitted is not grown
    opposite = replace(held_out, labels=1 - held_out.labels)
    member = replace(grown, log_loss=log_loss(grown.held_out, opposite))
    assert jointly_fitted(member, train, opposite) is member


def test_where_much_is_in_doubt_everything_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, fitted, _, held_out = two_ways(noiseless(2))
    assert fitted is not grown
    share = grown.log_loss / log_loss(np.tile(grown.prior, (held_out.n_rows, 1)), held_out)
    for doubt, stays in ((0.99 * share, True), (1.01 * share, False)):
        monkeypatch.setattr(joint_fit, "DOUBT", doubt)
        grown, fitted, _, _ = two_ways(noiseless(2))
        assert (fitted is grown) == stays


def test_what_would_take_too_long_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, fitted, _, _ = two_ways(noiseless(3))
    assert fitted is not grown
    monkeypatch.setattr(joint_fit, "MOST_WORK", 3 * 120 * len(grown.trees) - 1)
    grown, fitted, _, _ = two_ways(noiseless(3))
    assert fitted is grown


def test_what_would_take_too_much_memory_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_fit, "MOST", 359)
    grown, fitted, _, _ = two_ways(noiseless(2))
    assert len(grown.trees) == 3  # of 120 rows
    assert fitted is grown


def test_entries_exist_once() -> None:
    """A fit of all rows beside those of the parts would take twice as much."""
    data = random_dataset(40_000, [2, 2, 3], 2)
    data = replace(data, labels=((data.codes[0].astype(int) + data.codes[1]) % 2).astype(data.labels.dtype))
    train, held_out = halves(data)
    grown = boost(train, held_out, Settings(trees=25, patience=25, depth=2), np.random.default_rng(1))
    grown = replace(grown, log_loss=10.0)  # so that the last fit is sure to come
    entries = data.n_rows * len(grown.trees)
    tracemalloc.start()
    try:
        assert jointly_fitted(grown, train, held_out) is not grown
        assert tracemalloc.get_traced_memory()[1] < 1.6 * joint_fit.ENTRY * entries
    finally:
        tracemalloc.stop()


def test_a_joint_fit_takes_no_more_than_was_told_before_trees_are_grown() -> None:
    effort, rows = budget.EFFORTS[1], noiseless(3)
    rows = rows.take(np.tile(np.arange(rows.n_rows), 20))
    told = budget.memory_of("boosted", rows, effort) - budget.memory_of("singles", rows, effort)
    train, held_out = halves(rows)
    tracemalloc.start()
    try:
        grown = boost(train, held_out, Settings(trees=effort.trees, patience=500), np.random.default_rng(0))
        assert joint_fit.most_trees(train, held_out) > len(grown.trees) > 100
        jointly_fitted(grown, train, held_out)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < told < 4 * taken


@pytest.mark.parametrize(
    ("most", "number", "share", "expected"),
    [
        (600, 500, 0.3, True),
        (600, 499, 0.3, False),
        (1_000, 900, 0.3, True),  # the rows held out said so late
        (600, 900, 0.3, False),  # too late: of so many no joint fit is possible
        (600, 500, 0.5, False),  # in doubt: no joint fit is tried
        (499, 900, 0.3, False),  # of so many leaves none is possible
    ],
)
def test_enough_trees_for_a_joint_fit_where_classes_hardly_overlap(
    monkeypatch: pytest.MonkeyPatch, most: int, number: int, share: float, expected: bool
) -> None:
    train, held_out = halves(noiseless(3))
    n_rows = train.n_rows + held_out.n_rows
    monkeypatch.setattr(joint_fit, "DOUBT", 0.4)
    monkeypatch.setattr(joint_fit, "MOST", most * n_rows)
    monkeypatch.setattr(joint_fit, "MOST_WORK", 6 * most * n_rows)
    assert joint_fit.are_enough(train, held_out)(number, share * 0.7, 0.7) is expected


def test_classes_count_in_what_can_be_fitted_jointly(monkeypatch: pytest.MonkeyPatch) -> None:
    two, three = (halves(noiseless(n)) for n in (2, 3))
    monkeypatch.setattr(joint_fit, "MOST", 120 * 1_000)
    monkeypatch.setattr(joint_fit, "MOST_WORK", 120 * 600)
    assert joint_fit.most_trees(*two) == 600
    assert joint_fit.most_trees(*three) == 200
