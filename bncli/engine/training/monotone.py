"""Monotone parameters: the penalised conditional likelihood maximised under the directions of attributes.

What directions ask of tables (`bncli.engine.parameter_spaces.directions`) is linear in them, and tables are linear in
the parameters p of every space that takes directions. So with the free slopes t beside p,

    C x = G (W(p)[k] - W(p)[j]) + S t_j >= 0 for every class j but k,    x = (p, t),

k being the class that the directions are about, and the problem is concave: what is found
(`bncli.engine.optimizers.augmented_lagrangian`) is the optimum. The preconditioner is that of the free problem, and a
diagonal for the slopes. Where the optimum without directions keeps them already, it is the answer.

Conventions: the stiffness of a row is about the curvature of the likelihood along it, 1 / (1 / h_c + 1 / h_c') with
h_c = n_c P(k) P(j) / (P(k) + P(j)) + 1, n_c the weight of the rows in cell c. What rounding leaves of a fall is taken
off the tables in the end (`Directions.repaired`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum
from bncli.engine.optimizers import augmented_lagrangian
from bncli.engine.optimizers.augmented_lagrangian import Inequalities
from bncli.engine.optimizers.objective import Objective, Precondition, Report, Step
from bncli.engine.parameter_spaces.coordinates import Coordinates
from bncli.engine.parameter_spaces.directions import Directions, directions_of
from bncli.engine.training.likelihood import ConditionalLikelihood


def monotone_of(likelihood: ConditionalLikelihood, coordinates: Coordinates) -> Monotone | None:
    """What the directions of the rows' schema ask of parameters; None where they ask for nothing."""
    directions = directions_of(likelihood.data.schema, likelihood.families)
    return None if directions is None else Monotone(directions, likelihood, coordinates)


@dataclass(frozen=True)
class Monotone:
    """The directions in the coordinates x = (p, t) of a parameter space whose tables are linear in p."""

    directions: Directions
    likelihood: ConditionalLikelihood
    coordinates: Coordinates

    def optimum(
        self, objective: Objective, point: Array, *, method: Callable[..., Optimum], report: Report, **stop: Any
    ) -> Optimum:
        """The optimum of an objective of p under the directions, from `point`; `method` takes the rounds.

        `stop` are the tolerance and the most iterations of all rounds.
        """
        n = len(point)
        found = augmented_lagrangian.descend(
            self.widened(objective),
            self.inequalities,
            self.start(point),
            method=method,
            report=lambda step, x: report(step, x[:n]),
            **stop,
        ).optimum
        return replace(found, point=found.point[:n])

    def keeps(self, p: Array) -> bool:
        """Whether tables of these parameters keep all directions but for rounding."""
        return self.directions.lowest(self.coordinates.tables(p)) >= 0.0

    def start(self, p: Array) -> Array:
        """(p, t) with the slopes that tables of p have."""
        return np.concatenate([p, self.directions.start(self.coordinates.tables(p))])

    @cached_property
    def inequalities(self) -> Inequalities:
        """C x >= 0."""
        n, of, n_others = self.coordinates.n_parameters, self.directions, len(self._stiffness)
        rows = of.matrix(n_others)
        # transposed once: as a view of each product it would be made and checked again
        back, n_contrasts = rows.T.tocsr(), n_others * int(of.offsets[-1])
        origin = np.zeros(n)

        def product(x: Array) -> Array:
            contrasts = of.contrasts(self.coordinates.push(origin, x[:n]))
            return np.asarray(rows @ np.concatenate([contrasts.ravel(), x[n:]]))

        def transposed(force: Array) -> Array:
            along = back @ force
            cells = of.transposed(along[:n_contrasts].reshape(n_others, -1))
            return np.concatenate([self.coordinates.pull_back(origin, cells), along[n_contrasts:]])

        return Inequalities(product, transposed, self._stiffness.ravel())

    @cached_property
    def _stiffness(self) -> Array:
        """Of the rows of every contrast (K - 1, R)."""
        counts = self.likelihood.data.class_counts
        shares = counts / max(float(counts.sum()), 1.0)
        own, others = shares[self.directions.raised], np.delete(shares, self.directions.raised)
        both = own * others / np.maximum(own + others, 1e-300)
        return np.stack([self._stiffness_of(self.likelihood.cell_weights() * float(share) + 1.0) for share in both])

    def _stiffness_of(self, h: Array) -> Array:
        along = abs(self.directions.rows.differences) @ (1.0 / h)
        found = 1.0 / np.maximum(along, 1e-300)
        # rows of slopes alone
        return np.where(along > 0, found, float(np.median(found[along > 0])) if (along > 0).any() else 1.0)

    def widened(self, objective: Objective) -> Objective:
        """An objective of p as one of x: the slopes are free of cost."""
        n, of_slopes = self.coordinates.n_parameters, abs(self.directions.rows.slopes).T.tocsr()
        stiff = np.concatenate([of_slopes @ one for one in self._stiffness])
        n_slopes = len(stiff)
        softness = 1.0 / np.where(stiff > 0, stiff, 1.0)

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            value, gradient = objective.value_and_gradient(x[:n])
            return value, np.concatenate([gradient, np.zeros(n_slopes)])

        def hessian(x: Array) -> Callable[[Array], Array]:
            product = objective.hessian(x[:n])
            return lambda v: np.concatenate([product(v[:n]), np.zeros(n_slopes)])

        def beside(precondition: Precondition) -> Precondition:
            return lambda g: np.concatenate([precondition(g[:n]), softness * g[n:]])

        return replace(
            objective,
            value_and_gradient=value_and_gradient,
            hessian=hessian,
            precondition=beside(objective.precondition),
            refreshed=lambda x, cost: beside(objective.refreshed(x[:n], cost)),
        )


def after(free: Optimum, found: Optimum) -> Optimum:
    """What was found from a free optimum, with what both took."""
    spent = {name: getattr(free, name) + getattr(found, name) for name in ("iterations", "evaluations", "products")}
    return replace(found, **spent)


def told_after(free: Optimum, report: Report) -> Report:
    """Hears of what follows a free optimum, and tells it as if both were one run."""

    def tell(step: Step, p: Array) -> None:
        if step.iteration:
            spent = {
                "iteration": step.iteration + free.iterations,
                "evaluations": step.evaluations + free.evaluations,
                "gradient_evaluations": step.gradient_evaluations + free.evaluations + free.products,
            }
            report(replace(step, **spent), p)

    return tell
