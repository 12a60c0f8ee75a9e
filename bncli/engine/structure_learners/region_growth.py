"""Choose the cuts of each region: the grid of cuts that best explains the residuals of a fitted model.

The search for cuts uses no rows, only the sums of g and h over all codes of a region, made in one pass over the rows
for as many regions as memory allows:

    g[y, x] = sum over rows t with codes x of w_t (1[y_t = y] - P(y | x_t)),   h[y, x] = sum of w_t P (1 - P)

With g and h summed over the cells of a grid for each class, the value of the grid is what one Newton step of its table
with the penalty lambda gains, minus what it would gain by chance, in nats:

    v = sum over cells c and classes y of (g^2 - h) / (2 (h + lambda))

By chance alone, g^2 = h on average where nothing was fitted, and less where the model has the smaller tables. The cuts
are the best of many, so that gains of pure noise are positive too; a table of noise gains little, and the penalty of
the final fit, chosen on held-out rows, shrinks it.

A cut divides one attribute throughout the table, so that the cells remain a grid with one grouping per attribute. The
grid grows cut by cut, each time by the cut, of any attribute, that raises its value most, until no cut raises it by
`least` nats or the table would have too many cells. Residuals of a model with every single attribute show no pattern
along one attribute alone, so growth begins with one cut in each of the numeric attributes at once: the best combination
(of evenly spaced positions if attributes have many codes), each cut then moved to its best position. Levels of
categorical attributes and a missing level are separate from the start.

Conventions: the codes of numeric attributes are first joined to neighbouring groups of about equal weight, as many as
keep a region to MAX_SUMS sums, but never fewer than FEWEST_BINS. With two classes, one is summed and counted twice. A
region without a numeric attribute is left as it is. Gains are rounded to 12 digits. Ties go to the first attribute,
then to the lowest cut. Cost: two weighted counts per row, class and region, then a few operations per sum and cut.
Source: oblivious trees grown on gradients, as in boosting (Chen & Guestrin 2016, KDD; Prokhorenkova et al. 2018,
NeurIPS).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import add_counts, cell_numbers
from bncli.engine.kernels.information import rounded
from bncli.engine.kernels.passes import BLOCK
from bncli.engine.parameters.cut_grids import Axis, Grid
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structure_learners.interaction_gains import slopes_and_curvatures
from bncli.engine.structures.regrouping import group_intervals, with_regrouped_columns
from bncli.engine.structures.structure import Family, Grouping

MAX_SUMS = 1 << 15
"""The most sums of a region."""
FEWEST_BINS = 8
SUMS_AT_A_TIME = 1 << 22
"""The most sums of all regions that are counted in one pass over the rows (32 MiB)."""
LEAST_CELLS, ROWS_PER_CELL = 200, 100
"""A table has at most one cell per ROWS_PER_CELL rows, but may always have LEAST_CELLS."""


class GrownRegion(NamedTuple):
    """The attributes of a region, ascending; its gain in nats; the grouping of each attribute (None: all its cuts)."""

    attributes: tuple[int, ...]
    gain: float
    groupings: tuple[Grouping | None, ...]


def grow_regions(
    likelihood: ConditionalLikelihood, cells: Array, sets: Sequence[tuple[int, ...]], finest: int, least: float = 0.0
) -> list[GrownRegion]:
    """Choose the cuts of each set of attributes; return the regions by decreasing gain.

    Gains are over the model with the tables `cells` (K, n_cells). An attribute may be cut where one of `finest` groups
    of its codes ends. After the first cut of each attribute, every further cut gains at least `least` nats. Levels of
    categorical attributes stay separate even if there are more cells than the rows support.
    """
    data, regions = likelihood.data, []
    # with two classes, the residuals of one are minus those of the other
    classes = np.arange(int(data.n_labels == 2), data.n_labels)
    room = MAX_SUMS // (2 * len(classes))
    families = []
    for members in sets:
        # at most `room` cells, and at most `finest` groups per numeric attribute
        attributes = [data.schema.attributes[i] for i in members]
        sizes = [attribute.cardinality for attribute in attributes]
        n_numeric = sum(isinstance(attribute, NumericAttribute) for attribute in attributes)
        groupings: tuple[Grouping | None, ...] = ()
        if n_numeric and (math.prod(sizes) > room or max(sizes) > finest):
            n_levels = math.prod(a.cardinality for a in attributes if not isinstance(a, NumericAttribute))
            # the same number of bins for each numeric attribute, so that their product fits beside the levels
            bins = min(finest, max(FEWEST_BINS, int((room / n_levels) ** (1 / n_numeric))))
            groupings = tuple(group_intervals(attribute, bins) for attribute in attributes)
        families.append(Family.over(members, data.schema.cardinalities, groupings=groupings))
    # consecutive families with about SUMS_AT_A_TIME sums in total
    rounds = np.cumsum([2 * len(classes) * family.n_cells for family in families], dtype=np.intp) // SUMS_AT_A_TIME
    tables, states = likelihood.fusion.expand(cells), likelihood.fusion.codes
    for current in np.unique(rounds).tolist():
        together = [family for family, r in zip(families, rounds.tolist(), strict=True) if r == current]
        regrouped, plain = with_regrouped_columns(data, together)
        over = [(family.attributes, family.shape) for family in plain]
        sums = regrouped.reduce(_sum_cells, tables, over, classes, states=states)
        for family, total in zip(together, sums, strict=True):
            regions.append(_grow(data, family, total.reshape(-1, *family.shape), least))
    return sorted(regions, key=lambda region: -region.gain)


def _sum_cells(
    block: RowBlock, tables: Sequence[Array], over: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], classes: Index
) -> list[Array]:
    """Return the block's sums (2 C, cells) of every family (attributes, shape): g of the C `classes`, then h."""
    totals = [np.zeros((2 * len(classes), math.prod(shape))) for _, shape in over]
    for rows in block.slices(BLOCK):
        columns = slopes_and_curvatures(block, rows, tables, classes)
        for (attributes, shape), total in zip(over, totals, strict=True):
            numbers = cell_numbers([block.codes[a][rows] for a in attributes], shape)
            for sums, column in zip(total, columns, strict=True):
                add_counts(sums, numbers, column)
    return totals


def _grow(data: Dataset, family: Family, sums: Array, least: float) -> GrownRegion:
    """Return the region of a family, with the cuts grown on its sums, shape (2 C, *family.shape)."""
    both = 2 if data.n_labels == 2 else 1  # with two classes, only one is summed
    attributes = [data.schema.attributes[i] for i in family.attributes]
    axes = [
        Axis(size, size - attribute.missing if isinstance(attribute, NumericAttribute) else 0)
        for attribute, size in zip(attributes, family.shape, strict=True)
    ]
    grid = Grid(sums, tuple(axes))
    # values of the grid are those of the class that is summed, so the least gain is divided as well
    grid.grow(max(LEAST_CELLS, int(data.total_weight / ROWS_PER_CELL)), least / both)
    groupings: list[Grouping | None] = []
    for starts, (_, before), attribute in zip(grid.starts, family.binned_attributes, attributes, strict=True):
        if len(starts) == attribute.cardinality:
            groupings.append(None)
        else:
            # from codes to bins, then from bins to the groups of the grid
            codes = np.arange(attribute.cardinality) if before is None else np.array(before)
            groupings.append(tuple((np.searchsorted(starts, codes, side="right") - 1).tolist()))
    return GrownRegion(family.attributes, float(rounded(np.array([grid.value * both]))[0]), tuple(groupings))
