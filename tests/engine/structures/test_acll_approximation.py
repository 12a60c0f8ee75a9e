"""The linear approximation against the paper's closed forms and simulation; aCLL's best parameters against others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.special import digamma, spence

from bncli.engine.structures.acll_approximation import (
    acll_scores,
    class_contrasts,
    dirichlet_approximation,
    log_theta,
    prior_approximation,
    uniform_approximation,
)
from bncli.errors import BncliError
from tests.engine.structures.family_counts import family_counts
from tests.engine.structures.test_scores import acll_by_cells, pseudo_counts

Array = NDArray[np.float64]
betas = st.sampled_from([0.0, 0.06, 0.2, 0.39]).map(np.asarray)


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
