"""The section on performance: metrics, decisions and curves on held-out rows, beside those of other models.

Two models are compared by the losses of the same rows. The standard error of the difference of the mean log-losses is
that of paired differences, which is far smaller than the standard errors of the two means.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.evaluation.curves import LabelCurves, gains, threshold_table
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.model import DecisionRule, HeldOutLoss
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.pictures.curve_plots import Points, reliability_dots, unit_curves
from bncli.files.pictures.effect_plots import confusion_map
from bncli.files.pictures.page import Block, Grid, InteractivePanel, LabelSwitch, Paragraph, Picture, Pictures, Section
from bncli.files.reading.source import Source
from bncli.steps.evaluate.evaluate import read_test_rows, report_on_rows
from bncli.steps.evaluate.report import EvaluateReport
from bncli.steps.report.page_text import count, figure, percent
from bncli.watch import Run

QUESTION = "Is it any good?"
MOST_LABELS = 40
"""With more labels, those with the most rows are shown."""
MOST_CELLS = 12
"""With more labels, the confusion matrix is drawn but not printed as numbers."""
_RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99)
_LIFT_AT = np.arange(1, 51) / 50
"""Shares of the rows at which the lift is drawn."""
_HIGHEST_LIFT = 10.0
"""A higher lift is cut off."""
_METRICS = (
    ("error", "wrong decisions (error)"),
    ("log_loss", "log-loss, nats a row"),
    ("brier", "Brier score"),
    ("auc", "AUC"),
    ("ece", "calibration error (ECE)"),
    ("balanced_accuracy", "balanced accuracy"),
    ("mcc", "Matthews' correlation"),
)


class ComparedModel(NamedTuple):
    """Another model, by a unique name, and its evaluation on the same rows."""

    name: str
    report: EvaluateReport


def check_other_models(beside: Sequence[str], data: Sequence[str]) -> None:
    """Raise UsageError if the data are standard input, which cannot be read again for every model."""
    if beside and "-" in data:
        raise UsageError("--beside reads the data once a model, which the standard input cannot be", hint="name a file")


def score_other_models(
    paths: Sequence[str], class_name: str | None, labels: Sequence[str], source: Source, run: Run
) -> list[ComparedModel]:
    """Return the evaluation of each model on a table.

    The table is read once per model, because each model knows its own columns and values. Raises ModelError if a model
    has another class (`class_name` None: any name is accepted) or other labels.
    """
    if source.bad_rows_file is not None:
        source = replace(source, on_bad_row="skip")  # the file of bad rows has them already
    names = [os.path.basename(path).removesuffix(".bnc") for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    compared = []
    for name, path in zip(names, paths, strict=True):
        model = read_model(path)
        schema = model.schema
        if class_name not in (None, schema.class_name) or set(schema.labels) != set(labels):
            what = f"a model beside has to tell {class_name or 'the class'} ({', '.join(labels)})"
            raise ModelError(f"{what}; this one tells {schema.class_name} ({', '.join(schema.labels)})", where=path)
        report = report_on_rows(model, read_test_rows([model], source, run), source, "", run)
        compared.append(ComparedModel(name, report))
    return compared


def held_out_section(
    report: EvaluateReport | None, held_out: HeldOutLoss | None = None, beside: Sequence[ComparedModel] = ()
) -> Section:
    """Return the section on an evaluation and on other models `beside` it on the same rows.

    If no rows were given (`report` is None), it has the log-losses `held_out` that were measured during fitting.
    """
    if report is not None:
        return Section("good", QUESTION, tuple(_blocks(report, beside)))
    blocks = [
        Paragraph("No rows that the model has not seen were given to tell how good it is: add --data TEST.", "gap")
    ]
    if held_out is not None:
        losses = f"{held_out.log_loss:.4f} nats a row, that of the class frequencies {held_out.base_log_loss:.4f}"
        text = f"On rows that the model has not seen, the log-loss was {losses}."
        blocks.insert(0, Paragraph(text))
    return Section("good", QUESTION, blocks)


def _blocks(report: EvaluateReport, beside: Sequence[ComparedModel]) -> Iterator[Block]:
    """Yield the summary, the metrics, the decisions and the curves."""
    # the labels with the most rows, in schema order
    supports = [figures.support for figures in report.per_label]
    shown = sorted(sorted(range(len(supports)), key=lambda c: -supports[c])[:MOST_LABELS])
    names = [report.labels[c] for c in shown]
    error, skill, decisions = report.metrics["error"], report.skill_score, report.decisions
    rows = f"{count(report.rows, 'row')} ({report.protocol})"
    if decisions.confusion is not None and decisions.undecided is not None:
        # the errors of what is decided, not of the most probable label
        n_decided = float(decisions.confusion.sum())
        error = 1 - float(np.trace(decisions.confusion)) / n_decided if n_decided else None
        which = f"the {n_decided:,.10g} of {rows} that" if decisions.undecided.any() else f"{rows}, which"
        rows = f"{which} the model's rule decides,"
    wrong = "none are" if error is None else f"{percent(error)} are"
    summary = f"Of {rows} {wrong} decided wrong; "
    base_error = percent(1 - report.baseline.accuracy)
    summary += f"whoever always answers with the commonest class is wrong on {base_error}. "
    if skill is not None and skill <= 0:
        summary += "Its probabilities are no better than the class frequencies."
    elif skill is not None:
        summary += f"Its probabilities take {percent(skill)} off the log-loss of the class frequencies."
    yield Paragraph(summary)
    yield _metrics_grid(report, beside)
    if beside:
        yield Paragraph(" ".join(_comparison_sentence(report, other) for other in beside))
    decided = decisions.rows
    confusion = report.shown_confusion
    if decided is not None:
        yield Paragraph(_rule_text(report, decided.rule))
        if len(report.labels) <= MOST_CELLS:
            caption = "Confusion by the model's own rule"
            yield _confusion_grid(caption, report.labels, confusion, decisions.undecided)
    if len(shown) < len(report.labels):
        yield Paragraph(f"Of {len(report.labels):,} labels the {len(shown)} with the most rows are shown.", "gap")
    if len(report.labels) == 2:
        yield from _threshold_blocks(report, None if decided is None else decided.rule)
        yield Pictures(_curves(report, [1]))
    else:
        cells = [[confusion[a][b] for b in shown] for a in shown]
        wrong_cells = [(n, a, b) for a, row in enumerate(cells) for b, n in enumerate(row) if a != b and n]
        sentence = "No row is decided wrong."
        if wrong_cells:
            n, a, b = max(wrong_cells, key=lambda cell: cell[0])
            rows = f"{count(round(n), 'row')}, {percent(n / sum(cells[a]))} of its rows"
            sentence = f"{names[a]} is taken for {names[b]} most often: {rows}."
        yield Picture("confusion", "Confusion.", sentence, confusion_map(names, cells), wide=True)
        if decided is None and len(names) <= MOST_CELLS:
            yield _confusion_grid("Confusion where the likeliest class is decided", names, cells)
        yield LabelSwitch(names, 0)
        yield Pictures(_curves(report, shown))
    per_label = [(report.labels[c], report.per_label[c]) for c in shown]
    lines = [(label, *map(figure, own[:3]), f"{own.support:,.10g}") for label, own in per_label]
    yield Grid("Each label against all others", ("label", "precision", "recall", "F1", "rows"), lines, (1, 2, 3, 4))


def _metrics_grid(report: EvaluateReport, beside: Sequence[ComparedModel]) -> Grid:
    """Return the metrics of the model, of the other models, and of the class frequencies."""
    columns = [
        [*(figure(each.metrics[name]) for name, _ in _METRICS), figure(each.skill_score)]
        for each in (report, *(other.report for other in beside))
    ]
    if report.std is not None:
        deviations = [*(figure(report.std[name]) for name, _ in _METRICS), "–"]
        columns[0] = [f"{value} ± {std}" for value, std in zip(columns[0], deviations, strict=True)]
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
    columns.append([*(figure(base.get(name)) for name, _ in _METRICS), figure(0.0)])
    names = [*(text for _, text in _METRICS), "skill score: log-loss saved"]
    headings = ("figure", "model", *(other.name for other in beside), "class frequencies")
    rows = list(zip(names, *columns, strict=True))
    title = "Figures on the training rows" if report.on_training_rows else "Figures on rows not seen"
    return Grid(title, headings, rows, tuple(range(1, len(headings))))


def _comparison_sentence(report: EvaluateReport, other: ComparedModel) -> str:
    """Return a sentence that says whose log-loss is lower, by how much, and whether the difference is significant."""
    losses = []
    for log_p, codes, _ in (report.predictions, other.report.predictions):
        losses.append(-log_p[codes, np.arange(len(codes))])
    gaps = losses[1] - losses[0]
    weights = np.ones(len(gaps)) if report.predictions.weights is None else report.predictions.weights
    mean = float(np.average(gaps, weights=weights))
    error = 2 * math.sqrt(float((weights**2 * (gaps - mean) ** 2).sum())) / float(weights.sum())
    difference = f"that of {other.name} by {abs(mean):.4f} nats a row (± {error:.4f}, twice the standard error)"
    if abs(mean) <= error:
        return f"Its log-loss differs from {difference}: so many rows do not tell which is better."
    return f"Its log-loss is {'below' if mean > 0 else 'above'} {difference}."


def _rule_text(report: EvaluateReport, rule: DecisionRule) -> str:
    """Return a paragraph about the model's own decision rule, its error, and its mean cost per row if it has costs."""
    decisions = report.decisions
    assert decisions.confusion is not None
    assert decisions.undecided is not None
    confusion, n_undecided = np.array(decisions.confusion, np.float64), float(decisions.undecided.sum())
    is_of_folds = report.folds is not None
    clauses = []
    if rule.costs is not None:
        clauses.append("it decides for the class of the least expected cost")
    if rule.threshold is not None:
        mean = ", the mean of the folds" if is_of_folds else ""
        chosen = f" (chosen by {rule.threshold.chosen}{mean})" if rule.threshold.chosen else ""
        clauses.append(f"it decides for {report.labels[1]} from a probability of {rule.threshold.value:.4g} on{chosen}")
    if rule.abstain_below is not None:
        clauses.append(f"it decides nothing where no class has a probability of {rule.abstain_below:g}")
    whose = "The models of the folds have a rule of their own" if is_of_folds else "The model has a rule of its own"
    sentences = [f"{whose}: {'; '.join(clauses)}."]
    n_decided = float(confusion.sum())
    if n_decided:
        sentences.append(f"By it {percent(1 - float(np.trace(confusion)) / n_decided)} of its decisions are wrong.")
    if rule.abstain_below is not None:
        share = percent(n_undecided / max(n_decided + n_undecided, 1e-300))
        sentences.append(f"It leaves {share} of the rows undecided.")
    if rule.costs is not None and n_decided:
        costs, likeliest = np.array(rule.costs), np.array(report.confusion)
        cost, plain_cost = (float((costs * cells).sum() / cells.sum()) for cells in (confusion, likeliest))
        label = int(np.argmin(decisions.constant_costs))
        sentences.append(
            f"They cost {cost:.4g} a row; always deciding for {report.labels[label]} costs "
            f"{decisions.constant_costs[label]:.4g}, and deciding for the likeliest class {plain_cost:.4g}."
        )
        if (best := decisions.best_threshold) is not None:
            sentences.append(
                f"On these rows the best threshold on the probability of {report.labels[1]} is "
                f"{best['threshold']:.2f}, which costs {best['cost']:.4g}."
            )
    return " ".join(sentences)


