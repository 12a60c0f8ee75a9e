"""The penalty, shrinkage and arcs, chosen by cross-validation within the training rows.

**Penalty.** With p_f(lambda) the parameters of highest penalised likelihood on the rows outside fold f,

    loss(lambda) = - sum over folds f of CLL(rows of fold f; p_f(lambda)) / N

is computed for the lambdas of GRID, from large to small, each in all FOLDS folds before the next. N is the weight of
the held-out rows. For interactions with MANY_UNITS_OF_REGIONS units or more (rows, or groups of rows that belong
together), only FEW_FOLDS folds are used; with MANY_ROWS rows or more, the grid also has larger lambdas (REGIONS_GRID).
The lambda of lowest loss is chosen; losses that differ by at most the fraction TIE are tied, and then the larger lambda
is chosen. From the third lambda on, the path ends when the loss exceeds the lowest by more than the fraction HIGHER
plus SLACK nats, where SLACK matters for losses near 0, or when PATIENCE lambdas in a row have not lowered it by more
than the fraction TIE. (Measured on 567 paths on 58 tables: paths to a loss 8 % above the lowest, or to the end of the
grid, find the same lambda, with a quarter more fits, which are the slowest ones. On tables with 2,000 rows, two folds
instead of five changed the log-loss by -0.5 %; with 1,000 rows, by +0.4 %.)

A whole path costs little more than a few of its fits. It starts at the center, the optimum for an infinite penalty. The
search for the third and later optima starts from the point extrapolated from the last two,

    p(lambda_k+1) ~ 2 p(lambda_k) - p(lambda_k-1),

since p is smooth in ln lambda. Each search has a preconditioner made where it starts, and a loose tolerance: the
losses have errors of about 1 in 1,000, which are smaller than the differences between them.

With very many rows, the search for interactions leaves out a tenth of them or more (`interactions.searched_rows`).
Then all fits use the structure that it found. Some of the rows that the search left out are held out once
(`split_outside`); they choose the penalty of fits to at most MOST_ROWS_OF_SPLIT of the other rows (`fold_of_split`).
(Measured on 66,000 rows and 113,000 parameters: a penalty chosen with a quarter of the rows is too large, which costs
5 % in log-loss.) The reported loss comes from a model fitted to all training rows of the split; its fit starts from the
tables of the sample, and the final fit starts from its tables. (Measured on 100,000 rows with 30 attributes: a search
in every fold and fits from zero take twice as long, for the same log-loss.)

Conventions: every fold learns its own cuts and levels, its own structure if that is a network, and its own basis of the
parameters (the generative probabilities of weighted parameters); only cuts made by hand, and regions with their cuts,
are those of all training rows. If there are more than ALL_ROWS rows, a stratified sample of a quarter of them is
used (at least ALL_ROWS, at most MAX_ROWS). Rows of one unit count as one observation wherever the number of held-out
rows decides how far a choice can be trusted. lambda is the inverse variance of a prior and is relative to the summed
likelihood, so the chosen lambda is also used for all rows. (Measured: with forty times the rows the best lambda falls
by up to a factor of ten, and keeping it costs 2 % of the log-loss.) The choice does not depend on the optimizer of the
final fit. If there is only one unit, none can be held out, and lambda is UNTRIED. With few held-out rows, n, no lambda
below (FLOOR_ROWS / n)^3 is tried: two dozen of them may all be classified correctly by luck, and then smaller penalties
always look better.

Monotonicity constraints (`bncli.engine.parameters.monotone`) are ignored along the path: lambda is chosen by fits
without them, but the reported loss at the chosen lambda comes from fits that satisfy them. (Measured on seven tables
with three learners: the log-loss under constraints is 0.07 % higher than with a path that satisfies them, and the same
in two thirds of the cases.)

**Many classes.** With more than MANY_CLASSES classes every fit takes much longer, and each held-out row is informative
about the tables of all classes. So only the first fold is held out, every second lambda of GRID is tried, and a path
ends at the first lambda that is not better. The path of a network with more arcs also ends if, at the penalty that was
best with fewer arcs, its loss exceeds theirs by more than the fraction WORSE plus SLACK nats. The sample has at
least ROWS_PER_CLASS rows per class on average, if the table has that many, but no more than MAX_ROWS in all: with fewer
rows, numeric attributes have fewer cuts, and then another penalty is best.

**Shrinkage** protects models of few rows: tables are shrunk towards the class frequencies by a factor a. With S the
scores of the tables at the chosen penalty, f the class frequencies from the class counts m, and 0 < a <= 1,

    S_a[x, y] = a S[x, y] + (1 - a) ln f[y],    f[y] = (m[y] + 1) / (sum of m + K)

so the log-odds are shrunk towards the log-odds of the class frequencies, and the result is still one set of tables. The
factor is the member of FACTORS with the highest

    sum over folds of CLL(rows held out; S_a) - d a,    d = DISCOUNT min(1, DISCOUNT_ROWS / n)

with scores and frequencies from the other rows of each fold (ties: the largest factor). The last term is the logarithm
of a prior that prefers the frequencies. It corrects for the optimism of the chosen penalty, which is the best of many
on the same rows; without it, factors are too large. If the tables separate the classes almost perfectly, the term would
outweigh the possible gain, so no factor may raise the loss above the lowest by more than the fraction RISE.
Conventions: with more than FEW_ROWS held-out rows nothing is shrunk, since the penalty is then chosen well enough.
Parameters that are probabilities of a network are not shrunk either, since they would no longer be probabilities. Cost:
a pass over the held-out rows for each factor.

**Arcs.** A structure search always finds arcs. On few rows, or if a parent has many values, they often make
predictions of the class worse. So networks with different sets of arcs between attributes are compared on the same
folds, each with its own path of penalties:

    class      the class alone: its frequencies
    none       the class is the only parent of each attribute
    supported  the first m parents of each attribute, in their order, with the m of highest BIC,
                   ll(i | class, first m parents) - (ln N) / 2 * (r_i - 1) q_m K,    m = 0, 1, ...
    all        the arcs that the search found

A network replaces one with fewer arcs if the log-likelihood of all held-out rows is higher by more than EVIDENCE nats,
which are odds of 3 to 1. The search is repeated in every fold, on the rows outside it, because arcs found with the help
of the held-out rows would have an advantage. Conventions: with MANY_ROWS held-out rows or more, the networks are
compared on the first FEW_FOLDS folds, and all folds choose the penalty of the chosen network. `supported` is compared
if it has arcs, but no more than the fraction FEW of all, because a network with nearly the same arcs has nearly the
same loss. The path of a network begins near the penalty that was best with fewer arcs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import Dataset, encode_attributes, encode_labels
from bncli.engine.data.splits import RowSplit, SplitBy, count_units, inner_splits, stratified_sample
from bncli.engine.kernels.arrays import Array, Codes, Index, Integers
from bncli.engine.kernels.passes import MANY_CLASSES
from bncli.engine.model import ARC_SETS, ChosenPenalty, Parameters, Shrinkage, Tables, TriedArcs, TriedPenalty
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import Likelihood, OptimizerSettings, ParameterSpace, Space, find_optimum_from
from bncli.engine.structures.scores import bic
from bncli.engine.structures.structure import Dag
from bncli.watch import Progress, Watch, silent

GRID = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
REGIONS_GRID = (3000.0, 1000.0, *GRID)
"""The grid for interactions with many rows, which need a large penalty."""
FOLDS = 5
AHEAD = 2
"""A path begins this many steps of GRID before the penalty that was best for a similar space."""
ALL_ROWS, MAX_ROWS = 12_000, 50_000
MOST_ROWS_OF_SPLIT = 1 << 16
"""The maximum number of training rows of the fits that choose the penalty on a single split."""
ROWS_PER_CLASS = 128
"""With many classes, the minimum mean number of rows per class in the sample, unless that makes more than MAX_ROWS."""
WHOLE_ROWS, MEASURED_ROWS, TENTH = 100_000, 500_000, 10
"""With more than WHOLE_ROWS rows, a tenth of a sample of at most MEASURED_ROWS is held out to compute the loss."""
MOST_CELLS = 1 << 24
"""All raw rows are kept only if they have at most this many values (rows times columns)."""
HIGHER, SLACK, PATIENCE = 0.01, 1e-3, 2
WORSE = 0.08
TIE = 1e-4
UNTRIED = 1.0
FLOOR_ROWS = 20
TOLERANCE, MAX_ITERATIONS = 1e-3, 100
FACTORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The factors of shrinkage; all are above 0, so that the model still distinguishes rows."""
FEW_ROWS = 300
DISCOUNT, DISCOUNT_ROWS = 2.0, 50
RISE = 0.25
FEW = 0.75
MANY_ROWS, FEW_FOLDS = 10_000, 2
MANY_UNITS_OF_REGIONS = 2_000
EVIDENCE = math.log(3.0)

