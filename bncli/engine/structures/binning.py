"""Coarser binning of an attribute: neighbouring intervals joined, so that tables over several attributes stay small.

An attribute has one set of codes, fine enough for a table of its own. A table over two or three attributes cannot
afford as many cells, so its family has each attribute in a coarser binning: a grouping of its codes,

    coarse code = grouping[code],

which joins neighbouring intervals to a few groups of about equal training weight, heavy intervals apart: the rule by
which equal-frequency cuts are made (`bncli.engine.kernels.binning`), applied to intervals in place of values. A
missing level keeps a code of its own, the last. Levels of a category have no neighbours and are left as they are.

Conventions: there are never more groups than asked for; where the heavy intervals leave more, the two neighbours with
the least joint weight are joined until there are not (ties: the first). A grouping follows from the training
frequencies alone, so that the number of groups says it all. Cost: a few operations an interval.

Regrouped attributes as columns of their own, so that whoever reads the rows knows nothing of regrouping.

A family with a regrouped attribute (a grouping of its codes, see `structures.binning`) is a plain family over a data
set that has one more column: the coarser codes. Each distinct pair of attribute and grouping is one column, whichever
families share it. Cost: one narrow look-up per row and regrouped attribute, once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Codes
from bncli.engine.kernels.binning import group_ends
from bncli.engine.structures.structure import Family, Grouping, Groupings

MEMORY = 4096
"""Answers that are kept: folds and candidates ask the same of an attribute again and again."""
RegroupedAttribute = tuple[int, Grouping]
"""A regrouped attribute: its number, and the grouping of its codes."""


def groupings_of(attributes: Sequence[Attribute], bins: Sequence[int | None]) -> Groupings:
    """For each entry of `bins`, the grouping of every attribute to at most so many intervals (None: as cut)."""
    return tuple(tuple(None if most is None else grouping_of(a, most) for a in attributes) for most in bins)


def grouping_of(attribute: Attribute, bins: int) -> Grouping | None:
    """Return the coarse code of every code, at most `bins` intervals (1 or more) in all.

    None where nothing is joined.
    """
    if not isinstance(attribute, NumericAttribute) or attribute.n_values <= bins:
        return None
    return _grouping(attribute.frequencies[: attribute.n_values], bins, attribute.missing)


@lru_cache(MEMORY)
def _grouping(frequencies: tuple[float, ...], bins: int, missing: bool) -> Grouping:
    """By the frequencies of the intervals alone: attributes of a wide table often have the same, one row per value."""
    mass = np.array(frequencies, np.float64)
    begins = np.zeros(len(mass), np.intp)
    begins[np.array(_fewer(mass, group_ends(mass, bins), bins), np.intp) + 1] = 1
    groups = tuple(np.cumsum(begins).tolist())
    return (*groups, groups[-1] + 1) if missing else groups


def _fewer(mass: Array, ends: list[int], most: int) -> list[int]:
    """Return the ends of groups, the last of all left out, of which enough have gone to leave at most `most` groups."""
    weights = [float(w) for w in np.add.reduceat(mass, [0, *(end + 1 for end in ends)])]
    ends = list(ends)
    while len(weights) > most:
        # min takes the first of equals
        lightest = min(range(len(ends)), key=lambda g: weights[g] + weights[g + 1])
        weights[lightest : lightest + 2] = [weights[lightest] + weights[lightest + 1]]
        del ends[lightest]
    return ends


def grouping_at(attribute: NumericAttribute, cuts: Sequence[float]) -> Grouping | None:
    """Return the coarse code of every code where only these of its cuts remain, ascending.

    None where nothing is joined.
    """
    if len(cuts) == len(attribute.cuts):
        return None
    groups = np.concatenate([[0], np.cumsum(np.isin(attribute.cuts, cuts))]).tolist()
    return (*groups, groups[-1] + 1) if attribute.missing else tuple(groups)


def finer(one: Grouping | None, other: Grouping | None) -> Grouping | None:
    """Return the grouping that parts neighbouring codes where either does; None: everywhere."""
    if one is None or other is None:
        return None
    # neighbours stay joined where neither grid parts them
    pairs = list(zip(one, other, strict=True))
    begins = [left != right for left, right in itertools.pairwise(pairs)]
    return (0, *itertools.accumulate(map(int, begins)))


def cuts_at(attribute: Attribute, grouping: Grouping) -> tuple[float, ...]:
    """Return those cuts of a numeric attribute that remain."""
    coarser = coarse(attribute, grouping)
    assert isinstance(coarser, NumericAttribute)
    return coarser.cuts


@lru_cache(MEMORY)
def coarse(attribute: Attribute, grouping: Grouping) -> Attribute:
    """Return the attribute regrouped by `grouping`: codes, frequencies, and the cuts that remain."""
    frequencies = tuple(np.bincount(grouping, attribute.frequencies, max(grouping) + 1).tolist())
    if isinstance(attribute, NumericAttribute):
        cuts = tuple(
            cut for cut, left, right in zip(attribute.cuts, grouping, grouping[1:], strict=False) if left != right
        )
        # codes are regrouped, not columns: how tables write the numbers stays with the attribute itself
        return replace(attribute, frequencies=frequencies, cuts=cuts, form=None)
    joined: list[list[str]] = [[] for _ in range(max(grouping) + 1 - attribute.missing)]
    for level, code in zip(attribute.levels, grouping, strict=False):
        joined[code].append(level)
    return replace(attribute, frequencies=frequencies, levels=tuple(" | ".join(levels) for levels in joined), groups=())


def frequencies_of(attribute: Attribute, grouping: Grouping | None) -> Array:
    """Training frequencies of the codes, summing to 1; those before the grouping are uniform if nothing was counted."""
    counts = np.array(attribute.frequencies, dtype=np.float64)
    if not counts.sum() > 0:
        # nothing was counted: no value is likelier than another
        counts = np.ones(attribute.cardinality)
    if grouping is not None:
        counts = np.bincount(grouping, counts).astype(np.float64)
    frequencies: Array = counts / counts.sum()
    return frequencies


def with_regrouped_columns(data: Dataset, families: Sequence[Family]) -> tuple[Dataset, tuple[Family, ...]]:
    """Return the data with a column for each regrouped attribute of the families, and the families over these columns.

    The families stay in their order and keep their cells. Where nothing is regrouped, all is as it was.
    """
    regrouped = regrouped_attributes(families)
    if not regrouped:
        return data, tuple(families)
    first = len(data.codes)
    column = {pair: first + v for v, pair in enumerate(regrouped)}
    schema = data.schema
    attributes = (*schema.attributes, *(coarse(schema.attributes[a], grouping) for a, grouping in regrouped))
    codes = (*data.codes, *(coarse_codes(data.codes[a], grouping) for a, grouping in regrouped))
    extended = replace(data, schema=replace(schema, attributes=attributes), codes=codes)
    return extended, tuple(_over_columns(family, column) for family in families)


def _over_columns(family: Family, column: dict[RegroupedAttribute, int]) -> Family:
    if not family.groupings:
        return family
    attributes = tuple(a if grouping is None else column[a, grouping] for a, grouping in family.binned_attributes)
    child = None if family.child is None else attributes[family.attributes.index(family.child)]
    return replace(family, attributes=attributes, child=child, groupings=())


def regrouped_attributes(families: Iterable[Family]) -> tuple[RegroupedAttribute, ...]:
    """Return each regrouped attribute of these families once, in the order of first use."""
    seen = (pair for family in families for pair in family.binned_attributes)
    return tuple(dict.fromkeys((a, grouping) for a, grouping in seen if grouping is not None))


def coarse_codes(codes: Codes, grouping: Grouping) -> Codes:
    """Return the coarse codes, in the narrowest type.

    The code one past the last, "unobserved", stays one past the last.
    """
    n_codes = max(grouping) + 1
    return np.array((*grouping, n_codes), code_dtype(n_codes + 1))[codes]
