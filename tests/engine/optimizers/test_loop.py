"""The classical methods together: as low as scipy gets, every reason to stop, what is told, and that it descends."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import bfgs, cg, cgb
from bncli.engine.optimizers import descent_loop as loop
from bncli.engine.optimizers.objective import Objective, Step
from tests.problems import (
    PROBLEMS,
    barrier,
    counted,
    half_square,
    logistic_loss,
    minimise,
    multinomial,
    objective,
    rosenbrock,
)

every_method = pytest.mark.parametrize("method", [bfgs, cg, cgb], ids=["bfgs", "cg", "cgb"])
every_problem = pytest.mark.parametrize("name", PROBLEMS)


@every_method
@every_problem
def test_as_low_as_scipy_gets(method: Any, name: str) -> None:
    function, n = PROBLEMS[name]
    start = np.full(n, -0.5)
    found, _ = minimise(method, objective(function), start)
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    peer = optimize.minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    assert found.value <= peer.fun + 1e-8 * abs(peer.fun)
    np.testing.assert_allclose(found.point, peer.x, atol=1e-2)
    assert found.value == function(found.point)[0]
    assert found.gradient_norm == pytest.approx(float(np.linalg.norm(function(found.point)[1])), abs=1e-12)


@every_method
@every_problem
def test_what_is_reported(method: Any, name: str) -> None:
    function, n = PROBLEMS[name]
    counting, calls = counted(function)
    found, steps = minimise(method, objective(counting), np.zeros(n), max_iterations=60)
    assert [step.iteration for step in steps] == list(range(found.iterations + 1))
    assert steps[0] == Step(0, function(np.zeros(n))[0], steps[0].gradient_norm, 0.0, 1, 1)
    assert (steps[-1].value, steps[-1].gradient_norm) == (found.value, found.gradient_norm)
    assert all(after.value <= before.value for before, after in itertools.pairwise(steps))
    assert all(after.evaluations > before.evaluations for before, after in itertools.pairwise(steps))
    assert [step.gradient_evaluations for step in steps] == [step.iteration + 1 for step in steps]
    assert all(step.step > 0 for step in steps[1:])
    assert found.evaluations == len(calls)


@every_method
@given(seed=st.integers(0, 999), penalty=st.sampled_from([0.1, 1.0, 100.0]))
def test_random_softmax_problems_reach_the_optimum(method: Any, seed: int, penalty: float) -> None:
    function = multinomial(seed, penalty, n=30, m=3)
    found, _ = minimise(method, objective(function), np.zeros(9))
    peer = optimize.minimize(function, np.zeros(9), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert found.value <= peer.fun * (1 + 1e-7)


@every_method
def test_the_preconditioner_is_left_alone(method: Any) -> None:
    def forbidden(_: NDArray[np.float64]) -> Any:
        raise AssertionError

    problem = Objective(rosenbrock, forbidden, forbidden, forbidden, lambda value: False)
    assert minimise(method, problem, np.zeros(2))[0].value == pytest.approx(1.0)


@every_method
def test_the_start_is_left_alone_and_runs_are_equal_to_the_bit(method: Any) -> None:
    start = np.full(15, 0.25)
    first, second = (minimise(method, objective(multinomial(0, 1.0)), start)[0] for _ in range(2))
    assert start.tolist() == [0.25] * 15
    assert first.point.tobytes() == second.point.tobytes()


@every_method
def test_stops_by_gradient_where_the_start_is_the_optimum(method: Any) -> None:
    found, _ = minimise(method, objective(lambda x: (1.0 + float(x @ x), 2 * x)), np.zeros(3))
    assert (found.stopped_by, found.iterations, found.evaluations) == (StoppedBy.GRADIENT, 0, 1)


@every_method
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_stops_by_tolerance_where_iterations_gain_little(method: Any, tolerance: float) -> None:
    runs = [minimise(method, objective(f), np.full(n, -0.5), tolerance=tolerance) for f, n in PROBLEMS.values()]
    ended = [(found, steps) for found, steps in runs if found.stopped_by is StoppedBy.TOLERANCE]
    assert len(ended) >= 2
    for found, steps in ended:
        assert steps[-1 - loop.WINDOW].value - found.value <= tolerance * found.value
        if len(steps) > 1 + loop.WINDOW:
            assert steps[-2 - loop.WINDOW].value - steps[-2].value > tolerance * steps[-2].value


@every_method
@pytest.mark.parametrize("cap", [0, 1, 7])
def test_stops_at_the_cap(method: Any, cap: int) -> None:
    found, steps = minimise(method, objective(rosenbrock), np.full(8, -0.5), max_iterations=cap)
    assert found.stopped_by is StoppedBy.MAX_ITERATIONS
    assert found.iterations == cap == len(steps) - 1


@every_method
def test_stops_by_line_search_where_no_point_is_lower(method: Any) -> None:
    found, _ = minimise(method, objective(lambda x: (1.0 + 1e3 * float(x[0]), np.full(1, -1e3))), np.zeros(1))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert found.point[0] == 0.0


@every_method
def test_a_failure_is_believed_only_of_steepest_descent(method: Any) -> None:
    """After some honest iterations the values rise everywhere: one search from memory, one from -g, then the end."""
    honest, calls = counted(rosenbrock)

    def turning(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = honest(x)
        return (value if len(calls) <= 30 else 1e6 + len(calls)), gradient

    found, steps = minimise(method, objective(turning), np.array([-1.2, 1.0]))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert found.value == steps[-1].value < 1e6


@every_method
def test_stops_as_separable_when_the_objective_says_so(method: Any) -> None:
    found, _ = minimise(method, objective(logistic_loss, separable=lambda value: value < 1e-2), np.zeros(1))
    assert found.stopped_by is StoppedBy.SEPARABLE
    assert found.value < 1e-2


@every_method
def test_without_an_end_the_optimization_ends_all_the_same(method: Any) -> None:
    found, _ = minimise(method, objective(logistic_loss), np.zeros(1), tolerance=1e-8)
    assert found.stopped_by is not StoppedBy.SEPARABLE
    assert found.value < 0.05


@every_method
def test_a_minimum_of_value_zero_is_reached_quietly(method: Any) -> None:
    found, _ = minimise(method, objective(half_square), np.array([1.0, 2.0, 3.0]), tolerance=1e-8)
    assert found.value < 1e-8


@every_method
def test_a_wall_of_infinity_is_not_entered(method: Any) -> None:
    found, _ = minimise(method, objective(barrier), np.array([30.0]))
    assert found.point[0] == pytest.approx(1.0, abs=1e-4)


@every_method
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_values_does_not_matter_much(method: Any, scale: float) -> None:
    """As where all row weights are multiplied."""
    function = multinomial(3, 0.0, n=200, m=3)
    best = minimise(method, objective(function), np.zeros(9))[0].value

    def scaled(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = function(x)
        return scale * value, scale * gradient

    found, _ = minimise(method, objective(scaled), np.zeros(9))
    assert found.value / scale == pytest.approx(best, rel=1e-3)