SpaceOf = Callable[[Counts], Space]


@dataclass(frozen=True)
class HeldOutFold:
    """One fold: the counts of its training rows, and its held-out rows.

    `paths` stores the paths of the fold, keyed by the prefix of their messages and their first penalty, so that a
    choice on more folds repeats no fit; None means that no path is stored.
    """

    counts: Counts
    rows: Dataset
    paths: dict[tuple[str, float], _FoldPath] | None = field(default=None, compare=False)


def penalty_path(
    folds: Sequence[HeldOutFold],
    space_of: SpaceOf,
    *,
    center: float,
    near: float | None = None,
    least: float = math.inf,
    shrink: bool = False,
    grid: Sequence[float] = GRID,
    watch: Watch = silent,
    prefix: str = "",
    tables: list[Array] | None = None,
) -> ChosenPenalty:
    """Choose the lambda of lowest held-out loss in `grid`, which is in descending order.

    Without folds, return the only penalty of the grid, or UNTRIED if there are several.

    - space_of: returns the parameter space for the counts of a fold
    - center: the point towards which the penalty shrinks parameters
    - near: a penalty that was best for a similar space; the path begins AHEAD steps before it, and again at the top if
      its first penalty turns out to be the best
    - least: the loss of that similar space; the path ends if the loss at `near` exceeds it by the fraction WORSE and
      SLACK
    - shrink: whether tables may be shrunk if there are few rows
    - prefix: the beginning of the progress messages
    - tables: a list that receives the tables (K, n_cells) of the first fold at the chosen penalty, without shrinkage
    """
    if not folds:
        return ChosenPenalty(UNTRIED if len(grid) > 1 else grid[0], ())
    n_units, unit_share = _count_units(folds)
    shrink = shrink and n_units <= FEW_ROWS
    ahead = AHEAD
    if folds[0].rows.n_labels > MANY_CLASSES:
        grid, ahead = grid[::AHEAD], 1
    # the next statement drops penalties from the end of the grid only, so `first` refers to the same penalty
    first = 0 if near is None else max(grid.index(near) - ahead, 0)
    grid = tuple(penalty for penalty in grid if penalty >= (FLOOR_ROWS / n_units) ** 3) or grid[:1]
    path_of = partial(_path_of, space_of=space_of, center=center, keeps=shrink or tables is not None)
    paths = [path_of(fold, key=(prefix, grid[first])) for fold in folds]
    tried = _follow(paths, grid[first:], watch, prefix, near, least)
    # the best may lie before the place where the path began: start again from the largest
    if first and best_of(tried) == grid[first] and grid[first] != near:
        paths = [path_of(fold, key=(prefix, grid[0])) for fold in folds]
        tried = _follow(paths, grid, watch, prefix)
    best, weight = best_of(tried), sum(path.held_out.data.total_weight for path in paths)
    if any(path.free is not path.space for path in paths):
        # the path ignores directions, but the reported loss is that of fits that keep them
        loss = 0.0 - sum(path.fit(path.space, best)[1] for path in paths) / weight
        tried = [TriedPenalty(best, loss) if trial.penalty == best else trial for trial in tried]
    if tables is not None:
        tables.append(paths[0].cells[best])
    shrinkage = None
    if shrink:
        totals = []
        for factor in FACTORS:
            cll = 0.0
            for path in paths:
                cells = shrink_cells(path.cells[best], path.space.likelihood.data.class_counts, factor)
                cll += path.held_out.value_and_gradient(cells)[0]
            totals.append(unit_share * cll)
        shrinkage = choose_factor(totals, n_units, unit_share * weight)
    return ChosenPenalty(best, tuple(tried), shrinkage=shrinkage)


