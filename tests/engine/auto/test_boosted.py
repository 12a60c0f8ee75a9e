"""The bag of boosted trees: whose members it has, what is said of rows held out, and how far it grows."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bncli.engine.auto import boosted, learning
from bncli.engine.auto.boosted import Bag, bagged, judge_boosted, member_seconds, wanted_members
from bncli.engine.auto.budget import DEFAULT, EFFORTS, FOLDS, TREES
from bncli.engine.boosting.boosting import Boosted, log_probabilities
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.folds import stratified_folds
from bncli.engine.learn import learn
from bncli.engine.model import StoppedBy
from bncli.watch import Run
from tests.engine.auto.rows import coded, ensemble_of, mixed, recipe


def parts(data: Dataset, n: int, seed: int = 0) -> list[tuple[Dataset, Dataset]]:
    fold_of = stratified_folds(data.labels, FOLDS, seed)
    rows = [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n)]
    return [(data.take(learnt), data.take(held_out)) for learnt, held_out in rows]


def alike(first: Boosted, second: Boosted) -> bool:
    return np.array_equal(first.held_out, second.held_out)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_row_held_out_is_judged_by_the_member_that_has_not_seen_it(n_labels: int) -> None:
    data = coded(mixed(200, n_labels))
    folds = parts(data, 2)
    judged = judge_boosted(folds, None, Bag(2, 0), lambda fold: None)
    expected = np.concatenate([log_probabilities(member.held_out).T for member in judged.members], axis=1)
    np.testing.assert_array_equal(judged.logs, expected)
    labels = np.concatenate([held_out.labels for _, held_out in folds])
    assert judged.losses.log_loss == pytest.approx(-judged.logs[labels, np.arange(len(labels))].mean())


def test_members_that_were_judged_are_those_that_would_be_grown() -> None:
    data = coded(mixed(200))
    judged = judge_boosted(parts(data, 2), None, Bag(2, 0), lambda fold: None)
    again = bagged(data, (), Bag(2, 0))
    assert len(again) == 2
    assert all(map(alike, again, judged.members))
    assert bagged(data, judged.members, Bag(2, 0)) == judged.members


def test_of_rows_that_some_are_drawn_of_one_member_fewer_is_grown() -> None:
    effort = EFFORTS[DEFAULT]
    few, many = (wanted_members(effort, effort.most_rows + more) for more in (0, 1))
    assert few == effort.members == many + 1


@pytest.mark.parametrize(("asked", "expected"), [(1, 1), (4, 4), (1000, 7)])
def test_it_grows_as_long_as_there_is_time(asked: int, expected: int) -> None:
    answers = iter([True] * asked + [False])
    members = bagged(coded(mixed(60)), (), Bag(7, 0, has_time=lambda seconds: next(answers)))
    assert len(members) == expected


def test_without_time_for_one_it_has_those_that_were_judged() -> None:
    data = coded(mixed(200))
    judged = judge_boosted(parts(data, 1), None, Bag(1, 0), lambda fold: None)
    members = bagged(data, judged.members, Bag(3, 0, has_time=lambda seconds: False))
    assert members == judged.members


def test_a_member_that_the_end_of_the_time_cuts_short_is_left_out_unless_it_is_the_only_one() -> None:
    answers = itertools.count()
    bag = Bag(3, 0, part_of_time=lambda parts: lambda: next(answers) > 8)
    data = coded(mixed(200))
    (only,) = bagged(data, (), bag)
    assert not only.ended
    assert bagged(data, (only,), bag) == (only,)


def test_later_members_are_expected_to_have_as_many_trees_as_those_before() -> None:
    data = coded(mixed(200))
    judged = judge_boosted(parts(data, 2), None, Bag(2, 0, trees=3), lambda fold: None).members
    assert [len(member.trees) for member in judged] == [3, 3]
    assert member_seconds(data, like=judged) == pytest.approx(member_seconds(data) * 3 / TREES)


@pytest.mark.parametrize(("deeper", "depth"), [(160, 7), (161, 6)])
def test_trees_of_very_many_rows_are_deeper(monkeypatch: pytest.MonkeyPatch, deeper: int, depth: int) -> None:
    monkeypatch.setattr(boosted, "DEEPER", deeper)
    (member,) = bagged(coded(sharp(200)), (), Bag(1, 0, trees=30))
    assert max(len(tree.splits) for tree in member.trees) == depth


def test_a_member_learns_from_as_many_rows_as_its_bag_says() -> None:
    data = coded(mixed(200))
    sizes = [bagged(data, (), Bag(1, 0, rows=rows))[0].held_out.shape[0] for rows in (100, 150, 1_000)]
    assert sizes == [20, 30, 40]


def test_members_of_one_fold_differ() -> None:
    members = bagged(coded(mixed(300)), (), Bag(FOLDS + 2, 0))
    assert members[0].held_out.shape == members[FOLDS].held_out.shape
    assert not alike(members[0], members[FOLDS])


def sharp(n_rows: int) -> Columns:
    """Four numbers; the class is whether all of them lie above uneven cuts."""
    x = np.random.default_rng(0).uniform(size=(n_rows, 4))
    labels = np.asarray((x > np.array([0.23, 0.31, 0.17, 0.12])).all(axis=1), np.int8)
    numbers = {f"x{i}": NumericColumn(column) for i, column in enumerate(x.T)}
    return Columns(n_rows, numbers, "class", CategoricalColumn(labels, ("some", "all")))


def test_a_limit_without_an_effort_is_used_for_more_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_MEMBERS", 2 * FOLDS)
    columns, standing = sharp(1_000), Run(clock=partial(float, 0))
    models = [learn(columns, recipe(time_limit=1e6, effort=effort), run=standing).model for effort in (None, 3)]
    sizes = [next(c.tables.n_parameters for c in ensemble_of(m).components if c.name == "boosted") for m in models]
    assert sizes[0] > sizes[1]


def test_a_fit_tells_that_more_trees_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the rows held out nor the time ended them, but their number."""
    effort = EFFORTS[DEFAULT]
    stopped = []
    for trees in (30, effort.trees):
        monkeypatch.setitem(EFFORTS, DEFAULT, replace(effort, trees=trees))
        parameters = learn(sharp(1_000), recipe()).parameters
        stopped.append(parameters.stopped_by)
    assert stopped == [StoppedBy.MAX_ITERATIONS, StoppedBy.CROSS_TUNING]
