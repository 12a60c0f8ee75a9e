"""Laws of the descent, with quasi-Newton steps, with Newton steps, and with both; every reason to stop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers import quasi_newton
from bncli.engine.optimizers.objective import Objective, Step
from bncli.engine.optimizers.quasi_newton import COST, GAP, Refresh
from tests.problems import (
    PROBLEMS,
    Function,
    barrier,
    counted,
    differences,
    half_square,
    identity,
    logistic_loss,
    multinomial,
    objective,
    quadratic,
    rosenbrock,
)

Array = NDArray[np.float64]

SWITCHES = {"quasi-newton": math.inf, "newton": 1, "both": 12, "published": math.inf, "published, then newton": 12}
"""The number of evaluations from which on steps are Newton's; the published ones are without preconditioner."""
every_switch = pytest.mark.parametrize("switch", SWITCHES)
conditioned = pytest.mark.parametrize("switch", [word for word in SWITCHES if not word.startswith("published")])


def minimise(switch: str, problem: Objective, start: Array, **options: Any) -> tuple[Optimum, list[Step]]:
    """What is found, to high precision unless told otherwise, and what is reported."""
    steps: list[Step] = []
    settings = {"tolerance": 1e-12, "max_iterations": 2000, **options}
    found = quasi_newton.descend(
        problem,
        start,
        newton_from=SWITCHES[switch],
        preconditioner="off" if switch.startswith("published") else "on",
        report=lambda step, _: steps.append(step),
        **settings,
    )
    return found, steps


def products_of(steps: list[Step]) -> list[int]:
    """Hessian products taken by each report."""
    return [step.gradient_evaluations - step.evaluations for step in steps]


@every_switch
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("preconditioned", [False, True])
def test_as_low_as_scipy_gets(switch: str, name: str, preconditioned: bool) -> None:
    function, n = PROBLEMS[name]
    scales = np.geomspace(0.5, 2, n)
    problem = objective(function, (lambda g: scales * g) if preconditioned else identity)
    found, _steps = minimise(switch, problem, np.full(n, -0.5))
    peer = optimize.minimize(
        function, np.full(n, -0.5), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    )
    assert found.value <= peer.fun + 1e-8 * abs(peer.fun)
    np.testing.assert_allclose(found.point, peer.x, atol=1e-2)
    assert found.value == function(found.point)[0]
    assert found.gradient_norm == pytest.approx(float(np.linalg.norm(function(found.point)[1])), abs=1e-12)
    assert found.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)


@conditioned
@given(n=st.integers(1, 12), seed=st.integers(0, 99), condition=st.floats(1, 1e5))
def test_with_the_inverse_hessian_a_bowl_takes_one_step(switch: str, n: int, seed: int, condition: float) -> None:
    function, a = quadratic(n, seed, condition)
    inverse = np.linalg.inv(a)
    problem = objective(function, lambda g: inverse @ g, hessian=lambda _: lambda v: a @ v)
    found, _ = minimise(switch, problem, np.full(n, 3.0), tolerance=1e-9)
    assert found.iterations <= 2
    assert found.value == pytest.approx(1.0, abs=1e-9)


@every_switch
@pytest.mark.parametrize("name", PROBLEMS)
def test_reports_start_iterations_and_what_they_cost(switch: str, name: str) -> None:
    function, n = PROBLEMS[name]
    counting, calls = counted(function)
    products: list[Array] = []

    def hessian(point: Array) -> Any:
        product = differences(function)(point)
        return lambda v: [products.append(v), product(v)][1]

    found, steps = minimise(switch, objective(counting, hessian=hessian), np.zeros(n))
    assert [step.iteration for step in steps] == list(range(found.iterations + 1))
    assert steps[0] == Step(0, function(np.zeros(n))[0], steps[0].gradient_norm, 0.0, 1, 1)
    assert steps[0].gradient_norm == pytest.approx(float(np.linalg.norm(function(np.zeros(n))[1])))
    assert (steps[-1].value, steps[-1].gradient_norm) == (found.value, found.gradient_norm)
    assert all(after.value <= before.value + 1e-12 * abs(before.value) for before, after in itertools.pairwise(steps))
    assert all(step.step > 0 for step in steps[1:])
    assert found.evaluations == len(calls)
    assert [step.evaluations for step in steps] == sorted(step.evaluations for step in steps)
    assert products_of(steps) == sorted(products_of(steps))
    assert products_of(steps)[-1] == len(products)
    assert bool(products) is (steps[-2].evaluations >= SWITCHES[switch])


