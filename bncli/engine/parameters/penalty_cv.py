"""The penalty lambda chosen by cross-validation inside the training rows, along a path from large to small.

With p_f(lambda) the parameters of highest penalised likelihood on the rows outside fold f, of which there are FOLDS,

    loss(lambda) = - sum over folds f of CLL(rows of fold f; p_f(lambda)) / N

is computed for the lambdas of GRID in turn, all folds at one of them before any at the next. The lowest wins; a lambda
whose loss is not lower by more than a share TIE is a tie, and the larger lambda wins. The path ends where the loss lies
WORSE above the lowest (and more than SLACK nats, for losses near 0).

A path costs little beside its fits one by one. It starts where an infinite penalty would end, at its centre; the third
and later optima are looked for from where the last two point,

    p(lambda_k+1) ~ 2 p(lambda_k) - p(lambda_k-1),

for p is smooth in ln lambda; each search has a preconditioner of the place where it starts, and a loose tolerance:
losses are then right to about 1 in 1,000, which is less than they differ by.

Conventions: cuts and levels, the structure where it is a network, and what the parameters are built on (the generative
probabilities of weighted parameters) are learnt again in every fold; only cuts made by hand, and regions with their
cuts, are those of all training rows. Of more than ALL_ROWS rows a quarter
takes part, but no fewer than that and no more than MAX_ROWS, drawn by class. lambda is the inverse variance of a prior
and stands against the summed likelihood, so the choice is taken for all rows as it is. (Measured: with forty times the
rows the best lambda falls by up to a decade, and keeping it costs 2 % of the log-loss.) The search is the same whatever
the optimiser of the final fit, and so is the choice. A single row cannot be held out: lambda is then UNTRIED.

Directions of attributes (`bncli.engine.parameters.monotone`) have no part in the path: lambda is chosen by fits without
them, and the loss at the one chosen is that of fits that keep them. (Measured on seven tables with three learners: the
log-loss under directions is 0.07 % higher, and the same in two thirds of the cases, as with a path that keeps them.)

On few rows two guards. No lambda below (FLOOR_ROWS / N)^3 is tried: two dozen rows may all be right by luck when they
are held out, and then the smaller the penalty, the better it looks. And what is learnt may be shrunk towards the class
frequencies (`shrinkage`).

Tables shrunk towards the class frequencies, by as much as the rows held out ask for: a guard on few rows.

With S the scores of the tables of the chosen penalty, f the class frequencies and 0 < a <= 1 the factor,

    S_a[x, y] = a S[x, y] + (1 - a) ln f[y],    f[y] = (n[y] + 1) / (N + K)

so the log-odds of the class are drawn towards those of the frequencies, and what is learnt stays one set of tables. The
factor is the one of FACTORS of highest

    sum over folds of CLL(rows held out; S_a) - d a,    d = DOUBT up to DOUBT_ROWS rows, DOUBT DOUBT_ROWS / N beyond

with scores and frequencies learnt from the other rows of each fold (ties: the largest factor). The last term is the log
of a prior that prefers the frequencies. It stands against the luck of the penalty, which is the best of many on the
same rows: without it, factors are too large. Where the tables tell the classes apart all but surely it would weigh more
than what is at stake, so no factor may raise the loss above the lowest by more than a share RISE.

Conventions: of more than FEW_ROWS rows nothing is shrunk, for the penalty is then chosen well enough; nor are
parameters that are probabilities of a network, which shrunk tables are not. The smallest factor is above 0: what is
learnt still tells rows apart. Cost: a pass over the rows held out for each factor and penalty tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.encoding import encode_attributes, encode_labels
from bncli.engine.data.schema import Attribute
from bncli.engine.data.splits import stratified_folds, stratified_sample
from bncli.engine.kernels.arrays import Array, Codes, Index, Integers
from bncli.engine.model import ChosenPenalty, Parameters, Shrinkage, Tables, TriedPenalty
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import Likelihood, OptimizerSettings, ParameterSpace, Space, find_optimum_from
from bncli.watch import Progress, Watch, silent

FACTORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FEW_ROWS = 300
DOUBT, DOUBT_ROWS = 2.0, 50
RISE = 0.25
SpaceOf = Callable[[Counts], Space]
Recode = Callable[[Columns], Dataset]
GRID = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
FOLDS = 5
AHEAD = 2
ALL_ROWS, MAX_ROWS = 12_000, 50_000
WORSE, SLACK = 0.08, 1e-3
TIE = 1e-4
UNTRIED = 1.0
FLOOR_ROWS = 20
TOLERANCE, MAX_ITERATIONS = 1e-3, 100


class HeldOutFold(NamedTuple):
    """One fold: the counts of the rows to learn from, and the rows held out."""

    counts: Counts
    rows: Dataset


class _FoldProgress(NamedTuple):
    """Whom progress is told to, and what goes before it."""

    watch: Watch
    what: str


@dataclass
class _Path:
    """One fold: the rows to learn from with their parameter space, those held out, and the optima found so far."""

    space: Space
    held_out: Likelihood
    center: float
    shrink: bool
    optima: list[Array] = field(default_factory=list)
    """The last two."""
    shrunk: dict[float, list[float]] = field(default_factory=dict)
    """By penalty, the CLL of the rows held out under tables shrunk by each of FACTORS; if `shrink`."""

    def advance(self, penalty: float) -> float:
        """Return the held-out conditional log-likelihood at the next penalty's optimum, ignoring directions."""
        space = self.space.free if isinstance(self.space, ParameterSpace) else self.space
        point = find_optimum_from(space, self._settings(penalty), self._start()).point
        self.optima = [*self.optima[-1:], point]
        return self._judged(penalty, space.cells(point))

    @property
    def is_directed(self) -> bool:
        """Whether attributes have directions."""
        return isinstance(self.space, ParameterSpace) and self.space.monotone is not None

    def direct(self, penalty: float) -> float:
        """Return the held-out conditional log-likelihood at the optimum under the directions of attributes."""
        start = np.full(self.space.coordinates.n_parameters, self.center)
        point = find_optimum_from(self.space, self._settings(penalty), start).point
        return self._judged(penalty, self.space.cells(point))

    def _settings(self, penalty: float) -> OptimizerSettings:
        return OptimizerSettings("zero", penalty, self.center, "lbfgs", TOLERANCE, MAX_ITERATIONS)

    def _judged(self, penalty: float, cells: Array) -> float:
        if not self.shrink:
            return self._log_likelihood(cells)
        n = self.space.likelihood.data.class_counts
        self.shrunk[penalty] = [self._log_likelihood(shrink_cells(cells, n, factor)) for factor in FACTORS]
        return self.shrunk[penalty][-1]

    def _log_likelihood(self, cells: Array) -> float:
        return self.held_out.value_and_gradient(cells)[0]

    def _start(self) -> Array:
        if not self.optima:
            return np.full(self.space.coordinates.n_parameters, self.center)
        if len(self.optima) == 1:
            return self.optima[0]
        before, last = self.optima
        # GRID is about even in ln lambda: the next optimum lies about as far on as the last from the one before
        return 2.0 * last - before


