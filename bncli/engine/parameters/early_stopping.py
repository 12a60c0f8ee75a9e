"""How many iterations of an optimizer serve rows that it has not seen: cross-tuning inside the training rows.

The rows are drawn into FOLDS stratified folds. On the rows outside each, the optimizer runs as it would be on all, from
a start of its own, and after every iteration i the rows of the fold are scored:

    H_i = sum over folds f of CLL(rows of f; parameters after i iterations outside f)

The i of highest H_i wins, the lowest of those within a share TIE; then the optimizer runs on all rows for so many
iterations (Greiner, Su, Shen & Zhou 2005, Machine Learning 59, section 4). A fold whose optimizer has stopped keeps its
last score.

Random starts (`bncli.engine.parameters.restarts`) are cross-tuned one by one, each from the same point in all folds,
and the start of the highest H_i is the one that runs on all rows: what is best for rows not seen decides here as well.

Conventions: runs are at first cut off after FIRST iterations, and made again with twice as many while the best i lies
in the last third of those made and some fold has not arrived: a likelihood held out that has been falling for half as
long as it rose is not followed further, and all rounds together cost no more than twice the last. Structure, cuts and
levels are those of all rows. A single row cannot be held out: then the optimizer runs to its end. If the winner is the
cap on iterations itself, that is what the run is said to have stopped by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_folds
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.optimizers.objective import Step
from bncli.engine.parameters.optimization import Likelihood, OptimizerSettings, Space, find_optimum, optimize
from bncli.engine.parameters.restarts import best_start
from bncli.watch import Progress, Watch

SpaceOf = Callable[[Counts], Space]
FOLDS = 5
FIRST = 8
TIE = 1e-12


class Peak(NamedTuple):
    """A number of iterations, and the likelihood of all held-out rows after so many, in nats."""

    iterations: int
    held_out: float


@dataclass(frozen=True)
class _Path:
    """The held-out log-likelihood after every iteration, the start included; whether the run ended by itself."""

    held_out: list[float]
    arrived: bool


@dataclass(frozen=True)
class TuningFold:
    """The rows to learn from, in their space, and those held out."""

    space: Space
    held_out: Likelihood

    def find_optimum(self, settings: OptimizerSettings) -> _Path:
        path: list[float] = []

        def score(step: Step, p: Array) -> None:
            path.append(self.held_out.value_and_gradient(self.space.coordinates.tables(p))[0])

        optimum = find_optimum(self.space, settings, score)
        return _Path(path, optimum.stopped_by is not StoppedBy.MAX_ITERATIONS)


def optimize_with_early_stopping(
    counts: Counts, space_of: SpaceOf, settings: OptimizerSettings, *, seed: int, watch: Watch
) -> Parameters:
    """Return the parameters after as many iterations as are best for held-out rows; `seed` draws the folds."""
    # a single row cannot be held out
    if counts.data.n_rows < 2:
        return optimize(space_of(counts), settings, watch)
    folds, space = tuning_folds(counts.data, space_of, seed), space_of(counts)

    def attempt(start: int) -> tuple[float, Parameters]:
        return _stopped_early(folds, space, replace(settings, start=start, restarts=0), watch)

    if not settings.restarts:
        return attempt(0)[1]
    return best_start(attempt, settings.restarts, watch, held_out=True)


def _stopped_early(
    folds: Sequence[TuningFold], space: Space, settings: OptimizerSettings, watch: Watch
) -> tuple[float, Parameters]:
    """Return the held-out likelihood at the best number of iterations, and the parameters after as many."""
    n, held_out = best_iterations(folds, settings, watch)
    learnt = optimize(space, replace(settings, max_iterations=n), watch)
    if learnt.stopped_by is StoppedBy.MAX_ITERATIONS and n < settings.max_iterations:
        learnt = replace(learnt, stopped_by=StoppedBy.CROSS_TUNING)
    return held_out, learnt


def best_iterations(folds: Sequence[TuningFold], settings: OptimizerSettings, watch: Watch) -> Peak:
    """Return the number of iterations of highest held-out likelihood, from the start that the settings name."""
    cap = min(FIRST, settings.max_iterations)
    while True:
        paths = []
        for f, fold in enumerate(folds):
            watch(Progress(f, len(folds), f"up to {cap} iterations, fold {f + 1} of {len(folds)}"))
            paths.append(fold.find_optimum(replace(settings, max_iterations=cap)))
        best = _peak([path.held_out for path in paths])
        # a peak in the first two thirds has been followed for half as long again as it took to rise
        if cap == settings.max_iterations or 3 * best.iterations <= 2 * cap or all(path.arrived for path in paths):
            return best
        cap = min(2 * cap, settings.max_iterations)


def _peak(paths: Sequence[Sequence[float]]) -> Peak:
    """Return the first place where the paths' sum is highest; a path that ends early stays where it is."""
    longest = max(map(len, paths))
    total = np.sum([[*path, *[path[-1]] * (longest - len(path))] for path in paths], axis=0)
    highest = float(total.max())
    # the first of those that tie: fewer iterations
    return Peak(int(np.argmax(total >= highest - TIE * abs(highest))), highest)


def tuning_folds(data: Dataset, space_of: SpaceOf, seed: int) -> list[TuningFold]:
    """Return the folds of at least two rows."""
    fold_of = stratified_folds(data.labels, min(FOLDS, data.n_rows), seed)
    folds = []
    for f in range(int(fold_of.max()) + 1):
        space = space_of(Counts(data.take(np.flatnonzero(fold_of != f))))
        folds.append(TuningFold(space, space.on(data.take(np.flatnonzero(fold_of == f)))))
    return folds
