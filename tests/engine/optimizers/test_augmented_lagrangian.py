"""Check what an augmented Lagrangian returns if its rounds are solved badly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.augmented_lagrangian import ROUNDS, STALLED, Inequalities, descend
from bncli.engine.optimizers.objective import Objective

EXACT = 3


class Drifting:
    """Newton steps to the minimiser of each round, which miss it more and more after the first rounds."""

    def __init__(self, drift: float) -> None:
        self.rounds, self._drift = 0, drift

    def __call__(self, objective: Objective, x: Array, **_: Any) -> Optimum:
        self.rounds += 1
        for _step in range(20):
            gradient = objective.value_and_gradient(x)[1]
            x = x - gradient / objective.hessian(x)(np.ones(1))
        if self.rounds > EXACT:
            x = x + self._drift * (self.rounds - EXACT) * (-1.0) ** self.rounds
        value, gradient = objective.value_and_gradient(x)
        return Optimum(x, value, float(np.abs(gradient).max()), 1, 1, StoppedBy.GRADIENT)


def constrained(drift: float) -> tuple[Array, int]:
    """Return the problem min (x + 1)^2 / 2 + 1 for x >= 0, whose minimum is 1.5 at x = 0."""

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        return float((x[0] + 1) ** 2 / 2 + 1), x + 1

    plain = Objective(value_and_gradient, np.copy, lambda _: np.copy, lambda *_: np.copy, lambda _: False, 0.0)
    method = Drifting(drift)
    rows = Inequalities((np.eye(1),), np.full(1, 9.0))
    stop: dict[str, Any] = {"tolerance": 1e-9, "max_iterations": 1000}
    found = descend(plain, rows, np.ones(1), method=method, report=lambda *_: None, **stop)
    return found.point, method.rounds


def test_rounds_that_are_solved_end_at_the_optimum() -> None:
    point, rounds = constrained(0.0)
    assert point[0] == pytest.approx(0.0, abs=1e-7)
    assert rounds < STALLED


def test_of_rounds_that_drift_away_the_best_is_kept() -> None:
    point, rounds = constrained(1e-6)
    assert abs(point[0]) < 5e-6
    assert EXACT + STALLED <= rounds + 1 < ROUNDS
