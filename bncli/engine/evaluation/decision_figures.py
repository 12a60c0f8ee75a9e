"""How good decisions are on rows whose labels are known; all means are weighted.

    cost              mean of costs[y_t][d_t] over the rows that are decided
    abstention        share of rows that are not
    decided_accuracy  share of [d_t = y_t] in those that are
    threshold         from which probability on the second of two labels was decided for
    coverage          share of rows whose set holds the true label, of all rows and of the rows of each label
    set_size          mean number of labels in the set

Figures that a rule does not ask for, and 0 / 0, are None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.decision_rules import ABSTAINED, Decider

DECISION_FIGURES = ("cost", "abstention", "decided_accuracy", "threshold", "coverage", "set_size")


class DecidedRows(NamedTuple):
    """What was decided of rows, (N,), ABSTAINED for nothing, and by which rule, without what it takes from rows."""

    rule: DecisionRule
    codes: Index


@dataclass(frozen=True)
class DecisionFigures:
    """The figures by name, only those asked for; the coverage of the rows of each label, None without sets.

    rows: None where the rule has sets alone.
    """

    figures: dict[str, float | None]
    class_coverage: tuple[float | None, ...] | None
    rows: DecidedRows | None


def measure_decisions(
    model: Model, log_probabilities: Array, labels: Integers, weights: Array | None
) -> DecisionFigures | None:
    """Of ln P(c | x_t), shape (K, N), and the labels (N,); None where the model does not say how to decide."""
    rule = model.rule
    if rule is None:
        return None
    decider = Decider.of(rule, model.schema.labels)
    decided = decider.decide(log_probabilities)
    weights = np.ones(len(labels)) if weights is None else weights
    rows = DecidedRows(replace(rule, held_out=None), decided.codes)
    found = figures_of(rows, labels, weights)
    told = rows if rule.decides else None
    if decided.members is None:
        return DecisionFigures(found, None, told)
    covered = decided.members[labels.astype(np.intp), np.arange(len(labels))]
    found["coverage"] = _mean(covered, weights, np.ones(len(labels), np.bool_))
    found["set_size"] = float(np.average(decided.members.sum(axis=0), weights=weights))
    by_class = tuple(_mean(covered, weights, labels == k) for k in range(len(log_probabilities)))
    return DecisionFigures(found, by_class, told)


def _mean(values: Array | Mask, weights: Array, rows: Mask) -> float | None:
    return float(np.average(values[rows], weights=weights[rows])) if rows.any() else None


def figures_of(rows: DecidedRows, labels: Integers, weights: Array) -> dict[str, float | None]:
    """Return those that the rule asks for of rows with these labels and weights (N,), but for its sets."""
    rule, there = rows.rule, rows.codes != ABSTAINED
    found: dict[str, float | None] = {}
    if rule.costs is not None:
        found["cost"] = _mean(np.array(rule.costs)[labels.astype(np.intp), rows.codes], weights, there)
    if rule.abstain_below is not None:
        found["abstention"] = _mean(~there, weights, np.ones(len(labels), np.bool_))
    if rule.decides:
        found["decided_accuracy"] = _mean(rows.codes == labels, weights, there)
    if rule.threshold is not None:
        found["threshold"] = rule.threshold.value
    return found
