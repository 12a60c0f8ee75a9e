"""Evaluate a candidate of an ensemble on held-out rows: its best penalty, and the probabilities at that penalty.

The tables of a candidate are chosen again in every fold, from the rows that are not held out. Tables chosen with the
help of held-out rows would get too much weight in the ensemble.

Penalties are tried from large to small, starting at some penalty; if that one is the best, larger ones are tried. The
best penalty has the lowest held-out loss by the requested metric. Two penalties often have the same `error`; then the
log-loss decides. A loss that is lower by less than the fraction TIE does not count, so the penalty tried first stays
the best. A path of decreasing penalties ends

- when its log-loss exceeds its lowest by more than SLACK nats plus the fraction WORSE (WORSE_OF_MANY with at least MANY
  held-out rows), or has risen twice in succession,
- at the penalty LEAST_STEEP or below, when the last three log-losses differ by at most the fraction FLAT,
- at the penalty LEAST_USUAL or below, when the log-loss no longer falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.ensembles.boosted_trees import Boosted
from bncli.engine.ensembles.candidates import Candidate, Fit
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.model import TriedPenalty
from bncli.engine.parameters.effect_coding import EffectCoordinates, Effects, effects_of
from bncli.engine.parameters.few_rows import FewRows, few_rows, span_is_searched
from bncli.engine.parameters.level_effects import level_scales
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum_from
from bncli.engine.parameters.penalty_choice import log_frequencies
from bncli.engine.structures.regrouping import with_regrouped_columns

GRID = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
FIRST, LEAST_STEEP, LEAST_USUAL = 30.0, 3.0, 0.01
WORSE, WORSE_OF_MANY, SLACK = 0.03, 0.01, 1e-4
FLAT = 1e-3
TIE = 1e-4
MANY = 1_000
"""With at least this many held-out rows, a loss is estimated so precisely that a path can end sooner."""
TOLERANCE, MAX_ITERATIONS = 3e-3, 60
"""The tolerance and the maximum number of iterations of a fit: the remaining error is smaller than the change of the
optimum from one sample of rows to another.
"""
FEW_ROWS, COST_OF_FEW = 1_000, 0.3
"""With fewer than FEW_ROWS rows, evaluations are fast, so a preconditioner may cost only COST_OF_FEW evaluations."""
NEGLIGIBLE = 0.01
"""Tolerances are relative to the log-loss in nats per row, or to this value if the log-loss is lower."""
FUSED_CELLS = 2048
FREQUENCIES = "class frequencies"
"""The candidate without tables."""


class Losses(NamedTuple):
    """Weighted mean losses of the held-out rows (for rmse, the root of the mean), named like the metrics."""

    log_loss: float
    error: float
    rmse: float


@dataclass(frozen=True)
class HeldOutEvaluation:
    """Held-out results of a candidate: its best penalty, and the losses and ln P(y | x), (K, rows), at that penalty.

    `tried` has all penalties that were tried. `path` is the path of the first fold, or None for the class frequencies
    and for a bag of boosted trees, which has `members` instead, one per fold.
    """

    name: str
    penalty: float
    losses: Losses
    log_p: Array
    tried: tuple[TriedPenalty, ...]
    path: PenaltyPath | None
    members: tuple[Boosted, ...] = ()


Report = Callable[[int, float], None]
"""Called with the number of a fold and a penalty, before that penalty is tried in that fold."""


def evaluate_candidate(
    name: str,
    paths: Sequence[PenaltyPath],
    metric: str,
    report: Report,
    first: float,
    is_late: Callable[[], bool] = lambda: False,
) -> HeldOutEvaluation:
    """Find the best penalty of a candidate, and evaluate it there; there is one path per fold.

    Penalties from `first` downwards are tried, then higher ones if `first` is the best of these. Once `is_late()`
    returns True, no further penalty is tried.
    """
    search = _PenaltySearch(paths, metric, report)
    start = GRID.index(first)
    for penalty in GRID[start:]:
        search.advance(penalty)
        if search.is_over or is_late():
            break
    if search.penalty == first and not is_late():
        for path in paths:
            path.optima = [path.best]
        for penalty in reversed(GRID[:start]):
            search.advance(penalty)
            if search.penalty != penalty or is_late():
                break
    return HeldOutEvaluation(name, search.penalty, search.losses, search.log_p, tuple(search.tried), paths[0])


class _PenaltySearch:
    """The paths of a candidate in all folds, and the best of the penalties tried so far."""

    def __init__(self, paths: Sequence[PenaltyPath], metric: str, report: Report) -> None:
        self.paths, self.metric, self.report = paths, metric, report
        self.weights = held_out_weights([path.held_out for path in paths])
        self.labels = np.concatenate([path.held_out.labels for path in paths])
        self.tried: list[TriedPenalty] = []
        self.penalty, self.losses, self.log_p = math.nan, Losses(math.inf, math.inf, math.inf), np.zeros((0, 0))

    def advance(self, penalty: float) -> None:
        """Try a penalty in every fold."""
        of_folds = []
        for fold, path in enumerate(self.paths):
            self.report(fold, penalty)
            of_folds.append(path.advance(penalty))
        log_p = np.concatenate(of_folds, axis=1)
        losses = measure_losses(log_p, self.labels, self.weights)
        self.tried.append(TriedPenalty(penalty, losses.log_loss))
        # Errors are numbers of rows and tie often; then the log-loss decides.
        is_tie = self.metric == "error" and losses.error == self.losses.error
        metric = "log_loss" if is_tie or self.losses.log_loss == math.inf else self.metric.replace("-", "_")
        if getattr(losses, metric) < getattr(self.losses, metric) * (1 - TIE):
            self.penalty, self.losses, self.log_p = penalty, losses, log_p
            for path in self.paths:
                path.best = path.optima[-1]

    @property
    def is_over(self) -> bool:
        """Whether the path ends here (see the docstring of the module)."""
        losses, penalty = [one.log_loss for one in self.tried], self.tried[-1].penalty
        worse = WORSE_OF_MANY if len(self.labels) >= MANY else WORSE
        # the last two changes
        rises = [before * (1 + TIE) < after for before, after in zip(losses[-3:-1], losses[-2:], strict=False)]
        if losses[-1] > min(losses) * (1 + worse) + SLACK or (len(losses) > 2 and all(rises)):
            return True
        if penalty <= LEAST_STEEP and len(losses) > 2 and max(losses[-3:]) <= min(losses[-3:]) * (1 + FLAT):
            return True
        return penalty <= LEAST_USUAL and losses[-1] > min(losses[:-1], default=math.inf) * (1 - TIE)


@dataclass
class PenaltyPath:
    """A candidate in one fold, fitted with one penalty after the other; each fit starts from the last optima."""

    candidate: Candidate
    space: ParameterSpace
    held_out: Dataset
    fusion: Fusion
    optima: list[Array] = field(default_factory=list)
    """The last two optima, from which the next one is extrapolated."""
    best: Array = field(default_factory=lambda: np.zeros(0))
    """The optimum at the best penalty so far."""

    @classmethod
    def of(cls, candidate: Candidate, data: Dataset, held_out: Dataset) -> PenaltyPath:
        """Return the path of a candidate whose tables were chosen on `data`, before its first penalty."""
        fusion = fuse(*with_regrouped_columns(held_out, candidate.families), FUSED_CELLS)
        return cls(candidate, parameter_space(data, candidate), held_out, fusion)

    def advance(self, penalty: float) -> Array:
        """Fit with the next penalty; return ln P(y | x) of the held-out rows, (K, rows), at the optimum."""
        settings = OptimizerSettings("zero", penalty, 0.0, "lbfgs", TOLERANCE, MAX_ITERATIONS, negligible=NEGLIGIBLE)
        if self.space.likelihood.data.n_rows < FEW_ROWS:
            settings = replace(settings, near_cost=COST_OF_FEW)
        if not self.optima:
            start = np.zeros(self.searched.coordinates.n_parameters)
        elif len(self.optima) == 1:
            start = self.optima[0]
        else:
            # extrapolated: optima are smooth in the logarithm of the penalty
            start = 2.0 * self.optima[1] - self.optima[0]
        point = find_optimum_from(self.searched, settings, start).point
        self.optima = [*self.optima[-1:], point]
        return fused_log_probabilities(self.held_out, self.fusion, self.searched.cells(point))

    @cached_property
    def searched(self) -> ParameterSpace | FewRows:
        """The space in which the optima are found: the span of the rows if there are few, otherwise `space`."""
        return few_rows(self.space) or self.space

    @property
    def fit(self) -> Fit:
        """The likelihood, and the tables at the best optimum."""
        return Fit(self.space.likelihood, self.searched.cells(self.best))

    @property
    def parameters(self) -> Array:
        """The best optimum, in the coordinates of `space`."""
        return self.searched.effects(self.best) if isinstance(self.searched, FewRows) else self.best


def parameter_space(data: Dataset, candidate: Candidate, effects: Effects | None = None) -> ParameterSpace:
    """Return a candidate's parameter space on `data`, with the given effects or, by default, the effects of `data`."""
    likelihood = conditional_likelihood(data, candidate.families)
    if effects is None:
        effects = effects_of(
            likelihood.families,
            data.schema,
            likelihood.cell_weights(),
            coding=candidate.coding,
            lower_orders=candidate.lower_orders,
            beyond=candidate.interaction_factor,
            rotated=lambda n_effects: not span_is_searched(likelihood, n_effects),
            scales=level_scales(data, candidate.coding),
        )
    zero = partial(np.zeros, (data.n_labels, likelihood.n_cells))
    return ParameterSpace.directed(likelihood, EffectCoordinates(effects, data.n_labels, zero))


