"""Interactions: single attributes, then the pairs and the triples that explain the residuals.

    1. Every attribute by itself is a region; the tables of these regions are fitted.
    2. Each pair of attributes is scored by its gain on the residuals of that fit; the best 3n become regions.
    3. With these pairs fitted too, the triples that extend one of them are scored likewise; the best 2n join.

The gain is what one Newton step of the new table would add to the penalised likelihood, minus what it would add by
chance (`bncli.engine.structure_learners.interaction_gains`). A region joins if it gains at least LEAST_GAIN, and at
least the fraction REGION_SHARE of the loss of the model so far. Thus the gradient of the current model ranks thousands
of candidates without fitting any of them, as in GA2M (Lou, Caruana, Gehrke & Hooker 2013, KDD: Accurate intelligible
models with pairwise interactions).

Candidates are scored twice: all of them with at most 5 equally frequent intervals per attribute (4 from triples on),
then the best, as many as may join, with cuts of their own, grown on these residuals
(`bncli.engine.structure_learners.region_growth`), which they keep when they join. A cut must gain at least the fraction
CUT_SHARE of that loss. On few rows, where the first share is below LEAST_GAIN, both shares are ignored. On many rows
they keep out gains that are certain but too small to matter, and the largest of thousands of chance gains. (Measured on
100,000 rows with 30 attributes: a quarter of the parameters, and 4 % less log-loss.) A single attribute has as many
intervals, of about equal weight, as the rows support: 20, or one per 13 rows and attribute. (Measured: 40 instead of 20
cost 2 to 4 % of the log-loss on tables with few rows per attribute; 100 instead of 20 saved three quarters of it on a
table of 58,000 rows and 9 attributes.)

On wide tables, only the attributes of highest gain over the class frequencies are combined: MOST_COMBINED of them, or
one per ROWS_PER_COMBINED rows if that is more. On few rows the best of millions of pairs is noise.

The levels of a category that has many (`bncli.engine.data.cutting`) are shrunk as random effects
(`bncli.engine.parameters.effect_coding`), and are not combined: their pairs would have more cells than the rows fill.

The table of a single attribute with a monotone direction (`bncli.engine.parameters.monotone`) has all the cuts that the
attribute has in any region.

Conventions: with more than SEARCHED_ROWS rows, a stratified sample is searched. The rows that it leaves out can be held
out from models with these regions (`bncli.engine.parameters.penalty_choice`). Regions of 4 attributes (max_order 5),
the best n, are found from triples in the same way. Under `--missing-policy marginalize`, the search treats missing
values as one more level. Cost: two fits, and two weighted counts per row and class for every pair, or pair and third
attribute, several of them at a time; then the growth.
"""

from __future__ import annotations

from collections.abc import Sequence

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import has_many_levels
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute, direction_of
from bncli.engine.data.splits import SplitBy, stratified_sample
from bncli.engine.kernels.arrays import Index, Integers
from bncli.engine.structure_learners.additive_fit import AdditiveFit, additive_fit
from bncli.engine.structure_learners.interaction_gains import Gains
from bncli.engine.structure_learners.region_growth import GrownRegion, grow_regions
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.regrouping import group_intervals, refine
from bncli.engine.structures.structure import Grouping, Regions
from bncli.watch import Watch, silent

CANDIDATE_BINS = (None, 5, 4)
"""The most intervals of an attribute in candidates of 1, 2 and more attributes."""
REGIONS_PER_ATTRIBUTE = (0, 3, 2, 1)
"""The most regions of 1, 2, 3 and more attributes per combined attribute; all single attributes join."""
INTERVALS, ROWS_PER_INTERVAL = 20, 13
"""The most intervals of a single attribute: INTERVALS, or one per ROWS_PER_INTERVAL rows and attribute if more."""
CUT_AT = 40
"""Larger regions may be cut where one of this many intervals ends, or of as many as single attributes have if more."""
MOST_COMBINED, ROWS_PER_COMBINED = 100, 10
"""The most attributes that are combined: MOST_COMBINED, or one per ROWS_PER_COMBINED rows if that is more."""
LEAST_GAIN = 1.0
"""The least gain of a region of several attributes, in nats: even noise gains a little, as the best cuts are chosen."""
SEARCHED_ROWS, SEED = 1 << 16, 0
"""With more than SEARCHED_ROWS rows, a sample drawn with SEED is searched."""
REGION_SHARE, CUT_SHARE = 3e-4, 1.5e-4
"""The least gains of a region, and of a cut in one, as shares of the loss of the model so far."""


