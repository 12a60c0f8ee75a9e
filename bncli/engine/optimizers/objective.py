"""The objectives that optimizers receive, and the evaluations and steps that they report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum

Precondition = Callable[[Array], Array]
"""A function that multiplies a gradient by an approximate inverse Hessian."""
Evaluate = Callable[[Array], tuple[float, Array]]
"""A function that returns the value and the gradient at a point."""


HISTORY = 20
"""The default maximum number of pairs of steps and gradient changes that L-BFGS stores."""
FIRST_GAP = 15
"""The default number of evaluations and Hessian products before the first refresh of the preconditioner."""


@dataclass(frozen=True)
class Objective:
    """A function f: R^P -> R, twice differentiable and bounded below by 0.

    - precondition: multiplies by a symmetric positive definite approximation of the inverse Hessian at the start
    - refreshed(point, cost): returns such a function for another point; computing it may take the time of about `cost`
      evaluations
    - hessian(point): returns a function that multiplies by the Hessian there, or by a positive semidefinite substitute
    - separable(value): returns whether a value this low shows that the infimum lies at infinity
    - negligible: tolerances are relative to f, or to this value where f is smaller
    - first_gap: the number of evaluations and products with the Hessian before the first refresh of the preconditioner
    - history: the maximum number of pairs that L-BFGS stores
    - ends_products: whether the conjugate gradients for a Newton direction also end when their last steps lower the
      quadratic model by no more than the tolerance
    """

    value_and_gradient: Evaluate
    precondition: Precondition
    hessian: Callable[[Array], Callable[[Array], Array]]
    refreshed: Callable[[Array, float], Precondition]
    separable: Callable[[float], bool]
    negligible: float = 0.0
    first_gap: int = FIRST_GAP
    history: int = HISTORY
    ends_products: bool = False


@dataclass(frozen=True)
class Evaluation:
    """A point with the objective's value and gradient there."""

    point: Array
    value: float
    gradient: Array


@dataclass(frozen=True)
class Step:
    """The report of an optimizer after an iteration; the counts are totals since the start.

    `step` is the length of the step along the search direction. `evaluations` counts evaluations of the value. A
    product with the Hessian counts as a gradient evaluation.
    """

    iteration: int
    value: float
    gradient_norm: float
    step: float
    evaluations: int
    gradient_evaluations: int


Report = Callable[[Step, Array], None]
"""A function that receives every step, including the start (iteration 0), and the point that the step reached."""


def norm(vector: Array) -> float:
    return math.sqrt(float(vector @ vector))


def add_counts(earlier: Optimum, later: Optimum) -> Optimum:
    """Return the later optimum with the iterations, evaluations and products of both runs added up."""
    return replace(
        later,
        iterations=earlier.iterations + later.iterations,
        evaluations=earlier.evaluations + later.evaluations,
        products=earlier.products + later.products,
    )


def continue_reports(earlier: Optimum, report: Report) -> Report:
    """Wrap a report function for a run that starts where an earlier one ended, so that both are reported as one run."""
    passes = earlier.evaluations + earlier.products

    def report_continued(step: Step, point: Array) -> None:
        # the start was reported as the end of the earlier run
        if step.iteration:
            iteration, evaluations = earlier.iterations + step.iteration, earlier.evaluations + step.evaluations
            spent = passes + step.gradient_evaluations
            report(replace(step, iteration=iteration, evaluations=evaluations, gradient_evaluations=spent), point)

    return report_continued
