"""The figures of an evaluation, as records and as JSON.

What came of decisions in an evaluation: means over the folds, and how every threshold would have done.

The figures of groups as a report, and as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.evaluation.curves import Calibration, Curve, LabelCurves, label_curves
from bncli.engine.evaluation.decision_metrics import DecidedRows, DecisionMetrics
from bncli.engine.evaluation.groups import Fairness, Group
from bncli.engine.evaluation.metrics import Baseline, LabelMetrics, skill_score
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.parameters.network_scores import ScoredNetwork
from bncli.engine.prediction.decision_rules import threshold_table

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


@dataclass(frozen=True)
class GroupsReport:
    """The groups of every column, in the order of its values, and the gaps of the rates over them."""

    groups: tuple[Group, ...]
    fairness: tuple[Fairness, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the keys `groups` and `fairness`."""
        return {"groups": list(map(_group_json, self.groups)), "fairness": list(map(_fairness_json, self.fairness))}


@dataclass(frozen=True)
class FoldReport:
    """One fold: its figures by name, those of the class frequencies, the penalty of the fit, and the seconds it took.

    seconds: fit and score.
    """

    repeat: int
    fold: int
    rows: int
    metrics: dict[str, float | None]
    base: Baseline
    penalty: float | None
    seconds: dict[str, float]
    decided: DecisionMetrics | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the figures beside the rest."""
        fields = {"repeat": self.repeat, "fold": self.fold, "rows": self.rows, **self.metrics}
        fields |= {} if self.decided is None else self.decided.metrics
        return {**fields, "base": self.base._asdict(), "penalty": self.penalty, "seconds": self.seconds}


@dataclass(frozen=True)
class CurvePoint:
    """A size: the means of the figures over its outcomes, their standard deviations, and the outcomes, one a fit."""

    rows: int
    metrics: dict[str, float | None]
    std: dict[str, float | None]
    outcomes: tuple[FoldReport, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the means as keys of their own."""
        return {"rows": self.rows, **self.metrics, "std": self.std}


class Pooled(NamedTuple):
    """The rows tested, all together: ln P(c | x_t), shape (K, N), their labels as positions, their weights or None."""

    log_probabilities: Array
    codes: Integers
    weights: Array | None


@dataclass(frozen=True)
class EvaluateReport:
    """Figures by name, and under cross-validation their means and standard deviations over `folds`.

    A figure is None where it is not defined. base: those of the class frequencies of the rows learnt from, a mean over
    the folds too; of a model file, which does not keep them, of the rows tested. confusion[true][predicted], in the
    order of `labels`, is summed over the folds, and the figures `per_label` are those of the sum. pooled: every row
    with its prediction, out of fold (of the first repeat). scored: the networks on the rows that they were learnt from,
    a mean over the folds; None unless asked for. seconds: fit (None for a model file) and score, means too.
    decisions: what came of them, and the table of thresholds of two labels.
    learning_curve: a point a size of the samples that were learnt from too, ascending. groups, calibration: None unless
    asked for.
    """

    rows: int
    protocol: str
    metrics: dict[str, float | None]
    base: Baseline
    seconds: dict[str, float | None]
    labels: tuple[str, ...]
    confusion: list[list[float]]
    per_label: list[LabelMetrics]
    pooled: Pooled
    std: dict[str, float | None] | None = None
    folds: tuple[FoldReport, ...] | None = None
    learning_curve: tuple[CurvePoint, ...] = ()
    scored: ScoredNetwork | None = None
    decisions: DecisionReport = field(default_factory=DecisionReport)
    groups: GroupsReport | None = None
    calibration: Calibration | None = None

    @cached_property
    def curves(self) -> list[LabelCurves]:
        """Those of every label, from all rows together; made when they are asked for."""
        return label_curves(*self.pooled)

    @property
    def skill_score(self) -> float | None:
        """1 - log_loss / base log_loss: of the figures reported, not a mean of its own."""
        return skill_score(self.metrics["log_loss"], self.base.log_loss)

    def as_json(self) -> dict[str, Any]:
        """Return every figure as a key of its own.

        `std` and `folds` only under cross-validation, a curve only of samples.
        """
        report: dict[str, Any] = {
            "rows": self.rows,
            "protocol": self.protocol,
            **self.metrics,
            **self.decisions.as_json(self.labels),
            "base": self.base._asdict(),
            "skill_score": self.skill_score,
            "seconds": self.seconds,
            "labels": list(self.labels),
            "confusion": self.confusion,
            "per_class": [
                {"label": label, **figures._asdict()}
                for label, figures in zip(self.labels, self.per_label, strict=True)
            ],
            "curves": curves_json(self.labels, self.curves),
        }
        if self.scored is not None:
            report |= scored_json(self.scored)
        if self.folds is not None:
            std = {**(self.std or {}), **self.decisions.std}
            report |= {"std": std, "folds": [fold.as_json() for fold in self.folds]}
        if self.calibration is not None:
            report |= calibration_figures_json(self.calibration)
        if self.groups is not None:
            report |= self.groups.as_json()
        if self.learning_curve:
            report["learning_curve"] = [point.as_json() for point in self.learning_curve]
        return report


