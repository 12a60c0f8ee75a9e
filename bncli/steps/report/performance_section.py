"""The section on performance: metrics, decisions and curves on labelled rows, compared with other models.

Two models are compared by their losses on the same rows. The standard error of the difference between their mean
log-losses comes from the paired differences, and is usually far smaller than the standard errors of the two means.
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
from bncli.files.paths import repeated_path
from bncli.files.pictures.curve_plots import UNIT_FRAME, Points, reliability_dots, unit_curves
from bncli.files.pictures.effect_plots import confusion_map
from bncli.files.pictures.page import (
    Block,
    Cards,
    Grid,
    InteractivePanel,
    LabelSwitch,
    Paragraph,
    Picture,
    Section,
    Tile,
    count,
    figure,
    listed,
    percent,
)
from bncli.files.reading.source import Source
from bncli.steps.evaluate.evaluate import read_test_rows, report_on_rows
from bncli.steps.evaluate.report import EvaluateReport
from bncli.watch import Run

TITLE = "Performance"
MOST_LABELS = 40
"""The maximum number of labels shown; if there are more, those with the largest total row weight are shown."""
MOST_CELLS = 12
"""With more labels than this, the confusion matrix is drawn but not printed as a table."""
_RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99)
_BENEFIT_PERCENT = (5, *range(10, 100, 10))
"""Thresholds in percent at which the net benefit is tabulated."""
_LIFT_AT = np.arange(1, 51) / 50
"""Fractions of the rows at which the lift is drawn."""
_HIGHEST_LIFT = 10.0
"""Higher lifts are drawn at this value."""
_METRICS = (
    ("error", "error rate"),
    ("log_loss", "log-loss (nats per row)"),
    ("brier", "Brier score"),
    ("auc", "AUC"),
    ("ece", "calibration error (ECE)"),
    ("balanced_accuracy", "balanced accuracy"),
    ("mcc", "Matthews correlation coefficient"),
)


class ComparedModel(NamedTuple):
    """Another model: its name and its evaluation on the same rows."""

    name: str
    report: EvaluateReport


def check_other_models(other_paths: Sequence[str], data: Sequence[str]) -> None:
    """Raise UsageError if there are other models and the data include standard input, which can be read only once."""
    if other_paths and "-" in data:
        raise UsageError("--beside reads the data once per model, so it needs a file", hint="give the path of a file")


def score_other_models(
    paths: Sequence[str], class_name: str | None, labels: Sequence[str], source: Source, run: Run
) -> list[ComparedModel]:
    """Load each model and evaluate it on a table.

    The table is read once per model, because each model has its own columns and values. A model is named after its
    file, or by its path if two file names are equal. Raises UsageError if a model is given twice, and ModelError if a
    model predicts other labels or, unless `class_name` is None, another class.
    """
    if source.bad_rows_file is not None:
        source = replace(source, on_bad_row="skip")  # the file of bad rows has them already
    if (repeated := repeated_path(paths)) is not None:
        raise UsageError(f"--beside {repeated} is given twice", hint="leave one of them out")
    names = [os.path.basename(path).removesuffix(".bnc") for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    compared = []
    for name, path in zip(names, paths, strict=True):
        model = read_model(path)
        schema = model.schema
        if class_name not in (None, schema.class_name) or set(schema.labels) != set(labels):
            what = f"a model for comparison must predict {class_name or 'the class'} ({', '.join(labels)})"
            raise ModelError(f"{what}; this one predicts {schema.class_name} ({', '.join(schema.labels)})", where=path)
        report = report_on_rows(model, read_test_rows([model], source, run), source, "", run)
        compared.append(ComparedModel(name, report))
    return compared


def performance_tiles(report: EvaluateReport) -> list[Tile]:
    """Return the header tiles of a page: error rate, log-loss, AUC, calibration error and number of rows."""
    error, metrics, baseline = _error_of_decisions(report), report.metrics, report.baseline
    rows = "training rows, too optimistic" if report.on_training_rows else report.protocol
    base_error = f"most frequent class: {percent(1 - baseline.accuracy)}"
    has_rule = report.decisions.confusion is not None
    return [
        Tile(
            "Error rate of the rule" if has_rule else "Error rate", "–" if error is None else percent(error), base_error
        ),
        Tile("Log-loss", figure(metrics["log_loss"]), f"class frequencies: {figure(baseline.log_loss)}"),
        Tile("AUC", figure(metrics["auc"]), f"class frequencies: {figure(0.5)}"),
        Tile("Calibration error", figure(metrics["ece"]), "0 is perfect"),
        Tile("Rows", f"{report.rows:,}", rows),
    ]


def held_out_section(
    report: EvaluateReport | None, held_out: HeldOutLoss | None = None, compared_models: Sequence[ComparedModel] = ()
) -> Section:
    """Return the performance section; without a report it shows only the held-out log-losses of the fit, if known."""
    if report is not None:
        blocks = list(_performance_blocks(report, compared_models))
        return Section("good", TITLE, blocks)
    blocks = [Paragraph("Error, AUC, calibration and curves need rows with known classes: add --data TEST.", "gap")]
    if held_out is not None:
        losses = f"{held_out.log_loss:.4f} nats per row (class frequencies: {held_out.base_log_loss:.4f})"
        blocks.insert(0, Paragraph(f"The log-loss on held-out rows was {losses}."))
    return Section("good", TITLE, blocks)


def _error_of_decisions(report: EvaluateReport) -> float | None:
    """Return the error rate of the rule's decisions (None if it makes none) or, without a rule, the reported error."""
    decisions = report.decisions
    if decisions.confusion is None or decisions.undecided is None:
        return report.metrics["error"]
    n_decided = float(decisions.confusion.sum())
    return 1 - float(np.trace(decisions.confusion)) / n_decided if n_decided else None


