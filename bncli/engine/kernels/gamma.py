"""The logarithm of the gamma function and its first two derivatives, for positive numbers.

An argument is raised by SHIFT through the recurrence G(x + 1) = x G(x) and its derivatives; the asymptotic series in
1 / z is then exact to rounding (Abramowitz & Stegun 1964, 6.1.40, 6.3.18, 6.4.12):

    ln G(z)  ~ (z - 1/2) ln z - z + ln(2 pi) / 2 + 1 / 12z - 1 / 360z^3 + ...
    psi(z)   ~ ln z - 1 / 2z - 1 / 12z^2 + 1 / 120z^4 - ...
    psi'(z)  ~ 1 / z + 1 / 2z^2 + 1 / 6z^3 - 1 / 30z^5 + ...

Decided here: our own, since loading the library that has them takes longer than most structures to learn. Cost: some
40 operations an element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array

SHIFT = 10
LARGE = 1e20
"""Beyond it the argument of `log_gamma` is not raised: the series needs no help, and the product would overflow."""
_LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def log_gamma(x: ArrayLike) -> Array:
    """ln G(x), elementwise, 0 < x < 1e300."""
    x = np.asarray(x, np.float64)
    low = np.minimum(x, LARGE)
    pair = low * (low + 9)
    raised = pair * (pair + 8) * (pair + 14) * (pair + 18) * (pair + 20)  # x (x + 1) ... (x + 9), the ends together
    z = np.where(x > LARGE, x, x + SHIFT)
    stirling = (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi)
    return np.asarray(stirling + _series(_LOG_GAMMA, z) / z - np.where(x > LARGE, 0.0, np.log(raised)))


def digamma(x: ArrayLike) -> Array:
    """psi(x), the derivative of ln G, elementwise, x > 0."""
    x = np.asarray(x, np.float64)
    z = x + SHIFT
    raised = sum((1.0 / (x + i) for i in range(SHIFT)), np.zeros(x.shape))
    return np.asarray(np.log(z) - 0.5 / z + _series(_DIGAMMA, z) / np.square(z) - raised)


def trigamma(x: ArrayLike) -> Array:
    """psi'(x), elementwise, x > 0."""
    x = np.asarray(x, np.float64)
    z = x + SHIFT
    raised = sum((1.0 / np.square(x + i) for i in range(SHIFT)), np.zeros(x.shape))
    return np.asarray((1.0 + 0.5 / z + _series(_TRIGAMMA, z) / np.square(z)) / z + raised)


def _series(coefficients: Sequence[float], z: Array) -> Array:
    """sum over m of coefficient_m / z^(2 m)."""
    inverse = np.square(1.0 / z)
    total = np.zeros(z.shape)
    for coefficient in reversed(coefficients):
        total = total * inverse + coefficient
    return np.asarray(total)