def log_frequencies(class_counts: Array) -> Array:
    """Return ln f (K,) of class counts (K,); the 1 keeps it finite where a class has no row."""
    return np.asarray(np.log((class_counts + 1.0) / (class_counts.sum() + len(class_counts))))


def shrink_cells(cells: Array, class_counts: Array, factor: float) -> Array:
    """Return tables as one array (K, n_cells), the bias first, shrunk; as they are for a factor of 1."""
    if factor == 1.0:
        return cells
    shrunk = factor * cells
    shrunk[:, 0] += (1.0 - factor) * log_frequencies(class_counts)
    return shrunk


def choose_factor(log_likelihoods: Sequence[float], n_rows: int, weight: float) -> Shrinkage | None:
    """Return the factor by the CLL of so many held-out rows, of so much weight, under each of FACTORS; None for 1."""
    doubt = DOUBT * min(1.0, DOUBT_ROWS / n_rows)
    least = (1.0 + RISE) * max(log_likelihoods)
    worth = {factor: cll - doubt * factor for factor, cll in zip(FACTORS, log_likelihoods, strict=True) if cll >= least}
    best = max(worth, key=lambda factor: (worth[factor], factor))
    return None if best == 1.0 else Shrinkage(best, 0.0 - log_likelihoods[FACTORS.index(best)] / weight)