def decision_report(
    folds: Sequence[DecisionMetrics | None], pooled: Pooled, places: Sequence[Index] = ()
) -> DecisionReport:
    """From the decisions in each fold, or of the one test table, and all rows together.

    places: where the rows of the folds of the first repeat stand; none: there is one table, in its order.
    """
    there = [fold for fold in folds if fold is not None]
    names = there[0].metrics if there else {}
    values = {name: [v for fold in there if (v := fold.metrics[name]) is not None] for name in names}
    covered = [fold.class_coverage for fold in there if fold.class_coverage is not None]
    by_class = [[c for c in one if c is not None] for one in zip(*covered, strict=True)]
    rows = _decided_rows(there, places, len(pooled.codes))
    thresholds: list[dict[str, float]] = []
    if len(pooled.log_probabilities) == 2:
        p = np.exp(pooled.log_probabilities[1])
        thresholds = threshold_table(p, pooled.codes == 1, pooled.weights, rows.rule.costs if rows else None)
    return DecisionReport(
        {name: fmean(found) if found else None for name, found in values.items()},
        {name: stdev(found) if len(found) > 1 else None for name, found in values.items()} if len(folds) > 1 else {},
        tuple(fmean(one) if one else None for one in by_class),
        tuple(thresholds),
        rows,
    )


def _decided_rows(folds: Sequence[DecisionMetrics], places: Sequence[Index], n_rows: int) -> DecidedRows | None:
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


def summarized(
    folds: Sequence[Mapping[str, float | None]],
    names: Sequence[str],
    summary: Callable[[list[float]], float],
    at_least: int = 1,
) -> dict[str, float | None]:
    """Return the summary of each figure over the folds where it is defined; None where those are too few."""
    defined = {name: [value for fold in folds if (value := fold[name]) is not None] for name in names}
    return {name: summary(values) if len(values) >= at_least else None for name, values in defined.items()}


def calibration_figures_json(figures: Calibration) -> dict[str, Any]:
    """Return the keys `reliability`, `brier_parts` and `ece_equal_mass`."""
    return {
        "reliability": [one._asdict() for one in figures.bins],
        "brier_parts": figures.brier_parts._asdict(),
        "ece_equal_mass": figures.ece_equal_mass,
    }


def scored_json(scored: ScoredNetwork) -> dict[str, Any]:
    """Return the keys `scores` and `acll_relative_error`."""
    return {"scores": scored.scores._asdict(), "acll_relative_error": scored.acll_relative_error}


def curves_json(labels: Sequence[str], curves: Sequence[LabelCurves]) -> dict[str, Any]:
    """Return the curves as tables: a list a column. A curve that is not defined has no points, and no area (None)."""
    tables: dict[str, Any] = {"roc": [], "precision_recall": [], "reliability": []}
    for label, one in zip(labels, curves, strict=True):
        roc = _points(one.roc, "auc", "false_positive_rate", "true_positive_rate")
        tables["roc"].append({"label": label, **roc})
        ranked = _points(one.precision_recall, "average_precision", "recall", "precision")
        tables["precision_recall"].append({"label": label, **ranked})
        reliability = {name: values.tolist() for name, values in one.reliability._asdict().items()}
        tables["reliability"].append({"label": label, **reliability})
    return tables


def _points(curve: Curve | None, area: str, x: str, y: str) -> dict[str, Any]:
    """Return a curve under these names; its first point has no threshold."""
    if curve is None:
        return {area: None, "threshold": [], x: [], y: []}
    thresholds = [None, *curve.thresholds[1:].tolist()]
    return {area: curve.area, "threshold": thresholds, x: curve.x.tolist(), y: curve.y.tolist()}


def _group_json(group: Group) -> dict[str, Any]:
    intervals = {name: None if bounds is None else list(bounds) for name, bounds in group.intervals.items()}
    rates = [
        {
            "label": label,
            **{
                name: (None if rate is None else {"share": rate.share, "interval95": list(rate.interval)})
                for name, rate in told.items()
            },
        }
        for label, told in group.rates.items()
    ]
    head = {"by": group.by, "value": group.value, "rows": group.rows, "weight": group.weight}
    return head | group.metrics | group.decisions | {"interval95": intervals, "rates": rates}


def _fairness_json(fairness: Fairness) -> dict[str, Any]:
    gaps = {**fairness.gaps, "equalized_odds": fairness.equalized_odds}
    return {"by": fairness.by, "label": fairness.label} | {
        name: (None if gap is None else gap._asdict()) for name, gap in gaps.items()
    }