def fused_log_probabilities(data: Dataset, fusion: Fusion, cells: Array) -> Array:
    """Return ln P(y | x_t), (K, rows), for tables `cells` (K, n_cells), looked up by the fused codes of the rows."""
    return np.concatenate(data.map(_block_log_probabilities, fusion.expand(cells), states=fusion.codes), axis=1)


def _block_log_probabilities(block: RowBlock, tables: Sequence[Array]) -> Array:
    out = np.zeros((len(tables[0]), block.n_rows))
    for rows in block.slices():
        scores = out[:, rows]
        for table, codes in zip(tables, block.state, strict=True):
            scores += np.take(table, codes[rows], axis=1, mode="clip")
        scores -= np.maximum.reduce(scores, axis=0)
        scores -= np.log(np.add.reduce(np.exp(scores), axis=0))
    return out


def evaluate_frequencies(parts: Sequence[tuple[Dataset, Dataset]]) -> HeldOutEvaluation:
    """Evaluate the smoothed class frequencies (`log_frequencies`) of training rows on held-out rows, part by part."""
    log_p = np.concatenate(
        [
            np.repeat(log_frequencies(training.class_counts)[:, np.newaxis], held_out.n_rows, axis=1)
            for training, held_out in parts
        ],
        axis=1,
    )
    held_out = [rows for _, rows in parts]
    losses = measure_losses(log_p, np.concatenate([rows.labels for rows in held_out]), held_out_weights(held_out))
    return HeldOutEvaluation(FREQUENCIES, 1.0, losses, log_p, (TriedPenalty(1.0, losses.log_loss),), None)


def held_out_weights(folds: Sequence[Dataset]) -> Array | None:
    """Return the weights of all held-out rows, fold after fold, or None if they are all 1."""
    weights = [fold.weights for fold in folds if fold.weights is not None]
    return np.concatenate(weights) if weights else None


def measure_losses(log_p: Array, labels: Integers, weights: Array | None) -> Losses:
    """Compute the losses from ln P(y | x_t) (K, rows), the true labels (rows,) and the row weights (None: all 1)."""
    of_true_labels = log_p[labels, np.arange(len(labels))]
    # expm1 gives 1 - P without cancellation if P is near 1
    of_rows = (-of_true_labels, log_p.argmax(axis=0) != labels, np.square(np.expm1(of_true_labels)))
    log_loss, error, square = (float(np.average(values, weights=weights)) for values in of_rows)
    # -0.0 + 0.0 is 0.0, so that no loss is printed as -0
    return Losses(log_loss + 0.0, error, math.sqrt(square))
