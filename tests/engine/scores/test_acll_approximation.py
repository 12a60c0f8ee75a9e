"""The constants against the paper's closed forms, known figures, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma, spence

from bncli.engine.scores.acll_approximation import dirichlet, uniform

Array = NDArray[np.float64]


@pytest.mark.parametrize(
    ("n_labels", "beta", "gamma"), [(2, 0.391942, -0.617950), (3, 0.239921, -0.598261), (5, 0.134350, None)]
)
def test_dirichlet_with_a_thousand_rows(n_labels: int, beta: float, gamma: float | None) -> None:
    line = dirichlet(n_labels, 1000)
    assert line.beta == pytest.approx(beta, abs=1e-6)
    assert gamma is None or line.gamma == pytest.approx(gamma, abs=1e-6)
    assert dirichlet(10, 1000).beta == pytest.approx(0.063715, abs=1e-6)


def test_dirichlet_for_many_numbers_of_rows_at_once() -> None:
    rows = np.array([[0.0, 0.5, 3.0], [10.25, 1e6, 1e12]])
    together = dirichlet(3, rows)
    assert together.beta.shape == together.gamma.shape == (2, 3)
    for index, n in np.ndenumerate(rows):
        assert together.beta[index] == dirichlet(3, float(n)).beta
    assert together.beta[0, 0] == 0  # no rest: the sum is 1 whatever its parts
    assert (np.diff(together.beta.ravel()) > 0).all()


def test_uniform_in_closed_form() -> None:
    ln2, ln3 = math.log(2), math.log(3)
    dilogarithms = 72 * spence(3.0) + 24 * spence(0.75)  # Li2(-2), Li2(1/4)
    three = (-15 * math.pi**2 + 2 * (11 - 9 * ln3 + 12 * ln2 - 60 * ln2**2 - dilogarithms)) / 36
    assert uniform(1).beta == pytest.approx(1.0, abs=1e-13)
    assert uniform(2).beta == pytest.approx((18 - math.pi**2) / 24, abs=1e-13)
    assert uniform(3).beta == pytest.approx(three, abs=1e-12)
    assert uniform(4).beta == pytest.approx(0.142314, abs=1e-6)
    assert uniform(5).beta == pytest.approx(0.110548, abs=1e-6)
    assert uniform(2).gamma == pytest.approx(2 * ln2 - 1.5 + 2 * uniform(2).beta, abs=1e-12)
    assert uniform(1).gamma == pytest.approx(0.0, abs=1e-12)


def test_uniform_for_many_classes() -> None:
    """The sum is then nearly normal: ln S ~ ln(K/2) + (S - K/2) / (K/2), so beta ~ 2 Cov(U, ln U) / K = 1 / (2 K)."""
    assert uniform(1000).beta * 1000 == pytest.approx(0.5, rel=1e-2)


def fitted(u: Array) -> tuple[float, float]:
    """Slope and intercept of ln(sum) on the sum of logs, samples (T, K)."""
    a, b = np.log(u.sum(axis=1)), np.log(u).sum(axis=1)
    beta = float(np.cov(a, b)[0, 1] / b.var(ddof=1))
    return beta, float(a.mean() - beta * b.mean())


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_uniform_by_simulation(n_labels: int) -> None:
    """The paper's algorithm 1: draw, and fit the line."""
    beta, gamma = fitted(np.random.default_rng(1).random((200_000, n_labels)))
    line = uniform(n_labels)
    assert beta == pytest.approx(line.beta, abs=0.005)
    assert gamma == pytest.approx(line.gamma, abs=0.02)


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("n", [4.5, 1000.0])
def test_dirichlet_by_simulation(n_labels: int, n: float) -> None:
    """The paper's algorithm 2: draw gammas, make them sum to 1, leave the rest out, and fit the line."""
    gammas = np.random.default_rng(2).gamma([1.0] * n_labels + [n], size=(200_000, n_labels + 1))
    beta, gamma = fitted((gammas / gammas.sum(axis=1, keepdims=True))[:, :-1])
    line = dirichlet(n_labels, n)
    assert beta == pytest.approx(line.beta, abs=0.005)
    intercept_error = 0.005 * n_labels * abs(float(digamma(1.0) - digamma(n_labels + n))) + 0.01
    assert gamma == pytest.approx(line.gamma, abs=intercept_error)
