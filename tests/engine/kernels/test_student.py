"""The tail of Student's distribution beside scipy's, and where it has a closed form."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.kernels.student import student_tail


@given(st.floats(-50, 50), st.integers(1, 500))
def test_as_scipy(t: float, n: int) -> None:
    assert student_tail(t, n) == pytest.approx(float(stats.t.sf(t, n)), rel=1e-9, abs=1e-15)


@given(st.floats(0, 1e6))
def test_cauchy(t: float) -> None:
    """One degree of freedom."""
    assert student_tail(t, 1) == pytest.approx(math.atan2(1.0, t) / math.pi, rel=1e-9)


@given(st.floats(0, 1e6))
def test_two_degrees_of_freedom(t: float) -> None:
    root = math.sqrt(2 + t * t)
    assert student_tail(t, 2) == pytest.approx(1 / (root * (root + t)), rel=1e-9)


def test_ends() -> None:
    assert student_tail(0.0, 7) == 0.5
    assert student_tail(1e200, 7) == 0.0
    assert student_tail(-1e200, 7) == 1.0
    assert student_tail(1e-200, 7) == 0.5
