"""Penalised conditional likelihood, maximised in any parameter space by any optimiser.

    maximise  CLL(W(p)) - lambda/2 sum_q (p_q - centre)^2

against the summed CLL, on all parameters, the class term included. The optimiser minimises the negative.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bncli.engine.coordinates import Coordinates
from bncli.engine.flops import Costs
from bncli.engine.likelihood import ConditionalLikelihood
from bncli.engine.model import Optimum, Parameters
from bncli.engine.objective import Objective, Precondition, Report, Step
from bncli.engine.whitening import Whitening, whitening
from bncli.watch import Iteration, Watch

Array = NDArray[np.float64]

NEAR_COST = 3.0
"""Evaluations that the preconditioner of a known point may cost; between 1 and 12 it makes little difference."""


@dataclass(frozen=True)
class ParameterSpace:
    """Where to climb: rows, what the parameters mean, and the cost model in flops (for the trace only)."""

    likelihood: ConditionalLikelihood
    coordinates: Coordinates
    costs: Costs | None = None


@dataclass(frozen=True)
class Ascent:
    """How to climb: start (`zero` or `generative`), penalty lambda and its centre, optimiser, stopping rules."""

    init: str
    penalty: float
    penalty_center: float
    optimizer: str
    tolerance: float
    max_iterations: int


def ascend(space: ParameterSpace, how: Ascent, watch: Watch) -> Parameters:
    """The tables of the best parameters found from the start; never worse than the start in the penalised objective."""
    problem = _Problem(space.likelihood, space.coordinates, how)
    cll_path: list[float] = []

    def report(step: Step, p: Array) -> None:
        penalty = problem.penalty(p)
        cll_path.append(penalty - step.value)
        watch(_told(step, cll_path[-1], penalty, how.optimizer, space.costs))

    optimum = _minimise(problem.objective, problem.start, how, report)
    return Parameters(
        space.likelihood.tables(space.coordinates.tables(optimum.point)),
        space.coordinates.n_parameters,
        cll_path[0],
        cll_path[-1],
        optimum.iterations,
        optimum.evaluations,
        optimum.stopped_by,
    )


def ascend_from(space: ParameterSpace, how: Ascent, point: Array) -> Optimum:
    """The best parameters found from `point`, near which they are expected; `how` tells all but the start."""
    problem = _Problem(space.likelihood, space.coordinates, how)
    near = replace(problem.objective, precondition=problem.refreshed(point, NEAR_COST))
    return _minimise(near, point, how, lambda step, p: None)


def _minimise(objective: Objective, start: Array, how: Ascent, report: Report) -> Optimum:
    optimizer = importlib.import_module(f"bncli.engine.optimizers.{how.optimizer}")
    limits = {"tolerance": how.tolerance, "max_iterations": how.max_iterations}
    return optimizer.minimise(objective, start, report=report, **limits)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Problem:
    """The objective to be minimised. Preconditioners are made when first asked for: some optimisers never do."""

    likelihood: ConditionalLikelihood
    space: Coordinates
    how: Ascent

    @property
    def objective(self) -> Objective:
        return Objective(self.value_and_gradient, self.precondition, self.hessian, self.refreshed, self.separable)

    @property
    def start(self) -> Array:
        return self.space.generative if self.how.init == "generative" else np.zeros(self.space.n_parameters)

    def penalty(self, p: Array) -> float:
        return self.how.penalty / 2 * float(np.square(p - self.how.penalty_center).sum())

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        cll, d_tables = self.likelihood.value_and_gradient(self.space.tables(p))
        gradient = self.how.penalty * (p - self.how.penalty_center) - self.space.pull_back(p, d_tables)
        return self.penalty(p) - cll, gradient

    def separable(self, value: float) -> bool:
        """Every row's loss is under its weight times ln 2, so every row is classified strictly right.

        Multiplying the tables by a growing factor then drives the CLL to 0.
        """
        weights = self.likelihood.data.weights
        lightest = 1.0 if weights is None else float(weights.min())
        return self.how.penalty == 0 and value < lightest * math.log(2)

    def precondition(self, g: Array) -> Array:
        return self._at_start(g)

    def hessian(self, p: Array) -> Callable[[Array], Array]:
        """J'HJ + lambda I, J the derivative of the tables: what bends them (in `extended` only) is left out."""
        of_tables = self.likelihood.hessian(self.space.tables(p))

        def product(v: Array) -> Array:
            return self.how.penalty * v + self.space.pull_back(p, of_tables(self.space.push(p, v)))

        return product

    def refreshed(self, p: Array, cost: float) -> Precondition:
        return self._whitening.refresh(p, cost)

    @cached_property
    def _at_start(self) -> Precondition:
        return self._whitening.start(self.start)

    @cached_property
    def _whitening(self) -> Whitening:
        return whitening(self.likelihood, self.space, self.how.penalty)


def _told(step: Step, cll: float, penalty: float, optimizer: str, costs: Costs | None) -> Iteration:
    flops = None if costs is None else costs.spent(optimizer, step.iteration, step.evaluations)
    spent = (step.evaluations, step.gradient_evaluations)
    return Iteration(step.iteration, cll, penalty, step.gradient_norm, step.step, *spent, flops)
