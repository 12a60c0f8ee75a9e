"""Calibration: making predicted probabilities match observed frequencies.

A calibration map changes the probabilities of a model after it was fitted. With l_c = ln P(c | x) of the model:

    temperature   P'(c) ~ exp(l_c / T)                       one parameter; the most probable label stays the same
    per-class     P'(c) ~ exp(a_c l_c + b_c),  a_c >= 0      scale and shift per class (vector scaling)
    isotonic      P'(c) ~ g_c(P(c)),  g_c non-decreasing     piecewise linear, each class against all others

each divided by its sum over the classes. With two classes, per-class is beta calibration (Kull, Silva Filho & Flach
2017), and isotonic has one map, for the second label; the first label gets the remainder. Temperature and vector
scaling: Guo, Pleiss, Sun & Weinberger (2017). Isotonic, one class against the others: Zadrozny & Elkan (2002).

`fit_calibration` learns a map from predictions, the true labels and row weights. Temperature and per-class maximise the
likelihood of the labels. For per-class, the gradient of the negative log-likelihood with respect to (a_c, b_c) is the
sum over rows t of w_t (P'(c) - [c = y_t]) (l_c, 1). For the temperature, the log-likelihood is concave in 1/T, and its
maximum is found by bracketing the root of its slope. Isotonic minimises the weighted squares of [c = y_t] - g_c by
pooling adjacent violators.

Conventions:

- Isotonic maps are linear in P between knots and constant outside. All values lie in (0, 1), so that no log-loss is
  infinite.
- T is at most MOST_TEMPERATURE, which makes predictions nearly uniform. If the optimum is below 1 / MOST_TEMPERATURE,
  as for rows that are all predicted correctly, the data do not determine T, and it stays 1.
- Per-class is shrunk towards no change by 1/2 sum over c of (a_c - 1)^2 + b_c^2, a standard normal prior, which makes
  its optimum finite and unique.
- Isotonic adds one row of the label at the lowest probability and one of the other labels at the highest, so that no
  value is 0 or 1: without rows of the label at the low end, the value there is 1 / (rows + 1).

Cost: applying a map takes a few operations per row and class; fitting takes dozens of passes over (K, N) arrays, or a
sort per label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers, log_softmax
from bncli.errors import BncliError, UsageError

MOST_TEMPERATURE = 100.0
FEWEST_ROWS = 5
"""The minimum number of rows (or groups of rows) of each label for a method with one map per label."""
FEW_FOR_ISOTONIC = 200
"""With fewer rows, isotonic maps tend to overfit."""


@dataclass(frozen=True)
class Temperature:
    """The map of temperature scaling; a temperature above 1 makes probabilities less extreme."""

    temperature: float

    method: ClassVar[str] = "temperature"

    def apply(self, log_p: Array) -> Array:
        """Return ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        return log_softmax(log_p / self.temperature, axis=0)


