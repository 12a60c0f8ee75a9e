"""Coarser binning of an attribute: neighbouring intervals joined, so that tables over several attributes stay small.

An attribute has one set of codes, fine enough for a table of its own. A table over two or three attributes cannot
afford as many cells, so its family has each attribute in a coarser binning: a grouping of its codes,

    coarse code = grouping[code],

which joins neighbouring intervals to a few groups of about equal training weight, heavy intervals apart: the rule by
which equal-frequency cuts are made (`bncli.engine.kernels.equal_weight`), applied to intervals in place of values. A
missing level keeps a code of its own, the last. Levels of a category have no neighbours and are left as they are.

Conventions: there are never more groups than asked for; where the heavy intervals leave more, the two neighbours with
the least joint weight are joined until there are not (ties: the first). A grouping follows from the training
frequencies alone, so that the number of groups says it all. Cost: a few operations an interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.equal_weight import group_ends
from bncli.engine.structures.structure import Grouping, Groupings

MEMORY = 4096
"""Answers that are kept: folds and candidates ask the same of an attribute again and again."""


def groupings_of(attributes: Sequence[Attribute], bins: Sequence[int | None]) -> Groupings:
    """For each entry of `bins`, the grouping of every attribute to at most so many intervals (None: as cut)."""
    return tuple(tuple(None if most is None else grouping_of(a, most) for a in attributes) for most in bins)


def grouping_of(attribute: Attribute, bins: int) -> Grouping | None:
    """The coarse code of every code, at most `bins` intervals (1 or more) in all; None where nothing is joined."""
    if not isinstance(attribute, NumericAttribute) or attribute.n_values <= bins:
        return None
    return _grouping(attribute.frequencies[: attribute.n_values], bins, attribute.missing)


@lru_cache(MEMORY)
def _grouping(frequencies: tuple[float, ...], bins: int, missing: bool) -> Grouping:
    """By the frequencies of the intervals alone: attributes of a wide table often have the same, one row a value."""
    mass = np.array(frequencies, np.float64)
    begins = np.zeros(len(mass), np.intp)
    begins[np.array(_fewer(mass, group_ends(mass, bins), bins), np.intp) + 1] = 1
    groups = tuple(np.cumsum(begins).tolist())
    return (*groups, groups[-1] + 1) if missing else groups


def _fewer(mass: Array, ends: list[int], most: int) -> list[int]:
    """The ends of groups, the last of all left out, of which enough have gone to leave at most `most` groups."""
    weights = [float(w) for w in np.add.reduceat(mass, [0, *(end + 1 for end in ends)])]
    ends = list(ends)
    while len(weights) > most:
        # min takes the first of equals
        lightest = min(range(len(ends)), key=lambda g: weights[g] + weights[g + 1])
        weights[lightest : lightest + 2] = [weights[lightest] + weights[lightest + 1]]
        del ends[lightest]
    return ends


def grouping_at(attribute: NumericAttribute, cuts: Sequence[float]) -> Grouping | None:
    """The coarse code of every code where only these of its cuts remain, ascending; None where nothing is joined."""
    if len(cuts) == len(attribute.cuts):
        return None
    groups = np.concatenate([[0], np.cumsum(np.isin(attribute.cuts, cuts))]).tolist()
    return (*groups, groups[-1] + 1) if attribute.missing else tuple(groups)


def finer(one: Grouping | None, other: Grouping | None) -> Grouping | None:
    """The grouping that parts neighbouring codes where either does; None: everywhere."""
    if one is None or other is None:
        return None
    # neighbours stay joined where neither grid parts them
    pairs = list(zip(one, other, strict=True))
    begins = [left != right for left, right in itertools.pairwise(pairs)]
    return (0, *itertools.accumulate(map(int, begins)))


def cuts_at(attribute: Attribute, grouping: Grouping) -> tuple[float, ...]:
    """Those cuts of a numeric attribute that remain."""
    coarser = coarse(attribute, grouping)
    assert isinstance(coarser, NumericAttribute)
    return coarser.cuts


@lru_cache(MEMORY)
def coarse(attribute: Attribute, grouping: Grouping) -> Attribute:
    """The attribute regrouped by `grouping`: codes, frequencies, and the cuts that remain."""
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