def _path_of(fold: HeldOutFold, space_of: SpaceOf, center: float, keeps: bool, key: tuple[str, float]) -> _FoldPath:
    """Return the path of a fold that begins at the penalty key[1]: the stored path, or a new one."""
    if fold.paths is None:
        return _FoldPath.of(fold, space_of, center, keeps)
    if key not in fold.paths:
        fold.paths[key] = replace(_FoldPath.of(fold, space_of, center, keeps=True), forgets=False)
    return fold.paths[key]


def tables_of_folds(folds: Sequence[HeldOutFold], chosen: ChosenPenalty, prefix: str) -> list[Tables]:
    """Return the tables of each fold at the chosen penalty and shrinkage.

    `chosen` is the result of `penalty_path` on these folds, which store their paths, with the same `prefix`.
    """
    tables = []
    for fold in folds:
        assert fold.paths is not None
        own = (path for (word, _), path in fold.paths.items() if word == prefix and chosen.penalty in path.cells)
        tables.append(next(own).tables(chosen))
    return tables


def _count_units(folds: Sequence[HeldOutFold]) -> tuple[int, float]:
    """Return the number of held-out units, and this number divided by the number of held-out rows."""
    n_rows = sum(fold.rows.n_rows for fold in folds)
    n_units = sum(count_units(fold.rows.n_rows, fold.rows.split_by) for fold in folds)
    return n_units, n_units / n_rows


