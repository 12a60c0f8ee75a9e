"""Compare L-BFGS and Newton steps with scipy and dense algebra; check stops, reports and refreshes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.preconditioning import RowsPrecondition
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers import quasi_newton
from bncli.engine.optimizers.objective import FIRST_GAP, Objective, Step
from bncli.engine.optimizers.quasi_newton import (
    COST,
    LARGEST_GAP,
    TRUNCATION,
    Descent,
    Pairs,
    PreconditionedPairs,
    Refresh,
    minimise_lbfgs,
    minimise_newton,
    newton_direction,
)
from bncli.engine.parameters.optimization import ParameterSpace, Problem
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.problems import (
    PROBLEMS,
    Function,
    barrier,
    counted,
    differences,
    half_square,
    identity,
    logistic_loss,
    minimise,
    multinomial,
    objective,
    quadratic,
    rosenbrock,
)
from tests.spaces import RICH_SPACES, SPACES, catch, fit, how
from tests.sweeps import every_pair

Array = NDArray[np.float64]

SWITCHES = {"quasi-newton": math.inf, "newton": 1, "both": 12, "published": math.inf, "published, then newton": 12}
"""The number of evaluations from which on steps are Newton's; the published ones are without preconditioner."""
every_switch = pytest.mark.parametrize("switch", SWITCHES)
conditioned = pytest.mark.parametrize("switch", [word for word in SWITCHES if not word.startswith("published")])


def descend(switch: str, problem: Objective, start: Array, **options: Any) -> tuple[Optimum, list[Step]]:
    """Return the optimum, by default to high precision, and the steps reported."""
    steps: list[Step] = []
    settings = {"tolerance": 1e-12, "max_iterations": 2000, **options}
    run = Descent(problem, start, report=lambda step, _: steps.append(step), **settings)
    preconditioner = "off" if switch.startswith("published") else "on"
    return quasi_newton.descend(run, SWITCHES[switch], preconditioner), steps


def products_of(steps: list[Step]) -> list[int]:
    """Return the Hessian products counted by each report."""
    return [step.gradient_evaluations - step.evaluations for step in steps]


@pytest.mark.slow
@every_switch
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("preconditioned", [False, True])
def test_as_low_as_scipy_gets(switch: str, name: str, preconditioned: bool) -> None:
    function, n = PROBLEMS[name]
    scales = np.geomspace(0.5, 2, n)
    problem = objective(function, (lambda g: scales * g) if preconditioned else identity)
    found, _steps = descend(switch, problem, np.full(n, -0.5))
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
    found, _ = descend(switch, problem, np.full(n, 3.0), tolerance=1e-9)
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

    found, steps = descend(switch, objective(counting, hessian=hessian), np.zeros(n))
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
    _found, steps = descend(switch, objective(function), np.zeros(n))
    for before, after in itertools.pairwise(steps):
        assert (products_of([after]) > products_of([before])) is (before.evaluations >= SWITCHES[switch])


@every_switch
def test_the_start_is_left_alone_and_runs_are_equal_to_the_bit(switch: str) -> None:
    start = np.full(15, 0.25)
    first, second = (descend(switch, objective(multinomial(0, 1.0)), start)[0] for _ in range(2))
    assert start.tolist() == [0.25] * 15
    assert first.point.tobytes() == second.point.tobytes()


@every_switch
def test_stops_by_gradient_where_the_start_is_the_optimum(switch: str) -> None:
    found, _ = descend(switch, objective(lambda x: (1.0 + float(x @ x), 2 * x)), np.zeros(3))
    assert (found.stopped_by, found.iterations, found.evaluations) == (StoppedBy.GRADIENT, 0, 1)


@every_switch
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
def test_stops_by_tolerance_where_iterations_gain_little(switch: str, name: str, tolerance: float) -> None:
    """Either the last quasi-Newton iterations together gain little, or the last Newton iterations; not earlier."""
    function, n = PROBLEMS[name]
    found, steps = descend(switch, objective(function), np.full(n, -0.5), tolerance=tolerance)
    small = [end for end in range(1, len(steps)) if _gains_little(steps[: end + 1], SWITCHES[switch], tolerance)]
    assert small == [len(steps) - 1] or (small == [] and found.stopped_by is StoppedBy.GRADIENT)