@every_switch
@pytest.mark.parametrize("name", PROBLEMS)
def test_newton_steps_begin_after_the_evaluations_named_and_never_end(switch: str, name: str) -> None:
    function, n = PROBLEMS[name]
    _found, steps = minimise(switch, objective(function), np.zeros(n))
    for before, after in itertools.pairwise(steps):
        assert (products_of([after]) > products_of([before])) is (before.evaluations >= SWITCHES[switch])


@every_switch
def test_the_start_is_left_alone_and_runs_are_equal_to_the_bit(switch: str) -> None:
    start = np.full(15, 0.25)
    first, second = (minimise(switch, objective(multinomial(0, 1.0)), start)[0] for _ in range(2))
    assert start.tolist() == [0.25] * 15
    assert first.point.tobytes() == second.point.tobytes()


@every_switch
def test_stops_by_gradient_where_the_start_is_the_optimum(switch: str) -> None:
    found, _ = minimise(switch, objective(lambda x: (1.0 + float(x @ x), 2 * x)), np.zeros(3))
    assert (found.stopped_by, found.iterations, found.evaluations) == (StoppedBy.GRADIENT, 0, 1)


@every_switch
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
def test_stops_by_tolerance_where_iterations_gain_little(switch: str, name: str, tolerance: float) -> None:
    """The last quasi-Newton iterations together, or the last Newton iterations; not before."""
    function, n = PROBLEMS[name]
    found, steps = minimise(switch, objective(function), np.full(n, -0.5), tolerance=tolerance)
    small = [end for end in range(1, len(steps)) if _gains_little(steps[: end + 1], SWITCHES[switch], tolerance)]
    assert small == [len(steps) - 1] or (small == [] and found.stopped_by is StoppedBy.GRADIENT)


def _gains_little(steps: list[Step], newton_from: float, tolerance: float) -> bool:
    """Whether the descent ends with the last of these steps; iterations of the two kinds do not count together."""
    switch = next((i for i, step in enumerate(steps) if step.evaluations >= newton_from), len(steps))
    is_newton = switch < len(steps) - 1
    start = len(steps) - 1 - (quasi_newton.NEWTON_WINDOW if is_newton else quasi_newton.WINDOW)
    if start < (switch if is_newton else 0):
        return False
    return steps[start].value - steps[-1].value <= tolerance * steps[-1].value


