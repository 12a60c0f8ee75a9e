"""Tails beside scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.kernels.tails import chi_squared_tail, f_tail, normal_tail, range_quantile


@given(st.floats(0, 800), st.integers(1, 200))
def test_chi_squared(x: float, d: int) -> None:
    assert chi_squared_tail(x, d) == pytest.approx(float(stats.chi2.sf(x, d)), rel=1e-9, abs=1e-300)


@given(st.floats(0, 1e4), st.integers(1, 60), st.integers(1, 500))
def test_f(f: float, d1: int, d2: int) -> None:
    assert f_tail(f, d1, d2) == pytest.approx(float(stats.f.sf(f, d1, d2)), rel=1e-8, abs=1e-14)


def test_ends() -> None:
    for tail in (chi_squared_tail(0.0, 3), chi_squared_tail(-1.0, 3), f_tail(0.0, 2, 5)):
        assert tail == 1.0
    assert f_tail(math.inf, 2, 5) == 0.0
    assert chi_squared_tail(1e6, 3) == 0.0
    assert chi_squared_tail(5e-324, 1) == chi_squared_tail(5e-324, 2) == 1.0


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_range(k: int) -> None:
    for alpha in (1e-6, 0.01, 0.5, 0.99):
        assert range_quantile(alpha, k) == pytest.approx(stats.studentized_range.ppf(1 - alpha, k, np.inf), rel=1e-6)


@given(st.floats(1e-9, 1 - 1e-9))
def test_the_range_of_two_is_a_normal(alpha: float) -> None:
    assert range_quantile(alpha, 2) == pytest.approx(math.sqrt(2) * stats.norm.isf(alpha / 2), rel=1e-6, abs=1e-9)


@given(st.floats(-38, 37))
def test_normal(z: float) -> None:
    assert normal_tail(z) == pytest.approx(float(stats.norm.sf(z)), rel=1e-12)
