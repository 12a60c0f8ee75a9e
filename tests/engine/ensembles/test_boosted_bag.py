"""The bag of boosted trees: its members, their predictions for held-out rows, and the joint fit of their leaves."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_folds
from bncli.engine.ensembles import auto, boosted_bag, budget
from bncli.engine.ensembles.boosted_bag import (
    BagPlan,
    bag_size,
    complete_bag,
    evaluate_boosted,
    fit_jointly,
    member_seconds,
)
from bncli.engine.ensembles.boosted_trees import Boosted, Settings, boost, log_loss, log_probabilities
from bncli.engine.ensembles.budget import DEFAULT, EFFORTS, FOLDS, TREES, ComputeBudget, boosted_seconds
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import learn
from bncli.engine.model import StoppedBy
from bncli.watch import Run
from tests.datasets import random_dataset
from tests.effects import mixed_datasets
from tests.engine.ensembles.rows import coded, ensemble_of, mixed, recipe
from tests.engine.ensembles.test_boosted_trees import halves, scores
from tests.sweeps import every_value, first_few


def parts(data: Dataset, n: int, seed: int = 0) -> list[tuple[Dataset, Dataset]]:
    fold_of = stratified_folds(data.labels, FOLDS, seed)
    rows = [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n)]
    return [(data.take(learnt), data.take(held_out)) for learnt, held_out in rows]


Answer = Callable[[], bool]


class Clock(ComputeBudget):
    """A budget with given answers whether there is time for a member, and whether its time is over."""

    def __init__(
        self, has_time: Callable[[], bool] = lambda: True, is_late: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(None, None)
        self.has_time = lambda expected, later: has_time()  # type: ignore[method-assign]
        self.part_of_time = lambda n: is_late  # type: ignore[method-assign]


def bag(wanted: int, rows: int = 10**5, trees: int = 500, budget: ComputeBudget | None = None) -> BagPlan:
    return BagPlan(wanted, rows, trees, 0, budget or Clock())


def alike(first: Boosted, second: Boosted) -> bool:
    return np.array_equal(first.held_out, second.held_out)


@pytest.mark.parametrize("n_labels", first_few([2, 3]))
def test_a_held_out_row_is_predicted_by_the_member_that_has_not_seen_it(n_labels: int) -> None:
    data = coded(mixed(200, n_labels))
    folds = parts(data, 2)
    judged = evaluate_boosted(folds, None, bag(2), lambda fold: None)
    expected = np.concatenate([log_probabilities(member.held_out).T for member in judged.members], axis=1)
    np.testing.assert_array_equal(judged.log_p, expected)
    labels = np.concatenate([held_out.labels for _, held_out in folds])
    assert judged.losses.log_loss == pytest.approx(-judged.log_p[labels, np.arange(len(labels))].mean())


@pytest.mark.slow
def test_evaluated_members_are_part_of_the_final_bag() -> None:
    data = coded(mixed(200))
    judged = evaluate_boosted(parts(data, 2), None, bag(2), lambda fold: None)
    again = complete_bag(data, (), bag(2))
    assert len(again) == 2
    assert all(map(alike, again, judged.members))
    assert complete_bag(data, judged.members, bag(2)) == judged.members


def test_sampled_rows_have_one_member_fewer() -> None:
    effort = EFFORTS[DEFAULT]
    few, many = (bag_size(effort, effort.most_rows + more) for more in (0, 1))
    assert few == effort.members == many + 1


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "expected"), [(1, 1), (4, 4), (1000, 7)])
def test_the_bag_grows_as_long_as_there_is_time(asked: int, expected: int) -> None:
    answers = iter([True] * asked + [False])
    members = complete_bag(coded(mixed(60)), (), bag(7, budget=Clock(has_time=lambda: next(answers))))
    assert len(members) == expected


def test_without_time_the_bag_has_the_evaluated_members() -> None:
    data = coded(mixed(200))
    judged = evaluate_boosted(parts(data, 1), None, bag(1), lambda fold: None)
    members = complete_bag(data, judged.members, bag(3, budget=Clock(has_time=lambda: False)))
    assert members == judged.members


def cut_short(data: Dataset, number: int, trees: int) -> tuple[Boosted, ...]:
    """Return members that the time limit ended after this many trees."""
    answers = itertools.chain.from_iterable([[False] * trees, [True]] * number)
    clock = Clock(is_late=lambda: next(answers))
    return evaluate_boosted(parts(data, number), None, bag(number, budget=clock), lambda fold: None).members


def test_a_member_cut_short_by_the_end_of_all_time_is_left_out() -> None:
    answers = itertools.count()
    data = coded(mixed(200))
    (whole,) = complete_bag(data, (), bag(1))
    clock = Clock(is_late=lambda: next(answers) > 8)
    assert complete_bag(data, (whole,), bag(3, budget=clock)) == (whole,)


def test_later_members_have_no_more_trees_than_members_cut_short() -> None:
    data = coded(sharp(300))
    judged = cut_short(data, 2, 6)
    members = complete_bag(data, judged, bag(4))
    assert [member.grown for member in members] == [6, 6, 6, 6]
    assert not any(member.ended for member in members)


def test_a_member_without_trees_is_left_out_if_others_have_some() -> None:
    data = coded(sharp(300))
    none, some = cut_short(data, 1, 0)[0], cut_short(data, 1, 5)[0]
    assert (none.grown, some.grown) == (0, 5)
    assert complete_bag(data, (some, none), bag(1)) == (some,)
    assert complete_bag(data, (none,), bag(1)) == (none,)


def test_later_members_are_expected_to_have_as_many_trees_as_those_before() -> None:
    data = coded(mixed(200))
    judged = evaluate_boosted(parts(data, 2), None, bag(2, trees=3), lambda fold: None).members
    assert [len(member.trees) for member in judged] == [3, 3]
    expected = boosted_seconds(160, len(data.schema.informative))
    assert member_seconds(data, 160, judged) == pytest.approx(expected * 3 / TREES)
    assert member_seconds(data, 160) == expected


@pytest.mark.parametrize(("deeper", "depth"), [(160, 7), (161, 6)])
def test_trees_of_very_many_rows_are_deeper(monkeypatch: pytest.MonkeyPatch, deeper: int, depth: int) -> None:
    monkeypatch.setattr(boosted_bag, "DEEPER", deeper)
    (member,) = complete_bag(coded(sharp(200)), (), bag(1, trees=30))
    assert max(len(tree.splits) for tree in member.trees) == depth


@pytest.mark.slow
def test_a_member_learns_from_the_planned_number_of_rows() -> None:
    data = coded(mixed(200))
    sizes = [complete_bag(data, (), bag(1, rows=rows))[0].held_out.shape[0] for rows in (100, 150, 1_000)]
    assert sizes == [20, 30, 40]


@pytest.mark.slow
def test_members_of_one_fold_differ() -> None:
    members = complete_bag(coded(mixed(300)), (), bag(FOLDS + 2))
    assert members[0].held_out.shape == members[FOLDS].held_out.shape
    assert not alike(members[0], members[FOLDS])


def sharp(n_rows: int) -> Columns:
    """Return four numbers; the class is whether all of them lie above different cuts."""
    x = np.random.default_rng(0).uniform(size=(n_rows, 4))
    labels = np.asarray((x > np.array([0.23, 0.31, 0.17, 0.12])).all(axis=1), np.int8)
    numbers = {f"x{i}": NumericColumn(column) for i, column in enumerate(x.T)}
    return Columns(n_rows, numbers, "class", CategoricalColumn(labels, ("some", "all")))


@pytest.mark.slow
def test_a_limit_without_an_effort_is_used_for_more_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "MOST_MEMBERS", 2 * FOLDS)
    columns, standing = sharp(1_000), Run(clock=partial(float, 0))
    models = [learn(columns, recipe(time_limit=1e6, effort=effort), run=standing).model for effort in (None, 3)]
    sizes = [next(c.tables.n_parameters for c in ensemble_of(m).components if c.name == "boosted") for m in models]
    assert sizes[0] > sizes[1]


@pytest.mark.slow
def test_the_reason_for_stopping_shows_that_more_trees_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of trees ended them, neither the held-out rows nor the time."""
    effort = EFFORTS[DEFAULT]
    stopped = []
    for trees in (30, effort.trees):
        monkeypatch.setitem(EFFORTS, DEFAULT, replace(effort, trees=trees))
        parameters = learn(sharp(1_000), recipe()).parameters
        stopped.append(parameters.stopped_by)
    assert stopped == [StoppedBy.MAX_ITERATIONS, StoppedBy.CROSS_TUNING]