def _performance_blocks(report: EvaluateReport, compared_models: Sequence[ComparedModel]) -> Iterator[Block]:
    """Yield the summary, the comparison with other models, the decision rule, the tables and the curves."""
    # the labels with the most rows, in schema order
    supports = [figures.support for figures in report.per_label]
    shown = sorted(sorted(range(len(supports)), key=lambda c: -supports[c])[:MOST_LABELS])
    names = [report.labels[c] for c in shown]
    error, skill, decisions = _error_of_decisions(report), report.skill_score, report.decisions
    where = count(report.rows, "row") + (f" ({report.protocol})" if report.protocol else "")
    if decisions.confusion is not None and decisions.undecided is not None and decisions.undecided.any():
        where = f"the {float(decisions.confusion.sum()):,.10g} of {where} that the model decides"
    if report.on_training_rows:
        what = "Figures on the training rows are too optimistic: this table has as many rows as the training"
        yield Paragraph(
            f"{what} table, with the same frequencies of values. Use rows that the model was not fitted to.", "warning"
        )
    wrong = "No row is decided" if error is None else f"Error rate {percent(error)} on {where}"
    base_error = percent(1 - report.baseline.accuracy)
    summary = f"{wrong}; always predicting the most frequent class gives {base_error} errors. "
    if skill is not None and skill <= 0:
        summary += "The log-loss is no lower than that of the class frequencies."
    elif skill is not None:
        summary += f"The log-loss is {percent(skill)} lower than that of the class frequencies."
    if error is not None:
        summary += f" {never_predicted(report)}"
    yield Paragraph(summary.rstrip())
    if compared_models:
        yield Paragraph(" ".join(comparison_sentence(report, other) for other in compared_models))
    decided = decisions.rows
    confusion = report.shown_confusion
    models = "this model" if report.folds is None else "the models of the folds"
    yield Paragraph(f"95 % intervals for the figures of {models} on new rows ({report.intervals.method}).")
    tables: list[Block] = [_metrics_grid(report, compared_models)]
    if decided is not None:
        yield Paragraph(_rule_text(report, decided.rule))
        if len(report.labels) <= MOST_CELLS:
            whose = "Confusion matrix of the model's own rule"
            tables.append(_confusion_grid(whose, report.labels, confusion, decisions.undecided))
    if len(shown) < len(report.labels):
        yield Paragraph(f"The {len(shown)} of {len(report.labels):,} labels with the most rows are shown.", "gap")
    per_label = [(report.labels[c], report.shown_per_label[c]) for c in shown]
    lines = [(label, *map(figure, own[:3]), f"{own.support:,.10g}") for label, own in per_label]
    caption = f"Each label against all others{'' if decided is None else ', as decided by the rule'}"
    by_label = Grid(caption, ("label", "precision", "recall", "F1", "rows"), lines, (1, 2, 3, 4))
    if len(report.labels) == 2:
        panel, recalls = _threshold_blocks(report, None if decided is None else decided.rule)
        first, second, *others = _curves(report, [1])
        yield Cards((panel, first, second))
        figures, benefit = _two_class_blocks(report)
        yield Cards((*tables, *recalls, by_label, *figures))
        yield Cards((*others, *benefit))
        return
    cells = [[confusion[a][b] for b in shown] for a in shown]
    wrong_cells = [(n, a, b) for a, row in enumerate(cells) for b, n in enumerate(row) if a != b and n]
    sentence = "Every row is predicted correctly."
    if wrong_cells:
        n, a, b = max(wrong_cells, key=lambda cell: cell[0])
        rows = f"{count(round(n), 'row')}, {percent(n / sum(cells[a]))} of the rows of {names[a]}"
        sentence = f"The most frequent error predicts {names[b]} for {names[a]}: {rows}."
    is_large = len(names) > MOST_CELLS
    matrix = Picture("confusion", "Confusion matrix", sentence, confusion_map(names, cells), wide=is_large)
    if decided is None and not is_large:
        tables.append(_confusion_grid("Confusion matrix of the most probable class", names, cells))
    yield Cards((matrix, by_label) if is_large else (*tables, matrix))
    yield LabelSwitch(names, 0)
    curves = _curves(report, shown)
    yield Cards((*tables, *curves) if is_large else (*curves, by_label))


