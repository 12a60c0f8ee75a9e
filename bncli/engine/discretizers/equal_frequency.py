"""Intervals of about equal weight; the class is not used.

Plain quantiles collapse on skewed columns: if two thirds of the rows are 0, most of the quantiles are 0 as well, and
the rest of the column is left in one interval. So a value that alone has more than 1 / bins of the total weight gets an
interval of its own, and the remaining intervals divide the other rows at about equal frequency
(`bncli.engine.kernels.binning`). Cuts lie midway between neighbouring distinct values. Cost: one sort.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Codes
from bncli.engine.kernels.binning import group_ends, midpoints, ordered


def cut_points(
    values: NDArray[np.generic],
    labels: Codes,
    n_labels: int,
    weights: Array | None,
    *,
    bins: int = 10,
) -> tuple[float, ...]:
    """Return the cuts of about `bins` intervals of roughly equal weight, ascending; none if all values are equal.

    There are fewer intervals if there are fewer distinct values. There may be more if heavy values, which get intervals
    of their own, leave other values between them.
    """
    if len(values) == 0:
        return ()
    column = ordered(values, np.zeros(len(values), np.uint8), 1, weights)
    mass = np.ones(len(column.labels)) if column.weights is None else column.weights.astype(np.float64)
    below = np.array(group_ends(np.add.reduceat(mass, np.append(0, column.ends[:-1])), bins), np.intp)
    return tuple(midpoints(column.values[below], column.values[below + 1]).tolist())
