"""Degrees of freedom of a model of regions: what a set of attributes adds to them when it becomes covered.

With a number n_R for every region R of a region graph (`bncli.engine.structures.region_graph`),

    df = sum over R of c_R n_R = sum over covered Q of u_Q,    u_Q = sum over R in Q of (-1)^|Q - R| n_R

    conditional         n_R = (cells of R with the class) - (cells of R)    Jakulin & Rish 2006, equation 7
    joint               n_R = (cells of R with the class) - 1               the same, equation 5
    structural-zeros    as conditional, over the cells that rows lie in     the same, section 6.3

so u_Q is (K - 1) prod over i in Q of (|X_i| - 1), or K times that product in a joint model (K - 1 of the class alone);
with structural zeros, where a cell without a training row counts as impossible, it follows from the rows.

Conventions: with structural zeros the sum over a region graph with cycles may fall below what is free, even below 0:
whoever adds up takes no model for simpler than the class alone; and regions whose tables would exceed MAX_ENTRIES have
infinitely many. Cost there: one look at the rows for every region that is tried, once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from bncli.engine.counting.table_batches import MAX_ENTRIES
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.structures.region_graph import Region, subsets

TOGETHER = 256
"""Regions whose cells are looked for in one pass over the rows."""
DENSE = 8
"""Up to so many cells a row a table of counts is faster than sorting the cells of the rows."""


class DegreesOfFreedom:
    """What sets of attributes add; `kind` is one of the three above."""

    def __init__(self, data: Dataset, kind: str = "conditional") -> None:
        self._cardinalities, k = data.schema.cardinalities, data.n_labels
        self._of_class, self._factor = k - 1, k if kind == "joint" else k - 1
        self._occurring = _OccurringCells(data) if kind == "structural-zeros" else None

    def added(self, covered: Sequence[Region]) -> int:
        """What these sets add together, none of them covered before; () is the class alone."""
        if self._occurring is None:
            products = (math.prod(self._cardinalities[i] - 1 for i in region) for region in covered if region)
            return self._factor * sum(products) + self._of_class * (() in covered)
        known = self._occurring.counted({subset for region in covered for subset in subsets(region)})
        return sum((-1) ** (len(q) - len(r)) * int(known[r]) for q in covered for r in subsets(q))

    def of_subsets(self, sets: Index) -> Array:
        """u_Q of all subsets Q of these sets (M, size), shape (M, 2^size): bit p of a column says that Q has the p-th
        attribute. The first column, the class alone, holds nothing of use: it is always covered."""
        size = sets.shape[1]
        pairs = [(p, q) for p, q in itertools.product(range(size), range(1 << size)) if q >> p & 1]
        if self._occurring is None:
            free = np.array(self._cardinalities, np.float64)[sets] - 1
            found = np.full((len(sets), 1 << size), float(self._factor))
            for p, q in pairs:
                found[:, q] *= free[:, p]
            return found
        found = self._occurring.of_subsets(sets)
        # a giant that contains a giant: infinity less infinity
        with np.errstate(invalid="ignore"):
            for p, q in pairs:
                found[:, q] -= found[:, q ^ 1 << p]
        found[np.isnan(found)] = math.inf
        return found


class _OccurringCells:
    """n_R over the cells that rows lie in; kept for the regions that were asked for, infinite for giants."""

    def __init__(self, data: Dataset) -> None:
        self._data = data
        self._known: dict[Region, float] = {}

    def of_subsets(self, sets: Index) -> Array:
        """n_R of all subsets of these sets, in the order of their bits."""
        size = sets.shape[1]
        places = [[p for p in range(size) if q >> p & 1] for q in range(1 << size)]
        members = [[tuple(region[p] for p in chosen) for chosen in places] for region in sets.tolist()]
        known = self.counted(set(itertools.chain.from_iterable(members)))
        return np.array([[known[region] for region in listed] for listed in members]).reshape(len(sets), 1 << size)

    def counted(self, regions: Iterable[Region]) -> dict[Region, float]:
        """n_R of these regions and of all that were asked for before."""
        missing = sorted(set(regions) - self._known.keys())
        for start in range(0, len(missing), TOGETHER):
            self._count(missing[start : start + TOGETHER])
        return self._known

    def _count(self, regions: list[Region]) -> None:
        k, cardinalities = self._data.n_labels, self._data.schema.cardinalities
        shapes = {region: tuple(cardinalities[i] for i in region) for region in regions}
        self._known |= dict.fromkeys(regions, math.inf)
        small = {region: shape for region, shape in shapes.items() if math.prod(shape) * k <= MAX_ENTRIES}
        by_block = self._data.map(_occurring_cells, small, k)
        for region, *parts in zip(small, *by_block, strict=True):
            cells = np.unique(np.concatenate(parts))
            self._known[region] = float(len(cells) - len(np.unique(cells // k)))


def _occurring_cells(block: RowBlock, shapes: dict[Region, tuple[int, ...]], n_labels: int) -> list[Index]:
    """The numbers of the cells that rows lie in, the class the last digit, for each region."""
    labels = block.labels.astype(np.intp)
    found = []
    for region, shape in shapes.items():
        cells = cell_numbers([block.codes[i] for i in region], shape) * n_labels + labels if region else labels
        n_cells = math.prod(shape) * n_labels
        dense = n_cells <= DENSE * block.n_rows
        found.append(np.flatnonzero(np.bincount(cells, minlength=n_cells)) if dense else np.unique(cells))
    return found
