"""Metrics of the rows of each value of a column, their confidence intervals, and fairness gaps between the groups.

For a label c, with y_t the true label and p_t the predicted one (or the decision, if the model has a decision rule),
all shares weighted:

    selection rate        share of rows with p_t = c
    true positive rate    share of the rows of c with p_t = c
    false positive rate   share of the other rows with p_t = c

Each rate is compared over the groups of a column by the difference, highest - lowest, and the ratio, lowest / highest.
The difference and ratio of the selection rate are known as those of demographic parity. Equalized odds are the larger
difference and the smaller ratio of the other two rates (Hardt, Price & Srebro 2016; fairlearn computes the same).

95 % confidence intervals, with z = 1.96 and n the sum of the row weights:

    a share                  Wilson (1927): the shares p with |p^ - p| <= z sqrt(p (1 - p) / n)
    a mean of losses         mean -+ z s / sqrt(n), s^2 = sum of w_t (x_t - mean)^2 / (n - 1); its root for rmse
    auc of two classes       auc -+ z se (DeLong, DeLong & Clarke-Pearson 1988): se^2 = S_1 / n_1 + S_0 / n_0, S the
                             variances over rows of the share of the other class that a row wins against
    balanced accuracy, mcc   the 2.5 % and 97.5 % quantiles over DRAWS multinomial draws of the confusion matrix

Conventions:
- With two labels the rates are reported for the second one, otherwise for every label.
- A rate without rows is None and takes no part in the comparison; a ratio 0 / 0 is None.
- A row without a decision is selected for no label.
- The draws have a fixed seed. An interval is None if there are too few rows: a mean of one row, an auc with one row of
  a class. ece, and auc of more than two classes, have no interval here.

Cost: a few passes over the rows, and a sort for the auc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bncli.engine.evaluation.decision_metrics import DecidedRows, measure_decided_rows
from bncli.engine.evaluation.metrics import balanced_accuracy, matthews_correlation, measure
from bncli.engine.kernels.arrays import Array, Integers, Mask

Interval = tuple[float, float]
Z = float(ndtri(0.975))
DRAWS = 400
RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True)
class GroupColumn:
    """A column that groups rows: codes (N,) into the names of its values; the name of missing values is None."""

    name: str
    values: tuple[str | None, ...]
    codes: Integers


class Rate(NamedTuple):
    """A share and its 95 % interval."""

    share: float
    interval: Interval


@dataclass(frozen=True)
class Group:
    """The rows with one value of the column `by`: metrics and intervals by name, rates by label and then by name.

    decisions: metrics of the decisions by name, empty without a decision rule.
    """

    by: str
    value: str | None
    rows: int
    weight: float
    metrics: dict[str, float | None]
    intervals: dict[str, Interval | None]
    rates: dict[str, dict[str, Rate | None]]
    decisions: dict[str, float | None]


class GroupGap(NamedTuple):
    """Difference and ratio of the highest and the lowest rate; the ratio is None if the highest is 0."""

    difference: float
    ratio: float | None


@dataclass(frozen=True)
class Fairness:
    """The gaps of a label's rates over the groups of a column; None if fewer than two groups have the rate."""

    by: str
    label: str
    gaps: dict[str, GroupGap | None]

    @property
    def equalized_odds(self) -> GroupGap | None:
        """The larger difference and the smaller ratio of the true and the false positive rate."""
        odds = [gap for name in RATES[1:] if (gap := self.gaps[name]) is not None]
        if len(odds) < 2:
            return None
        ratios = [gap.ratio for gap in odds if gap.ratio is not None]
        return GroupGap(max(gap.difference for gap in odds), min(ratios, default=None))


def measure_groups(
    column: GroupColumn,
    labels: Sequence[str],
    log_p: Array,
    true: Integers,
    weights: Array | None,
    decided: DecidedRows | None = None,
) -> list[Group]:
    """Return the groups of a column that have rows, in the order of its values.

    log_p is ln P(c | x_t), shape (K, N); true labels and weights (None: 1) have shape (N,). decided: the decisions of
    these rows, if the model has a decision rule.
    """
    weights = np.ones(len(true)) if weights is None else weights
    order = np.argsort(column.codes, kind="stable")
    codes, starts = np.unique(column.codes[order], return_index=True)
    groups = []
    for code, rows in zip(codes.tolist(), np.split(order, starts[1:]), strict=True):
        group_log_p, group_true, group_weights = log_p[:, rows], true[rows], weights[rows]
        metrics = measure(group_log_p, group_true, None if (group_weights == 1).all() else group_weights)
        predicted, decisions = group_log_p.argmax(axis=0), dict[str, float | None]()
        if decided is not None:
            group_decided = decided._replace(codes=decided.codes[rows])
            predicted = group_decided.codes
            decisions = measure_decided_rows(group_decided, group_true, group_weights)
            decisions.pop("threshold", None)  # it is the same in every group
        rates = {}
        for c in labels_with_rates(labels):
            is_selected, is_true = predicted == c, group_true == c
            rates[labels[c]] = dict[str, Rate | None]()
            for name, mask in zip(RATES, (np.ones(len(rows), np.bool_), is_true, ~is_true), strict=True):
                rate = None
                if mask.any():
                    share = float(np.average(is_selected[mask], weights=group_weights[mask]))
                    rate = Rate(share, wilson_interval(share, float(group_weights[mask].sum())))
                rates[labels[c]][name] = rate
        groups.append(
            Group(
                by=column.name,
                value=column.values[code],
                rows=len(rows),
                weight=float(group_weights.sum()),
                metrics=metrics.by_name(),
                intervals=metric_intervals(group_log_p, group_true, group_weights, metrics.confusion),
                rates=rates,
                decisions=decisions,
            )
        )
    return groups


