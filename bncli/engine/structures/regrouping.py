"""Regrouped attributes: neighbouring intervals joined, so that tables over several attributes stay small.

An attribute has one set of codes, fine enough for a table of its own. A table over the codes of two or three attributes
would have too many cells, so its family uses each attribute in a coarser binning: a grouping of its codes,

    coarse code = grouping[code],

which joins neighbouring intervals into a few groups of about equal training weight. A heavy interval remains a group of
its own if possible, as in equal-frequency cuts (`bncli.engine.kernels.binning`). A missing level keeps a code of its
own, the last. The levels of a categorical attribute have no order and are not joined here.

Rows are counted over regrouped attributes as over any others: each distinct pair of attribute and grouping becomes one
more column of the data set, whichever families share it, and the families become plain families over these columns.
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

CACHE_SIZE = 4096
"""The maximum number of cached groupings, and of cached regrouped attributes; folds and candidates reuse them."""
_ROUNDING = 1e-12
"""Log-odds, in nats, that differ by no more than this are treated as equal."""


def group_intervals_by_size(attributes: Sequence[Attribute], bins: Sequence[int | None]) -> Groupings:
    """Return every attribute's grouping into at most m intervals (None: no grouping), for each entry m of `bins`."""
    return tuple(tuple(None if most is None else group_intervals(a, most) for a in attributes) for most in bins)


def group_intervals(attribute: Attribute, bins: int) -> Grouping | None:
    """Return the coarse code of every code, for at most `bins` >= 1 intervals and a possible missing level.

    Return None if the attribute has no more intervals than that, or is categorical. The grouping depends only on the
    training frequencies.
    """
    if not isinstance(attribute, NumericAttribute) or attribute.n_values <= bins:
        return None
    return _group_by_frequency(attribute.frequencies[: attribute.n_values], bins, attribute.missing)


# Cached by frequencies: the attributes of a wide table often have the same ones, one row per value.
@lru_cache(CACHE_SIZE)
def _group_by_frequency(frequencies: tuple[float, ...], bins: int, missing: bool) -> Grouping:
    mass = np.array(frequencies, np.float64)
    ends = list(group_ends(mass, bins))
    weights = [float(w) for w in np.add.reduceat(mass, [0, *(end + 1 for end in ends)])]
    # Heavy intervals may leave too many groups: the two neighbours with the least joint weight are joined until few
    # enough are left. min takes the first of equals.
    while len(weights) > bins:
        lightest = min(range(len(ends)), key=lambda g: weights[g] + weights[g + 1])
        weights[lightest : lightest + 2] = [weights[lightest] + weights[lightest + 1]]
        del ends[lightest]
    begins = np.zeros(len(mass), np.intp)
    begins[np.array(ends, np.intp) + 1] = 1
    groups = tuple(np.cumsum(begins).tolist())
    return (*groups, groups[-1] + 1) if missing else groups


def refine(grouping: Grouping | None, other: Grouping | None) -> Grouping | None:
    """Return the grouping that separates neighbouring codes where either of two groupings does; None separates all."""
    if grouping is None or other is None:
        return None
    begins = [left != right for left, right in itertools.pairwise(zip(grouping, other, strict=True))]
    return (0, *itertools.accumulate(map(int, begins)))


@lru_cache(CACHE_SIZE)
def regroup_attribute(attribute: Attribute, grouping: Grouping) -> Attribute:
    """Return the attribute with its codes joined by `grouping`: with fewer cuts or levels and summed frequencies."""
    frequencies = tuple(np.bincount(grouping, attribute.frequencies, max(grouping) + 1).tolist())
    if isinstance(attribute, NumericAttribute):
        cuts = tuple(
            cut for cut, left, right in zip(attribute.cuts, grouping, grouping[1:], strict=False) if left != right
        )
        # only codes are regrouped: the number format of the column stays with the attribute itself
        return replace(attribute, frequencies=frequencies, cuts=cuts, form=None)
    joined: list[list[str]] = [[] for _ in range(max(grouping) + 1 - attribute.missing)]
    for level, code in zip(attribute.levels, grouping, strict=False):
        joined[code].append(level)
    return replace(attribute, frequencies=frequencies, levels=tuple(" | ".join(levels) for levels in joined), groups=())


def join_equal_intervals(attribute: Attribute, values: Array) -> Grouping | None:
    """Return the grouping that joins neighbouring intervals with equal values, or None if there is nothing to join.

    values (cardinality, ...) are the contributions of each code to the log-odds, in nats. The levels of categorical
    attributes and a missing level are not joined.
    """
    n_values = attribute.n_values
    if not isinstance(attribute, NumericAttribute) or n_values < 2:
        return None
    steps = np.abs(np.diff(values[:n_values], axis=0)).reshape(n_values - 1, -1).max(axis=1) > _ROUNDING
    if steps.all():
        return None
    starts = np.concatenate(([False], steps, np.ones(len(values) - n_values, np.bool_)))
    return tuple(np.cumsum(starts).tolist())


def regroup_codes(codes: Codes, grouping: Grouping) -> Codes:
    """Return the coarse codes in the narrowest type; "unobserved" is again the code after the last one."""
    n_codes = max(grouping) + 1
    return np.array((*grouping, n_codes), code_dtype(n_codes + 1))[codes]


def relative_frequencies(attribute: Attribute, grouping: Grouping | None) -> Array:
    """Return the relative training frequencies of the codes, or of the coarse codes if there is a grouping.

    If nothing was counted, all codes (not the coarse codes) are taken to be equally frequent.
    """
    counts = np.array(attribute.frequencies, dtype=np.float64)
    if not counts.sum() > 0:
        counts = np.ones(attribute.cardinality)
    if grouping is not None:
        counts = np.bincount(grouping, counts).astype(np.float64)
    frequencies: Array = counts / counts.sum()
    return frequencies


def with_regrouped_columns(data: Dataset, families: Sequence[Family]) -> tuple[Dataset, tuple[Family, ...]]:
    """Add a column per pair of attribute and grouping; return the data, and plain families over these columns.

    The families stay in order and keep their cells. If nothing is regrouped, both are returned unchanged. Cost: one
    look-up per row and added column.
    """
    regrouped = regrouped_attributes(families)
    if not regrouped:
        return data, tuple(families)
    schema, n = data.schema, len(data.codes)
    column = {pair: n + place for place, pair in enumerate(regrouped)}
    attributes = (*schema.attributes, *(regroup_attribute(schema.attributes[a], grouping) for a, grouping in regrouped))
    codes = (*data.codes, *(regroup_codes(data.codes[a], grouping) for a, grouping in regrouped))
    extended = replace(data, schema=replace(schema, attributes=attributes), codes=codes)
    plain = []
    for family in families:
        if family.groupings:
            members = tuple(a if grouping is None else column[a, grouping] for a, grouping in family.binned_attributes)
            child = None if family.child is None else members[family.attributes.index(family.child)]
            family = replace(family, attributes=members, child=child, groupings=())
        plain.append(family)
    return extended, tuple(plain)


def regrouped_attributes(families: Iterable[Family]) -> tuple[tuple[int, Grouping], ...]:
    """Return the distinct pairs of a regrouped attribute and its grouping in these families, in order of first use."""
    binned = (pair for family in families for pair in family.binned_attributes)
    return tuple(dict.fromkeys((a, grouping) for a, grouping in binned if grouping is not None))
