"""Scores of families against sums over cells, products of predictive probabilities and figures by hand.

The linear approximation against the paper's closed forms and simulation; aCLL's best parameters against others."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.special import digamma, polygamma, spence

from bncli.catalogue import SCORES
from bncli.engine.structures.scores import (
    FAMILY_SCORES,
    acll,
    acll_scores,
    acll_uniform,
    aic,
    bdeu,
    bic,
    class_contrasts,
    dirichlet_approximation,
    free_parameters,
    k2,
    log_likelihood,
    log_marginal_likelihood,
    log_theta,
    parse_score,
    prior_approximation,
    uniform_approximation,
)
from bncli.errors import BncliError
from tests import oracles
from tests.engine.structures import family_counts as families
from tests.engine.structures.family_counts import Array, family_counts

betas = st.sampled_from([0.0, 0.06, 0.2, 0.39]).map(np.asarray)
COUNTS = np.random.default_rng(3).integers(0, 20, (4, 3, 2, 3)).astype(float)
pseudo_counts = st.sampled_from([0.01, 1.0, 5.0])
strengths = st.sampled_from([1e-3, 1.0, 2.5, 100.0])

RULES = ["ll", "bic", "aic", "k2", "bdeu:0.001", "bdeu:1", "bdeu:100", "acll:0.01", "acll:5", "acll-uniform:1"]


@pytest.mark.parametrize(
    ("n_labels", "beta", "gamma"), [(2, 0.391942, -0.617950), (3, 0.239921, -0.598261), (5, 0.134350, None)]
)
def test_dirichlet_with_a_thousand_rows(n_labels: int, beta: float, gamma: float | None) -> None:
    line = dirichlet_approximation(n_labels, 1000)
    assert line.beta == pytest.approx(beta, abs=1e-6)
    assert gamma is None or line.gamma == pytest.approx(gamma, abs=1e-6)
    assert dirichlet_approximation(10, 1000).beta == pytest.approx(0.063715, abs=1e-6)


def test_dirichlet_for_many_numbers_of_rows_at_once() -> None:
    rows = np.array([[0.0, 0.5, 3.0], [10.25, 1e6, 1e12]])
    together = dirichlet_approximation(3, rows)
    assert together.beta.shape == together.gamma.shape == (2, 3)
    for index, n in np.ndenumerate(rows):
        assert together.beta[index] == dirichlet_approximation(3, float(n)).beta
    assert together.beta[0, 0] == 0  # no rest: the sum is 1 whatever its parts
    assert (np.diff(together.beta.ravel()) > 0).all()


def test_uniform_in_closed_form() -> None:
    ln2, ln3 = math.log(2), math.log(3)
    dilogarithms = 72 * spence(3.0) + 24 * spence(0.75)  # Li2(-2), Li2(1/4)
    three = (-15 * math.pi**2 + 2 * (11 - 9 * ln3 + 12 * ln2 - 60 * ln2**2 - dilogarithms)) / 36
    assert uniform_approximation(1).beta == pytest.approx(1.0, abs=1e-13)
    assert uniform_approximation(2).beta == pytest.approx((18 - math.pi**2) / 24, abs=1e-13)
    assert uniform_approximation(3).beta == pytest.approx(three, abs=1e-12)
    assert uniform_approximation(4).beta == pytest.approx(0.142314, abs=1e-6)
    assert uniform_approximation(5).beta == pytest.approx(0.110548, abs=1e-6)
    assert uniform_approximation(2).gamma == pytest.approx(2 * ln2 - 1.5 + 2 * uniform_approximation(2).beta, abs=1e-12)
    assert uniform_approximation(1).gamma == pytest.approx(0.0, abs=1e-12)


def test_uniform_for_many_classes() -> None:
    """The sum is then nearly normal: ln S ~ ln(K/2) + (S - K/2) / (K/2), so beta ~ 2 Cov(U, ln U) / K = 1 / (2 K)."""
    assert uniform_approximation(1000).beta * 1000 == pytest.approx(0.5, rel=1e-2)


def fitted(u: Array) -> tuple[float, float]:
    """Slope and intercept of ln(sum) on the sum of logs, samples (T, K)."""
    a, b = np.log(u.sum(axis=1)), np.log(u).sum(axis=1)
    beta = float(np.cov(a, b)[0, 1] / b.var(ddof=1))
    return beta, float(a.mean() - beta * b.mean())


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_uniform_by_simulation(n_labels: int) -> None:
    """The paper's algorithm 1: draw, and fit the line."""
    beta, gamma = fitted(np.random.default_rng(1).random((200_000, n_labels)))
    line = uniform_approximation(n_labels)
    assert beta == pytest.approx(line.beta, abs=0.005)
    assert gamma == pytest.approx(line.gamma, abs=0.02)


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("n", [4.5, 1000.0])
def test_dirichlet_by_simulation(n_labels: int, n: float) -> None:
    """The paper's algorithm 2: draw gammas, make them sum to 1, leave the rest out, and fit the line."""
    gammas = np.random.default_rng(2).gamma([1.0] * n_labels + [n], size=(200_000, n_labels + 1))
    beta, gamma = fitted((gammas / gammas.sum(axis=1, keepdims=True))[:, :-1])
    line = dirichlet_approximation(n_labels, n)
    assert beta == pytest.approx(line.beta, abs=0.005)
    intercept_error = 0.005 * n_labels * abs(float(digamma(1.0) - digamma(n_labels + n))) + 0.01
    assert gamma == pytest.approx(line.gamma, abs=intercept_error)


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_the_usual_distribution_typed(n_labels: int) -> None:
    ones = ",".join(["1"] * n_labels)
    for prior in ("1,1000", f"{ones},1000"):
        np.testing.assert_allclose(
            prior_approximation(prior, n_labels), dirichlet_approximation(n_labels, 1000.0), rtol=1e-12
        )


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_papers_own_estimates(n_labels: int) -> None:
    """Dir(1, 1, 1000) and Dir(1, 1, 1, 1000) by m = 100,000 draws (section 3.1.3, the minus of gamma restored)."""
    beta, gamma = {2: (0.39291, -0.61698), 3: (0.239266, -0.6085)}[n_labels]
    line = prior_approximation("1,1000:100000:3", n_labels)
    for found in (line, prior_approximation("1,1000", n_labels)):
        assert found.beta == pytest.approx(beta, abs=0.004)
        # beta's error times the mean of B, about -15
        assert found.gamma == pytest.approx(gamma, abs=0.06)


