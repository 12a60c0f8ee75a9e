"""Conjugate gradients with exact line searches: Polak & Ribiere's directions, Brent's method along each.

The CGB of Feelders & Ivanovs 2006: the minimum along a direction is found to a relative precision of 2e-4 (Brent 1973;
Press, Teukolsky, Vetterling & Flannery 1992, Numerical Recipes in C). Fewer iterations than with acceptable points, of
more evaluations each. Directions and restarts are those of `bncli.engine.optimizers.descent_loop`. Cost: O(P) an
iteration beside the evaluations.

Conventions: the bracket is sought from the first trial step of plain conjugate gradients, not always from 1.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum
from bncli.engine.optimizers.descent_loop import Conjugate, descend
from bncli.engine.optimizers.line_search import Evaluate, Probe, Searched, line_minimum
from bncli.engine.optimizers.objective import Objective, Report


def minimise(objective: Objective, start: Array, *, tolerance: float, max_iterations: int, report: Report) -> Optimum:
    """Return the minimiser found from `start`, shape (P,); deterministic."""
    return descend(objective, start, _Guide(), tolerance=tolerance, max_iterations=max_iterations, report=report)


class _Guide(Conjugate):
    def search(self, evaluate: Evaluate, start: Probe, direction: Array, slope: float) -> Searched:
        found, step, tries = line_minimum(evaluate, start, direction, slope, self.first_step)
        if found is not None:
            self.stepped(step)
        return found, step, tries