def _metrics_grid(report: EvaluateReport, compared_models: Sequence[ComparedModel]) -> Grid:
    """Return a table of the metrics of the model (with 95 % intervals), the other models and the class frequencies."""
    columns = [
        [*(figure(each.metrics[name]) for name, _ in _METRICS), figure(each.skill_score)]
        for each in (report, *(other.report for other in compared_models))
    ]
    ends = (report.intervals.metrics[name] for name, _ in _METRICS)
    columns.insert(1, [*("–" if own is None else " to ".join(map(figure, own)) for own in ends), "–"])
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
    of_classes = () if report.decisions.confusion is None else ("error", "balanced_accuracy", "mcc")
    names = [f"{text}, most probable class" if name in of_classes else text for name, text in _METRICS]
    names.append("skill score (relative reduction of the log-loss)")
    headings = ("figure", "model", "95 % interval", *(other.name for other in compared_models), "class frequencies")
    rows = list(zip(names, *columns, strict=True))
    caption = "Figures on the training rows, too optimistic" if report.on_training_rows else "Figures"
    return Grid(caption, headings, rows, tuple(range(1, len(headings))))


def paired_difference(report: EvaluateReport, other: ComparedModel) -> tuple[float, float]:
    """Return how much higher the other model's log-loss is, in nats per row, and twice the standard error."""
    losses = []
    for log_p, codes, _ in (report.predictions, other.report.predictions):
        losses.append(-log_p[codes, np.arange(len(codes))])
    gaps = losses[1] - losses[0]
    weights = np.ones(len(gaps)) if report.predictions.weights is None else report.predictions.weights
    mean = float(np.average(gaps, weights=weights))
    return mean, 2 * math.sqrt(float((weights**2 * (gaps - mean) ** 2).sum())) / float(weights.sum())


def comparison_sentence(report: EvaluateReport, other: ComparedModel) -> str:
    """Return a sentence stating which log-loss is lower, by how much, and whether the difference is significant."""
    mean, error = paired_difference(report, other)
    lower = f"{abs(mean):.4f} nats per row {'lower' if mean > 0 else 'higher'} than that of {other.name}"
    significance = "not significant" if abs(mean) <= error else "significant"
    return f"Its log-loss is {lower} (± {error:.4f}, twice the standard error): the difference is {significance}."


def never_predicted(report: EvaluateReport) -> str:
    """Return a sentence listing the labels that occur in the test rows but are never predicted, or "" if none."""
    rows = zip(report.labels, report.shown_confusion, np.sum(report.shown_confusion, axis=0), strict=True)
    never = [label for label, of_label, decided in rows if not decided and any(of_label)]
    return f"No row is predicted as {listed(never)}." if never else ""


