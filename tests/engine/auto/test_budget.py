"""What the choice may cost."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.auto.budget import ComputeBudget, fit_seconds, folds_held_out, path_seconds
from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners import nb
from bncli.engine.training.likelihood import conditional_likelihood
from tests.datasets import random_dataset


def test_fewer_folds_the_more_rows() -> None:
    """Of up to 3,000 every row is held out once, of more about 1,500 rows."""
    assert [folds_held_out(n) for n in (2, 3_000, 3_001, 4_900, 5_100, 10_000, 10**7)] == [5, 5, 2, 2, 1, 1, 1]


def test_without_a_limit_the_clock_does_not_matter() -> None:
    ticks = iter(range(1000))
    budget = ComputeBudget.of(None, lambda: float(next(ticks)))
    budget.begin_candidates(random_dataset(50, (2, 2), 2))
    assert budget.seconds == 30
    assert budget.allows(30, 0.0)
    budget.expected = 1.0
    assert budget.allows(29, 0.0)
    assert not budget.allows(29.1, 0.0)
    assert not budget.allows(1.0, 28.1)


def test_with_many_rows_the_budget_grows_with_them() -> None:
    assert seconds_of(4_000, (2, 2), 3) == 30
    assert seconds_of(4_001, (2, 2), 3) == pytest.approx(0.2 + 8.5e-4 * 4_001**0.7 * 2**0.25 * 3)
    assert seconds_of(40_000, (2,) * 16, 2) == pytest.approx(0.2 + 8.5e-4 * 40_000**0.7 * 2)


def seconds_of(n_rows: int, cardinalities: tuple[int, ...], n_labels: int) -> float:
    budget = ComputeBudget.of(None, None)
    budget.begin_candidates(random_dataset(n_rows, cardinalities, n_labels))
    return budget.seconds


def test_a_candidate_is_expected_to_take_passes_over_its_rows_and_tables() -> None:
    """300 passes a path and 40 a fit, of the nanoseconds of a pass and 30 for an entry of a table."""
    data = random_dataset(100, (3, 4), 3)
    likelihood = conditional_likelihood(data, nb.learn(Counts(data)).families(data.schema.cardinalities))
    assert likelihood.n_cells == 1 + 3 + 4
    one_pass = 1e-9 * (likelihood.pass_work + 30 * 3 * 8)
    assert path_seconds([likelihood, likelihood]) == pytest.approx(600 * one_pass)
    assert fit_seconds(likelihood, 50) == fit_seconds(likelihood, 100) == pytest.approx(40 * one_pass)
    assert fit_seconds(likelihood, 250) == pytest.approx(100 * one_pass)


def test_with_a_limit_candidates_are_expected_to_take_what_the_others_took() -> None:
    now = [100.0]
    budget = ComputeBudget.of(10.0, lambda: now[0])
    now[0] += 1
    budget.begin_candidates(random_dataset(50, (2, 2), 2))
    now[0] += 4
    budget.expected = 2.0  # two seconds for each that was expected
    assert budget.allows(2.5, 0.0)
    assert not budget.allows(2.6, 0.0)
    assert not budget.allows(1.5, 1.1)
    assert np.isfinite(budget.seconds)
