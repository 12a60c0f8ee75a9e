"""Sums in logs against sums; distinct integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bncli.engine.kernels.arrays import distinct, log_softmax, log_sum

ARRAYS = hnp.arrays(np.float64, st.tuples(*[st.integers(1, 3)] * 3), elements=st.floats(-20, 20))


@given(ARRAYS, st.sampled_from([0, 1, 2, (0, 2), (0, 1, 2)]), st.floats(-1e4, 1e4))
def test_sums_of_exponentials(array: np.ndarray, axis: int | tuple[int, ...], shift: float) -> None:
    """Far from 0 too, where exp itself would overflow or be 0."""
    expected = np.log(np.exp(array).sum(axis=axis, keepdims=True))
    np.testing.assert_allclose(log_sum(array, axis), expected, atol=1e-12)
    np.testing.assert_allclose(log_sum(array + shift, axis), expected + shift, atol=1e-9)


@given(ARRAYS, st.integers(0, 2), st.floats(-1e4, 1e4))
def test_logarithms_of_shares(array: np.ndarray, axis: int, shift: float) -> None:
    shares = np.exp(array) / np.exp(array).sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(log_softmax(array + shift, axis), np.log(shares), atol=1e-9)
    np.testing.assert_allclose(log_softmax(array, axis), np.log(shares), atol=1e-12)


@given(hnp.arrays(np.int16, st.integers(0, 9), elements=st.integers(-3, 3)))
def test_distinct_integers(array: np.ndarray) -> None:
    found = distinct(array)
    assert found.dtype == array.dtype
    assert found.tolist() == sorted(set(array.tolist()))
