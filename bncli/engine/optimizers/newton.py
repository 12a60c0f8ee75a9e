"""Quasi-Newton steps first, truncated Newton steps where these do not arrive soon.

Most problems are at their optimum after some dozens of passes of preconditioned L-BFGS, and Newton's method would have
taken more. What is left after NEWTON_FROM passes is hard: rare classes, almost separable rows, a small penalty. There
the curvature changes all along the way, and products with the present Hessian, each the cost of one pass, beat the
memory of old ones (`newton_direction` of `bncli.engine.optimizers.quasi_newton`). Without the preconditioner both parts
are the methods as published.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum
from bncli.engine.optimizers.objective import Objective, Report
from bncli.engine.optimizers.quasi_newton import descend

NEWTON_FROM = 80
"""Evaluations made by then."""


def minimise(
    objective: Objective,
    start: Array,
    *,
    tolerance: float,
    max_iterations: int,
    report: Report,
    preconditioner: str = "on",
) -> Optimum:
    """Return the minimiser found from `start`, shape (P,); deterministic."""
    return descend(
        objective,
        start,
        newton_from=NEWTON_FROM,
        preconditioner=preconditioner,
        tolerance=tolerance,
        max_iterations=max_iterations,
        report=report,
    )
