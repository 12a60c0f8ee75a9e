"""The results of an evaluation as records, with their JSON, and their curves as SVG files in a folder.

There is one picture each of the ROC, precision-recall and reliability curves. It has one panel per label, for at most
MOST_PANELS labels. An evaluation with samples of the training rows also has a learning curve, which shows the error
rate and the log-loss against the number of training rows. An evaluation by time also has a picture of the log-loss of
each block.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.splits import SplitRecord
from bncli.engine.evaluation.curves import CalibrationFigures, LabelCurves, label_curves
from bncli.engine.evaluation.groups import Fairness, Group
from bncli.engine.evaluation.intervals import Interval, MetricIntervals
from bncli.engine.evaluation.metrics import (
    METRICS,
    AppliedRule,
    Baseline,
    DecisionMetrics,
    LabelMetrics,
    measure_labels,
    skill_score,
)
from bncli.engine.evaluation.table_checks import Finding
from bncli.engine.evaluation.two_class import TwoClassFigures, measure_two_classes
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.parameters.network_scores import ScoredNetwork
from bncli.engine.prediction.decision_rules import threshold_table
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import split_json
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_target, reason_of
from bncli.files.pictures.curve_plots import CurvePanel, MetricPanel, curve_plots, learning_curve_plot, series_plot
from bncli.files.pictures.drawing import Drawing

CURVE_COLUMNS = ("train_rows", "repeat", "fold", "rows", *METRICS, "fit_seconds", "score_seconds")
"""Columns of the CSV file of a learning curve."""
MOST_PANELS = 24
"""The maximum number of labels drawn; if there are more, those with the largest total row weight are drawn."""
CURVE_FILES = ("roc.svg", "precision_recall.svg", "reliability.svg")
LEARNING_CURVE_FILE = "learning_curve.svg"
BLOCKS_FILE = "blocks.svg"


class PredictedRows(NamedTuple):
    """The test rows: ln P(c | x_t) (K, N), the codes of the true labels (N,), and weights (N,) or None if all are 1."""

    log_probabilities: Array
    codes: Integers
    weights: Array | None


@dataclass(frozen=True)
class FoldReport:
    """One fold: its metrics, the metrics of the class frequencies, the penalty of the fit, and its seconds per stage.

    repeat, fold: their numbers, from 0. decisions: the metrics of the decisions, or None without a decision rule.
    """

    repeat: int
    fold: int
    rows: int
    metrics: dict[str, float | None]
    baseline: Baseline
    penalty: float | None
    seconds: dict[str, float]
    decisions: DecisionMetrics | None = None

    def as_json(self) -> dict[str, Any]:
        fields = {"repeat": self.repeat, "fold": self.fold, "rows": self.rows, **self.metrics}
        fields |= {} if self.decisions is None else self.decisions.metrics
        return {**fields, "base": self.baseline._asdict(), "penalty": self.penalty, "seconds": self.seconds}


@dataclass(frozen=True)
class BlockReport:
    """A block of rows in time order: its first and last time, and the metrics of a model fitted to earlier rows.

    start, end: ISO dates (with the time of day if any row has one) or numeric values. train_rows: the number of
    training rows. intervals: the confidence intervals of the metrics.
    """

    start: str | float
    end: str | float
    rows: int
    train_rows: int
    metrics: dict[str, float | None]
    intervals: dict[str, Interval | None]
    baseline: Baseline

    def as_json(self) -> dict[str, Any]:
        span = {"from": self.start, "to": self.end, "rows": self.rows, "train_rows": self.train_rows}
        return {**span, **self.metrics, "ci": intervals_json(self.intervals), "base": self.baseline._asdict()}


@dataclass(frozen=True)
class CurvePoint:
    """One point of a learning curve: all fits to `rows` training rows, with means and deviations of their metrics.

    metrics, std: the means and standard deviations over the fits.
    """

    rows: int
    metrics: dict[str, float | None]
    std: dict[str, float | None]
    fits: tuple[FoldReport, ...]

    def as_json(self) -> dict[str, Any]:
        return {"rows": self.rows, **self.metrics, "std": self.std}


@dataclass(frozen=True)
class DecisionReport:
    """The decisions of an evaluation; everything but the thresholds is empty without a decision rule.

    - metrics, class_coverage: means over the folds in which they are defined. std: standard deviations of the metrics.
    - thresholds: with two labels, the metrics at the thresholds 0, 0.01, ..., 1 on the probability of the second one,
      over all test rows together.
    - rows: the rule and its decision for each row. Under cross-validation, each row is decided by the model of the
      first repeat that was not trained on it, and the threshold of the rule is the mean over the folds.
    - confusion[true][decided], undecided[true]: the total weight of the rows with and without a decision, summed over
      the folds; None if the rule makes no decisions.
    """

    metrics: dict[str, float | None] = field(default_factory=dict)
    std: dict[str, float | None] = field(default_factory=dict)
    class_coverage: tuple[float | None, ...] = ()
    thresholds: tuple[dict[str, float], ...] = ()
    rows: AppliedRule | None = None
    confusion: Integers | Array | None = None
    undecided: Integers | Array | None = None

    @property
    def constant_costs(self) -> tuple[float, ...]:
        """The mean cost per row of predicting the same label for all rows, for each label; () without costs."""
        if self.rows is None or self.rows.rule.costs is None or self.confusion is None or self.undecided is None:
            return ()
        shares = self.confusion.sum(axis=1) + self.undecided
        return tuple((shares @ np.array(self.rows.rule.costs) / shares.sum()).tolist())

    @property
    def best_threshold(self) -> dict[str, float] | None:
        """The entry of `thresholds` with the lowest cost (the first if several are equal), or None without costs."""
        lines = [line for line in self.thresholds if "cost" in line]
        return min(lines, key=lambda line: line["cost"], default=None)

    def as_json(self, labels: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = dict(self.metrics)
        if self.class_coverage:
            pairs = zip(labels, self.class_coverage, strict=True)
            values["class_coverage"] = [{"label": label, "coverage": coverage} for label, coverage in pairs]
        if self.constant_costs:
            pairs = zip(labels, self.constant_costs, strict=True)
            values["constant_costs"] = [{"label": label, "cost": cost} for label, cost in pairs]
        if self.best_threshold is not None:
            values["best_threshold"] = {name: self.best_threshold[name] for name in ("threshold", "cost")}
        return values | ({"thresholds": list(self.thresholds)} if self.thresholds else {})


@dataclass(frozen=True)
class GroupsReport:
    """The groups of every column, in the order of its values, and their fairness gaps."""

    groups: tuple[Group, ...]
    fairness: tuple[Fairness, ...]

    def as_json(self) -> dict[str, Any]:
        groups, fairness = [], []
        for group in self.groups:
            values: dict[str, Any] = {"by": group.by, "value": group.value, "rows": group.rows, "weight": group.weight}
            intervals = intervals_json(group.intervals)
            rates = []
            for label, label_rates in group.rates.items():
                ends = intervals_json({name: rate and rate.interval for name, rate in label_rates.items()})
                shares = {
                    name: None if rate is None else {"share": rate.share, "interval95": ends[name]}
                    for name, rate in label_rates.items()
                }
                rates.append({"label": label, **shares})
            values |= {**group.metrics, **group.decisions, "ci": intervals, "interval95": intervals, "rates": rates}
            groups.append(values)
        for entry in self.fairness:
            gaps = {**entry.gaps, "equalized_odds": entry.equalized_odds}
            as_json = {name: None if gap is None else gap._asdict() for name, gap in gaps.items()}
            fairness.append({"by": entry.by, "label": entry.label, **as_json})
        return {"groups": groups, "fairness": fairness}


@dataclass(frozen=True)
class EvaluateReport:
    """The metrics of an evaluation; under cross-validation, means and standard deviations over the folds.

    - metrics: by name, None if undefined. intervals: the confidence intervals of the metrics and of `shown_per_label`.
    - baseline: the metrics of the class frequencies of the training rows (a mean over the folds), or of the test rows
      if the training frequencies are not known.
    - confusion[true][predicted]: in the order of `labels`, summed over the folds; per_label is computed from the sum.
      Both refer to the most probable label; `shown_confusion` and `shown_per_label` refer to the decisions if a rule
      makes them.
    - predictions: every test row with its prediction, which under cross-validation is that of the first repeat. units:
      the number of the group of each of these rows, or None without groups.
    - std, folds: None without cross-validation; folds is () for the rows held out by a fit.
    - findings: properties of the training table that make the metrics misleading.
    - seconds: the seconds of the stages fit (None for a model file) and score; means over the folds. Both are None for
      the rows held out by a fit.
    - scored: the mean over the folds of the scores of the networks on their training rows; None unless requested.
    - on_training_rows: for a model file, whether the rows have the number and the frequencies of the training rows;
      otherwise None.
    - learning_curve: one point per sample size, in ascending order. groups, calibration: None unless requested.
    - shows_gains, shows_net_benefit: whether the gains table and the net benefit were requested.
    - split: how rows were split (row by row, by groups or by time); without cross-validation, None if the test table
      has no groups or times. blocks: the blocks of time that were tested.
    """

    rows: int
    protocol: str
    metrics: dict[str, float | None]
    intervals: MetricIntervals
    baseline: Baseline
    seconds: dict[str, float | None]
    labels: tuple[str, ...]
    confusion: list[list[float]]
    per_label: list[LabelMetrics]
    predictions: PredictedRows
    std: dict[str, float | None] | None = None
    folds: tuple[FoldReport, ...] | None = None
    learning_curve: tuple[CurvePoint, ...] = ()
    scored: ScoredNetwork | None = None
    decisions: DecisionReport = field(default_factory=DecisionReport)
    groups: GroupsReport | None = None
    calibration: CalibrationFigures | None = None
    units: Integers | None = None
    findings: tuple[Finding, ...] = ()
    on_training_rows: bool | None = None
    split: SplitRecord | None = None
    blocks: tuple[BlockReport, ...] = ()
    shows_gains: bool = False
    shows_net_benefit: bool = False

    @cached_property
    def two_class(self) -> TwoClassFigures | None:
        """The two-class metrics over all rows together, computed on first use; None unless there are two labels."""
        return measure_two_classes(*self.predictions) if len(self.labels) == 2 else None

    @property
    def gini(self) -> float | None:
        """2 AUC - 1, from the reported (mean) AUC, or None if that is undefined."""
        auc = self.metrics["auc"]
        return None if auc is None else 2 * auc - 1

    @cached_property
    def curves(self) -> list[LabelCurves]:
        """The curves of every label over all rows together, computed on first use."""
        return label_curves(*self.predictions)

    @property
    def shown_confusion(self) -> list[list[float]]:
        """The confusion matrix of the decisions if a rule makes them, otherwise of the most probable label."""
        return self.confusion if self.decisions.confusion is None else self.decisions.confusion.tolist()

    @property
    def shown_per_label(self) -> list[LabelMetrics]:
        """The metrics of each label, computed from `shown_confusion`."""
        return self.per_label if self.decisions.confusion is None else measure_labels(self.decisions.confusion)

    @property
    def skill_score(self) -> float | None:
        """1 - log_loss / baseline log_loss, from the reported means (not a mean over the folds); None if undefined."""
        return skill_score(self.metrics["log_loss"], self.baseline.log_loss)

    def as_json(self) -> dict[str, Any]:
        """Return the report with one key per metric; optional parts, such as `std` and `folds`, only if they exist."""
        report: dict[str, Any] = {
            "rows": self.rows,
            "protocol": self.protocol,
            **self.metrics,
            "ci": intervals_json(self.intervals.metrics),
            "ci_method": self.intervals.method,
            **self.decisions.as_json(self.labels),
            "base": self.baseline._asdict(),
            "skill_score": self.skill_score,
            "seconds": self.seconds,
            "labels": list(self.labels),
            "confusion": self.shown_confusion,
            "confusion_of": "most probable label" if self.decisions.confusion is None else "decisions",
            "per_class": [
                {
                    "label": label,
                    **metrics._asdict(),
                    "ci": intervals_json({name: own[name] for name in ("precision", "recall", "f1")}),
                }
                for label, metrics, own in zip(self.labels, self.shown_per_label, self.intervals.by_label, strict=True)
            ],
            "findings": [finding.as_json() for finding in self.findings],
            "curves": curves_json(self.labels, self.curves),
        }
        if self.two_class is not None:
            report |= {"gini": self.gini}
            tables = ("intervals", "gains", "net_benefit")
            report |= {name: value for name, value in self.two_class._asdict().items() if name not in tables}
            ends = self.intervals.metrics.get("auc")
            gini = None if ends is None else (2 * ends[0] - 1, 2 * ends[1] - 1)
            report["ci"] |= intervals_json({"gini": gini, **self.two_class.intervals})
            if self.shows_gains:
                report["gains"] = [line._asdict() for line in self.two_class.gains]
            if self.shows_net_benefit:
                report["net_benefit"] = [line._asdict() | {"ci": [*line.ci]} for line in self.two_class.net_benefit]
        if self.decisions.undecided is not None:
            report["undecided"] = self.decisions.undecided.tolist()
        if self.on_training_rows is not None:
            report["on_training_rows"] = self.on_training_rows
        if self.scored is not None:
            report |= scored_json(self.scored)
        if self.folds is not None:
            std = {**(self.std or {}), **self.decisions.std}
            report |= {"std": std, "folds": [fold.as_json() for fold in self.folds]}
        if self.split is not None:
            report["split"] = split_json(self.split)
        if self.blocks:
            report["blocks"] = [block.as_json() for block in self.blocks]
        if self.calibration is not None:
            report |= {
                "reliability": [entry._asdict() for entry in self.calibration.bins],
                "brier_parts": self.calibration.brier_parts._asdict(),
                "ece_equal_mass": self.calibration.ece_equal_mass,
            }
        if self.groups is not None:
            report |= self.groups.as_json()
        if self.learning_curve:
            report["learning_curve"] = [point.as_json() for point in self.learning_curve]
        return report


def intervals_json(intervals: Mapping[str, Interval | None]) -> dict[str, list[float] | None]:
    """Return the bounds of each interval as a list, or None, keyed by metric."""
    return {name: None if ends is None else list(ends) for name, ends in intervals.items()}


def scored_json(scored: ScoredNetwork) -> dict[str, Any]:
    """Return the scores of a network under the keys `scores` and `acll_relative_error`."""
    return {"scores": scored.scores._asdict(), "acll_relative_error": scored.acll_relative_error}


def curves_json(labels: Sequence[str], curves: Sequence[LabelCurves]) -> dict[str, Any]:
    """Return the curves of each label, keyed by kind; an undefined curve has the area None and empty lists."""
    tables: dict[str, Any] = {"roc": [], "precision_recall": [], "reliability": []}
    for label, own in zip(labels, curves, strict=True):
        for name, curve, area, x, y in (
            ("roc", own.roc, "auc", "false_positive_rate", "true_positive_rate"),
            ("precision_recall", own.precision_recall, "average_precision", "recall", "precision"),
        ):
            columns: dict[str, Any] = {area: None, "threshold": [], x: [], y: []}
            if curve is not None:
                # the first point has no threshold
                thresholds = [None, *curve.thresholds[1:].tolist()]
                columns = {area: curve.area, "threshold": thresholds, x: curve.x.tolist(), y: curve.y.tolist()}
            tables[name].append({"label": label, **columns})
        reliability = {name: values.tolist() for name, values in own.reliability._asdict().items()}
        tables["reliability"].append({"label": label, **reliability})
    return tables


def summarize(
    folds: Sequence[Mapping[str, float | None]],
    names: Sequence[str],
    summary: Callable[[list[float]], float],
    at_least: int = 1,
) -> dict[str, float | None]:
    """Return the summary of each metric over the folds that define it, or None if fewer than `at_least` folds do."""
    defined = {name: [value for fold in folds if (value := fold[name]) is not None] for name in names}
    return {name: summary(values) if len(values) >= at_least else None for name, values in defined.items()}


def summarize_decisions(
    folds: Sequence[DecisionMetrics | None], predictions: PredictedRows, fold_rows: Sequence[Index] = ()
) -> DecisionReport:
    """Return the report on the decisions, given their metrics in each fold (or in the test table), and all predictions.

    fold_rows: for each fold of the first repeat, the indices of its rows in `predictions`; empty for a test table.
    """
    decided = [fold for fold in folds if fold is not None]
    names = list(decided[0].metrics) if decided else []
    metrics = [fold.metrics for fold in decided]
    coverages = [fold.class_coverage for fold in decided if fold.class_coverage is not None]
    by_class = [[share for share in shares if share is not None] for shares in zip(*coverages, strict=True)]
    parts = [fold.rows for fold in decided if fold.rows is not None]
    rows = parts[0] if parts else None
    if parts and fold_rows:
        codes, rule = np.empty(len(predictions.codes), np.intp), parts[0].rule
        for own, part in zip(fold_rows, parts, strict=False):
            codes[own] = part.codes
        if rule.threshold is not None:
            values = [part.rule.threshold.value for part in parts if part.rule.threshold is not None]
            rule = replace(rule, threshold=rule.threshold._replace(value=fmean(values)))
        rows = AppliedRule(rule, codes)
    confusions = [fold.confusion for fold in decided if fold.confusion is not None]
    undecided = [fold.undecided for fold in decided if fold.undecided is not None]
    thresholds: list[dict[str, float]] = []
    if len(predictions.log_probabilities) == 2:
        p = np.exp(predictions.log_probabilities[1])
        costs = None if rows is None else rows.rule.costs
        thresholds = threshold_table(p, predictions.codes == 1, predictions.weights, costs)
    return DecisionReport(
        metrics=summarize(metrics, names, fmean),
        std=summarize(metrics, names, stdev, at_least=2) if len(folds) > 1 else {},
        class_coverage=tuple(fmean(shares) if shares else None for shares in by_class),
        thresholds=tuple(thresholds),
        rows=rows,
        confusion=np.sum(confusions, axis=0) if confusions else None,
        undecided=np.sum(undecided, axis=0) if undecided else None,
    )


def learning_curve(
    sizes: Sequence[int], sampled: Iterable[tuple[int, FoldReport]], folds: Sequence[FoldReport]
) -> tuple[CurvePoint, ...]:
    """Return one point per size, with its fits in the order of `folds`; `sampled` has (size, fit) for every sample.

    A size without a sample in a fold comprises all its training rows, so its fit is the one in `folds`, the fit of the
    evaluation itself.
    """
    by_place = {(size, fit.repeat, fit.fold): fit for size, fit in sampled}
    points = []
    for size in sizes:
        fits = tuple(by_place.get((size, fold.repeat, fold.fold), fold) for fold in folds)
        metrics = [fit.metrics for fit in fits]
        means, std = summarize(metrics, METRICS, fmean), summarize(metrics, METRICS, stdev, at_least=2)
        points.append(CurvePoint(size, means, std, fits))
    return tuple(points)


def write_learning_curve(path: str, curve: Sequence[CurvePoint]) -> None:
    """Write every fit as CSV, with one line per size, repeat and fold; undefined metrics are empty fields."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CURVE_COLUMNS)
    for point in curve:
        for fit in point.fits:
            metrics = (fit.metrics[name] for name in METRICS)
            seconds = (fit.seconds[stage] for stage in ("fit", "score"))
            writer.writerow([point.rows, fit.repeat, fit.fold, fit.rows, *metrics, *seconds])
    write_bytes(path, text.getvalue().encode())


