"""Intervals of equal width between the lowest and the highest value; the class is not used.

    c_i = low + (high - low) i / B,    i = 1 .. B - 1

Conventions: an interval may be empty (it keeps its code); cuts that coincide, because the values are too close for B
intervals, are one cut. All terms of the sum are halved and the result is doubled, so that no range overflows. Cost:
O(N).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes


def cut_points(
    values: NDArray[np.generic],
    labels: Codes,
    n_labels: int,
    weights: Array | None,
    *,
    bins: int = 10,
) -> tuple[float, ...]:
    """Return the cuts of at most `bins` intervals of equal width, ascending; none if all values are equal."""
    if len(values) == 0:
        return ()
    low, high = np.float64(values.min()), np.float64(values.max())
    cuts = 2 * (low / 2 + (high / 2 - low / 2) * (np.arange(1, bins) / bins))
    return tuple(np.unique(cuts[(cuts >= low) & (cuts < high)] + 0.0).tolist())