def _gains_little(steps: list[Step], newton_from: float, tolerance: float) -> bool:
    """Return whether the descent ends with the last of these steps; the two kinds do not count together."""
    switch = next((i for i, step in enumerate(steps) if step.evaluations >= newton_from), len(steps))
    is_newton = switch < len(steps) - 1
    start = len(steps) - 1 - (quasi_newton.NEWTON_WINDOW if is_newton else quasi_newton.WINDOW)
    if start < (switch if is_newton else 0):
        return False
    return steps[start].value - steps[-1].value <= tolerance * steps[-1].value


def test_a_small_step_before_the_first_newton_step_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are nine tiny steps, and the switch to Newton steps prevents a stop after the last one."""
    calls: list[Array] = []

    def function(x: Array) -> tuple[float, Array]:
        calls.append(x)
        return 1.0 + 50 * float(x @ x), 100 * x

    def precondition(g: Array) -> Array:
        return (1e-5 if len(calls) < 6 else 1.0) * g

    monkeypatch.setitem(SWITCHES, "soon", 6)
    found, steps = descend("soon", objective(function, precondition), np.ones(3), tolerance=1e-2)
    assert products_of(steps)[-1] > 0
    assert found.value == pytest.approx(1.0, abs=1e-6)


@every_switch
@pytest.mark.parametrize("cap", [0, 1, 7])
def test_stops_at_the_cap(switch: str, cap: int) -> None:
    found, steps = descend(switch, objective(rosenbrock), np.full(8, -0.5), max_iterations=cap)
    assert found.stopped_by is StoppedBy.MAX_ITERATIONS
    assert found.iterations == cap == len(steps) - 1


def test_evaluations_and_products_are_capped_too() -> None:
    """With twenty curvatures of many magnitudes an iteration takes many products."""
    function, a = quadratic(20, 1, 1e8)
    problem = objective(function, hessian=lambda _: lambda v: a @ v)
    found, steps = descend("newton", problem, np.full(20, -0.5), max_iterations=8)
    assert found.stopped_by is StoppedBy.MAX_ITERATIONS
    assert found.iterations < 8
    spent = [step.gradient_evaluations for step in steps]
    assert spent[-2] < quasi_newton.PASSES * 8 <= spent[-1]


@every_switch
def test_stops_by_line_search_where_no_point_is_lower(switch: str) -> None:
    found, _ = descend(switch, objective(lambda x: (1.0 + 1e3 * float(x[0]), np.full(1, -1e3))), np.zeros(1))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert abs(found.point[0]) < 1e-12


def test_stops_by_line_search_where_a_newton_step_finds_no_lower_point() -> None:
    """Beyond the first step there is a wall, of which the gradient gives no sign."""

    def function(x: Array) -> tuple[float, Array]:
        return (1.0 - float(x[0]) if x[0] <= 0 else 3.0), -np.ones(1)

    found, steps = descend("newton", objective(function, hessian=lambda _: identity), -np.ones(1))
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert found.point.tolist() == [0.0]
    assert len(steps) == 2


@every_switch
def test_stops_as_separable_when_the_objective_says_so(switch: str) -> None:
    found, _ = descend(switch, objective(logistic_loss, separable=lambda value: value < 1e-3), np.zeros(1))
    assert found.stopped_by is StoppedBy.SEPARABLE
    assert found.value < 1e-3


@every_switch
def test_a_minimum_of_value_zero_is_reached_quietly(switch: str) -> None:
    """The problem is badly scaled."""
    scales = np.array([0.5, 1.0, 2.0])
    problem = objective(half_square, lambda g: scales * g)
    found, _ = descend(switch, problem, np.array([1.0, 2.0, 3.0]), tolerance=1e-8)
    assert found.value < 1e-8


@conditioned
def test_a_wall_of_infinity_is_not_entered(switch: str) -> None:
    found, _ = descend(switch, objective(barrier), np.array([30.0]))
    assert found.point[0] == pytest.approx(1.0, abs=1e-4)


@every_switch
@given(seed=st.integers(0, 999), penalty=st.sampled_from([0.01, 1.0, 100.0]))
def test_random_softmax_problems_reach_the_optimum(switch: str, seed: int, penalty: float) -> None:
    function = multinomial(seed, penalty, n=30, m=3)
    found, _ = descend(switch, objective(function), np.zeros(9))
    peer = optimize.minimize(function, np.zeros(9), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert found.value <= peer.fun * (1 + 1e-9)


@conditioned
def test_the_preconditioner_made_at_a_point_of_the_way_is_used(switch: str) -> None:
    """The first preconditioner is useless, the refreshed one exact."""
    function, a = quadratic(40, 0, 1e8)
    inverse = np.linalg.inv(a)
    made: list[tuple[Array, float]] = []

    def refreshed(point: Array, cost: float) -> Any:
        made.append((point, cost))
        return lambda g: inverse @ g

    problem = Objective(function, identity, lambda _: lambda v: a @ v, refreshed, lambda value: False)
    found, steps = descend(switch, problem, np.full(40, 3.0), tolerance=1e-10)
    assert len(made) == 1
    assert 7.5 <= made[0][1] < 30.0
    assert found.value == pytest.approx(1.0, abs=1e-8)
    assert found.evaluations + products_of(steps)[-1] < 60
    plain = objective(function, hessian=lambda _: lambda v: a @ v)
    assert descend(switch, plain, np.full(40, 3.0), tolerance=1e-10)[0].iterations > found.iterations


@every_switch
def test_functions_are_of_one_parameter_too(switch: str) -> None:
    function: Function = lambda x: (float(np.cosh(x[0])), np.sinh(x))  # noqa: E731
    found, _ = descend(switch, objective(function), np.array([5.0]))
    assert found.value == pytest.approx(1.0, abs=1e-10)


Array = NDArray[np.float64]


def run(spent: Iterable[int]) -> list[tuple[int, float]]:
    """Return (evaluations, cost allowed) of every refresh; it is called with these totals, and a point is its total."""
    made: list[tuple[int, float]] = []

    def refreshed(point: Array, cost: float) -> Any:
        made.append((int(point[0]), cost))
        return lambda g: point[0] * g

    refresh = Refresh(Objective(half_square, identity, lambda _: identity, refreshed, lambda value: False))
    assert refresh.precondition is identity
    for evaluations in spent:
        before = len(made)
        refresh.update(np.array([float(evaluations)]), evaluations)
        factor = made[-1][0] if made else 1
        assert refresh.precondition(np.ones(1)).tolist() == [factor]
        assert len(made) - before in (0, 1)
    return made


def test_one_evaluation_at_a_time() -> None:
    assert run(range(1, 600)) == [
        (15, 7.5),
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
    gap, last = FIRST_GAP, 0
    for evaluations, cost in made:
        assert evaluations - last >= gap
        assert COST[0] <= cost <= COST[1]
        assert cost == min(max(evaluations / 2, COST[0]), COST[1])
        last, gap = evaluations, min(2 * gap, LARGEST_GAP)
    assert sum(tries) - last < gap + 60


def random_pairs(n: int, count: int, seed: int) -> tuple[list[tuple[Array, Array]], Array]:
    """Return steps, the changes of the gradient of a bowl along them, and a positive definite matrix."""
    rng = np.random.default_rng(seed)
    root, guess = rng.normal(size=(n, n)), rng.normal(size=(n, n))
    hessian = root @ root.T + 0.1 * np.eye(n)
    steps = rng.normal(size=(count, n))
    return [(s, hessian @ s) for s in steps], guess @ guess.T + 0.1 * np.eye(n)


def dense(pairs: list[tuple[Array, Array]], guess: Array, *, scaled: bool) -> Array:
    """Return H after H <- (I - rho s y') H (I - rho y s') + rho s s' for every pair, the oldest first."""
    h = guess.copy()
    if pairs and scaled:
        s, y = pairs[-1]
        h *= (s @ y) / (y @ guess @ y)
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        left = np.eye(len(s)) - rho * np.outer(s, y)
        h = left @ h @ left.T + rho * np.outer(s, s)
    return h


