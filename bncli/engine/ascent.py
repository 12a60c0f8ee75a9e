"""Penalised conditional likelihood, maximised in any parameter space by any optimiser.

    maximise  CLL(W(p)) - lambda/2 sum_q (p_q - centre)^2

against the summed CLL, on all parameters, the class term included. The optimiser minimises the negative.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bncli.engine.coordinates import Coordinates
from bncli.engine.flops import Costs
from bncli.engine.likelihood import ConditionalLikelihood
from bncli.engine.model import Parameters
from bncli.engine.objective import Objective, Precondition, Step
from bncli.engine.whitening import Whitening, whitening
from bncli.watch import Iteration, Watch

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ascent:
    """How to climb: start (`zero` or `generative`), penalty lambda and its centre, optimiser, stopping rules."""

    init: str
    penalty: float
    penalty_center: float
    optimizer: str
    tolerance: float
    max_iterations: int


def ascend(
    likelihood: ConditionalLikelihood, space: Coordinates, how: Ascent, watch: Watch, costs: Costs | None = None
) -> Parameters:
    """The tables of the best parameters found from the start; never worse than the start in the penalised objective.

    `costs` in flops are for the trace only.
    """
    start = space.generative if how.init == "generative" else np.zeros(space.n_parameters)

    def penalty(p: Array) -> float:
        return how.penalty / 2 * float(np.square(p - how.penalty_center).sum())

    def value_and_gradient(p: Array) -> tuple[float, Array]:
        cll, d_tables = likelihood.value_and_gradient(space.tables(p))
        gradient = how.penalty * (p - how.penalty_center) - space.pull_back(p, d_tables)
        return penalty(p) - cll, gradient

    lightest = 1.0 if likelihood.data.weights is None else float(likelihood.data.weights.min())

    def separable(value: float) -> bool:
        # Every row's loss is under its weight times ln 2, so every row is classified strictly right:
        # multiplying the tables by a growing factor drives the CLL to 0.
        return how.penalty == 0 and value < lightest * math.log(2)

    cll_path: list[float] = []

    def report(step: Step, p: Array) -> None:
        cll_path.append(penalty(p) - step.value)
        watch(_told(step, cll_path[-1], penalty(p), how.optimizer, costs))

    @cache
    def white() -> Whitening:
        return whitening(likelihood, space, how.penalty)

    @cache
    def at_start() -> Precondition:
        return white().start(start)

    # Preconditioners are made when first asked for: some optimisers never do.
    objective = Objective(value_and_gradient, lambda g: at_start()(g), lambda p: white().refresh(p), separable)
    optimizer = importlib.import_module(f"bncli.engine.optimizers.{how.optimizer}")
    optimum = optimizer.minimise(
        objective, start, tolerance=how.tolerance, max_iterations=how.max_iterations, report=report
    )
    return Parameters(
        likelihood.tables(space.tables(optimum.point)),
        space.n_parameters,
        cll_path[0],
        cll_path[-1],
        optimum.iterations,
        optimum.evaluations,
        optimum.stopped_by,
    )


def _told(step: Step, cll: float, penalty: float, optimizer: str, costs: Costs | None) -> Iteration:
    n_gradients = step.evaluations if step.gradient_evaluations is None else step.gradient_evaluations
    flops = None if costs is None else costs.spent(optimizer, step.iteration, step.evaluations)
    return Iteration(step.iteration, cll, penalty, step.gradient_norm, step.step, step.evaluations, n_gradients, flops)
