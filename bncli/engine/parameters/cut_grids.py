"""Grids of cuts through a table of several attributes, chosen to keep most of the explanatory power of the table.

A grid has the sums of the residuals g and of the curvatures h for every combination of codes, as in
`bncli.engine.structure_learners.interactions`. Its value is the gain of one Newton step of its cells, in nats, beyond
the gain expected without an effect,

    v = sum over cells and classes of (g^2 - h) / (2 (h + penalty))

It grows one cut at a time, by the cut that raises its value most, after a first cut of every axis with ordered codes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index

LEAST_GAIN = 1e-9
"""The minimum gain of a cut, in nats."""
FIRST_CUTS = 1024
"""Approximate number of combinations of first cuts: 32 positions per attribute in a pair, 10 in a triple."""


class Axis(NamedTuple):
    """An attribute of a region: its number of codes, of which the first `n_ordered` are ordered, such as intervals."""

    n_codes: int
    n_ordered: int

    @property
    def uncut(self) -> list[int]:
        """The first code of each group when no cut has been made."""
        return list(range(self.n_codes)) if self.n_ordered < 2 else [0, *range(self.n_ordered, self.n_codes)]


@dataclass
class Grid:
    """A grid over sums (2 C, codes of each axis): g of C classes, then h of C classes.

    starts[j] holds the first code of each group of axis j, ascending.
    """

    sums: Array
    axes: tuple[Axis, ...]
    penalty: float = 1.0
    starts: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.starts = [axis.uncut for axis in self.axes]

    def grow(self, most_cells: int, least: float = 0.0) -> None:
        """Cut every axis with ordered codes once, then add the best cut while it gains more than `least` nats.

        The grid gets at most `most_cells` cells, unless the first cuts alone make more.
        """
        if self._numeric_axes:
            self._cut_every_axis_once()
        value = self.value
        while True:
            sizes = [len(starts) for starts in self.starts]
            # one more cut through axis j adds one group there
            has_room = [j for j in self._numeric_axes if math.prod(sizes) // sizes[j] * (sizes[j] + 1) <= most_cells]
            if not has_room:
                return
            # max takes the first of equals
            best, axis, code = max((self.best_cut(j) for j in has_room), key=lambda cut: cut[0])
            if not best > value + max(least, LEAST_GAIN):
                return
            self.starts[axis] = sorted([*self.starts[axis], code])
            value = best

    @property
    def value(self) -> float:
        """The value v of the grid, in nats."""
        sums = self.sums
        for j, starts in enumerate(self.starts):
            sums = _join(sums, starts, j + 1)
        return float(_worth(sums, self.penalty).sum())

    @cached_property
    def _numeric_axes(self) -> list[int]:
        return [j for j, axis in enumerate(self.axes) if axis.n_ordered > 1]

    def _cut_every_axis_once(self) -> None:
        """Cut each axis with ordered codes once, at the best combination of evenly spaced positions.

        At most about FIRST_CUTS combinations are tried. If they leave out positions, each cut is then moved to its best
        position while the others stay.
        """
        # the n-th root of FIRST_CUTS cuts per axis; rounding must not lose a whole number
        places = max(2, int(FIRST_CUTS ** (1 / len(self._numeric_axes)) + 1e-9) + 1)
        firsts = []  # by axis, the first codes of the groups that stay whole
        for j, axis in enumerate(self.axes):
            firsts.append(_first_positions(axis, places if j in self._numeric_axes else axis.n_codes))
        parts = self.sums
        for j, first in enumerate(firsts):
            # axis j + 1 becomes the groups between the positions that are tried
            parts = _join(parts, first, j + 1)
        # One numeric axis after the other, its groups are replaced by the two sides of every cut.
        for done, j in enumerate(self._numeric_axes):
            # parts: (2 C, sides of the axes done, the last one first, groups of all axes)
            own = 1 + done + j
            along = parts.transpose(*range(own), *range(own + 1, parts.ndim), own)
            # groups of intervals come first, then one per level or missing value
            ordered = int(np.searchsorted(firsts[j], self.axes[j].n_ordered))
            # sides of every cut: below it, above it, and each unordered group as a side of its own, whatever the cut is
            sides = np.empty((len(along), 2 + along.shape[-1] - ordered, *along.shape[1:-1], ordered - 1))
            below = np.add.accumulate(along[..., : ordered - 1], axis=-1, out=sides[:, 0])
            np.subtract(below[..., -1:] + along[..., ordered - 1 : ordered], below, out=sides[:, 1])
            for side, m in enumerate(range(ordered, along.shape[-1]), start=2):
                sides[:, side] = along[..., m : m + 1]
            # the cuts take the place of the groups
            n_before = 2 + done + j
            parts = sides.transpose(*range(n_before), sides.ndim - 1, *range(n_before, sides.ndim - 1))
        n = len(self._numeric_axes)
        others = tuple(n + j for j in range(len(self.axes)) if j not in self._numeric_axes)
        # one axis of cuts per numeric attribute is left: summed over the sides, and over the codes of other attributes
        worth = np.asarray(_worth(parts, self.penalty).sum(axis=(*range(n), *others)))
        for j, last in zip(self._numeric_axes, np.unravel_index(int(np.argmax(worth)), worth.shape), strict=True):
            self.starts[j] = sorted([*self.starts[j], int(firsts[j][int(last) + 1])])
        if any(len(first) < axis.n_codes for first, axis in zip(firsts, self.axes, strict=True)):
            # cuts were tried at some positions only: each is moved to its best one while the others stay
            for j in self._numeric_axes:
                self.starts[j] = list(self.axes[j].uncut)
                _, _, code = self.best_cut(j)
                self.starts[j] = sorted([*self.starts[j], code])

    def best_cut(self, j: int) -> tuple[float, int, int]:
        """Return the value with the best new cut of axis j (-inf if there is none), j, and the first code above it."""
        sums, n_codes = self.sums, self.axes[j].n_codes
        for k, starts in enumerate(self.starts):
            # groups of the other axes, but single codes along axis j, each of which may become the end of a group
            sums = sums if k == j else _join(sums, starts, k + 1)
        # (2 C, groups of the other axes, codes of axis j)
        sums = sums.transpose(*range(j + 1), *range(j + 2, sums.ndim), j + 1).reshape(len(sums), -1, n_codes)
        first = np.array(self.starts[j])
        group = np.zeros(n_codes, np.intp)
        group[first[1:]] = 1
        np.add.accumulate(group, out=group)
        totals = np.add.reduceat(sums, first, axis=-1)
        # from the start of the code's group to the code: all codes up to it, minus those of earlier groups
        both = np.empty((len(sums), 2, *sums.shape[1:]))
        below, above = both[:, 0], both[:, 1]
        earlier = np.add.accumulate(totals, axis=-1)
        earlier -= totals
        np.subtract(np.add.accumulate(sums, axis=-1), earlier.take(group, axis=-1), out=below)
        np.subtract(totals.take(group, axis=-1), below, out=above)
        # in the value of the whole grid, a cut replaces the group that it cuts by its two parts
        whole, parts = np.add.reduce(_worth(totals, self.penalty), axis=0), _worth(both, self.penalty)
        worth = np.add.reduce(parts[0] + parts[1], axis=0)
        worth -= whole.take(group)
        worth += np.add.reduce(whole)
        # no cut after the last interval, between unordered codes, or where there is one
        worth[self.axes[j].n_ordered - 1 :] = -np.inf
        worth[first[1:] - 1] = -np.inf
        best = int(worth.argmax())
        return float(worth[best]), j, best + 1


def _worth(sums: Array, penalty: float) -> Array:
    """Return the contribution of each cell (...) to v, from its sums (2 C, ...)."""
    g, h = sums[: len(sums) // 2], sums[len(sums) // 2 :]
    # without an effect, the mean of g^2 is h; in place, because arrays are many and small or few and large
    worth, twice = g * g, h + penalty
    worth -= h
    twice *= 2
    worth /= twice
    return np.asarray(np.add.reduce(worth, axis=0))


def _join(sums: Array, starts: Sequence[int] | Index, axis: int) -> Array:
    """Return the sums of the codes from each start to the next along an axis."""
    n_codes = sums.shape[axis]
    if len(starts) == n_codes:
        return sums
    if 2 * len(starts) < n_codes:
        return np.add.reduceat(sums, starts, axis=axis)
    # Many short groups: adding whole slices is faster, as long as none has more than two codes.
    first = np.asarray(starts)
    widths = np.diff(first, append=n_codes)
    if widths.max() > 2:
        return np.add.reduceat(sums, first, axis=axis)
    joined, pairs = sums.take(first, axis=axis), np.flatnonzero(widths == 2)
    np.moveaxis(joined, axis, 0)[pairs] += np.moveaxis(sums.take(first[pairs] + 1, axis=axis), axis, 0)
    return joined


@lru_cache(maxsize=1024)
def _first_positions(axis: Axis, places: int) -> Index:
    """Return the first codes of the groups of an axis, with its intervals in `places` groups of about equal size.

    With at most `places` intervals, every code is a group.
    """
    if axis.n_ordered <= places:
        return np.arange(axis.n_codes)
    even = np.unique(np.linspace(0, axis.n_ordered, places + 1)[:-1].astype(np.intp))
    return np.array([*even, *axis.uncut[1:]])