@pytest.mark.parametrize("prior", ["1,1000", "0.5,3", "2,1,4,50", "0.3,5,1,0.7"])
def test_closed_form_and_draws_agree_within_sampling_error(prior: str) -> None:
    """20 estimates of 20,000 draws: their mean is within four standard errors, and they spread as they should."""
    n_labels = 2 if prior.count(",") == 1 else 3
    exact = prior_approximation(prior, n_labels)
    for k in (0, 1):
        drawn = np.array([float(prior_approximation(f"{prior}:20000:{seed}", n_labels)[k]) for seed in range(20)])
        assert abs(drawn.mean() - float(exact[k])) < 4 * drawn.std(ddof=1) / math.sqrt(20)
        assert 0 < drawn.std(ddof=1) < 0.05


@pytest.mark.parametrize("n_labels", [2, 4])
def test_independent_uniform_numbers_are_those_of_acll_uniform(n_labels: int) -> None:
    line = prior_approximation("beta,1,1:400000:1", n_labels)
    assert line.beta == pytest.approx(uniform_approximation(n_labels).beta, abs=0.002)
    assert line.gamma == pytest.approx(uniform_approximation(n_labels).gamma, abs=0.01)


def test_draws_depend_on_the_seed_alone() -> None:
    assert prior_approximation("1,10:1000:1", 2) != prior_approximation("1,10:1000:2", 2)
    once = prior_approximation("1,10:1000:1", 2)
    prior_approximation.cache_clear()
    assert prior_approximation("1,10:1000:1", 2) == once


def test_numbers_of_other_classes_are_refused() -> None:
    with pytest.raises(BncliError, match="has 4 numbers, but there are 2 classes"):
        prior_approximation("1,1,1,1000", 2)


@pytest.mark.parametrize("shape", ["1e-3,1e-3", "1e12,1e12", "1e-3,1e12", "1e12,1e-3"])
@pytest.mark.parametrize("draws", ["", ":100"])
def test_extreme_numbers_have_finite_lines(shape: str, draws: str) -> None:
    for n_labels in (2, 30):
        line = prior_approximation(shape + draws, n_labels)
        assert np.isfinite(line.beta)
        assert np.isfinite(line.gamma)


