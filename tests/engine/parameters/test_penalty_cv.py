"""The penalty chosen by cross-validation: as slow fits one by one would choose, where it ends early, ties, odd data."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_folds, stratified_sample
from bncli.engine.model import ChosenPenalty, TriedPenalty
from bncli.engine.parameters import penalty_cv
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.penalty_cv import GRID, HeldOutFold, base_log_loss, best_of, held_out_base, penalty_path
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Progress
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.spaces import SPACES, choose_penalty
from tests.sweeps import every_value

Array = NDArray[np.float64]

TAN = Dag(((), (0,), (0,)), (0, 1, 2))
SHAPE = (3, 2, 4)
every_space = pytest.mark.parametrize("name", SPACES)


def space_of(name: str, dag: Dag = TAN, smoothing: str = "m-estimate:1") -> Any:
    module = importlib.import_module(f"bncli.engine.parameter_learners.{name.split()[0]}")
    return partial(module.space, structure=dag, smoothing=smoothing, **SPACES[name])


def choose(name: str, data: Dataset, center: float = 0.0, seed: int = 0, **more: Any) -> ChosenPenalty:
    return choose_penalty(data, space_of(name), center=center, seed=seed, **more)


def log_loss(space: ParameterSpace, p: Array, data: Dataset) -> float:
    """- sum_t w_t ln P(y_t | x_t), densely."""
    scores = oracles.indicators(space.likelihood.families, data) @ space.coordinates.tables(p).T
    scores -= np.logaddexp.reduce(scores, axis=1)[:, np.newaxis]
    return -float(oracles.weights_of(data) @ scores[np.arange(data.n_rows), data.labels])


def slow_losses(name: str, data: Dataset, penalties: Sequence[float], center: float, seed: int) -> list[float]:
    """The held-out loss a row at every penalty: every fold from the penalty's centre to the end."""
    folds = stratified_folds(data.labels, 5, seed)
    totals = np.zeros(len(penalties))
    for fold in range(5):
        space = space_of(name)(Counts(data.take(np.flatnonzero(folds != fold))))
        held_out = data.take(np.flatnonzero(folds == fold))
        totals += [log_loss(space, optimum(space, penalty, center), held_out) for penalty in penalties]
    return (totals / data.total_weight).tolist()


def optimum(space: ParameterSpace, penalty: float, center: float) -> Array:
    """By Newton's method where tables are multiples of parameters, else by L-BFGS."""
    data, coordinates = space.likelihood.data, space.coordinates

    def objective(p: Array) -> tuple[float, Array]:
        cll, gradient = space.likelihood.value_and_gradient(coordinates.tables(p))
        value = penalty / 2 * float(np.square(p - center).sum()) - cll
        return value, penalty * (p - center) - coordinates.pull_back(p, gradient)

    start = np.full(coordinates.n_parameters, center)
    if coordinates.sharing is not None or not coordinates.is_scaled:
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-11, "maxfun": 20_000})
        return np.asarray(found.x)
    z, labels = oracles.indicators(space.likelihood.families, data), range(data.n_labels)
    scale = np.broadcast_to(coordinates.scale, (data.n_labels, z.shape[1])).ravel()

    def hessian(p: Array) -> Array:
        q = softmax(z @ coordinates.tables(p).T, axis=1)
        w = np.asarray(oracles.weights_of(data))
        blocks = [[(z * (w * q[:, y] * ((y == k) - q[:, k]))[:, np.newaxis]).T @ z for k in labels] for y in labels]
        return np.block(blocks) * np.outer(scale, scale) + penalty * np.eye(len(p))

    return newton(objective, hessian, start)


def newton(objective: Any, hessian: Any, p: Array) -> Array:
    """The minimum of a strictly convex function: full steps, halved while they do not help."""
    value, gradient = objective(p)
    for _ in range(100):
        step = np.linalg.solve(hessian(p), gradient)
        if gradient @ step < 1e-9:
            break
        while objective(p - step)[0] > value:
            step = step / 2
        p = p - step
        value, gradient = objective(p)
    return p


