"""Interactions: single attributes, then the pairs and the triples that explain what is left.

    1. Every attribute by itself is a region; their tables are fitted.
    2. Each pair of attributes is judged by its gain on the residuals of that fit; the best 3n become regions.
    3. With these pairs fitted too, the triples that extend one of them are judged likewise; the best 2n join.

The gain is what one Newton step of the new table would add to the penalised likelihood, less what chance would
(`bncli.engine.structure_learners.interaction_gains`); a region joins that gains LEAST_GAIN or more. So the gradient of
a model that is there ranks thousands of candidates without a fit of any of them, as in GA2M (Lou, Caruana, Gehrke &
Hooker 2013, KDD: Accurate intelligible models with pairwise interactions).

Candidates are judged twice: all of them with at most 5 equally frequent intervals an attribute (4 from triples on),
then the best, as many as may join, with cuts of their own, grown where these residuals ask for them
(`bncli.engine.structure_learners.region_growth`); with these cuts they join. A single attribute has as many of its
intervals, joined to about equal weight, as the rows can bear: 20, or one for 13 rows and attribute. (Measured: 40 in
place of 20 cost 2 to 4 % of the log-loss on tables of few rows an attribute; 100 in place of 20 spare three quarters of
it on one of 58,000 rows and 9 attributes.)

On wide tables attributes are looked at together only if they say something alone: of more than NEAR attributes, or one
for NEAR_ROWS rows, those of the highest gain over the class alone. On few rows the best of millions of pairs is noise.

An attribute with a direction (`bncli.engine.parameters.monotone`) has the cuts of all its regions by itself.

Conventions: regions of 4 attributes (max_order 5), the best n, are found from triples in the same way. Under
`--missing-policy marginalize`, the search takes a missing value for one more level. Cost: two fits, and for every pair,
or pair and third attribute, two weighted counts a row and class, several of them at a time; then the growth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute, direction_of
from bncli.engine.structure_learners.additive_fit import additive_fit
from bncli.engine.structure_learners.interaction_gains import Gains
from bncli.engine.structure_learners.region_growth import GrownRegion, grow_regions
from bncli.engine.structures.regrouping import group_intervals, refine
from bncli.engine.structures.structure import Grouping, Regions
from bncli.watch import Watch, silent

T = TypeVar("T")
CANDIDATE_BINS = (None, 5, 4)
"""Most intervals of an attribute in regions of 1, 2 and more attributes where all candidates are judged."""
MOST = (0, 3, 2, 1)
"""So many regions of 1, 2, ... attributes, the last for more, for each attribute that is near; every single one."""
INTERVALS, INTERVAL_ROWS = 20, 13
"""Most intervals of single attributes: these, or as many as make one for so many rows, all attributes together."""
CUT_AT = 40
"""Larger regions are cut where one of so many intervals ends, or of those of single attributes, where they are more."""
NEAR, NEAR_ROWS = 100, 10
"""Attributes that are looked at together: so many, or as many as leave so many rows for each."""
LEAST_GAIN = 1.0
"""Of a region of several attributes, nats: its cuts were chosen from many, so that noise gains a part of one."""


def learn(counts: Counts, *, max_order: int = 4, watch: Watch = silent) -> Regions:
    """Return the regions over the informative attributes, by size, then by falling gain.

    Max_order counts the class too.
    """
    data = counts.with_missing_levels("interactions", watch).data
    found, near = _main_effects(data, _intervals(data), watch), _near(data)
    for size in range(2, max_order):
        # The best regions of `size` attributes of `near`, beside the model of those found so far.
        likelihood, cells = additive_fit(data, _regions(found, size).families(data.schema.cardinalities))
        gains = Gains(likelihood, cells, near, _entry(CANDIDATE_BINS, size), watch=watch)
        below = [one.attributes for one in found if len(one.attributes) == size - 1]
        candidates = gains.of_pairs() if size == 2 else gains.of_extensions(below)
        most = _entry(MOST, size) * len(near)
        # levels are not cut: of categories alone the candidate's gain is that of the region
        of_levels = [one for one in candidates[:most] if not _has_numbers(data, one.attributes)]
        sets = [one.attributes for one in candidates[:most] if _has_numbers(data, one.attributes)]
        grown = grow_regions(likelihood, cells, sets, max(_intervals(data), CUT_AT))
        grown += [GrownRegion(one.attributes, one.gain, (None,) * size) for one in of_levels]
        joining = sorted((one for one in grown if one.gain >= LEAST_GAIN), key=lambda one: -one.gain)
        if not joining:
            break
        found = [*found, *joining]
    return _regions(_with_steps(data, found), max_order)


def _main_effects(data: Dataset, most: int, watch: Watch) -> list[GrownRegion]:
    """Return every attribute with its gain over the class alone, in at most so many intervals."""
    gains = Gains(*additive_fit(data, ()), data.schema.informative, CANDIDATE_BINS[0], watch=watch)
    by_attribute = {one.attributes: one.gain for one in gains.of_extensions([()])}
    return [
        GrownRegion((i,), by_attribute.get((i,), 0.0), (group_intervals(data.schema.attributes[i], most),))
        for i in data.schema.informative
    ]


def _intervals(data: Dataset) -> int:
    return max(INTERVALS, int(data.total_weight / (INTERVAL_ROWS * max(1, len(data.schema.informative)))))


def _near(data: Dataset) -> tuple[int, ...]:
    """Return the attributes that are looked at together, ascending."""
    attributes, most = data.schema.informative, max(NEAR, int(data.total_weight / NEAR_ROWS))
    if len(attributes) <= most:
        return attributes
    # binned as in a pair: of attributes cut finely on few rows, each row per cell, no one says more than another
    gains = Gains(*additive_fit(data, ()), attributes, CANDIDATE_BINS[1])
    return tuple(sorted(i for one in gains.of_extensions([()])[:most] for i in one.attributes))


def _regions(found: Sequence[GrownRegion], max_order: int) -> Regions:
    return Regions(
        tuple(one.attributes for one in found),
        method="interactions",
        options={"max_order": max_order},
        gains=tuple(one.gain for one in found),
        binnings=tuple(one.groupings for one in found),
    )


def _entry(entries: Sequence[T], size: int) -> T:
    """Return that of regions of `size` attributes, the last for larger ones."""
    return entries[min(size, len(entries)) - 1]


def _has_numbers(data: Dataset, members: tuple[int, ...]) -> bool:
    return any(isinstance(data.schema.attributes[i], NumericAttribute) for i in members)


def _with_steps(data: Dataset, found: list[GrownRegion]) -> list[GrownRegion]:
    """Return the regions with an attribute that has a direction cut by itself wherever a larger region cuts it.

    What a larger one takes away along it the attribute alone can then give.
    """
    steps: dict[int, Grouping | None] = {}
    for one in found:
        for i, grouping in zip(one.attributes, one.groupings, strict=True):
            steps[i] = refine(steps[i], grouping) if i in steps else grouping
    directed = {(i,) for i in steps if direction_of(data.schema, i)}
    return [one._replace(groupings=(steps[one.attributes[0]],)) if one.attributes in directed else one for one in found]
