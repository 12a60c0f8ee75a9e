"""Is it any good? What a model says of rows that it has not seen, beside the class frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bncli.engine.chosen_penalty import HeldOut
from bncli.engine.evaluation.curves import LabelCurves, gains
from bncli.files.formats.report.blocks import Block, Grid, LabelSwitch, Picture, Pictures, Prose, Section
from bncli.files.formats.svg.heat_maps import confusion_map
from bncli.files.formats.svg.unit_curves import Points, reliability_dots, unit_curves
from bncli.steps.evaluating.report import EvaluateReport
from bncli.steps.reporting.beside import Beside, beside_sentence
from bncli.steps.reporting.deciding import (
    MOST_CELLS,
    confusion_grid,
    rule_blocks,
    ruled,
    threshold_blocks,
)
from bncli.steps.reporting.words import count, figure, percent

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


def held_out_section(
    report: EvaluateReport | None,
    held_out: HeldOut | None = None,
    beside: Sequence[Beside] = (),
) -> Section:
    """The section; None: no rows were given. `held_out`: losses of rows that learning chose something by.

    `beside`: other models on the same rows.
    """
    if report is not None:
        return Section("good", QUESTION, tuple(_blocks(report, beside)))
    blocks = [Prose("No rows that the model has not seen were given to tell how good it is: add --data TEST.", "gap")]
    if held_out is not None:
        losses = f"{held_out.log_loss:.4f} nats a row, that of the class frequencies {held_out.base_log_loss:.4f}"
        text = f"On rows that were held out while something was chosen by them, the log-loss was {losses}."
        blocks.insert(0, Prose(text))
    return Section("good", QUESTION, blocks)


def _blocks(report: EvaluateReport, beside: Sequence[Beside]) -> Iterator[Block]:
    shown = shown_labels(report)
    names = [report.labels[c] for c in shown]
    yield Prose(_verdict(report))
    yield _figures(report, beside)
    if beside:
        yield Prose(" ".join(beside_sentence(report, other) for other in beside))
    rows = report.decisions.rows
    rule, own = (None, None) if rows is None else (rows.rule, ruled(report, rows))
    if rule is not None and own is not None:
        yield from rule_blocks(report, rule, own)
    if len(shown) < len(report.labels):
        yield Prose(f"Of {len(report.labels):,} labels the {len(shown)} with the most rows are shown.", "gap")
    if len(report.labels) == 2:
        yield from threshold_blocks(report, rule)
        yield Pictures(_curves(report, [1]))
    else:
        cells = report.confusion if own is None else own.confusion.tolist()
        confusion = [[cells[a][b] for b in shown] for a in shown]
        drawing = confusion_map("Confusion", names, confusion)
        yield Picture("confusion", "Confusion.", _confused(names, confusion), drawing, wide=True)
        if own is None and len(names) <= MOST_CELLS:
            yield confusion_grid("Confusion where the likeliest class is decided", names, confusion)
        yield LabelSwitch(names, 0)
        yield Pictures(_curves(report, shown))
    yield _per_label(report, shown)


def shown_labels(report: EvaluateReport) -> list[int]:
    """The labels with the most rows, in their order."""
    supports = [figures.support for figures in report.per_label]
    return sorted(sorted(range(len(supports)), key=lambda c: -supports[c])[:MOST_LABELS])


def _verdict(report: EvaluateReport) -> str:
    """The answer in three sentences."""
    error, base = report.metrics["error"], 1 - report.base.accuracy
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


def _figures(report: EvaluateReport, beside: Sequence[Beside]) -> Grid:
    """Of the model, of others beside it, and of the class frequencies."""
    supports = np.array([figures.support for figures in report.per_label])
    shares = supports / supports.sum()
    base = {
        "error": 1 - report.base.accuracy,
        "log_loss": report.base.log_loss,
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


def _many(sentences: list[str]) -> tuple[str, ...]:
    return tuple(sentences) if len(sentences) > 1 else ()


def _points(x: Sequence[float], y: Sequence[float]) -> Points:
    return tuple(zip(x, y, strict=True))


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
    drawing = reliability_dots("Reliability", dots)
    return Picture("reliability", "Reliability.", told[0], drawing, sentences=_many(told))


def _confused(labels: Sequence[str], confusion: Sequence[Sequence[float]]) -> str:
    """The two labels taken for one another most."""
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
