"""Monotone parameters: the penalised conditional likelihood maximised under the directions of attributes.

What directions ask of tables (`bncli.engine.parameter_spaces.directions`) is linear in them, and tables are linear in
the parameters p of every space that takes directions. So with the free slopes t beside p,

    C x = G (W(p)[k] - W(p)[j]) + S t_j >= 0 for every class j but k,    x = (p, t),

k being the class that the directions are about, and the problem is concave: what is found
(`bncli.engine.optimizers.augmented_lagrangian`) is the optimum. The preconditioner is that of the free problem, and a
diagonal for the slopes. Where the optimum without directions keeps them already, it is the answer.

Conventions: the stiffness of a row is about the curvature of the likelihood along it, 1 / (1 / h_c + 1 / h_c') with
h_c = n_c P(k) P(j) / (P(k) + P(j)) + 1, n_c the weight of the rows in cell c, and of the penalty, lambda / |C_r|^2, as
far as that is no more than the largest of the likelihood. What rounding leaves of a fall is taken off the tables in the
end (`Directions.repaired`).
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
from bncli.engine.parameter_spaces.coordinates import Linear
from bncli.engine.parameter_spaces.directions import Directions, directions_of
from bncli.engine.training.likelihood import ConditionalLikelihood

ENTRIES = 1 << 23
"""Of a sparse matrix that is multiplied out: differences have far fewer effects than tables have."""


def monotone_of(likelihood: ConditionalLikelihood, coordinates: Linear) -> Monotone | None:
    """What the directions of the rows' schema ask of parameters; None where they ask for nothing."""
    directions = directions_of(likelihood.data.schema, likelihood.families)
    return None if directions is None else Monotone(directions, likelihood, coordinates)


@dataclass(frozen=True)
class Monotone:
    """The directions in the coordinates x = (p, t) of a parameter space whose tables are linear in p."""

    directions: Directions
    likelihood: ConditionalLikelihood
    coordinates: Linear

    def optimum(
        self,
        objective: Objective,
        point: Array,
        penalty: float,
        *,
        method: Callable[..., Optimum],
        report: Report,
        **stop: Any,
    ) -> Optimum:
        """The optimum of an objective of p under the directions, from `point`; `method` takes the rounds.

        `penalty` is the lambda in the objective; `stop` are the tolerance and the most iterations of all rounds.
        """
        n = len(point)
        found = augmented_lagrangian.descend(
            self.widened(objective),
            self.inequalities(penalty),
            self.start(point),
            method=method,
            report=lambda step, x: report(step, x[:n]),
            **stop,
        ).optimum
        return replace(found, point=found.point[:n])

    def keeps(self, p: Array) -> bool:
        """Whether tables of these parameters keep all directions."""
        return self.directions.lowest(self.coordinates.tables(p)) >= 0.0

    def start(self, p: Array) -> Array:
        """(p, t) with the slopes that tables of p have."""
        return np.concatenate([p, self.directions.start(self.coordinates.tables(p))])

    def inequalities(self, penalty: float) -> Inequalities:
        """C x >= 0, stiff by the likelihood and by the penalty lambda."""
        of_rows = self._stiffness.ravel()
        of_penalty = np.minimum(penalty / self._squares, of_rows.max(initial=0.0))
        return Inequalities(self._factors, of_rows + of_penalty)

    @cached_property
    def _factors(self) -> tuple[Any, ...]:
        """C as a product of sparse matrices: of differences of contrasts of tables, and of what makes tables."""
        from scipy.sparse import block_diag, csr_array, eye_array, hstack, kron

        n_others, n_labels, of = len(self._stiffness), self.likelihood.data.n_labels, self.directions
        against = np.delete(-np.eye(n_labels), of.raised, axis=0)
        against[:, of.raised] = 1.0
        slopes = kron(eye_array(n_others), of.rows.slopes)
        beside = eye_array(slopes.shape[1])
        first = csr_array(hstack([kron(against, of.rows.differences), slopes]))
        return _multiplied([first, *(csr_array(block_diag([factor, beside])) for factor in self.coordinates.factors)])

    @cached_property
    def _squares(self) -> Array:
        """|C_r|^2 without the slopes, (R,); infinite for rows of slopes alone, or where C is not multiplied out."""
        if len(self._factors) > 1:
            return np.full(self._factors[0].shape[0], np.inf)
        n_slopes = len(self._stiffness) * self.directions.n_slopes
        found = self._factors[0].power(2) @ np.repeat([1.0, 0.0], [self.coordinates.n_parameters, n_slopes])
        return np.where(found > 0, found, np.inf)

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


def _multiplied(factors: list[Any]) -> tuple[Any, ...]:
    """Sparse matrices of the same product, the first ones multiplied out as far as that has at most ENTRIES numbers."""
    from scipy.sparse import csr_array

    product, *rest = factors
    while rest and int(np.diff(rest[0].indptr)[product.indices].sum()) <= ENTRIES:
        product = csr_array(product @ rest.pop(0))
        product.eliminate_zeros()
    return (product, *rest)


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