@pytest.mark.parametrize("kind", [Pairs, PreconditionedPairs])
@given(n=st.integers(1, 8), count=st.integers(0, 6), seed=st.integers(0, 999))
def test_it_is_the_bfgs_formula(kind: type[Pairs], n: int, count: int, seed: int) -> None:
    listed, guess = random_pairs(n, count, seed)
    memory = kind()
    for pair in listed:
        memory.add(*pair)
    assert len(memory) == count
    expected = dense(listed, guess, scaled=kind is PreconditionedPairs)
    found = np.stack([memory.times_inverse_hessian(lambda g: guess @ g, unit) for unit in np.eye(n)], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    if listed:
        s, y = listed[-1]
        np.testing.assert_allclose(
            memory.times_inverse_hessian(lambda g: guess @ g, y), s, atol=1e-7 * np.linalg.norm(s)
        )


def test_only_the_last_pairs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, guess = random_pairs(5, quasi_newton.HISTORY + 7, 0)
    everything, last = Pairs(), Pairs()
    for pair in listed:
        everything.add(*pair)
    for pair in listed[7:]:
        last.add(*pair)
    assert len(everything) == quasi_newton.HISTORY
    g = np.arange(5.0)
    one, other = (memory.times_inverse_hessian(lambda v: guess @ v, g) for memory in (everything, last))
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("of_rows", [False, True])
def test_along_a_path_each_direction_takes_one_product(of_rows: bool) -> None:
    """As many as there are pairs for another preconditioner, or one of all of them."""
    products: list[tuple[int, ...]] = []

    def counted(matrix: Array) -> Callable[[Array], Array]:
        def multiply(g: Array) -> Array:
            products.append(g.shape)
            return g @ matrix

        return RowsPrecondition(multiply) if of_rows else multiply

    n, most = 6, 4
    listed, guess = random_pairs(n, 7, 2)
    first, second = counted(guess), counted(spd(n, 3, 10.0))
    memory, gradient = PreconditionedPairs(most), np.ones(n)
    one = (1, n) if of_rows else (n,)
    for i, (s, y) in enumerate(listed):
        precondition = first if i < 5 else second
        products.clear()
        found = memory.times_inverse_hessian(precondition, gradient)
        if i != 5:
            assert products == [one]
        else:
            assert products == [one, (most, n)] if of_rows else [one] * (1 + most)
        of_pairs = PreconditionedPairs(most)
        for pair in listed[:i]:
            of_pairs.add(*pair)
        expected = of_pairs.times_inverse_hessian(precondition, gradient)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
        after = gradient + y
        memory.add(s, y, gradient, after)
        gradient = after


def test_a_path_that_is_left_does_not_matter() -> None:
    """The gradient is not the one where the last step ended."""
    (one, other), guess = random_pairs(4, 2, 1)
    memory, fresh, g = PreconditionedPairs(), PreconditionedPairs(), np.arange(4.0)
    multiply = guess.__matmul__
    memory.times_inverse_hessian(multiply, g)
    for pair in (one, other):
        memory.add(*pair, g, g + pair[1])
        fresh.add(*pair)
    np.testing.assert_allclose(
        memory.times_inverse_hessian(multiply, g), fresh.times_inverse_hessian(multiply, g), rtol=1e-9
    )


def test_what_is_forgotten_leaves_the_guess() -> None:
    listed, guess = random_pairs(4, 3, 1)
    memory = Pairs()
    for pair in listed:
        memory.add(*pair)
    memory.clear()
    assert len(memory) == 0
    np.testing.assert_array_equal(memory.times_inverse_hessian(lambda g: guess @ g, np.ones(4)), guess @ np.ones(4))


@pytest.mark.parametrize("y", [np.array([-1.0, 0.0]), np.zeros(2), np.array([0.0, 3.0]), np.array([1e-14, 1.0])])
def test_pairs_without_curvature_are_not_kept(y: Array) -> None:
    memory = Pairs()
    memory.add(np.array([1.0, 0.0]), y)
    assert len(memory) == 0


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e60])
def test_the_units_of_a_pair_do_not_matter(scale: float) -> None:
    memory = Pairs()
    memory.add(scale * np.array([1.0, 0.0]), scale * np.array([1.0, 1.0]))
    assert len(memory) == 1