def check_folder(path: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the paths of files with these names in the folder of pictures, or () if the folder does not exist yet.

    Raises an error if `path` is `-` or something other than a folder, or if the folder cannot be created.
    """
    if path == "-":
        raise UsageError(
            "--svg writes several pictures, so it cannot write to the standard output", hint="give the path of a folder"
        )
    if os.path.isdir(path):
        return tuple(os.path.join(path, name) for name in names)
    if os.path.lexists(path):
        raise UsageError(
            f"--svg needs a folder for its pictures, but {path!r} is not one", hint="give the path of a folder"
        )
    check_target(path.rstrip("/"))
    return ()


def write_drawings(folder: str, drawings: Mapping[str, Drawing]) -> None:
    """Write each drawing under its file name, completely or not at all; create the folder if necessary."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise BncliError(f"cannot make the folder: {reason_of(error)}", where=folder) from error
    for name, drawing in drawings.items():
        write_bytes(os.path.join(folder, name), drawing.source().encode())


def draw_curves(report: EvaluateReport) -> dict[str, Drawing]:
    """Draw the curves of at most MOST_PANELS labels, and return the drawings keyed by file name.

    A learning curve and the log-loss of blocks of time are drawn too if the evaluation has them.
    """
    n, supports = len(report.labels), [metrics.support for metrics in report.per_label]
    shown = sorted(sorted(range(n), key=lambda c: -supports[c])[:MOST_PANELS])
    labels = f"each of {n} labels" if n <= MOST_PANELS else f"each of the {MOST_PANELS} most frequent of {n} labels"
    panels: dict[str, list[CurvePanel]] = {name: [] for name in CURVE_FILES}
    diagonal = ((0.0, 0.0), (1.0, 1.0))
    for c in shown:
        label, curves, share = report.labels[c], report.curves[c], supports[c] / sum(supports)
        roc, ranked = CurvePanel(label, "no rows", (), diagonal), CurvePanel(label, "no rows", (), ())
        if (curve := curves.roc) is not None:
            roc = CurvePanel(label, f"AUC {curve.area:.3f}", tuple(zip(curve.x, curve.y, strict=True)), diagonal)
        if (curve := curves.precision_recall) is not None:
            points = tuple(zip(curve.x, curve.y, strict=True))
            ranked = CurvePanel(label, f"AP {curve.area:.3f}", points, ((0.0, share), (1.0, share)))
        points = tuple(zip(curves.reliability.predicted, curves.reliability.observed, strict=True))
        tips = tuple(
            f"{label}: probability {p:.4g}, observed {observed:.4g}, {rows:,.10g} rows"
            for p, observed, rows in zip(*curves.reliability, strict=True)
        )
        reliable = CurvePanel(label, "", points, diagonal, tips)
        for name, panel in zip(CURVE_FILES, (roc, ranked, reliable), strict=True):
            panels[name].append(panel)
    titles = ("ROC curves", "Precision and recall", "Reliability")
    axes = (
        ("false positive rate", "true positive rate"),
        ("recall", "precision"),
        ("mean predicted probability", "observed frequency"),
    )
    drawings = {
        name: curve_plots(f"{title}, {labels} against all others", across, upwards, panels[name])
        for name, title, (across, upwards) in zip(CURVE_FILES, titles, axes, strict=True)
    }
    if report.learning_curve:
        drawings[LEARNING_CURVE_FILE] = draw_learning_curve(report.learning_curve)
    if report.blocks:
        drawings[BLOCKS_FILE] = draw_blocks(report.blocks)
    return drawings


def draw_blocks(blocks: Sequence[BlockReport]) -> Drawing:
    """Draw the log-loss of each block in time order with its 95 % interval, and the log-loss of class frequencies."""
    losses = [block.metrics["log_loss"] for block in blocks]
    names = [f"{block.start} to {block.end}, {block.rows:,} rows" for block in blocks]
    intervals = [block.intervals["log_loss"] for block in blocks]
    title = "Log-loss of each block in time order; dashed: the class frequencies"
    base = [block.baseline.log_loss for block in blocks]
    return series_plot(title, "log-loss (nats per row), 95 %", losses, base, names, across="block", intervals=intervals)


def draw_learning_curve(curve: Sequence[CurvePoint]) -> Drawing:
    """Draw the error rate and the log-loss against the number of training rows, in one panel each."""
    n_fits = len(curve[0].fits)
    spread = f", with the standard deviation over {n_fits} samples" if n_fits > 1 else ""
    panels = [
        MetricPanel(label, [(point.rows, point.metrics[name], point.std[name]) for point in curve])
        for name, label in (("error", "error rate"), ("log_loss", "log-loss (nats per row)"))
    ]
    return learning_curve_plot(f"Learning curve{spread}", panels)
