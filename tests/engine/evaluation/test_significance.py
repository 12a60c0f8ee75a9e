"""The tests beside scipy's, beside counting all signs one by one, and beside a worked example in print."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.evaluation.significance import MOST_EXACT, paired_t, sign_test, signed_ranks, win_draw_loss
from bncli.errors import BncliError
from tests.engine.evaluation.demsar import AUC

C45, C45_M = ([row[method] for row in AUC] for method in (0, 1))

whole = st.integers(-6, 6).map(float)
"""Few values: ties and zeros abound."""
pairs_with_ties = st.lists(st.tuples(whole, whole), min_size=1, max_size=30)
distinct = st.lists(st.integers(1, 200), min_size=1, max_size=MOST_EXACT, unique=True).flatmap(
    lambda sizes: st.tuples(*(st.sampled_from((float(size), -float(size))) for size in sizes))
)


def columns(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    first, second = zip(*pairs, strict=True)
    return list(first), list(second)


def test_worked_example_in_print() -> None:
    """Table 2. The paper shares the ranks 1 and 2 of the two zeros out, T = 12 and R+ = 93; here zeros are dropped.

    Every other rank is then 2 lower: for the 2 sets where the tuned one loses, and for the 10 where it wins.
    """
    found = signed_ranks(C45_M, C45)
    assert (found.n, found.w_plus, found.w_minus) == (12, 71.5, 6.5)
    assert found.w_minus + 2 * 2 + (1 + 2) / 2 == 12
    assert found.w_plus + 2 * 10 + (1 + 2) / 2 == 93
    assert not found.exact  # 0.768 - 0.763 ties with 0.936 - 0.931
    assert found.p < 0.05
    counted = win_draw_loss(C45_M, C45)
    assert (counted.wins, counted.draws, counted.losses) == (10, 2, 2)


@given(distinct)
def test_exact_p_values_are_those_of_scipy(differences: tuple[float, ...]) -> None:
    zeros = np.zeros(len(differences))
    found = signed_ranks(differences, zeros)
    assert found.exact
    for p, side in ((found.p, "two-sided"), (found.p_higher, "greater"), (found.p_lower, "less")):
        assert p == pytest.approx(stats.wilcoxon(differences, alternative=side, method="exact").pvalue, rel=1e-9)


@given(pairs_with_ties)
def test_approximate_p_values_are_those_of_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = columns(pairs)
    found = signed_ranks(first, second)
    if found.exact:
        return
    for p, side in ((found.p, "two-sided"), (found.p_higher, "greater"), (found.p_lower, "less")):
        theirs = stats.wilcoxon(first, second, alternative=side, method="asymptotic", correction=False)
        assert p == pytest.approx(theirs.pvalue, rel=1e-9)


def test_many_pairs_count_as_normal() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.2, size=200), rng.normal(size=200)
    found = signed_ranks(first, second)
    assert not found.exact
    assert found.p == pytest.approx(stats.wilcoxon(first, second, correction=False).pvalue, rel=1e-9)


@pytest.mark.parametrize("n", range(9))
def test_exact_p_values_by_counting_all_win_draw_loss(n: int) -> None:
    sums = [sum(itertools.compress(range(1, n + 1), chosen)) for chosen in itertools.product((0, 1), repeat=n)]
    for positive in range(n + 1):
        differences = [rank if rank <= positive else -rank for rank in range(1, n + 1)]
        found = signed_ranks(differences, np.zeros(n))
        assert found.p_higher == np.mean(np.array(sums) >= found.w_plus)
        assert found.p_lower == np.mean(np.array(sums) <= found.w_plus)


@given(pairs_with_ties, st.permutations(range(30)))
def test_laws(pairs: list[tuple[float, float]], order: list[int]) -> None:
    first, second = columns(pairs)
    found = signed_ranks(first, second)
    assert found.w_plus + found.w_minus == found.n * (found.n + 1) / 2
    assert 0 < found.p <= 1
    turned = signed_ranks(second, first)
    assert (turned.w_plus, turned.w_minus) == (found.w_minus, found.w_plus)
    assert (turned.p, turned.p_higher, turned.p_lower) == (found.p, found.p_lower, found.p_higher)
    assert turned.z == -found.z
    shuffled = [pairs[i] for i in order if i < len(pairs)]
    assert signed_ranks(*columns(shuffled)) == found
    assert signed_ranks([a / 7 + 1 for a in first], [b / 7 + 1 for b in second]) == found


@given(pairs_with_ties)
def test_signs_are_those_of_scipy(pairs: list[tuple[float, float]]) -> None:
    found = win_draw_loss(*columns(pairs))
    assert found.wins == sum(a > b for a, b in pairs)
    assert found.losses == sum(a < b for a, b in pairs)
    assert found.wins + found.draws + found.losses == len(pairs)
    decided = found.wins + found.losses
    expected = stats.binomtest(found.wins, decided).pvalue if decided else 1.0
    assert found.p == pytest.approx(expected, rel=1e-9)


def test_sign_test_of_many() -> None:
    assert sign_test(0, 0) == 1
    assert sign_test(10, 0) == 2 / 2**10
    assert sign_test(5, 5) == 1
    assert sign_test(2600, 2400) == pytest.approx(stats.binomtest(2600, 5000).pvalue, rel=1e-9)


def test_nothing_to_compare() -> None:
    for figures in ([], [1.0, 2.0]):
        found = signed_ranks(figures, figures)
        assert (found.n, found.z, found.p, found.p_higher, found.p_lower) == (0, 0, 1, 1, 1)
        assert win_draw_loss(figures, figures).p == 1


def test_noise_in_the_last_digits_is_no_difference() -> None:
    assert signed_ranks([0.1 + 0.2, 1e9 / 3], [0.3, 1e9 / 3 * (1 + 2e-16)]).n == 0


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1.0], [1.0, 2.0], "two lists of one length"),
        ([[1.0]], [[1.0]], "two lists of one length"),
        ([math.nan], [1.0], "finite"),
        ([1.0], [math.inf], "finite"),
    ],
)
def test_refused(first: list[float], second: list[float], message: str) -> None:
    for test in (signed_ranks, win_draw_loss):
        with pytest.raises(BncliError, match=message):
            test(first, second)


@given(pairs_with_ties)
def test_paired_t_is_that_of_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = columns(pairs)
    found = paired_t(first, second)
    differences = np.subtract(first, second)
    if len(pairs) < 2 or not differences.any() or len(set(differences.tolist())) == 1:
        return
    for p, side in ((found.p, "two-sided"), (found.p_higher, "greater"), (found.p_lower, "less")):
        assert p == pytest.approx(stats.ttest_rel(first, second, alternative=side).pvalue, rel=1e-9)
    assert (found.n, found.mean) == (len(pairs), pytest.approx(differences.mean()))


def test_paired_t_without_spread() -> None:
    same, shifted = paired_t([0.5, 0.25, 1.0], [0.5, 0.25, 1.0]), paired_t([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    assert (same.t, same.p, same.p_higher, same.p_lower) == (0.0, 1.0, 1.0, 1.0)
    assert (shifted.t, shifted.p, shifted.p_higher, shifted.p_lower) == (math.inf, 0.0, 0.0, 1.0)
    assert paired_t([1.0], [0.0]).p == 1.0
    assert paired_t([], []).n == 0
