"""Every candidate, tried on rows held out: its best penalty, and what it gave to these rows there.

The tables of a candidate are found again in every fold, from the rows that are not held out: what was chosen with a
look at a row would make the ensemble trust it too much. The penalty is that of least loss, by the metric asked for,
ties to the log-loss (`error` has many) and then to the larger penalty. A path ends where its log-loss lies WORSE above
its lowest (WORSE_OF_MANY, where MANY rows are held out) or has risen twice in a row, from LEAST_STEEP down where three
penalties differ by no more than FLAT, and below LEAST_USUAL where it no longer falls.

One candidate's penalties, from large to small, judged by rows held out.

As in `training.penalty_cv`, with what every row held out was given: the weights of the ensemble are found by it. The
grid goes on downwards as long as the loss still falls.

Which candidates are still worth trying, from the losses of those that were tried.

Nothing is, once nothing is lost; sets do not grow from sets that lost too much. An effort that prunes tries larger sets
first where smaller ones have told that attributes act together, and the others of what is left to spend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
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
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum_from
from bncli.engine.parameters.penalty_cv import log_frequencies
from bncli.engine.structures.regrouping import with_regrouped_columns

TOLERANCE, MAX_ITERATIONS = 3e-3, 60
"""What is left to gain is less than what another draw of the rows would change."""
FEW_ROWS, COST_OF_FEW = 1_000, 0.3
"""Of fewer rows an evaluation takes so little that a preconditioner should cost no more than that; in evaluations."""
NEGLIGIBLE = 0.01
"""Nats a row: where tables leave less in doubt, tolerances are shares of this."""


@dataclass
class PenaltyPath:
    """One candidate in one fold: optima for ever smaller penalties, and what they say of the rows held out."""

    candidate: Candidate
    space: ParameterSpace
    held_out: Dataset
    fusion: Fusion
    optima: list[Array] = field(default_factory=list)
    """The last two."""
    best: Array = field(default_factory=lambda: np.zeros(0))
    """The one that was kept."""

    def advance(self, penalty: float) -> Array:
        """Return ln P(y | x) of the rows held out, (K, rows)."""
        settings = settings_of(penalty, TOLERANCE, MAX_ITERATIONS)
        if self.space.likelihood.data.n_rows < FEW_ROWS:
            settings = replace(settings, near_cost=COST_OF_FEW)
        point = find_optimum_from(self.searched, settings, self._start()).point
        self.optima = [*self.optima[-1:], point]
        return fused_log_probabilities(self.held_out, self.fusion, self.searched.cells(point))

    def keep(self) -> None:
        """Record the last optimum as the best one."""
        self.best = self.optima[-1]

    def turn(self) -> None:
        """Continue on the other side of the best value."""
        self.optima = [self.best]

    @property
    def fit(self) -> Fit:
        """The tables of the best one."""
        return Fit(self.space.likelihood, self.searched.cells(self.best))

    @property
    def parameters(self) -> Array:
        """Those of the best one, in `space`."""
        return self.searched.effects(self.best) if isinstance(self.searched, FewRows) else self.best

    @cached_property
    def searched(self) -> ParameterSpace | FewRows:
        """Where the optima lie."""
        return few_rows(self.space) or self.space

    def _start(self) -> Array:
        if not self.optima:
            return np.zeros(self.searched.coordinates.n_parameters)
        if len(self.optima) == 1:
            return self.optima[0]
        before, last = self.optima
        return 2.0 * last - before


Tell = Callable[[float, int], None]
"""Hears of a penalty and a fold."""
GRID = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
FIRST, LEAST_USUAL = 30.0, 0.01
WORSE, WORSE_OF_MANY, SLACK = 0.03, 0.01, 1e-4
FLAT, LEAST_STEEP = 1e-3, 3.0
MANY = 1000
"""Rows held out, of which a loss is known so well that a path need not be followed far."""
TIE = 1e-4
FREQUENCIES = "class frequencies"
"""The candidate that has no tables."""
METRICS = ("log-loss", "error", "rmse")


class Losses(NamedTuple):
    """Means over the rows held out, by weight."""

    log_loss: float
    error: float
    rmse: float

    def by(self, metric: str) -> float:
        """Return the one of that name."""
        return {"log-loss": self.log_loss, "error": self.error, "rmse": self.rmse}[metric]


@dataclass(frozen=True)
class HeldOutEvaluation:
    """A candidate's best penalty, losses and ln P(y | x) of the rows held out (K, rows) there; all that was tried."""

    name: str
    penalty: float
    losses: Losses
    logs: Array
    tried: tuple[TriedPenalty, ...]
    path: PenaltyPath | None
    """That of the first fold."""
    members: tuple[Boosted, ...] = ()
    """Of a bag: one a fold, in place of a path."""