def test_pairs_leave_the_gradient_alone() -> None:
    listed, _ = random_pairs(4, 3, 1)
    memory, g = Pairs(), np.ones(4)
    for pair in listed:
        memory.add(*pair)
    memory.times_inverse_hessian(lambda v: v, g)
    assert g.tolist() == [1.0] * 4


def spd(n: int, seed: int, condition: float) -> Array:
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    return np.asarray(q * np.geomspace(1.0, condition, n) @ q.T)


def times(matrix: Array) -> Any:
    return lambda v: matrix @ v


@given(st.integers(1, 12), st.integers(0, 99), st.floats(1, 1e4))
def test_with_enough_steps_it_is_newtons_direction(n: int, seed: int, condition: float) -> None:
    h, q = spd(n, seed, condition), spd(n, seed + 1, 10.0)
    g = np.random.default_rng(seed).normal(size=n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quasi_newton, "TRUNCATION", 1e-9)
        d, used = newton_direction(times(h), times(q), g)
    np.testing.assert_allclose(d, np.linalg.solve(h, -g), rtol=1e-5, atol=1e-6 * np.linalg.norm(g))
    assert 1 <= used <= quasi_newton.MAX_PRODUCTS


@given(st.integers(1, 12), st.integers(0, 99), st.floats(1, 1e6))
def test_with_the_exact_inverse_one_product_is_enough(n: int, seed: int, condition: float) -> None:
    h = spd(n, seed, condition)
    g = np.random.default_rng(seed).normal(size=n)
    d, used = newton_direction(times(h), times(np.linalg.inv(h)), g)
    assert used == 1
    np.testing.assert_allclose(h @ d, -g, atol=1e-6 * np.linalg.norm(g))


