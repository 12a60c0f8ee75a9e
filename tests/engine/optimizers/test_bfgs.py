"""Nash's BFGS: counts by hand, step by step against the textbook's update, restarts, memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import bfgs
from bncli.engine.optimizers.line_search import Probe
from bncli.errors import BncliError
from tests.problems import PROBLEMS, Function, minimise, objective, quadratic

Array = NDArray[np.float64]


def test_a_bowl_in_one_dimension_by_hand() -> None:
    """1 + 10 (x - 1)^2 from 0: d = 20; steps 1 and 1/5 fail, 1/25 leads to 0.8; then B = 0.8/16 = 1/20 is exact."""
    found, steps = minimise(bfgs, objective(lambda x: (1 + 10 * float((x[0] - 1) ** 2), 20 * (x - 1))), np.zeros(1))
    assert found.point[0] == pytest.approx(1.0, abs=1e-15)
    assert (found.iterations, found.stopped_by) == (2, StoppedBy.GRADIENT)
    assert [step.evaluations for step in steps] == [1, 1 + 3, 1 + 3 + 1]
    assert [step.gradient_evaluations for step in steps] == [1, 2, 3]
    assert [step.step for step in steps] == pytest.approx([0.0, 0.04, 1.0])


def plain_bfgs(function: Function, x: Array, n_iterations: int) -> tuple[list[Array], list[int]]:
    """Points and evaluations made, iteration by iteration, while no search fails; the update as in textbooks."""
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
def test_step_by_step(name: str) -> None:
    function, n = PROBLEMS[name]
    points: list[Array] = []
    counts: list[int] = []

    def report(step: Any, point: Array) -> None:
        points.append(point)
        counts.append(step.evaluations)

    bfgs.minimise(objective(function), np.full(n, -0.5), tolerance=1e-14, max_iterations=12, report=report)
    expected_points, expected_counts = plain_bfgs(function, np.full(n, -0.5), 12)
    assert counts == expected_counts
    np.testing.assert_allclose(points, expected_points, rtol=1e-6, atol=1e-9)


def test_the_matrix_becomes_the_inverse_hessian_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    function, a = quadratic(6, 0, 20.0)
    seen: list[Array] = []
    update = bfgs._update

    def watched(inverse: Array, *arguments: Any) -> None:
        update(inverse, *arguments)
        seen.append(inverse.copy())

    monkeypatch.setattr(bfgs, "_update", watched)
    monkeypatch.setattr(bfgs, "BLOCK", 12)
    found, _ = minimise(bfgs, objective(function), np.full(6, 2.0), tolerance=1e-13)
    assert found.value == pytest.approx(1.0, abs=1e-10)
    assert all(np.array_equal(matrix, matrix.T) for matrix in seen)
    np.testing.assert_allclose(seen[10] @ a, np.eye(6), atol=0.1)


def test_starts_again_after_twice_as_many_updates_as_parameters() -> None:
    function, _ = quadratic(2, 0, 5.0)
    guide, fresh = bfgs._Guide(), []
    points = [Probe(x, *function(x)) for x in np.random.default_rng(0).normal(size=(13, 2))]
    for before, after in itertools.pairwise(points):
        guide.learn(before, after)
        fresh.append(guide.fresh)
    assert fresh == [False] * 4 + [True] + [False] * 4 + [True] + [False] * 2


def test_starts_again_where_the_function_bends_down() -> None:
    guide = bfgs._Guide()
    guide.learn(Probe(np.zeros(2), 0.0, np.zeros(2)), Probe(np.ones(2), 1.0, np.ones(2)))
    assert not guide.fresh
    guide.learn(Probe(np.zeros(2), 0.0, np.zeros(2)), Probe(np.ones(2), 1.0, -np.ones(2)))
    assert guide.fresh


def test_too_many_parameters_are_refused_before_anything_is_evaluated() -> None:
    def forbidden(_: Array) -> Any:
        raise AssertionError

    with pytest.raises(BncliError, match=r"bfgs would need 3\.2 GB .* 20,000 parameters; --optimizer lbfgs"):
        minimise(bfgs, objective(forbidden), np.zeros(20_000))