def shrink_parameters(parameters: Parameters, counts: Counts, shrinkage: Shrinkage) -> Parameters:
    """Return parameters with their tables shrunk, and the CLL of the training rows under these."""
    assert isinstance(parameters.predictor, Tables)
    likelihood = conditional_likelihood(counts.data, parameters.predictor.families)
    cells = shrink_cells(likelihood.flatten(parameters.predictor), counts.class_counts(), shrinkage.factor)
    cll = likelihood.value_and_gradient(cells)[0]
    return replace(parameters, predictor=likelihood.tables(cells), cll=cll)


def held_out_folds(data: Dataset, seed: int) -> list[HeldOutFold]:
    """Return the folds of all rows or, where they are many, of a sample, cuts and levels as they are.

    None of a single row.
    """
    data = data.take(_taking_part(data.labels, seed))
    return [HeldOutFold(Counts(data.take(others)), data.take(rows)) for others, rows in _splits(data.labels, seed)]


def _taking_part(labels: Integers, seed: int) -> Index:
    return stratified_sample(labels, max(ALL_ROWS, min(len(labels) // 4, MAX_ROWS)), seed)


def _splits(labels: Integers, seed: int) -> Iterator[tuple[Index, Index]]:
    """Yield the rows to learn from and those held out, of every fold; none of a single row."""
    if len(labels) < 2:
        return
    fold_of = _folds(labels, seed)
    for fold in range(fold_of.max() + 1):
        yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)


def _folds(labels: Integers, seed: int) -> Index:
    return stratified_folds(labels, min(FOLDS, len(labels)), seed)


def sample_of(columns: Columns, seed: int) -> Columns:
    """Return the rows that take part, as they were read."""
    assert columns.label is not None
    rows = _taking_part(columns.label.codes, seed)
    return columns if len(rows) == columns.n_rows else columns.take(rows)


def folds_with_own_cuts(sample: Columns, recode: Recode, seed: int) -> list[HeldOutFold]:
    """Return the folds of a sample with cuts and levels learned anew in each; `recode` encodes rows with them.

    Cuts are made for the class. Where the rows that are held out had a part in them, the loss of these rows flatters.
    """
    assert sample.label is not None
    folds = []
    for others, rows in _splits(sample.label.codes, seed):
        data = recode(sample.take(others))
        folds.append(HeldOutFold(Counts(data), _under(data, sample.take(rows))))
    return folds


def _under(data: Dataset, columns: Columns) -> Dataset:
    """Return other rows in the codes of a data set; what it has no code for counts as its commonest value."""
    schema = data.schema
    nothing = np.broadcast_to(np.zeros(1, np.uint8), columns.n_rows)
    codes: list[Codes] = [nothing] * len(schema.attributes)
    for i, found in zip(schema.informative, encode_attributes(columns, schema, schema.informative).codes, strict=True):
        codes[i] = found if schema.marginalizes else _known(found, schema.attributes[i])
    return Dataset(schema, tuple(codes), encode_labels(columns, schema), columns.weights, data.threads)


def _known(codes: Codes, attribute: Attribute) -> Codes:
    unknown = codes >= attribute.cardinality
    if unknown.any():
        codes[unknown] = int(np.argmax(attribute.frequencies))
    return codes


def penalty_path(
    folds: Sequence[HeldOutFold],
    space_of: SpaceOf,
    *,
    center: float,
    near: float | None = None,
    shrink: bool = False,
    grid: Sequence[float] = GRID,
    watch: Watch = silent,
    what: str = "",
) -> ChosenPenalty:
    """Return the lambda of `grid` with the least held-out loss in the spaces that `space_of` makes from counts.

    `grid` falls. The penalty shrinks towards `center`; `what` goes before the progress that the watch hears of. `near`:
    a penalty that was best for a similar space; the path begins AHEAD steps before it, or at the top after all where
    nothing that follows is better than its first. `shrink`: whether the tables may be shrunk, if rows are few (see
    `shrinkage`).
    """
    if not folds:
        return ChosenPenalty(UNTRIED if len(grid) > 1 else grid[0], ())
    told, n_rows = _FoldProgress(watch, what), sum(fold.rows.n_rows for fold in folds)
    shrink = shrink and n_rows <= FEW_ROWS
    first = 0 if near is None else max(grid.index(near) - AHEAD, 0)
    grid = tuple(penalty for penalty in grid if penalty >= (FLOOR_ROWS / n_rows) ** 3) or grid[:1]
    paths = _paths(folds, space_of, center, shrink)
    tried = _follow(paths, grid[first:], told)
    if first and best_of(tried) == GRID[first]:
        paths = _paths(folds, space_of, center, shrink)
        tried = _follow(paths, grid, told)
    best = best_of(tried)
    chosen = ChosenPenalty(best, tuple(_under_directions(paths, best, tried)))
    return replace(chosen, shrinkage=_shrinkage(paths, chosen.penalty)) if shrink else chosen


def _paths(folds: Sequence[HeldOutFold], space_of: SpaceOf, center: float, shrink: bool) -> list[_Path]:
    spaces = [space_of(fold.counts) for fold in folds]
    return [_Path(space, space.on(fold.rows), center, shrink) for space, fold in zip(spaces, folds, strict=True)]


def _follow(paths: Sequence[_Path], grid: Sequence[float], told: _FoldProgress) -> list[TriedPenalty]:
    weight = _weight(paths)
    tried: list[TriedPenalty] = []
    for penalty in grid:
        cll = 0.0
        for f, path in enumerate(paths):
            done = len(tried) + f / len(paths)
            detail = f"{told.what}penalty {penalty:g}, fold {f + 1} of {len(paths)}"
            told.watch(Progress(done, len(grid), detail))
            cll += path.advance(penalty)
        # 0.0 - x in place of -x: a loss of 0 is never written -0
        tried.append(TriedPenalty(penalty, 0.0 - cll / weight))
        lowest = min(one.log_loss for one in tried)
        # SLACK: where classes are almost certain, 8 % of a loss is less than its own error
        if tried[-1].log_loss > lowest * (1 + WORSE) + SLACK:
            break
    return tried


def _weight(paths: Sequence[_Path]) -> float:
    """Of all rows held out."""
    return sum(path.held_out.data.total_weight for path in paths)


def _under_directions(paths: Sequence[_Path], best: float, tried: Sequence[TriedPenalty]) -> list[TriedPenalty]:
    """Return what was tried, the best penalty with its loss under the directions of attributes, if there are any."""
    if not any(path.is_directed for path in paths):
        return list(tried)
    loss = 0.0 - sum(path.direct(best) for path in paths) / _weight(paths)
    return [TriedPenalty(best, loss) if one.penalty == best else one for one in tried]


def _shrinkage(paths: Sequence[_Path], penalty: float) -> Shrinkage | None:
    """Return what the rows held out ask for at this penalty."""
    totals = [sum(clls) for clls in zip(*(path.shrunk[penalty] for path in paths), strict=True)]
    return choose_factor(totals, sum(path.held_out.data.n_rows for path in paths), _weight(paths))


def held_out_base(data: Dataset, seed: int) -> float | None:
    """Return the log-loss of class frequencies on the rows that are held out; None where it holds out none."""
    rows = _taking_part(data.labels, seed)
    if len(rows) < 2:
        return None
    fold_of = _folds(data.labels[rows], seed)
    weights = None if data.weights is None else data.weights[rows]
    tables = np.zeros((int(fold_of.max()) + 1, data.n_labels))
    np.add.at(tables, (fold_of, data.labels[rows]), 1.0 if weights is None else weights)
    return base_log_loss([(tables.sum(axis=0) - held_out, held_out) for held_out in tables])


def base_log_loss(folds: Sequence[tuple[Array, Array]]) -> float:
    """Return the mean log-loss of the class frequencies; class counts (K,) of the rows learned from and held out.

        - sum over folds f and classes y of held_out_f(y) ln [ (n_f(y) + 1) / (n_f + K) ] / sum of all held_out_f(y)

    The 1 keeps it finite where a class is held out as a whole.
    """
    loss = sum(float(held_out @ log_frequencies(n)) for n, held_out in folds)
    return 0.0 - loss / sum(float(held_out.sum()) for _, held_out in folds)


def best_of(tried: list[TriedPenalty]) -> float:
    """Return the penalty of lowest loss; of those that tie with it, the one tried first."""
    lowest = min(one.log_loss for one in tried)
    # GRID falls, so the first that ties is the largest
    return next(one.penalty for one in tried if one.log_loss <= lowest * (1 + TIE))