@given(st.integers(2, 8), st.integers(0, 99), st.floats(1, 100))
def test_it_ends_at_the_first_residual_that_is_small(n: int, seed: int, condition: float) -> None:
    h, q = spd(n, seed, condition), spd(n, seed + 1, 10.0)
    g = np.random.default_rng(seed).normal(size=n)
    d, used = newton_direction(times(h), times(q), g)
    size = [_relative_residual(h, q, g, step) for step in _plain_conjugate_gradients(h, q, g, used)]
    assert _relative_residual(h, q, g, d) <= TRUNCATION + 1e-6
    assert all(s > TRUNCATION - 1e-6 for s in size[:-1])
    assert size[-1] == pytest.approx(_relative_residual(h, q, g, d), rel=1e-4, abs=1e-6)


def _relative_residual(h: Array, q: Array, g: Array, d: Array) -> float:
    r = -g - h @ d
    return float(np.sqrt((r @ q @ r) / (g @ q @ g)))


def _plain_conjugate_gradients(h: Array, q: Array, g: Array, n_steps: int) -> list[Array]:
    """Return the minimisers of the model over growing Krylov spaces, by dense least squares in the metric of H."""
    basis, found, v = np.zeros((len(g), 0)), [], q @ g
    for _ in range(n_steps):
        v -= basis @ (basis.T @ v)
        v -= basis @ (basis.T @ v)
        basis = np.column_stack([basis, v / np.linalg.norm(v)])
        found.append(basis @ np.linalg.solve(basis.T @ h @ basis, -basis.T @ g))
        v = q @ (h @ basis[:, -1])
    return found


@given(st.integers(1, 10), st.integers(0, 10), st.integers(0, 99), st.integers(1, 5))
def test_it_always_leads_down_and_lowers_the_model(n: int, rank: int, seed: int, most: int) -> None:
    """Hessians are semidefinite of any rank, and the number of products may be small."""
    rng = np.random.default_rng(seed)
    root, q = rng.normal(size=(n, rank)), spd(n, seed, 100.0)
    h, g = root @ root.T, rng.normal(size=n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quasi_newton, "MAX_PRODUCTS", most)
        d, used = newton_direction(times(h), times(q), g)
    assert 1 <= used <= most
    assert np.isfinite(d).all()
    assert float(d @ g) < 0
    if rank:
        assert float(g @ d + d @ h @ d / 2) < 1e-9


def test_without_curvature_it_is_the_preconditioned_gradient() -> None:
    g = np.array([1.0, -2.0])
    for h in (np.zeros((2, 2)), -np.eye(2)):
        d, used = newton_direction(times(h), lambda v: 3.0 * v, g)
        assert used == 1
        assert d.tolist() == [-3.0, 6.0]


def test_curvature_that_vanishes_later_ends_the_way() -> None:
    """Half of the gradient lies in the range of H and half in its null space."""
    h, g = np.diag([1.0, 0.0]), np.array([1.0, 1.0])
    d, used = newton_direction(times(h), identity, g)
    assert used == 2
    assert float(d @ g) < 0
    np.testing.assert_allclose(d, [-2.0, -2.0])


@pytest.mark.parametrize("enough", [1e-2, 1e-3, 1e-4])
def test_it_ends_when_further_products_gain_no_more_than_enough(enough: float) -> None:
    """Without a preconditioner, the residual of an ill-conditioned model shrinks long after the model has."""
    h = spd(300, 0, 1e6)
    # most of the gradient is along the flattest direction, which conjugate gradients reach last
    g = h @ np.random.default_rng(1).normal(size=300) / 1e6 + 100.0 * np.linalg.eigh(h)[1][:, 0]
    g /= np.linalg.norm(g)
    d, used = newton_direction(times(h), identity, g, enough)
    path = [float(g @ p + p @ h @ p / 2) for p in _plain_conjugate_gradients(h, np.eye(300), g, used)]
    falls = -np.diff([0.0, *path])
    assert used < newton_direction(times(h), identity, g)[1]
    assert sum(falls[-quasi_newton.WINDOW :]) <= enough * 1.001
    assert all(sum(falls[i - quasi_newton.WINDOW : i]) > enough * 0.999 for i in range(quasi_newton.WINDOW, used))
    assert float(d @ g) < 0