class _Search:
    """The paths of a candidate, and the best of what was tried so far."""

    def __init__(self, paths: Sequence[PenaltyPath], metric: str, tell: Tell) -> None:
        self.paths, self.metric, self.tell = paths, metric, tell
        self.weights = held_out_weights([path.held_out for path in paths])
        self.labels = np.concatenate([path.held_out.labels for path in paths])
        self.tried: list[TriedPenalty] = []
        self.penalty, self.losses, self.logs = math.nan, Losses(math.inf, math.inf, math.inf), np.zeros((0, 0))

    def advance(self, penalty: float) -> None:
        """One more penalty, in every fold."""
        said = _advance(self.paths, penalty, self.tell)
        losses = losses_of(said, self.labels, self.weights)
        self.tried.append(TriedPenalty(penalty, losses.log_loss))
        # Lower by more than a tie; for errors that tie, by log-loss.
        best = self.losses
        metric = self.metric
        if (metric == "error" and losses.error == best.error) or best.log_loss == math.inf:
            # errors are whole numbers of rows and tie often; log-losses tell models apart
            metric = "log-loss"
        if losses.by(metric) < best.by(metric) * (1 - TIE):
            self.penalty, self.losses, self.logs = penalty, losses, said
            for path in self.paths:
                path.keep()

    @property
    def is_over(self) -> bool:
        tried = self.tried
        many = len(self.labels) >= MANY
        losses = [one.log_loss for one in tried]
        worse = WORSE_OF_MANY if many else WORSE
        if losses[-1] > min(losses) * (1 + worse) + SLACK or (_rises(losses[-3:-1]) and _rises(losses[-2:])):
            return True
        if tried[-1].penalty <= LEAST_STEEP and len(losses) > 2 and max(losses[-3:]) <= min(losses[-3:]) * (1 + FLAT):
            return True
        return tried[-1].penalty <= LEAST_USUAL and losses[-1] > min(losses[:-1], default=math.inf) * (1 - TIE)


NOTHING = 5e-5
"""A log-loss a row, in nats, below which no more candidates are tried."""
GAIN = 0.01
"""Attributes act together where trees or pairs have lowered the loss by such a share."""
DEEP = 0.1
"""Trees that have lowered it by such a share find all that tables of one or two attributes find."""
PRUNING_SLACK = 0.05
"""Sets that lose by a larger share of the log-loss are not built upon."""
_ALONE = ("singles", "lines", "sharp singles")
"""Candidates whose tables are over one attribute each."""
_SHALLOW = ("lines", "tree", "sharp singles", "sharp tree")


def space_of(data: Dataset, candidate: Candidate, effects: Effects | None = None) -> ParameterSpace:
    """Return the parameters of a candidate on some rows.

    `effects` are those of other rows, to have the same parameters.
    """
    likelihood = conditional_likelihood(data, candidate.families)
    if effects is None:
        weights = likelihood.cell_weights()
        coding, lower_orders = candidate.coding, candidate.lower_orders
        effects = effects_of(
            likelihood.families,
            data.schema,
            weights,
            coding=coding,
            lower_orders=lower_orders,
            beyond=candidate.beyond,
            turned=lambda n_effects: not span_is_searched(likelihood, n_effects),
        )
    zero = partial(np.zeros, (data.n_labels, likelihood.n_cells))
    return ParameterSpace.directed(likelihood, EffectCoordinates(effects, data.n_labels, zero))


def settings_of(penalty: float, tolerance: float, max_iterations: int) -> OptimizerSettings:
    """Of a fit with one penalty."""
    return OptimizerSettings("zero", penalty, 0.0, "lbfgs", tolerance, max_iterations, negligible=NEGLIGIBLE)


def path_of(candidate: Candidate, data: Dataset, held_out: Dataset) -> PenaltyPath:
    """Return the path of a candidate that was found on `data`."""
    fusion = fuse(*with_regrouped_columns(held_out, candidate.families), 2048)
    return PenaltyPath(candidate, space_of(data, candidate), held_out, fusion)


def fused_log_probabilities(data: Dataset, fusion: Fusion, cells: Array) -> Array:
    """Return ln P(y | x_t) (K, rows), rows fused for tables `cells`."""
    return np.concatenate(data.map(_log_probabilities, fusion.expand(cells), states=fusion.codes), axis=1)


def _log_probabilities(block: RowBlock, tables: Sequence[Array]) -> Array:
    out = np.zeros((len(tables[0]), block.n_rows))
    for rows in block.slices():
        scores = out[:, rows]
        for table, codes in zip(tables, block.state, strict=True):
            scores += np.take(table, codes[rows], axis=1, mode="clip")
        scores -= np.maximum.reduce(scores, axis=0)
        scores -= np.log(np.add.reduce(np.exp(scores), axis=0))
    return out


