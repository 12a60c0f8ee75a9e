"""How large a model's tables may grow with the rows: intervals an attribute, and sets of every size.

A table over k attributes, each binned to b intervals, has b^k cells. With CELL_ROWS rows a cell its entries are well
determined, and the time of a pass is that of the rows. So of many rows

    b = the largest with b^k <= rows / CELL_ROWS,   at least BINS[k], at most FINEST[k]

and up to FEW_ROWS rows BINS[k] whatever the rows: penalties and the ensemble guard what is finer than it should be. The
sets of a size, too, are more the more rows there are: SETS[k] an attribute, times (rows / FEW_ROWS)^GROWTH.
"""

from __future__ import annotations

from dataclasses import dataclass

FEW_ROWS, CELL_ROWS = 3_000, 100
BINS = {2: 8, 3: 4, 4: 4}
"""Intervals by the size of a set."""
FINEST = {2: 20, 3: 8, 4: 6}
SETS = {2: 3, 3: 2, 4: 2}
"""Sets of a size for each attribute that there is."""
GROWTH = 0.25


@dataclass(frozen=True)
class Capacity:
    """bins[k - 1]: intervals of an attribute in a table over k (the last: and more); sets of a size, for each one."""

    bins: tuple[int | None, ...] = (None, BINS[2], BINS[3])
    pairs: int = SETS[2]
    triples: int = SETS[3]
    quadruples: int = SETS[4]


def capacity(n_rows: int) -> Capacity:
    """What so many rows can bear."""
    if n_rows <= FEW_ROWS:
        return Capacity()
    growth = (n_rows / FEW_ROWS) ** GROWTH
    pairs, triples, quadruples = (int(SETS[k] * growth) for k in (2, 3, 4))
    return Capacity((None, *(_bins(n_rows, k) for k in (2, 3, 4))), pairs, triples, quadruples)


def _bins(n_rows: int, k: int) -> int:
    affordable = int((n_rows / CELL_ROWS) ** (1 / k))
    return min(FINEST[k], max(BINS[k], affordable))
