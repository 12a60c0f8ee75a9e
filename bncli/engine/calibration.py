"""Maps of predicted probabilities to calibrated ones, as a model carries them.

With l_c = ln P(c | x) as the tables say it:

    temperature   P'(c) ~ exp(l_c / T)                       one number; never changes which label is the most probable
    per-class     P'(c) ~ exp(a_c l_c + b_c),  a_c >= 0      scale and shift of each class (vector scaling)
    isotonic      P'(c) ~ g_c(P(c)),  g_c never falls        a line through knots for each class against all others

each divided by its sum over the classes. With two classes per-class is beta calibration (Kull, Silva Filho & Flach
2017), and isotonic has one map, of the second label, the first having what is left. Temperature and vector scaling:
Guo, Pleiss, Sun & Weinberger (2017); isotonic, one class against the others: Zadrozny & Elkan (2002).

Conventions: between knots a map is linear in P, beyond them constant. All values lie in (0, 1), so no log-loss is
infinite. Cost: a few operations a row and class.

Learns a calibration map from predictions, the labels of the same rows, and their weights.

Temperature and per-class maximise the likelihood of the labels; with z = a l + b, the gradient is sum over rows of w_t
(P'(c) - [c = y_t]) (l_c, 1). In 1/T the log-likelihood of the temperature is concave: the root of its slope is
bracketed. Isotonic minimises the weighted squares of [c = y_t] - g_c by pooling adjacent violators.

Conventions: T is at most 100, next to no opinion at all. Where it would be below 1/100, as for rows that are all
predicted right, there is no telling how sharp to be, and it stays 1. Per-class is shrunk towards no change by 1/2 sum
over c of (a_c - 1)^2 + b_c^2, a standard normal prior, which makes its optimum finite and unique. Isotonic adds one row
of the label at the lowest probability and one of the others at the highest, so that a pure end counts 1 / (rows + 1),
as Laplace would have it, and no value is 0 or 1. Cost: a few dozen passes over (K, N) numbers, or a sort a label.

From probabilities that are too bold or too timid to those that the rows of another table bear out.

`maps.py` has the maps and applies them, `fitting.py` learns one from predictions and labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Integers, log_softmax
from bncli.errors import BncliError, UsageError


@dataclass(frozen=True)
class Temperature:
    """T above 1 makes probabilities less extreme."""

    temperature: float

    method: ClassVar[str] = "temperature"

    def apply(self, log_p: Array) -> Array:
        """Return ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        return log_softmax(log_p / self.temperature, axis=0)


@dataclass(frozen=True)
class PerClass:
    """The scale a_c and the shift b_c of each label, (K,)."""

    scales: tuple[float, ...]
    shifts: tuple[float, ...]

    method: ClassVar[str] = "per-class"

    def apply(self, log_p: Array) -> Array:
        """Return ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        return log_softmax(log_p * np.array(self.scales)[:, None] + np.array(self.shifts)[:, None], axis=0)


class Knots(NamedTuple):
    """A line through points: P ascending, values not falling."""

    at: tuple[float, ...]
    values: tuple[float, ...]

    def apply(self, probabilities: Array) -> Array:
        """Return the values there."""
        return np.asarray(np.interp(probabilities, self.at, self.values))


@dataclass(frozen=True)
class Isotonic:
    """The knots of each label; of two labels those of the second alone."""

    knots: tuple[Knots, ...]

    method: ClassVar[str] = "isotonic"

    def apply(self, log_p: Array) -> Array:
        """Return ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        if len(self.knots) == 1:
            second = self.knots[0].apply(np.exp(log_p[1]))
            return np.array([np.log1p(-second), np.log(second)])
        return log_softmax(np.log([one.apply(np.exp(row)) for one, row in zip(self.knots, log_p, strict=True)]), axis=0)


CalibrationMap = Temperature | PerClass | Isotonic
METHODS = (Temperature.method, Isotonic.method, PerClass.method)


class Calibration(NamedTuple):
    """A map, how many rows it was learnt from, and their log-losses before and after, in nats a row.

    frequencies: the weight of each label among these rows, where the map says probabilities under them; empty where
    those of training hold on.
    """

    map: CalibrationMap
    rows: int
    before: float
    after: float
    frequencies: tuple[float, ...] = ()


HOTTEST = 100.0
"""The highest T; below its inverse there is no telling."""
FEWEST = 5
"""Rows of each label that a map of its own takes at least."""
FEW_FOR_ISOTONIC = 200
"""Rows below which isotonic maps follow chance more than the model."""