@pytest.fixture(autouse=True)
def _no_limit_on_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_bag, "DOUBT", np.inf)


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
    """Return the optimum by numerical differences, from the scores of every row."""

    def objective(point: Array) -> float:
        loss = log_loss(scores(with_values(member, point), data), data) * data.total_weight
        return loss + 0.5 * penalty * float(((point - grown) ** 2).sum())

    first: Array = grown.copy()
    return np.asarray(minimize(objective, first, method="BFGS").x)


def two_ways(data: Dataset, **settings: float) -> tuple[Boosted, Boosted, Dataset, Dataset]:
    """Return a member as grown and after the joint fit, and its rows."""
    train, held_out = halves(data)
    few = replace(Settings(trees=3, patience=3, depth=2), **settings)  # type: ignore[arg-type]
    grown = boost(train, held_out, few, np.random.default_rng(1))
    return grown, fit_jointly(grown, train, held_out), train, held_out


def noiseless(n_labels: int, weighted: bool = False) -> Dataset:
    """Return rows whose class follows from two of three attributes."""
    data = random_dataset(120, [n_labels, 2, 3], n_labels)
    labels = ((data.codes[0].astype(int) + data.codes[1]) % n_labels).astype(data.labels.dtype)
    weights = np.random.default_rng(5).integers(1, 4, data.n_rows).astype(float) if weighted else None
    return replace(data, labels=labels, weights=weights)


