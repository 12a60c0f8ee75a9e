"""The degrees of freedom, log-likelihoods, log posteriors and bootstrap losses of the steps of a search for regions.

A step adds a region A to the model, and thereby one table over the cells of A to the scores of all rows. The log
posterior of the step combines the likelihood of the classes and the degrees of freedom:

    S[t, y] += D_A[cell_t, y],    D_A[v] = sum over R in A of dc_R ln P(v_R)
    log posterior = sum_t w_t ln softmax_y S[t, y] at y_t  -  N df / (N - df - 1)

Here dc is the change of a counting number (see `bncli.engine.kikuchi.model_paths`), and N the total weight. The
prior is from Jakulin & Rish 2006, equation 6; it is 0 if df >= N - 1. The search takes these steps, and so do the
parameter learners for regions from a file, so that their results agree to the last bit. Cost of a step: every row is
counted once and looked up once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.table_batches import MAX_ENTRIES
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.splits import units_of_several_rows
from bncli.engine.kernels.arrays import Array, Index, cell_numbers, distinct
from bncli.engine.kikuchi.model_paths import Region, changes_along, counting_changes, cover, score_table, subsets
from bncli.engine.structures.structure import Regions, SearchTrace
from bncli.watch import Progress, Watch, silent

BLOCK = 1 << 12
"""The number of rows processed at a time, so that their scores stay in the second-level cache."""
REGIONS_AT_A_TIME = 256
"""The number of regions whose occurring cells are found in one pass over the rows."""
DENSE = 8
"""With at most this many cells per row, a table of counts is faster than sorting the cells of the rows."""


def follow(
    counts: Counts,
    regions: Iterable[Region],
    theta: float,
    watch: Watch = silent,
    *,
    degrees_of_freedom: str = "conditional",
) -> SearchTrace:
    """Return the trace of a model to which `regions` are added in order; step 0 is the class alone.

    Raises BncliError if the table of a region has too many entries.
    """
    listed = list(regions)
    model = GrowingModel(counts, theta, listed, degrees_of_freedom=degrees_of_freedom)
    for done, region in enumerate(listed):
        watch(Progress(done, len(listed), "regions"))
        model.add(region)
    return model.trace()


class GrowingModel:
    """A model to which regions are added one by one, with the current scores of all rows.

    scores[b] is (K, rows of row block b); df, log_likelihood and log_posterior have an element for every step so far.
    `rule` computes how much sets add to df; df is never below K - 1, its value for the class alone. The regions `known`
    in advance are counted in one pass. Every region is counted from the rows, because a margin of a larger table may
    differ in the last bit if rows have weights.
    """

    def __init__(
        self, counts: Counts, theta: float, known: Iterable[Region] = (), *, degrees_of_freedom: str = "conditional"
    ) -> None:
        self.data, self.theta = counts.data, theta
        self.rule = DegreesOfFreedom(counts.data, degrees_of_freedom)
        self._counts = Counts(counts.data)
        self._counts.tables([(), *known])
        self.covered: set[Region] = set()
        self.regions: list[Region] = []
        self.df: list[int] = []
        self.log_likelihood: list[float] = []
        self.log_posterior: list[float] = []
        self.scores: list[Array] | None = None
        self._df = 0
        self.add(())

    def add(self, region: Region) -> list[Region]:
        """Add a region to the model; return its subsets that no region contained before, by size."""
        newly_covered = cover(self.covered, region)
        if region:  # the first step is the class alone
            self.regions.append(region)
        [table] = self._counts.tables([region])
        added = score_table(table, region, counting_changes(newly_covered), self.data.total_weight, self.theta)
        shape = table.shape[:-1]
        grown = self.data.map(look_up, region, shape, np.ascontiguousarray(added.T), states=self.scores)
        self.scores = [scores for scores, _ in grown]
        self._df += self.rule.added(newly_covered)
        self.df.append(max(self._df, self.data.n_labels - 1))
        self.log_likelihood.append(sum(gained for _, gained in grown))
        log_prior = log_priors(self.data.total_weight, np.array([self.df[-1]], np.float64))
        self.log_posterior.append(self.log_likelihood[-1] + float(log_prior[0]))
        return newly_covered

    def log_priors(self, added_df: Array) -> Array:
        """Return the log-priors of models with `added_df` (any shape) more degrees of freedom than the current one."""
        return log_priors(self.data.total_weight, np.maximum(self._df + added_df, self.data.n_labels - 1))

    def trace(self) -> SearchTrace:
        """Return the trace of the steps so far."""
        best = self.log_posterior.index(max(self.log_posterior))
        return SearchTrace(tuple(self.df), tuple(self.log_likelihood), tuple(self.log_posterior), best)


def look_up(block: RowBlock, region: Region, shape: tuple[int, ...], added: Array) -> tuple[Array, float]:
    """Return a block's scores with a region's table `added` (K, cells) added, and the log-likelihood of its labels."""
    scores = np.zeros((len(added), block.n_rows)) if block.state is None else block.state.copy()
    log_likelihood = 0.0
    for rows in block.slices(BLOCK):
        here = scores[:, rows]
        here += np.take(added, cell_numbers([block.codes[i][rows] for i in region], shape), axis=1) if region else added
        # the score of each row's own label
        true = np.take_along_axis(here, block.labels[rows].astype(np.intp)[np.newaxis], axis=0)[0]
        top = here.max(axis=0)
        logs = true - top - np.log(np.exp(here - top).sum(axis=0))
        log_likelihood += float(logs.sum() if block.weights is None else block.weights[rows] @ logs)
    return scores, log_likelihood


def log_priors(total: float, df: Array) -> Array:
    """Return -N df / (N - df - 1), or minus infinity if df >= N - 1."""
    left = total - df - 1
    priors = np.full(df.shape, -np.inf)
    np.divide(-total * df, left, out=priors, where=left > 0)
    return priors


class DegreesOfFreedom:
    """The degrees of freedom that a set of attributes adds to a model of regions when it becomes covered.

    With a number n_R for every region R of a region graph (`bncli.engine.kikuchi.model_paths`),

        df = sum over R of c_R n_R = sum over covered Q of u_Q,    u_Q = sum over R in Q of (-1)^|Q - R| n_R

        conditional         n_R = (cells of R with the class) - (cells of R)    Jakulin & Rish 2006, equation 7
        joint               n_R = (cells of R with the class) - 1               the same, equation 5
        structural-zeros    as conditional, over the cells that occur in rows   the same, section 6.3

    The class alone has u_Q = K - 1. For any other Q, let m_Q be the product of |X_i| - 1 over i in Q. Then u_Q is
    (K - 1) m_Q with `conditional` and K m_Q with `joint`. With structural zeros, a cell without training rows counts as
    impossible, and u_Q is counted from the rows.

    Conventions with structural zeros: the sum over a region graph with cycles may be below the true number, even below
    0, so a caller must use at least the number of the class alone. Regions whose tables would exceed MAX_ENTRIES have
    infinitely many degrees of freedom. Cost: every row is coded once per region.
    """

    def __init__(self, data: Dataset, kind: str = "conditional") -> None:
        self._cardinalities, k = data.schema.cardinalities, data.n_labels
        self._of_class, self._factor = k - 1, k if kind == "joint" else k - 1
        self._data, self._structural_zeros = data, kind == "structural-zeros"
        self._known: dict[Region, float] = {}  # n_R with structural zeros

    def added(self, newly_covered: Sequence[Region]) -> int:
        """Return the degrees of freedom that newly covered sets add; () is the class alone."""
        if not self._structural_zeros:
            products = (math.prod(self._cardinalities[i] - 1 for i in region) for region in newly_covered if region)
            return self._factor * sum(products) + self._of_class * (() in newly_covered)
        known = self._count_occurring({subset for region in newly_covered for subset in subsets(region)})
        return sum((-1) ** (len(q) - len(r)) * int(known[r]) for q in newly_covered for r in subsets(q))

    def of_subsets(self, sets: Index) -> Array:
        """Return u_Q for all subsets Q of `sets` (M, size), shape (M, 2^size).

        Bit p of a column's number is set if Q has the p-th attribute. The first column, the class alone, is not
        meaningful, since it is always covered.
        """
        size = sets.shape[1]
        pairs = [(p, q) for p, q in itertools.product(range(size), range(1 << size)) if q >> p & 1]
        if not self._structural_zeros:
            free = np.array(self._cardinalities, np.float64)[sets] - 1
            changes = np.full((len(sets), 1 << size), float(self._factor))
            for p, q in pairs:
                changes[:, q] *= free[:, p]
            return changes
        subsets = [[p for p in range(size) if q >> p & 1] for q in range(1 << size)]
        members = [[tuple(region[p] for p in chosen) for chosen in subsets] for region in sets.tolist()]
        known = self._count_occurring(set(itertools.chain.from_iterable(members)))
        changes = np.array([[known[region] for region in row] for row in members]).reshape(len(sets), 1 << size)
        # Möbius inversion, one attribute after the other: from n_R to the sums of (-1)^|Q - R| n_R. Infinity minus
        # infinity occurs if a region that is too large contains another one.
        with np.errstate(invalid="ignore"):
            for p, q in pairs:
                changes[:, q] -= changes[:, q ^ 1 << p]
        changes[np.isnan(changes)] = math.inf
        return changes

    def _count_occurring(self, regions: Iterable[Region]) -> dict[Region, float]:
        """Return n_R over the cells that occur, for these and all earlier regions; infinite if a table is too large."""
        k = self._data.n_labels
        missing = sorted(set(regions) - self._known.keys())
        for start in range(0, len(missing), REGIONS_AT_A_TIME):
            together = missing[start : start + REGIONS_AT_A_TIME]
            shapes = {region: tuple(self._cardinalities[i] for i in region) for region in together}
            self._known |= dict.fromkeys(shapes, math.inf)
            small = {region: shape for region, shape in shapes.items() if math.prod(shape) * k <= MAX_ENTRIES}
            by_block = self._data.map(_occurring_cells, small, k)
            for region, *parts in zip(small, *by_block, strict=True):
                # numbers of cells with the class; without it, the class being the last digit, after dividing by K
                cells = distinct(np.concatenate(parts))
                self._known[region] = float(len(cells) - len(distinct(cells // k)))
        return self._known


def _occurring_cells(block: RowBlock, shapes: dict[Region, tuple[int, ...]], n_labels: int) -> list[Index]:
    """Return, for each region, the numbers of the cells that occur, with the class as the last digit."""
    labels = block.labels.astype(np.intp)
    occurring = []
    for region, shape in shapes.items():
        cells = cell_numbers([block.codes[i] for i in region], shape) * n_labels + labels if region else labels
        n_cells = math.prod(shape) * n_labels
        dense = n_cells <= DENSE * block.n_rows
        occurring.append(np.flatnonzero(np.bincount(cells, minlength=n_cells)) if dense else distinct(cells))
    return occurring


class Resampling(NamedTuple):
    """The number of bootstrap resamples, and the seed of the draws."""

    resamples: int
    seed: int = 0

    def draw(self, data: Dataset) -> Iterator[Dataset]:
        """Yield the resamples, drawn with replacement.

        - rows without weights: N draws from the N rows, with equal probabilities
        - rows with weights: the number of draws is the total weight, rounded but at least 1, and probabilities are
          proportional to the weights. Each drawn row occurs once, with a new weight proportional to the number of times
          it was drawn; the total weight stays the same
        - units of several rows: n draws from the n units, with equal probabilities, each with all of its rows and their
          weights
        """
        units = units_of_several_rows(data.split_by)
        for number in range(self.resamples):
            rng = np.random.default_rng((self.seed, number))
            if units is not None:
                # a unit that is drawn several times has its rows several times
                n_units = int(units.max()) + 1
                times = np.bincount(rng.choice(n_units, n_units), minlength=n_units)
                yield data.take(np.repeat(np.arange(data.n_rows), times[units]))
                continue
            if data.weights is None:
                yield data.take(rng.choice(data.n_rows, data.n_rows))
                continue
            n_drawn = max(round(data.total_weight), 1)
            counts = rng.multinomial(n_drawn, data.weights / data.weights.sum())
            rows = np.flatnonzero(counts)
            yield replace(data.take(rows), weights=np.asarray(counts[rows] * (data.total_weight / n_drawn), np.float64))


def with_log_losses(
    data: Dataset, regions: Regions, theta: float, resampling: Resampling, watch: Watch = silent
) -> Regions:
    """Return the regions with bootstrap log-losses added to their trace; `data` must have no missing values."""
    assert regions.trace is not None
    losses = bootstrap_log_losses(data, regions.regions, theta, resampling, watch)
    options = {**regions.options, "bootstrap": resampling.resamples, "seed": resampling.seed}
    return replace(regions, trace=replace(regions.trace, bootstrap_log_loss=losses), options=options)


def bootstrap_log_losses(
    data: Dataset, regions: Sequence[Region], theta: float, resampling: Resampling, watch: Watch = silent
) -> tuple[float, ...]:
    """Return the bootstrap log-loss of the class alone and of every step, in nats; `data` must have no missing values.

    The submodels of every step are estimated from a resample, and the step's log-loss is summed over the training rows,
    which relate to the resample as new rows relate to the training rows:

        loss_s = mean over resamples D* of  - sum_t w_t ln P(y_t | x_t, M_s, D*)

    If the prior is right, -loss_s follows the log posterior of the steps (Jakulin & Rish 2006, section 6.3 and figure
    1; they sum over the rows of another resample, which are, on average, the training rows). So the loss checks the
    prior without using it. Cost per step and resample: every row is counted once and looked up once.
    """
    steps: list[Region] = [(), *regions]
    total = np.zeros(len(steps))
    for number, resample in enumerate(resampling.draw(data)):
        watch(Progress(number, resampling.resamples, "resamples"))
        losses: list[float] = []
        states: list[Array] | None = None
        for region, table, changes in zip(steps, Counts(resample).tables(steps), changes_along(regions), strict=True):
            added = score_table(table, region, changes, resample.total_weight, theta)
            grown = data.map(look_up, region, table.shape[:-1], np.ascontiguousarray(added.T), states=states)
            states = [scores for scores, _ in grown]
            losses.append(-sum(gained for _, gained in grown))
        total += np.array(losses)
    return tuple((total / resampling.resamples).tolist())
