"""How finely attributes are cut, and the coarser binnings of tables over several.

Candidates want different cuts: the finest at equal frequency where trees choose among them; fine ones where a table is
over one attribute, whose steps the penalty smooths; a few where it is over several; those of Fayyad & Irani (1993)
where thresholds are sharp. There is one set of codes all the same, the finest: the union of every grid that is asked
for. A coarser binning joins codes to groups (`bncli.engine.structures.regrouping`), and the rows are coded once.

Conventions: FINEST intervals; for single attributes FINE of them from MANY_ROWS rows on, half as many below; the cuts
of Fayyad & Irani join both there. Which of all these cuts they would have chosen is asked again of the rows that a
candidate learns from, so that rows held out are not looked at: only the cuts themselves were. Levels of many-valued
categories are pooled once, on all rows: what is pooled is more than rows at random would show.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import COLUMNS_AT_A_TIME, PoolingRule, learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute, ReadingRules
from bncli.engine.discretizers import equal_frequency, mdl
from bncli.engine.kernels.arrays import Array, Codes
from bncli.engine.structures.regrouping import group_intervals, refine, regroup_attribute, regroup_codes
from bncli.engine.structures.structure import Family, Grouping
from bncli.watch import Run

FINEST, FINE = 255, 40
"""Intervals at equal frequency: of all codes, and of single attributes."""
MANY_ROWS = 1000
Binnings = tuple[Grouping | None, ...]
"""By attribute, the coarser binning of its codes; None: as cut."""


def fine_dataset(columns: Columns, reading: ReadingRules, run: Run, group_levels: PoolingRule = "off") -> Dataset:
    """Return the rows in codes, every column cut by the union of all grids.

    The levels of categories pooled by the rule.
    """
    cut = _fine_cuts if columns.n_rows >= MANY_ROWS else partial(equal_frequency.cut_points, bins=FINEST)
    return learn_dataset(columns, discretize=cut, group_levels=group_levels, reading=reading, run=run)


def _fine_cuts(values: NDArray[np.generic], labels: Codes, n_labels: int, weights: Array | None) -> tuple[float, ...]:
    steps = equal_frequency.cut_points(values, labels, n_labels, weights, bins=FINEST)
    return tuple(sorted({*steps, *mdl.cut_points(values, labels, n_labels, weights)}))


def singles(data: Dataset, sharp: Binnings) -> Binnings:
    """Return every attribute as a table over it alone sees it; `sharp`: by the rule of Fayyad & Irani."""
    if data.n_rows < MANY_ROWS:
        return few(data, FINE // 2)
    both = zip(few(data, FINE), sharp, strict=True)
    return tuple(steps if cuts is None else refine(steps, cuts) for steps, cuts in both)


def few(data: Dataset, bins: int) -> Binnings:
    """Return every attribute in at most `bins` intervals of about equal weight."""
    return tuple(group_intervals(attribute, bins) for attribute in data.schema.attributes)


def mdl_binnings(data: Dataset) -> Binnings:
    """Return every attribute by those of its cuts that Fayyad & Irani's rule takes on these rows."""
    without_cuts = _without_cuts(data)
    return tuple(_mdl_binning(data, i, i in without_cuts) for i in range(len(data.codes)))


def _without_cuts(data: Dataset) -> frozenset[int]:
    """Complete attributes of few rows that are told at once to keep no cut."""
    if data.weights is not None or data.n_rows > mdl.FEW_ROWS:
        return frozenset()
    attributes = data.schema.attributes
    numbers = [i for i in data.schema.informative if isinstance(attributes[i], NumericAttribute)]
    complete = [i for i in numbers if not attributes[i].missing]
    found: list[int] = []
    for first in range(0, len(complete), COLUMNS_AT_A_TIME):
        some = complete[first : first + COLUMNS_AT_A_TIME]
        values = np.stack([data.codes[i] for i in some])
        found += itertools.compress(some, mdl.uncut(values, data.labels, data.n_labels))
    return frozenset(found)


def _mdl_binning(data: Dataset, i: int, is_uncut: bool) -> Grouping | None:
    attribute = data.schema.attributes[i]
    if not isinstance(attribute, NumericAttribute) or not attribute.informative:
        return None
    if is_uncut:
        return (0,) * attribute.n_values
    codes, labels, weights = data.codes[i], data.labels, data.weights
    if attribute.missing:
        rows = np.flatnonzero(codes < attribute.n_values)
        codes, labels, weights = codes[rows], labels[rows], None if weights is None else weights[rows]
    cuts = mdl.cut_points(codes, labels, data.n_labels, weights)
    groups = np.searchsorted(cuts, np.arange(attribute.n_values)).tolist()
    return tuple(groups) + ((groups[-1] + 1,) if attribute.missing else ())


def regrouped(data: Dataset, binnings: Binnings) -> Dataset:
    """Return the rows with every attribute regrouped to its binning."""
    binned = list(zip(data.schema.attributes, binnings, strict=True))
    attributes = tuple(a if grouping is None else regroup_attribute(a, grouping) for a, grouping in binned)
    codes = tuple(c if m is None else regroup_codes(c, m) for c, m in zip(data.codes, binnings, strict=True))
    return replace(data, schema=replace(data.schema, attributes=attributes), codes=codes)


def regrouped_families(families: Sequence[Family], binnings: Binnings) -> tuple[Family, ...]:
    """Return families over regrouped rows, as families over the rows as they are."""
    return tuple(_regrouped_family(family, binnings) for family in families)


def _regrouped_family(family: Family, binnings: Binnings) -> Family:
    groupings = tuple(binnings[a] for a in family.attributes)
    return replace(family, groupings=groupings if any(m is not None for m in groupings) else ())
