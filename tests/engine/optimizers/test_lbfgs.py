"""L-BFGS is the descent that never takes a product with the Hessian; its laws are those of the descent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import lbfgs
from bncli.engine.optimizers.objective import Objective
from tests.problems import PROBLEMS, identity, minimise, multinomial, objective, rosenbrock

Array = NDArray[np.float64]


def forbidden(_: Array) -> Any:
    raise AssertionError("L-BFGS needs no Hessian")


@pytest.mark.parametrize("name", PROBLEMS)
def test_as_low_as_scipy_gets_without_a_hessian(name: str) -> None:
    function, n = PROBLEMS[name]
    found, steps = minimise(lbfgs, objective(function, hessian=forbidden), np.full(n, -0.5))
    peer = optimize.minimize(
        function, np.full(n, -0.5), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    )
    assert found.value <= peer.fun + 1e-8 * abs(peer.fun)
    assert all(step.gradient_evaluations == step.evaluations for step in steps)
    assert found.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)


def test_the_start_is_left_alone_and_runs_are_equal_to_the_bit() -> None:
    start = np.full(15, 0.25)
    first, second = (minimise(lbfgs, objective(multinomial(0, 1.0)), start)[0] for _ in range(2))
    assert start.tolist() == [0.25] * 15
    assert first.point.tobytes() == second.point.tobytes()


def test_stops_at_the_cap() -> None:
    found, _ = minimise(lbfgs, objective(rosenbrock), np.full(8, -0.5), max_iterations=3)
    assert (found.stopped_by, found.iterations) == (StoppedBy.MAX_ITERATIONS, 3)


def test_the_preconditioner_is_refreshed_while_the_run_lasts() -> None:
    refreshed: list[tuple[bytes, float]] = []

    def refresh(point: Array, cost: float) -> Any:
        refreshed.append((point.tobytes(), cost))
        return identity

    points: list[bytes] = []
    problem = Objective(rosenbrock, identity, forbidden, refresh, lambda value: False)
    start = np.full(8, -0.5)
    found = lbfgs.minimise(
        problem, start, tolerance=1e-12, max_iterations=2000, report=lambda step, p: points.append(p.tobytes())
    )
    assert found.evaluations >= 45
    assert len(refreshed) == sum(found.evaluations >= n for n in (15, 45, 105, 225, 345))
    assert all(point in points for point, _ in refreshed)
    assert refreshed[0][1] == 12.0


def test_a_tolerance_is_a_share_of_no_less_than_what_is_negligible() -> None:
    """(p - 1)^4 falls to 0, of which no share is ever enough."""

    def quartic(p: Array) -> tuple[float, Array]:
        return float(np.sum((p - 1.0) ** 4)), 4.0 * (p - 1.0) ** 3

    exact, soon = (
        minimise(lbfgs, replace(objective(quartic), negligible=negligible), np.full(3, 3.0), tolerance=1e-3)[0]
        for negligible in (0.0, 1e-2)
    )
    assert soon.evaluations < exact.evaluations
    assert exact.value < soon.value < 1e-3
