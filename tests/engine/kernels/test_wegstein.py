"""Wegstein's secants: exact on lines, quick where plain repetition creeps, plain where secants would lead astray."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.wegstein import LONGEST, FixedPoint


@given(st.floats(0.0, 0.95), st.floats(-1, 1))
def test_a_line_is_solved_by_one_secant(slope: float, solution: float) -> None:
    search = FixedPoint(np.zeros(1))
    for _ in range(2):
        search = search.stepped(solution + slope * (search.x - solution))
    np.testing.assert_allclose(search.x, solution, atol=1e-9)


def test_many_unknowns_each_have_their_own_secant() -> None:
    target, slope = np.array([1.0, -2.0, 0.5]), np.array([0.9, 0.1, -0.5])
    search = FixedPoint(np.zeros(3))
    assert search.residual == np.inf
    steps = 0
    while search.residual > 1e-9:
        search = search.stepped(target + slope * (search.x - target))
        steps += 1
    np.testing.assert_allclose(search.x, target, atol=1e-8)
    assert steps < 40


def test_a_curve_on_which_repetition_creeps() -> None:
    """g(x) = x - x^3 / 10, whose slope tends to 1: repetition needs some 500 steps to 0.1."""
    search, steps = FixedPoint(np.ones(1)), 0
    while abs(search.x[0]) > 0.1:
        search = search.stepped(search.x - search.x**3 / 10)
        steps += 1
    assert steps < 40


def test_no_step_is_longer_than_the_limit() -> None:
    search = FixedPoint(np.zeros(2)).stepped(np.array([1e9, -1e9]))
    assert search.x.tolist() == [LONGEST, -LONGEST]


def test_nothing_to_find_is_found() -> None:
    assert FixedPoint(np.zeros(0)).stepped(np.zeros(0)).residual == 0.0
