"""Descents through samples reach the optimum of all rows for all samples; check their reports and costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers import growing_samples as growing
from bncli.engine.optimizers.growing_samples import SampleObjective
from bncli.engine.optimizers.objective import Objective, Precondition, Step
from bncli.engine.optimizers.quasi_newton import minimise_newton
from tests.problems import PROBLEMS, counted, half_square, identity, multinomial, objective, quadratic

Array = NDArray[np.float64]


def grown(
    problem: Objective, start: Array, samples: Sequence[SampleObjective], tolerance: float = 1e-12, most: int = 500
) -> tuple[Optimum, list[Step]]:
    steps: list[Step] = []
    found = growing.descend(
        problem,
        start,
        samples,
        method=minimise_newton,
        tolerance=tolerance,
        max_iterations=most,
        report=lambda step, _: steps.append(step),
    )
    return found, steps


def sample(function: object, share: float = 0.25, error: float = 1e-3) -> SampleObjective:
    return SampleObjective(objective(function), share, error)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_sample_like_all_rows_leads_to_their_optimum(name: str) -> None:
    function, n = PROBLEMS[name]
    found, steps = grown(objective(function), np.zeros(n), [sample(function)])
    value, gradient = function(found.point)
    assert found.value == value == steps[-1].value
    assert np.linalg.norm(gradient) < 1e-3 * np.linalg.norm(function(np.zeros(n))[1])
    assert [step.iteration for step in steps] == list(range(found.iterations + 1))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_sample_of_another_optimum_leads_to_that_of_all_rows(seed: int) -> None:
    function, other = multinomial(0, 1.0), multinomial(seed, 1.0)
    misled, _ = grown(objective(function), np.zeros(15), [sample(other)])
    led, _ = grown(objective(function), np.zeros(15), [sample(function)])
    assert misled.value == pytest.approx(led.value, rel=1e-9)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-10])
def test_from_a_point_nearby_a_sample_serves_for_its_curvature_alone(tolerance: float) -> None:
    function, other = multinomial(0, 1.0), multinomial(1, 1.0)
    best, _ = grown(objective(function), np.zeros(15), [sample(function)])
    values, points = counted(other)
    start = best.point + 0.1
    steps: list[Step] = []
    found = growing.descend_near(
        objective(function),
        start,
        SampleObjective(replace(objective(other), value_and_gradient=values), 0.25, 1e-3),
        method=minimise_newton,
        tolerance=tolerance,
        max_iterations=500,
        report=lambda step, _: steps.append(step),
    )
    assert not points
    assert steps[0].value == function(start)[0]
    assert best.value * (1 - 1e-12) <= found.value <= best.value * (1 + tolerance)
    assert found.evaluations == len(steps)
    # more steps for a smaller tolerance only
    assert found.iterations <= (2 if tolerance == 1e-3 else 25)


def test_where_a_sample_leads_away_the_start_is_kept() -> None:
    def wrong(x: Array) -> tuple[float, Array]:
        value, gradient = half_square(x - 100.0)
        return value + 1.0, gradient

    function, _ = quadratic(4, 0, 10.0)
    found, steps = grown(objective(function), np.zeros(4), [sample(wrong)])
    assert steps[0].value == function(np.zeros(4))[0]
    assert all(later.value < earlier.value for earlier, later in itertools.pairwise(steps))
    assert found.value == pytest.approx(1.0, rel=1e-9)


def test_a_curvature_that_tells_nothing_is_given_up() -> None:
    function, _ = quadratic(20, 3, 1e4)
    round_one = objective(function, hessian=lambda _: lambda v: 1e4 * v)
    costs: list[float] = []
    points: list[Array] = []

    def refreshed(point: Array, cost: float) -> Precondition:
        costs.append(cost)
        return identity

    def hessian(point: Array) -> object:
        points.append(point)
        return objective(function).hessian(point)

    whole = replace(objective(function), refreshed=refreshed, hessian=hessian)  # type: ignore[arg-type]
    found, steps = grown(whole, np.full(20, 50.0), [SampleObjective(round_one, 0.1, 1e6)])
    assert costs  # of all rows a preconditioner is made only where the sample is given up
    assert points  # and their Hessian takes its place
    assert found.value == pytest.approx(1.0, rel=1e-9)
    assert [step.iteration for step in steps] == list(range(found.iterations + 1))
    assert steps[-1].evaluations == found.evaluations
    assert steps[-1].gradient_evaluations <= found.evaluations + found.products


def test_work_is_told_in_passes_over_all_rows() -> None:
    function, _ = PROBLEMS["softmax"]
    whole, points = counted(function)
    part, of_sample = counted(function)
    products: list[Array] = []
    plain = objective(function)

    def hessian(point: Array) -> object:
        product = plain.hessian(point)

        def counting(v: Array) -> Array:
            products.append(v)
            return product(v)

        return counting

    sampled = replace(objective(part), hessian=hessian)  # type: ignore[arg-type]
    found, steps = grown(replace(plain, value_and_gradient=whole), np.zeros(15), [SampleObjective(sampled, 0.25, 1e-3)])
    assert found.evaluations == len(points) + math.ceil(len(of_sample) / 4)
    assert found.products == math.ceil(len(products) / 4)
    assert (steps[0].evaluations, steps[0].gradient_evaluations) == (1, 1)
    assert steps[-1].evaluations == found.evaluations
    assert steps[-1].gradient_evaluations <= found.evaluations + found.products


def test_the_cap_on_iterations_ends_it() -> None:
    function, n = PROBLEMS["softmax, weak penalty"]
    found, _ = grown(objective(function), np.zeros(n), [sample(function, error=10.0)], most=2)
    assert found.iterations == 2
    assert found.stopped_by is StoppedBy.MAX_ITERATIONS


def test_every_sample_starts_where_the_last_one_ended() -> None:
    function, _ = quadratic(3, 0, 5.0)
    asked = [counted(function) for _ in range(2)]
    samples = [SampleObjective(objective(one), share, 1e-6) for (one, _), share in zip(asked, (0.1, 0.4), strict=True)]
    found, _ = grown(objective(function), np.full(3, 9.0), samples)
    first, second = (calls for _, calls in asked)
    assert function(second[0])[0] == min(function(p)[0] for p in first)
    assert found.value == pytest.approx(1.0)
