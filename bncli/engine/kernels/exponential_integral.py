"""The exponential integral E1(z) = int_z^inf exp(-t) / t dt, by its continued fraction.

    E1(z) = exp(-z) / (z + 1 - 1 / (z + 3 - 4 / (z + 5 - 9 / (z + 7 - ...))))

DEPTH levels are exact to rounding from z = 1 on (Abramowitz & Stegun 1964, 5.1.22 in its even form).
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array

DEPTH = 100


def exponential_integral(z: Array) -> Array:
    """E1(z), elementwise, z >= 1."""
    fraction = z + (2 * DEPTH + 1)
    for level in range(DEPTH, 0, -1):
        fraction = z + (2 * level - 1) - level * level / fraction
    return np.asarray(np.exp(-z) / fraction)
