"""Interactions: single attributes, then the pairs and the triples that explain the residuals.

    1. Every attribute by itself is a region; the tables of these regions are fitted.
    2. Each pair of n attributes is scored by its gain on the residuals of that fit; at most the best 3n become regions.
    3. With these pairs fitted too, the triples that extend one of them are scored likewise; at most the best 2n join.

The gain is what one Newton step of the new table would add to the penalised likelihood, minus what it would add by
chance (`bncli.engine.structure_learners.interaction_gains`). A region joins if it gains at least LEAST_GAIN, and at
least the fraction REGION_SHARE of the loss of the model so far. Thus the gradient of the current model ranks thousands
of candidates without fitting any of them, as in GA2M (Lou, Caruana, Gehrke & Hooker 2013, KDD: Accurate intelligible
models with pairwise interactions).

Candidates are scored twice. First, all of them are scored with at most 5 equally frequent intervals per attribute (4
from triples on). Then the best, as many as may join, are scored with cuts of their own, which are grown on the same
residuals (`grow_regions`) and kept if the region joins. A cut must gain more than the fraction CUT_SHARE of the loss.
On few rows, where REGION_SHARE of the loss is less than LEAST_GAIN nats, both fractions are ignored. On many rows they
exclude gains that are certain but too small to matter, and the largest of thousands of chance gains. (On 100,000 rows
with 30 attributes, this left a quarter of the parameters, and reduced the log-loss by 4 %.) A single attribute has at
most 20 intervals of about equal weight, or at most rows / (13 x attributes) if that is more. (40 intervals instead of
20 increased the log-loss by 2 to 4 % on tables with few rows per attribute; 100 instead of 20 reduced it by three
quarters on a table of 58,000 rows and 9 attributes.)

On wide tables, only the attributes of highest gain over the class frequencies are combined: MOST_COMBINED of them, or
one per ROWS_PER_COMBINED rows if that is more. On few rows the best of millions of pairs is noise.

The levels of a categorical attribute with many levels (`bncli.engine.data.cutting`) are shrunk as random effects
(`bncli.engine.parameters.level_effects`), and the attribute is not combined with others: the pairs would have more
cells than the rows fill.

The table of a single attribute with a monotonicity constraint (`bncli.engine.parameters.monotone`) has all the cuts
that the attribute has in any region.

Conventions: with more than SEARCHED_ROWS rows, a stratified sample is searched. The rows that it leaves out can be held
out from models with these regions (`bncli.engine.parameters.penalty_choice`). With a larger max_order, at most n
regions of 4 attributes are found from the triples in the same way, and so on. Under `--missing-policy marginalize`, the
search treats missing values as one more level. Cost: two fits, and two weighted counts per row and class for every
pair, or pair and third attribute, several of them at a time; then the growth.

**The cuts of a region** are the grid of cuts that best explains the residuals. The search for cuts uses no rows, only
the sums of g and h over all codes of a region, made in one pass over the rows for as many regions as memory allows:

    g[y, x] = sum over rows t with codes x of w_t (1[y_t = y] - P(y | x_t)),   h[y, x] = sum of w_t P (1 - P)

With g and h summed over the cells of a grid for each class, the value of the grid is what one Newton step of its table
with the penalty lambda gains, minus what it would gain by chance, in nats:

    v = sum over cells c and classes y of (g^2 - h) / (2 (h + lambda)),    lambda = 1

By chance alone, g^2 = h on average where nothing was fitted, and less where the model has the smaller tables. The cuts
are the best of many, so that gains of pure noise are positive too; a table of noise gains little, and the penalty of
the final fit, chosen on held-out rows, shrinks it.

A cut splits one attribute throughout the table, so that the cells remain a grid with one grouping per attribute. The
grid grows cut by cut, each time by the cut, of any attribute, that raises its value most, until no cut raises it by
more than `least` nats or the table would have too many cells. Residuals of a model with every single attribute show no
pattern along one attribute alone, so growth begins with one cut in every numeric attribute at once. The best
combination of positions is taken (among evenly spaced ones if attributes have many codes), and each cut is then moved
to its best position. Levels of categorical attributes and a missing level are separate from the start.

Conventions: the codes of numeric attributes are first joined to neighbouring groups of about equal weight, as many as
keep the region within MAX_SUMS sums, but never fewer than FEWEST_BINS. With two classes, only one is summed, and its
sums count twice. A region without a numeric attribute is left as it is. Gains are rounded to 12 digits. Ties go to the
first attribute, then to the lowest cut. Cost: two weighted counts per row, class and region, then a few operations per
sum and cut. Source: oblivious trees grown on gradients, as in boosting (Chen & Guestrin 2016, KDD; Prokhorenkova et al.
2018, NeurIPS).

**The fits** (`additive_fit`) are quick and penalised, and accurate enough to find interactions in their residuals.
Effects are in thermometer coding (`bncli.engine.parameters.effect_coding`), all with the penalty 10. They start at 0,
or from a fit to some of the families.

With the penalty 1, many cuts and few rows, the fit follows the rows so closely that its residuals hardly show what it
lacks (on eight tables, interactions chosen after a fit with 10 are better). The tolerance is loose, since gains of
interactions are sums of residuals over many rows, which the last digits of a fit do not change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import has_many_levels
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import NumericAttribute, direction_of
from bncli.engine.data.splits import SplitBy, stratified_sample
from bncli.engine.kernels.arrays import Array, Index, Integers, add_counts, cell_numbers
from bncli.engine.kernels.information import rounded
from bncli.engine.kernels.passes import BLOCK
from bncli.engine.parameters.cut_grids import Axis, Grid
from bncli.engine.parameters.effect_coding import EffectCoordinates, Effects, effects_of
from bncli.engine.parameters.level_effects import level_scales
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum, find_optimum_from
from bncli.engine.structure_learners.interaction_gains import Gains, slopes_and_curvatures
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.regrouping import group_intervals, refine, with_regrouped_columns
from bncli.engine.structures.structure import Family, Grouping, Regions
from bncli.watch import Watch, silent

CANDIDATE_BINS = (None, 5, 4)
"""The maximum number of intervals per attribute in candidates of 1, 2 and more attributes; None is no limit."""
REGIONS_PER_ATTRIBUTE = (0, 3, 2, 1)
"""The maximum number of regions of 1, 2, 3 and more attributes per combined attribute.

