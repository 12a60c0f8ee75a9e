"""A candidate's penalty: that of the least held-out loss, wherever the path begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.ensembles.candidate_selection import (
    GRID,
    Losses,
    PenaltyPath,
    fused_log_probabilities,
    held_out_weights,
    judge,
    losses_of,
    path_of,
)
from bncli.engine.ensembles.candidates import Rows, candidate
from bncli.engine.parameters.optimization import OptimizerSettings, find_optimum
from tests.engine.ensembles.rows import coded, mixed

Array = NDArray[np.float64]


@dataclass
class Said:
    """A path that says what it was told to, by penalty."""

    log_loss: dict[float, float]
    error: dict[float, float]
    asked: list[float] = field(default_factory=list)
    kept: float = 0.0

    class held_out:  # noqa: N801
        weights = None
        labels = np.zeros(100, np.intp)

    def advance(self, penalty: float) -> Array:
        self.asked.append(penalty)
        missed = np.arange(100) < round(100 * self.error.get(penalty, 1.0))
        own = np.full(100, -self.log_loss.get(penalty, 9.0))
        return np.stack([own, own + np.where(missed, 1.0, -1.0)])

    def keep(self) -> None:
        self.kept = self.asked[-1]

    def turn(self) -> None:
        self.asked.append(0.0)


def chosen(path: Said, metric: str = "log-loss", first: float = GRID[0]) -> float:
    paths: Sequence[PenaltyPath] = [path]  # type: ignore[list-item]
    judged = judge("singles", paths, metric, lambda penalty, fold: None, first)
    assert path.kept == judged.penalty
    return judged.penalty


def test_the_path_ends_where_it_is_worse() -> None:
    path = Said({300.0: 0.7, 100.0: 0.5, 30.0: 0.51, 10.0: 0.56, 3.0: 0.1}, {})
    assert chosen(path) == 100.0
    assert path.asked == [300.0, 100.0, 30.0, 10.0]


def test_small_penalties_are_tried_while_the_loss_falls() -> None:
    path = Said({penalty: 1.0 / (k + 1) for k, penalty in enumerate(GRID)}, {})
    assert chosen(path) == GRID[-1]
    flat = Said(dict.fromkeys(GRID, 1.0), {})
    assert chosen(flat) == GRID[0]
    assert flat.asked == [
        300.0,
        100.0,
        30.0,
        10.0,
        3.0,
        0.0,
    ]  # the best is the first: turned, and there is nothing above


def test_a_path_that_begins_at_its_best_is_followed_upwards() -> None:
    path = Said({300.0: 0.9, 100.0: 0.4, 30.0: 0.5, 10.0: 0.6, 3.0: 0.7}, {})
    assert chosen(path, first=10.0) == 100.0
    assert path.asked == [10.0, 3.0, 0.0, 30.0, 100.0, 300.0]


def test_errors_that_tie_are_told_apart_by_log_loss() -> None:
    losses, errors = {300.0: 0.5, 100.0: 0.45, 30.0: 0.46}, {300.0: 0.2, 100.0: 0.1, 30.0: 0.1}
    assert chosen(Said(losses, errors), "error") == 100.0
    assert chosen(Said(losses, errors | {30.0: 0.05}), "error") == 30.0


def test_losses_count_weights() -> None:
    said, labels = np.log(np.array([[0.75, 0.6], [0.25, 0.4]])), np.array([0, 1])
    found, weighted = losses_of(said, labels, None), losses_of(said, labels, np.array([3.0, 1.0]))
    assert found == pytest.approx(Losses(-np.log(0.75 * 0.4) / 2, 0.5, np.sqrt((0.0625 + 0.36) / 2)))
    assert weighted == pytest.approx(Losses(-np.log(0.75**3 * 0.4) / 4, 0.25, np.sqrt((3 * 0.0625 + 0.36) / 4)))


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("name", ["singles", "pairs", "sharp tree"])
def test_what_is_said_of_rows_held_out_is_what_an_exact_fit_says(name: str, n_labels: int) -> None:
    data = coded(mixed(150, n_labels))
    rows, others = data.take(np.arange(100)), data.take(np.arange(100, 150))
    path = path_of(candidate(Rows(rows), name), rows, others)
    for penalty in (10.0, 3.0):
        said = path.advance(penalty)
    exact = find_optimum(path.space, OptimizerSettings("zero", 3.0, 0.0, "newton", 1e-10, 500), lambda step, p: None)
    expected = fused_log_probabilities(others, path.fusion, path.space.coordinates.tables(exact.point))
    np.testing.assert_allclose(np.exp(said), np.exp(expected), atol=0.1)
    np.testing.assert_allclose(np.exp(said).sum(axis=0), 1.0)
    own = others.labels, np.arange(50)
    assert -said[own].mean() == pytest.approx(-expected[own].mean(), rel=0.02)
    assert held_out_weights([others]) is None
