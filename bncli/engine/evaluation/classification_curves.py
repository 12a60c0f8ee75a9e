"""How the probability of a label ranks rows, and whether it may be taken at its word: curves, one label against all.

With s_t = P(c | x_t), and T(u), F(u) the weights of the rows of label c, and of the others, with s_t >= u:

    ROC:               true positive rate T(u) / T(0) over the false positive rate F(u) / F(0)
    precision-recall:  precision T(u) / (T(u) + F(u)) over recall T(u) / T(0)
    reliability:       in bins of equal weight, the share of rows of label c over the mean of s_t

A threshold u a distinct probability, from the highest down; before it a point for "no row at all", with no threshold:
(0, 0), and of precision-recall (0, 1). auc is the area under the first curve (trapezoids, so that ties count half),
average_precision = sum over u of (recall(u) - recall(before u)) precision(u); both are those of all points.

Conventions: long curves are thinned to points of their own, by Douglas & Peucker (1973): the point farthest from the
line drawn so far comes next; of more than GRID points only one in each square of a GRID x GRID raster is looked at.
A bin of reliability is closed on the right at a quantile (the least value with so much weight at or below it), so that
equal probabilities share a bin and there are fewer bins where many are equal. Rows of weight 0 are no rows. Cost: a
sort of N rows a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers, Mask

BINS = 10
"""Of reliability."""
POINTS = 100
"""At most so many a curve, and ALL_POINTS over all labels, but never fewer than FEWEST a curve."""
ALL_POINTS = 2000
FEWEST = 20
GRID = 1000
_ON_THE_LINE = 1e-12


@dataclass(frozen=True)
class Curve:
    """Points (x, y) from the highest threshold down, the first of them without one (NaN), and the exact area."""

    thresholds: Array
    x: Array
    y: Array
    area: float


class Reliability(NamedTuple):
    """A bin an entry, from the lowest probability up: mean probability, share of the label, and weight of its rows."""

    predicted: Array
    observed: Array
    support: Array


@dataclass(frozen=True)
class LabelCurves:
    """The curves of one label; None where no row is of it, and roc also where all are."""

    roc: Curve | None
    precision_recall: Curve | None
    reliability: Reliability


class Gains(NamedTuple):
    """Rows from the highest probability down: share of rows looked at, share of the label's rows found among them."""

    looked_at: Array
    found: Array


class ThresholdTable(NamedTuple):
    """Of every threshold: weight of rows of the label at or above it (found), and of other rows (false alarms)."""

    thresholds: Array
    found: Array
    false_alarms: Array
    positives: float
    negatives: float


THRESHOLDS = np.unique(np.concatenate((np.arange(101) / 100, [0.001, 0.002, 0.005, 0.995, 0.998, 0.999])))
"""A table of them is the same size however many rows there are."""


