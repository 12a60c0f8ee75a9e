"""Backtracking to an acceptable point, and the parabola's step more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.optimizers.line_search import ACCEPTANCE, SHRINK, Probe, acceptable_point, with_parabola
from tests.problems import Function, counted


def bowl(h: float) -> Function:
    """h (x - 1)^2 / 2: along d = -g = h from 0 the minimum is at step 1/h."""
    return lambda x: (h / 2 * float((x[0] - 1) ** 2), h * (x - 1))


def origin(function: Function) -> Probe:
    return Probe(np.zeros(1), *function(np.zeros(1)))


def test_steps_shrink_by_five_until_one_is_low_enough() -> None:
    """x = 20 a: step 1 gives (19)^2, 1/5 gives 3^2, 1/25 gives (0.2)^2 of the value at 0."""
    function, calls = counted(bowl(20.0))
    start = origin(function)
    found, step, tries = acceptable_point(function, start, np.full(1, 20.0), -400.0)
    assert (step, tries) == (pytest.approx(0.04), 3)
    assert [float(x[0]) for x in calls[1:]] == pytest.approx([20.0, 4.0, 0.8])
    assert found is not None
    assert found.value == pytest.approx(10 * 0.04)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1.0))
def test_acceptance_and_no_longer_step_that_would_do(h: float, first: float) -> None:
    function = bowl(h)
    start, slope = origin(function), -h * h
    found, step, tries = acceptable_point(function, start, np.full(1, h), slope, first)
    assert found is not None
    assert found.value <= start.value + ACCEPTANCE * step * slope
    assert step == pytest.approx(first * SHRINK ** (tries - 1))
    if tries > 1:
        longer = function(np.full(1, h * step / SHRINK))[0]
        assert longer > start.value + ACCEPTANCE * step / SHRINK * slope - 1e-9 * start.value


def test_a_step_that_changes_nothing_ends_the_search() -> None:
    function, calls = counted(lambda x: (float(x[0]), np.full(1, -1.0)))
    found, step, tries = acceptable_point(function, Probe(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0)
    assert (found, step) == (None, 0.0)
    assert tries == len(calls) == 22  # 10 + 5^-21 > 10 and 10 + 5^-22 = 10 in double precision


@pytest.mark.parametrize("bad", [math.inf, math.nan, -math.inf])
def test_points_without_a_finite_value_are_refused(bad: float) -> None:
    def wall(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return (bad, x) if x[0] > 0.5 else (-float(x[0]), -np.ones(1))

    found, step, tries = acceptable_point(wall, Probe(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0)
    assert found is not None
    assert (step, tries) == (0.2, 2)


def test_an_infinite_direction_ends_with_nothing() -> None:
    start = Probe(np.ones(1), 0.0, -np.ones(1))
    with np.errstate(invalid="ignore"):
        assert acceptable_point(bowl(1.0), start, np.full(1, math.inf), -math.inf)[0] is None


@given(st.floats(0.01, 100), st.floats(0.05, 1.95))
def test_the_parabola_finds_the_minimum_of_a_bowl(h: float, share: float) -> None:
    """Any point of a bowl but the minimum itself leads there in one evaluation."""
    function = bowl(h)
    start, step = origin(function), share / h
    found = Probe(np.full(1, h * step), *function(np.full(1, h * step)))
    lowest, taken, tries = with_parabola(function, start, np.full(1, h), -h * h, found, step)
    assert tries == 1
    assert lowest.value <= found.value
    assert lowest.value == pytest.approx(0.0, abs=1e-9 * h)
    assert taken == pytest.approx(1 / h, rel=1e-3)


def test_no_parabola_without_a_bottom() -> None:
    """On a straight line and on a cap there is nothing to try."""
    for value in (-1.0, -2.0):
        found = Probe(np.ones(1), value, np.full(1, value))
        start = Probe(np.zeros(1), 0.0, -np.ones(1))
        assert with_parabola(bowl(1.0), start, np.ones(1), -1.0, found, 1.0) == (found, 1.0, 0)


def test_a_worse_minimum_of_the_parabola_is_not_taken() -> None:
    found, start = Probe(np.ones(1), -0.9, -np.ones(1)), Probe(np.zeros(1), 0.0, -np.ones(1))
    high = lambda x: (5.0, x)  # noqa: E731
    assert with_parabola(high, start, np.ones(1), -1.0, found, 1.0) == (found, 1.0, 1)
