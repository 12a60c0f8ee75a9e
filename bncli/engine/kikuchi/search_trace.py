"""The search trace: what every step along a path of regions is worth on the training rows.

A step adds a region A to the model. That adds one table over A's own cells to the scores of all rows, and the log
posterior of the step follows from the likelihood of the classes and the degrees of freedom:

    S[t, y] += D_A[cell_t, y],    D_A[v] = sum over R in A of dc_R ln P(v_R)
    log posterior = sum_t w_t ln softmax_y S[t, y] at y_t  -  N df / (N - df - 1)

(dc: change of a counting number, see `bncli.engine.structures.region_graph`; N the total weight. The prior is that of
Jakulin & Rish 2006, equation 6; where df >= N - 1 it is 0.) The search and whoever meets a path that was found
elsewhere take the same steps, so they agree to the last bit. Cost of a step: one pass over the rows to count,
one to look up.

Degrees of freedom of a model of regions: what a set of attributes adds to them when it becomes covered.

With a number n_R for every region R of a region graph (`bncli.engine.structures.region_graph`),

    df = sum over R of c_R n_R = sum over covered Q of u_Q,    u_Q = sum over R in Q of (-1)^|Q - R| n_R

    conditional         n_R = (cells of R with the class) - (cells of R)    Jakulin & Rish 2006, equation 7
    joint               n_R = (cells of R with the class) - 1               the same, equation 5
    structural-zeros    as conditional, over the cells that rows lie in     the same, section 6.3

so u_Q is (K - 1) prod over i in Q of (|X_i| - 1), or K times that product in a joint model (K - 1 of the class alone);
with structural zeros, where a cell without a training row counts as impossible, it follows from the rows.

Conventions: with structural zeros the sum over a region graph with cycles may fall below what is free, even below 0:
whoever adds up takes no model for simpler than the class alone; and regions whose tables would exceed MAX_ENTRIES have
infinitely many. Cost there: one look at the rows for every region that is tried, once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.table_batches import MAX_ENTRIES
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.kikuchi.model_paths import addition
from bncli.engine.structures.region_graph import Region, counting_changes, cover, subsets
from bncli.engine.structures.structure import SearchTrace
from bncli.watch import Progress, Watch, silent

TOGETHER = 256
"""Regions whose cells are looked for in one pass over the rows."""
DENSE = 8
"""Up to so many cells a row per table of counts is faster than sorting the cells of the rows."""


class DegreesOfFreedom:
    """What sets of attributes add; `kind` is one of the three above."""

    def __init__(self, data: Dataset, kind: str = "conditional") -> None:
        self._cardinalities, k = data.schema.cardinalities, data.n_labels
        self._of_class, self._factor = k - 1, k if kind == "joint" else k - 1
        self._occurring = _OccurringCells(data) if kind == "structural-zeros" else None

    def added(self, covered: Sequence[Region]) -> int:
        """Return what these sets add together, none of them covered before; () is the class alone."""
        if self._occurring is None:
            products = (math.prod(self._cardinalities[i] - 1 for i in region) for region in covered if region)
            return self._factor * sum(products) + self._of_class * (() in covered)
        known = self._occurring.counted({subset for region in covered for subset in subsets(region)})
        return sum((-1) ** (len(q) - len(r)) * int(known[r]) for q in covered for r in subsets(q))

    def of_subsets(self, sets: Index) -> Array:
        """Return u_Q of all subsets Q of these sets (M, size), shape (M, 2^size).

        Bit p of a column says that Q has the p-th attribute. The first column, the class alone, holds nothing
        of use: it is always covered.
        """
        size = sets.shape[1]
        pairs = [(p, q) for p, q in itertools.product(range(size), range(1 << size)) if q >> p & 1]
        if self._occurring is None:
            free = np.array(self._cardinalities, np.float64)[sets] - 1
            found = np.full((len(sets), 1 << size), float(self._factor))
            for p, q in pairs:
                found[:, q] *= free[:, p]
            return found
        found = self._occurring.of_subsets(sets)
        # a giant that contains a giant: infinity less infinity
        with np.errstate(invalid="ignore"):
            for p, q in pairs:
                found[:, q] -= found[:, q ^ 1 << p]
        found[np.isnan(found)] = math.inf
        return found


class _OccurringCells:
    """n_R over the cells that rows lie in; kept for the regions that were asked for, infinite for giants."""

    def __init__(self, data: Dataset) -> None:
        self._data = data
        self._known: dict[Region, float] = {}

    def of_subsets(self, sets: Index) -> Array:
        """Return n_R of all subsets of these sets, in the order of their bits."""
        size = sets.shape[1]
        places = [[p for p in range(size) if q >> p & 1] for q in range(1 << size)]
        members = [[tuple(region[p] for p in chosen) for chosen in places] for region in sets.tolist()]
        known = self.counted(set(itertools.chain.from_iterable(members)))
        return np.array([[known[region] for region in listed] for listed in members]).reshape(len(sets), 1 << size)

    def counted(self, regions: Iterable[Region]) -> dict[Region, float]:
        """Return n_R of these regions and of all that were asked for before."""
        missing = sorted(set(regions) - self._known.keys())
        for start in range(0, len(missing), TOGETHER):
            self._count(missing[start : start + TOGETHER])
        return self._known

    def _count(self, regions: list[Region]) -> None:
        k, cardinalities = self._data.n_labels, self._data.schema.cardinalities
        shapes = {region: tuple(cardinalities[i] for i in region) for region in regions}
        self._known |= dict.fromkeys(regions, math.inf)
        small = {region: shape for region, shape in shapes.items() if math.prod(shape) * k <= MAX_ENTRIES}
        by_block = self._data.map(_occurring_cells, small, k)
        for region, *parts in zip(small, *by_block, strict=True):
            cells = np.unique(np.concatenate(parts))
            self._known[region] = float(len(cells) - len(np.unique(cells // k)))


BLOCK = 1 << 12
"""Rows at a time, so that their scores stay in the second-level cache."""


class GrowingModel:
    """A model that grows region by region, with the running scores of all rows.

    scores[b] (K, rows of row block b); df, log_likelihood and log_posterior have an element for every step so far.
    `rule` tells what sets add to df, which is never below K - 1, that of the class alone.
    Every region is counted from the rows, in one pass for those `known` beforehand: margins of what others counted
    before would be other sums of weights, in the last bit.
    """

    def __init__(
        self, counts: Counts, theta: float, known: Iterable[Region] = (), *, degrees_of_freedom: str = "conditional"
    ) -> None:
        self.data, self.theta = counts.data, theta
        self.rule = DegreesOfFreedom(counts.data, degrees_of_freedom)
        self._counts = Counts(counts.data)
        self._counts.tables([(), *known])
        self.covered: set[Region] = {()}
        self.regions: list[Region] = []
        self.df: list[int] = []
        self.log_likelihood: list[float] = []
        self.log_posterior: list[float] = []
        self.scores: list[Array] | None = None
        self._df = 0
        self._grow((), [()])

    def add(self, region: Region) -> list[Region]:
        """Take the region into the model; returns the sets that no region contained before."""
        covered = cover(self.covered, region)
        self._grow(region, covered)
        self.regions.append(region)
        return covered

    def log_priors(self, added_df: Array) -> Array:
        """Return the log priors of models that would have so many degrees of freedom more."""
        return log_priors(self.data.total_weight, np.maximum(self._df + added_df, self.data.n_labels - 1))

    def _grow(self, region: Region, covered: list[Region]) -> None:
        [table] = self._counts.tables([region])
        added = addition(table, region, counting_changes(covered), self.data.total_weight, self.theta)
        radices = table.shape[:-1]
        grown = self.data.map(look_up, region, radices, np.ascontiguousarray(added.T), states=self.scores)
        self.scores = [scores for scores, _ in grown]
        self._df += self.rule.added(covered)
        self.df.append(max(self._df, self.data.n_labels - 1))
        self.log_likelihood.append(sum(gained for _, gained in grown))
        self.log_posterior.append(self.log_likelihood[-1] + log_prior(self.data.total_weight, self.df[-1]))

    def trace(self) -> SearchTrace:
        """Return the steps so far."""
        best = self.log_posterior.index(max(self.log_posterior))
        return SearchTrace(tuple(self.df), tuple(self.log_likelihood), tuple(self.log_posterior), best)


def follow(
    counts: Counts,
    regions: Iterable[Region],
    theta: float,
    watch: Watch = silent,
    *,
    degrees_of_freedom: str = "conditional",
) -> SearchTrace:
    """Return what the steps are worth that add these regions in their order; step 0 is the class alone."""
    listed = list(regions)
    growing = GrowingModel(counts, theta, listed, degrees_of_freedom=degrees_of_freedom)
    for done, region in enumerate(listed):
        watch(Progress(done, len(listed), "regions"))
        growing.add(region)
    return growing.trace()


def look_up(block: RowBlock, region: Region, radices: tuple[int, ...], added: Array) -> tuple[Array, float]:
    """Return the block's scores with the region's table `added` (K, cells), and the log-likelihood of its classes."""
    scores = np.zeros((len(added), block.n_rows)) if block.state is None else block.state.copy()
    log_likelihood = 0.0
    for rows in block.slices(BLOCK):
        here = scores[:, rows]
        here += (
            np.take(added, cell_numbers([block.codes[i][rows] for i in region], radices), axis=1) if region else added
        )
        true = np.take_along_axis(here, block.labels[rows].astype(np.intp)[np.newaxis], axis=0)[0]
        top = here.max(axis=0)
        logs = true - top - np.log(np.exp(here - top).sum(axis=0))
        log_likelihood += float(logs.sum() if block.weights is None else block.weights[rows] @ logs)
    return scores, log_likelihood


def log_priors(total: float, df: Array) -> Array:
    """Return -N df / (N - df - 1), minus infinity where df >= N - 1."""
    left = total - df - 1
    priors = np.full(df.shape, -np.inf)
    np.divide(-total * df, left, out=priors, where=left > 0)
    return priors


def log_prior(total: float, df: int) -> float:
    """Return the same of one model."""
    return float(log_priors(total, np.array([df], np.float64))[0])


def _occurring_cells(block: RowBlock, shapes: dict[Region, tuple[int, ...]], n_labels: int) -> list[Index]:
    """Return the numbers of the cells that rows lie in, the class the last digit, for each region."""
    labels = block.labels.astype(np.intp)
    found = []
    for region, shape in shapes.items():
        cells = cell_numbers([block.codes[i] for i in region], shape) * n_labels + labels if region else labels
        n_cells = math.prod(shape) * n_labels
        dense = n_cells <= DENSE * block.n_rows
        found.append(np.flatnonzero(np.bincount(cells, minlength=n_cells)) if dense else np.unique(cells))
    return found
