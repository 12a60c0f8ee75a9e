"""Descent under linear inequalities, C x >= 0, by augmented Lagrangians (Rockafellar 1973; Bertsekas 1982).

    minimise  f(x) + sum over rows r of (1 / 2 rho_r) max(0, mu_r - rho_r (C x)_r)^2
    then set  mu_r to max(0, mu_r - rho_r (C x)_r)

A smooth problem a round, which any optimizer takes from where the last one ended. The multipliers mu are those of the
optimum in the end: grad f(x) = C'mu, and each row has mu_r = 0 or (C x)_r = 0. Of a convex f they converge from
anywhere.

Stop: when the rows that bind are known so well that

    sum over r of mu_r |mu_r - mu_r before| / rho_r <= tolerance f

which is about what is lost by moving x to where C x >= 0. Conventions: rho begins at what the caller says of each row,
the curvature there, and grows tenfold when a round brings the sum down by less than half; the tolerance of a round
begins loose and ends at the tolerance itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum
from bncli.engine.optimizers.objective import Objective, Report, Step

ROUNDS = 60
GROWTH, SLOW = 10.0, 0.5
LOOSE, TIGHTER = 1e-4, 0.1
"""Of a round's tolerance: the first one, and from one to the next."""
CLOSEST = 1e-9
"""A tolerance of less asks for digits that sums over rows do not have."""


@dataclass(frozen=True)
class Inequalities:
    """C x >= 0 by products with C and its transpose; `stiffness` (R,) is about the curvature of f along each row."""

    product: Callable[[Array], Array]
    transposed: Callable[[Array], Array]
    stiffness: Array


@dataclass(frozen=True)
class Constrained:
    """The optimum, and the multipliers (R,) of the rows there."""

    optimum: Optimum
    multipliers: Array


def descend(
    objective: Objective,
    rows: Inequalities,
    start: Array,
    *,
    method: Callable[..., Optimum],
    tolerance: float,
    report: Report,
) -> Constrained:
    """The minimiser found from `start` by rounds of `method`, told as if all were one; its value is that of f alone."""
    x, mu, rho = start, np.zeros(len(rows.stiffness)), rows.stiffness
    spent, gap, each = _Spent(report), np.inf, max(LOOSE, tolerance)
    while True:
        punished = _Punished(rows, mu, rho)
        found = method(
            punished.added_to(objective),
            x,
            tolerance=each,
            report=spent.told(punished),
        )
        spent.add(found)
        x = found.point
        before, mu = mu, punished.force(x)
        last, gap = gap, float(mu @ (np.abs(mu - before) / rho))
        value = found.value - punished.value(x)
        near = max(tolerance, CLOSEST) * max(abs(value), objective.negligible)
        if (gap <= near and each <= max(tolerance, CLOSEST)) or spent.rounds == ROUNDS:
            return Constrained(spent.optimum(found, value), mu)
        if gap > SLOW * last:
            rho = rho * GROWTH
        each = max(each * TIGHTER, tolerance, CLOSEST / 10)


@dataclass(frozen=True)
class _Punished:
    """What a round adds to f."""

    rows: Inequalities
    mu: Array
    rho: Array

    def force(self, x: Array) -> Array:
        """max(0, mu - rho C x)."""
        return np.asarray(np.maximum(0.0, self.mu - self.rho * self.rows.product(x)))

    def value(self, x: Array) -> float:
        return float((self.force(x) ** 2 / (2 * self.rho)).sum())

    def added_to(self, of: Objective) -> Objective:
        """f and what is added. What is known of the curvature of f guesses that of both."""
        return replace(of, value_and_gradient=self._evaluated(of), hessian=self._curved(of))

    def _evaluated(self, of: Objective) -> Callable[[Array], tuple[float, Array]]:
        def evaluate(x: Array) -> tuple[float, Array]:
            value, gradient = of.value_and_gradient(x)
            force = self.force(x)
            added = float((force**2 / (2 * self.rho)).sum())
            return value + added, gradient - self.rows.transposed(force)

        return evaluate

    def _curved(self, of: Objective) -> Callable[[Array], Callable[[Array], Array]]:
        def hessian(x: Array) -> Callable[[Array], Array]:
            product, binding = of.hessian(x), np.where(self.force(x) > 0, self.rho, 0.0)

            def multiplied(v: Array) -> Array:
                return product(v) + self.rows.transposed(binding * self.rows.product(v))

            return multiplied

        return hessian


class _Spent:
    """Rounds, told and counted as one run."""

    def __init__(self, report: Report) -> None:
        self.rounds = self._iterations = self._evaluations = self._products = self._gradients = 0
        self._report = report

    def told(self, punished: _Punished) -> Report:
        """Hears of a round; the start of all but the first is the end of the one before."""

        def tell(step: Step, x: Array) -> None:
            if step.iteration or not self.rounds:
                value = step.value - punished.value(x)
                counts: dict[str, Any] = {
                    "iteration": step.iteration + self._iterations,
                    "evaluations": step.evaluations + self._evaluations,
                    "gradient_evaluations": step.gradient_evaluations + self._evaluations + self._products,
                }
                self._report(replace(step, value=value, **counts), x)

        return tell

    def add(self, found: Optimum) -> None:
        self.rounds += 1
        self._iterations += found.iterations
        self._evaluations += found.evaluations
        self._products += found.products

    def optimum(self, last: Optimum, value: float) -> Optimum:
        """That of the last round, with what all took."""
        return replace(
            last,
            value=value,
            iterations=self._iterations,
            evaluations=self._evaluations,
            products=self._products,
        )
