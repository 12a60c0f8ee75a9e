"""What the figures of classifiers say together: losses set by set, ranks, ratios, wins.

Folds of a table that not every learner has tried are left out for all. A learner that gave a table up is ranked last
there and counts as worse than those that did not; ratios are means over the tables that it did not give up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.evaluation.significance import (
    LossKind,
    WinDrawLoss,
    average_ranks,
    geometric_mean_ratio,
    win_draw_loss,
)
from tests.published.classifiers import LEARNERS
from tests.published.references import FOLDS, Figure
from tests.published.references import LEARNERS as REFERENCES

Array = NDArray[np.float64]
BESIDE = "HistGradientBoosting, early"
"""What all are compared with."""
LOSSES = ("log-loss", "error", "RMSE")
FIGURES = (*LOSSES, "fit", "score")
KINDS: dict[str, LossKind] = {"log-loss": "mean", "error": "mean", "RMSE": "root", "fit": "plain", "score": "plain"}
WORST = 1e9
"""In place of what a learner that gave up would have lost."""


class Summary(NamedTuple):
    """One learner over all tables: average ranks by LOSSES, log-losses against BESIDE.

    Then median and sum of the seconds to fit a fold, and to score it.
    """

    learner: str
    ranks: tuple[float, ...]
    ratio: float
    against: WinDrawLoss
    fit: tuple[float, float]
    score: tuple[float, float]


@dataclass(frozen=True)
class Evidence:
    """Means over the folds of each table; nan where the learner gave up.

    values[figure] is (tables, learners); `tested` are the rows that the folds held out, `sizes` those of the tables.
    """

    sets: tuple[str, ...]
    learners: tuple[str, ...]
    values: dict[str, Array]
    tested: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def of(self, figure: str, learner: str) -> Array:
        """One learner's column."""
        return self.values[figure][:, self.learners.index(learner)]

    def among(self, learners: Iterable[str]) -> Evidence:
        """Only these learners."""
        chosen = [learner for learner in learners if learner in self.learners]
        columns = [self.learners.index(learner) for learner in chosen]
        values = {figure: value[:, columns] for figure, value in self.values.items()}
        return Evidence(self.sets, tuple(chosen), values, self.tested, self.sizes)

    def sized(self, least: float, below: float) -> Evidence:
        """Only tables of so many rows."""
        return self.where((self.sizes >= least) & (self.sizes < below))

    def where(self, chosen: NDArray[np.bool_]) -> Evidence:
        """Only these tables."""
        names = tuple(name for name, is_chosen in zip(self.sets, chosen, strict=True) if is_chosen)
        values = {figure: value[chosen] for figure, value in self.values.items()}
        return Evidence(names, self.learners, values, self.tested[chosen], self.sizes[chosen])

    def ranks(self, figure: str) -> Array:
        """Average rank of each learner over the tables."""
        worst = np.where(np.isnan(self.values[figure]), WORST, self.values[figure])
        return np.asarray(average_ranks(worst).mean(axis=0))

    def ratio(self, figure: str, learner: str, other: str = BESIDE) -> float:
        """Geometric mean over the tables that neither gave up."""
        first, second = self.of(figure, learner), self.of(figure, other)
        chosen = ~np.isnan(first) & ~np.isnan(second)
        return geometric_mean_ratio(first[chosen], second[chosen], self.tested[chosen], KINDS[figure])

    def against(self, figure: str, learner: str, other: str = BESIDE) -> WinDrawLoss:
        """Tables on which the learner loses less, as much, more than the other."""
        first, second = (np.nan_to_num(self.of(figure, name), nan=WORST) for name in (learner, other))
        return win_draw_loss(-first, -second)

    def best(self, figure: str, learners: Iterable[str]) -> Array:
        """The least of several learners, set by set; a mean is at least half an error among the rows."""
        return np.asarray(np.fmax(np.nanmin(self.among(learners).values[figure], axis=1), 0.5 / self.tested))

    def summaries(self) -> list[Summary]:
        """Every learner, the best rank in log-loss first."""
        ranks = np.transpose([self.ranks(figure) for figure in LOSSES]).tolist()
        found = [self._summary(learner, tuple(of)) for learner, of in zip(self.learners, ranks, strict=True)]
        return sorted(found, key=lambda summary: summary.ranks)

    def _summary(self, learner: str, ranks: tuple[float, ...]) -> Summary:
        fit, score = (
            (float(np.nanmedian(seconds)), float(np.nansum(seconds)))
            for seconds in (self.of("fit", learner), self.of("score", learner))
        )
        return Summary(learner, ranks, self.ratio("log-loss", learner), self.against("log-loss", learner), fit, score)


def evidence(figures: Sequence[Figure]) -> Evidence:
    """Of all learners that occur, over the tables that each of them has tried."""
    tried: dict[str, dict[str, dict[int, Figure]]] = defaultdict(lambda: defaultdict(dict))
    for figure in figures:
        folds = tried[figure.set][figure.learner]
        if not np.isnan(figure.log_loss):
            folds[figure.fold] = figure
    occurring = {figure.learner for figure in figures}
    learners = tuple(learner for learner in (*LEARNERS, *REFERENCES) if learner in occurring)
    sets = [name for name, of_set in tried.items() if occurring <= of_set.keys()]
    means = [_means([tried[name][learner] for learner in learners]) for name in sets]
    sizes = [round(np.mean([f.rows for f in tried[name][BESIDE].values()]) * FOLDS) for name in sets]
    order = sorted(range(len(sets)), key=lambda i: (sizes[i], sets[i]))
    values = np.array([means[i][0] for i in order]).reshape(len(sets), len(learners), len(FIGURES))
    return Evidence(
        tuple(sets[i] for i in order),
        learners,
        {figure: values[:, :, i] for i, figure in enumerate(FIGURES)},
        np.array([means[i][1] for i in order], np.int64),
        np.array([sizes[i] for i in order], np.int64),
    )


def _means(of_learners: Sequence[dict[int, Figure]]) -> tuple[list[list[float]], int]:
    """FIGURES of each learner over the folds that all have tried, and the rows of these folds."""
    common = sorted(set.intersection(*(set(folds) for folds in of_learners if folds)))
    means = [_mean([folds[fold] for fold in common]) if folds else [np.nan] * len(FIGURES) for folds in of_learners]
    some = next(folds for folds in of_learners if folds)
    return means, sum(some[fold].rows for fold in common)


def _mean(folds: Sequence[Figure]) -> list[float]:
    """Losses over all rows, seconds a fold."""
    rows = [fold.rows for fold in folds]
    log_loss, error, square = np.average([(f.log_loss, f.error, f.rmse**2) for f in folds], axis=0, weights=rows)
    fit, score = np.mean([(f.fit, f.score) for f in folds], axis=0)
    return [float(log_loss), float(error), float(np.sqrt(square)), float(fit), float(score)]