def test_a_class_against_the_others() -> None:
    counts, beta = np.array([[4.0, 1.0, 0.0]]), 0.25
    by_hand = [[0.75 * 4 - 0.25 * 1, 0.75 * 1 - 0.25 * 4, -0.25 * 5]]
    np.testing.assert_allclose(class_contrasts(counts, np.asarray(beta)), by_hand, rtol=1e-15)


@given(family_counts(), betas, pseudo_counts)
def test_probabilities_over_either_axis(counts: Array, beta: Array, least: float) -> None:
    for axis in (1, -1):
        log_p = log_theta(class_contrasts(counts, beta), least, axis)
        assert log_p.shape == counts.shape
        np.testing.assert_allclose(np.exp(log_p).sum(axis=axis), 1.0, rtol=1e-12)


@given(family_counts(), betas, pseudo_counts, st.integers(0, 99), st.sampled_from([0.01, 1.0, 30.0]))
def test_no_parameters_within_the_bounds_are_better(
    counts: Array, beta: Array, least: float, seed: int, spread: float
) -> None:
    weights = class_contrasts(counts, beta)
    log_p = log_theta(class_contrasts(counts, beta), least, axis=1)
    bounds = least / np.maximum(weights, least).sum(axis=1, keepdims=True)
    drawn = np.random.default_rng(seed).dirichlet([spread] * counts.shape[1], (len(counts), *counts.shape[2:]))
    other = bounds + (1 - bounds * counts.shape[1]) * drawn.transpose(0, 3, 1, 2)
    assert (np.exp(log_p) >= bounds * (1 - 1e-12)).all()
    best = (weights * log_p).sum(axis=(1, 2, 3))
    theirs = (weights * np.log(other)).sum(axis=(1, 2, 3))
    assert (theirs <= best + 1e-9 * (1 + np.abs(best))).all()


def test_a_numeric_search_comes_to_the_same_parameters() -> None:
    counts = np.array([[30.0, 2.0], [4.0, 40.0], [20.0, 20.0], [3.0, 1.0]])
    beta, least = np.asarray(0.3), 2.0
    weights = class_contrasts(counts, beta)[:, 0]
    bound = least / np.maximum(weights, least).sum()
    found = minimize(
        lambda p: -float(weights @ np.log(p)),
        np.array([0.25] * 4),
        jac=lambda p: -weights / p,
        bounds=Bounds(bound, 1.0),
        constraints=LinearConstraint(np.ones((1, 4)), 1.0, 1.0),
        method="SLSQP",
        tol=1e-14,
    )
    np.testing.assert_allclose(
        found.x, np.exp(log_theta(class_contrasts(counts, beta), least, axis=0))[:, 0], atol=1e-5
    )


@given(family_counts(), pseudo_counts)
def test_a_slope_for_each_family(counts: Array, least: float) -> None:
    beta = np.linspace(0.1, 0.4, len(counts))
    expected = [acll_by_cells(n, b, least) for n, b in zip(counts, beta.tolist(), strict=True)]
    assert acll_scores(counts, beta, least) == pytest.approx(expected, rel=1e-9, abs=1e-8)


def test_without_a_slope_it_is_the_likelihood_of_floored_counts() -> None:
    counts = np.array([[[3.0, 0.0]], [[1.0, 4.0]]])
    expected = 3 * math.log(0.75) + math.log(0.25) + 4 * math.log(4 / 4.5)
    assert acll_scores(counts, np.asarray(0.0), 0.5) == pytest.approx(expected)


@pytest.mark.parametrize("rule", RULES)
@given(counts=family_counts())
def test_properties_of_every_score(rule: str, counts: Array) -> None:
    score = parse_score(rule)
    families.check_batches(score.score, counts)
    families.check_permutations(score.score, counts)
    if score.equivalent:
        families.check_equivalent(score.score, counts)


def test_the_catalogue_lists_the_same_words() -> None:
    assert list(FAMILY_SCORES) == [method.word for method in SCORES.methods if method.has_module]


def test_a_rule_is_a_word_a_number_and_a_prior() -> None:
    for word, score in {"ll": log_likelihood, "bic": bic, "aic": aic, "k2": k2}.items():
        np.testing.assert_array_equal(parse_score(word).score(COUNTS), score(COUNTS))
        assert parse_score(word).equivalent is (word != "k2")
    for number in ("1", "5", "0.25", "1e2"):
        for word, numbered in {"bdeu": bdeu, "acll": acll, "acll-uniform": acll_uniform}.items():
            rule = parse_score(f"{word}:{number}")
            np.testing.assert_array_equal(rule.score(COUNTS), numbered(COUNTS, float(number)))
            assert rule.equivalent is (word == "bdeu")
    np.testing.assert_array_equal(parse_score("acll:5/1,10").score(COUNTS), acll(COUNTS, 5.0, "1,10"))


