"""The closed form against every other choice of parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, minimize

from bncli.engine.scores.acll_approximation import contrast, family_scores, log_theta
from tests.engine.scores.families import Array, family_counts
from tests.engine.scores.test_acll import slow

betas = st.sampled_from([0.0, 0.06, 0.2, 0.39]).map(np.asarray)
pseudo_counts = st.sampled_from([0.01, 1.0, 5.0])


def test_a_class_against_the_others() -> None:
    counts, beta = np.array([[4.0, 1.0, 0.0]]), 0.25
    by_hand = [[0.75 * 4 - 0.25 * 1, 0.75 * 1 - 0.25 * 4, -0.25 * 5]]
    np.testing.assert_allclose(contrast(counts, np.asarray(beta)), by_hand, rtol=1e-15)


@given(family_counts(), betas, pseudo_counts)
def test_probabilities_over_either_axis(counts: Array, beta: Array, least: float) -> None:
    for axis in (1, -1):
        log_p = log_theta(counts, beta, least, axis)
        assert log_p.shape == counts.shape
        np.testing.assert_allclose(np.exp(log_p).sum(axis=axis), 1.0, rtol=1e-12)


@given(family_counts(), betas, pseudo_counts, st.integers(0, 99), st.sampled_from([0.01, 1.0, 30.0]))
def test_no_parameters_within_the_bounds_are_better(
    counts: Array, beta: Array, least: float, seed: int, spread: float
) -> None:
    weights = contrast(counts, beta)
    log_p = log_theta(counts, beta, least, axis=1)
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
    weights = contrast(counts, beta)[:, 0]
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
    np.testing.assert_allclose(found.x, np.exp(log_theta(counts, beta, least, axis=0))[:, 0], atol=1e-5)


@given(family_counts(), pseudo_counts)
def test_a_slope_for_each_family(counts: Array, least: float) -> None:
    beta = np.linspace(0.1, 0.4, len(counts))
    expected = [slow(n, b, least) for n, b in zip(counts, beta.tolist(), strict=True)]
    assert family_scores(counts, beta, least) == pytest.approx(expected, rel=1e-9, abs=1e-8)


def test_without_a_slope_it_is_the_likelihood_of_floored_counts() -> None:
    counts = np.array([[[3.0, 0.0]], [[1.0, 4.0]]])
    expected = 3 * math.log(0.75) + math.log(0.25) + 4 * math.log(4 / 4.5)
    assert family_scores(counts, np.asarray(0.0), 0.5) == pytest.approx(expected)
