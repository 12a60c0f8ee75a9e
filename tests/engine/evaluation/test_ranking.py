"""Ranks and tests beside scipy's, beside a worked example in print, and beside an analysis of variance of the ranks."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from scipy import stats

from bncli.engine.evaluation.ranking import average_ranks, cliques, critical_difference, friedman, range_quantile
from bncli.errors import BncliError
from tests.engine.evaluation.demsar import AUC, QUANTILES

LOSSES = -np.array(AUC)
Floats = NDArray[np.float64]

tables = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(2, 6)), elements=st.integers(-3, 3).map(float)
)
"""Few values: ties abound."""


def test_the_worked_example_in_print() -> None:
    """Section 3.2.2 and Table 6: chi^2 = 9.28, F = 3.69, critical value 2.85."""
    found = friedman(LOSSES)
    assert [round(rank, 3) for rank in found.ranks] == [3.143, 2.000, 2.893, 1.964]
    uncorrected = 12 * 14 / (4 * 5) * sum((rank - 2.5) ** 2 for rank in found.ranks)
    assert round(uncorrected, 2) == 9.28
    assert round(13 * uncorrected / (14 * 3 - uncorrected), 2) == 3.69
    assert 9.28 < found.chi_squared < 10.5  # the paper does without the correction for its ties
    assert found.f > 3.69
    assert found.f_p < stats.f.sf(2.85, 3, 39) < 0.0501
    assert round(critical_difference(4, 14), 2) == 1.25


def test_groups_of_the_worked_example() -> None:
    """At 5 % no pair differs; at 10 % (1.12 in print) C4.5 is worse than both with m tuned (Figure 1a)."""
    ranks = friedman(LOSSES).ranks
    assert cliques(ranks, critical_difference(4, 14)) == ((3, 1, 2, 0),)
    assert cliques(ranks, 1.12) == ((3, 1, 2), (2, 0))


@pytest.mark.parametrize("alpha", QUANTILES)
def test_the_constants_in_print(alpha: float) -> None:
    for k, printed in enumerate(QUANTILES[alpha], 2):
        assert range_quantile(alpha, k) / math.sqrt(2) == pytest.approx(printed, abs=1.01e-3)


@given(tables)
def test_as_scipy(figures: Floats) -> None:
    ranks = average_ranks(figures)
    assert np.array_equal(ranks, stats.rankdata(figures, axis=1))
    found = friedman(figures)
    assert found.ranks == pytest.approx(ranks.mean(axis=0))
    tied = (figures == figures[:, :1]).all()
    if figures.shape[1] > 2 and len(figures) > 1 and not tied:  # scipy refuses two methods
        theirs = stats.friedmanchisquare(*figures.T)
        assert found.chi_squared == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
        assert found.p == pytest.approx(theirs.pvalue, rel=1e-8)


@given(tables)
def test_f_is_that_of_a_two_way_analysis_of_variance_of_the_ranks(figures: Floats) -> None:
    n, k = figures.shape
    found = friedman(figures)
    ranks = stats.rankdata(figures, axis=1)
    between = n * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    within = ((ranks - ranks.mean(axis=0)) ** 2).sum()
    if n < 2 or (ranks == ranks[0, 0]).all():
        assert (found.chi_squared, found.p, found.f, found.f_p) == (0.0, 1.0, 0.0, 1.0)
    elif within < 1e-9:
        assert (found.f, found.f_p) == (math.inf, 0.0)
    else:
        expected = (between / (k - 1)) / (within / ((k - 1) * (n - 1)))
        assert found.f == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert found.f_p == pytest.approx(stats.f.sf(expected, k - 1, (k - 1) * (n - 1)), rel=1e-8)


@pytest.mark.parametrize(
    ("n", "k", "chi_squared", "printed"),
    [(3, 3, 6.0, 0.028), (4, 3, 6.5, 0.042), (10, 3, 6.2, 0.046), (4, 4, 7.8, 0.036), (6, 4, 7.6, 0.043)],
)
def test_exact_p_values_in_print(n: int, k: int, chi_squared: float, printed: float) -> None:
    """Exact tables of Friedman's statistic, as textbooks of nonparametric statistics print them."""
    dice = np.random.default_rng(0)
    while True:
        found = friedman(np.argsort(dice.random((n, k)), axis=1))
        if found.chi_squared == pytest.approx(chi_squared):
            break
    assert found.exact_p == pytest.approx(printed, abs=5e-4)