def test_a_small_step_before_the_first_newton_step_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tiny steps, which the switch saves from being the last."""
    calls: list[Array] = []

    def function(x: Array) -> tuple[float, Array]:
        calls.append(x)
        return 1.0 + 50 * float(x @ x), 100 * x

    def precondition(g: Array) -> Array:
        return (1e-5 if len(calls) < 6 else 1.0) * g

    monkeypatch.setitem(SWITCHES, "soon", 6)
    found, steps = minimise("soon", objective(function, precondition), np.ones(3), tolerance=1e-2)
    assert products_of(steps)[-1] > 0
    assert found.value == pytest.approx(1.0, abs=1e-6)


@every_switch
@pytest.mark.parametrize("cap", [0, 1, 7])
def test_stops_at_the_cap(switch: str, cap: int) -> None:
    found, steps = minimise(switch, objective(rosenbrock), np.full(8, -0.5), max_iterations=cap)
    assert found.stopped_by is StoppedBy.MAX_ITERATIONS
    assert found.iterations == cap == len(steps) - 1


def test_evaluations_and_products_are_capped_too() -> None:
    """Twenty curvatures of many magnitudes: an iteration takes many products."""
    function, a = quadratic(20, 1, 1e8)
    problem = objective(function, hessian=lambda _: lambda v: a @ v)
    found, steps = minimise("newton", problem, np.full(20, -0.5), max_iterations=8)
    assert found.stopped_by is StoppedBy.MAX_ITERATIONS
    assert found.iterations < 8
    spent = [step.gradient_evaluations for step in steps]
    assert spent[-2] < quasi_newton.PASSES * 8 <= spent[-1]


@every_switch
def test_stops_by_line_search_where_no_point_is_lower(switch: str) -> None:
    found, _ = minimise(switch, objective(lambda x: (1.0 + 1e3 * float(x[0]), np.full(1, -1e3))), np.zeros(1))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert abs(found.point[0]) < 1e-12


def test_stops_by_line_search_where_a_newton_step_finds_no_lower_point() -> None:
    """There is a wall beyond the first step, which the gradient does not tell of."""

    def function(x: Array) -> tuple[float, Array]:
        return (1.0 - float(x[0]) if x[0] <= 0 else 3.0), -np.ones(1)

    found, steps = minimise("newton", objective(function, hessian=lambda _: identity), -np.ones(1))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert found.point.tolist() == [0.0]
    assert len(steps) == 2


@every_switch
def test_stops_as_separable_when_the_objective_says_so(switch: str) -> None:
    found, _ = minimise(switch, objective(logistic_loss, separable=lambda value: value < 1e-3), np.zeros(1))
    assert found.stopped_by is StoppedBy.SEPARABLE
    assert found.value < 1e-3


@every_switch
def test_a_minimum_of_value_zero_is_reached_quietly(switch: str) -> None:
    """Badly scaled."""
    scales = np.array([0.5, 1.0, 2.0])
    problem = objective(half_square, lambda g: scales * g)
    found, _ = minimise(switch, problem, np.array([1.0, 2.0, 3.0]), tolerance=1e-8)
    assert found.value < 1e-8


@conditioned
def test_a_wall_of_infinity_is_not_entered(switch: str) -> None:
    found, _ = minimise(switch, objective(barrier), np.array([30.0]))
    assert found.point[0] == pytest.approx(1.0, abs=1e-4)


@every_switch
@given(seed=st.integers(0, 999), penalty=st.sampled_from([0.01, 1.0, 100.0]))
def test_random_softmax_problems_reach_the_optimum(switch: str, seed: int, penalty: float) -> None:
    function = multinomial(seed, penalty, n=30, m=3)
    found, _ = minimise(switch, objective(function), np.zeros(9))
    peer = optimize.minimize(function, np.zeros(9), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert found.value <= peer.fun * (1 + 1e-9)


@conditioned
def test_the_preconditioner_made_at_a_point_of_the_way_is_used(switch: str) -> None:
    """The first is hopeless, the refreshed one exact."""
    function, a = quadratic(40, 0, 1e8)
    inverse = np.linalg.inv(a)
    made: list[tuple[Array, float]] = []

    def refreshed(point: Array, cost: float) -> Any:
        made.append((point, cost))
        return lambda g: inverse @ g

    problem = Objective(function, identity, lambda _: lambda v: a @ v, refreshed, lambda value: False)
    found, steps = minimise(switch, problem, np.full(40, 3.0), tolerance=1e-10)
    assert len(made) == 1
    assert 12.0 <= made[0][1] < 30.0
    assert found.value == pytest.approx(1.0, abs=1e-8)
    assert found.evaluations + products_of(steps)[-1] < 60
    plain = objective(function, hessian=lambda _: lambda v: a @ v)
    assert minimise(switch, plain, np.full(40, 3.0), tolerance=1e-10)[0].iterations > found.iterations


@every_switch
def test_functions_are_of_one_parameter_too(switch: str) -> None:
    function: Function = lambda x: (float(np.cosh(x[0])), np.sinh(x))  # noqa: E731
    found, _ = minimise(switch, objective(function), np.array([5.0]))
    assert found.value == pytest.approx(1.0, abs=1e-10)


Array = NDArray[np.float64]


def run(spent: Iterable[int]) -> list[tuple[int, float]]:
    """(evaluations, cost allowed) of every refresh, asked after so many evaluations; points say how many."""
    made: list[tuple[int, float]] = []

    def refreshed(point: Array, cost: float) -> Any:
        made.append((int(point[0]), cost))
        return lambda g: point[0] * g

    refresh = Refresh(Objective(half_square, identity, lambda _: identity, refreshed, lambda value: False))
    assert refresh.precondition is identity
    for evaluations in spent:
        before = len(made)
        refresh.at(np.array([float(evaluations)]), evaluations)
        factor = made[-1][0] if made else 1
        assert refresh.precondition(np.ones(1)).tolist() == [factor]
        assert len(made) - before in (0, 1)
    return made


def test_one_evaluation_at_a_time() -> None:
    assert run(range(1, 600)) == [
        (15, 12.0),
        (45, 22.5),
        (105, 30.0),
        (225, 30.0),
        (345, 30.0),
        (465, 30.0),
        (585, 30.0),
    ]


def test_several_evaluations_at_once() -> None:
    assert run([14, 40, 69, 71, 200, 10_000]) == [(40, 20.0), (71, 30.0), (200, 30.0), (10_000, 30.0)]


@given(st.lists(st.integers(1, 60), max_size=60))
def test_gaps_double_and_costs_stay_in_bounds(tries: list[int]) -> None:
    made = run(np.cumsum(tries))
    gap, last = GAP[0], 0
    for evaluations, cost in made:
        assert evaluations - last >= gap
        assert COST[0] <= cost <= COST[1]
        assert cost == min(max(evaluations / 2, COST[0]), COST[1])
        last, gap = evaluations, min(2 * gap, GAP[1])
    assert sum(tries) - last < gap + 60
