"""Interactions: single attributes, then the pairs and the triples that explain what is left.

    1. Every attribute by itself is a region; their tables are fitted.
    2. Each pair of attributes is judged by its gain on the residuals of that fit; the best 3n become regions.
    3. With these pairs fitted too, the triples that extend one of them are judged likewise; the best 2n join.

The gain is what one Newton step of the new table would add to the penalised likelihood, less what chance would
(`bncli.engine.structure_search.interaction_gains`); a region without a positive gain does not join. So the gradient of
a model that is there ranks thousands of candidates without a fit of any of them, as in GA2M (Lou, Caruana, Gehrke &
Hooker 2013, KDD: Accurate intelligible models with pairwise interactions).

Conventions: a single attribute has all its intervals, in a pair through at most 8, in larger regions through 4;
candidates are judged through 5 and 4. Regions of 4 attributes (max_order 5), the best n, are found from triples in the
same way. Under `--missing-policy marginalize`, the search takes a missing value for one more level. Cost: two fits, and
for every pair, or pair and third attribute, two weighted counts a row and class, several of them at a time.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_search.additive_fit import additive_fit
from bncli.engine.structure_search.interaction_gains import Gains, Interaction
from bncli.engine.structure_search.missing_levels import with_missing_levels
from bncli.engine.structures.binning import groupings_of
from bncli.engine.structures.structure import Regions
from bncli.watch import Watch, silent

BINS: tuple[int | None, ...] = (None, 8, 4)
"""Most intervals of an attribute in regions of 1, 2 and more attributes."""
CANDIDATE_BINS = (None, 5, 4)
"""The same where candidates are judged."""
MOST = (0, 3, 2, 1)
"""So many regions of 1, 2, ... attributes, the last for more, for each attribute that there is; every single one."""
LEAST_GAIN = 1e-9
"""Of a region of several attributes, nats."""


def learn(counts: Counts, *, max_order: int = 4, watch: Watch = silent) -> Regions:
    """The regions over the informative attributes, by size, then by falling gain; max_order counts the class too."""
    schema = counts.data.schema
    data = with_missing_levels(counts, "interactions", watch).data
    found = _main_effects(data, watch)
    last = found
    for size in range(2, max_order):
        gains = _gains(data, found, size, watch)
        candidates = gains.of_pairs() if size == 2 else gains.of_extensions([one.attributes for one in last])
        most = MOST[min(size, len(MOST)) - 1] * len(schema.informative)
        last = [one for one in candidates[:most] if one.gain > LEAST_GAIN]
        if not last:
            break
        found = [*found, *last]
    return Regions(
        tuple(one.attributes for one in found),
        method="interactions",
        options={"max_order": max_order},
        bins=BINS,
        groupings=groupings_of(schema.attributes, BINS),
        gains=tuple(one.gain for one in found),
    )


def _main_effects(data: Dataset, watch: Watch) -> list[Interaction]:
    """Every attribute with its gain over the class alone."""
    gains = _gains(data, [], 1, watch).of_extensions([()])
    by_attribute = {one.attributes: one.gain for one in gains}
    return [Interaction((i,), by_attribute.get((i,), 0.0)) for i in data.schema.informative]


def _gains(data: Dataset, found: list[Interaction], size: int, watch: Watch) -> Gains:
    """Candidates of `size` attributes beside the model of the regions found so far."""
    sets = tuple(one.attributes for one in found)
    regions = Regions(sets, bins=BINS, groupings=groupings_of(data.schema.attributes, BINS))
    likelihood, cells = additive_fit(data, regions.families(data.schema.cardinalities))
    bins = CANDIDATE_BINS[min(size, len(CANDIDATE_BINS)) - 1]
    return Gains(likelihood, cells, data.schema.informative, bins, watch=watch)
