"""What came of decisions in an evaluation: means over the folds, and how every threshold would have done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from bncli.engine.decisions.thresholds import table
from bncli.engine.evaluation.decision_figures import DecidedRows, DecisionFigures
from bncli.engine.kernels.arrays import Index

if TYPE_CHECKING:
    from bncli.steps.evaluating.report import Pooled

Figure = float | None


@dataclass(frozen=True)
class DecisionReport:
    """Figures and coverages of labels, means over the folds where they are defined, the figures' standard deviations.

    All are empty where nothing was decided. thresholds: a line each of the thresholds 0, 0.01, ..., 1 on the
    probability of the second of two labels, from all rows tested together; empty with other numbers of labels.
    rows: what was decided of each row, by the fold of the first repeat that had not seen it, and the rule, whose
    threshold is the mean of those of the folds; None where nothing was decided.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    std: dict[str, Figure] = field(default_factory=dict)
    class_coverage: tuple[Figure, ...] = ()
    thresholds: tuple[dict[str, float], ...] = ()
    rows: DecidedRows | None = None

    def as_json(self, labels: Sequence[str]) -> dict[str, Any]:
        """Keys of what there is."""
        found: dict[str, Any] = dict(self.figures)
        if self.class_coverage:
            pairs = zip(labels, self.class_coverage, strict=True)
            found["class_coverage"] = [{"label": label, "coverage": coverage} for label, coverage in pairs]
        return found | ({"thresholds": list(self.thresholds)} if self.thresholds else {})


def decision_report(
    folds: Sequence[DecisionFigures | None], pooled: Pooled, places: Sequence[Index] = ()
) -> DecisionReport:
    """From the decisions in each fold, or of the one test table, and all rows together.

    places: where the rows of the folds of the first repeat stand; none: there is one table, in its order.
    """
    there = [fold for fold in folds if fold is not None]
    names = there[0].figures if there else {}
    values = {name: [v for fold in there if (v := fold.figures[name]) is not None] for name in names}
    covered = [fold.class_coverage for fold in there if fold.class_coverage is not None]
    by_class = [[c for c in one if c is not None] for one in zip(*covered, strict=True)]
    rows = _decided_rows(there, places, len(pooled.codes))
    thresholds: list[dict[str, float]] = []
    if len(pooled.log_probabilities) == 2:
        p = np.exp(pooled.log_probabilities[1])
        thresholds = table(p, pooled.codes == 1, pooled.weights, rows.rule.costs if rows else None)
    return DecisionReport(
        {name: fmean(found) if found else None for name, found in values.items()},
        {name: stdev(found) if len(found) > 1 else None for name, found in values.items()} if len(folds) > 1 else {},
        tuple(fmean(one) if one else None for one in by_class),
        tuple(thresholds),
        rows,
    )


def _decided_rows(folds: Sequence[DecisionFigures], places: Sequence[Index], n_rows: int) -> DecidedRows | None:
    found = [fold.rows for fold in folds if fold.rows is not None]
    if not found or not places:
        return found[0] if found else None
    codes = np.empty(n_rows, np.intp)
    for rows, one in zip(places, found, strict=False):
        codes[rows] = one.codes
    rule = found[0].rule
    values = [one.rule.threshold.value for one in found if one.rule.threshold is not None]
    threshold = None if rule.threshold is None else rule.threshold._replace(value=fmean(values))
    return DecidedRows(replace(rule, threshold=threshold), codes)
