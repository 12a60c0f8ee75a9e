"""Counting the cells that occur: a table over many attributes may have far more cells than there are rows.

Cost: one sort of the rows' cell numbers. Numbers of 32 bits are sorted in two thirds of the time of longer ones; a hash
table (by array operations) takes twice as long where the caches are shared.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array, Integers


def observed(cells: Integers, weights: Array | None) -> tuple[Integers, Array]:
    """The distinct cells, ascending, and the sum of the weights of each (None: how often it occurs)."""
    if weights is not None:
        distinct, place = np.unique(cells, return_inverse=True)
        return distinct, np.bincount(place, weights, len(distinct)).astype(np.float64)
    ascending = np.sort(cells)
    starts = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]])[: len(cells)])
    return ascending[starts], np.diff(starts, append=len(cells)).astype(np.float64)


def sum_n_log_n(counts: Array) -> float:
    """sum over cells of n ln n, 0 for n = 0."""
    several = counts[(counts > 0) & (counts != 1)]  # 1 ln 1 = 0
    return float((several * np.log(several)).sum())