def test_a_newton_direction_leaves_the_gradient_alone() -> None:
    g = np.array([1.0, -2.0])
    newton_direction(times(spd(2, 0, 50.0)), identity, g)
    assert g.tolist() == [1.0, -2.0]


def test_products_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Array] = []
    h = spd(30, 0, 1e8)

    def product(v: Array) -> Array:
        calls.append(v)
        return h @ v

    for most in (1, 3, 200):
        monkeypatch.setattr(quasi_newton, "MAX_PRODUCTS", most)
        calls.clear()
        _, used = newton_direction(product, identity, np.ones(30))
        assert used == len(calls) <= most


@pytest.mark.parametrize("name", PROBLEMS)
def test_as_low_as_scipy_gets_without_a_hessian(name: str) -> None:
    function, n = PROBLEMS[name]
    found, steps = minimise(minimise_lbfgs, objective(function, hessian=fail_if_called), np.full(n, -0.5))
    peer = optimize.minimize(
        function, np.full(n, -0.5), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    )
    assert found.value <= peer.fun + 1e-8 * abs(peer.fun)
    assert all(step.gradient_evaluations == step.evaluations for step in steps)
    assert found.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)


def test_the_preconditioner_is_refreshed_while_the_run_lasts() -> None:
    refreshed: list[tuple[bytes, float]] = []

    def refresh(point: Array, cost: float) -> Any:
        refreshed.append((point.tobytes(), cost))
        return identity

    points: list[bytes] = []
    problem = Objective(rosenbrock, identity, fail_if_called, refresh, lambda value: False)
    start = np.full(8, -0.5)
    found = minimise_lbfgs(
        problem, start, tolerance=1e-12, max_iterations=2000, report=lambda step, p: points.append(p.tobytes())
    )
    assert found.evaluations >= 45
    assert len(refreshed) == sum(found.evaluations >= n for n in (15, 45, 105, 225, 345))
    assert all(point in points for point, _ in refreshed)
    assert refreshed[0][1] == 7.5


def test_a_tolerance_is_a_share_of_no_less_than_what_is_negligible() -> None:
    """(p - 1)^4 falls to 0, so no share of it is ever reached."""

    def quartic(p: Array) -> tuple[float, Array]:
        return float(np.sum((p - 1.0) ** 4)), 4.0 * (p - 1.0) ** 3

    exact, soon = (
        minimise(minimise_lbfgs, replace(objective(quartic), negligible=negligible), np.full(3, 3.0), tolerance=1e-3)[0]
        for negligible in (0.0, 1e-2)
    )
    assert soon.evaluations < exact.evaluations
    assert exact.value < soon.value < 1e-3


