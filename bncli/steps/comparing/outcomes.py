"""What a comparison finds before anything is concluded from it: an outcome for every fold of every learner.

A trial holds them all in one order, that of the data sets, learners, repeats and folds, whatever finished first. A
learner that failed on a data set has no outcome there: a gap, with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bncli.engine.evaluation.validate import Protocol
from bncli.engine.kernels.arrays import Codes

if TYPE_CHECKING:
    from bncli.engine.evaluation.bias_variance import BiasVariance


COSTS = ("fit_seconds", "iterations", "passes")
"""What learning in a fold costs, less being better: seconds of the processor; iterations of the final optimization and
its passes over the rows. Costs compare by ratios; no test asks whether they differ, for the same work costs the same.
"""

COUNTS = ("iterations", "passes")
"""Those that are whole numbers in a fold, and that parameters in closed form do not have."""


@dataclass(frozen=True)
class Outcome:
    """What one learner did on one fold of one repeat of one data set.

    metrics are by name, None where one is not defined; seconds of the processor are those to `fit` and to `score`, and
    `costs` the iterations and passes, None for parameters in closed form; predicted (rows,) holds the codes of the most
    probable labels of the rows tested, in ascending order of the rows.
    """

    data: str
    learner: str
    repeat: int
    fold: int
    rows: int
    metrics: dict[str, float | None]
    seconds: dict[str, float]
    costs: dict[str, int | None]
    predicted: Codes

    def figure(self, metric: str) -> float | None:
        """A metric or a cost by its name."""
        if metric == "fit_seconds":
            return self.seconds["fit"]
        return self.costs[metric] if metric in COUNTS else self.metrics[metric]


@dataclass(frozen=True)
class Gap:
    """A learner that could not be tried on a data set, and why in one line."""

    data: str
    learner: str
    reason: str


@dataclass(frozen=True)
class Trial:
    """Everything that was run: learners and data sets in the order typed, rows by data set, outcomes in that order.

    options says, by learner, what was typed for it; bias_variance, by data set and learner, is empty for one repeat;
    gaps lists who failed where.
    """

    learners: tuple[str, ...]
    data: tuple[str, ...]
    sizes: dict[str, int]
    protocol: Protocol
    outcomes: tuple[Outcome, ...]
    bias_variance: dict[tuple[str, str], BiasVariance]
    options: dict[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
