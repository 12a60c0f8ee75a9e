"""Positive definite inverses of whatever matrix an estimate gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.preconditioning import inverse


@given(st.integers(1, 6), st.integers(0, 99), st.floats(1e-3, 1e3))
def test_well_conditioned_matrices_are_inverted(n: int, seed: int, penalty: float) -> None:
    factor = np.random.default_rng(seed).normal(size=(n, n))
    matrix = factor @ factor.T + np.eye(n)
    expected = np.linalg.inv(matrix + penalty * np.eye(n))
    np.testing.assert_allclose(inverse(matrix, penalty), expected, atol=1e-4 * np.abs(expected).max())


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 99), st.sampled_from([0.0, 1e-9, 1.0]))
def test_singular_and_slightly_indefinite_matrices_become_positive_definite(
    n: int, rank: int, seed: int, penalty: float
) -> None:
    rng = np.random.default_rng(seed)
    factor, noise = rng.normal(size=(n, rank)), rng.normal(size=(n, n))
    matrix = factor @ factor.T + 1e-5 * (noise + noise.T)
    if np.diag(matrix).mean() <= 0:
        return
    result = inverse(matrix, penalty)
    np.testing.assert_allclose(result, result.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(result).min() > 0


def test_rows_of_zeros_stand_alone() -> None:
    matrix = np.array([[4.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(inverse(matrix, 0.0), [[0.25, 0.0], [0.0, 1.0]], rtol=1e-5)
    np.testing.assert_allclose(inverse(np.zeros((3, 3)), 0.0), np.eye(3))


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_input_is_left_alone(penalty: float) -> None:
    matrix = np.diag([1.0, 0.0])
    inverse(matrix, penalty)
    np.testing.assert_array_equal(matrix, np.diag([1.0, 0.0]))
