"""Every candidate, tried on rows held out: its best penalty, and what it gave to these rows there.

The tables of a candidate are found again in every fold, from the rows that are not held out: what was chosen with a
look at a row would make the ensemble trust it too much. The penalty is that of least loss, by the metric asked for,
ties to the log-loss (`error` has many) and then to the larger penalty. A path ends where its log-loss lies WORSE above
its lowest (WORSE_OF_MANY, where MANY rows are held out) or has risen twice in a row, from LEAST_STEEP down where three
penalties differ by no more than FLAT, and below LEAST_USUAL where it no longer falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.auto.paths import PenaltyPath
from bncli.engine.boosting.boosting import Boosted
from bncli.engine.chosen_penalty import Tried
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.training.shrinkage import log_frequencies

Tell = Callable[[float, int], None]
"""Hears of a penalty and a fold."""

GRID = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
FIRST, LEAST_USUAL = 30.0, 0.01
WORSE, WORSE_OF_MANY, SLACK = 0.03, 0.01, 1e-4
FLAT, LEAST_STEEP = 1e-3, 3.0
MANY = 1000
"""Rows held out, of which a loss is known so well that a path need not be followed far."""
TIE = 1e-4
FREQUENCIES = "class frequencies"
"""The candidate that has no tables."""
METRICS = ("log-loss", "error", "rmse")


class Losses(NamedTuple):
    """Means over the rows held out, by weight."""

    log_loss: float
    error: float
    rmse: float

    def by(self, metric: str) -> float:
        """The one of that name."""
        return {"log-loss": self.log_loss, "error": self.error, "rmse": self.rmse}[metric]


@dataclass(frozen=True)
class Judged:
    """A candidate's best penalty, losses and ln P(y | x) of the rows held out (K, rows) there; all that was tried."""

    name: str
    penalty: float
    losses: Losses
    logs: Array
    tried: tuple[Tried, ...]
    path: PenaltyPath | None
    """That of the first fold."""
    members: tuple[Boosted, ...] = ()
    """Of a bag: one a fold, in place of a path."""


def judge(
    name: str,
    paths: Sequence[PenaltyPath],
    metric: str,
    tell: Tell,
    first: float,
    is_late: Callable[[], bool] = lambda: False,
) -> Judged:
    """The candidate at its best penalty, from `first` downwards, then upwards if it is best; a path for each fold.

    Once it `is_late`, no further penalty is tried.
    """
    search = _Search(paths, metric, tell)
    start = GRID.index(first)
    for penalty in GRID[start:]:
        search.advance(penalty)
        if search.is_over or is_late():
            break
    if search.penalty == first and not is_late():
        for path in paths:
            path.turn()
        for penalty in reversed(GRID[:start]):
            search.advance(penalty)
            if search.penalty != penalty or is_late():
                break
    return Judged(name, search.penalty, search.losses, search.logs, tuple(search.tried), paths[0])


class _Search:
    """The paths of a candidate, and the best of what was tried so far."""

    def __init__(self, paths: Sequence[PenaltyPath], metric: str, tell: Tell) -> None:
        self.paths, self.metric, self.tell = paths, metric, tell
        self.weights = held_out_weights([path.held_out for path in paths])
        self.labels = np.concatenate([path.held_out.labels for path in paths])
        self.tried: list[Tried] = []
        self.penalty, self.losses, self.logs = math.nan, Losses(math.inf, math.inf, math.inf), np.zeros((0, 0))

    def advance(self, penalty: float) -> None:
        """One more penalty, in every fold."""
        said = _advance(self.paths, penalty, self.tell)
        losses = losses_of(said, self.labels, self.weights)
        self.tried.append(Tried(penalty, losses.log_loss))
        if _better(losses, self.losses, self.metric):
            self.penalty, self.losses, self.logs = penalty, losses, said
            for path in self.paths:
                path.keep()

    @property
    def is_over(self) -> bool:
        return _is_over(self.tried, many=len(self.labels) >= MANY)


def judge_frequencies(parts: Sequence[tuple[Dataset, Dataset]]) -> Judged:
    """The class shares of the rows learnt from, of which there are one more of each class, whatever the row."""
    logs = np.concatenate(
        [np.repeat(log_frequencies(a.class_counts)[:, np.newaxis], b.n_rows, axis=1) for a, b in parts], axis=1
    )
    held_out = [rows for _, rows in parts]
    losses = losses_of(logs, np.concatenate([rows.labels for rows in held_out]), held_out_weights(held_out))
    return Judged(FREQUENCIES, 1.0, losses, logs, (Tried(1.0, losses.log_loss),), None)


def _advance(paths: Sequence[PenaltyPath], penalty: float, tell: Tell) -> Array:
    folds = []
    for fold, path in enumerate(paths):
        tell(penalty, fold)
        folds.append(path.advance(penalty))
    return np.concatenate(folds, axis=1)


def held_out_weights(folds: Sequence[Dataset]) -> Array | None:
    """The weights of all rows held out, in their order; None where each weighs 1."""
    weights = [fold.weights for fold in folds if fold.weights is not None]
    return np.concatenate(weights) if weights else None


def losses_of(logs: Array, labels: Integers, weights: Array | None) -> Losses:
    """From ln P(y | x_t) (K, rows) and the labels (rows,)."""
    own = logs[labels, np.arange(len(labels))]
    # 1 - P from ln P: it keeps its digits where P is next to 1
    errors = (-own, logs.argmax(axis=0) != labels, np.square(np.expm1(own)))
    log_loss, error, square = (float(np.average(values, weights=weights)) for values in errors)
    # -0.0 + 0.0 is 0.0: no loss is shown as -0
    return Losses(log_loss + 0.0, error, math.sqrt(square))


def _better(new: Losses, best: Losses, metric: str) -> bool:
    """Lower by more than a tie; for errors that tie, by log-loss."""
    if (metric == "error" and new.error == best.error) or best.log_loss == math.inf:
        # errors are whole numbers of rows and tie often; log-losses tell models apart
        metric = "log-loss"
    return new.by(metric) < best.by(metric) * (1 - TIE)


def _is_over(tried: Sequence[Tried], *, many: bool) -> bool:
    losses = [one.log_loss for one in tried]
    worse = WORSE_OF_MANY if many else WORSE
    if losses[-1] > min(losses) * (1 + worse) + SLACK or (_rises(losses[-3:-1]) and _rises(losses[-2:])):
        return True
    if tried[-1].penalty <= LEAST_STEEP and len(losses) > 2 and max(losses[-3:]) <= min(losses[-3:]) * (1 + FLAT):
        return True
    return tried[-1].penalty <= LEAST_USUAL and losses[-1] > min(losses[:-1], default=math.inf) * (1 - TIE)


def _rises(losses: Sequence[float]) -> bool:
    """From one penalty to the next, by more than a tie."""
    return len(losses) == 2 and losses[0] * (1 + TIE) < losses[1]
