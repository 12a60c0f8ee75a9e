"""What the choice may cost."""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.auto.budget import FEW_ROWS, FOLDED_ROWS, FOLDS, SECONDS_OF_FEW, ComputeBudget, folds_held_out
from tests.datasets import random_dataset


def test_fewer_folds_the_more_rows() -> None:
    folds = [folds_held_out(n) for n in (2, FOLDED_ROWS, FOLDED_ROWS + 1, 10_000, 10**7)]
    assert folds[:2] == [FOLDS, FOLDS]
    assert folds == sorted(folds, reverse=True)
    assert folds[-1] == 1


def test_without_a_limit_the_clock_does_not_matter() -> None:
    ticks = iter(range(1000))
    budget = ComputeBudget.of(None, lambda: float(next(ticks)))
    budget.begin_candidates(random_dataset(50, (2, 2), 2))
    assert budget.seconds == SECONDS_OF_FEW
    assert budget.allows(SECONDS_OF_FEW, 0.0)
    budget.expected = 1.0
    assert not budget.allows(SECONDS_OF_FEW, 0.0)
    assert not budget.allows(1.0, SECONDS_OF_FEW)


def test_with_many_rows_the_budget_grows_with_them() -> None:
    budgets = []
    for n in (FEW_ROWS + 1, 10 * FEW_ROWS):
        budget = ComputeBudget.of(None, None)
        budget.begin_candidates(random_dataset(n, (2, 2), 3))
        budgets.append(budget.seconds)
    assert budgets[0] < budgets[1] < math.inf


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
