"""Check line searches: strong Wolfe conditions, backtracking with a parabola, and Brent's minimum as in scipy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.optimizers.line_search import (
    CURVATURE,
    DECREASE,
    MAX_TRIES,
    PRECISION,
    SHRINK,
    Bracket,
    TrialStep,
    backtracking_search,
    brent_minimum,
    brent_search,
    find_bracket,
    parabola_step,
    wolfe_search,
)
from bncli.engine.optimizers.objective import Evaluation
from tests.problems import Function, counted, multinomial, rosenbrock

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
    """Return the line as a function of a point in one dimension."""

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
    found, step, tries = wolfe_search(function, Evaluation(np.zeros(1), value, gradient), np.ones(1), slope)
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
    found, step, _ = wolfe_search(function, Evaluation(np.zeros(1), value, gradient), np.ones(1), float(gradient[0]))
    assert found is not None
    assert found.value < value
    assert 0 < step < 2 * minimum


def test_a_unit_step_that_is_good_enough_costs_one_evaluation() -> None:
    function = along(LINES["parabola"])
    _, step, tries = wolfe_search(function, Evaluation(np.zeros(1), 1.0, np.array([-2.0])), np.ones(1), -2.0)
    assert (step, tries) == (1.0, 1)


def test_an_unbounded_descent_ends_with_the_farthest_point() -> None:
    found, step, tries = wolfe_search(
        along(lambda a: (-a, -1.0)), Evaluation(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0
    )
    assert found is not None
    assert tries == MAX_TRIES
    assert found.value == -step < -1e6


def test_nowhere_lower_gives_nothing() -> None:
    """The slope promises a descent, but the values rise."""
    found, step, tries = wolfe_search(
        along(lambda a: (a, -1.0)), Evaluation(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0
    )
    assert (found, step, tries) == (None, 0.0, MAX_TRIES)


def test_nothing_but_infinities_gives_nothing() -> None:
    start = Evaluation(np.zeros(1), 0.0, -np.ones(1))
    for bad in (math.inf, math.nan):
        assert wolfe_search(along(lambda a, bad=bad: (bad, 0.0)), start, np.ones(1), -1.0)[0] is None


def bowl(h: float) -> Function:
    """Return h (x - 1)^2 / 2; along d = -g = h from 0 the minimum is at step 1/h."""
    return lambda x: (h / 2 * float((x[0] - 1) ** 2), h * (x - 1))


def origin(function: Function) -> Evaluation:
    return Evaluation(np.zeros(1), *function(np.zeros(1)))


def test_steps_shrink_by_five_until_one_is_low_enough() -> None:
    """x = 20 a: step 1 gives (19)^2, 1/5 gives 3^2, 1/25 gives (0.2)^2 of the value at 0."""
    function, calls = counted(bowl(20.0))
    start = origin(function)
    found, step, tries = backtracking_search(function, start, np.full(1, 20.0), -400.0)
    assert (step, tries) == (pytest.approx(0.04), 3)
    assert [float(x[0]) for x in calls[1:]] == pytest.approx([20.0, 4.0, 0.8])
    assert found is not None
    assert found.value == pytest.approx(10 * 0.04)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1.0))
def test_acceptance_and_no_longer_step_that_would_do(h: float, first: float) -> None:
    function = bowl(h)
    start, slope = origin(function), -h * h
    found, step, tries = backtracking_search(function, start, np.full(1, h), slope, first)
    assert found is not None
    assert found.value <= start.value + DECREASE * step * slope
    assert step == pytest.approx(first * SHRINK ** (tries - 1))
    if tries > 1:
        longer = function(np.full(1, h * step / SHRINK))[0]
        assert longer > start.value + DECREASE * step / SHRINK * slope - 1e-9 * start.value


def test_a_step_that_changes_nothing_ends_the_search() -> None:
    function, calls = counted(lambda x: (float(x[0]), np.full(1, -1.0)))
    found, step, tries = backtracking_search(function, Evaluation(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0)
    assert (found, step) == (None, 0.0)
    assert tries == len(calls) == 22  # 10 + 5^-21 > 10 and 10 + 5^-22 = 10 in double precision


@pytest.mark.parametrize("bad", [math.inf, math.nan, -math.inf])
def test_points_without_a_finite_value_are_refused(bad: float) -> None:
    def wall(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return (bad, x) if x[0] > 0.5 else (-float(x[0]), -np.ones(1))

    found, step, tries = backtracking_search(wall, Evaluation(np.zeros(1), 0.0, -np.ones(1)), np.ones(1), -1.0)
    assert found is not None
    assert (step, tries) == (0.2, 2)


def test_an_infinite_direction_ends_with_nothing() -> None:
    start = Evaluation(np.ones(1), 0.0, -np.ones(1))
    with np.errstate(invalid="ignore"):
        assert backtracking_search(bowl(1.0), start, np.full(1, math.inf), -math.inf)[0] is None


@given(st.floats(0.01, 100), st.floats(0.05, 1.95))
def test_the_parabola_finds_the_minimum_of_a_bowl(h: float, share: float) -> None:
    """From every point of a bowl except the minimum itself, one evaluation leads there."""
    function = bowl(h)
    start, step = origin(function), share / h
    found = Evaluation(np.full(1, h * step), *function(np.full(1, h * step)))
    lowest, taken, tries = parabola_step(function, start, np.full(1, h), -h * h, found, step)
    assert tries == 1
    assert lowest.value <= found.value
    assert lowest.value == pytest.approx(0.0, abs=1e-9 * h)
    assert taken == pytest.approx(1 / h, rel=1e-3)


def test_no_parabola_without_a_bottom() -> None:
    """A straight line and a cap have no minimum to try."""
    for value in (-1.0, -2.0):
        found = Evaluation(np.ones(1), value, np.full(1, value))
        start = Evaluation(np.zeros(1), 0.0, -np.ones(1))
        assert parabola_step(bowl(1.0), start, np.ones(1), -1.0, found, 1.0) == (found, 1.0, 0)


def test_a_worse_minimum_of_the_parabola_is_not_taken() -> None:
    found, start = Evaluation(np.ones(1), -0.9, -np.ones(1)), Evaluation(np.zeros(1), 0.0, -np.ones(1))
    high = lambda x: (5.0, x)  # noqa: E731
    assert parabola_step(high, start, np.ones(1), -1.0, found, 1.0) == (found, 1.0, 1)


CURVES: dict[str, Callable[[float], float]] = {
    "parabola": lambda a: (a - 1.3) ** 2,
    "quartic": lambda a: (a - 1.3) ** 4 - 0.1 * a,
    "steep wall": lambda a: math.exp(5 * a) - 30 * a,
    "logistic": lambda a: math.log1p(math.exp(-a)) + 0.05 * a * a,
    "corner": lambda a: abs(a - 0.7),
    "wavy": lambda a: -a - 0.02 * math.sin(9 * a) + 0.5 * a * a,
}
"""All fall from 0 and rise before 4."""


def trial(curve: Callable[[float], float], step: float) -> TrialStep:
    return TrialStep(step, curve(step))


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("middle", [0.2, 0.5])
def test_the_same_trials_as_scipy(name: str, middle: float) -> None:
    curve, steps = CURVES[name], list[float]()
    peers = list[float]()

    def line(step: float) -> TrialStep:
        steps.append(step)
        return trial(curve, step)

    def scalar(step: float) -> float:
        peers.append(float(step))
        return curve(step)

    around = Bracket(*(trial(curve, step) for step in (0.0, middle, 4.0)))
    best = brent_minimum(line, around)
    peer = optimize.brent(scalar, brack=(0.0, middle, 4.0), tol=PRECISION)
    assert best.step == pytest.approx(peer, rel=2 * PRECISION)
    inside = peers[3:]  # scipy first tries the bracket itself; its golden section has seven digits
    assert len(steps) == pytest.approx(len(inside), abs=1)
    np.testing.assert_allclose(steps[:3], inside[:3], rtol=1e-6)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 30.0])
def test_brackets(name: str, first: float) -> None:
    curve = CURVES[name]
    slope = (curve(1e-7) - curve(0.0)) / 1e-7
    around = find_bracket(lambda step: trial(curve, step), curve(0.0), slope, first)
    assert around is not None
    assert 0 <= around.left.step < around.middle.step < around.right.step
    assert around.middle.value <= min(around.left.value, around.right.value)
    assert around.middle.value < curve(0.0)


@given(st.integers(0, 999), st.sampled_from([1e-4, 1e-2, 1.0, 50.0]))
def test_the_minimum_along_a_direction(seed: int, first: float) -> None:
    function, calls = counted(multinomial(seed, 0.5, n=30, m=2))
    start = Evaluation(np.zeros(6), *function(np.zeros(6)))
    direction = -start.gradient
    found, step, tries = brent_search(function, start, direction, float(direction @ start.gradient), first)
    assert found is not None
    assert tries == len(calls) - 1
    np.testing.assert_array_equal(found.point, step * direction)
    assert (found.value, found.gradient.tolist()) == (function(found.point)[0], function(found.point)[1].tolist())
    peer = optimize.minimize_scalar(lambda a: function(a * direction)[0], bracket=(0.0, step), tol=1e-10)
    assert found.value <= peer.fun + 1e-6 * abs(peer.fun)
    assert found.value == min(function(x)[0] for x in calls[: 1 + tries])


def test_a_wall_of_infinity_and_of_nothing() -> None:
    for bad in (math.inf, math.nan):
        found, step, _ = brent_search(
            lambda x, bad=bad: (bad if x[0] > 0.3 else float((x[0] - 0.2) ** 2), x),
            Evaluation(np.zeros(1), 0.04, -np.ones(1)),
            np.ones(1),
            -0.4,
        )
        assert found is not None
        assert step == pytest.approx(0.2, rel=2 * PRECISION)


def test_an_unbounded_descent_ends_with_the_farthest_bracket() -> None:
    start = Evaluation(np.zeros(1), 0.0, -np.ones(1))
    found, step, tries = brent_search(lambda x: (-float(x[0]), -np.ones(1)), start, np.ones(1), -1.0)
    assert found is not None
    assert found.value == -step < -1e12
    assert tries < 70


@pytest.mark.parametrize("value", [1.0, math.inf, math.nan])
def test_no_bracket_gives_nothing(value: float) -> None:
    start = Evaluation(np.zeros(1), 0.0, -np.ones(1))
    found, step, tries = brent_search(lambda x: (value, -np.ones(1)), start, np.ones(1), -1.0)
    assert (found, step) == (None, 0.0)
    assert tries < 70


def test_a_valley_takes_about_ten_trials() -> None:
    value, gradient = rosenbrock(np.array([-1.2, 1.0]))
    start = Evaluation(np.array([-1.2, 1.0]), value, gradient)
    found, _, tries = brent_search(rosenbrock, start, -gradient, -float(gradient @ gradient))
    assert found is not None
    assert tries < 25