The first number is not used, since all single attributes join.
"""
INTERVALS, ROWS_PER_INTERVAL = 20, 13
"""A single attribute has at most INTERVALS intervals, or rows / (ROWS_PER_INTERVAL x attributes) if that is more."""
CUT_AT = 40
"""The maximum number of groups between which an attribute is cut in a region of several attributes.

A single attribute may have more intervals than that; then this larger maximum applies to all regions.
"""
MOST_COMBINED, ROWS_PER_COMBINED = 100, 10
"""At most MOST_COMBINED attributes are combined, or one per ROWS_PER_COMBINED rows if that is more."""
LEAST_GAIN = 1.0
"""The minimum gain of a region of several attributes, in nats; even noise gains a little, since cuts are optimised."""
SEARCHED_ROWS, SEED = 1 << 16, 0
"""With more than SEARCHED_ROWS rows, a sample drawn with SEED is searched."""
REGION_SHARE, CUT_SHARE = 3e-4, 1.5e-4
"""The minimum gains of a region and of a cut in a region, as fractions of the loss of the model so far."""
MAX_SUMS = 1 << 15
"""The maximum number of sums of a region, unless FEWEST_BINS or the levels of categorical attributes need more."""
FEWEST_BINS = 8
SUMS_AT_A_TIME = 1 << 22
"""About how many sums of regions are computed in one pass over the rows (32 MiB)."""
LEAST_CELLS, ROWS_PER_CELL = 200, 100
"""A table has at most one cell per ROWS_PER_CELL rows, but may always have LEAST_CELLS."""
PENALTY, TOLERANCE, MAX_ITERATIONS = 10.0, 1e-3, 60


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
    """Give the single table of each attribute with a monotonicity constraint all cuts that it has in any region.

    Otherwise the single table could not offset a larger table that violates the constraint.
    """
    cuts: dict[int, Grouping | None] = {}
    for region in grown_regions:
        for i, grouping in zip(region.attributes, region.groupings, strict=True):
            cuts[i] = refine(cuts[i], grouping) if i in cuts else grouping
    directed = {(i,) for i in cuts if direction_of(data.schema, i)}
    return [r._replace(groupings=(cuts[r.attributes[0]],)) if r.attributes in directed else r for r in grown_regions]


class GrownRegion(NamedTuple):
    """The attributes of a region, ascending; its gain in nats; each attribute's grouping (None if codes stay apart)."""

    attributes: tuple[int, ...]
    gain: float
    groupings: tuple[Grouping | None, ...]