def fit_calibration(method: str, log_p: Array, labels: Integers, weights: Array | None = None) -> Calibration:
    """Return the map of this method from ln P(c | x_t), (K, N), the labels (N,) and weights (N,) or None for 1.

    Raises BncliError where a map a label is asked for and a label has too few rows.
    """
    own = np.ones(len(labels)) if weights is None else weights
    found = _FITS[method](log_p, labels, own)
    rows = np.arange(len(labels))
    before, after = (-float(np.average(logs[labels, rows], weights=own)) for logs in (log_p, found.apply(log_p)))
    return Calibration(found, len(labels), before, after)


def refuse_few(method: str, names: tuple[str, ...], labels: Integers) -> None:
    """Raise BncliError where a label has fewer than FEWEST rows and the method has a map for each."""
    if method == Temperature.method:
        return
    for name, n in zip(names, np.bincount(labels, minlength=len(names)).tolist(), strict=True):
        if n < FEWEST:
            what = f"{method} calibration has a map for each label, and only {n} row{'s' * (n != 1)} have {name!r}"
            raise BncliError(what, hint=f"it takes {FEWEST} rows of each, or --method temperature")


def refuse_directed(method: str, n_labels: int) -> None:
    """Raise UsageError for maps that may undo the directions of attributes: those of one label among three or more."""
    if method != Temperature.method and n_labels > 2:
        what = f"{method} calibration has a map for each of {n_labels} labels, which keep no direction together"
        raise UsageError(what, hint="temperature keeps them")


def _temperature(log_p: Array, labels: Integers, weights: Array) -> Temperature:
    from scipy.optimize import brentq  # costs more to import than a small fit: only where it is used

    true = float(weights @ log_p[labels, np.arange(len(labels))])

    def slope(log_inverse: float) -> float:
        """Of the negative log-likelihood in 1/T."""
        shares = np.exp(log_softmax(log_p * math.exp(log_inverse), axis=0))
        return float(weights @ (shares * log_p).sum(axis=0)) - true

    widest = math.log(HOTTEST)
    if slope(-widest) >= 0:
        return Temperature(HOTTEST)
    if slope(widest) <= 0:
        return Temperature(1.0)  # the sharper the better: nothing says how sharp
    return Temperature(math.exp(-brentq(slope, -widest, widest, xtol=1e-13, rtol=1e-13)))


def _per_class(log_p: Array, labels: Integers, weights: Array) -> PerClass:
    from scipy.optimize import Bounds, minimize

    n_labels = len(log_p)
    own = (np.arange(n_labels)[:, None] == labels) * weights
    total = float(weights.sum())

    def loss(point: Array) -> tuple[float, Array]:
        scales, shifts = np.split(point, 2)
        logs = log_softmax(log_p * scales[:, None] + shifts[:, None], axis=0)
        misses = np.exp(logs) * weights - own
        change = point - start
        slopes = np.concatenate(((misses * log_p).sum(axis=1), misses.sum(axis=1)))
        return (change @ change / 2 - float((own * logs).sum())) / total, (slopes + change) / total

    start = np.repeat([1.0, 0.0], n_labels)
    bounds = Bounds(np.repeat([0.0, -np.inf], n_labels), np.full(2 * n_labels, np.inf))
    settings: Any = {"maxiter": 2000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 20}
    scales, shifts = np.split(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=settings).x, 2)
    return PerClass(tuple(scales.tolist()), tuple(shifts.tolist()))


def _isotonic(log_p: Array, labels: Integers, weights: Array) -> Isotonic:
    mapped = range(len(log_p)) if len(log_p) > 2 else (1,)
    return Isotonic(tuple(_knots(np.exp(log_p[c]), labels == c, weights) for c in mapped))


def _knots(probabilities: Array, own: Array, weights: Array) -> Knots:
    """Return the isotonic regression of `own` on the probabilities, equal ones together, as its corners."""
    from scipy.optimize import isotonic_regression

    at, place = np.unique(probabilities, return_inverse=True)
    masses, hits = np.bincount(place, weights, len(at)), np.bincount(place, weights * own, len(at))
    masses[0] += 1
    hits[0] += 1  # one of the label at the lowest probability
    masses[-1] += 1  # and one of the others at the highest
    values = isotonic_regression(hits / masses, weights=masses).x
    level = np.diff(values) == 0
    corner = ~(np.append(False, level) & np.append(level, False))
    return Knots(tuple(at[corner].tolist()), tuple(values[corner].tolist()))


_FITS: dict[str, Callable[[Array, Integers, Array], CalibrationMap]] = {
    Temperature.method: _temperature,
    PerClass.method: _per_class,
    Isotonic.method: _isotonic,
}
