"""Where the path of a candidate's penalties ends, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.ensembles.candidate_selection import GRID, judge


class MadeUp:
    """One path of losses that are known, one a penalty, each the same for all rows held out."""

    def __init__(self, n_rows: int, losses: Sequence[float]) -> None:
        self.held_out: Any = type("HeldOut", (), {"weights": None, "labels": np.zeros(n_rows, np.intp)})
        self._n_rows, self._losses = n_rows, iter(losses)
        self.asked: list[float] = []

    def advance(self, penalty: float) -> NDArray[np.float64]:
        self.asked.append(penalty)
        return np.full((2, self._n_rows), -next(self._losses))

    def keep(self) -> None: ...

    def turn(self) -> None: ...


def asked(n_rows: int, *losses: float) -> list[float]:
    path: Any = MadeUp(n_rows, losses)
    judge("singles", [path], "log-loss", lambda penalty, fold: None, GRID[0])
    return path.asked  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("n_rows", "last", "ends"),
    [(999, 0.4120, False), (999, 0.4122, True), (1_000, 0.4040, False), (1_000, 0.4042, True)],
)
def test_three_percent_end_the_path_and_of_a_thousand_rows_one(n_rows: int, last: float, ends: bool) -> None:
    """And a ten-thousandth of a nat."""
    rest = [0.9] * len(GRID)
    assert asked(n_rows, 0.5, 0.4, last, *rest) == list(GRID[: 3 if ends else 4])


@pytest.mark.parametrize(("step", "penalties"), [(1.0, 10), (1 - 0.9e-4, 10), (1 - 1.1e-3, 12)])
def test_from_a_hundredth_on_the_loss_has_to_fall(step: float, penalties: int) -> None:
    """By more than a ten-thousandth of itself."""
    falling = [0.5 * 0.99**i for i in range(9)]
    assert len(GRID) == 12
    assert GRID[9] == 0.01
    assert len(asked(50, *falling, *(falling[-1] * step**i for i in (1, 2, 3)))) == penalties


@pytest.mark.parametrize(("step", "penalties"), [(1 - 0.4e-3, 6), (1 - 0.6e-3, 12)])
def test_from_three_on_three_penalties_must_not_be_alike(step: float, penalties: int) -> None:
    """By a thousandth; above, where hardly anything has been learnt, they may."""
    assert GRID[4] == 3.0
    alike = [0.5, 0.5, 0.5, 0.5 * 0.99, 0.5 * 0.98]
    falling = [alike[-1] * step**i for i in range(1, 8)]
    assert len(asked(50, *alike, *falling)) == penalties + (penalties == 6)


@pytest.mark.parametrize(
    ("first", "second", "ends"), [(1.1e-4, 1.1e-4, True), (0.9e-4, 1.1e-4, False), (1.1e-4, 0, False)]
)
def test_two_rises_in_a_row_end_the_path(first: float, second: float, ends: bool) -> None:
    """Of more than a tie, a ten-thousandth, each."""
    rest = [0.9] * len(GRID)
    after = asked(50, 0.4, 0.4 * (1 + first), 0.4 * (1 + first) * (1 + second), *rest)
    assert after == list(GRID[: 3 if ends else 4])