def best_of(tried: list[TriedPenalty]) -> float:
    """Return the penalty with the lowest loss; if losses tie, up to the fraction TIE, return the first one tried."""
    lowest = min(trial.log_loss for trial in tried)
    # GRID falls, so the first that ties is the largest
    return next(trial.penalty for trial in tried if trial.log_loss <= lowest * (1 + TIE))


def _follow(
    paths: Sequence[_FoldPath],
    grid: Sequence[float],
    watch: Watch,
    prefix: str,
    near: float | None = None,
    least: float = math.inf,
) -> list[TriedPenalty]:
    """Return the losses along the grid until the path ends; `near` and `least` are as in `penalty_path`."""
    has_many_classes = paths[0].held_out.data.n_labels > MANY_CLASSES
    weight = sum(path.held_out.data.total_weight for path in paths)
    tried: list[TriedPenalty] = []
    lowest, n_not_lower = math.inf, 0
    for penalty in grid:
        cll = 0.0
        for f, path in enumerate(paths):
            detail = f"{prefix}penalty {penalty:g}, fold {f + 1} of {len(paths)}"
            watch(Progress(len(tried) + f / len(paths), len(grid), detail))
            cll += path.advance(penalty)
        # 0.0 - x instead of -x, so that a loss of 0 is never written as -0
        loss = 0.0 - cll / weight
        tried.append(TriedPenalty(penalty, loss))
        n_not_lower = 0 if loss < lowest * (1 - TIE) else n_not_lower + 1
        lowest = min(lowest, loss)
        # the tables at penalties that will not be chosen are dropped
        lost = [trial.penalty for trial in tried if trial.log_loss > lowest * (1 + TIE)]
        for path, other in itertools.product(paths, lost):
            if path.forgets:
                path.cells.pop(other, None)
        if has_many_classes and best_of(tried) != penalty:
            break
        is_similar_better = penalty == near and loss > least * (1 + WORSE) + SLACK
        # SLACK: if classes are almost certain, the fraction HIGHER of a loss is less than its statistical error
        is_far_above = len(tried) > PATIENCE and loss > lowest * (1 + HIGHER) + SLACK
        if is_similar_better or is_far_above or n_not_lower >= PATIENCE:
            break
    return tried


@dataclass
class _FoldPath:
    """The path of one fold: the parameter space of its training rows, and the likelihood of its held-out rows.

    `free` is the space without monotonicity constraints. `optima` are the last two optima, `clls` the results of
    `advance`, keyed by penalty. If `keeps`, `cells` holds the tables of every penalty that can still be chosen or, if
    `forgets` is False, of all penalties.
    """

    space: Space
    free: Space
    held_out: Likelihood
    center: float
    keeps: bool
    forgets: bool = True
    optima: list[Array] = field(default_factory=list)
    clls: dict[float, float] = field(default_factory=dict)
    cells: dict[float, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, fold: HeldOutFold, space_of: SpaceOf, center: float, keeps: bool) -> _FoldPath:
        space = free = space_of(fold.counts)
        if isinstance(space, ParameterSpace) and space.monotone is not None:
            free = replace(space, monotone=None)
        return cls(space, free, space.on(fold.rows), center, keeps)

    def advance(self, penalty: float) -> float:
        """Fit with the next penalty, without constraints; return the conditional log-likelihood of held-out rows.

        For a penalty that has already been fitted, return the stored result.
        """
        if penalty in self.clls:
            return self.clls[penalty]
        start = self.optima[-1] if self.optima else None
        if len(self.optima) > 1:
            # GRID is about even in ln lambda, so the next optimum is about as far away as the last step was long
            before, last = self.optima
            start = 2.0 * last - before
        point, cll = self.fit(self.free, penalty, start)
        self.optima, self.clls[penalty] = [*self.optima[-1:], point], cll
        return cll

    def fit(self, space: Space, penalty: float, start: Array | None = None) -> tuple[Array, float]:
        """Return the optimum in a space, and the conditional log-likelihood of held-out rows, without shrinkage.

        The optimizer starts from `start`, or from the center of the penalty.
        """
        if start is None:
            start = np.full(space.coordinates.n_parameters, self.center)
        settings = OptimizerSettings("zero", penalty, self.center, "lbfgs", TOLERANCE, MAX_ITERATIONS)
        point = find_optimum_from(space, settings, start).point
        cells = space.cells(point)
        if self.keeps:
            self.cells[penalty] = cells
        return point, self.held_out.value_and_gradient(cells)[0]

    def tables(self, chosen: ChosenPenalty) -> Tables:
        """Return the tables at the chosen penalty and shrinkage."""
        factor = 1.0 if chosen.shrinkage is None else chosen.shrinkage.factor
        cells = shrink_cells(self.cells[chosen.penalty], self.space.likelihood.data.class_counts, factor)
        return Tables.of_cells(cells, self.space.likelihood.families)


