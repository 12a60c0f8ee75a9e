"""Cells against numpy's own mixed-radix numbers, and both kinds of factor against a table entry at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.prediction.factors import Factor, WideFactor, cells_of


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 99))
def test_cells_are_mixed_radix(shape: list[int], seed: int) -> None:
    generator = np.random.default_rng(seed)
    digits = [generator.integers(0, n, 20) for n in shape]
    np.testing.assert_array_equal(cells_of(digits, shape), np.ravel_multi_index(tuple(digits), tuple(shape)))


def test_entries_are_added() -> None:
    tables = np.arange(12.0).reshape(2, 6)
    codes = [np.array([9, 9]), np.array([0, 1]), np.array([2, 0])]
    scores = np.ones((2, 2))
    Factor((1, 2), (2, 3), tables).add_to(scores, codes)
    np.testing.assert_array_equal(scores, [[1 + 2, 1 + 3], [1 + 8, 1 + 9]])


def test_what_is_unknown_is_averaged_or_left_out() -> None:
    tables = np.arange(6.0)[None, :]
    codes = [np.array([0, 2, 1, 2]), np.array([1, 1, 3, 3])]
    scores = np.zeros((1, 4))
    WideFactor((0, 1), (2, 3), tables, (None, np.array([0.5, 0.25, 0.25]))).add_to(scores, codes)
    np.testing.assert_array_equal(scores, [[1.0, 0.0, 0.5 * 3 + 0.25 * 4 + 0.25 * 5, 0.0]])
