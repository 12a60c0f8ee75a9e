"""Penalised conditional likelihoods to be maximised, and how many passes over the rows an optimiser needs for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners.conditional import learn_discriminative, learn_weighted
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Iteration

Array = NDArray[np.float64]

SMOOTHING = "m-estimate:1"
GAP = 1e-6
"""Arrived: the objective is within this share of the best that is known."""


@dataclass(frozen=True)
class Problem:
    """minimise f(p) = penalty/2 |p|^2 - CLL(W(p)) from p = 0, W = p (`discriminative`) or p log theta (`weighted`)."""

    counts: Counts
    structure: Dag
    space: str
    penalty: float = 1.0

    def learn(
        self, tolerance: float, max_iterations: int = 500, watch: Callable[[Event], None] = lambda _: None
    ) -> Any:
        """The product's own way to the optimum."""
        settings = OptimizerSettings("zero", self.penalty, 0.0, "newton", tolerance, max_iterations)
        if self.space == "discriminative":
            return learn_discriminative(
                self.counts, self.structure, smoothing=SMOOTHING, settings=settings, watch=watch
            )
        return learn_weighted(self.counts, self.structure, smoothing=SMOOTHING, level=4, settings=settings, watch=watch)

    def likelihood(self) -> ConditionalLikelihood:
        return conditional_likelihood(self.counts.data, self.structure.families(self.counts.data.schema.cardinalities))

    def plain(self) -> tuple[Callable[[Array], tuple[float, Array]], int]:
        """f and its gradient for any optimiser, and the number of parameters."""
        likelihood = self.likelihood()
        log_theta = generative_tables(self.counts, self.structure, SMOOTHING).cells
        scale = log_theta if self.space == "weighted" else np.ones_like(log_theta)

        def f(p: Array) -> tuple[float, Array]:
            cll, gradient = likelihood.value_and_gradient(scale * p.reshape(scale.shape))
            return self.penalty / 2 * float(p @ p) - cll, self.penalty * p - (scale * gradient).ravel()

        return f, log_theta.size


@dataclass(frozen=True)
class Path:
    """(passes made, objective) after each iteration."""

    steps: tuple[tuple[int, float], ...]

    @property
    def best(self) -> float:
        return min(value for _, value in self.steps)

    def passes(self, best: float, gap: float = GAP) -> float:
        """Passes until the objective is within `gap` of `best`; infinity if it never is."""
        return next((float(n) for n, value in self.steps if value - best <= gap * abs(best)), math.inf)


def own_path(problem: Problem, tolerance: float = 1e-12, max_iterations: int = 500) -> Path:
    """The path of the product's optimiser."""
    steps: list[tuple[int, float]] = []

    def watch(event: Event) -> None:
        if isinstance(event, Iteration):
            steps.append((event.gradient_evaluations, event.penalty - event.cll))

    problem.learn(tolerance, max_iterations, watch)
    return Path(tuple(steps))


def plain_path(problem: Problem, max_passes: int) -> Path:
    """The path of scipy's L-BFGS-B, ten pairs, no preconditioner."""
    from scipy.optimize import minimize

    f, n_parameters = problem.plain()
    steps: list[tuple[int, float]] = []

    def counted(p: Array) -> tuple[float, Array]:
        value, gradient = f(p)
        steps.append((len(steps) + 1, value))
        return value, gradient

    options = {"maxcor": 10, "maxfun": max_passes, "maxiter": max_passes, "ftol": 1e-14, "gtol": 1e-9}
    minimize(counted, np.zeros(n_parameters), jac=True, method="L-BFGS-B", options=options)
    return Path(tuple(steps))
