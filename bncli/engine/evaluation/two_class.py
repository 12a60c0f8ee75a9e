"""Metrics for two classes, the second being the event: weight of evidence, ranking, calibration, net benefit.

Let bin b of an attribute have events of weight e_b and non-events of weight n_b, and let E and N be their sums over
all bins:

    weight of evidence  woe_b = ln[ (e_b / E) / (n_b / N) ]
    information value   iv_b = (e_b / E - n_b / N) woe_b,   IV = sum over b of iv_b      (Siddiqi 2006, chapter 6)

woe_b is undefined if e_b or n_b is 0, and IV is the sum over the other bins.

Predicted probabilities p_t of the event:

    KS = max over u of |TPR(u) - FPR(u)|, where the event is predicted if p_t >= u     Kolmogorov-Smirnov distance
    gains: the fraction of all events that are among the rows with the highest probabilities; tied rows, and rows
        that belong to two groups, are divided proportionally
    calibration: the logistic regression of the event on ln[p_t / (1 - p_t)]; its intercept is 0 and its slope 1 if the
        probabilities are calibrated (Cox 1958). Calibration in the large is the intercept with the slope fixed at 1.
        The 95 % Wald intervals are estimate -+ 1.96 standard errors from the inverse Hessian, for independent rows
    net benefit at threshold u = TP(u) / n - FP(u) / n * u / (1 - u)     (Vickers & Elkin 2006), where n is the weight
        of all rows; its 95 % interval is -+ 1.96 standard errors of this mean over rows

Rows of weight 0 are ignored. Cost: one sort of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from bncli.engine.evaluation.intervals import Interval, Z
from bncli.engine.kernels.arrays import Array, Integers

GROUPS = 10
"""The number of groups of equal weight in a gains table."""
NET_BENEFIT_THRESHOLDS = np.arange(1, 100) / 100
_MOST_STEPS = 100
_TOLERANCE = 1e-12
_FARTHEST = 50.0
_HALVINGS = 70


class BinEvidence(NamedTuple):
    """A bin: the weight of its rows, the weight of its events, its event rate, weight of evidence, information value.

    The last three are None if undefined.
    """

    rows: float
    events: float
    event_rate: float | None
    woe: float | None
    iv: float | None


def measure_bins(counts: Array | Integers) -> tuple[float, list[BinEvidence]]:
    """Return the information value of an attribute, and the weight of evidence of each of its bins.

    counts: the weights of non-events and events in each of B bins, (B, 2); integers if the rows have no weights.

    >>> iv, (low, high) = measure_bins(np.array([[30, 10], [10, 30]]))
    >>> round(iv, 4), low.rows, low.events, round(low.woe, 4)
    (1.0986, 40, 10, -1.0986)
    """
    totals = counts.sum(axis=0)
    bins = []
    for others, events in counts.tolist():
        rows = others + events
        woe = iv = None
        if others > 0 and events > 0:
            shares = (events / totals[1], others / totals[0])
            woe = float(np.log(shares[0] / shares[1]))
            iv = float((shares[0] - shares[1]) * woe)
        bins.append(BinEvidence(rows, events, events / rows if rows > 0 else None, woe, iv))
    return sum(entry.iv or 0.0 for entry in bins), bins


class GainsLine(NamedTuple):
    """A line of a gains table: one group of rows; cumulative values include all groups up to this one.

    - share: cumulative fraction of the rows; captured: cumulative fraction of the events
    - rows, events, event_rate, lowest_p: weight of rows and events, event rate and lowest probability of this group
    - lift: captured / share; ks: captured minus the cumulative fraction of the non-events
    """

    share: float
    rows: float
    events: float
    event_rate: float
    lowest_p: float
    captured: float
    lift: float
    ks: float


class NetBenefit(NamedTuple):
    """The net benefit per row of deciding by the model, of always predicting the event, and of never predicting it.

    ci: the 95 % interval of `model`.
    """

    threshold: float
    model: float
    all: float
    none: float
    ci: Interval


class TwoClassFigures(NamedTuple):
    """The metrics of all rows together; undefined metrics are None, undefined tables are empty.

    - capture_10: the fraction of the events among the 10 % of rows with the highest probabilities
    - intervals: the 95 % intervals of the three calibration metrics, keyed by name
    """

    ks: float | None = None
    capture_10: float | None = None
    calibration_slope: float | None = None
    calibration_intercept: float | None = None
    calibration_in_the_large: float | None = None
    intervals: Mapping[str, Interval | None] = MappingProxyType({})
    gains: tuple[GainsLine, ...] = ()
    net_benefit: tuple[NetBenefit, ...] = ()


def measure_two_classes(log_probabilities: Array, labels: Integers, weights: Array | None = None) -> TwoClassFigures:
    """Compute the metrics of predictions ln P(c | x_t), (2, N), for labels (N,) and weights (N,) (all 1 if None)."""
    weights = np.ones(len(labels)) if weights is None else weights
    is_counted = weights > 0
    if not is_counted.all():
        log_probabilities, labels, weights = log_probabilities[:, is_counted], labels[is_counted], weights[is_counted]
    events = np.where(labels == 1, weights, 0.0)
    if not len(labels):
        return TwoClassFigures()
    net = _net_benefit(np.exp(log_probabilities[1]), events, weights)
    if not 0 < events.sum() < weights.sum():
        return TwoClassFigures(net_benefit=net)
    # Log-odds distinguish probabilities that are rounded to 1.
    log_odds = log_probabilities[1] - log_probabilities[0]
    order = np.argsort(-log_odds)
    ends = np.append(np.flatnonzero(np.diff(log_odds[order])), len(order) - 1)
    sums = np.cumsum([weights[order], events[order]], axis=1)[:, ends]
    all_rows, all_events = np.concatenate((np.zeros((2, 1)), sums), axis=1)
    others = all_rows - all_events
    ks = float(np.abs(all_events / all_events[-1] - others / others[-1]).max())
    probabilities = np.exp(log_probabilities[1][order][ends])
    gains = _gains(all_rows, all_events, probabilities)
    estimates = (*_calibration_line(log_odds, events, weights), _calibration_in_the_large(log_odds, events, weights))
    intercept, slope, large = (None if estimate is None else estimate[0] for estimate in estimates)
    names = ("calibration_intercept", "calibration_slope", "calibration_in_the_large")
    intervals = {}
    for name, estimate in zip(names, estimates, strict=True):
        intervals[name] = None if estimate is None else (estimate[0] - Z * estimate[1], estimate[0] + Z * estimate[1])
    return TwoClassFigures(ks, gains[0].captured, slope, intercept, large, intervals, gains, net)


def _gains(rows: Array, events: Array, probabilities: Array) -> tuple[GainsLine, ...]:
    """Return the lines of a gains table.

    rows, events: cumulative weights (n + 1,), starting with 0, at the n distinct `probabilities`, in decreasing order.
    """
    lines = []
    before = 0.0
    total_rows, total_events = float(rows[-1]), float(events[-1])
    for k in range(1, GROUPS + 1):
        share = k / GROUPS
        until = float(np.interp(share * total_rows, rows, events))
        captured = until / total_events
        size = total_rows / GROUPS
        last = min(int(np.searchsorted(rows[1:], share * total_rows * (1 - 1e-12))), len(probabilities) - 1)
        ks = captured - (share * total_rows - until) / (total_rows - total_events)
        found = until - before
        rate = found / size
        lines.append(GainsLine(share, size, found, rate, float(probabilities[last]), captured, captured / share, ks))
        before = until
    return tuple(lines)


_Estimate = tuple[float, float] | None
"""An estimate and its standard error, or None if it does not exist."""


def _calibration_line(log_odds: Array, events: Array, weights: Array) -> tuple[_Estimate, _Estimate]:
    """Fit the logistic regression of the event on the log-odds; return the estimates of intercept and slope.

    Both are None if a log-odds is infinite, or if the log-odds of events and non-events do not overlap, because then
    there is no finite optimum (Albert & Anderson 1984).
    """
    own, other = log_odds[events > 0], log_odds[events == 0]
    if not np.isfinite(log_odds).all() or own.min() >= other.max() or other.min() >= own.max():
        return None, None
    centre = float(np.average(log_odds, weights=weights))
    scale = float(np.sqrt(np.average(np.square(log_odds - centre), weights=weights)))
    design = np.stack((np.ones(len(log_odds)), (log_odds - centre) / scale))
    signs = np.where(events > 0, 1.0, -1.0)
    point = np.array([0.0, 0.0])
    loss = float(-(weights @ -np.logaddexp(0.0, -signs * (point @ design))))
    for _ in range(_MOST_STEPS):
        fitted = np.exp(-np.logaddexp(0.0, -(point @ design)))
        gradient = design @ (weights * fitted - events)
        hessian = (design * (weights * fitted * (1 - fitted))) @ design.T
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        size = 1.0
        while size > _TOLERANCE:
            trial = point - size * step
            trial_loss = float(-(weights @ -np.logaddexp(0.0, -signs * (trial @ design))))
            if trial_loss <= loss:
                break
            size /= 2
        else:
            break
        point, loss = trial, trial_loss
        if np.abs(size * step).max() <= _TOLERANCE * (1 + np.abs(point).max()):
            break
    slope = float(point[1]) / scale
    fitted = np.exp(-np.logaddexp(0.0, -(point @ design)))
    covariance = np.linalg.inv((design * (weights * fitted * (1 - fitted))) @ design.T)
    shift = np.array([1.0, -centre / scale])
    errors = (float(np.sqrt(shift @ covariance @ shift)), float(np.sqrt(covariance[1, 1])) / scale)
    return (float(point[0]) - slope * centre, errors[0]), (slope, errors[1])


def _calibration_in_the_large(log_odds: Array, events: Array, weights: Array) -> _Estimate:
    """Return the shift of all log-odds that makes the expected weight of events the actual one, and its standard error.

    It is found by bisection. Returns None if a log-odds is infinite or the standard error is undefined.
    """
    if not np.isfinite(log_odds).all():
        return None
    wanted = float(events.sum())
    low, high = (float(end) for end in (-log_odds.max() - _FARTHEST, -log_odds.min() + _FARTHEST))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fitted = np.exp(-np.logaddexp(0.0, -(log_odds + middle)))
        low, high = (low, middle) if float(weights @ fitted) > wanted else (middle, high)
    information = float(weights @ (fitted * (1 - fitted)))
    return (middle, 1 / float(np.sqrt(information))) if information > 0 else None


def _net_benefit(probabilities: Array, events: Array, weights: Array) -> tuple[NetBenefit, ...]:
    """Return the net benefit at NET_BENEFIT_THRESHOLDS.

    Arrays are (N,): probabilities of the event; weights of the rows; events: the same weights, 0 for other rows.
    """
    total, all_events = float(weights.sum()), float(events.sum())
    bins = np.searchsorted(NET_BENEFIT_THRESHOLDS, probabilities, side="right")
    size = len(NET_BENEFIT_THRESHOLDS) + 1
    selected, found = (np.bincount(bins, part, size)[::-1].cumsum()[::-1][1:] for part in (weights, events))
    odds = NET_BENEFIT_THRESHOLDS / (1 - NET_BENEFIT_THRESHOLDS)
    model = (found - (selected - found) * odds) / total
    always = (all_events - (total - all_events) * odds) / total
    # each row contributes 1, -odds or 0, so the same counts give the mean of squares
    squares = (found + (selected - found) * np.square(odds)) / total
    half = Z * np.sqrt(np.maximum(squares - np.square(model), 0.0) / total)
    columns: Sequence[list[float]] = [column.tolist() for column in (NET_BENEFIT_THRESHOLDS, model, always, half)]
    return tuple(
        NetBenefit(t, own + 0.0, every + 0.0, 0.0, (own - width, own + width))
        for t, own, every, width in zip(*columns, strict=True)
    )