@pytest.mark.slow
@pytest.mark.parametrize(("n_labels", "weighted"), every_value([2, 3], [True, False]))
def test_leaves_are_the_optimum_on_all_rows(monkeypatch: pytest.MonkeyPatch, n_labels: int, weighted: bool) -> None:
    monkeypatch.setattr(boosted_bag, "PENALTIES", (2.0,))
    monkeypatch.setattr(boosted_bag, "ITERATIONS", 500)
    grown, fitted, train, held_out = two_ways(noiseless(n_labels, weighted))
    assert fitted.log_loss < 0.95 * grown.log_loss
    wanted = optimum(grown, flat(grown), joined(train, held_out), 2.0)
    np.testing.assert_allclose(flat(fitted), wanted, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [2, 3])
def test_predictions_for_held_out_rows_are_those_before_the_last_fit(
    monkeypatch: pytest.MonkeyPatch, n_labels: int
) -> None:
    monkeypatch.setattr(boosted_bag, "PENALTIES", (2.0,))
    monkeypatch.setattr(boosted_bag, "ITERATIONS", 500)
    grown, fitted, train, held_out = two_ways(noiseless(n_labels))
    apart = with_values(grown, optimum(grown, flat(grown), train, 2.0))
    np.testing.assert_allclose(fitted.held_out, scores(apart, held_out), atol=1e-3)
    assert fitted.log_loss == pytest.approx(log_loss(fitted.held_out, held_out), abs=1e-12)


@given(mixed_datasets(), st.integers(0, 9))
def test_the_held_out_loss_never_rises(data: Dataset, seed: int) -> None:
    train, held_out = halves(data)
    grown = boost(train, held_out, Settings(trees=12, patience=4), np.random.default_rng(seed))
    fitted = fit_jointly(grown, train, held_out)
    assert fitted.log_loss <= grown.log_loss
    assert [tree.splits for tree in fitted.trees] == [tree.splits for tree in grown.trees]
    if fitted.log_loss == grown.log_loss:
        assert fitted is grown


def test_smaller_penalties_are_tried_while_the_held_out_loss_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = []
    for penalties in ((100.0,), (100.0, 10.0), (100.0, 10.0, 1.0)):
        monkeypatch.setattr(boosted_bag, "PENALTIES", penalties)
        losses.append(two_ways(noiseless(2), trees=20, depth=3)[1].log_loss)
    assert losses[2] < 0.9 * losses[1] < 0.9 * losses[0]


