"""The figures of an evaluation, as records and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from bncli.engine.evaluation.baseline import Baseline, skill_score
from bncli.engine.evaluation.confusion import LabelFigures
from bncli.engine.evaluation.curves import Curve, LabelCurves, label_curves
from bncli.engine.evaluation.decision_figures import DecisionFigures
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.training.network_scores import ScoredNetwork
from bncli.steps.evaluating.decisions import DecisionReport


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
    decided: DecisionFigures | None = None

    def as_json(self) -> dict[str, Any]:
        """The figures beside the rest."""
        fields = {"repeat": self.repeat, "fold": self.fold, "rows": self.rows, **self.metrics}
        fields |= {} if self.decided is None else self.decided.figures
        return {**fields, "base": self.base._asdict(), "penalty": self.penalty, "seconds": self.seconds}


def summarized(
    folds: Sequence[Mapping[str, float | None]],
    names: Sequence[str],
    summary: Callable[[list[float]], float],
    at_least: int = 1,
) -> dict[str, float | None]:
    """The summary of each figure over the folds where it is defined; None where those are too few."""
    defined = {name: [value for fold in folds if (value := fold[name]) is not None] for name in names}
    return {name: summary(values) if len(values) >= at_least else None for name, values in defined.items()}


@dataclass(frozen=True)
class CurvePoint:
    """A size: the means of the figures over its outcomes, their standard deviations, and the outcomes, one a fit."""

    rows: int
    metrics: dict[str, float | None]
    std: dict[str, float | None]
    outcomes: tuple[FoldReport, ...]

    def as_json(self) -> dict[str, Any]:
        """The means as keys of their own."""
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
    learning_curve: a point a size of the samples that were learnt from too, ascending.
    """

    rows: int
    protocol: str
    metrics: dict[str, float | None]
    base: Baseline
    seconds: dict[str, float | None]
    labels: tuple[str, ...]
    confusion: list[list[float]]
    per_label: list[LabelFigures]
    pooled: Pooled
    std: dict[str, float | None] | None = None
    folds: tuple[FoldReport, ...] | None = None
    learning_curve: tuple[CurvePoint, ...] = ()
    scored: ScoredNetwork | None = None
    decisions: DecisionReport = field(default_factory=DecisionReport)

    @cached_property
    def curves(self) -> list[LabelCurves]:
        """Those of every label, from all rows together; made when they are asked for."""
        return label_curves(*self.pooled)

    @property
    def skill_score(self) -> float | None:
        """1 - log_loss / base log_loss: of the figures reported, not a mean of its own."""
        return skill_score(self.metrics["log_loss"], self.base.log_loss)

    def as_json(self) -> dict[str, Any]:
        """Every figure as a key of its own; `std` and `folds` only under cross-validation, a curve only of samples."""
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
        if self.learning_curve:
            report["learning_curve"] = [point.as_json() for point in self.learning_curve]
        return report


def scored_json(scored: ScoredNetwork) -> dict[str, Any]:
    """The keys `scores` and `acll_relative_error`."""
    return {"scores": scored.scores._asdict(), "acll_relative_error": scored.acll_relative_error}


def curves_json(labels: Sequence[str], curves: Sequence[LabelCurves]) -> dict[str, Any]:
    """The curves as tables: a list a column. A curve that is not defined has no points, and no area (None)."""
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
    """A curve under these names; its first point has no threshold."""
    if curve is None:
        return {area: None, "threshold": [], x: [], y: []}
    thresholds = [None, *curve.thresholds[1:].tolist()]
    return {area: curve.area, "threshold": thresholds, x: curve.x.tolist(), y: curve.y.tolist()}
