"""When the preconditioner is made anew, at which point, and what it may cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.optimizers.objective import Objective
from bncli.engine.optimizers.refresh import COST, GAP, Refresh
from tests.problems import half_square, identity

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
