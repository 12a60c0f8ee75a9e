"""Predictors made of regions: the path of models along the regions, its weights, and the tables of one model.

    S_s[t, y] = sum over steps s' <= s of D_s'[cell(t), y],    D_s[v, y] = sum over R of dc_R,s ln P(v_R, y)

dc_R,s is what step s adds to the counting number of region R. R runs over subsets of the region that is added, so D_s
is a table over the cells of that region (see `bncli.engine.structures.region_graph`). Step 0 is the class alone.

The average over the path weighs each step by its posterior (Jakulin & Rish 2006, section 7):

    weight_s = posterior_s / sum over steps of posterior

A submodel consists of the smoothed relative frequencies of a region and the class:

    P(v_R) = (n[v_R] + theta / |cells of R|) / (N + theta)

The cells are those of the region's attributes with the class, and N is the total weight of the rows. With the same
theta for all regions, spread evenly, submodels are consistent: the margin of a submodel is the submodel of the margin
(Jakulin & Rish 2006, section 6.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Path, PathStep, Tables
from bncli.engine.structures.region_graph import Region, counting_changes, cover
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family, Regions, SearchTrace, Structure
from bncli.errors import BncliError


def submodel(table: Array, total: float, theta: float) -> Array:
    """Return P(v_R) from the counts of a region, whose last axis is the class."""
    return (table + theta / table.size) / (total + theta)


def log_submodels(counts: Counts, regions: Iterable[Region], theta: float) -> list[Array]:
    """Return ln P(v_R) of each region, shape (cardinalities in the region's order..., K), counted in one pass.

    Raises BncliError if a table has too many entries.
    """
    total = counts.data.total_weight
    return [np.log(submodel(table, total, theta)) for table in counts.tables(regions)]


def score_table(table: Array, region: Region, changes: Mapping[Region, int], total: float, theta: float) -> Array:
    """Return the table D of a region, which it adds to the scores of its cells, shape (cells, K).

        D = sum over subsets R of dc_R ln P(v_R)

    `table` counts the region, `total` is N; the submodels of the subsets are margins of the region's own.
    """
    joint = submodel(table, total, theta)
    added = np.zeros(joint.shape)
    for subset, change in changes.items():
        dropped = tuple(axis for axis, i in enumerate(region) if i not in subset)
        added += change * np.log(joint.sum(axis=dropped, keepdims=True))
    return added.reshape(-1, table.shape[-1])


def changes_along(regions: Iterable[Region]) -> Iterator[dict[Region, int]]:
    """Yield the changes of counting numbers of every step: the class alone, then one region after the other."""
    yield {(): 1}
    covered: set[Region] = {()}
    for region in regions:
        yield counting_changes(cover(covered, region))


def require_regions(structure: Structure) -> Regions:
    """Return the structure; raise BncliError for a Bayesian network, and for regions with their own binnings.

    The submodels of regions with different binnings would not be consistent.
    """
    if not isinstance(structure, Regions):
        what = "--param kmap and kbma need regions, but the structure is a Bayesian network"
        raise BncliError(what, hint="use --structure kikuchi, or a structure file with a list of regions")
    if structure.binnings or any(bins is not None for bins in structure.bins):
        what = "--param kmap and kbma cannot be used with regions that use coarser intervals"
        raise BncliError(what, hint="use --param discriminative")
    return structure


def path_families(regions: Iterable[Region], cardinalities: Sequence[int]) -> tuple[Family, ...]:
    """Return the regions whose counting number changes in some step, as families, in the order of the steps."""
    used = dict.fromkeys(region for changes in changes_along(regions) for region in changes if region)
    return tuple(Family.over(region, cardinalities) for region in used)


def posterior_weights(log_posterior: Sequence[float]) -> tuple[float, ...]:
    """Return the weights of the steps, which sum to 1; if all posteriors are 0, the first step gets weight 1."""
    logs = np.array(log_posterior)
    if np.isneginf(logs).all():
        return (1.0, *[0.0] * (len(logs) - 1))
    shares = np.exp(logs - logs.max())
    return tuple((shares / shares.sum()).tolist())


def make_path(
    counts: Counts, regions: Sequence[Region], trace: SearchTrace, weights: Sequence[float], theta: float
) -> Path:
    """Return the path over `regions` with the steps of `trace`; it takes one counting pass for unknown tables."""
    families = path_families(regions, counts.data.schema.cardinalities)
    place = {family.attributes: f for f, family in enumerate(families)} | {(): -1}
    steps = tuple(
        PathStep(
            region,
            tuple(sorted((place[changed], change) for changed, change in changes.items())),
            trace.df[s],
            trace.log_likelihood[s],
            trace.log_posterior[s],
            weights[s],
        )
        for s, (region, changes) in enumerate(zip([(), *regions], changes_along(regions), strict=True))
    )
    class_logs, *logs = log_submodels(counts, [(), *(family.attributes for family in families)], theta)
    tables = tuple(w.reshape(f.n_cells, -1) for w, f in zip(logs, families, strict=True))
    return Path(class_logs, families, tables, steps)


def region_tables(counts: Counts, structure: Regions, theta: float) -> Tables:
    """Return the model of the chosen regions, with one table D per region; the class alone is the bias.

    A regrouped attribute is treated as a different attribute from the one it is made of.
    """
    families = structure.families(counts.data.schema.cardinalities)
    data, regrouped = with_regrouped_columns(counts.data, families)
    if data is not counts.data:
        counts = Counts(data)
    regions = [family.attributes for family in regrouped]
    _, *changes = changes_along(regions)
    weights = tuple(
        score_table(table, region, change, data.total_weight, theta)
        for table, region, change in zip(counts.tables(regions), regions, changes, strict=True)
    )
    return Tables(log_submodels(counts, [()], theta)[0], families, weights)
