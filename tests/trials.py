"""Trials made up for tests: what learners might have done, without learning anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.evaluation.cross_validation import Protocol
from bncli.engine.evaluation.metrics import BiasVariance
from bncli.steps.compare.trials import ComparisonResults, Gap, Outcome

Losses = Mapping[tuple[str, str], Sequence[float | None]]
"""The losses of the folds, repeat after repeat, by data set and learner."""


def trial_of(
    losses: Losses,
    *,
    folds: int = 2,
    seconds: Mapping[str, float] | None = None,
    iterations: Mapping[str, int] | None = None,
    rows: int | Sequence[int] = 100,
) -> ComparisonResults:
    """A trial whose folds have these errors; accuracy is 1 less it, and cll minus it; figures nowhere are gaps.

    Seconds are by learner, and so are the iterations, where it has some; passes are one more.
    """
    data, learners = (tuple(dict.fromkeys(pair[i] for pair in losses)) for i in (0, 1))
    n = max(map(len, losses.values()))
    repeats = n // folds
    outcomes = [
        replace(
            _outcome(name, learner, number, folds, losses[name, learner][number], (seconds or {}).get(learner, 1.0)),
            costs=_costs((iterations or {}).get(learner)),
        )
        for name in data
        for learner in learners
        if (name, learner) in losses
        for number in range(len(losses[name, learner]))
    ]
    parts = {pair: _parts(values) for pair, values in losses.items()} if repeats > 1 else {}
    gaps = tuple(Gap(name, learner, "too large") for name, learner in _missing(data, learners, losses))
    options = {learner: f"--structure {learner}" for learner in learners}
    protocol = Protocol(folds, repeats, 0)
    sizes = dict.fromkeys(data, rows) if isinstance(rows, int) else dict(zip(data, rows, strict=True))
    return ComparisonResults(learners, data, sizes, protocol, tuple(outcomes), parts, options, gaps)


def _outcome(name: str, learner: str, number: int, folds: int, loss: float | None, seconds: float) -> Outcome:
    metrics = {
        "accuracy": None if loss is None else 1 - loss,
        "error": loss,
        "rmse": None if loss is None else loss**0.5,
        "cll": None if loss is None else -loss,
    }
    times = {"fit": seconds, "score": seconds / 10}
    return Outcome(name, learner, number // folds, number % folds, 50, metrics, times, {}, np.zeros(50, np.uint8))


def _costs(iterations: int | None) -> dict[str, int | None]:
    return {"iterations": iterations, "passes": None if iterations is None else iterations + 1}


def _parts(values: Sequence[float | None]) -> BiasVariance:
    mean = sum(value for value in values if value is not None) / len(values)
    return BiasVariance(0.75 * mean, 0.25 * mean)


def _missing(data: Iterable[str], learners: Sequence[str], losses: Losses) -> list[tuple[str, str]]:
    return [(name, learner) for name in data for learner in learners if (name, learner) not in losses]


def random_trial(n_learners: int, n_sets: int, *, folds: int = 5, repeats: int = 1, seed: int = 0) -> ComparisonResults:
    """Learners of unlike quality on data sets of unlike difficulty."""
    rng = np.random.default_rng(seed)
    losses = {}
    for i in range(n_sets):
        level = rng.uniform(0.05, 0.4)
        for j in range(n_learners):
            mean = level * np.exp(0.1 * rng.normal() + 0.05 * j)
            losses[f"set {i}", f"learner {j}"] = np.abs(mean * (1 + 0.1 * rng.normal(size=folds * repeats))).tolist()
    return trial_of(losses, folds=folds)