@dataclass(frozen=True)
class PerClass:
    """The map of vector scaling: the scale a_c and the shift b_c per label, (K,)."""

    scales: tuple[float, ...]
    shifts: tuple[float, ...]

    method: ClassVar[str] = "per-class"

    def apply(self, log_p: Array) -> Array:
        """Return ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        return log_softmax(log_p * np.array(self.scales)[:, None] + np.array(self.shifts)[:, None], axis=0)


class Knots(NamedTuple):
    """A non-decreasing piecewise linear function of P: the knots, ascending, and the value at each."""

    at: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Isotonic:
    """The map of isotonic regression: one piecewise linear function per label; for two labels, only the second's."""

    knots: tuple[Knots, ...]

    method: ClassVar[str] = "isotonic"

    def apply(self, log_p: Array) -> Array:
        """Return ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        if len(self.knots) == 1:
            second = np.interp(np.exp(log_p[1]), *self.knots[0])
            return np.array([np.log1p(-second), np.log(second)])
        mapped = [np.interp(np.exp(row), *knots) for knots, row in zip(self.knots, log_p, strict=True)]
        return log_softmax(np.log(mapped), axis=0)


CalibrationMap = Temperature | PerClass | Isotonic
METHODS = (Temperature.method, Isotonic.method, PerClass.method)


class Calibration(NamedTuple):
    """A calibration map, the number of rows it was fitted to, and their log-loss before and after, in nats per row.

    frequencies: the weight of each label in the rows to which the map was fitted, if these weights replace the class
    frequencies of training; otherwise empty.
    """

    map: CalibrationMap
    rows: int
    before: float
    after: float
    frequencies: tuple[float, ...] = ()


def fit_calibration(method: str, log_p: Array, labels: Integers, weights: Array | None = None) -> Calibration:
    """Fit a map by one of METHODS to predictions ln P(c | x_t), (K, N), of labels (N,) with weights (N,) or None."""
    row_weights = np.ones(len(labels)) if weights is None else weights
    fitted: CalibrationMap
    if method == Temperature.method:
        fitted = _fit_temperature(log_p, labels, row_weights)
    elif method == PerClass.method:
        fitted = _fit_per_class(log_p, labels, row_weights)
    else:
        mapped_labels = range(len(log_p)) if len(log_p) > 2 else (1,)
        fitted = Isotonic(tuple(_fit_knots(np.exp(log_p[c]), labels == c, row_weights) for c in mapped_labels))
    rows = np.arange(len(labels))
    before, after = (
        -float(np.average(logs[labels, rows], weights=row_weights)) for logs in (log_p, fitted.apply(log_p))
    )
    return Calibration(fitted, len(labels), before, after)


def held_out_loss(
    method: str, log_p: Array, labels: Integers, weights: Array | None, splits: Sequence[tuple[Index, Index]]
) -> float:
    """Cross-validate a calibration method: return the log-loss of held-out rows after calibration, in nats per row.

    log_p: ln P(c | x_t) of the model, (K, N). splits: for each split, the rows that the map is fitted to and the rows
    held out. The result is the weighted mean over all held-out rows.
    """
    row_weights = np.ones(len(labels)) if weights is None else weights
    loss = total = 0.0
    for others, rows in splits:
        mapped = fit_calibration(method, log_p[:, others], labels[others], row_weights[others]).map
        loss -= float(row_weights[rows] @ mapped.apply(log_p[:, rows])[labels[rows], np.arange(len(rows))])
        total += float(row_weights[rows].sum())
    return loss / total


def _fit_temperature(log_p: Array, labels: Integers, weights: Array) -> Temperature:
    from scipy.optimize import brentq  # takes longer to import than a small fit

    of_true_labels = float(weights @ log_p[labels, np.arange(len(labels))])

    def slope(log_inverse: float) -> float:
        """Return the derivative of the negative log-likelihood with respect to 1/T, given ln(1/T)."""
        p = np.exp(log_softmax(log_p * math.exp(log_inverse), axis=0))
        return float(weights @ (p * log_p).sum(axis=0)) - of_true_labels

    limit = math.log(MOST_TEMPERATURE)
    if slope(-limit) >= 0:
        return Temperature(MOST_TEMPERATURE)
    if slope(limit) <= 0:
        return Temperature(1.0)  # the likelihood grows without end as T falls to 0
    return Temperature(math.exp(-brentq(slope, -limit, limit, xtol=1e-13, rtol=1e-13)))


def _fit_per_class(log_p: Array, labels: Integers, weights: Array) -> PerClass:
    from scipy.optimize import Bounds, minimize  # takes longer to import than a small fit

    n_labels = len(log_p)
    of_true_labels = (np.arange(n_labels)[:, None] == labels) * weights
    total = float(weights.sum())

    def loss(point: Array) -> tuple[float, Array]:
        scales, shifts = np.split(point, 2)
        logs = log_softmax(log_p * scales[:, None] + shifts[:, None], axis=0)
        residuals = np.exp(logs) * weights - of_true_labels
        change = point - start
        slopes = np.concatenate(((residuals * log_p).sum(axis=1), residuals.sum(axis=1)))
        return (change @ change / 2 - float((of_true_labels * logs).sum())) / total, (slopes + change) / total

    start = np.repeat([1.0, 0.0], n_labels)
    bounds = Bounds(np.repeat([0.0, -np.inf], n_labels), np.full(2 * n_labels, np.inf))
    settings: Any = {"maxiter": 2000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 20}
    scales, shifts = np.split(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=settings).x, 2)
    return PerClass(tuple(scales.tolist()), tuple(shifts.tolist()))


def _fit_knots(probabilities: Array, has_label: Array, weights: Array) -> Knots:
    """Fit isotonic regression of `has_label` (N,) on the probabilities (N,), and return its corners as knots.

    One row of the label and one row of another label are added, as described in the module docstring.
    """
    from scipy.optimize import isotonic_regression  # takes longer to import than a small fit

    at, place = np.unique(probabilities, return_inverse=True)
    masses, hits = np.bincount(place, weights, len(at)), np.bincount(place, weights * has_label, len(at))
    # one more row of the label at the lowest probability, and one of the others at the highest
    masses[0] += 1
    hits[0] += 1
    masses[-1] += 1
    values = isotonic_regression(hits / masses, weights=masses).x
    is_level = np.diff(values) == 0
    is_corner = ~(np.append(False, is_level) & np.append(is_level, False))
    return Knots(tuple(at[is_corner].tolist()), tuple(values[is_corner].tolist()))


def refuse_few(method: str, names: tuple[str, ...], labels: Integers, units: Integers | None = None) -> None:
    """Raise BncliError if the method has a map per label and a label has fewer than FEWEST_ROWS rows.

    If `units` (N,) is given, the units that contain rows of a label are counted instead of its rows.
    """
    if method == Temperature.method:
        return
    counted, noun = labels, "row"
    if units is not None:
        counted, noun = np.unique(np.stack((units, labels)), axis=1)[1], "group"
    for name, n in zip(names, np.bincount(counted, minlength=len(names)).tolist(), strict=True):
        if n < FEWEST_ROWS:
            few = f"only {n} {noun}{'s' * (n != 1)} have the label {name!r}"
            what = f"{method} calibration fits a map for each label, but {few}"
            raise BncliError(
                what, hint=f"give at least {FEWEST_ROWS} {noun}s of each label, or use --method temperature"
            )


def refuse_directed(method: str, n_labels: int) -> None:
    """Raise UsageError if the map may violate monotonicity constraints: a map per label with three or more labels."""
    if method != Temperature.method and n_labels > 2:
        what = f"{method} calibration fits a map for each of {n_labels} labels, which may violate monotone directions"
        raise UsageError(what, hint="use --method temperature, which keeps them")
