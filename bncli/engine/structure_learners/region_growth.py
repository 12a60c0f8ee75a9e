"""Regions with cuts of their own: for each the grid that its attributes are cut to on the residuals of a fitted model.

Growth (`bncli.engine.structure_learners.region_growth`) sees no rows, only the sums of g and h over all codes of a
region, made in one pass over the rows for as many regions as memory allows:

    g[y, x] = sum over rows t with codes x of w_t (1[y_t = y] - P(y | x_t)),   h[y, x] = sum of w_t P (1 - P)

The gain of a region is what its grid is worth: what one Newton step of its table would add, less what chance would, in
nats. The cuts were chosen from many, so that gains of pure noise are positive too; a table of noise gains little, and
the penalty of the fit, for which held-out rows are asked, holds it down.

Conventions: numeric attributes are first joined to neighbouring groups of about equal weight, as many as keep a region
to MAX_SUMS sums, but never fewer than FEWEST. Of two classes one is
summed and counted twice. A region without a numeric attribute is as it is. Gains are rounded to 12 digits. Cost: two
weighted counts a row, class and region, then the growth.

Grids grown on residuals: where the attributes of a region are cut, so that its table has few cells, in right places.

With g and h the sums of `bncli.engine.structure_learners.interaction_gains` over the cells of a table, each class
apart, the table is worth what one Newton step against the penalty lambda gains, less a price for every cell,

    v = sum over cells c and classes y of (g^2 - h) / (2 (h + lambda)).

Chance alone gives g^2 = h on the average where nothing was fitted, and less where the model has the smaller tables; so
the price is somewhat more than what chance gives to cells laid out beforehand, for cuts are the best of many.

A cut goes across one attribute through the whole table, so that the cells remain a grid: one grouping an attribute. It
is grown cut by cut: of all cuts of all attributes the one that leaves it worth most, until none makes it worth more or
the table would have too many cells. Residuals of a model with every single attribute say nothing across one attribute
alone, so growth begins with one cut through each of the numeric attributes at once, the best combination (of evenly
spaced places where attributes have many codes), each then moved to where it is best. Levels of categories and a missing
level are apart from the start.

Conventions: ties go to the first attribute, then to the lowest cut. Cost: a few operations a sum and cut; none a row.
Source: oblivious trees grown on gradients, as in boosting (Chen & Guestrin 2016, KDD; Prokhorenkova et al. 2018,
NeurIPS).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import add_counts, cell_numbers
from bncli.engine.kernels.information import rounded
from bncli.engine.kernels.passes import BLOCK, residuals
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structures.regrouping import group_intervals, with_regrouped_columns
from bncli.engine.structures.structure import Family, Grouping

LEAST_GAIN = 1e-9
"""Of a cut, in nats."""
FIRST = 1024
"""Combinations of first cuts, about: 32 places an attribute in a pair, 10 in a triple."""


class Axis(NamedTuple):
    """An attribute of a region: how many codes it has, and how many of these, the first, are intervals to be cut."""

    n_codes: int
    n_ordered: int

    @property
    def uncut(self) -> list[int]:
        """The first codes of the groups before any cut."""
        return list(range(self.n_codes)) if self.n_ordered < 2 else [0, *range(self.n_ordered, self.n_codes)]


@dataclass
class Grid:
    """A grid over sums (2 C, codes of each axis): g of C classes, then h. starts[j]: first codes of axis j's groups."""

    sums: Array
    axes: tuple[Axis, ...]
    penalty: float = 1.0
    starts: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = self.starts or [axis.uncut for axis in self.axes]

    def grow(self, most_cells: int) -> None:
        """Cut, the best cut first, while that adds value and leaves at most `most_cells` cells."""
        self._cut_all()
        value = self.value
        while found := [self.best_cut(j) for j in self._cuttable if self._has_room(j, most_cells)]:
            best, axis, code = max(found, key=lambda one: one[0])  # max takes the first of equals
            if not best > value + LEAST_GAIN:
                return
            self._cut(axis, code)
            value = best

    @property
    def value(self) -> float:
        """What the grid is worth, nats."""
        sums = self.sums
        for j, starts in enumerate(self.starts):
            sums = np.add.reduceat(sums, starts, axis=j + 1)
        return float(self._worth(sums).sum())

    @cached_property
    def _cuttable(self) -> list[int]:
        return [j for j, axis in enumerate(self.axes) if axis.n_ordered > 1]

    def _has_room(self, j: int, most_cells: int) -> bool:
        return math.prod(len(starts) + (k == j) for k, starts in enumerate(self.starts)) <= most_cells

    def _cut(self, axis: int, code: int) -> None:
        self.starts[axis] = sorted([*self.starts[axis], code])

    def _worth(self, sums: Array) -> Array:
        """Return v of cells (...), from sums (2 C, ...)."""
        g, h = sums[: len(sums) // 2], sums[len(sums) // 2 :]
        return np.asarray(((g * g - h) / (2 * (h + self.penalty))).sum(axis=0))

    def _cut_all(self) -> None:
        """Cut each attribute once at the best combination, then move each cut to its best place.

        Combinations are tried of FIRST places at most, the places of each attribute as far apart as they can be.
        """
        if not self._cuttable:
            return
        places = max(2, int(FIRST ** (1 / len(self._cuttable)) + 1e-9) + 1)
        kept = [
            np.array([*np.unique(np.linspace(0, axis.n_ordered, places + 1)[:-1].astype(np.intp)), *axis.uncut[1:]])
            if j in self._cuttable and axis.n_ordered > places
            else np.arange(axis.n_codes)
            for j, axis in enumerate(self.axes)
        ]
        worth = self._combinations(kept)
        for j, last in zip(self._cuttable, np.unravel_index(int(np.argmax(worth)), worth.shape), strict=True):
            self._cut(j, int(kept[j][int(last) + 1]))
        if all(len(some) == axis.n_codes for some, axis in zip(kept, self.axes, strict=True)):
            return
        for j in self._cuttable:
            self.starts[j] = list(self.axes[j].uncut)
            self._cut(*self.best_cut(j)[1:])

    def _combinations(self, kept: Sequence[Index]) -> Array:
        """Return what the grid is worth with one cut through each cuttable attribute, (places...).

        Kept: first codes, by axis, of the groups that stay whole.
        """
        parts = self.sums
        for j, first in enumerate(kept):
            parts = np.add.reduceat(parts, first, axis=j + 1)
        for done, j in enumerate(self._cuttable):
            # parts: (2 C, sides of the attributes done, the last one first, groups of all attributes)
            along = np.moveaxis(parts, 1 + done + j, -1)
            ordered = int(np.searchsorted(kept[j], self.axes[j].n_ordered))
            below = np.cumsum(along[..., :ordered], axis=-1)
            sides = [below[..., :-1], below[..., -1:] - below[..., :-1]]
            sides += [np.broadcast_to(along[..., m : m + 1], sides[0].shape) for m in range(ordered, along.shape[-1])]
            parts = np.moveaxis(np.stack(sides, axis=1), -1, 2 + done + j)
        n = len(self._cuttable)
        others = tuple(n + j for j in range(len(self.axes)) if j not in self._cuttable)
        return np.asarray(self._worth(parts).sum(axis=(*range(n), *others)))

    def best_cut(self, j: int) -> tuple[float, int, int]:
        """Return the best cut through attribute j: the gain (-inf: none), j, and the first code above the cut."""
        sums = self.sums
        for k, starts in enumerate(self.starts):
            sums = sums if k == j else np.add.reduceat(sums, starts, axis=k + 1)
        sums = np.moveaxis(sums, j + 1, -1).reshape(len(sums), -1, self.axes[j].n_codes)
        first = np.array(self.starts[j])
        group = np.searchsorted(first, np.arange(sums.shape[-1]), side="right") - 1
        totals = np.add.reduceat(sums, first, axis=-1)
        below = np.cumsum(sums, axis=-1) - (np.cumsum(totals, axis=-1) - totals)[..., group]
        # of every cut: the whole grid, the group that it cuts exchanged for its two parts
        whole = self._worth(totals).sum(axis=0)
        worth = (self._worth(below) + self._worth(totals[..., group] - below)).sum(axis=0) - whole[group] + whole.sum()
        worth[self.axes[j].n_ordered - 1 :] = -np.inf
        worth[first[1:] - 1] = -np.inf
        best = int(np.argmax(worth))
        return float(worth[best]), j, best + 1


MAX_SUMS = 1 << 15
"""Of a region."""
FEWEST = 8
AT_A_TIME = 1 << 22
"""Sums of the regions of one pass (32 MiB)."""
LEAST_CELLS, CELL_ROWS = 200, 100
"""A table has at most a cell for so many rows, but always LEAST_CELLS."""


class GrownRegion(NamedTuple):
    """Attributes, ascending; their gain in nats; the grouping of each (None: as cut)."""

    attributes: tuple[int, ...]
    gain: float
    groupings: tuple[Grouping | None, ...]


def most_cells(weight: float) -> int:
    """Of a table, for rows of this weight."""
    return max(LEAST_CELLS, int(weight / CELL_ROWS))


def grow_regions(
    likelihood: ConditionalLikelihood, cells: Array, sets: Sequence[tuple[int, ...]], finest: int
) -> list[GrownRegion]:
    """Return these sets of attributes, each cut beside the tables `cells` (K, n_cells), best first.

    An attribute may be cut where one of `finest` groups of its codes ends. Levels of categories stay apart even where
    that makes more cells than the rows can bear.
    """
    most = most_cells(likelihood.data.total_weight)
    n_classes = 1 if likelihood.data.n_labels == 2 else likelihood.data.n_labels
    found: list[GrownRegion] = []
    for families in _batches(likelihood.data, sets, n_classes, finest):
        for family, sums in zip(families, _joint_sums(likelihood, cells, families, n_classes), strict=True):
            found.append(_grow(likelihood.data, family, sums, most))
    return sorted(found, key=lambda one: -one.gain)


def _batches(data: Dataset, sets: Sequence[tuple[int, ...]], n_classes: int, finest: int) -> Iterator[list[Family]]:
    """Yield the sets as families that see their attributes as finely as memory allows, so many as fit into one pass."""
    joined = cache(lambda i, bins: group_intervals(data.schema.attributes[i], bins))
    families = [_finest(data, members, MAX_SUMS // (2 * n_classes), finest, joined) for members in sets]
    rounds = np.cumsum([2 * n_classes * family.n_cells for family in families], dtype=np.intp) // AT_A_TIME
    for turn in np.unique(rounds).tolist():
        yield [family for family, one in zip(families, rounds.tolist(), strict=True) if one == turn]


def _finest(
    data: Dataset, members: tuple[int, ...], room: int, finest: int, joined: Callable[[int, int], Grouping | None]
) -> Family:
    """Return the family with at most `room` cells, as fine as its numeric attributes can make use of.

    `joined`: an attribute's codes in at most so many groups.
    """
    attributes = [data.schema.attributes[i] for i in members]
    sizes = [a.cardinality for a in attributes]
    numeric = [isinstance(a, NumericAttribute) for a in attributes]
    groupings: tuple[Grouping | None, ...] = ()
    if any(numeric) and (math.prod(sizes) > room or max(sizes) > finest):
        levels = math.prod(size for size, is_numeric in zip(sizes, numeric, strict=True) if not is_numeric)
        bins = min(finest, max(FEWEST, int((room / levels) ** (1 / sum(numeric)))))
        groupings = tuple(joined(i, bins) for i in members)
    return Family.over(members, data.schema.cardinalities, groupings=groupings)


def _joint_sums(
    likelihood: ConditionalLikelihood, cells: Array, families: Sequence[Family], n_classes: int
) -> Iterator[Array]:
    """Yield (2 C, shape) of every family: g of the classes, then h."""
    data, plain = with_regrouped_columns(likelihood.data, families)
    tables, states = likelihood.fusion.expand(cells), likelihood.fusion.codes
    sums = data.reduce(_sum_cells, tables, [(f.attributes, f.shape) for f in plain], n_classes, states=states)
    yield from (total.reshape(-1, *family.shape) for total, family in zip(sums, plain, strict=True))


def _sum_cells(
    block: RowBlock, tables: Sequence[Array], over: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], n_classes: int
) -> list[Array]:
    totals = [np.zeros((2 * n_classes, math.prod(shape))) for _, shape in over]
    for rows in block.slices(BLOCK):
        scores = np.zeros((len(tables[0]), rows.stop - rows.start))
        for table, codes in zip(tables, block.state, strict=True):
            scores += np.take(table, codes[rows], axis=1, mode="clip")
        residuals(scores, block.labels[rows], None)
        # of two classes the residuals of one are the negatives of the other's
        g = scores[-n_classes:]
        off = np.abs(g)  # 1 - P of the row's own class, P of another: P (1 - P) from either
        weights = 1.0 if block.weights is None else block.weights[rows]
        columns = np.concatenate([g * weights, off * (1.0 - off) * weights])
        for (attributes, shape), total in zip(over, totals, strict=True):
            numbers = cell_numbers([block.codes[a][rows] for a in attributes], shape)
            for sums, column in zip(total, columns, strict=True):
                add_counts(sums, numbers, column)
    return totals


def _grow(data: Dataset, family: Family, sums: Array, most: int) -> GrownRegion:
    attributes = [data.schema.attributes[i] for i in family.attributes]
    axes = [
        Axis(size, size - attribute.missing if isinstance(attribute, NumericAttribute) else 0)
        for attribute, size in zip(attributes, family.shape, strict=True)
    ]
    grid = Grid(sums, tuple(axes))
    grid.grow(most)
    seen = (grouping for _, grouping in family.binned_attributes)
    groupings = tuple(
        _grouping(starts, before, attribute)
        for starts, before, attribute in zip(grid.starts, seen, attributes, strict=True)
    )
    gain = grid.value * (2 if data.n_labels == 2 else 1)
    return GrownRegion(family.attributes, float(rounded(np.array([gain]))[0]), groupings)


def _grouping(starts: Sequence[int], before: Grouping | None, attribute: Attribute) -> Grouping | None:
    """Of the codes of an attribute, which had been joined by `before`; None where nothing is."""
    if len(starts) == attribute.cardinality:
        return None
    codes = np.arange(attribute.cardinality) if before is None else np.array(before)
    return tuple((np.searchsorted(starts, codes, side="right") - 1).tolist())
