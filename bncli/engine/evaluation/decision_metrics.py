"""Metrics of decisions and prediction sets on rows with known labels; all means are weighted.

    cost              mean of costs[y_t][d_t] over the rows with a decision
    abstention        share of rows without a decision
    decided_accuracy  share of [d_t = y_t] among the rows with a decision
    threshold         lowest probability at which the second of two labels is decided
    coverage          share of rows whose prediction set contains the true label, over all rows and per label
    set_size          mean number of labels in a prediction set

with y_t the true label and d_t the decision. Only the metrics that the rule defines are computed; 0 / 0 is None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.decision_rules import ABSTAINED, Decider


class AppliedRule(NamedTuple):
    """A decision rule, without its held-out scores, and its decision for each row, (N,), or ABSTAINED."""

    rule: DecisionRule
    codes: Index


@dataclass(frozen=True)
class DecisionMetrics:
    """The metrics of decisions by name, the coverage of prediction sets per label (or None), and the decided rows.

    rows is None if the rule has only prediction sets. Otherwise confusion[true][decided], (K, K), sums the weights of
    rows with a decision, and undecided[true], (K,), those of rows without one.
    """

    metrics: dict[str, float | None]
    class_coverage: tuple[float | None, ...] | None
    rows: AppliedRule | None
    confusion: Integers | Array | None = None
    undecided: Integers | Array | None = None


def measure_decisions(
    model: Model, log_probabilities: Array, labels: Integers, weights: Array | None
) -> DecisionMetrics | None:
    """Return the metrics of a model's decisions, or None if it has no decision rule.

    ln P(c | x_t) has shape (K, N); labels and weights (None: all 1) have shape (N,).
    """
    rule = model.rule
    if rule is None:
        return None
    decided = Decider.of(rule, model.schema.labels).decide(log_probabilities)
    given, weights = weights, np.ones(len(labels)) if weights is None else weights
    rows = AppliedRule(replace(rule, held_out=None), decided.codes)
    metrics = measure_decided_rows(rows, labels, weights)
    class_coverage = None
    if decided.members is not None:
        covered = decided.members[labels.astype(np.intp), np.arange(len(labels))]
        metrics["coverage"] = _mean(covered, weights, np.ones(len(labels), np.bool_))
        metrics["set_size"] = float(np.average(decided.members.sum(axis=0), weights=weights))
        class_coverage = tuple(_mean(covered, weights, labels == k) for k in range(len(log_probabilities)))
    if not rule.decides:
        return DecisionMetrics(metrics, class_coverage, None)
    # confusion[true][decided] (K, K) and undecided[true] (K,), as numbers of rows or sums of their weights
    n_labels = len(log_probabilities)
    is_decided, true = rows.codes != ABSTAINED, labels.astype(np.intp)
    cells = true[is_decided] * n_labels + rows.codes[is_decided]
    decided_weights, other_weights = (None, None) if given is None else (given[is_decided], given[~is_decided])
    confusion = np.bincount(cells, decided_weights, n_labels * n_labels).reshape(n_labels, n_labels)
    undecided = np.bincount(true[~is_decided], other_weights, n_labels)
    return DecisionMetrics(metrics, class_coverage, rows, confusion, undecided)


def measure_decided_rows(rows: AppliedRule, labels: Integers, weights: Array) -> dict[str, float | None]:
    """Return the metrics of decisions, except those of prediction sets, for labels and weights (N,)."""
    rule, is_decided = rows.rule, rows.codes != ABSTAINED
    metrics: dict[str, float | None] = {}
    if rule.costs is not None:
        metrics["cost"] = _mean(np.array(rule.costs)[labels.astype(np.intp), rows.codes], weights, is_decided)
    if rule.abstain_below is not None:
        metrics["abstention"] = _mean(~is_decided, weights, np.ones(len(labels), np.bool_))
    if rule.decides:
        metrics["decided_accuracy"] = _mean(rows.codes == labels, weights, is_decided)
    if rule.threshold is not None:
        metrics["threshold"] = rule.threshold.value
    return metrics


def _mean(values: Array | Mask, weights: Array, rows: Mask) -> float | None:
    return float(np.average(values[rows], weights=weights[rows])) if rows.any() else None
