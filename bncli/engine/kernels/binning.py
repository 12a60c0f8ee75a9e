"""From numbers to interval codes: the number of cuts that lie strictly below each value.

    code_t = sum over cuts c of [x_t > c],   intervals (-inf, c1], (c1, c2], ..., (cm, inf)

Up to a hundred cuts, comparing a block with one cut after the other and adding the outcomes as bytes beats a binary
search for each value, several times where cuts are few. Whole numbers and float32 are compared in their own width.
Cost: 0.2 ns a value and cut by comparing, 5 to 40 ns a value by binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes

_BLOCK = 1 << 14
_CUTS_COMPARED = 100
"""Up to so many cuts comparing beats binary search; their sum fits a byte."""


def interval_codes(values: NDArray[np.generic], cuts: Sequence[float], dtype: np.dtype[np.unsignedinteger]) -> Codes:
    """Interval of every value, shape (N,); cuts ascending. Infinities are values; the code of a NaN is arbitrary.

    >>> interval_codes(np.array([-1.0, 0.5, 0.6, 9.0]), (0.5, 2.0), np.dtype(np.uint8)).tolist()
    [0, 0, 1, 2]
    """
    if not len(cuts):
        return np.zeros(len(values), dtype)
    below_all, thresholds = _thresholds(np.asarray(cuts, np.float64), values.dtype)
    codes = np.full(len(values), below_all, dtype)
    for first in range(0, len(values), _BLOCK):
        block = slice(first, first + _BLOCK)
        if len(thresholds) <= _CUTS_COMPARED:
            codes[block] += _compared(values[block], thresholds)
        else:
            codes[block] += np.searchsorted(thresholds, values[block]).astype(dtype)
    return codes


def _compared(values: NDArray[np.generic], thresholds: NDArray[np.generic]) -> NDArray[np.uint8]:
    total = np.zeros(len(values), np.uint8)
    for threshold in thresholds:
        total += (values > threshold).view(np.uint8)
    return total


def _thresholds(cuts: Array, dtype: np.dtype[Any]) -> tuple[int, NDArray[np.generic]]:
    """How many cuts lie below every number of the type, and the others rounded down to the type: x > c stays as it was.

    Cuts at or above the highest number of the type drop out: nothing exceeds them.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # a whole number exceeds a cut just where it exceeds the whole number below it
        floors = np.floor(cuts)
        inside = floors[(floors >= float(limits.min)) & (floors < float(limits.max))]
        return int(np.count_nonzero(floors < float(limits.min))), inside.astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        rounded = cuts.astype(dtype)
        # a cut rounded upwards would swallow the values between it and the true cut
        return 0, np.where(rounded > cuts, np.nextafter(rounded, dtype.type(-np.inf)), rounded)
