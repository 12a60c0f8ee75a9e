"""L-BFGS against scipy on problems with and without a preconditioner; every reason to stop; determinism."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.objective import Objective, Step
from bncli.engine.optimizers import lbfgs
from tests import problems
from tests.problems import (
    PROBLEMS,
    barrier,
    counted,
    half_square,
    identity,
    logistic_loss,
    multinomial,
    objective,
    quadratic,
    rosenbrock,
)

Array = NDArray[np.float64]


def minimise(problem: Objective, start: Array, **options: Any) -> tuple[Optimum, list[Step]]:
    return problems.minimise(lbfgs, problem, start, **options)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("preconditioned", [False, True])
def test_as_low_as_scipy_gets(name: str, preconditioned: bool) -> None:
    function, n = PROBLEMS[name]
    scales = np.geomspace(0.5, 2, n)
    found, _steps = minimise(
        objective(function, (lambda g: scales * g) if preconditioned else identity), np.full(n, -0.5)
    )
    peer = optimize.minimize(
        function, np.full(n, -0.5), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    )
    assert found.value <= peer.fun + 1e-8 * abs(peer.fun)
    np.testing.assert_allclose(found.point, peer.x, atol=1e-2)
    assert found.value == function(found.point)[0]
    assert found.gradient_norm == pytest.approx(float(np.linalg.norm(function(found.point)[1])), abs=1e-12)
    assert found.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)


@given(st.integers(1, 12), st.integers(0, 99), st.floats(1, 1e5))
def test_with_the_inverse_hessian_a_bowl_takes_one_step(n: int, seed: int, condition: float) -> None:
    function, a = quadratic(n, seed, condition)
    inverse = np.linalg.inv(a)
    found, _ = minimise(objective(function, lambda g: inverse @ g), np.full(n, 3.0), tolerance=1e-9)
    assert found.iterations <= 2
    assert found.value == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_reports_start_iterations_and_evaluations(name: str) -> None:
    function, n = PROBLEMS[name]
    counting, calls = counted(function)
    found, steps = minimise(objective(counting), np.zeros(n))
    assert [step.iteration for step in steps] == list(range(found.iterations + 1))
    assert steps[0] == Step(0, function(np.zeros(n))[0], steps[0].gradient_norm, 0.0, 1)
    assert steps[-1].value == found.value
    values = [step.value for step in steps]
    assert all(after <= before + 1e-12 * abs(before) for before, after in itertools.pairwise(values))
    assert found.evaluations == len(calls)
    assert [step.evaluations for step in steps] == sorted(step.evaluations for step in steps)


def test_the_start_is_left_alone_and_runs_are_equal_to_the_bit() -> None:
    start = np.full(15, 0.25)
    first, second = (minimise(objective(multinomial(0, 1.0)), start)[0] for _ in range(2))
    assert start.tolist() == [0.25] * 15
    assert first.point.tobytes() == second.point.tobytes()


def test_stops_by_gradient_where_the_start_is_the_optimum() -> None:
    found, _ = minimise(objective(lambda x: (1.0 + float(x @ x), 2 * x)), np.zeros(3))
    assert (found.stopped_by, found.iterations, found.evaluations) == (StoppedBy.GRADIENT, 0, 1)


def test_stops_by_tolerance_where_iterations_gain_little() -> None:
    function, n = PROBLEMS["long bowl"]
    for tolerance in (1e-1, 1e-3, 1e-6):
        found, steps = minimise(objective(function), np.full(n, -0.5), tolerance=tolerance)
        assert found.stopped_by is StoppedBy.TOLERANCE
        assert steps[-1 - lbfgs.WINDOW].value - found.value <= tolerance * found.value
        assert steps[-2 - lbfgs.WINDOW].value - steps[-2].value > tolerance * steps[-2].value


@pytest.mark.parametrize("cap", [0, 1, 7])
def test_stops_at_the_cap(cap: int) -> None:
    found, steps = minimise(objective(rosenbrock), np.full(8, -0.5), max_iterations=cap)
    assert found.stopped_by is StoppedBy.MAX_ITERATIONS
    assert found.iterations == cap == len(steps) - 1


def test_stops_by_line_search_where_no_point_is_lower() -> None:
    found, _ = minimise(objective(lambda x: (1.0 + 1e3 * float(x[0]), np.full(1, -1e3))), np.zeros(1))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert abs(found.point[0]) < 1e-12


def test_stops_as_separable_when_the_objective_says_so() -> None:
    found, _ = minimise(objective(logistic_loss, separable=lambda value: value < 1e-3), np.zeros(1))
    assert found.stopped_by is StoppedBy.SEPARABLE
    assert found.value < 1e-3


def test_a_minimum_of_value_zero_is_reached_quietly() -> None:
    """Badly scaled."""
    scales = np.array([0.5, 1.0, 2.0])
    found, _ = minimise(objective(half_square, lambda g: scales * g), np.array([1.0, 2.0, 3.0]), tolerance=1e-8)
    assert found.value < 1e-8


def test_a_wall_of_infinity_is_not_entered() -> None:
    found, _ = minimise(objective(barrier), np.array([30.0]))
    assert found.point[0] == pytest.approx(1.0, abs=1e-4)


def test_the_preconditioner_is_refreshed_at_the_iterations_named() -> None:
    refreshed: list[Array] = []

    def refresh(point: Array) -> Any:
        refreshed.append(point)
        return identity

    problem = Objective(rosenbrock, identity, refresh, lambda value: False)
    found, _ = minimise(problem, np.full(8, -0.5))
    assert len(refreshed) == sum(iteration <= found.iterations for iteration in (10, *range(30, 1000, 60)))
    assert refreshed


@given(st.integers(0, 999), st.sampled_from([0.01, 1.0, 100.0]))
def test_random_softmax_problems_reach_the_optimum(seed: int, penalty: float) -> None:
    function = multinomial(seed, penalty, n=30, m=3)
    found, _ = minimise(objective(function), np.zeros(9))
    peer = optimize.minimize(function, np.zeros(9), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert found.value <= peer.fun * (1 + 1e-9)
