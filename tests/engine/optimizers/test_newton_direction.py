"""Truncated conjugate gradients against dense solutions; where they end, and that the way always leads down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.optimizers import quasi_newton
from bncli.engine.optimizers.quasi_newton import TRUNCATION, newton_direction
from tests.problems import identity

Array = NDArray[np.float64]


def spd(n: int, seed: int, condition: float) -> Array:
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    return np.asarray(q * np.geomspace(1.0, condition, n) @ q.T)


def times(matrix: Array) -> Any:
    return lambda v: matrix @ v


@given(st.integers(1, 12), st.integers(0, 99), st.floats(1, 1e4))
def test_with_enough_steps_it_is_newtons_direction(n: int, seed: int, condition: float) -> None:
    h, q = spd(n, seed, condition), spd(n, seed + 1, 10.0)
    g = np.random.default_rng(seed).normal(size=n)
    d, used = newton_direction(times(h), times(q), g, truncation=1e-9)
    np.testing.assert_allclose(d, np.linalg.solve(h, -g), rtol=1e-5, atol=1e-6 * np.linalg.norm(g))
    assert 1 <= used <= quasi_newton.MAX_PRODUCTS


@given(st.integers(1, 12), st.integers(0, 99), st.floats(1, 1e6))
def test_with_the_exact_inverse_one_product_is_enough(n: int, seed: int, condition: float) -> None:
    h = spd(n, seed, condition)
    g = np.random.default_rng(seed).normal(size=n)
    d, used = newton_direction(times(h), times(np.linalg.inv(h)), g)
    assert used == 1
    np.testing.assert_allclose(h @ d, -g, atol=1e-6 * np.linalg.norm(g))


@given(st.integers(2, 8), st.integers(0, 99), st.floats(1, 100))
def test_it_ends_at_the_first_residual_that_is_small(n: int, seed: int, condition: float) -> None:
    h, q = spd(n, seed, condition), spd(n, seed + 1, 10.0)
    g = np.random.default_rng(seed).normal(size=n)
    d, used = newton_direction(times(h), times(q), g)
    size = [_relative_residual(h, q, g, step) for step in _plain_conjugate_gradients(h, q, g, used)]
    assert _relative_residual(h, q, g, d) <= TRUNCATION + 1e-6
    assert all(s > TRUNCATION - 1e-6 for s in size[:-1])
    assert size[-1] == pytest.approx(_relative_residual(h, q, g, d), rel=1e-4, abs=1e-6)


def _relative_residual(h: Array, q: Array, g: Array, d: Array) -> float:
    r = -g - h @ d
    return float(np.sqrt((r @ q @ r) / (g @ q @ g)))


def _plain_conjugate_gradients(h: Array, q: Array, g: Array, n_steps: int) -> list[Array]:
    """The minimisers of the model over growing Krylov spaces, by dense least squares in the metric of H."""
    basis, found, v = np.zeros((len(g), 0)), [], q @ g
    for _ in range(n_steps):
        v -= basis @ (basis.T @ v)
        v -= basis @ (basis.T @ v)
        basis = np.column_stack([basis, v / np.linalg.norm(v)])
        found.append(basis @ np.linalg.solve(basis.T @ h @ basis, -basis.T @ g))
        v = q @ (h @ basis[:, -1])
    return found


@given(st.integers(1, 10), st.integers(0, 10), st.integers(0, 99), st.integers(1, 5))
def test_it_always_leads_down_and_lowers_the_model(n: int, rank: int, seed: int, most: int) -> None:
    """Semidefinite Hessians of any rank, however few the products."""
    rng = np.random.default_rng(seed)
    root, q = rng.normal(size=(n, rank)), spd(n, seed, 100.0)
    h, g = root @ root.T, rng.normal(size=n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quasi_newton, "MAX_PRODUCTS", most)
        d, used = newton_direction(times(h), times(q), g)
    assert 1 <= used <= most
    assert np.isfinite(d).all()
    assert float(d @ g) < 0
    if rank:
        assert float(g @ d + d @ h @ d / 2) < 1e-9


def test_without_curvature_it_is_the_preconditioned_gradient() -> None:
    g = np.array([1.0, -2.0])
    for h in (np.zeros((2, 2)), -np.eye(2)):
        d, used = newton_direction(times(h), lambda v: 3.0 * v, g)
        assert used == 1
        assert d.tolist() == [-3.0, 6.0]


def test_curvature_that_vanishes_later_ends_the_way() -> None:
    """The gradient lies half in the range of H and half in its null space."""
    h, g = np.diag([1.0, 0.0]), np.array([1.0, 1.0])
    d, used = newton_direction(times(h), identity, g)
    assert used == 2
    assert float(d @ g) < 0
    np.testing.assert_allclose(d, [-2.0, -2.0])


def test_the_gradient_is_left_alone() -> None:
    g = np.array([1.0, -2.0])
    newton_direction(times(spd(2, 0, 50.0)), identity, g)
    assert g.tolist() == [1.0, -2.0]


def test_products_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Array] = []
    h = spd(30, 0, 1e8)

    def product(v: Array) -> Array:
        calls.append(v)
        return h @ v

    for most in (1, 3, 200):
        monkeypatch.setattr(quasi_newton, "MAX_PRODUCTS", most)
        calls.clear()
        _, used = newton_direction(product, identity, np.ones(30))
        assert used == len(calls) <= most
