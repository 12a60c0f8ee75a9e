"""Compare BFGS and conjugate gradients with scipy and textbook code; check stops, reports and restarts."""

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
from bncli.engine.optimizers import classical
from bncli.engine.optimizers.classical import minimise_bfgs, minimise_cg, minimise_cgb
from bncli.engine.optimizers.objective import Evaluation, Objective, Step
from bncli.errors import BncliError
from tests.problems import (
    PROBLEMS,
    Function,
    barrier,
    counted,
    half_square,
    logistic_loss,
    minimise,
    multinomial,
    objective,
    quadratic,
    rosenbrock,
)

every_method = pytest.mark.parametrize("method", [minimise_bfgs, minimise_cg, minimise_cgb], ids=["bfgs", "cg", "cgb"])
every_problem = pytest.mark.parametrize("name", PROBLEMS)


@pytest.mark.slow
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
        assert steps[-1 - classical.WINDOW].value - found.value <= tolerance * found.value
        if len(steps) > 1 + classical.WINDOW:
            assert steps[-2 - classical.WINDOW].value - steps[-2].value > tolerance * steps[-2].value


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
    """After some regular iterations the values rise everywhere: one search from memory, one along -g, then the end."""
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
    """The scale changes if all row weights are multiplied."""
    function = multinomial(3, 0.0, n=200, m=3)
    best = minimise(method, objective(function), np.zeros(9))[0].value

    def scaled(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = function(x)
        return scale * value, scale * gradient

    found, _ = minimise(method, objective(scaled), np.zeros(9))
    assert found.value / scale == pytest.approx(best, rel=1e-3)


Array = NDArray[np.float64]


def test_bfgs_on_a_bowl_in_one_dimension_by_hand() -> None:
    """1 + 10 (x - 1)^2 from 0: d = 20; steps 1 and 1/5 fail, 1/25 leads to 0.8; then B = 0.8/16 = 1/20 is exact."""
    found, steps = minimise(
        minimise_bfgs, objective(lambda x: (1 + 10 * float((x[0] - 1) ** 2), 20 * (x - 1))), np.zeros(1)
    )
    assert found.point[0] == pytest.approx(1.0, abs=1e-15)
    assert (found.iterations, found.stopped_by) == (2, StoppedBy.GRADIENT)
    assert [step.evaluations for step in steps] == [1, 1 + 3, 1 + 3 + 1]
    assert [step.gradient_evaluations for step in steps] == [1, 2, 3]
    assert [step.step for step in steps] == pytest.approx([0.0, 0.04, 1.0])


def plain_bfgs(function: Function, x: Array, n_iterations: int) -> tuple[list[Array], list[int]]:
    """Return points and evaluations, iteration by iteration, while no search fails, with the textbook update."""
    f, g = function(x)
    b, evaluations, age, eye = np.eye(x.size), 1, 0, np.eye(x.size)
    points, counts = [x], [1]
    while len(points) <= n_iterations:
        d, step = -b @ g, 1.0
        while True:
            evaluations += 1
            value, gradient = function(x + step * d)
            if value <= f + 1e-4 * step * float(d @ g):
                break
            step *= 0.2
        s, y = step * d, gradient - g
        rho, age = 1 / float(s @ y), age + 1
        left = eye - rho * np.outer(s, y)
        b = left @ b @ left.T + rho * np.outer(s, s)
        if rho <= 0 or age > 2 * x.size:
            b, age = eye, 0
        x, f, g = x + s, value, gradient
        points.append(x)
        counts.append(evaluations)
    return points, counts


@pytest.mark.parametrize("name", ["long bowl", "rosenbrock 2", "rosenbrock 8", "softmax", "softmax, weak penalty"])
def test_bfgs_step_by_step(name: str) -> None:
    function, n = PROBLEMS[name]
    points: list[Array] = []
    counts: list[int] = []

    def report(step: Any, point: Array) -> None:
        points.append(point)
        counts.append(step.evaluations)

    minimise_bfgs(objective(function), np.full(n, -0.5), tolerance=1e-14, max_iterations=12, report=report)
    expected_points, expected_counts = plain_bfgs(function, np.full(n, -0.5), 12)
    assert counts == expected_counts
    np.testing.assert_allclose(points, expected_points, rtol=1e-6, atol=1e-9)


def test_the_matrix_becomes_the_inverse_hessian_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    function, a = quadratic(6, 0, 20.0)
    seen: list[Array] = []
    update = classical._Bfgs.update

    def watched(method: classical._Bfgs, *points: Evaluation) -> None:
        update(method, *points)
        if method.inverse is not None:
            seen.append(method.inverse.copy())

    monkeypatch.setattr(classical._Bfgs, "update", watched)
    monkeypatch.setattr(classical, "BLOCK", 12)
    found, _ = minimise(minimise_bfgs, objective(function), np.full(6, 2.0), tolerance=1e-13)
    assert found.value == pytest.approx(1.0, abs=1e-10)
    assert all(np.array_equal(matrix, matrix.T) for matrix in seen)
    np.testing.assert_allclose(seen[10] @ a, np.eye(6), atol=0.1)


def test_starts_again_after_twice_as_many_updates_as_parameters() -> None:
    function, _ = quadratic(2, 0, 5.0)
    method, fresh = classical._Bfgs(), []
    points = [Evaluation(x, *function(x)) for x in np.random.default_rng(0).normal(size=(13, 2))]
    for before, after in itertools.pairwise(points):
        method.update(before, after)
        fresh.append(method.is_steepest)
    assert fresh == [False] * 4 + [True] + [False] * 4 + [True] + [False] * 2


def test_starts_again_where_the_function_bends_down() -> None:
    method = classical._Bfgs()
    method.update(Evaluation(np.zeros(2), 0.0, np.zeros(2)), Evaluation(np.ones(2), 1.0, np.ones(2)))
    assert not method.is_steepest
    method.update(Evaluation(np.zeros(2), 0.0, np.zeros(2)), Evaluation(np.ones(2), 1.0, -np.ones(2)))
    assert method.is_steepest


def test_too_many_parameters_are_refused_before_anything_is_evaluated() -> None:
    def forbidden(_: Array) -> Any:
        raise AssertionError

    with pytest.raises(BncliError, match=r"bfgs would need 3\.2 GB .* 20,000 parameters; use --optimizer lbfgs"):
        minimise(minimise_bfgs, objective(forbidden), np.zeros(20_000))


def test_cg_on_a_bowl_in_one_dimension_by_hand() -> None:
    """1 + 10 (x - 1)^2 from 0: d = 20; steps 1 and 1/5 fail, 1/25 is accepted, the parabola leads to 1, where g = 0."""
    found, steps = minimise(
        minimise_cg, objective(lambda x: (1 + 10 * float((x[0] - 1) ** 2), 20 * (x - 1))), np.zeros(1)
    )
    assert found.point[0] == pytest.approx(1.0, abs=1e-15)
    assert (found.iterations, found.stopped_by) == (1, StoppedBy.GRADIENT)
    assert (steps[1].evaluations, steps[1].gradient_evaluations) == (1 + 3 + 1, 2)
    assert steps[1].step == pytest.approx(1 / 20)


def plain_cg(function: Function, x: Array, n_iterations: int) -> tuple[list[Array], list[int]]:
    """Return points and evaluations, iteration by iteration, while no search fails."""
    f, g = function(x)
    t, last, evaluations, cycle, first = np.zeros(x.size), np.zeros(x.size), 1, 0, 1.0
    points, counts = [x], [1]
    while len(points) <= n_iterations:
        if cycle == x.size or float(g @ (g - last)) <= 0:
            t, last, cycle, first = np.zeros(x.size), np.zeros(x.size), 0, 1.0
        beta = float(g @ (g - last)) / float(last @ last) if last.any() else 1.0
        t, last, cycle = beta * t - g, g, cycle + 1
        slope, step = float(t @ g), first
        while True:
            evaluations += 1
            trial = function(x + step * t)[0]
            if trial <= f + 1e-4 * step * slope:
                break
            step *= 0.2
        best, bend = step, 2 * (trial - f - slope * step)
        if bend > 0:
            evaluations += 1
            if function(x - slope * step**2 / bend * t)[0] < trial:
                best = -slope * step**2 / bend
        x, first = x + best * t, min(1.0, 1.7 * step)
        f, g = function(x)
        points.append(x)
        counts.append(evaluations)
    return points, counts


@pytest.mark.parametrize("name", ["long bowl", "rosenbrock 2", "rosenbrock 8", "softmax", "softmax, weak penalty"])
def test_cg_step_by_step(name: str) -> None:
    function, n = PROBLEMS[name]
    points: list[Array] = []
    counts: list[int] = []

    def report(step: object, point: Array) -> None:
        points.append(point)
        counts.append(step.evaluations)  # type: ignore[attr-defined]

    minimise_cg(objective(function), np.full(n, -0.5), tolerance=1e-14, max_iterations=10, report=report)
    expected_points, expected_counts = plain_cg(function, np.full(n, -0.5), 10)
    assert counts == expected_counts
    np.testing.assert_allclose(points, expected_points, rtol=1e-4, atol=1e-6)


def test_cgb_on_a_bowl_in_one_dimension_by_hand() -> None:
    """1 + 10 (x - 1)^2 from 0: d = 20, x = 20 a; the bracket's steps are 1, 1/10 (both no lower than 0) and 1/20.

    That is the minimum; Brent makes sure of it: golden sections to both sides, then the least move to either side.
    """
    counting, calls = counted(lambda x: (1 + 10 * float((x[0] - 1) ** 2), 20 * (x - 1)))
    found, steps = minimise(minimise_cgb, objective(counting), np.zeros(1))
    tried = [float(x[0]) for x in calls]
    assert tried[:4] == pytest.approx([0.0, 20.0, 2.0, 1.0])
    assert tried[4] == pytest.approx(1 - 0.381966, abs=1e-6)
    assert tried[5] == pytest.approx(1 + 0.381966, abs=1e-6)
    assert tried[-1] == pytest.approx(1.0, abs=5e-4)
    assert found.point[0] == pytest.approx(1.0, abs=1e-12)
    assert (found.iterations, found.stopped_by, found.evaluations) == (1, StoppedBy.GRADIENT, len(calls))
    assert (steps[1].evaluations, steps[1].gradient_evaluations) == (len(calls), 2)


@pytest.mark.parametrize("name", ["long bowl", "rosenbrock 8", "softmax"])
def test_every_step_ends_where_the_slope_vanishes(name: str) -> None:
    function, n = PROBLEMS[name]
    points = []
    minimise_cgb(
        objective(function),
        np.full(n, -0.5),
        tolerance=1e-6,
        max_iterations=15,
        report=lambda step, point: points.append(point),
    )
    for before, after in itertools.pairwise(points):
        d = after - before
        slope_before, slope_after = (float(function(x)[1] @ d) for x in (before, after))
        assert abs(slope_after) < 0.01 * abs(slope_before)


@given(st.integers(2, 8), st.integers(0, 99))
def test_a_bowl_takes_about_as_many_iterations_as_dimensions(n: int, seed: int) -> None:
    function, _ = quadratic(n, seed, 30.0)
    found, _ = minimise(minimise_cgb, objective(function), np.full(n, 2.0), tolerance=1e-8)
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert found.iterations <= 2 * n + 6


@pytest.mark.parametrize("name", ["long bowl", "softmax"])
def test_fewer_iterations_of_more_evaluations_than_with_acceptable_points(name: str) -> None:
    function, n = PROBLEMS[name]
    by_brent, by_points = (minimise(m, objective(function), np.full(n, -0.5))[0] for m in (minimise_cgb, minimise_cg))
    assert by_brent.iterations < by_points.iterations
    assert by_brent.evaluations / by_brent.iterations > 2 * by_points.evaluations / by_points.iterations


def probe(gradient: list[float]) -> Evaluation:
    g = np.array(gradient)
    return Evaluation(np.zeros(g.size), 0.0, g)


def test_the_formula_by_hand() -> None:
    """g = (1, 2, 0), then (2, 0, 1): beta = (2 - 1, -2, 1)'(2, 0, 1) / 5 = 3/5."""
    method = classical._ConjugateGradients(exact=False)
    assert method.direction(np.array([1.0, 2.0, 0.0])).tolist() == [-1.0, -2.0, 0.0]
    method.update(probe([1.0, 2.0, 0.0]), probe([2.0, 0.0, 1.0]))
    assert not method.is_steepest
    np.testing.assert_allclose(method.direction(np.array([2.0, 0.0, 1.0])), [-2.6, -1.2, -1.0], rtol=1e-14)
    method.reset()
    assert method.is_steepest
    assert method.direction(np.array([1.0, 2.0, 3.0])).tolist() == [-1.0, -2.0, -3.0]


def test_a_negative_beta_starts_again() -> None:
    method = classical._ConjugateGradients(exact=False)
    method.direction(np.array([2.0, 0.0]))
    method.update(probe([2.0, 0.0]), probe([1.0, 0.0]))
    assert method.is_steepest


def test_starts_again_after_as_many_iterations_as_parameters() -> None:
    method, fresh = classical._ConjugateGradients(exact=False), []
    for i in range(7):
        method.direction(np.array([1.0, 2.0, 3.0]))
        method.update(probe([1.0, 2.0, 3.0]), probe([2.0, 3.0, 4.0 + i]))
        fresh.append(method.is_steepest)
    assert fresh == [False, False, True, False, False, True, False]


def test_the_first_trial_step() -> None:
    method = classical._ConjugateGradients(exact=False)
    assert method.first_step == 1.0
    # (x - 1)^2: the search from 0 along a direction of 25 accepts the step 1 / 25, along one of 10 / 9 the step 0.2
    slow = Evaluation(np.zeros(1), 1.0, np.full(1, -2.0))
    method.search(lambda x: (float((x[0] - 1) ** 2), 2 * (x - 1)), slow, np.full(1, 25.0), -50.0)
    assert method.first_step == pytest.approx(1.7 / 25)
    method.search(lambda x: (float((x[0] - 1) ** 2), 2 * (x - 1)), slow, np.full(1, 1.0), -2.0)
    assert method.first_step == pytest.approx(1.7 * 1.7 / 25)
    method.first_step = 0.9
    method.search(lambda x: (float((x[0] - 1) ** 2), 2 * (x - 1)), slow, np.full(1, 1.0), -2.0)
    assert method.first_step == 1.0
    method.search(lambda x: (float((x[0] - 1) ** 2), 2 * (x - 1)), slow, np.full(1, 25.0), -50.0)
    method.reset()
    assert method.first_step == 1.0


def test_with_exact_steps_directions_are_conjugate() -> None:
    function, a = quadratic(6, 3, 50.0)
    method, current = classical._ConjugateGradients(exact=False), Evaluation(np.zeros(6), *function(np.zeros(6)))
    directions: list[NDArray[np.float64]] = []
    for _ in range(6):
        d = method.direction(current.gradient).copy()
        step = -float(d @ current.gradient) / float(d @ a @ d)
        point = current.point + step * d
        there = Evaluation(point, *function(point))
        method.update(current, there)
        directions.append(d / np.linalg.norm(d))
        current = there
    conjugacy = np.array(directions) @ a @ np.array(directions).T
    np.testing.assert_allclose(conjugacy - np.diag(np.diag(conjugacy)), 0.0, atol=1e-6)
    assert current.value == pytest.approx(1.0, abs=1e-9)