def label_curves(log_probabilities: Array, labels: Integers, weights: Array | None = None) -> list[LabelCurves]:
    """Return the curves of every label from ln P(c | x_t), (K, N), labels (N,) and weights (None: 1)."""
    n_labels = len(log_probabilities)
    if weights is None:
        weights = np.ones(len(labels))
    there = weights > 0
    if not there.all():
        log_probabilities, labels, weights = log_probabilities[:, there], labels[there], weights[there]
    most = max(FEWEST, min(POINTS, ALL_POINTS // n_labels))
    return [_curves(log_probabilities[c], labels == c, weights, most) for c in range(n_labels)]


def _curves(scores: Array, own: Mask, weights: Array, most: int) -> LabelCurves:
    # equal scores are summed together below, so their order does not matter
    order = np.argsort(scores)[::-1]
    scores, own_weights, weights = scores[order], np.where(own, weights, 0.0)[order], weights[order]
    ends = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
    thresholds = np.concatenate(([np.nan], np.exp(scores[ends])))
    true, false = (np.concatenate(([0.0], np.cumsum(masses)[ends])) for masses in (own_weights, weights - own_weights))
    roc = ranked = None
    if true[-1] > 0:
        recall, precision = true / true[-1], np.concatenate(([1.0], true[1:] / (true[1:] + false[1:])))
        area = float(np.diff(recall) @ precision[1:])
        ranked = _thinned(Curve(thresholds, recall, precision, area), most)
        if false[-1] > 0:
            rate = false / false[-1]
            roc = _thinned(Curve(thresholds, rate, recall, float(np.trapezoid(recall, rate))), most)
    return LabelCurves(roc, ranked, _reliability(np.exp(scores[::-1]), own_weights[::-1], weights[::-1]))


def _thinned(curve: Curve, most: int) -> Curve:
    kept = thin(curve.x, curve.y, most)
    return Curve(curve.thresholds[kept], curve.x[kept], curve.y[kept], curve.area)


def _reliability(probabilities: Array, own_weights: Array, weights: Array) -> Reliability:
    """From ascending probabilities; own_weights is 0 for the rows of other labels."""
    up_to = np.cumsum(weights)
    edges = probabilities[np.searchsorted(up_to, up_to[-1] * np.arange(1, BINS) / BINS)]
    stops = np.searchsorted(probabilities, edges, side="right")
    starts = np.unique(np.concatenate(([0], stops[stops < len(probabilities)])))
    masses, own, sums = (np.add.reduceat(each, starts) for each in (weights, own_weights, weights * probabilities))
    return Reliability(sums / masses, own / masses, masses)


def thin(x: Array, y: Array, most: int) -> Index:
    """Ascending positions of at most `most` points of a line in the unit square that keep its shape, the ends included.

    What lies on the line through those kept is left out however few they are.
    """
    near = _one_a_square(x, y) if len(x) > GRID else np.arange(len(x))
    x, y = x[near], y[near]
    kept = [0, len(x) - 1]
    pending: list[tuple[float, int, int, int]] = []
    _push_farthest(pending, x, y, 0, len(x) - 1)
    while pending and len(kept) < most:
        _, first, middle, last = heappop(pending)
        kept.append(middle)
        _push_farthest(pending, x, y, first, middle)
        _push_farthest(pending, x, y, middle, last)
    return near[np.unique(kept)]


def _one_a_square(x: Array, y: Array) -> Index:
    """Of points in a row that fall into one square of the raster, the first; and the last of all."""
    squares = np.floor(x * GRID) * (GRID + 1) + np.floor(y * GRID)
    new = np.concatenate(([True], np.diff(squares) != 0))
    new[-1] = True
    return np.flatnonzero(new)


def _push_farthest(pending: list[tuple[float, int, int, int]], x: Array, y: Array, first: int, last: int) -> None:
    """Push the point between two others that is farthest from the line through them, if any."""
    if last - first < 2:
        return
    inner = slice(first + 1, last)
    dx, dy = x[last] - x[first], y[last] - y[first]
    right, up = x[inner] - x[first], y[inner] - y[first]
    length = dx * dx + dy * dy
    along = ((right * dx + up * dy) / length).clip(0, 1) if length > 0 else 0.0
    squares = (right - along * dx) ** 2 + (up - along * dy) ** 2
    farthest = int(squares.argmax())
    if squares[farthest] > _ON_THE_LINE**2:
        heappush(pending, (-float(squares[farthest]), first, first + 1 + farthest, last))


def gains(roc: Curve, share: float) -> Gains:
    """From the points of an ROC curve, for a label that has this share of the rows: exact where that has points."""
    return Gains(share * roc.y + (1 - share) * roc.x, roc.y)


def threshold_table(
    log_probabilities: Array, own: Mask, weights: Array | None = None, also: Sequence[float] = ()
) -> ThresholdTable:
    """From ln P (N,) of one label, whether a row is of it (N,), and weights (None: 1); `also`: more thresholds."""
    thresholds = np.union1d(THRESHOLDS, also)
    weights = np.ones(len(own)) if weights is None else weights
    # the place of a row's last threshold that it reaches
    places = np.searchsorted(thresholds, np.exp(log_probabilities), side="right") - 1
    found, others = (
        np.bincount(places, masses, len(thresholds))[::-1].cumsum()[::-1]
        for masses in (np.where(own, weights, 0.0), np.where(own, 0.0, weights))
    )
    return ThresholdTable(thresholds, found, others, float(found[0]), float(others[0]))
