"""Conjugate gradients with Brent's line minimum: counts by hand, exact steps, conjugacy on quadratics."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import cg, cgb
from tests.problems import PROBLEMS, counted, minimise, objective, quadratic


def test_a_bowl_in_one_dimension_by_hand() -> None:
    """1 + 10 (x - 1)^2 from 0: d = 20, x = 20 a; the bracket's steps are 1, 1/10 (both no lower than 0) and 1/20.

    That is the minimum; Brent makes sure of it: golden sections to both sides, then the least move to either side.
    """
    counting, calls = counted(lambda x: (1 + 10 * float((x[0] - 1) ** 2), 20 * (x - 1)))
    found, steps = minimise(cgb, objective(counting), np.zeros(1))
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
    cgb.minimise(
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
    found, _ = minimise(cgb, objective(function), np.full(n, 2.0), tolerance=1e-8)
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert found.iterations <= 2 * n + 6


@pytest.mark.parametrize("name", ["long bowl", "softmax"])
def test_fewer_iterations_of_more_evaluations_than_with_acceptable_points(name: str) -> None:
    function, n = PROBLEMS[name]
    by_brent, by_points = (minimise(m, objective(function), np.full(n, -0.5))[0] for m in (cgb, cg))
    assert by_brent.iterations < by_points.iterations
    assert by_brent.evaluations / by_brent.iterations > 2 * by_points.evaluations / by_points.iterations