def _confusion_grid(
    caption: str,
    labels: Sequence[str],
    confusion: Sequence[Sequence[float]],
    undecided: Integers | Array | None = None,
) -> Grid:
    """Return rows of a true label by the predicted label, and the rows without a decision if there are any."""
    cells = [[f"{n:,.10g}" for n in row] for row in np.asarray(confusion).tolist()]
    headings = ["true \\ decided", *labels]
    if undecided is not None and undecided.any():
        headings.append("no decision")
        cells = [[*row, f"{n:,.10g}"] for row, n in zip(cells, undecided.tolist(), strict=True)]
    rows = [(label, *row) for label, row in zip(labels, cells, strict=True)]
    return Grid(caption, headings, rows, tuple(range(1, len(headings))))


def _threshold_blocks(report: EvaluateReport, rule: DecisionRule | None) -> Iterator[Block]:
    """Yield, for two labels, a panel to choose the threshold, and precision and recall at a few thresholds.

    The panel begins at the model's own threshold and costs. Without scripts it shows the confusion matrix.
    """
    log_p, codes, weights = report.predictions
    start, costs = 0.5, (1.0, 1.0)
    if rule is not None and rule.threshold is not None:
        start = min(max(rule.threshold.value, 0.0), 1.0)
    elif rule is not None and rule.costs is not None:
        # the costs of a missed row of the second label and of a false alarm, beyond those of right decisions
        (right, alarm), (missed, found) = rule.costs
        costs = (max(missed - found, 0.0), max(alarm - right, 0.0))
        start = costs[1] / sum(costs) if sum(costs) else 0.5
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
    fallback = (_confusion_grid("Confusion where the likelier class is decided", report.labels, report.confusion),)
    yield InteractivePanel("thresholds", f"From which probability of {label} on?", data, fallback)
    if not table.positives:
        return
    rows = []
    for recall in _RECALLS:
        place = int(np.flatnonzero(table.found >= recall * table.positives * (1 - 1e-12)).max())
        true_positives, false_positives = float(table.found[place]), float(table.false_alarms[place])
        positives = true_positives + false_positives
        predicted = positives / (table.positives + table.negatives)
        shares = (true_positives / table.positives, true_positives / positives, predicted)
        rows.append((f"{100 * recall:g} %", f"{table.thresholds[place]:.4g}", *map(percent, shares)))
    headings = (f"to find of all {label}", "decide from", "found", "of those picked truly so", "rows picked")
    yield Grid("From which threshold on is how much found?", headings, rows, (1, 2, 3, 4))


