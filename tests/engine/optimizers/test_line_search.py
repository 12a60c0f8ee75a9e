"""Steps along a direction: the strong Wolfe conditions hold, or the best decrease, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.optimizers.line_search import CURVATURE, DECREASE, MAX_TRIES, Probe, search

Line = Callable[[float], tuple[float, float]]
"""Value and slope at a step."""

LINES: dict[str, Line] = {
    "parabola": lambda a: ((a - 1) ** 2, 2 * (a - 1)),
    "far minimum": lambda a: ((a - 90) ** 2, 2 * (a - 90)),
    "near minimum": lambda a: ((a - 1e-3) ** 2, 2 * (a - 1e-3)),
    "steep wall": lambda a: (math.exp(20 * a) - 30 * a, 20 * math.exp(20 * a) - 30),
    "logistic": lambda a: (math.log1p(math.exp(-a)) + 0.01 * a * a, -1 / (1 + math.exp(a)) + 0.02 * a),
    "wavy": lambda a: (-a - 0.3 * math.sin(9 * a) + 0.05 * a * a, -1 - 2.7 * math.cos(9 * a) + 0.1 * a),
    "wall of infinity": lambda a: (-4 * a - math.log(0.5 - a), -4 + 1 / (0.5 - a)) if a < 0.5 else (math.inf, 0.0),
}


def along(line: Line, direction: float = 1.0) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The line as a function of a point in one dimension."""

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = line(float(x[0]) / direction)
        return value, np.array([slope / direction])

    return value_and_gradient


@pytest.mark.parametrize("name", LINES)
def test_the_strong_wolfe_conditions_hold(name: str) -> None:
    function = along(LINES[name])
    value, gradient = function(np.zeros(1))
    slope = float(gradient[0])
    assert slope < 0
    found, step, tries = search(function, Probe(np.zeros(1), value, gradient), np.ones(1), slope)
    assert found is not None
    assert found.point[0] == pytest.approx(step)
    assert found.value == function(found.point)[0]
    assert found.value <= value + DECREASE * step * slope
    assert abs(found.gradient[0]) <= CURVATURE * abs(slope)
    assert tries <= MAX_TRIES


@given(st.floats(1e-4, 1e4), st.floats(0.1, 10))
def test_any_parabola_is_decreased(minimum: float, stretch: float) -> None:
    function = along(lambda a: (stretch * (a - minimum) ** 2, 2 * stretch * (a - minimum)))
    value, gradient = function(np.zeros(1))
    found, step, _ = search(function, Probe(np.zeros(1), value, gradient), np.ones(1), float(gradient[0]))
    assert found is not None
    assert found.value < value
    assert 0 < step < 2 * minimum


def test_a_unit_step_that_is_good_enough_costs_one_evaluation() -> None:
    function = along(LINES["parabola"])
    _, step, tries = search(function, Probe(np.zeros(1), 1.0, np.array([-2.0])), np.ones(1), -2.0)
    assert (step, tries) == (1.0, 1)


def test_an_unbounded_descent_ends_with_the_farthest_point() -> None:
    found, step, tries = search(along(lambda a: (-a, -1.0)), Probe(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0)
    assert found is not None
    assert tries == MAX_TRIES
    assert found.value == -step < -1e6


def test_nowhere_lower_gives_nothing() -> None:
    """The slope claims a descent that the values deny."""
    found, step, tries = search(along(lambda a: (a, -1.0)), Probe(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0)
    assert (found, step, tries) == (None, 0.0, MAX_TRIES)


def test_nothing_but_infinities_gives_nothing() -> None:
    start = Probe(np.zeros(1), 0.0, -np.ones(1))
    for bad in (math.inf, math.nan):
        assert search(along(lambda a, bad=bad: (bad, 0.0)), start, np.ones(1), -1.0)[0] is None