TAN = Dag(((), (0,), (0,)), (0, 1, 2))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take Newton steps from the first one on."""
    monkeypatch.setattr(quasi_newton, "NEWTON_FROM", 1)


def dense_hessian(function: Any, point: Array) -> Array:
    """Return the Hessian at a point as a matrix."""
    product = differences(function)(point)
    matrix = np.stack([product(unit) for unit in np.eye(len(point))], axis=1)
    return np.asarray((matrix + matrix.T) / 2)


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", ["trust-ncg", "Newton-CG"])
def test_as_low_as_scipys_newton_methods(name: str, method: str) -> None:
    function, n = PROBLEMS[name]
    start = np.full(n, -0.5)
    found, steps = minimise(minimise_newton, objective(function), start)
    options = {"gtol": 1e-9} if method == "trust-ncg" else {"xtol": 1e-12}
    peer = optimize.minimize(
        function, start, jac=True, hess=lambda p: dense_hessian(function, p), method=method, options=options
    )
    assert found.value <= peer.fun + 1e-9 * abs(peer.fun)
    assert found.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)
    assert steps[-1].gradient_evaluations > found.evaluations


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_evaluation_and_product_is_told(name: str) -> None:
    function, n = PROBLEMS[name]
    counting, calls = counted(function)
    products: list[Array] = []

    def hessian(point: Array) -> Any:
        product = differences(function)(point)
        return lambda v: [products.append(v), product(v)][1]

    found, steps = minimise(minimise_newton, objective(counting, hessian=hessian), np.full(n, -0.5))
    assert steps[-1].evaluations == found.evaluations == len(calls)
    assert steps[-1].gradient_evaluations == len(calls) + len(products)


@pytest.mark.parametrize("name", PROBLEMS)
def test_until_it_takes_over_it_is_lbfgs(name: str) -> None:
    function, n = PROBLEMS[name]
    found, steps = minimise(minimise_newton, objective(function), np.full(n, -0.5))
    expected, before = minimise(minimise_lbfgs, objective(function), np.full(n, -0.5))
    early = [step for step in before if step.evaluations < quasi_newton.NEWTON_FROM]
    assert steps[: len(early)] == early
    if len(early) == len(before):
        assert found.point.tobytes() == expected.point.tobytes()


def nearly_separable(n_labels: int) -> Dataset:
    """Return rows whose first attribute equals the class except for one row in two hundred; some values are rare."""
    rng = np.random.default_rng(0)
    data = random_dataset(600, (4, 2, 5), n_labels, seed=3)
    first = np.where(rng.random(600) < 0.005, rng.integers(0, 4, 600), data.labels)
    rare = np.where(rng.random(600) < 0.97, 0, data.codes[2])
    return Dataset(data.schema, (first.astype(np.uint8), data.codes[1], rare.astype(np.uint8)), data.labels)


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("n_labels", [2, 3, 4])
@pytest.mark.parametrize("name", ["discriminative", "weighted 4", "lr"])
def test_nearly_separable_rows_with_a_small_penalty_reach_what_scipy_reaches(name: str, n_labels: int) -> None:
    data, penalty = nearly_separable(n_labels), 0.01
    caught = catch(name, data, TAN)
    learnt = fit(name, data, TAN, init="zero", optimizer="newton", penalty=penalty, tolerance=1e-10)
    told: list[Any] = []
    fit(name, data, TAN, init="zero", optimizer="newton", penalty=penalty, tolerance=1e-10, watch=told.append)
    found = told[-1].penalty - told[-1].cll
    problem = Problem(ParameterSpace(caught.likelihood, caught.space), how(init="zero", penalty=penalty))
    peer = optimize.minimize(
        problem.value_and_gradient,
        problem.start,
        jac=True,
        hessp=lambda p, v: problem.objective.hessian(p)(v),
        method="trust-ncg",
        options={"gtol": 1e-7, "maxiter": 500},
    )
    assert found == pytest.approx(peer.fun, rel=1e-8)
    assert learnt.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)
    cells = np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)
    slow, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, cells)
    assert learnt.cll == pytest.approx(slow, rel=1e-9)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("name", "penalty", "n_labels"), every_pair([*SPACES], [0.01, 1.0], [2, 3]))
def test_the_same_optimum_as_lbfgs(name: str, penalty: float, n_labels: int) -> None:
    data = random_dataset(150, (3, 2, 4), n_labels, weighted=True, seed=2)
    told: dict[str, Any] = {}
    for optimizer in ("lbfgs", "newton"):
        events: list[Any] = []
        fit(name, data, TAN, penalty=penalty, optimizer=optimizer, tolerance=1e-11, watch=events.append)
        told[optimizer] = events[-1]
    one, other = (event.cll - event.penalty for event in told.values())
    assert one == pytest.approx(other, rel=1e-8)
    assert told["lbfgs"].gradient_evaluations == told["lbfgs"].cll_evaluations
    assert told["newton"].gradient_evaluations > told["newton"].cll_evaluations


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("n_labels", [2, 3, 12])
def test_without_a_penalty_all_rich_spaces_reach_one_optimum(n_labels: int) -> None:
    data = dense_dataset((2, 3, 2), n_labels, copies=6)
    clls = [fit(name, data, TAN, optimizer="newton", init="zero").cll for name in RICH_SPACES]
    assert max(clls) - min(clls) <= 1e-8 * abs(max(clls))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", SPACES)
def test_separable_classes_are_seen(name: str) -> None:
    learnt = fit(name, random_dataset(3, (3, 2, 4), 2), TAN, init="zero", optimizer="newton")
    assert learnt.stopped_by is StoppedBy.SEPARABLE
    assert all(np.isfinite(w).all() for w in learnt.tables.weights)


def fail_if_called(*_: Any) -> Any:
    raise AssertionError("only value and gradient are needed")


def plain(
    function: Any, start: Array, method: Any = minimise_lbfgs, **options: Any
) -> tuple[Any, list[Step], list[Array]]:
    """Return the result without a preconditioner, the steps reported, and the points."""
    steps: list[Step] = []
    points: list[Array] = []

    def report(step: Step, point: Array) -> None:
        steps.append(step)
        points.append(point.copy())

    hessian = fail_if_called if method is minimise_lbfgs else objective(function).hessian
    problem = Objective(function, fail_if_called, hessian, fail_if_called, lambda value: False)
    settings = {"tolerance": 1e-12, "max_iterations": 2000, **options}
    return method(problem, start, preconditioner="off", report=report, **settings), steps, points


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
    _, _, again = plain(function, np.full(n, -0.5), method=minimise_newton, max_iterations=15)
    np.testing.assert_array_equal(np.stack(points), np.stack(again))


def test_directions_are_those_of_the_formula() -> None:
    """H <- (I - rho s y') H (I - rho y s') + rho s s' over the last pairs, starting from s'y / y'y."""
    _, steps, x = plain(rosenbrock, np.full(6, -0.5))
    g = [rosenbrock(point)[1] for point in x]
    assert len(x) > quasi_newton.SCIPY_PAIRS + 5
    for k in range(len(x) - 8):  # after that rounding is all that is left of some steps
        pairs = [(x[j + 1] - x[j], g[j + 1] - g[j]) for j in range(max(0, k - quasi_newton.SCIPY_PAIRS), k)]
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


