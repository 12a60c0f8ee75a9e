"""The tests beside scipy's, beside counting all cases one by one, and beside worked examples in print."""

from __future__ import annotations

import itertools
import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from scipy import stats

from bncli.engine.evaluation.significance import (
    MOST_EXACT,
    LossKind,
    average_ranks,
    cliques,
    corrected_resampled_t,
    critical_difference,
    friedman,
    geometric_mean_ratio,
    holm,
    paired_t,
    range_quantile,
    sign_test,
    signed_ranks,
    win_draw_loss,
)
from bncli.errors import BncliError
from tests.engine.evaluation.demsar import AUC, QUANTILES

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


@pytest.mark.slow
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
        ([1.0], [1.0, 2.0], "two lists of the same length"),
        ([[1.0]], [[1.0]], "two lists of the same length"),
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


differences_of_folds = st.lists(st.integers(-50, 50).map(lambda n: n / 100), min_size=2, max_size=30)


@given(differences_of_folds, st.floats(0.05, 0.5))
@example([0.35, 0.35, 0.35], 0.2)
def test_corrected_t_as_the_formula(d: list[float], share: float) -> None:
    n, mean, deviation = len(d), np.mean(d), np.std(d, ddof=1)
    found = corrected_resampled_t(d, share)
    assert (found.n, found.mean) == (n, pytest.approx(mean))
    if len(set(d)) == 1:
        assert found.p == (1.0 if d[0] == 0 else 0.0)
        return
    t = mean / (deviation * math.sqrt(1 / n + share / (1 - share)))
    assert found.t == pytest.approx(t, rel=1e-9, abs=1e-9)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), n - 1), rel=1e-6)
    assert found.p_higher == pytest.approx(stats.t.sf(t, n - 1), rel=1e-6)
    assert found.p_lower == pytest.approx(stats.t.cdf(t, n - 1), rel=1e-6)
    scale = deviation * math.sqrt(1 / n + share / (1 - share))
    assert found.interval == pytest.approx(stats.t.interval(0.95, n - 1, loc=mean, scale=scale), rel=1e-6, abs=1e-9)


@given(differences_of_folds)
def test_laws_of_the_corrected_t(d: list[float]) -> None:
    found, plain = corrected_resampled_t(d, 0.2), paired_t(d, np.zeros(len(d)))
    assert found.p >= plain.p
    turned = corrected_resampled_t([-x for x in d], 0.2)
    assert (turned.t, turned.p, turned.p_higher) == (-found.t, found.p, found.p_lower)
    tiny = corrected_resampled_t(d, 1e-12)
    assert (tiny.t, tiny.p) == (pytest.approx(plain.t, rel=1e-6), pytest.approx(plain.p, rel=1e-6, abs=1e-12))


@pytest.mark.slow
def test_the_corrected_t_finds_nothing_where_there_is_nothing() -> None:
    """Two columns drawn alike, each predicted by its mean over the training rows: equally well.

    Over ten times five folds the plain test calls far more than one comparison in twenty different.
    """
    rng = np.random.default_rng(11)
    corrected, plain = [], []
    for _ in range(400):
        rows = rng.normal(size=(2, 60))
        d = []
        for _ in range(10):
            fold_of = rng.permutation(60) % 5
            for fold in range(5):
                tested, means = fold_of == fold, rows[:, fold_of != fold].mean(axis=1)
                losses = ((rows[:, tested] - means[:, np.newaxis]) ** 2).mean(axis=1)
                d.append(losses[0] - losses[1])
        corrected.append(corrected_resampled_t(d, 0.2).p)
        plain.append(paired_t(d, np.zeros(50)).p)
    assert np.mean(np.array(corrected) < 0.05) < 0.1
    assert np.mean(np.array(plain) < 0.05) > 0.3


def test_corrected_t_refused() -> None:
    for share in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(BncliError, match="fraction of rows tested"):
            corrected_resampled_t([0.1, 0.2], share)
    with pytest.raises(BncliError, match="finite"):
        corrected_resampled_t([0.1, math.nan], 0.2)
    with pytest.raises(BncliError, match="the same length"):
        corrected_resampled_t([[0.1, 0.2]], 0.2)


def test_too_few_folds() -> None:
    for d in ([], [0.5]):
        assert corrected_resampled_t(d, 0.2).p == 1.0
        assert corrected_resampled_t(d, 0.2).interval is None


p_values = st.lists(st.one_of(st.floats(0, 1), st.sampled_from((0.0, 0.01, 0.02, 0.05, 1.0))), max_size=12)


