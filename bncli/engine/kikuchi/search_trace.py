"""The search trace: what every step along a path of regions is worth on the training rows.

A step adds a region A to the model. That adds one table over A's own cells to the scores of all rows, and the log
posterior of the step follows from the likelihood of the classes and the degrees of freedom:

    S[t, y] += D_A[cell_t, y],    D_A[v] = sum over R in A of dc_R ln P(v_R)
    log posterior = sum_t w_t ln softmax_y S[t, y] at y_t  -  N df / (N - df - 1)

(dc: change of a counting number, see `bncli.engine.structures.region_graph`; N the total weight. The prior is that of
Jakulin & Rish 2006, equation 6; where df >= N - 1 it is 0.) The search and whoever meets a path that was found
elsewhere take the same steps, so they agree to the last bit. Cost of a step: one pass over the rows to count,
one to look up.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.kikuchi.degrees_of_freedom import DegreesOfFreedom
from bncli.engine.kikuchi.submodels import addition
from bncli.engine.structures.region_graph import Coverage, Region, counting_changes
from bncli.engine.structures.structure import SearchTrace
from bncli.watch import Progress, Watch, silent

BLOCK = 1 << 12
"""Rows at a time, so that their scores stay in the second-level cache."""


def follow(
    counts: Counts,
    regions: Iterable[Region],
    theta: float,
    watch: Watch = silent,
    *,
    degrees_of_freedom: str = "conditional",
) -> SearchTrace:
    """What the steps are worth that add these regions in their order; step 0 is the class alone."""
    listed = list(regions)
    growing = GrowingModel(counts, theta, listed, degrees_of_freedom=degrees_of_freedom)
    for done, region in enumerate(listed):
        watch(Progress(done, len(listed), "regions"))
        growing.add(region)
    return growing.trace()


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
        self.coverage = Coverage()
        self.regions: list[Region] = []
        self.df: list[int] = []
        self.log_likelihood: list[float] = []
        self.log_posterior: list[float] = []
        self.scores: list[Array] | None = None
        self._df = 0
        self._grow((), [()])

    def add(self, region: Region) -> list[Region]:
        """Takes the region into the model; returns the sets that no region contained before."""
        covered = self.coverage.add(region)
        self._grow(region, covered)
        self.regions.append(region)
        return covered

    def log_priors(self, added_df: Array) -> Array:
        """The log priors of models that would have so many degrees of freedom more."""
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
        """The steps so far."""
        best = self.log_posterior.index(max(self.log_posterior))
        return SearchTrace(tuple(self.df), tuple(self.log_likelihood), tuple(self.log_posterior), best)


def look_up(block: RowBlock, region: Region, radices: tuple[int, ...], added: Array) -> tuple[Array, float]:
    """The row block's scores with the region's table, `added` (K, cells), and the log-likelihood of its classes."""
    scores = np.zeros((len(added), block.n_rows)) if block.state is None else block.state.copy()
    log_likelihood = 0.0
    for rows in block.slices(BLOCK):
        here = scores[:, rows]
        here += np.take(added, _cells(block, region, radices, rows), axis=1) if region else added
        true = np.take_along_axis(here, block.labels[rows].astype(np.intp)[np.newaxis], axis=0)[0]
        top = here.max(axis=0)
        logs = true - top - np.log(np.exp(here - top).sum(axis=0))
        log_likelihood += float(logs.sum() if block.weights is None else block.weights[rows] @ logs)
    return scores, log_likelihood


def _cells(block: RowBlock, region: Region, radices: tuple[int, ...], rows: slice) -> Index:
    return cell_numbers([block.codes[i][rows] for i in region], radices)


def log_priors(total: float, df: Array) -> Array:
    """-N df / (N - df - 1), minus infinity where df >= N - 1."""
    left = total - df - 1
    priors = np.full(df.shape, -np.inf)
    np.divide(-total * df, left, out=priors, where=left > 0)
    return priors


def log_prior(total: float, df: int) -> float:
    """The same of one model."""
    return float(log_priors(total, np.array([df], np.float64))[0])