def likelihood_by_cells(family: Array) -> float:
    return math.fsum(n * math.log(n / math.fsum(c)) for c in families.columns(family) for n in c if n > 0)


@given(family_counts())
def test_log_likelihood_is_a_sum_over_cells(counts: Array) -> None:
    expected = [likelihood_by_cells(family) for family in counts]
    assert log_likelihood(counts) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@given(family_counts(), st.integers(0, 99))
def test_no_other_probabilities_are_more_likely(counts: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(counts.shape[1]), (len(counts), *counts.shape[2:])).transpose(0, 3, 1, 2)
    theirs = (counts * np.log(np.maximum(theta, 1e-300))).sum(axis=(1, 2, 3))
    ours = log_likelihood(counts)
    assert (theirs <= ours + 1e-9 * (1 + np.abs(ours))).all()


@given(family_counts())
def test_an_arc_gains_the_rows_times_the_conditional_mutual_information(counts: Array) -> None:
    forward, _ = families.gains(log_likelihood, counts)
    expected = [n.sum() * oracles.conditional_mutual_information(n) if n.any() else 0.0 for n in counts]
    assert forward == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_no_rows_and_certain_rows_have_likelihood_one() -> None:
    assert log_likelihood(np.zeros((3, 2, 2))) == 0
    assert log_likelihood(np.array([[[5.0, 0.0]], [[0.0, 7.0]]])) == 0


@given(family_counts())
def test_penalties_of_aic_and_bic(counts: Array) -> None:
    r, q, n_labels = counts.shape[1:]
    n_free = (r - 1) * q * n_labels
    assert aic(counts) == pytest.approx(log_likelihood(counts) - n_free, rel=1e-12, abs=1e-12)
    penalties = [0.5 * math.log(max(family.sum(), 1.0)) * n_free for family in counts]
    assert bic(counts) == pytest.approx(log_likelihood(counts) - penalties, rel=1e-12, abs=1e-12)


def test_free_parameters() -> None:
    assert free_parameters(np.zeros((5, 3, 4, 2))) == 2 * 4 * 2
    assert free_parameters(np.zeros((1, 4, 2))) == 0


def test_bic_by_hand() -> None:
    counts = np.array([[[2.0, 1.0]], [[2.0, 3.0]]])  # r = 2, q = 1, K = 2, N = 8
    expected = 4 * math.log(0.5) + math.log(0.25) + 3 * math.log(0.75) - 0.5 * math.log(8) * 2
    assert bic(counts) == pytest.approx(expected)


def test_a_weight_below_one_does_not_make_the_penalty_negative() -> None:
    assert bic(np.zeros((3, 2, 2))) == 0
    assert bic(np.full((2, 2, 2), 0.01)) < 0


def predictive_by_rows(family: Array, a: float) -> float:
    """Log of the product of each row's probability given the rows before it: (times seen + a) / (rows seen + r a)."""
    terms = []
    for column in families.columns(family):
        seen = 0
        for n in map(int, column):
            terms += [math.log((t + a) / (seen + t + len(column) * a)) for t in range(n)]
            seen += n
    return math.fsum(terms)


@given(family_counts(whole=True), strengths)
def test_marginal_likelihoods_are_products_of_predictive_probabilities(counts: Array, strength: float) -> None:
    expected = [predictive_by_rows(family, 1.0) for family in counts]
    assert k2(counts) == pytest.approx(expected, rel=1e-10, abs=1e-9)
    expected = [predictive_by_rows(family, strength / family.size) for family in counts]
    assert bdeu(counts, strength) == pytest.approx(expected, rel=1e-10, abs=1e-9)


def test_marginal_likelihoods_by_hand() -> None:
    counts = np.array([[[2.0]], [[1.0]]])  # (r - 1)! / (N + r - 1)! * 2! 1!
    assert k2(counts) == pytest.approx(math.log(2 / math.factorial(4)))
    # S = 2 on one configuration of a binary child is a = 1: probabilities 1/2, then 2/3
    assert bdeu(np.array([[[2.0]], [[0.0]]]), 2.0) == pytest.approx(math.log(1 / 3))