def rejected(p: list[float], level: float) -> set[int]:
    """The smallest against level / m, the next against level / (m - 1), ..., up to the first that is not rejected."""
    found: set[int] = set()
    for step, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[i] * (len(p) - step) > level:
            break
        found.add(i)
    return found


@given(p_values, st.floats(0.001, 0.999))
def test_holm_rejects_what_the_steps_reject(p: list[float], level: float) -> None:
    assert set(np.flatnonzero(holm(p) <= level)) == rejected(p, level)


@given(p_values)
def test_laws_of_holm(p: list[float]) -> None:
    """Between the p-values themselves and Bonferroni's, in the same order."""
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1.0, np.array(p) * len(p))).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
    assert np.array_equal(holm(p[::-1]), adjusted[::-1])


def test_holm_example() -> None:
    """Demsar 2006, JMLR 7, section 3.2.2: 0.016, 0.019 and 0.607; none is rejected but the first two at 0.05."""
    assert holm([0.016, 0.607, 0.019]) == pytest.approx([0.048, 0.607, 0.048])
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]) == 0.2
    assert len(holm([])) == 0


@pytest.mark.parametrize("p", [[1.1], [-0.1], [math.nan], [[0.5]], 0.5])
def test_holm_refused(p: list[float]) -> None:
    with pytest.raises(BncliError, match="p-values"):
        holm(p)


ratio_losses = st.one_of(st.just(0.0), st.floats(1e-3, 2.0))
ratio_cases = st.lists(st.tuples(ratio_losses, ratio_losses, st.integers(1, 10_000)), min_size=1, max_size=20)
kinds = st.sampled_from(("mean", "root", "count", "seconds"))


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=20))
def test_ratio_is_that_of_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    expected = stats.gmean(first) / stats.gmean(second)
    assert geometric_mean_ratio(first, second, np.ones(len(pairs)), "plain") == pytest.approx(expected)


@given(ratio_cases, kinds)
def test_laws_of_ratios(found: list[tuple[float, float, int]], kind: LossKind) -> None:
    first, second, rows = (np.array(column) for column in zip(*found, strict=True))
    ratio = geometric_mean_ratio(first, second, rows, kind)
    assert ratio > 0
    assert geometric_mean_ratio(second, first, rows, kind) == pytest.approx(1 / ratio)
    assert geometric_mean_ratio(first, first, rows, kind) == 1
    assert geometric_mean_ratio(first / 2, second, rows, kind) <= ratio


def test_losses_are_raised_to_the_floor_of_their_kind() -> None:
    assert geometric_mean_ratio([0.0], [0.1], [50], "mean") == pytest.approx(0.01 / 0.1)
    assert geometric_mean_ratio([0.0], [0.1], [5000], "root") == pytest.approx(0.01 / 0.1)
    assert geometric_mean_ratio([0.0, 0.2], [0.0, 0.1], [50, 7], "mean") == pytest.approx(math.sqrt(2))
    assert geometric_mean_ratio([1e-9], [0.1], [50], "mean") == pytest.approx(0.1)
    assert geometric_mean_ratio([0.0, 8.0], [2.0, 2.0], [50, 7], "count") == pytest.approx(1.0)
    assert geometric_mean_ratio([0.0], [1e-3], [50], "seconds") == pytest.approx(1e-6)


def test_the_ratio_without_data_sets_is_one() -> None:
    assert geometric_mean_ratio([], [], [], "mean") == 1.0


@pytest.mark.parametrize(
    ("first", "second", "rows", "message"),
    [
        ([0.1], [0.1, 0.2], [10], "the same length"),
        ([0.1], [0.1], [10, 10], "the same length"),
        ([[0.1]], [[0.1]], [[10]], "the same length"),
        ([math.nan], [0.1], [10], "finite"),
        ([0.1], [math.inf], [10], "finite"),
        ([-0.1], [0.1], [10], "not negative"),
        ([0.1], [0.1], [0], "one row"),
    ],
)
def test_ratio_refused(first: list[float], second: list[float], rows: list[float], message: str) -> None:
    with pytest.raises(BncliError, match=message):
        geometric_mean_ratio(first, second, rows)


def test_a_plain_ratio_needs_positive_figures() -> None:
    with pytest.raises(BncliError, match="losses must be finite"):
        geometric_mean_ratio([0.0], [0.1], [10], "plain")


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
def test_laws_of_ranking(figures: Floats) -> None:
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


def test_refused_of_ranking() -> None:
    with pytest.raises(BncliError, match="at least two methods"):
        friedman([[1.0], [2.0]])
    for k, n in ((1, 5), (3, 0)):
        with pytest.raises(BncliError, match="critical difference is not defined"):
            critical_difference(k, n)