@pytest.mark.parametrize(("name", "weighted"), [*((name, True) for name in SPACES), ("discriminative", False)])
def test_losses_are_those_of_slow_fits_one_by_one(name: str, weighted: bool) -> None:
    data = random_dataset(80, SHAPE, 3, weighted=weighted)
    some = choose(name, data, seed=2).tried[1:6:2]
    slow = slow_losses(name, data, [one.penalty for one in some], 0.0, 2)
    np.testing.assert_allclose([one.log_loss for one in some], slow, rtol=5e-3)


@pytest.mark.parametrize(
    ("place", "n_rows"), every_value([("discriminative", 0.0), ("weighted 4", 0.0), ("weighted 4", 1.0)], [60, 150])
)
def test_the_choice_is_that_of_slow_fits_one_by_one(place: tuple[str, float], n_rows: int) -> None:
    (name, center), seed = place, n_rows // 100
    data = random_dataset(n_rows, SHAPE, 3, seed=seed)
    slow = dict(zip(GRID, slow_losses(name, data, GRID, center, seed), strict=True))
    assert slow[choose(name, data, center, seed).penalty] <= min(slow.values()) * 1.002


@every_space
def test_penalties_are_tried_from_large_to_small(name: str) -> None:
    chosen = choose(name, random_dataset(120, SHAPE, 3))
    penalties = [one.penalty for one in chosen.tried]
    assert penalties == list(GRID[: len(penalties)])
    assert list(GRID) == sorted(GRID, reverse=True)
    assert chosen.penalty == best_of(list(chosen.tried))


def test_noise_wants_a_large_penalty_and_ends_the_path_early() -> None:
    rng = np.random.default_rng(99)
    data = random_dataset(80, (6, 6, 6), 3)
    noise = replace(data, labels=rng.integers(0, 3, 80).astype(data.labels.dtype))
    chosen = choose("discriminative", noise)
    losses = [one.log_loss for one in chosen.tried]
    assert chosen.penalty >= 30
    assert len(losses) < len(GRID)
    assert [is_far_above(losses[: i + 1]) for i in range(len(losses))] == [False] * (len(losses) - 1) + [True]


def is_far_above(losses: Sequence[float]) -> bool:
    """Whether the last is more than 8 % and a thousandth of a nat above the lowest."""
    return losses[-1] > 1.08 * min(losses) + 0.001


@pytest.mark.parametrize("n_rows", [60, 120])
def test_the_path_ends_at_the_first_loss_far_above_the_lowest_of_slow_fits(n_rows: int) -> None:
    """Every penalty of every fold is fitted to the end; these losses are not so near the bound that 0.5 % matter."""
    data = random_dataset(n_rows, (4, 4, 4), 3, seed=n_rows)
    rng = np.random.default_rng(n_rows)
    noise = replace(data, labels=rng.integers(0, 3, n_rows).astype(data.labels.dtype))
    slow = slow_losses("discriminative", noise, GRID, 0.0, 0)
    expected = 1 + [is_far_above(slow[: i + 1]) for i in range(len(GRID))].index(True)
    assert 2 < expected < len(GRID), "the path ends somewhere on the way"
    beside = [slow[i] / (1.08 * min(slow[: i + 1]) + 0.001) for i in range(expected)]
    assert max(beside[:-1]) < 0.99 < 1.01 < beside[-1]
    assert len(choose("discriminative", noise).tried) == expected


