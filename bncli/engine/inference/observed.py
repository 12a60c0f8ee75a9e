"""Families whose attributes are all observed in a row: look-ups, fused like those of complete rows.

An attribute with missing values has one code more, so the table of a family grows by cells that hold 0: there,
something is hidden, and the family's part is found in another way.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bncli.engine.counting.fusion import Fusion, fuse
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structures.structure import Family

IN_CACHE = 4096
"""Configurations of a group whose differences stay in a second-level cache of 1 MiB; for K > 2, half as many."""


@dataclass(frozen=True)
class Observed:
    """Fused codes of rows; own[i] is the table cell that the fusion knows as cell padded[i]."""

    fusion: Fusion
    own: Index
    padded: Index
    n_cells: int

    def expand(self, cells: Array) -> list[Array]:
        """Tables of the groups, each (K, configurations), from cells of shape (K, n_cells)."""
        padded = np.zeros((len(cells), self.fusion.n_cells))
        padded[:, self.padded] = cells[:, self.own]
        return self.fusion.expand(padded)

    def gather(self, tables: Sequence[Array]) -> Array:
        """The transpose of `expand`."""
        cells = np.zeros((len(tables[0]), self.n_cells))
        cells[:, self.own] = self.fusion.gather(tables)[:, self.padded]
        return cells


def observe(data: Dataset, families: Sequence[Family], counted: Sequence[bool], hiding: Collection[int]) -> Observed:
    """Fuse the families that are `counted`; `hiding` are the attributes that some row hides."""
    starts = np.cumsum([1, *(family.n_cells for family in families)])
    own, padded, wide = [np.zeros(1, np.intp)], [np.zeros(1, np.intp)], []
    start = 1
    for family, first in zip(itertools.compress(families, counted), itertools.compress(starts, counted), strict=True):
        wide.append(_padded(family, hiding))
        own.append(first + np.arange(family.n_cells))
        cells = np.arange(start, start + wide[-1].n_cells).reshape(wide[-1].shape)
        padded.append(cells[tuple(slice(n) for n in family.shape)].ravel())
        start += wide[-1].n_cells
    most = min(IN_CACHE if data.n_labels == 2 else IN_CACHE // 2, max(256, data.n_rows // 8))
    return Observed(fuse(data, wide, most), np.concatenate(own), np.concatenate(padded), int(starts[-1]))


def _padded(family: Family, hiding: Collection[int]) -> Family:
    return replace(family, shape=tuple(n + (a in hiding) for a, n in zip(family.attributes, family.shape, strict=True)))
