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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.logspace import log_softmax


@dataclass(frozen=True)
class Temperature:
    """T above 1 makes probabilities less extreme."""

    temperature: float

    method: ClassVar[str] = "temperature"

    def apply(self, log_p: Array) -> Array:
        """ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        return log_softmax(log_p / self.temperature, axis=0)


@dataclass(frozen=True)
class PerClass:
    """The scale a_c and the shift b_c of each label, (K,)."""

    scales: tuple[float, ...]
    shifts: tuple[float, ...]

    method: ClassVar[str] = "per-class"

    def apply(self, log_p: Array) -> Array:
        """ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
        return log_softmax(log_p * np.array(self.scales)[:, None] + np.array(self.shifts)[:, None], axis=0)


class Knots(NamedTuple):
    """A line through points: P ascending, values not falling."""

    at: tuple[float, ...]
    values: tuple[float, ...]

    def apply(self, probabilities: Array) -> Array:
        """The values there."""
        return np.asarray(np.interp(probabilities, self.at, self.values))


@dataclass(frozen=True)
class Isotonic:
    """The knots of each label; of two labels those of the second alone."""

    knots: tuple[Knots, ...]

    method: ClassVar[str] = "isotonic"

    def apply(self, log_p: Array) -> Array:
        """ln P'(c | x_t) from ln P(c | x_t), shape (K, N)."""
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
