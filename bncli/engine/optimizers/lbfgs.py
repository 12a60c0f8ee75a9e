"""Limited-memory BFGS with a preconditioner (Liu & Nocedal 1989, Mathematical Programming 45).

The inverse Hessian is built from the last pairs on top of the objective's preconditioner (`Pairs` of
`bncli.engine.optimizers.quasi_newton`): L-BFGS in variables whitened by a factor of it, without ever changing
variables. The preconditioner is refreshed now and then (`Refresh`); the pairs are kept, they describe the same
function. Line search and reasons to stop are those of that module. Without the preconditioner it is the method as
published (`bncli.engine.optimizers.scipy_lbfgs`).
"""

from __future__ import annotations

import math

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum
from bncli.engine.optimizers.objective import Objective, Report
from bncli.engine.optimizers.quasi_newton import descend


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
        newton_from=math.inf,
        preconditioner=preconditioner,
        tolerance=tolerance,
        max_iterations=max_iterations,
        report=report,
    )
