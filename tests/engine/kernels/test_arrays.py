"""Sums in logs against sums; distinct integers.

Cell numbers and counts by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bncli.engine.kernels import arrays
from bncli.engine.kernels.arrays import add_counts, add_joint_counts, cell_numbers, distinct, log_softmax, log_sum

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


@given(st.lists(st.integers(1, 300), min_size=1, max_size=4), st.integers(0, 99))
def test_equals_numpy_ravel(shape: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, n, 20).astype(np.min_scalar_type(n - 1)) for n in shape]
    numbers = cell_numbers(codes, shape)
    np.testing.assert_array_equal(numbers, np.ravel_multi_index(tuple(c.astype(int) for c in codes), shape))
    assert numbers.dtype == np.intp


def test_the_input_is_left_alone() -> None:
    code = np.arange(3, dtype=np.intp)
    cell_numbers([code, code], (3, 3))
    np.testing.assert_array_equal(code, np.arange(3))


@pytest.mark.parametrize("threshold", [0, 1 << 18])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_added_to_what_is_there(monkeypatch: pytest.MonkeyPatch, threshold: int, weighted: bool) -> None:
    monkeypatch.setattr(arrays, "SPARSE_TABLE", threshold)
    numbers = np.array([3, 0, 3, 1], np.intp)
    weights = np.array([0.5, 2.0, 0.25, 1.0]) if weighted else None
    table = np.array([10.0, 10.0, 10.0, 10.0]) if weighted else np.array([10, 10, 10, 10])
    add_counts(table, numbers, weights)
    assert table.tolist() == ([12.0, 11.0, 10.0, 10.75] if weighted else [11, 11, 10, 12])


@pytest.mark.parametrize("threshold", [0, 1 << 18])
def test_joint_counts_are_added_to_what_is_there(monkeypatch: pytest.MonkeyPatch, threshold: int) -> None:
    monkeypatch.setattr(arrays, "SPARSE_TABLE", threshold)
    table = np.full(6, 10)
    add_joint_counts(table, np.array([1, 0, 1, 1], np.int32), np.array([2, 0, 2, 1], np.uint8), 3)
    assert table.tolist() == [11, 10, 10, 10, 11, 12]