few = arrays.arrays(np.float64, st.tuples(st.integers(2, 4), st.integers(2, 3)), elements=st.integers(0, 2).map(float))


@given(few)
def test_the_exact_p_value_is_the_share_of_all_orders(figures: Floats) -> None:
    found = friedman(figures)
    every = product(*(list(permutations(row)) for row in average_ranks(figures).tolist()))
    squares = [sum(sum(own) ** 2 for own in zip(*rows, strict=True)) for rows in every]
    observed = (average_ranks(figures).sum(axis=0) ** 2).sum()
    assert found.exact_p == pytest.approx(np.mean(np.array(squares) >= observed - 1e-9))


def test_where_all_data_sets_rank_alike_the_p_value_is_exact_for_any_size() -> None:
    found = friedman([range(9)] * 3)
    assert found.f == math.inf
    assert found.exact_p == pytest.approx(math.factorial(9) ** -2.0)
    assert friedman(np.random.default_rng(0).random((3, 9))).exact_p is None


@given(tables)
def test_laws(figures: Floats) -> None:
    n, k = figures.shape
    ranks = average_ranks(figures)
    assert ranks.sum(axis=1) == pytest.approx(np.full(n, k * (k + 1) / 2))
    assert np.array_equal(average_ranks(-figures), k + 1 - ranks)
    assert np.array_equal(average_ranks(np.exp(figures) + 7), ranks)
    found, turned = friedman(figures), friedman(-figures)
    assert (turned.chi_squared, turned.f) == pytest.approx((found.chi_squared, found.f))
    assert 0 <= found.p <= 1
    assert 0 <= found.f_p <= 1


def test_noise_in_the_last_digits_is_a_tie() -> None:
    assert average_ranks([[0.3, 0.1 + 0.2, 0.2], [0.0, 0.0, 1e-300]]).tolist() == [[2.5, 2.5, 1], [1.5, 1.5, 3]]
    assert friedman([[0.3, 0.1 + 0.2]] * 5).p == 1.0


def test_no_data_sets() -> None:
    found = friedman(np.empty((0, 3)))
    assert found == type(found)(0.0, 1.0, 0.0, 1.0, 1.0, (2.0, 2.0, 2.0))
    assert average_ranks(np.empty((0, 3))).shape == (0, 3)


def test_critical_differences_are_those_of_scipy() -> None:
    for k in (2, 3, 7, 30):
        q = stats.studentized_range.ppf(0.95, k, np.inf)
        assert critical_difference(k, 11) == pytest.approx(q / math.sqrt(2) * math.sqrt(k * (k + 1) / 66), rel=1e-6)


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_range(k: int) -> None:
    for alpha in (1e-6, 0.001, 0.01, 0.1, 0.5, 0.99):
        assert range_quantile(alpha, k) == pytest.approx(stats.studentized_range.ppf(1 - alpha, k, np.inf), rel=1e-6)


@given(st.floats(1e-9, 1 - 1e-9))
def test_the_range_of_two_is_a_normal(alpha: float) -> None:
    assert range_quantile(alpha, 2) == pytest.approx(math.sqrt(2) * stats.norm.isf(alpha / 2), rel=1e-6, abs=1e-9)


@given(st.lists(st.integers(2, 30).map(lambda twice: twice / 2), max_size=9), st.floats(0.1, 6))
def test_groups_by_trying_every_one(ranks: list[float], difference: float) -> None:
    found = [frozenset(group) for group in cliques(ranks, difference)]
    possible = [
        frozenset(group)
        for size in range(2, len(ranks) + 1)
        for group in combinations(range(len(ranks)), size)
        if max(ranks[j] for j in group) - min(ranks[j] for j in group) < difference
    ]
    largest = {group for group in possible if not any(group < other for other in possible)}
    assert len(found) == len(set(found))
    assert set(found) == largest
    for group in cliques(ranks, difference):
        assert [ranks[j] for j in group] == sorted(ranks[j] for j in group)


@pytest.mark.parametrize("figures", [[1.0, 2.0], [[]], [[1.0, math.nan]], [[1.0, math.inf]]])
def test_figures_that_cannot_be_ranked(figures: list[float]) -> None:
    with pytest.raises(BncliError, match=r"finite numbers|one row per data set"):
        average_ranks(figures)


def test_refused() -> None:
    with pytest.raises(BncliError, match="at least two methods"):
        friedman([[1.0], [2.0]])
    for k, n in ((1, 5), (3, 0)):
        with pytest.raises(BncliError, match="critical difference is not defined"):
            critical_difference(k, n)