@pytest.mark.parametrize(
    ("losses", "n_tried"),
    [
        ([0.5, 0.4, 0.4329, 0.4331, 0.1], 4),
        ([0.5, 0.5409, 0.5411, 0.1], 3),
        ([1e-4, 1.1e-3, 1.2e-3, 0.0], 3),
        ([0.5, 0.52, 0.4, 0.43, 0.44, 0.1], 5),
    ],
)
def test_a_loss_of_eight_percent_and_a_thousandth_more_ends_the_path(
    losses: list[float], n_tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses that are made up, one a penalty, on one fold."""
    said = iter(losses)
    data = random_dataset(50, SHAPE, 3)
    folds = [HeldOutFold(Counts(data), data)]
    monkeypatch.setattr(penalty_cv._Path, "advance", lambda path, penalty: -next(said) * data.total_weight)
    chosen = penalty_path(folds, space_of("discriminative"), center=0.0)
    assert [one.log_loss for one in chosen.tried] == pytest.approx(losses[:n_tried])
    assert [one.penalty for one in chosen.tried] == [300, 100, 30, 10, 3][:n_tried]


@pytest.mark.parametrize(("near", "first"), [(None, 300), (300.0, 300), (100.0, 300), (10.0, 100), (0.01, 0.1)])
def test_a_path_near_a_penalty_begins_a_decade_before_it(
    near: float | None, first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling = iter(np.linspace(0.5, 0.4, 20))
    data = random_dataset(100, SHAPE, 3)
    monkeypatch.setattr(penalty_cv._Path, "advance", lambda path, penalty: -next(falling))
    folds = [HeldOutFold(Counts(data), data)]
    chosen = penalty_path(folds, space_of("discriminative"), center=0.0, near=near)
    assert chosen.tried[0].penalty == first


def test_penalties_go_from_300_to_a_hundredth_by_half_decades() -> None:
    assert GRID == (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)


def test_a_rule_without_noise_wants_the_smallest_penalty() -> None:
    data = dense_dataset((2, 2, 2), 2, copies=20)
    rule = replace(data, labels=(data.codes[0] ^ data.codes[1]).astype(data.labels.dtype))
    chosen = choose("discriminative", rule)
    assert (chosen.penalty, len(chosen.tried)) == (GRID[-1], len(GRID))
    assert chosen.tried[-1].log_loss < 0.01


def tried(*losses: float) -> list[TriedPenalty]:
    return [TriedPenalty(penalty, loss) for penalty, loss in zip(GRID, losses, strict=False)]


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ([0.5], 300.0),
        ([0.5, 0.4, 0.3], 30.0),
        ([0.5, 0.4, 0.45], 100.0),
        ([0.4, 0.4, 0.4], 300.0),
        ([0.5, 0.400001, 0.4], 100.0),
        ([0.5, 0.40003, 0.4], 100.0),
        ([0.5, 0.40005, 0.4], 30.0),
        ([0.5, 0.401, 0.4], 30.0),
        ([0.0, 0.0], 300.0),
        ([1e-6, 0.0], 100.0),
    ],
)
def test_the_lowest_loss_wins_and_of_ties_the_larger_penalty(losses: Sequence[float], best: float) -> None:
    assert best_of(tried(*losses)) == best


def test_the_seed_decides_and_nothing_else() -> None:
    data = random_dataset(150, SHAPE, 3)
    first = choose("weighted 4", data, seed=1)
    assert choose("weighted 4", replace(data, threads=3), seed=1) == first
    assert choose("weighted 4", data, seed=2) != first


def test_all_rows_ten_times_as_heavy_want_ten_times_the_penalty() -> None:
    data = random_dataset(100, SHAPE, 3)
    light, heavy = (choose("discriminative", replace(data, weights=np.full(100, w))) for w in (1.0, 10.0))
    assert light.penalty == choose("discriminative", data).penalty
    assert GRID[-1] < light.penalty < GRID[0] / 10
    assert heavy.penalty == pytest.approx(10 * light.penalty)


@pytest.mark.parametrize(("n_rows", "expected"), [(90, 90), (300, 100), (600, 150), (900, 200)])
def test_of_many_rows_a_sample_takes_part(n_rows: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(n_rows, SHAPE, 3)
    sampled = data.take(stratified_sample(data.labels, expected, 4))
    unlimited = choose("discriminative", sampled, seed=4)
    monkeypatch.setattr(penalty_cv, "ALL_ROWS", 100)
    monkeypatch.setattr(penalty_cv, "MAX_ROWS", 200)
    assert choose("discriminative", data, seed=4) == unlimited


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [(12_000, 12_000), (12_001, 12_000), (48_000, 12_000), (60_000, 15_000), (200_000, 50_000), (400_000, 50_000)],
)
def test_a_quarter_of_many_rows_takes_part(n_rows: int, expected: int) -> None:
    labels = np.random.default_rng(0).integers(0, 2, n_rows)
    assert len(penalty_cv._taking_part(labels, 0)) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(("name", "n_rows"), every_value([*SPACES], [2, 3, 4, 7]))
def test_fewer_rows_than_folds_and_classes_that_folds_lack(name: str, n_rows: int) -> None:
    rare = random_dataset(n_rows, SHAPE, 6)
    chosen = choose(name, rare)
    assert all(np.isfinite(one.log_loss) and one.log_loss > 0 for one in chosen.tried)
    assert chosen.penalty in GRID


@pytest.mark.parametrize(
    ("place", "smoothing"),
    every_value([("weighted 4", 1.0), ("weighted 1", 0.0), ("extended", 0.0)], ["mle", "m-estimate:1"]),
)
def test_a_class_with_one_row_is_held_out_by_some_fold(place: tuple[str, float], smoothing: str) -> None:
    name, center = place
    data = random_dataset(60, SHAPE, 2)
    schema = random_dataset(0, SHAPE, 3).schema
    labels = data.labels.copy()
    labels[0] = 2
    rare = Dataset(schema, data.codes, labels)
    chosen = choose_penalty(rare, space_of(name, smoothing=smoothing), center=center, seed=0)
    assert all(np.isfinite(one.log_loss) for one in chosen.tried)


@every_space
def test_one_class_ties_at_the_largest_penalty(name: str) -> None:
    chosen = choose(name, random_dataset(30, SHAPE, 1))
    assert chosen.penalty == GRID[0]
    assert {one.log_loss for one in chosen.tried} == {0.0}


@every_space
def test_one_row_cannot_be_held_out(name: str) -> None:
    assert choose(name, random_dataset(1, SHAPE, 2)) == ChosenPenalty(1.0, ())


def test_no_attributes_leave_the_class() -> None:
    chosen = choose_penalty(random_dataset(50, (), 3), space_of("discriminative", Dag((), ())), center=0.0, seed=0)
    assert all(np.isfinite(one.log_loss) for one in chosen.tried)


def test_a_search_that_its_cap_ends_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(penalty_cv, "MAX_ITERATIONS", 1)
    chosen = choose("weighted 4", random_dataset(100, SHAPE, 3))
    assert all(np.isfinite(one.log_loss) for one in chosen.tried)


def test_the_watch_hears_how_far_the_path_has_come() -> None:
    events: list[Event] = []
    chosen = choose("discriminative", random_dataset(100, SHAPE, 3), watch=events.append)
    assert all(isinstance(event, Progress) for event in events)
    assert len(events) == 5 * len(chosen.tried)
    done = [event.done for event in events if isinstance(event, Progress)]
    assert done == sorted(set(done))
    assert events[0] == Progress(0, len(GRID), "penalty 300, fold 1 of 5")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_rows", "n_labels", "seed"), [(2, 2, 0), (80, 3, 1), (300, 5, 2)])
def test_the_base_is_the_class_frequencies_on_the_same_rows(
    n_rows: int, n_labels: int, seed: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row by row: each is told the frequencies of the rows outside its fold, with 1 added to every count."""
    monkeypatch.setattr(penalty_cv, "ALL_ROWS", 200)
    data = random_dataset(n_rows, SHAPE, n_labels, seed=seed, weighted=weighted)
    rows = stratified_sample(data.labels, 200, seed)
    labels, w = data.labels[rows], np.asarray(oracles.weights_of(data))[rows]
    fold_of = stratified_folds(labels, min(5, len(rows)), seed)
    loss = 0.0
    for t in range(len(rows)):
        seen = [s for s in range(len(rows)) if fold_of[s] != fold_of[t]]
        of_class = sum(w[s] for s in seen if labels[s] == labels[t])
        loss -= w[t] * np.log((of_class + 1) / (sum(w[s] for s in seen) + n_labels))
    assert held_out_base(data, seed) == pytest.approx(loss / w.sum(), rel=1e-12)


def test_the_base_is_finite_for_a_class_that_is_held_out_as_a_whole() -> None:
    assert base_log_loss([(np.array([4.0, 0.0]), np.array([0.0, 1.0]))]) == pytest.approx(np.log(6))


def test_without_rows_to_hold_out_there_is_no_base() -> None:
    assert held_out_base(random_dataset(1, SHAPE, 3), 0) is None


def test_the_loss_of_a_choice_is_that_of_the_penalty_chosen() -> None:
    assert (
        ChosenPenalty(3.0, (TriedPenalty(10.0, 0.5), TriedPenalty(3.0, 0.4), TriedPenalty(1.0, 0.45))).log_loss == 0.4
    )
    assert ChosenPenalty(1.0, ()).log_loss is None
