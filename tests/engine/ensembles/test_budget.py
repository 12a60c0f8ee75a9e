"""What the choice may cost."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles.budget import (
    DEFAULT,
    EFFORTS,
    ComputeBudget,
    boosted_seconds,
    choose_effort,
    fit_seconds,
    least_path_seconds,
    path_seconds,
    search_seconds,
)
from bncli.engine.ensembles.candidates import Candidate
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.structure_learners import nb
from bncli.engine.structures.structure import Regions
from tests.datasets import random_dataset

SIZES = list(itertools.product((1, 25, 400, 3_000, 60_000), (1, 8, 166), (2, 3, 26)))


@pytest.mark.parametrize(("rows", "attributes", "labels"), SIZES)
def test_a_higher_effort_allows_more_and_holds_out_no_less(rows: int, attributes: int, labels: int) -> None:
    for lower, higher in itertools.pairwise(EFFORTS.values()):
        assert lower.seconds(rows, attributes, labels) < higher.seconds(rows, attributes, labels)
        assert lower.folds(rows) <= higher.folds(rows)
        assert lower.most_rows <= higher.most_rows
        assert lower.boosted_from >= higher.boosted_from
        assert lower.prunes >= higher.prunes
        assert lower.members <= higher.members
        assert lower.trees < higher.trees
        assert lower.member_rows <= higher.member_rows


@pytest.mark.parametrize("effort", [1, 2, 3, 4])
def test_what_is_allowed_grows_without_a_jump(effort: int) -> None:
    """One more row never raises it by more than its share of the rows."""
    allowed = EFFORTS[effort]
    for rows in [*range(1, 500), *range(2_900, 4_100), 10_000, 25_000, 10**6]:
        before, after = allowed.seconds(rows, 16, 2), allowed.seconds(rows + 1, 16, 2)
        assert before < after <= before * (rows + 1) / rows
        assert 0 <= allowed.folds(rows) - allowed.folds(rows + 1) <= 1


def test_the_default_in_numbers() -> None:
    """One class counts as two; there are fewer folds the more rows there are."""
    effort = EFFORTS[DEFAULT]
    assert effort.seconds(10_000, 16, 2) == pytest.approx(0.5 + 3e-3 * 10_000**0.6 * 2)
    assert effort.seconds(10_000, 16, 6) == pytest.approx(0.5 + 3e-3 * 10_000**0.6 * 2 * 3)
    assert effort.seconds(10_000, 16, 1) == effort.seconds(10_000, 16, 2)
    assert [effort.folds(n) for n in (0, 2, 2_500, 3_200, 4_000, 6_000, 9_000, 10**7)] == [5, 5, 5, 4, 3, 2, 1, 1]
    assert EFFORTS[5].seconds(10_000, 16, 2) == math.inf
    assert EFFORTS[5].folds(10**7) == 5


def test_a_given_effort_is_used_with_any_limit() -> None:
    data = random_dataset(50, (2, 2), 2)
    assert choose_effort(None, None, data) == EFFORTS[3]
    assert choose_effort(1, None, data) == choose_effort(1, 60.0, data) == EFFORTS[1]


def test_a_limit_alone_tries_everything_in_the_folds_of_what_fits() -> None:
    data = random_dataset(50, (2, 2), 2)
    least, most = choose_effort(None, 1e-3, data), choose_effort(None, 60.0, data)
    assert least.held_out == EFFORTS[1].held_out
    assert most.held_out == EFFORTS[4].held_out
    for one in (least, most):
        assert one.share == math.inf
        assert one.trees == EFFORTS[5].trees
        assert not one.prunes


def begun(limit: float | None, now: list[float], effort: int = DEFAULT, data: Dataset | None = None) -> ComputeBudget:
    budget = ComputeBudget.start(limit, lambda: now[0])
    now[0] += 1
    budget.begin_candidates(EFFORTS[effort], random_dataset(50, (2, 2), 2) if data is None else data)
    return budget


def test_without_a_limit_the_clock_does_not_matter() -> None:
    now = [0.0]
    budget = begun(None, now)
    seconds = EFFORTS[3].seconds(50, 2, 2)
    assert budget.seconds == seconds
    assert budget.allows(seconds, 0.0)
    budget.spend(0.1, 0.0)
    now[0] = 1e9
    assert budget.allows(0.99 * (seconds - 0.1), 0.0)
    assert not budget.allows(seconds - 0.09, 0.0)
    assert not budget.allows(0.0, seconds - 0.09)
    budget.spend_on_trees(0.85, 5.0, 0.85)
    assert budget.allows(0.99 * (seconds - 0.1), 0.0)
    budget.spend_on_trees(0.85 + 0.05, 5.0, 9.0)
    assert budget.allows(0.99 * (seconds - 0.15), 0.0)
    assert not budget.allows(seconds - 0.14, 0.0)


def test_a_candidate_is_expected_to_take_passes_over_its_rows_and_tables() -> None:
    """A path takes 200 passes and a fit 40; a pass takes its own time and 30 ns per table entry; lines take a fifth."""
    likelihood = some_likelihood()
    one_pass = 1e-9 * (likelihood.pass_work + 30 * 3 * 8)
    assert path_seconds(likelihood) == pytest.approx(200 * one_pass)
    assert path_seconds(likelihood, "linear") == pytest.approx(40 * one_pass)
    assert fit_seconds(likelihood, 50) == fit_seconds(likelihood, 100) == pytest.approx(40 * one_pass)
    assert fit_seconds(likelihood, 250) == pytest.approx(100 * one_pass)


@pytest.mark.parametrize("coding", ["thermometer", "linear"])
def test_the_cost_before_rows_are_fused_is_a_lower_bound(coding: str) -> None:
    likelihood = some_likelihood()
    found = Candidate("singles", Regions(()), likelihood.families, coding)
    least = least_path_seconds(likelihood.data, found)
    assert 0 < least <= path_seconds(likelihood, coding)
    assert path_seconds(likelihood, coding) - least == pytest.approx(
        (40 if coding == "linear" else 200) * 1e-9 * likelihood.pass_work
    )


def some_likelihood() -> ConditionalLikelihood:
    data = random_dataset(100, (3, 4), 3)
    likelihood = conditional_likelihood(data, nb.learn(Counts(data)).families(data.schema.cardinalities))
    assert likelihood.n_cells == 1 + 3 + 4
    return likelihood


def test_the_search_cost_grows_with_the_number_of_pairs() -> None:
    """For a wide table the search alone takes longer than an effort allows."""
    assert search_seconds("singles", 2_000) == search_seconds("lines", 2_000) == 0
    assert search_seconds("tree", 20) == pytest.approx(4e-5 * 190)
    assert search_seconds("triples", 20) > search_seconds("pairs", 20)
    assert 5 * search_seconds("tree", 166) > EFFORTS[3].seconds(380, 166, 2)


def test_boosting_takes_longer_with_rows_and_attributes() -> None:
    assert boosted_seconds(100, 5) < boosted_seconds(1_000, 5) < boosted_seconds(1_000, 50)


def test_with_a_limit_expectations_follow_the_clock() -> None:
    now = [100.0]
    budget = begun(10.0, now, 5)
    now[0] += 4
    budget.spend(2.0, 0.0)  # two seconds for each that was expected
    assert budget.allows(2.5, 0.0)
    assert not budget.allows(2.6, 0.0)
    assert not budget.allows(1.5, 1.1)
    assert not budget.is_late()
    now[0] += 5.1
    assert budget.is_late()


def test_expectations_follow_the_number_of_trees_grown() -> None:
    """Ten times as many trees in ten times the seconds: other candidates take as long as expected."""
    now = [0.0]
    budget = begun(100.0, now, 5)
    now[0] += 20
    budget.spend_on_trees(2.0, 0.0, 20.0)
    assert budget.has_time(78.0, 0.0)
    assert not budget.has_time(80.0, 0.0)


def test_a_part_of_the_time_that_is_left() -> None:
    now = [0.0]
    budget = begun(20.0, now, 5)  # after a second
    budget.spend(0.0, 4.0)
    third = budget.part_of_time(3)
    assert not third()
    now[0] += 4.9  # of the 15 left but for the fits on all rows
    assert not third()
    now[0] += 0.2
    assert third()
    assert not budget.part_of_time(3)()
    now[0] = 1e9
    assert budget.part_of_time(3)()
    assert not ComputeBudget.start(None, lambda: now[0]).part_of_time(3)()


def test_an_effort_and_a_limit_both_count() -> None:
    now = [0.0]
    budget = begun(10.0, now)
    assert not budget.allows(EFFORTS[3].seconds(50, 2, 2) + 0.1, 0.0)
    now[0] = 11.0
    assert not budget.allows(0.0, 0.0)
    assert np.isfinite(budget.seconds)
