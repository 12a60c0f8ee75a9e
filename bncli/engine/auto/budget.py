"""How much the choice among candidates may cost: folds, rows and passes over them.

Conventions, all of it from the numbers of rows, attributes and classes, so that the same rows give the same model: up
to FOLDED_ROWS rows every row is held out once, in 5 folds; of more, folds are tried until HELD_OUT rows have been, and
of more than MOST_ROWS so many are drawn by class, of which a fifth is held out. Candidates are tried, the likely best
first; one that is expected to take more than what is left of the budget, the fit on all rows included, is left
out. The budget is SECONDS_OF_FEW for up to FEW_ROWS rows, and for more

    SECONDS + SECONDS_A_VALUE * rows^ROWS_POWER * attributes^(1/4) * classes (of two: 1)

which grows about as the least time of boosting does; of many rows the fits on all rows of the candidates before count,
too. With a limit in seconds the clock decides instead, from the seconds that the candidates before took for what they
were expected to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bncli.engine.data.dataset import Dataset
from bncli.engine.training.likelihood import ConditionalLikelihood
from bncli.watch import Clock

FOLDS = 5
FOLDED_ROWS, HELD_OUT = 3_000, 1_500
MOST_ROWS = 25_000
FEW_ROWS, SECONDS_OF_FEW = 4_000, 30.0
SECONDS, SECONDS_A_VALUE, ROWS_POWER = 0.2, 8.5e-4, 0.7
PASSES_OF_PATH, PASSES_OF_FIT = 300.0, 40.0
"""Evaluations, roughly, of all penalties in one fold, and of a fit with one; preconditioners included."""
CELL = 30.0
"""Nanoseconds, roughly, that an evaluation takes for an entry of a table."""


def folds_held_out(n_rows: int) -> int:
    """Of FOLDS folds, how many are held out in turn."""
    if n_rows <= FOLDED_ROWS:
        return FOLDS
    return max(1, min(FOLDS, round(HELD_OUT * FOLDS / n_rows)))


@dataclass
class ComputeBudget:
    """What may be spent and has been: seconds as expected, and where there is a limit those of the clock."""

    limit: float | None
    clock: Clock | None
    seconds: float = math.inf
    began: float = 0.0
    expected: float = 0.0
    later: float = 0.0
    """Of the fits on all rows, of many."""
    before_candidates: float = 0.0

    @classmethod
    def of(cls, limit: float | None, clock: Clock | None) -> ComputeBudget:
        """Begins now."""
        return cls(limit, clock, began=0.0 if clock is None else clock())

    def begin_candidates(self, data: Dataset) -> None:
        """The first candidate begins."""
        self.seconds = _seconds(data)
        self.before_candidates = self._elapsed()

    def allows(self, expected: float, later: float) -> bool:
        """Whether a candidate of this cost, and of so much later, may still be tried."""
        if self.limit is None or self.clock is None:
            return self.expected + expected + self.later + later <= self.seconds
        elapsed = self._elapsed()
        rate = (elapsed - self.before_candidates) / self.expected if self.expected else 1.0
        return elapsed + rate * (expected + self.later + later) <= self.limit

    def _elapsed(self) -> float:
        return 0.0 if self.clock is None else self.clock() - self.began


def _seconds(data: Dataset) -> float:
    if data.n_rows <= FEW_ROWS:
        return SECONDS_OF_FEW
    n_labels = data.n_labels if data.n_labels > 2 else 1
    return SECONDS + SECONDS_A_VALUE * float(data.n_rows**ROWS_POWER) * math.sqrt(math.sqrt(len(data.codes))) * n_labels


def path_seconds(likelihoods: Sequence[ConditionalLikelihood]) -> float:
    """What the paths over these rows are expected to take."""
    return PASSES_OF_PATH * sum(pass_seconds(likelihood) for likelihood in likelihoods)


def fit_seconds(likelihood: ConditionalLikelihood, n_rows: int) -> float:
    """What a fit of the same tables on so many rows is expected to take."""
    return PASSES_OF_FIT * pass_seconds(likelihood) * max(1.0, n_rows / max(likelihood.data.n_rows, 1))


def pass_seconds(likelihood: ConditionalLikelihood) -> float:
    """One evaluation, with the change of coordinates."""
    return 1e-9 * (likelihood.pass_work + CELL * likelihood.data.n_labels * likelihood.n_cells)