def _rule_text(report: EvaluateReport, rule: DecisionRule) -> str:
    """Describe the decision rule, its error rate, the rows without a decision, and its mean cost per row if any."""
    decisions = report.decisions
    assert decisions.confusion is not None
    assert decisions.undecided is not None
    confusion, n_undecided = np.array(decisions.confusion, np.float64), float(decisions.undecided.sum())
    is_of_folds = bool(report.folds)
    clauses = []
    if rule.costs is not None:
        clauses.append("it predicts the class with the lowest expected cost")
    if rule.threshold is not None:
        mean = ", the mean over the folds" if is_of_folds else ""
        chosen = f" (chosen by {rule.threshold.chosen}{mean})" if rule.threshold.chosen else ""
        clauses.append(
            f"it predicts {report.labels[1]} if its probability is at least {rule.threshold.value:.4g}{chosen}"
        )
    if rule.abstain_below is not None:
        clauses.append(f"it abstains if no class has a probability of at least {rule.abstain_below:g}")
    whose = "Decision rule of the models of the folds" if is_of_folds else "Decision rule of the model"
    sentences = [f"{whose}: {'; '.join(clauses)}."]
    n_decided = float(confusion.sum())
    if n_decided:
        sentences.append(
            f"With this rule, {percent(1 - float(np.trace(confusion)) / n_decided)} of the decisions are wrong."
        )
    if rule.abstain_below is not None:
        share = percent(n_undecided / max(n_decided + n_undecided, 1e-300))
        sentences.append(f"It makes no decision for {share} of the rows.")
    if rule.costs is not None and n_decided:
        costs, likeliest = np.array(rule.costs), np.array(report.confusion)
        cost, plain_cost = (float((costs * cells).sum() / cells.sum()) for cells in (confusion, likeliest))
        label = int(np.argmin(decisions.constant_costs))
        sentences.append(
            f"Its decisions cost {cost:.4g} per row; always predicting {report.labels[label]} costs "
            f"{decisions.constant_costs[label]:.4g}, and predicting the most probable class {plain_cost:.4g}."
        )
        if (best := decisions.best_threshold) is not None:
            sentences.append(
                f"On these rows the best threshold on the probability of {report.labels[1]} is "
                f"{best['threshold']:.2f}, which costs {best['cost']:.4g}."
            )
    return " ".join(sentences)


def _confusion_grid(
    caption: str, labels: Sequence[str], confusion: Sequence[Sequence[float]], undecided: Integers | Array | None = None
) -> Grid:
    """Return the confusion matrix as a table, with a column of rows without a decision if there are any."""
    cells = [[f"{n:,.10g}" for n in row] for row in np.asarray(confusion).tolist()]
    headings = ["true \\ predicted", *labels]
    if undecided is not None and undecided.any():
        headings.append("no decision")
        cells = [[*row, f"{n:,.10g}"] for row, n in zip(cells, undecided.tolist(), strict=True)]
    rows = [(label, *row) for label, row in zip(labels, cells, strict=True)]
    return Grid(caption, headings, rows, tuple(range(1, len(headings))))


def _threshold_blocks(report: EvaluateReport, rule: DecisionRule | None) -> tuple[InteractivePanel, list[Grid]]:
    """Return, for two labels, a panel for choosing the threshold, and a list with a table of thresholds by recall.

    The panel starts at the threshold of the rule. If the rule has only costs, the panel starts with these costs and the
    threshold that they imply; otherwise it starts at 0.5. Without JavaScript, the panel shows the confusion matrix of
    the most probable class. The table gives the highest threshold that reaches each of a few recalls of the
    second label; the list is empty if no row has this label.
    """
    log_p, codes, weights = report.predictions
    start, costs = 0.5, (1.0, 1.0)
    if rule is not None and rule.threshold is not None:
        start = min(max(rule.threshold.value, 0.0), 1.0)
    elif rule is not None and rule.costs is not None:
        # the costs of a false negative and of a false positive, in excess of the costs of correct decisions
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
        "frame": UNIT_FRAME,
    }
    fallback = (_confusion_grid("Confusion matrix of the most probable class", report.labels, report.confusion),)
    panel = InteractivePanel("thresholds", f"Decision threshold for {label}", data, fallback)
    if not table.positives:
        return panel, []
    rows = []
    for recall in _RECALLS:
        place = int(np.flatnonzero(table.found >= recall * table.positives * (1 - 1e-12)).max())
        true_positives, false_positives = float(table.found[place]), float(table.false_alarms[place])
        positives = true_positives + false_positives
        predicted = positives / (table.positives + table.negatives)
        shares = (true_positives / table.positives, true_positives / positives, predicted)
        rows.append((f"{100 * recall:g} %", f"{table.thresholds[place]:.4g}", *map(percent, shares)))
    headings = ("target recall", "threshold", "recall", "precision", f"predicted {label}")
    return panel, [Grid(f"Thresholds for a target recall of {label}", headings, rows, (1, 2, 3, 4))]


