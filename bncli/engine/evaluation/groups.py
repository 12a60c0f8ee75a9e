"""Metrics per group of rows, with confidence intervals, and fairness gaps; each value of a column defines a group.

For a label c, let y_t be the true label of row t and p_t its predicted label (or its decision, if the model has a
decision rule). All proportions are weighted:

    selection rate        proportion of rows with p_t = c
    true positive rate    proportion of rows with p_t = c among those with y_t = c
    false positive rate   proportion of rows with p_t = c among those with another label

Each rate is compared between the groups by its difference, highest - lowest, and its ratio, lowest / highest. For the
selection rate, these are the demographic parity difference and ratio. Equalized odds are the larger difference and the
smaller ratio of the other two rates (Hardt, Price & Srebro 2016; as in fairlearn).

Metrics and rates have 95 % confidence intervals (`intervals`).

Conventions:
- With two labels the rates are reported for the second one, otherwise for every label.
- A rate whose denominator has no rows is None and is left out of the comparison; a ratio 0 / 0 is None.
- A row without a decision does not count as selected for any label.

Cost: a few passes over the rows, a sort for the AUC, and a bootstrap for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.evaluation.intervals import Interval, PredictedBlock, measure_intervals
from bncli.engine.evaluation.metrics import AppliedRule, measure, measure_decided_rows
from bncli.engine.kernels.arrays import Array, Integers

RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True)
class GroupColumn:
    """A column that groups rows: codes (N,) are positions in `values`, where None stands for missing values."""

    name: str
    values: tuple[str | None, ...]
    codes: Integers


class Rate(NamedTuple):
    """A rate, as a proportion, and its 95 % confidence interval, or None if the interval is undefined."""

    share: float
    interval: Interval | None


@dataclass(frozen=True)
class Group:
    """Metrics of the rows with one value of the column `by`.

    - rows, weight: the number of rows and the sum of their weights
    - metrics, intervals: keyed by name; rates: keyed by label, then by name
    - decisions: metrics of the decisions, keyed by name; empty without a decision rule
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
    """The difference between the highest and the lowest rate, and the ratio lowest / highest (None if both are 0)."""

    difference: float
    ratio: float | None


@dataclass(frozen=True)
class Fairness:
    """The gap between the groups of a column for each rate of a label; None if fewer than two groups have the rate."""

    by: str
    label: str
    gaps: dict[str, GroupGap | None]

    @property
    def equalized_odds(self) -> GroupGap | None:
        """The larger difference and the smaller ratio of the true and false positive rates; None if a gap is None.

        A ratio that is None is ignored if the other is defined.
        """
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
    decided: AppliedRule | None = None,
    units: Integers | None = None,
    overlap_variance: float = 0.0,
) -> list[Group]:
    """Compute metrics, rates and their intervals for each group that has rows, in the order of `column.values`.

    - log_p: ln P(c | x_t), (K, N); true: label codes (N,); weights: row weights (N,), or None if all are 1
    - decided: the decision for each row, or None if the model has no decision rule
    - units: the unit of each row, (N,), or None if each row is a unit of its own
    - overlap_variance: as for `measure_intervals`
    """
    weights = np.ones(len(true)) if weights is None else weights
    order = np.argsort(column.codes, kind="stable")
    codes, starts = np.unique(column.codes[order], return_index=True)
    groups = []
    for code, rows in zip(codes.tolist(), np.split(order, starts[1:]), strict=True):
        group_log_p, group_true, group_weights = log_p[:, rows], true[rows], weights[rows]
        metrics = measure(group_log_p, group_true, None if (group_weights == 1).all() else group_weights)
        predicted, decisions = group_log_p.argmax(axis=0), dict[str, float | None]()
        decided_codes = None
        if decided is not None:
            group_decided = decided._replace(codes=decided.codes[rows])
            predicted = decided_codes = group_decided.codes
            decisions = measure_decided_rows(group_decided, group_true, group_weights)
            decisions.pop("threshold", None)  # it is the same in every group
        intervals = measure_intervals(
            [PredictedBlock(np.arange(len(rows)), group_log_p, decided_codes)],
            group_true,
            group_weights,
            metrics.by_name(),
            units=None if units is None else units[rows],
            overlap_variance=overlap_variance,
        )
        rates = {}
        for c in labels_with_rates(labels):
            is_selected, is_true = predicted == c, group_true == c
            rates[labels[c]] = dict[str, Rate | None]()
            for name, mask in zip(RATES, (np.ones(len(rows), np.bool_), is_true, ~is_true), strict=True):
                rate = None
                if mask.any():
                    share = float(np.average(is_selected[mask], weights=group_weights[mask]))
                    rate = Rate(share, intervals.by_label[c][name])
                rates[labels[c]][name] = rate
        groups.append(
            Group(
                by=column.name,
                value=column.values[code],
                rows=len(rows),
                weight=float(group_weights.sum()),
                metrics=metrics.by_name(),
                intervals=intervals.metrics,
                rates=rates,
                decisions=decisions,
            )
        )
    return groups


def labels_with_rates(labels: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the labels for which rates are reported: the second of two labels, otherwise all."""
    return (1,) if len(labels) == 2 else tuple(range(len(labels)))


def compare_groups(groups: Sequence[Group]) -> list[Fairness]:
    """Return the gaps between the groups of one column, for each label with rates; empty without groups."""
    fairness = []
    for label in groups[0].rates if groups else ():
        gaps = dict[str, GroupGap | None]()
        for name in RATES:
            shares = [rate.share for group in groups if (rate := group.rates[label][name]) is not None]
            low, high = min(shares, default=0.0), max(shares, default=0.0)
            gaps[name] = GroupGap(high - low, low / high if high > 0 else None) if len(shares) >= 2 else None
        fairness.append(Fairness(groups[0].by, label, gaps))
    return fairness