def _curves(report: EvaluateReport, shown: Sequence[int]) -> list[Picture]:
    """Return the ROC, precision-recall, gains, lift and reliability curves of the labels shown."""
    labels = [report.labels[c] for c in shown]
    curves = [report.curves[c] for c in shown]
    total = sum(figures.support for figures in report.per_label)
    shares = [report.per_label[c].support / total for c in shown]
    diagonal = [((0.0, 0.0), (1.0, 1.0))] * len(labels)
    roc, sentences = list[Points](), []
    for label, curve in zip(labels, curves, strict=True):
        if curve.roc is None:
            roc.append(())
            sentences.append(f"No row is {label}, or all are.")
            continue
        roc.append(tuple(zip(curve.roc.x.tolist(), curve.roc.y.tolist(), strict=True)))
        first = f"the right one is ranked first in {percent(curve.roc.area)} of cases"
        sentences.append(f"Of a row of {label} and another one, {first}.")
    drawing = unit_curves("ROC curve", ("false alarms, share", "found, share"), roc, diagonal)
    pictures = [Picture("roc", "ROC.", sentences[0], drawing, sentences=_if_several(sentences))]
    precisions, sentences = list[Points](), []
    for label, curve, share in zip(labels, curves, shares, strict=True):
        recall = curve.precision_recall
        if recall is None:
            precisions.append(())
            sentences.append(f"No row is {label}.")
            continue
        precisions.append(tuple(zip(recall.x.tolist(), recall.y.tolist(), strict=True)))
        half = percent(float(recall.y[int(np.searchsorted(recall.x, 0.5))]))
        sentences.append(f"With half of {label} found, {half} of what is picked is so; of all rows {percent(share)}.")
    base_rates = [((0.0, share), (1.0, share)) for share in shares]
    drawing = unit_curves("Precision and recall", ("recall", "precision"), precisions, base_rates)
    title = "Precision and recall."
    pictures.append(Picture("precision-recall", title, sentences[0], drawing, sentences=_if_several(sentences)))
    pictures += _gains_and_lift(labels, curves, shares)
    dots, sentences = [], []
    for label, curve in zip(labels, curves, strict=True):
        bins = list(zip(*(column.tolist() for column in curve.reliability), strict=True))
        dots.append([(p, q, n, f"probability {p:.3g}: {q:.3g} of {n:,.10g} rows") for p, q, n in bins])
        p, q, n = max(bins, key=lambda own: abs(own[0] - own[1]))
        worst = f"where it says {percent(p)}, {percent(q)} of {count(round(n), 'row')} are"
        sentences.append(
            f"Its probabilities of {label} may be taken at their word on the dashed line; farthest off: {worst}."
        )
    drawing = reliability_dots(dots)
    pictures.append(Picture("reliability", "Reliability.", sentences[0], drawing, sentences=_if_several(sentences)))
    return pictures


