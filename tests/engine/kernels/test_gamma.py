"""Against factorials, known values and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from bncli.engine.kernels.gamma import digamma, log_gamma, trigamma

POINTS = np.concatenate([np.geomspace(1e-12, 1e15, 2000), np.arange(1.0, 200.0), np.linspace(0.5, 3.0, 301)])


def test_scipy() -> None:
    np.testing.assert_allclose(log_gamma(POINTS), special.gammaln(POINTS), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(digamma(POINTS), special.digamma(POINTS), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(trigamma(POINTS), special.polygamma(1, POINTS), rtol=1e-13)


def test_numbers_that_no_product_of_ten_could_hold() -> None:
    """Weights of rows go up to 1e100, and their sums beyond."""
    far = np.geomspace(1e15, 1e110, 500)
    np.testing.assert_allclose(log_gamma(far), special.gammaln(far), rtol=1e-14)
    np.testing.assert_allclose(digamma(far), np.log(far), rtol=1e-14)
    np.testing.assert_allclose(trigamma(far), 1 / far, rtol=1e-14)


def test_known_values() -> None:
    assert log_gamma([3.0, 0.5, 11.0]) == pytest.approx(
        [math.log(2), 0.5 * math.log(math.pi), math.log(math.factorial(10))], rel=1e-15
    )
    assert digamma(1.0) == pytest.approx(-np.euler_gamma, rel=1e-15)
    assert trigamma(1.0) == pytest.approx(math.pi**2 / 6, rel=1e-15)


def test_shapes_and_arguments_are_kept() -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    before = x.copy()
    for function in (log_gamma, digamma, trigamma):
        assert function(x).shape == (2, 3)
        assert function(2.0).shape == ()
        np.testing.assert_array_equal(x, before)
