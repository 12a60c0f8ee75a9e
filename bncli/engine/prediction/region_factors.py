"""Look-ups of a path: one table over the cells of a region, into which all that changes inside the region is added up.

    D[v, y] = sum over changes (R, c) of c ln P(v_R, y)

Every submodel is marginalized over what a row does not show, so that the model is that of the attributes it shows:

    ln P(v_R without a, y) = ln sum over values u of a of P(v_R with a = u, y)

Submodels of overlapping regions are consistent, so what is left is the submodel of the smaller region. Such entries are
in the table (`expand_submodel`), unless they would blow it up: a `RegionFactor` has the plain table and marginalizes,
pattern by pattern, over what the rows at hand do not show.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.logspace import log_sum
from bncli.engine.model import Path
from bncli.engine.prediction.factors import Factor, cells_of
from bncli.engine.prediction.path_stages import Change
from bncli.engine.prediction.softmax import score_rows
from bncli.engine.structures.region_graph import Region
from bncli.engine.structures.structure import Family

EXPANDED_ENTRIES = 1 << 20
"""A table is expanded when the result holds at most so many entries, or at most twice as many as before."""
Term = tuple[int, Region, Array]
"""A factor c, attributes R in the order of the region around them, and an array (values of each ..., K)."""


class SubmodelTensors:
    """The submodels of a path, shape (cardinalities ..., K), plain or expanded; index -1 is the class alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expanded: dict[int, Array] = {-1: path.class_logs}

    def plain(self, f: int) -> Array:
        return self.path.class_logs if f < 0 else self.path.logs[f].reshape(*self.path.families[f].shape, -1)

    def expanded(self, f: int) -> Array:
        if f not in self._expanded:
            self._expanded[f] = expand_submodel(self.plain(f))
        return self._expanded[f]

    def attributes(self, f: int) -> tuple[int, ...]:
        return () if f < 0 else self.path.families[f].attributes


@dataclass(frozen=True)
class RegionFactor:
    """The table of a large region: tables (R, cells), and the terms it is made of for rows that do not show it all.

    Code shape[i] means that digit i, `region[i]`, is unknown.
    """

    positions: tuple[int, ...]
    region: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array
    terms: tuple[Term, ...]

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """scores (R, rows) += the entry of every row."""
        digits = [codes[p] for p in self.positions]
        unknown = np.array([digit == n for digit, n in zip(digits, self.shape, strict=True)])
        patterns, of_row = np.unique(unknown, axis=1, return_inverse=True)
        for k, pattern in enumerate(patterns.T):
            rows = np.flatnonzero(of_row.ravel() == k)
            known = [axis for axis, hidden in enumerate(pattern) if not hidden]
            tables = self.tables if len(known) == len(pattern) else self._margin(known)
            cells = cells_of([digits[a][rows] for a in known], [self.shape[a] for a in known]) if known else 0
            scores[:, rows] += tables[:, cells] if known else tables

    def _margin(self, known: Sequence[int]) -> Array:
        """What the table is to rows that show only these axes, (R, cells of these)."""
        shown = tuple(self.region[a] for a in known)
        terms = [
            (change, tuple(i for i in region if i in shown), log_margin(table, _hidden_axes(region, shown)))
            for change, region, table in self.terms
        ]
        table = sum_over(shown, [self.shape[a] for a in known], terms)
        return score_rows(table.reshape(-1, table.shape[-1]))


def _hidden_axes(region: Sequence[int], shown: Sequence[int]) -> list[int]:
    return [axis for axis, i in enumerate(region) if i not in shown]


def compile_host(
    tensors: SubmodelTensors, host: int, changes: Sequence[Change], used: Sequence[int]
) -> Factor | RegionFactor:
    """The factor of family `host` of the path, to which these changes go; `used` are the attributes of the scorer."""
    family = tensors.path.families[host]
    # `used` is ascending: a look-up that is not linear in the attributes
    positions = tuple(bisect_left(used, a) for a in family.attributes)
    shape = tuple(n + 1 for n in family.shape)
    rows = len(score_rows(tensors.path.class_logs[None, :]))
    if rows * math.prod(shape) <= max(EXPANDED_ENTRIES, 2 * rows * family.n_cells):
        terms = ((change, tensors.attributes(f), tensors.expanded(f)) for f, change in changes)
        return Factor(positions, shape, _table(family, shape, terms))
    plain = tuple((change, tensors.attributes(f), tensors.plain(f)) for f, change in changes)
    return RegionFactor(positions, family.attributes, family.shape, _table(family, family.shape, plain), plain)


def _table(family: Family, shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """(R, cells of `shape`)."""
    table = sum_over(family.attributes, shape, terms)
    return score_rows(table.reshape(-1, table.shape[-1]))


def sum_over(region: Region, shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """D, shape (*shape, K); every R is a subset of `region` and one of them is all of it."""
    total: Array | None = None
    for factor, attributes, table in terms:
        sizes = dict(zip(attributes, table.shape[:-1], strict=True))
        aligned = table.reshape(*(sizes.get(i, 1) for i in region), -1)
        if total is None:
            total = np.zeros((*shape, aligned.shape[-1]))
        total += factor * aligned
    assert total is not None
    return total


def log_margin(table: Array, axes: Collection[int]) -> Array:
    """ln of the sum of exp over these axes, which go."""
    if not axes:
        return table
    summed = tuple(axes)
    return np.asarray(np.squeeze(log_sum(table, summed), summed))


def expand_submodel(table: Array) -> Array:
    """(n_1, n_2, ..., K) -> (n_1 + 1, n_2 + 1, ..., K): the last code of every axis stands for "unobserved"."""
    for axis in range(table.ndim - 1):
        table = np.concatenate([table, np.expand_dims(log_margin(table, (axis,)), axis)], axis=axis)
    return table
