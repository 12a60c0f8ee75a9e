"""Cell numbers and counts by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels import cells
from bncli.engine.kernels.cells import add_counts, add_joint_counts, cell_numbers


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
    monkeypatch.setattr(cells, "SPARSE_TABLE", threshold)
    numbers = np.array([3, 0, 3, 1], np.intp)
    weights = np.array([0.5, 2.0, 0.25, 1.0]) if weighted else None
    table = np.array([10.0, 10.0, 10.0, 10.0]) if weighted else np.array([10, 10, 10, 10])
    add_counts(table, numbers, weights)
    assert table.tolist() == ([12.0, 11.0, 10.0, 10.75] if weighted else [11, 11, 10, 12])


@pytest.mark.parametrize("threshold", [0, 1 << 18])
def test_joint_counts_are_added_to_what_is_there(monkeypatch: pytest.MonkeyPatch, threshold: int) -> None:
    monkeypatch.setattr(cells, "SPARSE_TABLE", threshold)
    table = np.full(6, 10)
    add_joint_counts(table, np.array([1, 0, 1, 1], np.int32), np.array([2, 0, 2, 1], np.uint8), 3)
    assert table.tolist() == [11, 10, 10, 10, 11, 12]
