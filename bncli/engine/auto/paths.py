"""One candidate's penalties, from large to small, judged by rows held out.

As in `training.penalty_cv`, with what every row held out was given: the weights of the ensemble are found by it. The
grid goes on downwards as long as the loss still falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from bncli.engine.auto.candidates import Candidate, Fit
from bncli.engine.counting.fusion import Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array
from bncli.engine.parameter_spaces.effect_blocks import effects_of
from bncli.engine.parameter_spaces.effect_coordinates import EffectCoordinates
from bncli.engine.parameter_spaces.effects import Effects
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.training.few_rows import FewRows, few_rows, span_is_searched
from bncli.engine.training.likelihood import conditional_likelihood
from bncli.engine.training.optimization import OptimizerSettings, ParameterSpace, find_optimum_from

TOLERANCE, MAX_ITERATIONS = 3e-3, 60
"""What is left to gain is less than what another draw of the rows would change."""
FEW_ROWS, COST_OF_FEW = 1_000, 0.3
"""Of fewer rows an evaluation takes so little that a preconditioner should cost no more than that; in evaluations."""
NEGLIGIBLE = 0.01
"""Nats a row: where tables leave less in doubt, tolerances are shares of this."""


def space_of(data: Dataset, candidate: Candidate, effects: Effects | None = None) -> ParameterSpace:
    """The parameters of a candidate on some rows; `effects` are those of other rows, to have the same parameters."""
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
        """ln P(y | x) of the rows held out, (K, rows)."""
        settings = settings_of(penalty, TOLERANCE, MAX_ITERATIONS)
        if self.space.likelihood.data.n_rows < FEW_ROWS:
            settings = replace(settings, near_cost=COST_OF_FEW)
        point = find_optimum_from(self.searched, settings, self._start()).point
        self.optima = [*self.optima[-1:], point]
        return said_of(self.held_out, self.fusion, self.searched.cells(point))

    def keep(self) -> None:
        """The last optimum is the best one."""
        self.best = self.optima[-1]

    def turn(self) -> None:
        """What is tried next lies on the other side of the best one."""
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


def settings_of(penalty: float, tolerance: float, max_iterations: int) -> OptimizerSettings:
    """Of a fit with one penalty."""
    return OptimizerSettings("zero", penalty, 0.0, "lbfgs", tolerance, max_iterations, negligible=NEGLIGIBLE)


def path_of(candidate: Candidate, data: Dataset, held_out: Dataset) -> PenaltyPath:
    """The path of a candidate that was found on `data`."""
    fusion = fuse(*with_regrouped_columns(held_out, candidate.families), 2048)
    return PenaltyPath(candidate, space_of(data, candidate), held_out, fusion)


def said_of(data: Dataset, fusion: Fusion, cells: Array) -> Array:
    """ln P(y | x_t) (K, rows), rows fused for tables `cells`."""
    return np.concatenate(data.map(_said, fusion.expand(cells), states=fusion.codes), axis=1)


def _said(block: RowBlock, tables: Sequence[Array]) -> Array:
    out = np.zeros((len(tables[0]), block.n_rows))
    for rows in block.slices():
        scores = out[:, rows]
        for table, codes in zip(tables, block.state, strict=True):
            scores += np.take(table, codes[rows], axis=1, mode="clip")
        scores -= np.maximum.reduce(scores, axis=0)
        scores -= np.log(np.add.reduce(np.exp(scores), axis=0))
    return out