def _two_class_blocks(report: EvaluateReport) -> tuple[list[Grid], list[Picture]]:
    """Return tables of ranking, calibration and net benefit for the second label, and a plot of the net benefit.

    The net benefit is left out if all rows have the same label.
    """
    figures, event = report.two_class, report.labels[1]
    assert figures is not None
    lines = [
        ("Kolmogorov-Smirnov distance (KS)", figure(figures.ks), "–"),
        ("Gini (2 AUC - 1)", figure(report.gini), "–"),
        (
            f"share of all {event} rows in the 10\u00a0% of rows with the highest probability",
            figure(figures.capture_10),
            "–",
        ),
    ]
    for name, perfect in (("slope", "1"), ("intercept", "0"), ("in_the_large", "0")):
        ends = figures.intervals.get(f"calibration_{name}")
        interval = "–" if ends is None else " to ".join(map(figure, ends))
        text = f"calibration {name.replace('_', ' ')} ({perfect} is perfect)"
        lines.append((text, figure(getattr(figures, f"calibration_{name}")), interval))
    grid = Grid(f"Ranking and calibration of {event}", ("figure", "model", "95 % interval"), lines, (1, 2))
    rate = report.per_label[1].support / sum(own.support for own in report.per_label)
    if not 0 < rate < 1:
        return [grid], []
    rows = []
    for line in figures.net_benefit:
        if round(100 * line.threshold) in _BENEFIT_PERCENT:
            interval = " to ".join(map(figure, line.ci))
            rows.append((f"{line.threshold:g}", figure(line.model), interval, figure(line.all)))
    headings = ("threshold", "model", "95 % interval", f"always {event}")
    benefits = Grid(f"Net benefit of {event} at selected thresholds", headings, rows, (0, 1, 2, 3))
    curves = []
    for values in ([line.model for line in figures.net_benefit], [line.all for line in figures.net_benefit]):
        thresholds = (line.threshold for line in figures.net_benefit)
        curves.append([(t, value / rate) for t, value in zip(thresholds, values, strict=True) if value >= 0])
    sentence = (
        f"At threshold t, a false positive counts t / (1 - t) times as much as a true positive for {event}. Dashed: "
        f"always predicting {event}. Never predicting it has net benefit 0."
    )
    axes = ("threshold", "net benefit / share of the label")
    drawing = unit_curves(f"Net benefit of {event}", axes, [curves[0]], [curves[1]])
    return [grid, benefits], [Picture("net-benefit", "Net benefit", sentence, drawing)]


