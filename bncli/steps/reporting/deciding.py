"""What the model's own rule decides, where it has one; for two classes the thresholds to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.decision_rule import Rule
from bncli.engine.decisions.deciding import ABSTAINED
from bncli.engine.evaluation.curves import threshold_table
from bncli.engine.evaluation.decision_figures import DecidedRows
from bncli.engine.kernels.arrays import Array
from bncli.files.formats.report.blocks import Block, Grid, Panel, Prose
from bncli.steps.evaluating.report import EvaluateReport
from bncli.steps.reporting.words import percent

MOST_CELLS = 12
"""Labels whose confusion is told as numbers too."""
_RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99)
_NUMBER = ",.10g"


class Ruled(NamedTuple):
    """Weights of rows by true label and decision, (K, K), of those without a decision by true label, (K,); costs."""

    confusion: Array
    undecided: Array
    cost: float | None
    plain_cost: float | None


def ruled(report: EvaluateReport, rows: DecidedRows) -> Ruled:
    """The decisions of a rule; costs a row of them, and of the likeliest class, None where the rule has no costs."""
    log_p, codes, weights = report.pooled
    k, weights, (rule, decided) = len(log_p), np.ones(len(codes)) if weights is None else weights, rows
    there = decided != ABSTAINED
    places = codes[there].astype(np.intp) * k + decided[there]
    cells = np.bincount(places, weights[there], k * k).reshape(k, k).astype(np.float64)
    undecided = np.bincount(codes[~there], weights[~there], k).astype(np.float64)
    if rule.costs is None:
        return Ruled(cells, undecided, None, None)
    costs = np.array(rule.costs)
    plain = float(np.average(costs[codes, log_p.argmax(axis=0)], weights=weights))
    total = float(cells.sum())
    return Ruled(cells, undecided, float((costs * cells).sum() / total) if total else None, plain)


def rule_blocks(report: EvaluateReport, rule: Rule, found: Ruled) -> Iterator[Block]:
    """What it says, how often it is wrong, and the confusion where that can be read."""
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
    yield Prose(" ".join(words))
    if len(labels) <= MOST_CELLS:
        yield confusion_grid("Confusion by the model's own rule", labels, found.confusion, found.undecided)


def _rule_words(rule: Rule, labels: Sequence[str], many: bool) -> str:
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
    """Rows of a true label by the label decided, and those without a decision where there are any."""
    cells = [[f"{n:{_NUMBER}}" for n in row] for row in np.asarray(confusion).tolist()]
    headings = ["true \\ decided", *labels]
    if undecided is not None and undecided.any():
        headings.append("no decision")
        cells = [[*row, f"{n:{_NUMBER}}"] for row, n in zip(cells, undecided.tolist(), strict=True)]
    rows = [(label, *row) for label, row in zip(labels, cells, strict=True)]
    return Grid(caption, headings, rows, tuple(range(1, len(headings))))


def threshold_blocks(report: EvaluateReport, rule: Rule | None) -> Iterator[Block]:
    """Of two labels: the panel, which begins at the model's own threshold and costs, and how much is found from where.

    The panel shows the confusion at first as a table for who has no script.
    """
    log_p, codes, weights = report.pooled
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
    yield Panel("thresholds", f"From which probability of {label} on?", data, fallback)
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


def _start(rule: Rule | None) -> tuple[float, tuple[float, float]]:
    """The threshold, and what a missed row of the second label and a false alarm cost beyond right decisions."""
    if rule is not None and rule.threshold is not None:
        return min(max(rule.threshold.value, 0.0), 1.0), (1.0, 1.0)
    if rule is not None and rule.costs is not None:
        (right, alarm), (missed, found) = rule.costs
        costs = (max(missed - found, 0.0), max(alarm - right, 0.0))
        return (costs[1] / sum(costs) if sum(costs) else 0.5), costs
    return 0.5, (1.0, 1.0)
