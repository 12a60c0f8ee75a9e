"""ROC, precision-recall, gains and reliability curves of each label against all others, and calibration metrics.

Let s_t = P(c | x_t). Among the rows with s_t >= u, T(u) is the weight of those with label c, F(u) the weight of the
others:

    ROC:               true positive rate T(u) / T(0) over the false positive rate F(u) / F(0)
    precision-recall:  precision T(u) / (T(u) + F(u)) over recall T(u) / T(0)
    gains:             recall T(u) / T(0) over the fraction of rows selected, (T(u) + F(u)) / (T(0) + F(0))
    reliability:       in bins of equal weight, the relative frequency of label c over the mean of s_t

A curve has one threshold u per distinct probability, from the highest down, after a first point without threshold for
"no row selected": (0, 0), or (0, 1) for precision-recall. auc is the area under the ROC curve (by trapezoids, so that
ties count half), and average_precision = sum over u of (recall(u) - recall(before u)) precision(u). Both are computed
from all points of the curve.

Calibration: bin b has the weight N_b, the mean probability p_b and the relative frequency o_b of label c; the relative
frequency of c among all rows is o. The Brier score has these parts (Murphy 1973), summed over the labels:

    reliability = sum over b of N_b / N (p_b - o_b)^2      0 if the probabilities are calibrated
    resolution  = sum over b of N_b / N (o_b - o)^2        the higher the better
    uncertainty = o (1 - o)                                the Brier score of the class frequencies
    within_bins = brier - (reliability - resolution + uncertainty)

The last part is due to probabilities that differ within a bin (Stephenson, Coelho & Jolliffe 2008).
ece_equal_mass = sum over b of N_b / N |accuracy - mean confidence| over bins of the highest probability of each row.

Conventions:
- Long curves are thinned with the algorithm of Douglas & Peucker (1973), which adds the point farthest from the line
  drawn so far. A curve of more than GRID points is first reduced to one of successive points in the same cell of a
  GRID x GRID raster.
- There are at most BINS bins, closed on the right at quantiles (the smallest value with enough weight at or below it).
  Equal probabilities share a bin, so there are fewer bins if many are equal.
- Rows of weight 0 are ignored.

Cost: a sort of N rows per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from bncli.engine.evaluation.groups import labels_with_rates
from bncli.engine.evaluation.intervals import wilson_interval
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask

BINS = 10
POINTS = 100
"""The maximum number of points per curve."""
ALL_POINTS = 2000
"""The maximum number of points of one kind of curve for all labels together, but each curve may have FEWEST."""
FEWEST = 20
GRID = 1000
_ON_THE_LINE = 1e-12
THRESHOLDS = np.unique(np.concatenate((np.arange(101) / 100, [0.001, 0.002, 0.005, 0.995, 0.998, 0.999])))


@dataclass(frozen=True)
class Curve:
    """Points (x, y) from the highest threshold down, and the area under the unthinned curve.

    The first threshold is NaN. For precision-recall the area is the average precision.
    """

    thresholds: Array
    x: Array
    y: Array
    area: float


class Reliability(NamedTuple):
    """The mean probability, relative frequency of the label, and weight of each bin, in order of probability."""

    predicted: Array
    observed: Array
    support: Array


@dataclass(frozen=True)
class LabelCurves:
    """The curves of one label. The first two are None if no row has the label; roc is also None if all rows have it."""

    roc: Curve | None
    precision_recall: Curve | None
    reliability: Reliability


class ThresholdTable(NamedTuple):
    """The weights of the rows whose probability is at or above each threshold, with and without the label.

    `found` has the weights of the rows with the label, `false_alarms` the weights of the other rows, and `positives`
    and `negatives` are the weights of all rows with and without the label.
    """

    thresholds: Array
    found: Array
    false_alarms: Array
    positives: float
    negatives: float


class Bin(NamedTuple):
    """The rows whose probability of `label` lies from `low` to `high`.

    rows is their weight, mean_p their mean probability, and frequency the relative frequency of the label, with its
    95 % interval from low95 to high95.
    """

    label: str
    low: float
    high: float
    rows: float
    mean_p: float
    frequency: float
    low95: float
    high95: float


class BrierParts(NamedTuple):
    """The decomposition of the Brier score into reliability - resolution + uncertainty + within_bins."""

    reliability: float
    resolution: float
    uncertainty: float
    within_bins: float


@dataclass(frozen=True)
class CalibrationFigures:
    """The bins of each reported label (the second of two, otherwise all), and the calibration metrics of all labels."""

    bins: tuple[Bin, ...]
    brier_parts: BrierParts
    ece_equal_mass: float


def label_curves(log_probabilities: Array, labels: Integers, weights: Array | None = None) -> list[LabelCurves]:
    """Return the curves of every label, from ln P(c | x_t) (K, N), labels (N,) and weights (N,) (all 1 if None)."""
    weights = np.ones(len(labels)) if weights is None else weights
    has_weight = weights > 0
    if not has_weight.all():
        log_probabilities, labels = log_probabilities[:, has_weight], labels[has_weight]
        weights = weights[has_weight]
    most = max(FEWEST, min(POINTS, ALL_POINTS // len(log_probabilities)))
    curves = []
    for c, row in enumerate(log_probabilities):
        # equal scores are summed together below, so their order does not matter
        order = np.argsort(row)[::-1]
        scores, own_weights, all_weights = row[order], np.where(labels == c, weights, 0.0)[order], weights[order]
        ends = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
        thresholds = np.concatenate(([np.nan], np.exp(scores[ends])))
        true = np.concatenate(([0.0], np.cumsum(own_weights)[ends]))
        false = np.concatenate(([0.0], np.cumsum(all_weights - own_weights)[ends]))
        roc = precision_recall = None
        if true[-1] > 0:
            recall, precision = true / true[-1], np.concatenate(([1.0], true[1:] / (true[1:] + false[1:])))
            area = float(np.diff(recall) @ precision[1:])
            precision_recall = _thinned_curve(thresholds, recall, precision, area, most)
            if false[-1] > 0:
                rate = false / false[-1]
                roc = _thinned_curve(thresholds, rate, recall, float(np.trapezoid(recall, rate)), most)
        _, *bins = _equal_mass_bins(np.exp(scores[::-1]), own_weights[::-1], all_weights[::-1])
        curves.append(LabelCurves(roc, precision_recall, Reliability(*bins)))
    return curves


def _thinned_curve(thresholds: Array, x: Array, y: Array, area: float, most: int) -> Curve:
    points = thin(x, y, most)
    return Curve(thresholds[points], x[points], y[points], area)


def thin(x: Array, y: Array, most: int) -> Index:
    """Return the ascending positions of at most `most` points that preserve the shape of a line in the unit square.

    Both ends are included. Points that lie on the line drawn through the others are left out even if there is room.
    """
    candidates = np.arange(len(x))
    if len(x) > GRID:
        # among successive points in one cell of the raster keep the first; also keep the last point of all
        cells = np.floor(x * GRID) * (GRID + 1) + np.floor(y * GRID)
        is_new = np.concatenate(([True], np.diff(cells) != 0))
        is_new[-1] = True
        candidates = np.flatnonzero(is_new)
    x, y = x[candidates], y[candidates]
    chosen = [0, len(x) - 1]
    pending: list[tuple[float, int, int, int]] = []
    _push_farthest(pending, x, y, 0, len(x) - 1)
    while pending and len(chosen) < most:
        _, first, middle, last = heappop(pending)
        chosen.append(middle)
        _push_farthest(pending, x, y, first, middle)
        _push_farthest(pending, x, y, middle, last)
    return candidates[np.unique(chosen)]


def _push_farthest(pending: list[tuple[float, int, int, int]], x: Array, y: Array, first: int, last: int) -> None:
    """Push the inner point that is farthest from the segment between `first` and `last`, unless all lie on it."""
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


def _equal_mass_bins(ascending: Array, own_weights: Array, weights: Array) -> tuple[Index, Array, Array, Array]:
    """Divide ascending probabilities into bins; return their first positions, mean probabilities, frequencies, weights.

    own_weights are the weights, with 0 for rows without the label; the frequencies are the label's, per bin.
    """
    cumulative = np.cumsum(weights)
    edges = ascending[np.searchsorted(cumulative, cumulative[-1] * np.arange(1, BINS) / BINS)]
    stops = np.searchsorted(ascending, edges, side="right")
    starts = np.unique(np.concatenate(([0], stops[stops < len(ascending)])))
    masses, own, sums = (np.add.reduceat(each, starts) for each in (weights, own_weights, weights * ascending))
    return starts, sums / masses, own / masses, masses


def gains(roc: Curve, share: float) -> tuple[Array, Array]:
    """Return the fraction of rows selected, and the recall, at the points of an ROC curve.

    `share` is the fraction of all rows that have the label.
    """
    return share * roc.y + (1 - share) * roc.x, roc.y


def threshold_table(
    log_probabilities: Array, own: Mask, weights: Array | None = None, also: Sequence[float] = ()
) -> ThresholdTable:
    """Return the table at THRESHOLDS and at the thresholds in `also`, all in ascending order.

    log_probabilities: ln P of one label, (N,). own: whether each row has the label, (N,). weights: (N,), or None if all
    are 1.
    """
    thresholds = np.union1d(THRESHOLDS, also)
    weights = np.ones(len(own)) if weights is None else weights
    # the position of the highest threshold that a row reaches
    positions = np.searchsorted(thresholds, np.exp(log_probabilities), side="right") - 1
    found, false_alarms = (
        np.bincount(positions, part, len(thresholds))[::-1].cumsum()[::-1]
        for part in (np.where(own, weights, 0.0), np.where(own, 0.0, weights))
    )
    return ThresholdTable(thresholds, found, false_alarms, float(found[0]), float(false_alarms[0]))


def measure_calibration(
    labels: tuple[str, ...], log_p: Array, true: Integers, weights: Array | None = None
) -> CalibrationFigures:
    """Compute calibration metrics of ln P(c | x_t), (K, N), for labels (N,) and weights (N,) (all 1 if None)."""
    weights = np.ones(len(true)) if weights is None else weights
    probabilities = np.exp(log_p)
    squares = np.square(probabilities - (np.arange(len(log_p))[:, None] == true)).sum(axis=0)
    brier = float(np.average(squares, weights=weights))
    parts = np.zeros(3)
    bins: list[Bin] = []
    for c, row in enumerate(probabilities):
        lows, highs, means, frequencies, masses = _calibration_bins(row, true == c, weights)
        shares = masses / masses.sum()
        base = float(shares @ frequencies)
        gaps = (np.square(means - frequencies), np.square(frequencies - base))
        parts += [*(float(shares @ gap) for gap in gaps), base * (1 - base)]
        if c in labels_with_rates(labels):
            columns = (column.tolist() for column in (lows, highs, masses, means, frequencies))
            bins += [
                Bin(labels[c], low, high, mass, mean, frequency, *wilson_interval(min(frequency, 1.0), mass))
                for low, high, mass, mean, frequency in zip(*columns, strict=True)
            ]
    reliability, resolution, uncertainty = parts.tolist()
    within_bins = brier - (reliability - resolution + uncertainty)
    is_correct = probabilities.argmax(axis=0) == true
    *_, confidences, accuracies, masses = _calibration_bins(probabilities.max(axis=0), is_correct, weights)
    ece = float(masses @ np.abs(confidences - accuracies) / masses.sum())
    return CalibrationFigures(tuple(bins), BrierParts(reliability, resolution, uncertainty, within_bins), ece)


def _calibration_bins(probabilities: Array, hits: Mask, weights: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return the lowest, highest and mean probability, the proportion of hits, and the weight of each bin."""
    order = np.argsort(probabilities, kind="stable")
    ascending, weights = probabilities[order], weights[order]
    starts, means, shares, masses = _equal_mass_bins(ascending, np.where(hits[order], weights, 0.0), weights)
    return ascending[starts], ascending[np.append(starts[1:], len(ascending)) - 1], means, shares, masses
