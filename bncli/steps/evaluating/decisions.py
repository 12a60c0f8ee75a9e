"""What came of decisions in an evaluation: means over the folds, and how every threshold would have done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from bncli.engine.decisions.thresholds import table
from bncli.engine.evaluation.decision_figures import DecisionFigures

if TYPE_CHECKING:
    from bncli.steps.evaluating.report import Pooled

Figure = float | None


@dataclass(frozen=True)
class DecisionReport:
    """Figures and coverages of labels, means over the folds where they are defined, the figures' standard deviations.

    All are empty where nothing was decided. thresholds: a line each of the thresholds 0, 0.01, ..., 1 on the
    probability of the second of two labels, from all rows tested together; empty with other numbers of labels.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    std: dict[str, Figure] = field(default_factory=dict)
    class_coverage: tuple[Figure, ...] = ()
    thresholds: tuple[dict[str, float], ...] = ()

    def as_json(self, labels: Sequence[str]) -> dict[str, Any]:
        """Keys of what there is."""
        found: dict[str, Any] = dict(self.figures)
        if self.class_coverage:
            pairs = zip(labels, self.class_coverage, strict=True)
            found["class_coverage"] = [{"label": label, "coverage": coverage} for label, coverage in pairs]
        return found | ({"thresholds": list(self.thresholds)} if self.thresholds else {})


def decision_report(folds: Sequence[DecisionFigures | None], pooled: Pooled) -> DecisionReport:
    """From the decisions in each fold, or of the one test table, and all rows together."""
    there = [fold for fold in folds if fold is not None]
    names = there[0].figures if there else {}
    values = {name: [v for fold in there if (v := fold.figures[name]) is not None] for name in names}
    covered = [fold.class_coverage for fold in there if fold.class_coverage is not None]
    by_class = [[c for c in one if c is not None] for one in zip(*covered, strict=True)]
    thresholds: list[dict[str, float]] = []
    if len(pooled.log_probabilities) == 2:
        p = np.exp(pooled.log_probabilities[1])
        thresholds = table(p, pooled.codes == 1, pooled.weights, there[0].costs if there else None)
    return DecisionReport(
        {name: fmean(found) if found else None for name, found in values.items()},
        {name: stdev(found) if len(found) > 1 else None for name, found in values.items()} if len(folds) > 1 else {},
        tuple(fmean(one) if one else None for one in by_class),
        tuple(thresholds),
    )