@pytest.mark.parametrize("unit", [1.0, 0.25, 30_000.0])
def test_k2_of_whole_fractional_and_large_counts(unit: float) -> None:
    """Logarithms of factorials of small whole numbers are looked up, others are computed."""
    counts = unit * np.array([[[0.0, 5.0]], [[3.0, 0.0]], [[1.0, 2.0]]])
    columns = counts[:, 0].T
    expected = [
        math.lgamma(3.0) - math.lgamma(column.sum() + 3.0) + sum(math.lgamma(n + 1.0) for n in column)
        for column in columns
    ]
    assert k2(counts) == pytest.approx(math.fsum(expected), rel=1e-12)


def test_in_k2_the_direction_of_an_arc_matters() -> None:
    forward, backward = families.gains(k2, np.arange(12.0).reshape(2, 3, 2))
    assert abs(forward - backward) > 0.1


@pytest.mark.parametrize("prior", [1.0, 2.0, 3.5])
def test_the_average_likelihood_over_the_prior(prior: float) -> None:
    """A binary child with counts 3 and 5: the mean of p^3 (1 - p)^5 under Beta(a, a), by a sum over a grid."""
    p = (np.arange(20000) + 0.5) / 20000
    density = (p * (1 - p)) ** (prior - 1)
    average = (p**3 * (1 - p) ** 5 * density).sum() / density.sum()
    assert log_marginal_likelihood(np.array([[[3.0]], [[5.0]]]), prior) == pytest.approx(np.log(average), abs=1e-5)


def test_configurations_are_independent_and_empty_ones_add_nothing() -> None:
    counts = np.random.default_rng(0).integers(0, 9, (3, 4, 2)).astype(float)
    counts[:, 2, 1] = 0
    alone = [float(log_marginal_likelihood(counts[:, j : j + 1, c : c + 1], 0.5)) for j in range(4) for c in range(2)]
    assert log_marginal_likelihood(counts, 0.5) == pytest.approx(sum(alone), rel=1e-12)
    assert alone[5] == 0


def beta_of(n_labels: int, n: float) -> float:
    """The slope under Dir(1, ..., 1, n), by the paper's formula."""
    tail = float(polygamma(1, n_labels + n))
    return (float(polygamma(1, n_labels)) - tail) / (math.pi**2 / 6 - n_labels * tail)


def acll_by_cells(family: Array, beta: float, least: float) -> float:
    """Equation 28: sum over j, k, c of (alpha N_kjc - beta sum over c' != c of N_kjc') ln theta_kjc."""
    r, q, n_labels = family.shape
    weights = np.zeros(family.shape)
    for k, j, c in itertools.product(range(r), range(q), range(n_labels)):
        others = math.fsum(family[k, j, o] for o in range(n_labels) if o != c)
        weights[k, j, c] = (1 - beta) * family[k, j, c] - beta * others
    terms = []
    for k, j, c in itertools.product(range(r), range(q), range(n_labels)):
        floored = [max(float(weights[i, j, c]), least) for i in range(r)]
        terms.append(weights[k, j, c] * math.log(floored[k] / math.fsum(floored)))
    return math.fsum(terms)


UNIFORM_BETA = {2: (18 - math.pi**2) / 24, 3: 0.2001731557269, 4: float(uniform_approximation(4).beta)}


@given(family_counts(), pseudo_counts)
def test_acll_is_a_sum_over_cells(counts: Array, least: float) -> None:
    expected = [acll_by_cells(n, beta_of(n.shape[-1], float(n.sum())), least) for n in counts]
    assert acll(counts, least) == pytest.approx(expected, rel=1e-9, abs=1e-8)
    expected = [acll_by_cells(n, UNIFORM_BETA[n.shape[-1]], least) for n in counts]
    assert acll_uniform(counts, least) == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_in_acll_the_direction_of_an_arc_matters() -> None:
    """Theorem 3.9's four rows (x1, x2, c): 001 011 110 111."""
    counts = np.zeros((2, 2, 2))
    for row in ((0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 1, 1)):
        counts[row] += 1
    forward, backward = families.gains(partial(acll, pseudo_counts=0.1), counts)
    assert abs(forward - backward) > 0.01


def test_the_two_assumptions_differ() -> None:
    counts = np.random.default_rng(0).integers(0, 50, (3, 4, 2)).astype(float)
    assert acll(counts, 5.0) != pytest.approx(acll_uniform(counts, 5.0), rel=1e-3)
