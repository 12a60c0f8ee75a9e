"""Cross-tuning: the number of iterations that a slow reimplementation finds, and what is told of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_folds
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.parameter_learners import extended
from bncli.engine.parameters import early_stopping
from bncli.engine.parameters.early_stopping import FOLDS, Peak, _peak, best_iterations, tuning_folds
from bncli.engine.parameters.optimization import optimize
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Iteration, Progress, silent
from tests import oracles
from tests.datasets import random_dataset
from tests.incomplete_oracle import enumeration, with_missing
from tests.spaces import how
from tests.sweeps import every_value

TAN = Dag(((), (0,), (1,)), (0, 1, 2))
SPACE = partial(extended.space, structure=TAN, smoothing="m-estimate:1")


def fit(data: Dataset, early_stop: str = "cv", seed: int = 0, watch: Any = silent, **changes: Any) -> Parameters:
    return extended.learn(
        Counts(data),
        TAN,
        smoothing="m-estimate:1",
        settings=replace(how(**changes), early_stop=early_stop, seed=seed),
        watch=watch,
    )


def slow_scores(data: Dataset, most: int, seed: int, **changes: Any) -> list[float]:
    """Held-out CLL after 0, 1, ... iterations: every number of iterations fitted for itself, in every fold."""
    fold_of = stratified_folds(data.labels, FOLDS, seed)
    scores = []
    for n in range(most + 1):
        total = 0.0
        for f in range(FOLDS):
            train, rest = data.take(np.flatnonzero(fold_of != f)), data.take(np.flatnonzero(fold_of == f))
            tables = optimize(SPACE(Counts(train)), how(max_iterations=n, **changes), silent).tables
            slow = enumeration(rest, tables.families)
            total += slow.value_and_gradient(slow.flatten(tables))[0]
        scores.append(total)
    return scores


@pytest.mark.parametrize(("share", "optimizer"), every_value([0.0, 0.3], ["cg", "lbfgs"]))
def test_the_best_number_of_iterations(share: float, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bncli.engine.parameters.early_stopping.FIRST", 12)
    data = with_missing(random_dataset(60, (3, 2, 3), 2, seed=5), share)
    scores = slow_scores(data, 12, seed=3, optimizer=optimizer)
    best, held_out = best_iterations(
        tuning_folds(data, SPACE, seed=3), how(optimizer=optimizer, max_iterations=12), watch=silent
    )
    assert best == int(np.argmax(scores))
    assert held_out == pytest.approx(max(scores))
    learnt = fit(data, seed=3, optimizer=optimizer, max_iterations=12)
    assert learnt.iterations == best
    assert learnt.stopped_by is (StoppedBy.CROSS_TUNING if best < 12 else StoppedBy.MAX_ITERATIONS)
    straight = optimize(SPACE(Counts(data)), how(optimizer=optimizer, max_iterations=best), silent)
    assert straight.tables.weights[0].tobytes() == learnt.tables.weights[0].tobytes()


def test_complete_rows_of_the_other_policy_too() -> None:
    data = random_dataset(400, (3, 2, 3), 3, seed=1)
    learnt = fit(data, init="zero")
    assert learnt.stopped_by is StoppedBy.CROSS_TUNING
    slow, _ = oracles.conditional_log_likelihood(
        learnt.tables.families, data, enumeration(data, learnt.tables.families).flatten(learnt.tables)
    )
    assert learnt.cll == pytest.approx(slow)
    assert learnt.cll > learnt.cll_start


def test_long_runs_that_serve_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off after 1, 2, 4, ... iterations, or never: the same choice where the likelihood held out rises first."""
    data = random_dataset(4000, (3, 2, 3), 2, seed=2)
    slowly = {"optimizer": "cg", "init": "zero", "max_iterations": 60}
    folds = tuning_folds(data, SPACE, seed=0)
    at_once = best_iterations(folds, how(**slowly), watch=silent)
    monkeypatch.setattr("bncli.engine.parameters.early_stopping.FIRST", 1)
    assert best_iterations(folds, how(**slowly), watch=silent) == at_once
    assert at_once.iterations > 1


@dataclass
class MadeUp:
    """A fold of which the likelihood held out is known after every iteration; how often it is followed how far."""

    held_out: list[float]
    caps: list[int] = field(default_factory=list)

    def find_optimum(self, settings: Any) -> early_stopping._Path:
        self.caps.append(settings.max_iterations)
        return early_stopping._Path(self.held_out[: self.caps[-1] + 1], self.caps[-1] >= len(self.held_out))


@pytest.mark.parametrize(
    ("peak", "n", "most", "caps", "best"),
    [
        (5, 100, 90, [8], 5),
        (6, 100, 90, [8, 16], 6),
        (10, 100, 90, [8, 16], 10),
        (11, 100, 90, [8, 16, 32], 11),
        (30, 100, 90, [8, 16, 32, 64], 30),
        (30, 100, 20, [8, 16, 20], 20),
        (6, 7, 90, [8], 6),
        (3, 100, 2, [2], 2),
    ],
)
def test_runs_are_followed_half_as_long_again_as_the_likelihood_rose(
    peak: int, n: int, most: int, caps: list[int], best: int
) -> None:
    """It rises to its peak and falls; after n iterations the optimizer is there."""
    fold = MadeUp([-abs(i - peak) - 1.0 for i in range(n)])
    assert best_iterations([fold], how(max_iterations=most), watch=silent).iterations == best
    assert fold.caps == caps


def test_the_watch_hears_of_folds_and_only_of_the_last_run() -> None:
    events: list[Event] = []
    learnt = fit(with_missing(random_dataset(60, (3, 2, 3), 2), 0.2), watch=events.append)
    iterations = [event.iteration for event in events if isinstance(event, Iteration)]
    assert iterations == list(range(learnt.iterations + 1))
    assert next(event.detail for event in events if isinstance(event, Progress)) == "up to 8 iterations, fold 1 of 5"


def test_seeds_and_determinism() -> None:
    data = with_missing(random_dataset(60, (3, 2, 3), 2), 0.2)
    once, twice = fit(data, seed=4), fit(data, seed=4)
    assert once.tables.weights[0].tobytes() == twice.tables.weights[0].tobytes()


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_hardly_any_rows(n_rows: int) -> None:
    learnt = fit(with_missing(random_dataset(n_rows, (3, 2, 3), 2), 0.3), max_iterations=20)
    assert learnt.cll >= learnt.cll_start


def test_paths_end_where_they_end_and_ties_go_to_fewer() -> None:
    assert _peak([[-3.0, -2.0, -1.0], [-1.0, -2.0]]) == Peak(2, -3.0)
    assert _peak([[-3.0, -2.0, -2.5], [-1.0, -2.0, -1.5]]) == Peak(0, -4.0)
    assert _peak([[-1.0]]) == Peak(0, -1.0)
