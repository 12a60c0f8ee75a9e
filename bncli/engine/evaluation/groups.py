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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.evaluation.decision_figures import DecidedRows, figures_of
from bncli.engine.evaluation.intervals import Bounds, Interval, intervals, wilson
from bncli.engine.evaluation.metrics import measure
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask

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


class Gap(NamedTuple):
    """Over the groups of a column: highest - lowest, and lowest / highest (None where the highest is 0)."""

    difference: float
    ratio: float | None


@dataclass(frozen=True)
class Fairness:
    """The gaps of the rates of a label over the groups of a column; None where fewer than two groups have the rate."""

    by: str
    label: str
    gaps: dict[str, Gap | None]

    @property
    def equalized_odds(self) -> Gap | None:
        """The larger difference and the smaller ratio of the true and the false positive rate."""
        odds = [gap for name in RATES[1:] if (gap := self.gaps[name]) is not None]
        if len(odds) < 2:
            return None
        ratios = [gap.ratio for gap in odds if gap.ratio is not None]
        return Gap(max(gap.difference for gap in odds), min(ratios, default=None))


def told_labels(labels: Sequence[str]) -> tuple[int, ...]:
    """The labels that rates are told of: of two the second."""
    return (1,) if len(labels) == 2 else tuple(range(len(labels)))


def measure_groups(
    column: GroupColumn,
    labels: Sequence[str],
    log_p: Array,
    true: Integers,
    weights: Array | None,
    decided: DecidedRows | None = None,
) -> list[Group]:
    """The groups of a column that have rows, in the order of its values; log_p (K, N), true labels and weights (N,)."""
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
    """The group of these rows, without its name."""
    found = measure(log_p, true, None if (weights == 1).all() else weights)
    bounds = intervals(log_p, true, weights, found.confusion)
    chosen = log_p.argmax(axis=0) if decided is None else decided.codes
    of_decisions = {} if decided is None else figures_of(decided, true, weights)
    of_decisions.pop("threshold", None)  # the same in every group
    rates = {labels[c]: _rates(chosen == c, true == c, weights) for c in told_labels(labels)}
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
    """The gaps of one column, a label each."""
    found = []
    for label in groups[0].rates if groups else ():
        gaps = {
            name: _gap([rate.share for g in groups if (rate := g.rates[label][name]) is not None]) for name in RATES
        }
        found.append(Fairness(groups[0].by, label, gaps))
    return found


def _gap(shares: list[float]) -> Gap | None:
    if len(shares) < 2:
        return None
    low, high = min(shares), max(shares)
    return Gap(high - low, low / high if high > 0 else None)
