"""Which of many possible numbers occur, and the rank of each among those that do."""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Index

MARKED_PER_NUMBER = 16
"""Presence is marked in an array while there are at most so many possible numbers for each one given."""
MARKED_ANYWAY = 1 << 14


def distinct(numbers: Index, bound: int) -> tuple[Index, Index]:
    """The numbers that occur, ascending, and the place of each given number among them; all are below `bound`."""
    # a mark for every possible number costs more than sorting where few of them occur
    if bound > max(MARKED_ANYWAY, MARKED_PER_NUMBER * len(numbers)):
        return np.unique(numbers, return_inverse=True)
    present = np.zeros(bound, bool)
    present[numbers] = True
    found = np.flatnonzero(present)
    rank = np.zeros(bound, np.intp)
    rank[found] = np.arange(len(found))
    return found, rank[numbers]
