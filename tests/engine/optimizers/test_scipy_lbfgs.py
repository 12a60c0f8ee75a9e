"""L-BFGS without a preconditioner: scipy's iterates, the formula written out, and the ends that scipy itself finds."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import lbfgs, newton, scipy_lbfgs
from bncli.engine.optimizers.objective import Objective, Step
from tests.problems import PROBLEMS, barrier, counted, half_square, identity, minimise, objective, quadratic, rosenbrock

Array = NDArray[np.float64]


def forbidden(*_: Any) -> Any:
    raise AssertionError("the published method knows nothing but value and gradient")


def plain(function: Any, start: Array, module: Any = lbfgs, **options: Any) -> tuple[Any, list[Step], list[Array]]:
    """What is found without a preconditioner, the steps reported, and the points."""
    steps: list[Step] = []
    points: list[Array] = []

    def report(step: Step, point: Array) -> None:
        steps.append(step)
        points.append(point.copy())

    hessian = forbidden if module is lbfgs else objective(function).hessian
    problem = Objective(function, forbidden, hessian, forbidden, lambda value: False)
    settings = {"tolerance": 1e-12, "max_iterations": 2000, **options}
    return module.minimise(problem, start, preconditioner="off", report=report, **settings), steps, points


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_iterates_are_those_of_scipy_with_its_own_settings(name: str) -> None:
    function, n = PROBLEMS[name]
    theirs: list[Array] = []
    evaluations: list[int] = []
    counting, calls = counted(function)

    def told(intermediate_result: Any) -> None:
        theirs.append(intermediate_result.x.copy())
        evaluations.append(len(calls))

    optimize.minimize(counting, np.full(n, -0.5), jac=True, method="L-BFGS-B", callback=told)
    _, steps, points = plain(function, np.full(n, -0.5))
    assert len(theirs) >= 2
    shared = min(len(theirs), len(points) - 1)
    assert shared >= min(len(theirs), 10)
    np.testing.assert_array_equal(np.stack(points[1 : shared + 1]), np.stack(theirs[:shared]))
    assert [step.evaluations for step in steps[1 : shared + 1]] == evaluations[:shared]


@pytest.mark.parametrize("name", PROBLEMS)
def test_newton_begins_with_the_same_iterates(name: str) -> None:
    function, n = PROBLEMS[name]
    _, _, points = plain(function, np.full(n, -0.5), max_iterations=15)
    _, _, again = plain(function, np.full(n, -0.5), module=newton, max_iterations=15)
    np.testing.assert_array_equal(np.stack(points), np.stack(again))


def test_directions_are_those_of_the_formula() -> None:
    """H <- (I - rho s y') H (I - rho y s') + rho s s', over the last pairs, on top of s'y / y'y."""
    _, steps, x = plain(rosenbrock, np.full(6, -0.5))
    g = [rosenbrock(point)[1] for point in x]
    assert len(x) > scipy_lbfgs.PAIRS + 5
    for k in range(len(x) - 8):  # after that rounding is all that is left of some steps
        pairs = [(x[j + 1] - x[j], g[j + 1] - g[j]) for j in range(max(0, k - scipy_lbfgs.PAIRS), k)]
        h = np.eye(6)
        if pairs:
            s, y = pairs[-1]
            h *= (s @ y) / (y @ y)
        for s, y in pairs:
            left = np.eye(6) - np.outer(s, y) / (s @ y)
            h = left @ h @ left.T + np.outer(s, s) / (s @ y)
        np.testing.assert_allclose(x[k + 1] - x[k], -steps[k + 1].step * (h @ g[k]), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_points_satisfy_the_strong_wolfe_conditions_and_the_first_trial_has_length_one(name: str) -> None:
    function, n = PROBLEMS[name]
    counting, calls = counted(function)
    _, steps, x = plain(counting, np.full(n, -0.5))
    assert float(np.linalg.norm(calls[1] - calls[0])) == pytest.approx(1.0)
    if steps[1].evaluations == 2:
        assert steps[1].step == pytest.approx(1 / steps[0].gradient_norm)
    for before, after in itertools.pairwise(x[:-3]):
        (f0, g0), (f1, g1), s = function(before), function(after), after - before
        assert f1 <= f0 + 1e-3 * (g0 @ s)
        assert abs(g1 @ s) <= 0.9 * abs(g0 @ s)


@pytest.mark.parametrize("module", [lbfgs, newton])
@pytest.mark.parametrize("name", PROBLEMS)
def test_as_low_as_with_a_preconditioner(name: str, module: Any) -> None:
    function, n = PROBLEMS[name]
    found, steps, _ = plain(function, np.full(n, -0.5), module)
    other, _ = minimise(module, objective(function), np.full(n, -0.5))
    assert found.value == pytest.approx(other.value, rel=1e-9)
    assert [step.iteration for step in steps] == list(range(found.iterations + 1))
    values = [step.value for step in steps]
    assert all(after <= before + 1e-13 * abs(before) for before, after in itertools.pairwise(values))


def test_newton_ends_near_the_optimum_where_curvature_is_small() -> None:
    """The gradient in itself would say too soon that little is left: at 1e-7 or more above the optimum.

    Those who go on end within 1e-9, with every kernel of the linear algebra.
    """
    function, _ = quadratic(60, 3, 1e6)

    def flat(x: Array) -> tuple[float, Array]:
        value, gradient = function(x)
        return 1.0 + 1e-7 * (value - 1.0), 1e-7 * gradient

    found, steps, _ = plain(flat, np.full(60, 3.0), newton, tolerance=1e-9)
    assert steps[-1].gradient_evaluations > steps[-1].evaluations
    assert found.value == pytest.approx(1.0, abs=1e-8)


def test_a_minimum_reached_exactly_has_no_gradient_left() -> None:
    found, _, _ = plain(half_square, np.array([3.0, 4.0]), tolerance=0.0)
    assert (found.value, found.stopped_by) == (0.0, StoppedBy.GRADIENT)


def test_values_that_fall_no_further_end_the_search() -> None:
    """What is below a digit of the value is lost in it, though the gradient knows of it."""
    scales = np.diag([1.0, 1e-7, 1e-8])

    def rounded(x: Array) -> tuple[float, Array]:
        return float(np.float32(1.0 + x @ scales @ x)), 2 * scales @ x

    found, _, _ = plain(rounded, np.array([3.0, -1.0, 2.0]), tolerance=0.0)
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert found.value == pytest.approx(1.0, abs=1e-6)


def test_a_wall_of_infinity_is_not_entered_and_what_was_reached_stays() -> None:
    """scipy gives up before a wall; no likelihood has one."""
    found, steps, points = plain(barrier, np.array([30.0]))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert 1.0 < found.point[0] < 30.0
    assert found.point.tolist() == points[-1].tolist()
    assert found.iterations == len(steps) - 1 >= 1


def test_a_higher_point_that_scipy_takes_ends_the_search_at_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretended(fun: Any, x0: Array, *, callback: Any, **_: Any) -> Any:
        for x in (x0, x0 / 2, -x0):
            fun(x)
            if x is not x0:
                callback(intermediate_result=None)
        return SimpleNamespace(status=0)

    monkeypatch.setattr(scipy_lbfgs, "minimize", pretended)
    found, steps, _ = plain(half_square, np.array([4.0]))
    assert [step.value for step in steps] == [8.0, 2.0]
    assert (found.value, found.stopped_by) == (2.0, StoppedBy.LINE_SEARCH)


def test_the_stops_are_asked_before_a_point_is_evaluated() -> None:
    counting, calls = counted(rosenbrock)
    found, _, _ = plain(counting, np.full(4, -0.5), max_iterations=5)
    assert found.evaluations == len(calls)
    assert found.iterations == 5
    none, _, _ = plain(counting, np.full(4, -0.5), max_iterations=0)
    assert (none.evaluations, none.stopped_by, len(calls)) == (1, StoppedBy.MAX_ITERATIONS, found.evaluations + 1)


def test_no_parameters_at_all_are_at_their_optimum() -> None:
    found, _, _ = plain(lambda x: (1.0, x.copy()), np.zeros(0))
    assert (found.iterations, found.stopped_by) == (0, StoppedBy.GRADIENT)


def test_the_start_is_left_alone_and_runs_are_equal_to_the_bit() -> None:
    start = np.full(8, -0.5)
    one, other = (plain(rosenbrock, start)[0] for _ in range(2))
    assert start.tolist() == [-0.5] * 8
    assert one.point.tobytes() == other.point.tobytes()


def test_on_is_the_default() -> None:
    asked: list[Array] = []

    def precondition(g: Array) -> Array:
        asked.append(g)
        return identity(g)

    minimise(lbfgs, objective(rosenbrock, precondition), np.full(2, -0.5))
    assert asked