def choose_factor(log_likelihoods: Sequence[float], n_rows: int, weight: float) -> Shrinkage | None:
    """Choose the shrinkage, given the CLL of held-out rows for each of FACTORS; return None for a factor of 1.

    `n_rows` and `weight` are the number and the weight of all held-out rows, with the rows of one unit counted as one.
    """
    discount = DISCOUNT * min(1.0, DISCOUNT_ROWS / n_rows)
    # log-likelihoods are negative, so this bound is lower than the highest
    least = (1.0 + RISE) * max(log_likelihoods)
    pairs = zip(FACTORS, log_likelihoods, strict=True)
    scores = {factor: cll - discount * factor for factor, cll in pairs if cll >= least}
    best = max(scores, key=lambda factor: (scores[factor], factor))
    return None if best == 1.0 else Shrinkage(best, 0.0 - log_likelihoods[FACTORS.index(best)] / weight)


def shrink_cells(cells: Array, class_counts: Array, factor: float) -> Array:
    """Shrink tables (K, n_cells) towards the class frequencies by a factor; if it is 1, return the same array."""
    if factor == 1.0:
        return cells
    shrunk = factor * cells
    shrunk[:, 0] += (1.0 - factor) * log_frequencies(class_counts)
    return shrunk


def log_frequencies(class_counts: Array) -> Array:
    """Return the logarithms of smoothed class frequencies, ln f (K,), from class counts (K,)."""
    return np.asarray(np.log((class_counts + 1.0) / (class_counts.sum() + len(class_counts))))


def shrink_parameters(parameters: Parameters, counts: Counts, shrinkage: Shrinkage) -> Parameters:
    """Return the parameters with shrunk tables, and with the CLL of the training rows under these tables."""
    assert isinstance(parameters.predictor, Tables)
    families = parameters.predictor.families
    cells = shrink_cells(parameters.predictor.cells, counts.class_counts(), shrinkage.factor)
    cll = conditional_likelihood(counts.data, families).value_and_gradient(cells)[0]
    return replace(parameters, predictor=Tables.of_cells(cells, families), cll=cll)


def held_out_folds(data: Dataset, seed: int, which: slice = slice(None)) -> list[HeldOutFold]:
    """Return folds of all rows or, if there are many, of a sample, with the cuts and levels of the data.

    `which` selects some of the folds. The list is empty if there is only one unit.
    """
    data = data.take(_sampled_rows(data.labels, seed, data.split_by))
    splits = _draw_splits(data.labels, seed, data.split_by)[which]
    return [HeldOutFold(Counts(data.take(others)), data.take(rows)) for others, rows in splits]


def folds_with_own_cuts(
    sample: Columns, recode: Callable[[Columns], Dataset], seed: int, which: slice = slice(None)
) -> list[HeldOutFold]:
    """Return the folds of a sample, each with cuts and levels learned again; `recode` learns them and encodes rows.

    `which` selects some of the folds. Cuts depend on the class, so the loss of held-out rows would be too low if these
    rows took part in the choice.
    """
    assert sample.label is not None
    splits = _draw_splits(sample.label.codes, seed, sample.split_by)[which]
    return [fold_of_columns(sample.take(others), sample.take(rows), recode) for others, rows in splits]


