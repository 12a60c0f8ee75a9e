"""Evaluation of a candidate: its best penalty, where the path of penalties ends, and its parameter space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles.candidates import Candidate, CandidateFinder
from bncli.engine.ensembles.held_out_evaluation import (
    GRID,
    Losses,
    PenaltyPath,
    evaluate_candidate,
    evaluate_frequencies,
    fused_log_probabilities,
    held_out_weights,
    measure_losses,
    parameter_space,
)
from bncli.engine.parameters.optimization import OptimizerSettings, find_optimum
from bncli.engine.structures.structure import Regions
from tests.datasets import dataset_of, random_dataset
from tests.effects import dense
from tests.engine.ensembles.rows import coded, mixed

Array = NDArray[np.float64]


@dataclass
class KnownPath:
    """A path with known losses and errors per penalty."""

    log_loss: dict[float, float]
    error: dict[float, float]
    tried: list[float] = field(default_factory=list)
    best: float = 0.0

    class held_out:  # noqa: N801
        weights = None
        labels = np.zeros(100, np.intp)

    def advance(self, penalty: float) -> Array:
        self.tried.append(penalty)
        missed = np.arange(100) < round(100 * self.error.get(penalty, 1.0))
        own = np.full(100, -self.log_loss.get(penalty, 9.0))
        return np.stack([own, own + np.where(missed, 1.0, -1.0)])

    @property
    def optima(self) -> list[float]:
        return self.tried

    @optima.setter
    def optima(self, _: list[float]) -> None:
        """Note with a zero that the path returns to its best."""
        self.tried.append(0.0)


def chosen(path: KnownPath, metric: str = "log-loss", first: float = GRID[0]) -> float:
    paths: Sequence[PenaltyPath] = [path]  # type: ignore[list-item]
    judged = evaluate_candidate("singles", paths, metric, lambda fold, penalty: None, first)
    assert path.best == judged.penalty
    return judged.penalty


def test_the_path_ends_when_the_loss_rises() -> None:
    path = KnownPath({300.0: 0.7, 100.0: 0.5, 30.0: 0.51, 10.0: 0.56, 3.0: 0.1}, {})
    assert chosen(path) == 100.0
    assert path.tried == [300.0, 100.0, 30.0, 10.0]


def test_small_penalties_are_tried_while_the_loss_falls() -> None:
    path = KnownPath({penalty: 1.0 / (k + 1) for k, penalty in enumerate(GRID)}, {})
    assert chosen(path) == GRID[-1]
    flat = KnownPath(dict.fromkeys(GRID, 1.0), {})
    assert chosen(flat) == GRID[0]
    assert flat.tried == [
        300.0,
        100.0,
        30.0,
        10.0,
        3.0,
        0.0,
    ]  # the best is the first: the path returns to it, and there is nothing above


def test_a_path_that_begins_at_its_best_is_followed_upwards() -> None:
    path = KnownPath({300.0: 0.9, 100.0: 0.4, 30.0: 0.5, 10.0: 0.6, 3.0: 0.7}, {})
    assert chosen(path, first=10.0) == 100.0
    assert path.tried == [10.0, 3.0, 0.0, 30.0, 100.0, 300.0]


def test_equal_errors_are_compared_by_log_loss() -> None:
    losses, errors = {300.0: 0.5, 100.0: 0.45, 30.0: 0.46}, {300.0: 0.2, 100.0: 0.1, 30.0: 0.1}
    assert chosen(KnownPath(losses, errors), "error") == 100.0
    assert chosen(KnownPath(losses, errors | {30.0: 0.05}), "error") == 30.0


def test_losses_are_weighted() -> None:
    log_p, labels = np.log(np.array([[0.75, 0.6], [0.25, 0.4]])), np.array([0, 1])
    found, weighted = measure_losses(log_p, labels, None), measure_losses(log_p, labels, np.array([3.0, 1.0]))
    assert found == pytest.approx(Losses(-np.log(0.75 * 0.4) / 2, 0.5, np.sqrt((0.0625 + 0.36) / 2)))
    assert weighted == pytest.approx(Losses(-np.log(0.75**3 * 0.4) / 4, 0.25, np.sqrt((3 * 0.0625 + 0.36) / 4)))


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("name", ["singles", "pairs", "sharp tree"])
def test_predictions_for_held_out_rows_are_those_of_an_exact_fit(name: str, n_labels: int) -> None:
    data = coded(mixed(150, n_labels))
    rows, others = data.take(np.arange(100)), data.take(np.arange(100, 150))
    path = PenaltyPath.of(CandidateFinder(rows).find(name), rows, others)
    for penalty in (10.0, 3.0):
        log_p = path.advance(penalty)
    exact = find_optimum(path.space, OptimizerSettings("zero", 3.0, 0.0, "newton", 1e-10, 500), lambda step, p: None)
    expected = fused_log_probabilities(others, path.fusion, path.space.coordinates.tables(exact.point))
    np.testing.assert_allclose(np.exp(log_p), np.exp(expected), atol=0.1)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=0), 1.0)
    own = others.labels, np.arange(50)
    assert -log_p[own].mean() == pytest.approx(-expected[own].mean(), rel=0.02)
    assert held_out_weights([others]) is None


class LossPath:
    """A path with one loss per penalty, the same for all held-out rows."""

    def __init__(self, n_rows: int, losses: Sequence[float]) -> None:
        self.held_out: Any = type("HeldOut", (), {"weights": None, "labels": np.zeros(n_rows, np.intp)})
        self._n_rows, self._losses = n_rows, iter(losses)
        self.tried: list[float] = []
        self.optima = [0.0]
        self.best = 0.0

    def advance(self, penalty: float) -> NDArray[np.float64]:
        self.tried.append(penalty)
        return np.full((2, self._n_rows), -next(self._losses))


def tried_penalties(n_rows: int, *losses: float) -> list[float]:
    path: Any = LossPath(n_rows, losses)
    evaluate_candidate("singles", [path], "log-loss", lambda fold, penalty: None, GRID[0])
    return path.tried  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("n_rows", "last", "ends"),
    [(999, 0.4120, False), (999, 0.4122, True), (1_000, 0.4040, False), (1_000, 0.4042, True)],
)
def test_a_loss_three_per_cent_above_the_lowest_ends_the_path(n_rows: int, last: float, ends: bool) -> None:
    """One per cent ends it with a thousand rows; a ten-thousandth of a nat is added to both."""
    rest = [0.9] * len(GRID)
    assert tried_penalties(n_rows, 0.5, 0.4, last, *rest) == list(GRID[: 3 if ends else 4])


@pytest.mark.parametrize(("step", "penalties"), [(1.0, 10), (1 - 0.9e-4, 10), (1 - 1.1e-3, 12)])
def test_below_a_hundredth_the_loss_has_to_fall(step: float, penalties: int) -> None:
    """It has to fall by more than a ten-thousandth of itself."""
    falling = [0.5 * 0.99**i for i in range(9)]
    assert len(GRID) == 12
    assert GRID[9] == 0.01
    assert len(tried_penalties(50, *falling, *(falling[-1] * step**i for i in (1, 2, 3)))) == penalties


@pytest.mark.parametrize(("step", "penalties"), [(1 - 0.4e-3, 6), (1 - 0.6e-3, 12)])
def test_from_three_on_three_equal_losses_end_the_path(step: float, penalties: int) -> None:
    """Losses within a thousandth are equal; at larger penalties, where little is learned, they may be."""
    assert GRID[4] == 3.0
    alike = [0.5, 0.5, 0.5, 0.5 * 0.99, 0.5 * 0.98]
    falling = [alike[-1] * step**i for i in range(1, 8)]
    assert len(tried_penalties(50, *alike, *falling)) == penalties + (penalties == 6)


@pytest.mark.parametrize(
    ("first", "second", "ends"), [(1.1e-4, 1.1e-4, True), (0.9e-4, 1.1e-4, False), (1.1e-4, 0, False)]
)
def test_two_successive_rises_end_the_path(first: float, second: float, ends: bool) -> None:
    """Each rise has to exceed a tie, a ten-thousandth."""
    rest = [0.9] * len(GRID)
    after = tried_penalties(50, 0.4, 0.4 * (1 + first), 0.4 * (1 + first) * (1 + second), *rest)
    assert after == list(GRID[: 3 if ends else 4])


Array = NDArray[np.float64]

REGIONS = Regions(((0,), (1,), (2,), (0, 1), (0, 1, 2)))
CARDINALITIES, N_LABELS = (2, 3, 2), 3
PENALTY = 2.0


def rows() -> Dataset:
    return random_dataset(40, CARDINALITIES, N_LABELS)


def found(factor: float) -> Candidate:
    families = REGIONS.families(CARDINALITIES)
    return Candidate("by hand", REGIONS, families, coding="cells", lower_orders=True, interaction_factor=factor)


def optimum(factor: float) -> tuple[Array, float]:
    """Return the tables (K, n_cells) of the candidate at PENALTY, and the objective there."""
    space = parameter_space(rows(), found(factor))
    best = find_optimum(space, OptimizerSettings("zero", PENALTY, 0.0, "newton", 1e-10, 200), lambda step, p: None)
    return space.coordinates.tables(best.point), best.value


def optimum_by_hand(factor: float) -> tuple[Array, float]:
    """Return the same with a penalty of PENALTY * factor on effects of several attributes, PENALTY on others."""
    data = rows()
    likelihood = parameter_space(data, found(1.0)).likelihood
    matrix = dense(REGIONS.families(CARDINALITIES), data, "cells", lower_orders=True)
    several = 1 + sum(CARDINALITIES)
    penalties = np.where(np.arange(matrix.shape[1]) < several, PENALTY, PENALTY * factor)

    def loss(p: Array) -> tuple[float, Array]:
        effects = p.reshape(N_LABELS, -1)
        cll, gradient = likelihood.value_and_gradient(effects @ matrix.T)
        return float((penalties * effects**2).sum() / 2 - cll), (penalties * effects - gradient @ matrix).ravel()

    best = optimize.minimize(
        loss, np.zeros(N_LABELS * matrix.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}
    )
    return best.x.reshape(N_LABELS, -1) @ matrix.T, float(best.fun)


@pytest.mark.parametrize("factor", [1.0, 10.0, 100.0])
def test_the_penalty_of_larger_sets_is_multiplied(factor: float) -> None:
    (tables, value), (expected, least) = optimum(factor), optimum_by_hand(factor)
    assert value == pytest.approx(least, rel=1e-8)
    np.testing.assert_allclose(tables, expected, atol=1e-4)


def test_the_penalty_of_single_attributes_is_unchanged() -> None:
    """In the limit larger sets have no effect, and the tables over single attributes remain."""
    alone = replace(found(1.0), families=Regions(((0,), (1,), (2,))).families(CARDINALITIES))
    space = parameter_space(rows(), alone)
    best = find_optimum(space, OptimizerSettings("zero", PENALTY, 0.0, "newton", 1e-10, 200), lambda step, p: None)
    _, value = optimum(1e9)
    assert value == pytest.approx(best.value, rel=1e-6)


def test_the_penalty_of_pairs_sets_that_of_later_sets() -> None:
    known = CandidateFinder(rows(), penalties={"singles": 0.3, "pairs": 30.0})
    assert known.find("triples").interaction_factor == pytest.approx(100.0)
    assert CandidateFinder(rows()).find("triples").interaction_factor == 1.0


def halves(data: Dataset) -> tuple[Dataset, Dataset]:
    return data.take(np.arange(0, data.n_rows, 2)), data.take(np.arange(1, data.n_rows, 2))


@pytest.mark.parametrize("weighted", [False, True])
def test_class_frequencies_have_one_more_row_per_class(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 3, 40), rng.uniform(0.5, 2.0, 40)
    data = dataset_of([np.zeros(40, int)], labels, (1,), 4, weights if weighted else None)
    parts = [halves(data), halves(data)[::-1]]
    expected, own, of_rows = [], [], []
    for learnt, held_out in parts:
        w = np.ones(20) if learnt.weights is None else learnt.weights
        counts = [1 + sum(w[learnt.labels == y]) for y in range(4)]
        expected += [[math.log(count / sum(counts)) for count in counts]] * 20
        own += [math.log(counts[y] / sum(counts)) for y in held_out.labels]
        of_rows += [1.0] * 20 if held_out.weights is None else list(held_out.weights)
    evaluation = evaluate_frequencies(parts)
    np.testing.assert_allclose(evaluation.log_p, np.transpose(expected), rtol=1e-12)
    assert evaluation.losses.log_loss == pytest.approx(-np.average(own, weights=of_rows), rel=1e-12)
