"""The bag of boosted trees: whose members it has, what is said of rows held out, and how far it grows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_folds
from bncli.engine.ensembles import auto as learning
from bncli.engine.ensembles import boosted_candidate as boosted
from bncli.engine.ensembles.boosted_candidate import Bag, bagged, judge_boosted, member_seconds, n_members
from bncli.engine.ensembles.boosted_trees import Boosted, log_probabilities
from bncli.engine.ensembles.budget import DEFAULT, EFFORTS, FOLDS, TREES, ComputeBudget, boosted_seconds
from bncli.engine.learn import learn
from bncli.engine.model import StoppedBy
from bncli.watch import Run
from tests.engine.ensembles.rows import coded, ensemble_of, mixed, recipe


def parts(data: Dataset, n: int, seed: int = 0) -> list[tuple[Dataset, Dataset]]:
    fold_of = stratified_folds(data.labels, FOLDS, seed)
    rows = [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n)]
    return [(data.take(learnt), data.take(held_out)) for learnt, held_out in rows]


Answer = Callable[[], bool]


class Clock(ComputeBudget):
    """Says when there is time for a member, and when that of one in hand is over."""

    def __init__(
        self, has_time: Callable[[], bool] = lambda: True, is_late: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(None, None)
        self.has_time = lambda expected, later: has_time()  # type: ignore[method-assign]
        self.part_of_time = lambda n: is_late  # type: ignore[method-assign]


def bag(wanted: int, rows: int = 10**5, trees: int = 500, budget: ComputeBudget | None = None) -> Bag:
    return Bag(wanted, rows, trees, 0, budget or Clock())


def alike(first: Boosted, second: Boosted) -> bool:
    return np.array_equal(first.held_out, second.held_out)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_row_held_out_is_judged_by_the_member_that_has_not_seen_it(n_labels: int) -> None:
    data = coded(mixed(200, n_labels))
    folds = parts(data, 2)
    judged = judge_boosted(folds, None, bag(2), lambda fold: None)
    expected = np.concatenate([log_probabilities(member.held_out).T for member in judged.members], axis=1)
    np.testing.assert_array_equal(judged.logs, expected)
    labels = np.concatenate([held_out.labels for _, held_out in folds])
    assert judged.losses.log_loss == pytest.approx(-judged.logs[labels, np.arange(len(labels))].mean())


def test_members_that_were_judged_are_those_that_would_be_grown() -> None:
    data = coded(mixed(200))
    judged = judge_boosted(parts(data, 2), None, bag(2), lambda fold: None)
    again = bagged(data, (), bag(2))
    assert len(again) == 2
    assert all(map(alike, again, judged.members))
    assert bagged(data, judged.members, bag(2)) == judged.members


def test_of_rows_that_some_are_drawn_of_one_member_fewer_is_grown() -> None:
    effort = EFFORTS[DEFAULT]
    few, many = (n_members(effort, effort.most_rows + more) for more in (0, 1))
    assert few == effort.members == many + 1


@pytest.mark.parametrize(("asked", "expected"), [(1, 1), (4, 4), (1000, 7)])
def test_it_grows_as_long_as_there_is_time(asked: int, expected: int) -> None:
    answers = iter([True] * asked + [False])
    members = bagged(coded(mixed(60)), (), bag(7, budget=Clock(has_time=lambda: next(answers))))
    assert len(members) == expected


def test_without_time_for_one_it_has_those_that_were_judged() -> None:
    data = coded(mixed(200))
    judged = judge_boosted(parts(data, 1), None, bag(1), lambda fold: None)
    members = bagged(data, judged.members, bag(3, budget=Clock(has_time=lambda: False)))
    assert members == judged.members


def cut_short(data: Dataset, number: int, trees: int) -> tuple[Boosted, ...]:
    """Members that the time ended after so many trees."""
    answers = itertools.chain.from_iterable([[False] * trees, [True]] * number)
    clock = Clock(is_late=lambda: next(answers))
    return judge_boosted(parts(data, number), None, bag(number, budget=clock), lambda fold: None).members


def test_a_member_that_the_end_of_all_time_cuts_short_is_left_out() -> None:
    answers = itertools.count()
    data = coded(mixed(200))
    (whole,) = bagged(data, (), bag(1))
    clock = Clock(is_late=lambda: next(answers) > 8)
    assert bagged(data, (whole,), bag(3, budget=clock)) == (whole,)


def test_where_the_time_cut_members_short_others_have_as_many_trees() -> None:
    data = coded(sharp(300))
    judged = cut_short(data, 2, 6)
    members = bagged(data, judged, bag(4))
    assert [member.grown for member in members] == [6, 6, 6, 6]
    assert not any(member.ended for member in members)


def test_a_member_without_a_tree_is_none_where_others_have_some() -> None:
    data = coded(sharp(300))
    none, some = cut_short(data, 1, 0)[0], cut_short(data, 1, 5)[0]
    assert (none.grown, some.grown) == (0, 5)
    assert bagged(data, (some, none), bag(1)) == (some,)
    assert bagged(data, (none,), bag(1)) == (none,)


def test_later_members_are_expected_to_have_as_many_trees_as_those_before() -> None:
    data = coded(mixed(200))
    judged = judge_boosted(parts(data, 2), None, bag(2, trees=3), lambda fold: None).members
    assert [len(member.trees) for member in judged] == [3, 3]
    expected = boosted_seconds(160, len(data.schema.informative))
    assert member_seconds(data, 160, judged) == pytest.approx(expected * 3 / TREES)
    assert member_seconds(data, 160) == expected


@pytest.mark.parametrize(("deeper", "depth"), [(160, 7), (161, 6)])
def test_trees_of_very_many_rows_are_deeper(monkeypatch: pytest.MonkeyPatch, deeper: int, depth: int) -> None:
    monkeypatch.setattr(boosted, "DEEPER", deeper)
    (member,) = bagged(coded(sharp(200)), (), bag(1, trees=30))
    assert max(len(tree.splits) for tree in member.trees) == depth


def test_a_member_learns_from_as_many_rows_as_its_bag_says() -> None:
    data = coded(mixed(200))
    sizes = [bagged(data, (), bag(1, rows=rows))[0].held_out.shape[0] for rows in (100, 150, 1_000)]
    assert sizes == [20, 30, 40]


def test_members_of_one_fold_differ() -> None:
    members = bagged(coded(mixed(300)), (), bag(FOLDS + 2))
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