@pytest.mark.parametrize("method", [minimise_lbfgs, minimise_newton])
@pytest.mark.parametrize("name", PROBLEMS)
def test_as_low_as_with_a_preconditioner(name: str, method: Any) -> None:
    function, n = PROBLEMS[name]
    found, steps, _ = plain(function, np.full(n, -0.5), method)
    other, _ = minimise(method, objective(function), np.full(n, -0.5))
    assert found.value == pytest.approx(other.value, rel=1e-9)
    assert [step.iteration for step in steps] == list(range(found.iterations + 1))
    values = [step.value for step in steps]
    assert all(after <= before + 1e-13 * abs(before) for before, after in itertools.pairwise(values))


def test_newton_ends_near_the_optimum_where_curvature_is_small() -> None:
    """By the gradient alone the run would stop too early, at 1e-7 or more above the optimum.

    Runs that continue end within 1e-9, with every kernel of the linear algebra.
    """
    function, _ = quadratic(60, 3, 1e6)

    def flat(x: Array) -> tuple[float, Array]:
        value, gradient = function(x)
        return 1.0 + 1e-7 * (value - 1.0), 1e-7 * gradient

    found, steps, _ = plain(flat, np.full(60, 3.0), minimise_newton, tolerance=1e-9)
    assert steps[-1].gradient_evaluations > steps[-1].evaluations
    assert found.value == pytest.approx(1.0, abs=1e-8)


def test_a_minimum_reached_exactly_has_no_gradient_left() -> None:
    found, _, _ = plain(half_square, np.array([3.0, 4.0]), tolerance=0.0)
    assert (found.value, found.stopped_by) == (0.0, StoppedBy.GRADIENT)


def test_values_that_fall_no_further_end_the_search() -> None:
    """A decrease below the last digit of the value is lost in rounding, though the gradient shows it."""
    scales = np.diag([1.0, 1e-7, 1e-8])

    def rounded(x: Array) -> tuple[float, Array]:
        return float(np.float32(1.0 + x @ scales @ x)), 2 * scales @ x

    found, _, _ = plain(rounded, np.array([3.0, -1.0, 2.0]), tolerance=0.0)
    assert found.stopped_by is StoppedBy.LINE_SEARCH
    assert found.value == pytest.approx(1.0, abs=1e-6)


def test_a_wall_of_infinity_is_not_entered_and_what_was_reached_stays() -> None:
    """scipy gives up in front of a wall; no likelihood has one."""
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

    monkeypatch.setattr(optimize, "minimize", pretended)
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


def test_on_is_the_default() -> None:
    asked: list[Array] = []

    def precondition(g: Array) -> Array:
        asked.append(g)
        return identity(g)

    minimise(minimise_lbfgs, objective(rosenbrock, precondition), np.full(2, -0.5))
    assert asked