def labels_with_rates(labels: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the labels for which rates are reported: the second of two labels, otherwise all."""
    return (1,) if len(labels) == 2 else tuple(range(len(labels)))


def compare_groups(groups: Sequence[Group]) -> list[Fairness]:
    """Return the gaps between the groups of one column, one entry per label."""
    fairness = []
    for label in groups[0].rates if groups else ():
        gaps = dict[str, GroupGap | None]()
        for name in RATES:
            shares = [rate.share for group in groups if (rate := group.rates[label][name]) is not None]
            low, high = min(shares, default=0.0), max(shares, default=0.0)
            gaps[name] = GroupGap(high - low, low / high if high > 0 else None) if len(shares) >= 2 else None
        fairness.append(Fairness(groups[0].by, label, gaps))
    return fairness


def metric_intervals(
    log_p: Array, labels: Integers, weights: Array, confusion: NDArray[np.int64] | Array
) -> dict[str, Interval | None]:
    """Return the interval of every metric that has one, by name; None if there are too few rows.

    log_p is ln P(c | x_t), shape (K, N); labels and weights have shape (N,), confusion[true, predicted] (K, K).
    """
    log_true, n = log_p[labels, np.arange(len(labels))], float(weights.sum())
    accuracy = wilson_interval(float(np.average(log_p.argmax(axis=0) == labels, weights=weights)), n)
    log_loss = _clipped(mean_interval(-log_true, weights), 0.0, math.inf)
    missing = np.square(np.expm1(log_true))
    squares = _clipped(mean_interval(missing, weights), 0.0, 1.0)
    brier = np.square(np.exp(log_p)).sum(axis=0) + missing - np.square(np.exp(log_true))
    return {
        "accuracy": accuracy,
        "error": (1 - accuracy[1], 1 - accuracy[0]),
        "log_loss": log_loss,
        "rmse": None if squares is None else (math.sqrt(squares[0]), math.sqrt(squares[1])),
        "brier": _clipped(mean_interval(brier, weights), 0.0, 2.0),
        "auc": auc_interval(log_p[1] - log_p[0], labels == 1, weights) if len(log_p) == 2 else None,
        "cll": None if log_loss is None else (-log_loss[1] * n, -log_loss[0] * n),
        **confusion_intervals(confusion),
    }


def _clipped(interval: Interval | None, low: float, high: float) -> Interval | None:
    return None if interval is None else (max(low, interval[0]), min(high, interval[1]))


def wilson_interval(share: float, n: float) -> Interval:
    """Return the interval of a share of n > 0 rows.

    >>> [round(end, 4) for end in wilson_interval(0.0, 10)]
    [0.0, 0.2775]
    """
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return (0.0 if share == 0 else max(0.0, middle - half)), (1.0 if share == 1 else min(1.0, middle + half))


def mean_interval(values: Array, weights: Array) -> Interval | None:
    """Return the interval of the mean of values (N,) with weights (N,) above 0."""
    n = float(weights.sum())
    if len(values) < 2 or n <= 1:
        return None
    mean = float(weights @ values) / n
    half = Z * math.sqrt(float(weights @ np.square(values - mean)) / (n - 1) / n)
    return mean - half, mean + half


def auc_interval(scores: Array, positive: Mask, weights: Array) -> Interval | None:
    """Return DeLong's interval of the area under the ROC curve of scores (N,)."""
    own, other = scores[positive], scores[~positive]
    own_weights, other_weights = weights[positive], weights[~positive]
    if any(len(part) < 2 or part.sum() <= 1 for part in (own_weights, other_weights)):
        return None
    wins = _shares_below(own, other, other_weights)
    area = float(np.average(wins, weights=own_weights))
    variance = 0.0
    for shares, part in ((wins, own_weights), (1 - _shares_below(other, own, own_weights), other_weights)):
        mean = np.average(shares, weights=part)
        variance += float(part @ np.square(shares - mean) / (part.sum() - 1)) / part.sum()
    half = Z * math.sqrt(variance)
    return max(0.0, area - half), min(1.0, area + half)


def _shares_below(scores: Array, others: Array, weights: Array) -> Array:
    """Return for each score the share of the others' weight that lies below it, with ties counting half."""
    order = np.argsort(others, kind="stable")
    cumulative = np.concatenate(([0.0], np.cumsum(weights[order])))
    below = cumulative[np.searchsorted(others[order], scores, side="left")]
    not_above = cumulative[np.searchsorted(others[order], scores, side="right")]
    return np.asarray((below + not_above) / 2 / cumulative[-1])


def confusion_intervals(confusion: NDArray[np.int64] | Array) -> dict[str, Interval]:
    """Return the intervals of balanced accuracy and mcc from confusion[true, predicted]."""
    n = round(float(confusion.sum()))
    rng = np.random.Generator(np.random.PCG64(0))
    draws = rng.multinomial(max(n, 1), confusion.ravel() / confusion.sum(), DRAWS).reshape(-1, *confusion.shape)
    intervals = {}
    for name, metric in (("balanced_accuracy", balanced_accuracy), ("mcc", matthews_correlation)):
        low, high = np.quantile([metric(draw) for draw in draws], (0.025, 0.975))
        intervals[name] = (float(low), float(high))
    return intervals
