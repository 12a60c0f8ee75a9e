"""All that an optimiser sees: a smooth function to be minimised, and what is known of its curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bncli.engine.kernels.arrays import Array

Precondition = Callable[[Array], Array]


@dataclass(frozen=True)
class Objective:
    """f: R^P -> R, twice differentiable and bounded below by 0.

    `precondition` multiplies by a symmetric positive definite guess of the inverse Hessian at the start;
    `refreshed(point, cost)` makes the guess at another point, as good as it gets at the cost of so many evaluations;
    `hessian(point)` multiplies by the Hessian there, or by a positive semidefinite stand-in for it.
    `separable(f)` says of a value reached that the infimum lies at infinity. `negligible` is a value of which smaller
    ones need not be told apart: a tolerance is a share of at least this.
    """

    value_and_gradient: Callable[[Array], tuple[float, Array]]
    precondition: Precondition
    hessian: Callable[[Array], Callable[[Array], Array]]
    refreshed: Callable[[Array, float], Precondition]
    separable: Callable[[float], bool]
    negligible: float = 0.0


@dataclass(frozen=True)
class Step:
    """What an optimiser reports after an iteration: where it is, and what it has spent since the start.

    `evaluations` are those of the value; a product with the Hessian counts among the `gradient_evaluations`.
    """

    iteration: int
    value: float
    gradient_norm: float
    step: float
    evaluations: int
    gradient_evaluations: int


Report = Callable[[Step, Array], None]