def grow_regions(
    likelihood: ConditionalLikelihood, cells: Array, sets: Sequence[tuple[int, ...]], finest: int, least: float = 0.0
) -> list[GrownRegion]:
    """Choose the cuts of each set of attributes; return the regions by decreasing gain.

    Gains are over the model with the tables `cells` (K, n_cells). The codes of a numeric attribute are first joined to
    at most `finest` groups, and it is cut where a group ends. After the first cut of each attribute, every further cut
    gains more than `least` nats. Levels of categorical attributes stay separate even if there are more cells than the
    rows support.
    """
    data, regions = likelihood.data, list[GrownRegion]()
    # with two classes, the residuals of one are the negatives of the other's: only one is summed, and counted twice
    classes = np.arange(int(data.n_labels == 2), data.n_labels)
    n_alike = 2 if data.n_labels == 2 else 1
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
            attributes = [data.schema.attributes[i] for i in family.attributes]
            axes = [
                Axis(size, size - attribute.missing if isinstance(attribute, NumericAttribute) else 0)
                for attribute, size in zip(attributes, family.shape, strict=True)
            ]
            grid = Grid(total.reshape(-1, *family.shape), tuple(axes))
            # with two classes, the grid has the sums of only one, so the minimum gain is divided as well
            grid.grow(max(LEAST_CELLS, int(data.total_weight / ROWS_PER_CELL)), least / n_alike)
            grown: list[Grouping | None] = []
            for starts, (_, before), attribute in zip(grid.starts, family.binned_attributes, attributes, strict=True):
                # from codes to bins, then from bins to the groups of the grid
                codes = np.arange(attribute.cardinality) if before is None else np.array(before)
                groups = tuple((np.searchsorted(starts, codes, side="right") - 1).tolist())
                grown.append(None if len(starts) == attribute.cardinality else groups)
            gain = float(rounded(np.array([grid.value * n_alike]))[0])
            regions.append(GrownRegion(family.attributes, gain, tuple(grown)))
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


class AdditiveFit(NamedTuple):
    """A fitted model: its likelihood, and its tables `cells` (K, n_cells), computed from `effects` at `point`.

    `point` is (K, n_effects), and `scales` are those of `level_scales`. If there are no rows, `effects` is None and
    `point` is empty.
    """

    likelihood: ConditionalLikelihood
    cells: Array
    effects: Effects | None
    point: Array
    scales: dict[int, float]


def additive_fit(
    data: Dataset, families: Sequence[Family], penalty: float = PENALTY, smaller: AdditiveFit | None = None
) -> AdditiveFit:
    """Fit tables over `families`; if there are no rows, the tables are 0.

    `smaller` is an earlier fit to the same rows. If `families` include all of its families, the fit starts from its
    values, which halves the number of passes.
    """
    likelihood = conditional_likelihood(data, families)
    if not data.n_rows:
        zeros = np.zeros((data.n_labels, likelihood.n_cells))
        return AdditiveFit(likelihood, zeros, None, zeros[:, :0], {})
    scales = {} if smaller is None else smaller.scales
    if families and not scales:
        scales = level_scales(data, "thermometer")
    weights = likelihood.cell_weights()
    effects = effects_of(
        likelihood.families,
        data.schema,
        weights,
        coding="thermometer",
        lower_orders=False,
        scales=scales,
    )
    zero = partial(np.zeros, (data.n_labels, likelihood.n_cells))
    coordinates = EffectCoordinates(effects, data.n_labels, zero)
    settings = OptimizerSettings("zero", penalty, 0.0, "lbfgs", TOLERANCE, MAX_ITERATIONS)
    space = ParameterSpace(likelihood, coordinates)
    if smaller is None or smaller.effects is None or not {*smaller.effects.families} <= {*effects.families}:
        optimum = find_optimum(space, settings, lambda step, p: None)
    else:
        known = {
            (smaller.effects.families[block.family], block.places): smaller.point[:, first : first + block.n_effects]
            for block, first in zip(smaller.effects.blocks, smaller.effects.offsets, strict=False)
        }
        start = np.zeros((data.n_labels, effects.n_effects))
        # the bias, then every block that the smaller fit has; new blocks start at 0
        start[:, 0] = smaller.point[:, 0]
        for block, first in zip(effects.blocks, effects.offsets, strict=False):
            start[:, first : first + block.n_effects] = known.get((effects.families[block.family], block.places), 0.0)
        optimum = find_optimum_from(space, settings, start.ravel())
    point = optimum.point
    return AdditiveFit(likelihood, coordinates.tables(point), effects, point.reshape(data.n_labels, -1), scales)
