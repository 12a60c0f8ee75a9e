"""The scaled rise of digamma: against the sum it stands for, scipy, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import psi

from bncli.engine.kernels.digamma import scaled_rise


def rise(x: float, n: float) -> float:
    return float(scaled_rise(np.array([x]), np.array([n]))[0])


@given(st.floats(-300, 15).map(lambda power: 10.0**power), st.integers(0, 300))
def test_whole_numbers_of_draws_are_a_sum(x: float, n: int) -> None:
    assert rise(x, float(n)) == pytest.approx(math.fsum(x / (x + i) for i in range(n)), rel=1e-11)


@given(st.floats(0.1, 100), st.floats(0.5, 1e6))
def test_is_the_difference_of_two_values_of_digamma(x: float, n: float) -> None:
    assert rise(x, n) == pytest.approx(x * (psi(x + n) - psi(x)), rel=1e-10)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_rises_add_up(x: float, n: float, more: float) -> None:
    assert rise(x, n + more) == pytest.approx(rise(x, n) + x / (x + n) * rise(x + n, more), rel=1e-9)


def test_limits() -> None:
    assert rise(5.0, 0.0) == 0.0
    assert rise(1e-300, 7.0) == pytest.approx(1.0)  # all draws repeat the first
    assert rise(1e18, 7.0) == pytest.approx(7.0)  # no draw repeats another
    assert rise(1e-300, 1e300) == pytest.approx(1.0)
    assert rise(2.0, 1e300) == pytest.approx(2.0 * (300 * math.log(10) - float(psi(2.0))))


def test_the_expected_number_of_new_draws_by_enumeration() -> None:
    """Every way in which five draws may each be new or a repetition."""
    x, n = 0.7, 5
    expected = 0.0
    for pattern in range(2**n):
        new = [(pattern >> i) & 1 for i in range(n)]
        chance = math.prod(x / (x + i) if new[i] else i / (x + i) for i in range(n))
        expected += chance * sum(new)
    assert rise(x, n) == pytest.approx(expected, rel=1e-11)
