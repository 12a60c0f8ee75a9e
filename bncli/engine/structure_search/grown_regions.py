"""Regions with cuts of their own: for each the grid that its attributes are cut to on the residuals of a fitted model.

Growth (`bncli.engine.structure_search.grid_growth`) sees no rows, only the sums of g and h over all codes of a region,
made in one pass over the rows for as many regions as memory allows:

    g[y, x] = sum over rows t with codes x of w_t (1[y_t = y] - P(y | x_t)),   h[y, x] = sum of w_t P (1 - P)

The gain of a region is what its grid is worth: what one Newton step of its table would add, less what chance would, in
nats. The cuts were chosen from many, so that gains of pure noise are positive too; a table of noise gains little, and
the penalty of the fit, for which held-out rows are asked, holds it down.

Conventions: numeric attributes are first joined to neighbouring groups of about equal weight, as many as keep a region
to MAX_SUMS sums, but never fewer than FEWEST. Of two classes one is
summed and counted twice. A region without a numeric attribute is as it is. Gains are rounded to 12 digits. Cost: two
weighted counts a row, class and region, then the growth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.cells import add_counts, cell_numbers
from bncli.engine.kernels.information import rounded
from bncli.engine.kernels.passes import BLOCK, residuals
from bncli.engine.structure_search.grid_growth import Axis, Grid
from bncli.engine.structures.binning import grouping_of
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family, Grouping
from bncli.engine.training.likelihood import ConditionalLikelihood

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


def grown_regions(
    likelihood: ConditionalLikelihood, cells: Array, sets: Sequence[tuple[int, ...]], finest: int
) -> list[GrownRegion]:
    """These sets of attributes, each cut beside the tables `cells` (K, n_cells), best first.

    An attribute may be cut where one of `finest` groups of its codes ends. Levels of categories stay apart even where
    that makes more cells than the rows can bear.
    """
    most = most_cells(likelihood.data.total_weight)
    n_classes = 1 if likelihood.data.n_labels == 2 else likelihood.data.n_labels
    found: list[GrownRegion] = []
    for families in _batches(likelihood.data, sets, n_classes, finest):
        for family, sums in zip(families, _joint_sums(likelihood, cells, families, n_classes), strict=True):
            found.append(_grown(likelihood.data, family, sums, most))
    return sorted(found, key=lambda one: -one.gain)


def _batches(data: Dataset, sets: Sequence[tuple[int, ...]], n_classes: int, finest: int) -> Iterator[list[Family]]:
    """The sets as families that see their attributes as finely as memory allows, so many as fit into one pass."""
    joined = cache(lambda i, bins: grouping_of(data.schema.attributes[i], bins))
    families = [_finest(data, members, MAX_SUMS // (2 * n_classes), finest, joined) for members in sets]
    rounds = np.cumsum([2 * n_classes * family.n_cells for family in families], dtype=np.intp) // AT_A_TIME
    for turn in np.unique(rounds).tolist():
        yield [family for family, one in zip(families, rounds.tolist(), strict=True) if one == turn]


def _finest(
    data: Dataset, members: tuple[int, ...], room: int, finest: int, joined: Callable[[int, int], Grouping | None]
) -> Family:
    """The family with at most `room` cells, as far as its numeric attributes, of FEWEST intervals or more, can help.

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
    """(2 C, shape) of every family: g of the classes, then h."""
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


def _grown(data: Dataset, family: Family, sums: Array, most: int) -> GrownRegion:
    attributes = [data.schema.attributes[i] for i in family.attributes]
    axes = [_axis(attribute, size) for attribute, size in zip(attributes, family.shape, strict=True)]
    grid = Grid(sums, tuple(axes))
    grid.grow(most)
    seen = (grouping for _, grouping in family.binned_attributes)
    groupings = tuple(
        _grouping(starts, before, attribute)
        for starts, before, attribute in zip(grid.starts, seen, attributes, strict=True)
    )
    gain = grid.value * (2 if data.n_labels == 2 else 1)
    return GrownRegion(family.attributes, float(rounded(np.array([gain]))[0]), groupings)


def _axis(attribute: Attribute, size: int) -> Axis:
    """An attribute of which `size` codes are left."""
    return Axis(size, size - attribute.missing if isinstance(attribute, NumericAttribute) else 0)


def _grouping(starts: Sequence[int], before: Grouping | None, attribute: Attribute) -> Grouping | None:
    """Of the codes of an attribute, which had been joined by `before`; None where nothing is."""
    if len(starts) == attribute.cardinality:
        return None
    codes = np.arange(attribute.cardinality) if before is None else np.array(before)
    return tuple((np.searchsorted(starts, codes, side="right") - 1).tolist())
