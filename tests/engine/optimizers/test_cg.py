"""Nash's conjugate gradients: counts by hand, and step by step against the algorithm written out plainly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import cg
from tests.problems import PROBLEMS, Function, minimise, objective

Array = NDArray[np.float64]


def test_a_bowl_in_one_dimension_by_hand() -> None:
    """1 + 10 (x - 1)^2 from 0: d = 20; steps 1 and 1/5 fail, 1/25 is accepted, the parabola leads to 1, where g = 0."""
    found, steps = minimise(cg, objective(lambda x: (1 + 10 * float((x[0] - 1) ** 2), 20 * (x - 1))), np.zeros(1))
    assert found.point[0] == pytest.approx(1.0, abs=1e-15)
    assert (found.iterations, found.stopped_by) == (1, StoppedBy.GRADIENT)
    assert (steps[1].evaluations, steps[1].gradient_evaluations) == (1 + 3 + 1, 2)
    assert steps[1].step == pytest.approx(1 / 20)


def plain_cg(function: Function, x: Array, n_iterations: int) -> tuple[list[Array], list[int]]:
    """Points and evaluations made, iteration by iteration, while no search fails."""
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
def test_step_by_step(name: str) -> None:
    function, n = PROBLEMS[name]
    points: list[Array] = []
    counts: list[int] = []

    def report(step: object, point: Array) -> None:
        points.append(point)
        counts.append(step.evaluations)  # type: ignore[attr-defined]

    cg.minimise(objective(function), np.full(n, -0.5), tolerance=1e-14, max_iterations=10, report=report)
    expected_points, expected_counts = plain_cg(function, np.full(n, -0.5), 10)
    assert counts == expected_counts
    np.testing.assert_allclose(points, expected_points, rtol=1e-4, atol=1e-6)