def _curves(report: EvaluateReport, shown: Sequence[int]) -> list[Picture]:
    """Draw the ROC, precision-recall, gains, lift and reliability curves of the labels with the indices `shown`."""
    labels = [report.labels[c] for c in shown]
    curves = [report.curves[c] for c in shown]
    total = sum(figures.support for figures in report.per_label)
    shares = [report.per_label[c].support / total for c in shown]
    diagonal = [((0.0, 0.0), (1.0, 1.0))] * len(labels)
    roc, sentences = list[Points](), []
    for label, curve in zip(labels, curves, strict=True):
        if curve.roc is None:
            roc.append(())
            sentences.append(f"Either no row or every row has the label {label}, so there is no curve.")
            continue
        roc.append(tuple(zip(curve.roc.x.tolist(), curve.roc.y.tolist(), strict=True)))
        sentences.append(
            f"AUC {figure(curve.roc.area)}: the probability that a row with the label {label} is ranked above a row "
            "with another label."
        )
    drawing = unit_curves(
        f"ROC curve of {labels[0]}", ("false positive rate", "true positive rate (recall)"), roc, diagonal
    )
    pictures = [Picture("roc", "ROC curve", sentences[0], drawing, sentences=_if_several(sentences))]
    precisions, sentences = list[Points](), []
    for label, curve, share in zip(labels, curves, shares, strict=True):
        recall = curve.precision_recall
        if recall is None:
            precisions.append(())
            sentences.append(f"No row has the label {label}.")
            continue
        precisions.append(tuple(zip(recall.x.tolist(), recall.y.tolist(), strict=True)))
        half = percent(float(recall.y[int(np.searchsorted(recall.x, 0.5))]))
        sentences.append(f"At recall 50 %, the precision for {label} is {half}; without a model {percent(share)}.")
    base_rates = [((0.0, share), (1.0, share)) for share in shares]
    drawing = unit_curves(f"Precision and recall of {labels[0]}", ("recall", "precision"), precisions, base_rates)
    title = "Precision and recall"
    pictures.append(Picture("precision-recall", title, sentences[0], drawing, sentences=_if_several(sentences)))
    pictures += _gains_and_lift(labels, curves, shares)
    dots, sentences = [], []
    for label, curve in zip(labels, curves, strict=True):
        bins = list(zip(*(column.tolist() for column in curve.reliability), strict=True))
        dots.append([(p, q, n, f"probability {p:.3g}: {q:.3g} of {n:,.10g} rows") for p, q, n in bins])
        p, q, n = max(bins, key=lambda own: abs(own[0] - own[1]))
        worst = f"predicted {percent(p)}, observed {percent(q)} of {count(round(n), 'row')}"
        sentences.append(
            f"On the dashed line, probabilities of {label} match observed frequencies. Largest deviation: {worst}."
        )
    drawing = reliability_dots(f"Reliability of {labels[0]}", dots)
    pictures.append(Picture("reliability", "Reliability", sentences[0], drawing, sentences=_if_several(sentences)))
    return pictures


def _gains_and_lift(labels: Sequence[str], curves: Sequence[LabelCurves], shares: Sequence[float]) -> list[Picture]:
    """Draw the gains curves (recall over the fraction of rows, most probable first) and the lift curves.

    shares: the fraction of the rows that have each label.
    """
    gain_points, lift_points, gain_sentences, lift_sentences = list[Points](), list[Points](), [], []
    for label, curve, share in zip(labels, curves, shares, strict=True):
        if curve.roc is None:
            gain_points.append(())
            lift_points.append(())
            gain_sentences.append(f"Either no row or every row has the label {label}, so there is no curve.")
            lift_sentences.append(gain_sentences[-1])
            continue
        inspected, found = gains(curve.roc, share)
        tenth = float(np.interp(0.1, inspected, found))
        lift = np.minimum(np.interp(_LIFT_AT, inspected, found) / _LIFT_AT, _HIGHEST_LIFT)
        gain_points.append(tuple(zip(inspected.tolist(), found.tolist(), strict=True)))
        lift_points.append(tuple(zip(_LIFT_AT.tolist(), lift.tolist(), strict=True)))
        gain_sentences.append(
            f"The 10\u00a0% of rows with the highest probability of {label} contain {percent(tenth)} of all rows "
            f"with that label."
        )
        lift_sentences.append(
            f"Among these 10\u00a0% of rows, {label} is {10 * tenth:.1f} times as frequent as in all rows."
        )
    diagonal = [((0.0, 0.0), (1.0, 1.0))] * len(labels)
    chance = [((0.0, 1.0), (1.0, 1.0))] * len(labels)
    highest = max((y for points in lift_points for _, y in points), default=1.0)
    axis = "share of rows, most probable first"
    gain_drawing = unit_curves(f"Gains of {labels[0]}", (axis, "recall"), gain_points, diagonal)
    lift_drawing = unit_curves(f"Lift of {labels[0]}", (axis, "lift"), lift_points, chance, max(highest, 1.1))
    return [
        Picture("gains", "Gains", gain_sentences[0], gain_drawing, sentences=_if_several(gain_sentences)),
        Picture("lift", "Lift", lift_sentences[0], lift_drawing, sentences=_if_several(lift_sentences)),
    ]


def _if_several(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences of all labels, or () for a single label, whose sentence is already the caption."""
    return tuple(sentences) if len(sentences) > 1 else ()