def test_without_a_gain_on_held_out_rows_the_member_is_unchanged() -> None:
    grown, fitted, train, held_out = two_ways(noiseless(2), trees=20, depth=3)
    assert fitted is not grown
    opposite = replace(held_out, labels=1 - held_out.labels)
    member = replace(grown, log_loss=log_loss(grown.held_out, opposite))
    assert fit_jointly(member, train, opposite) is member


def test_with_a_high_loss_the_member_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, fitted, _, held_out = two_ways(noiseless(2))
    assert fitted is not grown
    share = grown.log_loss / log_loss(np.tile(grown.prior, (held_out.n_rows, 1)), held_out)
    for doubt, stays in ((0.99 * share, True), (1.01 * share, False)):
        monkeypatch.setattr(boosted_bag, "DOUBT", doubt)
        grown, fitted, _, _ = two_ways(noiseless(2))
        assert (fitted is grown) == stays


def test_a_joint_fit_that_takes_too_long_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, fitted, _, _ = two_ways(noiseless(3))
    assert fitted is not grown
    monkeypatch.setattr(boosted_bag, "MOST_WORK", 3 * 120 * len(grown.trees) - 1)
    grown, fitted, _, _ = two_ways(noiseless(3))
    assert fitted is grown


def test_a_joint_fit_that_takes_too_much_memory_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_bag, "LEAF_ENTRIES", 359)
    grown, fitted, _, _ = two_ways(noiseless(2))
    assert len(grown.trees) == 3  # of 120 rows
    assert fitted is grown


def test_entries_exist_once() -> None:
    """Entries of all rows together with those of the parts would take twice as much memory."""
    data = random_dataset(40_000, [2, 2, 3], 2)
    data = replace(data, labels=((data.codes[0].astype(int) + data.codes[1]) % 2).astype(data.labels.dtype))
    train, held_out = halves(data)
    grown = boost(train, held_out, Settings(trees=25, patience=25, depth=2), np.random.default_rng(1))
    grown = replace(grown, log_loss=10.0)  # so that the last fit is sure to come
    entries = data.n_rows * len(grown.trees)
    tracemalloc.start()
    try:
        assert fit_jointly(grown, train, held_out) is not grown
        assert tracemalloc.get_traced_memory()[1] < 1.6 * budget.BYTES_PER_LEAF_ENTRY * entries
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_joint_fit_takes_no_more_memory_than_estimated() -> None:
    effort, rows = budget.EFFORTS[1], noiseless(3)
    rows = rows.take(np.tile(np.arange(rows.n_rows), 20))
    told = budget.memory_of("boosted", rows, effort) - budget.memory_of("singles", rows, effort)
    train, held_out = halves(rows)
    tracemalloc.start()
    try:
        grown = boost(train, held_out, Settings(trees=effort.trees, patience=500), np.random.default_rng(0))
        assert boosted_bag.most_joint_trees(train, held_out) > len(grown.trees) > 100
        fit_jointly(grown, train, held_out)
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
def test_boosting_ends_for_a_joint_fit_if_classes_hardly_overlap(
    monkeypatch: pytest.MonkeyPatch, most: int, number: int, share: float, expected: bool
) -> None:
    train, held_out = halves(noiseless(3))
    n_rows = train.n_rows + held_out.n_rows
    monkeypatch.setattr(boosted_bag, "DOUBT", 0.4)
    monkeypatch.setattr(boosted_bag, "LEAF_ENTRIES", most * n_rows)
    monkeypatch.setattr(boosted_bag, "MOST_WORK", 6 * most * n_rows)
    assert boosted_bag.enough_for_joint_fit(train, held_out)(number, share * 0.7, 0.7) is expected


def test_more_classes_allow_fewer_trees_in_a_joint_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    two, three = (halves(noiseless(n)) for n in (2, 3))
    monkeypatch.setattr(boosted_bag, "LEAF_ENTRIES", 120 * 1_000)
    monkeypatch.setattr(boosted_bag, "MOST_WORK", 120 * 600)
    assert boosted_bag.most_joint_trees(*two) == 600
    assert boosted_bag.most_joint_trees(*three) == 200
