"""Weights as whole numbers, so that sums of them are exact and the order of rows cannot show in the last digit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array


def whole_units(weights: Array | None) -> tuple[NDArray[np.int64] | None, float]:
    """The weights as whole multiples of a unit: 1 where they are whole numbers, else about 2^-52 of their sum."""
    if weights is None or len(weights) == 0:
        return None, 1.0
    largest = math.frexp(float(weights.max()))[1]
    bits = largest + math.frexp(float(np.ldexp(weights, -largest).sum()))[1]  # total < 2^bits, whatever overflows
    whole = bits <= 52 and bool((weights == np.rint(weights)).all())
    unit = 1.0 if whole else max(math.ldexp(1.0, bits - 52), 5e-324)
    return np.rint(weights / unit).astype(np.int64), unit