def learn(
    counts: Counts, *, max_order: int = 4, constraints: ArcConstraints | None = None, watch: Watch = silent
) -> Regions:
    """Return the regions by size: single informative attributes in schema order, larger ones by decreasing gain.

    Regions have up to `max_order` - 1 attributes, since max_order counts the class. With constraints, only
    regions that obey them are candidates.
    """
    data = counts.with_missing_levels("interactions", watch).data
    if data.n_rows > SEARCHED_ROWS:
        data = data.take(searched_rows(data.labels, data.split_by))
    attributes, cardinalities = data.schema.attributes, data.schema.cardinalities
    informative = data.schema.informative
    intervals = max(INTERVALS, int(data.total_weight / (ROWS_PER_INTERVAL * max(1, len(informative)))))
    # single attributes, by what they would add to the class frequencies
    likelihood, cells, *_ = additive_fit(data, ())
    singles = Gains(likelihood, cells, informative, CANDIDATE_BINS[0], watch=watch).of_extensions([()])
    gain_of = {single.attributes: single.gain for single in singles}
    grown_regions = [
        GrownRegion((i,), gain_of.get((i,), 0.0), (group_intervals(attributes[i], intervals),)) for i in informative
    ]
    combined = tuple(i for i in informative if not has_many_levels(attributes[i]))
    most = max(MOST_COMBINED, int(data.total_weight / ROWS_PER_COMBINED))
    if len(combined) > most:
        # binned as in a pair: with one row per cell, no finely cut attribute gains more than another
        ranked = Gains(likelihood, cells, combined, CANDIDATE_BINS[1]).of_extensions([()])
        combined = tuple(sorted(i for single in ranked[:most] for i in single.attributes))
    fit: AdditiveFit | None = None
    for size in range(2, max_order):
        # the best regions of `size` attributes, given the model of those found so far
        families = _as_regions(grown_regions, size).families(cardinalities)
        fit = additive_fit(data, families, smaller=fit)
        likelihood, cells, *_ = fit
        loss = 0.0 - likelihood.value_and_gradient(cells)[0]
        gains = Gains(likelihood, cells, combined, CANDIDATE_BINS[min(size, 3) - 1], watch=watch)
        smaller = [region.attributes for region in grown_regions if len(region.attributes) == size - 1]
        candidates = gains.of_pairs() if size == 2 else gains.of_extensions(smaller)
        if constraints is not None:
            candidates = [one for one in candidates if constraints.allows_region(one.attributes)]
        # levels are not cut, so a candidate without numeric attributes has its final gain
        numeric, categorical = [], []
        for candidate in candidates[: REGIONS_PER_ATTRIBUTE[min(size, 4) - 1] * len(combined)]:
            if any(isinstance(attributes[i], NumericAttribute) for i in candidate.attributes):
                numeric.append(candidate.attributes)
            else:
                categorical.append(GrownRegion(candidate.attributes, candidate.gain, (None,) * size))
        finest, least, least_of_cut = max(intervals, CUT_AT), LEAST_GAIN, 0.0
        # the less is left to explain, the less a region must gain, down to a fixed gain
        if REGION_SHARE * loss > LEAST_GAIN:
            least, least_of_cut = REGION_SHARE * loss, CUT_SHARE * loss
        grown = [*grow_regions(likelihood, cells, numeric, finest, least_of_cut), *categorical]
        joining = sorted((region for region in grown if region.gain >= least), key=lambda region: -region.gain)
        if not joining:
            break
        grown_regions += joining
    return _as_regions(_with_cuts_of_larger_regions(data, grown_regions), max_order)


def searched_rows(labels: Integers, by: SplitBy | None = None) -> Index:
    """Return the rows that are searched, ascending, given the labels (N,) of all rows."""
    return stratified_sample(labels, SEARCHED_ROWS, SEED, by)


def _as_regions(grown_regions: Sequence[GrownRegion], max_order: int) -> Regions:
    return Regions(
        tuple(region.attributes for region in grown_regions),
        method="interactions",
        options={"max_order": max_order},
        gains=tuple(region.gain for region in grown_regions),
        binnings=tuple(region.groupings for region in grown_regions),
    )


def _with_cuts_of_larger_regions(data: Dataset, grown_regions: list[GrownRegion]) -> list[GrownRegion]:
    """Give the single table of every attribute with a monotone direction all the cuts that larger regions have.

    Otherwise the single table could not offset a larger table that goes against the direction.
    """
    cuts: dict[int, Grouping | None] = {}
    for region in grown_regions:
        for i, grouping in zip(region.attributes, region.groupings, strict=True):
            cuts[i] = refine(cuts[i], grouping) if i in cuts else grouping
    directed = {(i,) for i in cuts if direction_of(data.schema, i)}
    return [r._replace(groupings=(cuts[r.attributes[0]],)) if r.attributes in directed else r for r in grown_regions]
