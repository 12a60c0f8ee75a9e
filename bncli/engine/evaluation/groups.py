"""Figures by group: what a model is worth, and whom it selects, among the rows of each value of a column.

Of a label c, with y_t the true and p_t the predicted label of a row, or the one decided for where the model has a rule
for decisions, all shares weighted:

    selection rate        share of rows with p_t = c
    true positive rate    share of the rows of c with p_t = c
    false positive rate   share of the other rows with p_t = c

and over the groups of a column, of each rate the difference, highest - lowest, and the ratio, lowest / highest
(0 / 0 is none). Equalized odds are the larger of the differences of the last two rates, and the smaller of their
ratios; the difference and ratio of the selection rate are known as those of demographic parity (Hardt, Price & Srebro
2016; fairlearn has the same). With two classes they are told of the second label, else of every label.

Conventions: a group without the rows that a rate is a share of has no rate (None), and takes no part in differences. A
row that is left undecided is selected for no label.

How far chance alone may take a figure: 95 % intervals of the figures of a set of rows.

    a share                  Wilson (1927): the shares p with |p^ - p| <= z sqrt(p (1 - p) / n)
    a mean of losses         mean -+ z s / sqrt(n), s^2 = sum of w_t (x_t - mean)^2 / (n - 1); its root for rmse
    auc of two classes       auc -+ z se (DeLong, DeLong & Clarke-Pearson 1988): se^2 = S_1 / n_1 + S_0 / n_0, S the
                             variances over rows of the share of the other class that a row wins against
    balanced accuracy, mcc   the 2.5 % and 97.5 % quantiles over DRAWS multinomial draws of the confusion matrix

Conventions: z = 1.96, the weight of a row counts as so many rows, n their sum. The draws are from a fixed seed. None
where rows do not suffice: a mean of one row, an auc with one row of a class. Ece, and auc of several classes, have no
interval here. Cost: a few passes over the rows, a sort for the auc.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bncli.engine.evaluation.decision_figures import DecidedRows, figures_of
from bncli.engine.evaluation.metrics import balanced_accuracy, matthews_correlation, measure
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask

Interval = tuple[float, float]
Bounds = dict[str, Interval | None]
Z = float(ndtri(0.975))
DRAWS = 400
RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True)
class GroupColumn:
    """A column as groups: codes (N,) into the names of its values; None is the name of missing values."""

    name: str
    values: tuple[str | None, ...]
    codes: Integers


class Rate(NamedTuple):
    """A share and its 95 % interval."""

    share: float
    interval: Interval


@dataclass(frozen=True)
class Group:
    """The rows of one value of a column `by`: figures and their intervals by name; rates by label, then by name.

    decided: figures of the decisions, empty where there are none.
    """

    by: str
    value: str | None
    rows: int
    weight: float
    figures: dict[str, float | None]
    intervals: Bounds
    rates: dict[str, dict[str, Rate | None]]
    decided: dict[str, float | None]


class GroupGap(NamedTuple):
    """Over the groups of a column: highest - lowest, and lowest / highest (None where the highest is 0)."""

    difference: float
    ratio: float | None


@dataclass(frozen=True)
class Fairness:
    """The gaps of the rates of a label over the groups of a column; None where fewer than two groups have the rate."""

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


def wilson(share: float, n: float) -> Interval:
    """Of a share of n rows; n > 0.

    >>> [round(end, 4) for end in wilson(0.0, 10)]
    [0.0, 0.2775]
    """
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return (0.0 if share == 0 else max(0.0, middle - half)), (1.0 if share == 1 else min(1.0, middle + half))


def of_mean(values: Array, weights: Array) -> Interval | None:
    """Of a mean over rows of weight above 0."""
    n = float(weights.sum())
    if len(values) < 2 or n <= 1:
        return None
    mean = float(weights @ values) / n
    half = Z * math.sqrt(float(weights @ np.square(values - mean)) / (n - 1) / n)
    return mean - half, mean + half


def of_auc(scores: Array, positive: Mask, weights: Array) -> Interval | None:
    """Of the area under the ROC curve of `scores` (N,)."""
    parts = [(scores[mask], weights[mask]) for mask in (positive, ~positive)]
    if any(len(own) < 2 or mass.sum() <= 1 for own, mass in parts):
        return None
    above = _wins(*parts[0], *parts[1])
    below = 1 - _wins(*parts[1], *parts[0])
    (_, of_positive), (_, of_negative) = parts
    area = float(np.average(above, weights=of_positive))
    spread = _variance(above, of_positive) / of_positive.sum() + _variance(below, of_negative) / of_negative.sum()
    half = Z * math.sqrt(spread)
    return max(0.0, area - half), min(1.0, area + half)


def _wins(scores: Array, _: Array, others: Array, weights: Array) -> Array:
    """For each score, the share of the others that lie below it, ties counting half."""
    order = np.argsort(others, kind="stable")
    up_to = np.concatenate(([0.0], np.cumsum(weights[order])))
    below = up_to[np.searchsorted(others[order], scores, side="left")]
    not_above = up_to[np.searchsorted(others[order], scores, side="right")]
    return np.asarray((below + not_above) / 2 / up_to[-1])


def _variance(values: Array, weights: Array) -> float:
    mean = np.average(values, weights=weights)
    return float(weights @ np.square(values - mean) / (weights.sum() - 1))


def of_confusion(confusion: NDArray[np.int64] | Array) -> dict[str, Interval]:
    """Of balanced accuracy and mcc."""
    n = round(float(confusion.sum()))
    rng = np.random.Generator(np.random.PCG64(0))
    draws = rng.multinomial(max(n, 1), confusion.ravel() / confusion.sum(), DRAWS).reshape(-1, *confusion.shape)
    found = {
        "balanced_accuracy": [balanced_accuracy(draw) for draw in draws],
        "mcc": [matthews_correlation(draw) for draw in draws],
    }
    return {name: _middle(values) for name, values in found.items()}


def _middle(values: list[float]) -> Interval:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def intervals(log_p: Array, labels: Integers, weights: Array, confusion: NDArray[np.int64] | Array) -> Bounds:
    """Of every metric of these rows (`metrics.METRICS`) that has one, by name; None: the rows do not suffice."""
    rows = np.arange(len(labels))
    log_true, n = log_p[labels, rows], float(weights.sum())
    accuracy = wilson(float(np.average(log_p.argmax(axis=0) == labels, weights=weights)), n)
    losses = _within(of_mean(-log_true, weights), 0.0, math.inf)
    missed = np.square(np.expm1(log_true))
    squares = _within(of_mean(missed, weights), 0.0, 1.0)
    brier = np.square(np.exp(log_p)).sum(axis=0) + missed - np.square(np.exp(log_true))
    return {
        "accuracy": accuracy,
        "error": (1 - accuracy[1], 1 - accuracy[0]),
        "log_loss": losses,
        "rmse": None if squares is None else (math.sqrt(squares[0]), math.sqrt(squares[1])),
        "brier": _within(of_mean(brier, weights), 0.0, 2.0),
        "auc": of_auc(log_p[1] - log_p[0], labels == 1, weights) if len(log_p) == 2 else None,
        "cll": None if losses is None else (-losses[1] * n, -losses[0] * n),
        **of_confusion(confusion),
    }


def _within(interval: Interval | None, low: float, high: float) -> Interval | None:
    """Return what of the interval is possible."""
    return None if interval is None else (max(low, interval[0]), min(high, interval[1]))


def labels_with_rates(labels: Sequence[str]) -> tuple[int, ...]:
    """Return the labels that rates are told of: of two the second."""
    return (1,) if len(labels) == 2 else tuple(range(len(labels)))


def measure_groups(
    column: GroupColumn,
    labels: Sequence[str],
    log_p: Array,
    true: Integers,
    weights: Array | None,
    decided: DecidedRows | None = None,
) -> list[Group]:
    """Return the groups of a column that have rows, in the order of its values.

    Log_p (K, N), true labels and weights (N,).
    """
    own = np.ones(len(true)) if weights is None else weights
    found = []
    for code, rows in _rows_of(column):
        some = None if decided is None else decided._replace(codes=decided.codes[rows])
        group = _group(labels, log_p[:, rows], true[rows], own[rows], some)
        found.append(replace(group, by=column.name, value=column.values[code]))
    return found


def _rows_of(column: GroupColumn) -> Iterator[tuple[int, Index]]:
    order = np.argsort(column.codes, kind="stable")
    codes, starts = np.unique(column.codes[order], return_index=True)
    yield from zip(codes.tolist(), np.split(order, starts[1:]), strict=True)


def _group(labels: Sequence[str], log_p: Array, true: Integers, weights: Array, decided: DecidedRows | None) -> Group:
    """Return the group of these rows, without its name."""
    found = measure(log_p, true, None if (weights == 1).all() else weights)
    bounds = intervals(log_p, true, weights, found.confusion)
    chosen = log_p.argmax(axis=0) if decided is None else decided.codes
    of_decisions = {} if decided is None else figures_of(decided, true, weights)
    of_decisions.pop("threshold", None)  # the same in every group
    rates = {labels[c]: _rates(chosen == c, true == c, weights) for c in labels_with_rates(labels)}
    return Group("", None, len(true), float(weights.sum()), found.figures(), bounds, rates, of_decisions)


def _rates(chosen: Mask, own: Mask, weights: Array) -> dict[str, Rate | None]:
    masks = (np.ones(len(own), np.bool_), own, ~own)
    return {name: _rate(chosen[rows], weights[rows]) for name, rows in zip(RATES, masks, strict=True)}


def _rate(chosen: Mask, weights: Array) -> Rate | None:
    if not len(chosen):
        return None
    share = float(np.average(chosen, weights=weights))
    return Rate(share, wilson(share, float(weights.sum())))


def fairness_of(groups: Sequence[Group]) -> list[Fairness]:
    """Return the gaps of one column, a label each."""
    found = []
    for label in groups[0].rates if groups else ():
        gaps = {
            name: _gap([rate.share for g in groups if (rate := g.rates[label][name]) is not None]) for name in RATES
        }
        found.append(Fairness(groups[0].by, label, gaps))
    return found


def _gap(shares: list[float]) -> GroupGap | None:
    if len(shares) < 2:
        return None
    low, high = min(shares), max(shares)
    return GroupGap(high - low, low / high if high > 0 else None)