def fold_of_columns(training: Columns, held_out: Columns, recode: Callable[[Columns], Dataset]) -> HeldOutFold:
    """Return a fold with cuts and levels learned from its training rows; `recode` learns them and encodes rows."""
    data = recode(training)
    return HeldOutFold(Counts(data), _encode_held_out(data, held_out))


def with_recut_rows(data: Dataset, columns: Columns, recode: Callable[[Columns], Dataset], seed: int) -> Dataset:
    """Return `data` with `Dataset.recut`: per fold, all rows encoded with the cuts and levels of its training rows."""
    folds = []
    for split in inner_splits(data.labels, FOLDS, seed, columns.split_by):
        training = recode(columns.take(split[0]))
        folds.append((_encode_held_out(training, columns), split))
    return replace(data, recut=tuple(folds))


def _encode_held_out(data: Dataset, columns: Columns) -> Dataset:
    """Return rows encoded with the schema of `data`.

    A value without a code counts as missing if missing values are marginalized, and otherwise as the most frequent one.
    """
    schema = data.schema
    codes: list[Codes] = [np.broadcast_to(np.zeros(1, np.uint8), columns.n_rows)] * len(schema.attributes)
    encoded = encode_attributes(columns, schema, schema.informative).codes
    for i, own in zip(schema.informative, encoded, strict=True):
        # codes beyond the levels: missing, or not among the levels of `data`
        unknown = own >= schema.attributes[i].cardinality
        if not schema.marginalizes and unknown.any():
            own[unknown] = int(np.argmax(schema.attributes[i].frequencies))
        codes[i] = own
    labels = encode_labels(columns, schema)
    return Dataset(schema, tuple(codes), labels, columns.weights, data.threads, columns.split_by)


def sample_of(columns: Columns, seed: int) -> Columns:
    """Return the raw rows that take part in cross-validation: all rows or, if there are many, a stratified sample."""
    assert columns.label is not None
    rows = _sampled_rows(columns.label.codes, seed, columns.split_by)
    return columns if len(rows) == columns.n_rows else columns.take(rows)


def _sampled_rows(labels: Integers, seed: int, by: SplitBy | None = None) -> Index:
    return stratified_sample(labels, most_rows_to_choose(len(labels), int(labels.max()) + 1), seed, by)


