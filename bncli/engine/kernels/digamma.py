"""The rise of the digamma function over an interval, without the cancellation of the plain difference.

    x (psi(x + n) - psi(x)) = sum over whole i from 0 to n - 1 of x / (x + i),    where n is a whole number

This is the expected number of distinct draws from the base distribution among n draws from a Dirichlet process of
concentration x (Antoniak 1974, Annals of Statistics 2). Both arguments are raised to 8 and more by the recurrence
psi(x + 1) = psi(x) + 1/x, from where four terms of the asymptotic series leave a relative error below 1e-11. All terms
that count are positive, so the precision holds from n << x to x << n. Cost: some 40 operations an element.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array

SHIFT = 8


def scaled_rise(x: Array, n: Array) -> Array:
    """x (psi(x + n) - psi(x)), elementwise, for x > 0 and n >= 0."""
    end = x + n
    total = n / end
    for i in range(1, SHIFT):
        total += (x / (x + i)) * (n / (end + i))
    low, high = x + SHIFT, end + SHIFT
    logarithms = np.log1p(n / low) + n / (2.0 * low) / high
    return np.asarray(total + x * (logarithms + (_tail(high) - _tail(low))))


def _tail(z: Array) -> Array:
    """psi(z) - ln z + 1 / 2z."""
    inverse = np.square(1.0 / z)
    return np.asarray(-inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse / 240))))
