"""The two-loop recursion against the BFGS formula, written out as matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.optimizers import quasi_newton as module
from bncli.engine.optimizers.quasi_newton import Pairs

Array = NDArray[np.float64]


def random_pairs(n: int, count: int, seed: int) -> tuple[list[tuple[Array, Array]], Array]:
    """Steps, and gradients as they change over a bowl; and a positive definite guess."""
    rng = np.random.default_rng(seed)
    root, guess = rng.normal(size=(n, n)), rng.normal(size=(n, n))
    hessian = root @ root.T + 0.1 * np.eye(n)
    steps = rng.normal(size=(count, n))
    return [(s, hessian @ s) for s in steps], guess @ guess.T + 0.1 * np.eye(n)


def dense(pairs: list[tuple[Array, Array]], guess: Array) -> Array:
    """H <- (I - rho s y') H (I - rho y s') + rho s s', pair by pair, the oldest first."""
    h = guess.copy()
    if pairs:
        s, y = pairs[-1]
        h *= (s @ y) / (y @ guess @ y)
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        left = np.eye(len(s)) - rho * np.outer(s, y)
        h = left @ h @ left.T + rho * np.outer(s, s)
    return h


@given(st.integers(1, 8), st.integers(0, 6), st.integers(0, 999))
def test_it_is_the_bfgs_formula(n: int, count: int, seed: int) -> None:
    listed, guess = random_pairs(n, count, seed)
    memory = Pairs()
    for pair in listed:
        memory.remember(*pair)
    assert len(memory) == count
    expected = dense(listed, guess)
    found = np.stack([memory.inverse_hessian(lambda g: guess @ g, unit) for unit in np.eye(n)], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    if listed:
        s, y = listed[-1]
        np.testing.assert_allclose(memory.inverse_hessian(lambda g: guess @ g, y), s, atol=1e-7 * np.linalg.norm(s))


def test_only_the_last_pairs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, guess = random_pairs(5, module.HISTORY + 7, 0)
    everything, last = Pairs(), Pairs()
    for pair in listed:
        everything.remember(*pair)
    for pair in listed[7:]:
        last.remember(*pair)
    assert len(everything) == module.HISTORY
    g = np.arange(5.0)
    one, other = (memory.inverse_hessian(lambda v: guess @ v, g) for memory in (everything, last))
    np.testing.assert_array_equal(one, other)


def test_what_is_forgotten_leaves_the_guess() -> None:
    listed, guess = random_pairs(4, 3, 1)
    memory = Pairs()
    for pair in listed:
        memory.remember(*pair)
    memory.forget()
    assert len(memory) == 0
    np.testing.assert_array_equal(memory.inverse_hessian(lambda g: guess @ g, np.ones(4)), guess @ np.ones(4))


@pytest.mark.parametrize("y", [np.array([-1.0, 0.0]), np.zeros(2), np.array([0.0, 3.0]), np.array([1e-14, 1.0])])
def test_pairs_without_curvature_are_not_kept(y: Array) -> None:
    memory = Pairs()
    memory.remember(np.array([1.0, 0.0]), y)
    assert len(memory) == 0


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e60])
def test_the_units_of_a_pair_do_not_matter(scale: float) -> None:
    memory = Pairs()
    memory.remember(scale * np.array([1.0, 0.0]), scale * np.array([1.0, 1.0]))
    assert len(memory) == 1


def test_the_gradient_is_left_alone() -> None:
    listed, _ = random_pairs(4, 3, 1)
    memory, g = Pairs(), np.ones(4)
    for pair in listed:
        memory.remember(*pair)
    memory.inverse_hessian(lambda v: v, g)
    assert g.tolist() == [1.0] * 4
