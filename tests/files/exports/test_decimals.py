"""Numbers as text against Python's own formatting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.exports.score_layout import MOST_DIGITS, Decimals, shortest

EDGES = [0.0, 1e-300, 5e-7, 0.5, 0.25, 0.125, 1 / 3, 0.999999, 0.9999995, 1 - 2.0**-53, 1.0]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_shortest_reads_back(values: list[float]) -> None:
    assert [float(text) for text in shortest(np.array(values, dtype=float)).to_pylist()] == values


def test_shortest_has_no_negative_zero() -> None:
    assert shortest(np.array([-0.0, 0.5])).to_pylist() == ["0", "0.5"]


@pytest.mark.parametrize("digits", range(MOST_DIGITS + 1))
def test_fixed_decimals(digits: int) -> None:
    values = np.array([*EDGES, *np.random.default_rng(0).random(1000)])
    texts = Decimals(digits).text(values).to_pylist()
    assert {len(text) for text in texts} == {digits + 2 if digits else 1}
    for value, text in zip(values, texts, strict=True):
        assert abs(float(text) - value) <= 0.5 * 10.0**-digits + 1e-15


@given(st.floats(0, 1), st.integers(0, 6))
def test_fixed_decimals_are_python_s_own(value: float, digits: int) -> None:
    """But for what lies within rounding of a half."""
    if abs((value * 10**digits) % 1 - 0.5) > 1e-6:
        assert Decimals(digits).text(np.array([value])).to_pylist() == [f"{value:.{digits}f}"]


def test_no_rows() -> None:
    assert Decimals(3).text(np.empty(0)).to_pylist() == []
    assert Decimals(9).text(np.empty(0)).to_pylist() == []
    assert shortest(np.empty(0)).to_pylist() == []
