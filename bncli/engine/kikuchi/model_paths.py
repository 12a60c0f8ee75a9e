"""Predictors made of regions: the path of models along the regions, its weights, and the tables of one model.

    S_s[t, y] = sum over steps s' <= s of D_s'[cell(t), y],    D_s[v, y] = sum over R of dc_R,s ln P(v_R, y)

dc_R,s is the change of the counting number of region R in step s. R runs over subsets of the region that is added, so
D_s is a table over the cells of that region. Step 0 is the class alone.

**Counting numbers** are the exponents of the regions' submodels in a model, so that overlaps are not counted twice. A
model is a set of regions M. Regions inside another region are redundant. The other regions, their intersections, the
intersections of these and so on form the region graph, with the counting numbers

    c_R = 1 - sum of c_S over S strictly containing R,      log Phi(v) = sum over R of c_R ln P(v_R)

(cluster variation method: Yedidia, Freeman & Weiss 2001; Jakulin & Rish 2006, algorithm 1). Call a set Q "covered" if
it lies inside some region. Then the numbers c_R of all R that contain Q sum to 1 if Q is covered, and to 0 otherwise.
Moebius inversion turns log Phi into a sum over covered sets, from which everything needed here follows without building
the graph:

    log Phi(v) = sum over covered Q of k_Q(v_Q),    k_Q(v_Q) = sum over R in Q of (-1)^|Q - R| ln P(v_R)

So adding a region A only adds terms for its own subsets: k_Q for every Q in A that was not covered before. () is the
class alone, which is always covered.

The average over the path weights each step by its posterior (Jakulin & Rish 2006, section 7):

    weight_s = posterior_s / (sum of posterior_s' over all steps s')

A submodel is the smoothed joint distribution of a region's attributes and the class:

    P(v_R) = (n[v_R] + theta / |cells of R|) / (N + theta)

The cells are the joint values of the region's attributes and the class, and N is the total weight of the rows. With the
same theta for all regions, spread evenly, submodels are consistent: the margin of a submodel is the submodel of the
margin (Jakulin & Rish 2006, section 6.1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Path, PathStep, Tables
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family, Regions, SearchTrace, Structure
from bncli.errors import BncliError

Region = tuple[int, ...]
"""Attribute indices, ascending, without the class."""


def subsets(region: Region) -> Iterable[Region]:
    """Return an iterator over every subset, by increasing size, from the empty one to the region itself.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    return itertools.chain.from_iterable(itertools.combinations(region, size) for size in range(len(region) + 1))


def cover(covered: set[Region], region: Region) -> list[Region]:
    """Add the subsets of a new region to the covered sets of a model; return those that were not covered, by size.

    >>> cover({(), (0,), (1,), (0, 1)}, (1, 2))
    [(2,), (1, 2)]
    """
    new = [subset for subset in subsets(region) if subset not in covered]
    covered.update(new)
    return new


def counting_changes(newly_covered: Iterable[Region]) -> dict[Region, int]:
    """Return the nonzero changes of counting numbers when one region adds the sets `newly_covered`.

    dc_R = sum over Q in newly_covered, R in Q, of (-1)^|Q - R|

    With sets encoded as bit masks, the sum is taken over one attribute after the other, which costs m 2^m steps for a
    region of m attributes instead of 3^m.

    >>> counting_changes([(2,), (1, 2)])  # (1, 2) joins (0, 1): P(0, 1) P(1, 2) / P(1), since both contain 1
    {(1,): -1, (1, 2): 1}
    """
    sets = list(newly_covered)
    bits = {member: 1 << place for place, member in enumerate(sorted(set(itertools.chain.from_iterable(sets))))}
    numbers = [0] * (1 << len(bits))
    for region in sets:
        numbers[sum(bits[member] for member in region)] = 1
    for bit in bits.values():
        for mask in range(len(numbers)):
            if not mask & bit:
                numbers[mask] -= numbers[mask | bit]
    changes = {mask: number for mask, number in enumerate(numbers) if number}
    return {tuple(i for i, bit in bits.items() if mask & bit): number for mask, number in changes.items()}


def submodel(table: Array, total: float, theta: float) -> Array:
    """Return P(v_R) from a region's table of counts, whose last axis is the class; `total` is N."""
    return (table + theta / table.size) / (total + theta)


def log_submodels(counts: Counts, regions: Iterable[Region], theta: float) -> list[Array]:
    """Return ln P(v_R) of each region, shape (cardinalities in the region's order..., K).

    Tables that are not known yet are counted in one pass. Raises BncliError if a table has too many entries.
    """
    total = counts.data.total_weight
    return [np.log(submodel(table, total, theta)) for table in counts.tables(regions)]


def score_table(table: Array, region: Region, changes: Mapping[Region, int], total: float, theta: float) -> Array:
    """Return the table D, (cells, K), that a region adds to the scores of the rows in its cells.

        D = sum over subsets R of dc_R ln P(v_R)

    `table` has the counts of the region, `changes` has dc, and `total` is N. The submodels of the subsets are margins
    of the submodel of the region.
    """
    joint = submodel(table, total, theta)
    added = np.zeros(joint.shape)
    for subset, change in changes.items():
        dropped = tuple(axis for axis, i in enumerate(region) if i not in subset)
        added += change * np.log(joint.sum(axis=dropped, keepdims=True))
    return added.reshape(-1, table.shape[-1])


def changes_along(regions: Iterable[Region]) -> Iterator[dict[Region, int]]:
    """Yield the changes of counting numbers in every step: the class alone, then one region after the other."""
    yield {(): 1}
    covered: set[Region] = {()}
    for region in regions:
        yield counting_changes(cover(covered, region))


def require_regions(structure: Structure) -> Regions:
    """Return the structure if it consists of regions without coarser binnings; otherwise raise BncliError.

    The submodels of regions with different binnings would not be consistent.
    """
    if not isinstance(structure, Regions):
        what = "--param kmap and kbma need regions, but the structure is a Bayesian network"
        raise BncliError(what, hint="use --structure kikuchi, or a structure file with a list of regions")
    if structure.binnings or any(bins is not None for bins in structure.bins):
        what = "--param kmap and kbma cannot be used with regions that use coarser intervals"
        raise BncliError(what, hint="use --param discriminative")
    return structure


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
    """Return the path over `regions` with the steps of `trace`; tables not counted yet are counted in one pass.

    Raises BncliError if a table has too many entries.
    """
    every_change = list(changes_along(regions))
    # the regions whose counting number changes in some step, in the order of the steps
    used = dict.fromkeys(changed for changes in every_change for changed in changes if changed)
    families = tuple(Family.over(region, counts.data.schema.cardinalities) for region in used)
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
        for s, (region, changes) in enumerate(zip([(), *regions], every_change, strict=True))
    )
    class_logs, *logs = log_submodels(counts, [(), *(family.attributes for family in families)], theta)
    tables = tuple(w.reshape(f.n_cells, -1) for w, f in zip(logs, families, strict=True))
    return Path(class_logs, families, tables, steps)


def region_tables(counts: Counts, structure: Regions, theta: float) -> Tables:
    """Return the model of the chosen regions: one table D per region, and ln P(y) as the bias.

    A regrouped attribute is treated as a different attribute from the original one. Raises BncliError if a table has
    too many entries.
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
