"""Conjugate gradients (Nash 1990, Compact Numerical Methods for Computers, 2nd edition, algorithm 22).

Directions of Polak & Ribiere (see `bncli.engine.optimizers.descent_loop`); along each the first acceptable point by
backtracking, then one step more, to the minimiser of the parabola known by then, if that is lower. At best two
evaluations an iteration. This is the CG of Feelders & Ivanovs 2006, who used R's optim. Cost: O(P) an iteration beside
the evaluations.

Conventions: the stopping rules are those that all methods share (see `bncli.engine.optimizers.descent_loop`).
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum
from bncli.engine.optimizers.descent_loop import Conjugate, descend
from bncli.engine.optimizers.line_search import Evaluate, Probe, Searched, acceptable_point, with_parabola
from bncli.engine.optimizers.objective import Objective, Report


def minimise(objective: Objective, start: Array, *, tolerance: float, max_iterations: int, report: Report) -> Optimum:
    """Return the minimiser found from `start`, shape (P,); deterministic."""
    return descend(objective, start, _Guide(), tolerance=tolerance, max_iterations=max_iterations, report=report)


class _Guide(Conjugate):
    def search(self, evaluate: Evaluate, start: Probe, direction: Array, slope: float) -> Searched:
        found, step, tries = acceptable_point(evaluate, start, direction, slope, self.first_step)
        if found is None:
            return found, step, tries
        self.stepped(step)
        lowest, taken, more = with_parabola(evaluate, start, direction, slope, found, step)
        return lowest, taken, tries + more