def judge(
    name: str,
    paths: Sequence[PenaltyPath],
    metric: str,
    tell: Tell,
    first: float,
    is_late: Callable[[], bool] = lambda: False,
) -> HeldOutEvaluation:
    """Return the candidate at its best penalty, from `first` downwards, then upwards if it is best.

    A path for each fold.

    Once it `is_late`, no further penalty is tried.
    """
    search = _Search(paths, metric, tell)
    start = GRID.index(first)
    for penalty in GRID[start:]:
        search.advance(penalty)
        if search.is_over or is_late():
            break
    if search.penalty == first and not is_late():
        for path in paths:
            path.turn()
        for penalty in reversed(GRID[:start]):
            search.advance(penalty)
            if search.penalty != penalty or is_late():
                break
    return HeldOutEvaluation(name, search.penalty, search.losses, search.logs, tuple(search.tried), paths[0])


def judge_frequencies(parts: Sequence[tuple[Dataset, Dataset]]) -> HeldOutEvaluation:
    """Return the class shares of the rows learnt from, of which there are one more of each class, whatever the row."""
    logs = np.concatenate(
        [np.repeat(log_frequencies(a.class_counts)[:, np.newaxis], b.n_rows, axis=1) for a, b in parts], axis=1
    )
    held_out = [rows for _, rows in parts]
    losses = losses_of(logs, np.concatenate([rows.labels for rows in held_out]), held_out_weights(held_out))
    return HeldOutEvaluation(FREQUENCIES, 1.0, losses, logs, (TriedPenalty(1.0, losses.log_loss),), None)


def held_out_weights(folds: Sequence[Dataset]) -> Array | None:
    """Return the weights of all rows held out, in their order; None where each weighs 1."""
    weights = [fold.weights for fold in folds if fold.weights is not None]
    return np.concatenate(weights) if weights else None


def losses_of(logs: Array, labels: Integers, weights: Array | None) -> Losses:
    """From ln P(y | x_t) (K, rows) and the labels (rows,)."""
    own = logs[labels, np.arange(len(labels))]
    # 1 - P from ln P: it keeps its digits where P is next to 1
    errors = (-own, logs.argmax(axis=0) != labels, np.square(np.expm1(own)))
    log_loss, error, square = (float(np.average(values, weights=weights)) for values in errors)
    # -0.0 + 0.0 is 0.0: no loss is shown as -0
    return Losses(log_loss + 0.0, error, math.sqrt(square))


def may_improve(name: str, builds_on: Mapping[str, str], judged: Sequence[HeldOutEvaluation], prunes: bool) -> bool:
    """Whether there is something left to gain, and what the candidate builds on did not lose by more than SLACK."""
    if not judged:
        return True
    losses = {one.name: one.losses.log_loss for one in judged}
    least = min(losses.values())
    if least < NOTHING:
        return False
    if prunes and not _is_promising(name, builds_on, losses):
        return False
    below = builds_on.get(name)
    if below is None or below == "singles":
        return True
    return below in losses and losses[below] <= (1 + PRUNING_SLACK) * least


def _is_promising(name: str, builds_on: Mapping[str, str], losses: Mapping[str, float]) -> bool:
    """Return whether smaller sets have gained, of those that were tried: a base that was left out tells nothing."""
    if name == "pairs":
        told = [losses[one] for one in ("tree", "boosted") if one in losses]
    elif name == "all pairs":
        told = [losses["pairs"]] if "pairs" in losses else []
    elif name in ("triples", "quadruples") and name in builds_on:
        told = [losses[one] for one in (builds_on[name],) if one in losses]
    else:
        return True
    alone = min((loss for one, loss in losses.items() if one in _ALONE), default=math.inf)
    return not told or min(told) <= (1 - GAIN) * alone


def is_outdone(name: str, judged: Sequence[HeldOutEvaluation]) -> bool:
    """Whether boosted trees have lowered the loss so much that other cuts and slopes of few attributes help no more."""
    losses = {one.name: one.losses.log_loss for one in judged}
    return name in _SHALLOW and losses.get("boosted", math.inf) <= (1 - DEEP) * losses["singles"]


def has_lost_its_base(
    name: str,
    builds_on: Mapping[str, str],
    judged: Sequence[HeldOutEvaluation],
    prunes: bool,
    left_out: Collection[str],
) -> bool:
    """Return whether nothing speaks against the candidate but that the one it builds on was left out."""
    return builds_on.get(name) in left_out and may_improve(name, {}, judged, prunes)


def is_better(name: str, other: str, judged: Sequence[HeldOutEvaluation]) -> bool:
    """Return whether one candidate lost less than the other, or the other was not tried."""
    losses = {one.name: one.losses.log_loss for one in judged}
    return losses[name] < losses.get(other, math.inf)


def _advance(paths: Sequence[PenaltyPath], penalty: float, tell: Tell) -> Array:
    folds = []
    for fold, path in enumerate(paths):
        tell(penalty, fold)
        folds.append(path.advance(penalty))
    return np.concatenate(folds, axis=1)


def _rises(losses: Sequence[float]) -> bool:
    """From one penalty to the next, by more than a tie."""
    return len(losses) == 2 and losses[0] * (1 + TIE) < losses[1]
