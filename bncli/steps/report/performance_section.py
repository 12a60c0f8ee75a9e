"""Is it any good? What a model says of rows that it has not seen, beside the class frequencies.

What the model's own rule decides, where it has one; for two classes the thresholds to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.evaluation.curves import LabelCurves, gains, threshold_table
from bncli.engine.evaluation.decision_metrics import DecidedRows
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import DecisionRule, HeldOutLoss
from bncli.engine.prediction.decision_rules import ABSTAINED
from bncli.files.pictures.curve_plots import Points, reliability_dots, unit_curves
from bncli.files.pictures.effect_plots import confusion_map
from bncli.files.pictures.page import Block, Grid, InteractivePanel, LabelSwitch, Paragraph, Picture, Pictures, Section
from bncli.steps.evaluate.report import EvaluateReport
from bncli.steps.report.other_models import ComparedModel, comparison_sentence
from bncli.steps.report.page_text import count, figure, percent

MOST_CELLS = 12
"""Labels whose confusion is told as numbers too."""
_RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99)
_NUMBER = ",.10g"


class DecisionCounts(NamedTuple):
    """Weights of rows by true label and decision, (K, K), of those without a decision by true label, (K,); costs."""

    confusion: Array
    undecided: Array
    cost: float | None
    plain_cost: float | None


QUESTION = "Is it any good?"
MOST_LABELS = 40
"""Of more labels those with the most rows are shown."""
_LIFTED = 10.0
"""A lift beyond it is cut off."""
_LIFT_AT = np.arange(1, 51) / 50
"""Shares of the rows at which lift is drawn."""
_TOLD = (
    ("error", "wrong decisions (error)"),
    ("log_loss", "log-loss, nats a row"),
    ("brier", "Brier score"),
    ("auc", "AUC"),
    ("ece", "calibration error (ECE)"),
    ("balanced_accuracy", "balanced accuracy"),
    ("mcc", "Matthews' correlation"),
)


def count_decisions(report: EvaluateReport, rows: DecidedRows) -> DecisionCounts:
    """Return the decisions of a rule.

    Costs a row of them, and of the likeliest class, None where the rule has no costs.
    """
    log_p, codes, weights = report.predictions
    k, weights, (rule, decided) = len(log_p), np.ones(len(codes)) if weights is None else weights, rows
    there = decided != ABSTAINED
    places = codes[there].astype(np.intp) * k + decided[there]
    cells = np.bincount(places, weights[there], k * k).reshape(k, k).astype(np.float64)
    undecided = np.bincount(codes[~there], weights[~there], k).astype(np.float64)
    if rule.costs is None:
        return DecisionCounts(cells, undecided, None, None)
    costs = np.array(rule.costs)
    plain = float(np.average(costs[codes, log_p.argmax(axis=0)], weights=weights))
    total = float(cells.sum())
    return DecisionCounts(cells, undecided, float((costs * cells).sum() / total) if total else None, plain)


def rule_blocks(report: EvaluateReport, rule: DecisionRule, found: DecisionCounts) -> Iterator[Block]:
    """Yield what it says, how often it is wrong, and the confusion where that can be read."""
    many = report.folds is not None
    labels, total = report.labels, float(found.confusion.sum() + found.undecided.sum())
    right, decided = float(np.trace(found.confusion)), float(found.confusion.sum())
    whose = "The models of the folds have a rule of their own" if many else "The model has a rule of its own"
    words = [f"{whose}: {_rule_words(rule, labels, many)}."]
    if decided:
        words.append(f"By it {percent(1 - right / decided)} of its decisions are wrong.")
    if rule.abstain_below is not None:
        words.append(f"It leaves {percent(float(found.undecided.sum()) / max(total, 1e-300))} of the rows undecided.")
    if found.cost is not None:
        words.append(
            f"They cost {found.cost:.4g} a row; deciding for the likeliest class costs {found.plain_cost:.4g}."
        )
    yield Paragraph(" ".join(words))
    if len(labels) <= MOST_CELLS:
        yield confusion_grid("Confusion by the model's own rule", labels, found.confusion, found.undecided)


def _rule_words(rule: DecisionRule, labels: Sequence[str], many: bool) -> str:
    words = []
    if rule.costs is not None:
        words.append("it decides for the class of the least expected cost")
    if rule.threshold is not None:
        chosen = rule.threshold.chosen and f" (chosen by {rule.threshold.chosen}{', the mean of the folds' * many})"
        words.append(f"it decides for {labels[1]} from a probability of {rule.threshold.value:.4g} on{chosen}")
    if rule.abstain_below is not None:
        words.append(f"it decides nothing where no class has a probability of {rule.abstain_below:g}")
    return "; ".join(words)


def confusion_grid(
    caption: str, labels: Sequence[str], confusion: Sequence[Sequence[float]] | Array, undecided: Array | None = None
) -> Grid:
    """Return rows of a true label by the label decided, and those without a decision where there are any."""
    cells = [[f"{n:{_NUMBER}}" for n in row] for row in np.asarray(confusion).tolist()]
    headings = ["true \\ decided", *labels]
    if undecided is not None and undecided.any():
        headings.append("no decision")
        cells = [[*row, f"{n:{_NUMBER}}"] for row, n in zip(cells, undecided.tolist(), strict=True)]
    rows = [(label, *row) for label, row in zip(labels, cells, strict=True)]
    return Grid(caption, headings, rows, tuple(range(1, len(headings))))


def threshold_blocks(report: EvaluateReport, rule: DecisionRule | None) -> Iterator[Block]:
    """Of two labels: the panel, which begins at the model's own threshold and costs, and how much is found from where.

    The panel shows the confusion at first as a table for who has no script.
    """
    log_p, codes, weights = report.predictions
    start, costs = _start(rule)
    table = threshold_table(log_p[1], codes == 1, weights, (start,))
    other, label = report.labels
    data: dict[str, Any] = {
        "label": label,
        "other": other,
        "t": table.thresholds.tolist(),
        "tp": np.round(table.found, 6).tolist(),
        "fp": np.round(table.false_alarms, 6).tolist(),
        "positives": table.positives,
        "negatives": table.negatives,
        "start": int(np.searchsorted(table.thresholds, start)),
        "costs": costs,
    }
    fallback = (confusion_grid("Confusion where the likelier class is decided", report.labels, report.confusion),)
    yield InteractivePanel("thresholds", f"From which probability of {label} on?", data, fallback)
    if not table.positives:
        return
    rows = []
    for recall in _RECALLS:
        place = int(np.flatnonzero(table.found >= recall * table.positives * (1 - 1e-12)).max())
        found, alarms = float(table.found[place]), float(table.false_alarms[place])
        picked = (found + alarms) / (table.positives + table.negatives)
        shares = (found / table.positives, found / (found + alarms), picked)
        rows.append((f"{100 * recall:g} %", f"{table.thresholds[place]:.4g}", *map(percent, shares)))
    headings = (f"to find of all {label}", "decide from", "found", "of those picked truly so", "rows picked")
    yield Grid("From which threshold on is how much found?", headings, rows, (1, 2, 3, 4))


def _start(rule: DecisionRule | None) -> tuple[float, tuple[float, float]]:
    """Return the threshold, and what a missed row of the second label and a false alarm cost beyond right decisions."""
    if rule is not None and rule.threshold is not None:
        return min(max(rule.threshold.value, 0.0), 1.0), (1.0, 1.0)
    if rule is not None and rule.costs is not None:
        (right, alarm), (missed, found) = rule.costs
        costs = (max(missed - found, 0.0), max(alarm - right, 0.0))
        return (costs[1] / sum(costs) if sum(costs) else 0.5), costs
    return 0.5, (1.0, 1.0)


def held_out_section(
    report: EvaluateReport | None,
    held_out: HeldOutLoss | None = None,
    beside: Sequence[ComparedModel] = (),
) -> Section:
    """Return the section; None: no rows were given. `held_out`: losses of rows that learning chose something by.

    `beside`: other models on the same rows.
    """
    if report is not None:
        return Section("good", QUESTION, tuple(_blocks(report, beside)))
    blocks = [
        Paragraph("No rows that the model has not seen were given to tell how good it is: add --data TEST.", "gap")
    ]
    if held_out is not None:
        losses = f"{held_out.log_loss:.4f} nats a row, that of the class frequencies {held_out.base_log_loss:.4f}"
        text = f"On rows that were held out while something was chosen by them, the log-loss was {losses}."
        blocks.insert(0, Paragraph(text))
    return Section("good", QUESTION, blocks)


def _blocks(report: EvaluateReport, beside: Sequence[ComparedModel]) -> Iterator[Block]:
    shown = shown_labels(report)
    names = [report.labels[c] for c in shown]
    yield Paragraph(_verdict(report))
    yield _figures(report, beside)
    if beside:
        yield Paragraph(" ".join(comparison_sentence(report, other) for other in beside))
    rows = report.decisions.rows
    rule, own = (None, None) if rows is None else (rows.rule, count_decisions(report, rows))
    if rule is not None and own is not None:
        yield from rule_blocks(report, rule, own)
    if len(shown) < len(report.labels):
        yield Paragraph(f"Of {len(report.labels):,} labels the {len(shown)} with the most rows are shown.", "gap")
    if len(report.labels) == 2:
        yield from threshold_blocks(report, rule)
        yield Pictures(_curves(report, [1]))
    else:
        cells = report.confusion if own is None else own.confusion.tolist()
        confusion = [[cells[a][b] for b in shown] for a in shown]
        drawing = confusion_map(names, confusion)
        yield Picture("confusion", "Confusion.", _confused(names, confusion), drawing, wide=True)
        if own is None and len(names) <= MOST_CELLS:
            yield confusion_grid("Confusion where the likeliest class is decided", names, confusion)
        yield LabelSwitch(names, 0)
        yield Pictures(_curves(report, shown))
    yield _per_label(report, shown)


def _verdict(report: EvaluateReport) -> str:
    """Return the answer in three sentences."""
    error, base = report.metrics["error"], 1 - report.baseline.accuracy
    skill = report.skill_score
    wrong = "none are" if error is None else f"{percent(error)} are"
    lines = [f"Of {count(report.rows, 'row')} ({report.protocol}) {wrong} decided wrong; "]
    lines.append(f"whoever always answers with the commonest class is wrong on {percent(base)}. ")
    if skill is None:
        return "".join(lines)
    if skill <= 0:
        lines.append("Its probabilities are no better than the class frequencies.")
    else:
        lines.append(f"Its probabilities take {percent(skill)} off the log-loss of the class frequencies.")
    return "".join(lines)


def _figures(report: EvaluateReport, beside: Sequence[ComparedModel]) -> Grid:
    """Of the model, of others beside it, and of the class frequencies."""
    supports = np.array([figures.support for figures in report.per_label])
    shares = supports / supports.sum()
    base = {
        "error": 1 - report.baseline.accuracy,
        "log_loss": report.baseline.log_loss,
        "brier": float(1 - (shares**2).sum()),
        "auc": 0.5,
        "balanced_accuracy": 1 / max(int((supports > 0).sum()), 1),
        "mcc": 0.0,
    }
    columns = [_column(report), *(_column(one.report) for one in beside)]
    if report.std is not None:
        std = [*(figure(report.std[name]) for name, _ in _TOLD), "–"]
        columns[0] = [f"{value} ± {spread}" for value, spread in zip(columns[0], std, strict=True)]
    columns.append([*(figure(base.get(name)) for name, _ in _TOLD), figure(0.0)])
    names = [*(told for _, told in _TOLD), "skill score: log-loss saved"]
    headings = ("figure", "model", *(one.name for one in beside), "class frequencies")
    rows = list(zip(names, *columns, strict=True))
    return Grid("Figures on rows not seen", headings, rows, tuple(range(1, len(headings))))


def _column(report: EvaluateReport) -> list[str]:
    return [*(figure(report.metrics[name]) for name, _ in _TOLD), figure(report.skill_score)]


def _curves(report: EvaluateReport, shown: Sequence[int]) -> list[Picture]:
    labels = [report.labels[c] for c in shown]
    curves = [report.curves[c] for c in shown]
    total = sum(figures.support for figures in report.per_label)
    shares = [report.per_label[c].support / total for c in shown]
    return [
        _roc(labels, curves),
        _ranked(labels, curves, shares),
        *_gains(labels, curves, shares),
        _reliable(labels, curves),
    ]


def _roc(labels: Sequence[str], curves: Sequence[LabelCurves]) -> Picture:
    points = [() if one.roc is None else _points(one.roc.x.tolist(), one.roc.y.tolist()) for one in curves]
    told = [
        f"No row is {label}, or all are."
        if one.roc is None
        else f"Of a row of {label} and another one, the right one is ranked first in {percent(one.roc.area)} of cases."
        for label, one in zip(labels, curves, strict=True)
    ]
    diagonal = [((0.0, 0.0), (1.0, 1.0))] * len(labels)
    drawing = unit_curves("ROC curve", ("false alarms, share", "found, share"), points, diagonal)
    return Picture("roc", "ROC.", told[0], drawing, sentences=_many(told))


def _points(x: Sequence[float], y: Sequence[float]) -> Points:
    return tuple(zip(x, y, strict=True))


def _many(sentences: list[str]) -> tuple[str, ...]:
    return tuple(sentences) if len(sentences) > 1 else ()


def _ranked(labels: Sequence[str], curves: Sequence[LabelCurves], shares: Sequence[float]) -> Picture:
    points, told = [], []
    for label, one, share in zip(labels, curves, shares, strict=True):
        curve = one.precision_recall
        points.append(() if curve is None else _points(curve.x.tolist(), curve.y.tolist()))
        half = None if curve is None else float(curve.y[int(np.searchsorted(curve.x, 0.5))])
        told.append(
            f"No row is {label}."
            if half is None
            else f"With half of {label} found, {percent(half)} of what is picked is so; of all rows {percent(share)}."
        )
    lines = [((0.0, share), (1.0, share)) for share in shares]
    drawing = unit_curves("Precision and recall", ("recall", "precision"), points, lines)
    return Picture("precision-recall", "Precision and recall.", told[0], drawing, sentences=_many(told))


def _gains(labels: Sequence[str], curves: Sequence[LabelCurves], shares: Sequence[float]) -> list[Picture]:
    gained, lifted, told, tops = list[Points](), list[Points](), [], []
    for label, one, share in zip(labels, curves, shares, strict=True):
        if one.roc is None:
            gained.append(())
            lifted.append(())
            told.append(f"No row is {label}, or all are.")
            tops.append(told[-1])
            continue
        looked_at, found = gains(one.roc, share)
        tenth = float(np.interp(0.1, looked_at, found))
        gained.append(_points(looked_at.tolist(), found.tolist()))
        lift = np.minimum(np.interp(_LIFT_AT, looked_at, found) / _LIFT_AT, _LIFTED)
        lifted.append(_points(_LIFT_AT.tolist(), lift.tolist()))
        told.append(f"The tenth of the rows likeliest to be {label} holds {percent(tenth)} of all {label}.")
        tops.append(f"In the first tenth {label} is {10 * tenth:.1f} times as frequent as in all rows.")
    diagonal = [((0.0, 0.0), (1.0, 1.0))] * len(labels)
    ones = [((0.0, 1.0), (1.0, 1.0))] * len(labels)
    most = max((y for points in lifted for _, y in points), default=1.0)
    axes = ("rows, likeliest first", "found, share")
    return [
        Picture("gains", "Gains.", told[0], unit_curves("Gains", axes, gained, diagonal), sentences=_many(told)),
        Picture(
            "lift",
            "Lift.",
            tops[0],
            unit_curves("Lift", (axes[0], "lift"), lifted, ones, max(most, 1.1)),
            sentences=_many(tops),
        ),
    ]


def _reliable(labels: Sequence[str], curves: Sequence[LabelCurves]) -> Picture:
    dots, told = [], []
    for label, one in zip(labels, curves, strict=True):
        bins = list(zip(*(column.tolist() for column in one.reliability), strict=True))
        dots.append([(p, q, n, f"probability {p:.3g}: {q:.3g} of {n:,.10g} rows") for p, q, n in bins])
        p, q, n = max(bins, key=lambda one: abs(one[0] - one[1]))
        worst = f"where it says {percent(p)}, {percent(q)} of {count(round(n), 'row')} are"
        told.append(
            f"Its probabilities of {label} may be taken at their word on the dashed line; farthest off: {worst}."
        )
    drawing = reliability_dots(dots)
    return Picture("reliability", "Reliability.", told[0], drawing, sentences=_many(told))


def _confused(labels: Sequence[str], confusion: Sequence[Sequence[float]]) -> str:
    """Return the two labels taken for one another most."""
    cells = [(n, a, b) for a, row in enumerate(confusion) for b, n in enumerate(row) if a != b and n]
    if not cells:
        return "No row is decided wrong."
    n, a, b = max(cells, key=lambda cell: cell[0])
    share = n / sum(confusion[a])
    return f"{labels[a]} is taken for {labels[b]} most often: {count(round(n), 'row')}, {percent(share)} of its rows."


def _per_label(report: EvaluateReport, shown: Sequence[int]) -> Grid:
    headings = ("label", "precision", "recall", "F1", "rows")
    rows = [
        (report.labels[c], *map(figure, report.per_label[c][:3]), f"{report.per_label[c].support:,.10g}") for c in shown
    ]
    return Grid("Each label against all others", headings, rows, (1, 2, 3, 4))


def shown_labels(report: EvaluateReport) -> list[int]:
    """Return the labels with the most rows, in their order."""
    supports = [figures.support for figures in report.per_label]
    return sorted(sorted(range(len(supports)), key=lambda c: -supports[c])[:MOST_LABELS])