def _gains_and_lift(labels: Sequence[str], curves: Sequence[LabelCurves], shares: Sequence[float]) -> list[Picture]:
    """Return the share of a label found among the rows most likely to have it, and the same divided by chance."""
    gain_points, lift_points, gain_sentences, lift_sentences = list[Points](), list[Points](), [], []
    for label, curve, share in zip(labels, curves, shares, strict=True):
        if curve.roc is None:
            gain_points.append(())
            lift_points.append(())
            gain_sentences.append(f"No row is {label}, or all are.")
            lift_sentences.append(gain_sentences[-1])
            continue
        inspected, found = gains(curve.roc, share)
        tenth = float(np.interp(0.1, inspected, found))
        lift = np.minimum(np.interp(_LIFT_AT, inspected, found) / _LIFT_AT, _HIGHEST_LIFT)
        gain_points.append(tuple(zip(inspected.tolist(), found.tolist(), strict=True)))
        lift_points.append(tuple(zip(_LIFT_AT.tolist(), lift.tolist(), strict=True)))
        gain_sentences.append(f"The tenth of the rows likeliest to be {label} holds {percent(tenth)} of all {label}.")
        lift_sentences.append(f"In the first tenth {label} is {10 * tenth:.1f} times as frequent as in all rows.")
    diagonal = [((0.0, 0.0), (1.0, 1.0))] * len(labels)
    chance = [((0.0, 1.0), (1.0, 1.0))] * len(labels)
    highest = max((y for points in lift_points for _, y in points), default=1.0)
    axis = "rows, likeliest first"
    gain_drawing = unit_curves("Gains", (axis, "found, share"), gain_points, diagonal)
    lift_drawing = unit_curves("Lift", (axis, "lift"), lift_points, chance, max(highest, 1.1))
    return [
        Picture("gains", "Gains.", gain_sentences[0], gain_drawing, sentences=_if_several(gain_sentences)),
        Picture("lift", "Lift.", lift_sentences[0], lift_drawing, sentences=_if_several(lift_sentences)),
    ]


def _if_several(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences of all labels; a single one is the caption already."""
    return tuple(sentences) if len(sentences) > 1 else ()