def most_rows_to_choose(n_rows: int, n_labels: int) -> int:
    """Return the maximum number of rows that take part in cross-validation."""
    of_classes = ROWS_PER_CLASS * n_labels if n_labels > MANY_CLASSES else 0
    return max(ALL_ROWS, min(max(n_rows // 4, of_classes), MAX_ROWS))


def splits_to_measure(
    labels: Integers, seed: int, by: SplitBy | None = None, *, is_slow: bool = False
) -> list[RowSplit]:
    """Return the splits (training rows, held-out rows) on which the log-loss of the chosen settings is computed.

    These are folds of all rows or, with more than WHOLE_ROWS rows, one split that holds out a tenth of at most
    MEASURED_ROWS rows. Only one fold is used with more than MANY_CLASSES classes, or if learning is slow and there are
    more than ALL_ROWS rows. The list is empty if no row can be held out.
    """
    if len(labels) <= WHOLE_ROWS:
        splits = _draw_splits(labels, seed, by)
        return splits[:1] if is_slow and len(labels) > ALL_ROWS else splits
    drawn = stratified_sample(labels, MEASURED_ROWS, seed, by)
    splits = inner_splits(labels[drawn], TENTH, seed, None if by is None else by.take(drawn))
    return [(drawn[others], drawn[rows]) for others, rows in splits[:1]]


def split_outside(searched: Index, labels: Integers, seed: int, by: SplitBy | None = None) -> RowSplit | None:
    """Return a split that holds out only rows that a search has not used, given the rows that it has used.

    The number of held-out rows is the same as in a split of `splits_to_measure`, or lower if the search left out fewer
    rows. Return None if rows have times (the last rows must then be held out), if the search left out less than a tenth
    of the rows, or if the held-out rows would share a unit with other rows.
    """
    n_rows = len(labels)
    unused = np.setdiff1d(np.arange(n_rows), searched, assume_unique=True)
    if (by is not None and by.times is not None) or len(unused) < max(1, n_rows // TENTH):
        return None
    n_measured = n_rows if n_rows <= WHOLE_ROWS else min(n_rows, MEASURED_ROWS)
    # the share of `splits_to_measure`: a fold, or a tenth with many rows
    n_held_out = n_measured // (FOLDS if n_rows <= WHOLE_ROWS else TENTH)
    rows = unused[stratified_sample(labels[unused], n_held_out, seed, None if by is None else by.take(unused))]
    others = np.setdiff1d(np.arange(n_rows), rows, assume_unique=True)
    if by is not None and by.units is not None and len(np.intersect1d(by.units[rows], by.units[others])):
        return None
    by = None if by is None else by.take(others)
    return others[stratified_sample(labels[others], n_measured - len(rows), seed, by)], rows


def fold_of_split(data: Dataset, split: RowSplit, seed: int) -> HeldOutFold:
    """Return the fold that chooses the penalty on the held-out rows of a split, from a sample of the other rows."""
    others, rows = split
    by = None if data.split_by is None else data.split_by.take(others)
    sampled = stratified_sample(data.labels[others], MOST_ROWS_OF_SPLIT, seed, by)
    return HeldOutFold(Counts(data.take(others[sampled])), data.take(rows))


def is_measured_as_read(n_rows: int, n_attributes: int) -> bool:
    """Return whether cuts are learned again to compute the held-out loss, which requires all raw rows."""
    return n_rows <= WHOLE_ROWS and n_rows * (n_attributes + 1) <= MOST_CELLS


def rows_to_keep(columns: Columns, seed: int) -> Columns:
    """Return the raw rows that learning needs: all rows, or the sample that chooses a penalty."""
    whole = is_measured_as_read(columns.n_rows, len(columns.attributes))
    return columns if whole else sample_of(columns, seed)


def _draw_splits(labels: Integers, seed: int, by: SplitBy | None) -> list[RowSplit]:
    """Return FOLDS folds; only one if there are more than MANY_CLASSES classes, none if there is only one unit."""
    splits = inner_splits(labels, FOLDS, seed, by)
    return splits[:1] if splits and labels.max() >= MANY_CLASSES else splits


def held_out_splits(data: Dataset, seed: int, n_folds: int = FOLDS) -> list[RowSplit]:
    """Return the first `n_folds` splits that `held_out_folds` uses, as indices of rows of the data."""
    taken = _sampled_rows(data.labels, seed, data.split_by)
    by = None if data.split_by is None else data.split_by.take(taken)
    splits = _draw_splits(data.labels[taken], seed, by)[:n_folds]
    return [(taken[others], taken[rows]) for others, rows in splits]


def base_of_splits(data: Dataset, splits: Sequence[RowSplit]) -> float | None:
    """Return the log-loss of the class frequencies on the held-out rows, or None if there are no splits."""
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    counts = [
        [np.bincount(data.labels[part], weights[part], data.n_labels).astype(np.float64) for part in split]
        for split in splits
    ]
    return base_log_loss(counts) if counts else None


def base_log_loss(folds: Sequence[Sequence[Array]]) -> float:
    """Return the mean log-loss of the class frequencies, from the class counts (K,) of training and held-out rows.

        - sum over folds f and classes y of held_out_f(y) ln [ (n_f(y) + 1) / (n_f + K) ] / sum of all held_out_f(y)

    The added 1 keeps it finite if all rows of a class are held out.
    """
    loss = sum(float(held_out @ log_frequencies(n)) for n, held_out in folds)
    return 0.0 - loss / sum(float(held_out.sum()) for _, held_out in folds)


Search = Callable[[Counts], Dag]
ArcSpace = Callable[[Counts, Dag], Space]
PathOf = Callable[..., ChosenPenalty]
"""`penalty_path` with all arguments given except `folds`, `space_of`, `near`, `least` and `prefix`."""


def choose_arcs(
    counts: Counts,
    structure: Dag,
    search: Search,
    space_of: ArcSpace,
    *,
    folds: Sequence[HeldOutFold],
    path: PathOf,
) -> tuple[str, ChosenPenalty]:
    """Choose the arcs of `structure` by held-out rows; return one of ARC_SETS, and the penalty chosen with it.

    `search` is the method that found `structure` in `counts`, `space_of` returns the parameter space for counts and a
    network, and `path` chooses its penalty on the folds (`penalty_path`).
    """
    networks = competing_networks(counts, structure)
    judges = folds if sum(fold.rows.n_rows for fold in folds) < MANY_ROWS else folds[:FEW_FOLDS]
    structures = {id(fold.counts): search(fold.counts) for fold in folds}
    chosen: dict[str, ChosenPenalty] = {}
    near: float | None = None
    least = math.inf
    for word in networks:
        chosen[word] = _path_of_arcs(word, structures, space_of, judges, path, near, least)
        # the best penalty of the class alone is no guide to that of tables
        near = None if word == "class" else chosen[word].penalty
        if near is not None and counts.data.n_labels > MANY_CLASSES:
            least = min(least, loss_of(chosen[word]))
    tried = tuple(
        TriedArcs(word, networks[word].n_arcs, chosen[word].penalty, loss_of(chosen[word])) for word in chosen
    )
    best = best_arcs(tried, sum(fold.rows.total_weight for fold in judges) * _count_units(judges)[1])
    if len(judges) < len(folds):
        chosen[best.arcs] = _path_of_arcs(best.arcs, structures, space_of, folds, path, best.penalty)
    return best.arcs, replace(chosen[best.arcs], arcs=tried)


def naive_bayes_loss(
    search: Search, space_of: ArcSpace, *, folds: Sequence[HeldOutFold], path: PathOf, near: float
) -> float:
    """Return the log-loss of held-out rows, in nats per row, of the network without arcs between attributes.

    `near` is the penalty that is best with the arcs; the other arguments are as in `choose_arcs`.
    """
    structures = {id(fold.counts): search(fold.counts) for fold in folds}
    return loss_of(_path_of_arcs("none", structures, space_of, folds, path, near))


def loss_of(chosen: ChosenPenalty) -> float:
    """Return the log-loss at the chosen penalty, or 0 if no penalty was tried."""
    return next((trial.log_loss for trial in chosen.tried if trial.penalty == chosen.penalty), 0.0)


def best_arcs(tried: Sequence[TriedArcs], weight: float) -> TriedArcs:
    """Return the chosen set of arcs; a set replaces an earlier one only if it is better by more than EVIDENCE nats.

    `tried` is in ascending order of arcs; `weight` is the weight of all held-out rows.
    """
    best = tried[0]
    for trial in tried[1:]:
        if weight * (best.log_loss - trial.log_loss) > EVIDENCE:
            best = trial
    return best


def competing_networks(counts: Counts, structure: Dag) -> dict[str, Dag]:
    """Return the networks that are compared, keyed by name, from few arcs to many."""
    networks = {word: subset_of_arcs(word, counts, structure) for word in ARC_SETS}
    if not 0 < networks["supported"].n_arcs <= FEW * structure.n_arcs:
        del networks["supported"]
    if not structure.n_arcs:
        del networks["all"]
    return networks


def subset_of_arcs(word: str, counts: Counts, structure: Dag) -> Dag:
    """Return the network with the arcs that `word`, one of ARC_SETS, keeps."""
    if word == "all":
        return structure
    parents: list[tuple[int, ...]] = [()] * len(structure.parents)
    if word == "class":
        return replace(structure, parents=tuple(parents), class_children=(), class_parents=())
    if word == "supported":
        for child, listed in enumerate(structure.parents):
            if not listed or child not in structure.class_children:
                parents[child] = listed
                continue
            # the BIC with the first m parents, m = 0, 1, ...
            full_table, scores = counts.tables([(child, *listed)])[0], []
            for m in range(len(listed) + 1):
                # (child, first m parents, class): sum over the parents from m + 1 on
                table = full_table.sum(axis=tuple(range(m + 1, len(listed) + 1)))
                scores.append(float(bic(table.reshape(len(table), -1, table.shape[-1]))))
            parents[child] = listed[: int(np.argmax(scores))]
    return replace(structure, parents=tuple(parents))


def prefix_of_arcs(word: str) -> str:
    """Return the beginning of the progress messages of the path of one of ARC_SETS."""
    return f"arcs {word}, "


def _path_of_arcs(
    word: str,
    structures: dict[int, Dag],
    space_of: ArcSpace,
    folds: Sequence[HeldOutFold],
    path: PathOf,
    near: float | None,
    least: float = math.inf,
) -> ChosenPenalty:
    """Choose the penalty of a network; `structures` holds the network found in each fold, keyed by id(fold.counts)."""
    return path(
        folds,
        lambda counts: space_of(counts, subset_of_arcs(word, counts, structures[id(counts)])),
        near=near,
        least=least,
        prefix=prefix_of_arcs(word),
    )
