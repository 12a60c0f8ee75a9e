"""BFGS and conjugate gradients as published: `--optimizer bfgs`, `cg` and `cgb`.

bfgs    BFGS with the full matrix of the inverse Hessian (Nash 1990, Compact Numerical Methods for Computers, 2nd
        edition, algorithm 21), the BFGS of Feelders & Ivanovs 2006
cg      conjugate gradients (Nash 1990, algorithm 22), the CG of Feelders & Ivanovs 2006, who used R's optim.
        Backtracking finds the first acceptable point along a direction, and the minimiser of the parabola through it is
        taken instead if its value is lower. An iteration usually takes at least two evaluations
cgb     conjugate gradients with exact line searches by Brent's method, the CGB of Feelders & Ivanovs 2006. It takes
        fewer iterations than `cg`, with more evaluations each

BFGS starts from B = I. After every step s = x_{k+1} - x_k with change of gradient y = g_{k+1} - g_k and s'y > 0,

    B += [ (1 + y'By / s'y) s s' - By s' - s (By)' ] / s'y,    direction d = -B g

and a backtracking search from step 1 follows. B is reset to the identity when the direction predicts too small a
decrease, no point is acceptable, s'y <= 0, or B has been updated 2P times (R's optim), where P is the number of
parameters.

Conjugate gradients follow the formula of Polak & Ribiere:

    d_k = -g_k + beta_k d_{k-1},    beta_k = g_k'(g_k - g_{k-1}) / g_{k-1}'g_{k-1}

They restart with steepest descent, d = -g, after P iterations and when beta is not positive (Nash's algorithm 22; R's
optim). The first trial step of a line search is 1 after a restart. Otherwise it is 1.7 times the step that the last
search accepted, but at most 1. `cgb` starts its bracket there too.

When the decrease predicted for a direction is too small, or its line search fails, a method forgets what it has stored
and continues with steepest descent; only a failure of steepest descent ends the run (Nash 1990). The objective's
preconditioner is not used.

Stopping rules, with f the objective: `gradient` when the decrease predicted for steepest descent, g'g / 2, is at most
tolerance f / 100; `tolerance` when the last WINDOW iterations together improved f by no more than tolerance f;
`line-search` when no better point is found along -g; `separable` when the objective reports it; `max-iterations`.

Counts: an evaluation of the objective gives value and gradient at once. The reports count the evaluations of the value
that the published method needs, trial steps included, and of the gradient: one at the start and one after each
iteration. Cost per iteration besides the evaluations: BFGS takes 8 P^2 bytes of memory and about 12 P^2 flops, the
others O(P).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.line_search import SearchResult, backtracking_search, brent_search, parabola_step
from bncli.engine.optimizers.objective import Evaluate, Evaluation, Objective, Report, Step, norm
from bncli.errors import BncliError

MAX_BYTES = 2_000_000_000
"""The maximum size of the matrix of BFGS in bytes."""
BLOCK = 1 << 17
"""The approximate number of matrix elements updated at a time, so that temporaries stay in the cache."""
STEP_GROWTH = 1.7
WINDOW = 5
FLOOR = 1e-10
"""Tolerances are relative to the value of f, but to no less than this fraction of its first value."""


def minimise_bfgs(
    objective: Objective, start: Array, *, tolerance: float, max_iterations: int, report: Report
) -> Optimum:
    """Minimise by BFGS from `start` (P,); raise BncliError if a P x P matrix takes more than MAX_BYTES."""
    n_bytes = 8 * start.size**2
    if n_bytes > MAX_BYTES:
        raise BncliError(
            f"--optimizer bfgs would need {n_bytes / 1e9:,.1f} GB for the square matrix of {start.size:,} parameters",
            hint="use --optimizer lbfgs, which stores only a few vectors",
        )
    return _descend(objective, start, _Bfgs(), tolerance, max_iterations, report)


def minimise_cg(
    objective: Objective, start: Array, *, tolerance: float, max_iterations: int, report: Report
) -> Optimum:
    """Minimise by conjugate gradients with backtracking from `start` (P,)."""
    return _descend(objective, start, _ConjugateGradients(exact=False), tolerance, max_iterations, report)


def minimise_cgb(
    objective: Objective, start: Array, *, tolerance: float, max_iterations: int, report: Report
) -> Optimum:
    """Minimise by conjugate gradients with Brent's line search from `start` (P,)."""
    return _descend(objective, start, _ConjugateGradients(exact=True), tolerance, max_iterations, report)


def _descend(
    objective: Objective,
    start: Array,
    method: _Bfgs | _ConjugateGradients,
    tolerance: float,
    max_iterations: int,
    report: Report,
) -> Optimum:
    """Minimise along the directions of `method`; every iteration lowers the objective."""
    current = Evaluation(start, *objective.value_and_gradient(start))
    values = deque([current.value], maxlen=WINDOW + 1)
    floor = FLOOR * abs(current.value)
    evaluations, iteration = 1, 0
    report(Step(0, current.value, norm(current.gradient), 0.0, 1, 1), current.point)
    while True:
        direction = method.direction(current.gradient)
        slope = float(direction @ current.gradient)
        # the tolerance as a difference of values
        negligible = tolerance * max(abs(current.value), floor)
        # -slope / 2 is the gain if the direction is that of Newton; far below the tolerance, no step is tried
        worthwhile = -slope / 2 > 1e-2 * negligible
        if objective.separable(current.value):
            reason = StoppedBy.SEPARABLE
            break
        if method.is_steepest and not worthwhile:
            reason = StoppedBy.GRADIENT
            break
        # the fall over the last WINDOW iterations
        if len(values) > WINDOW and values[0] - values[-1] <= negligible:
            reason = StoppedBy.TOLERANCE
            break
        if iteration >= max_iterations:
            reason = StoppedBy.MAX_ITERATIONS
            break
        reached, step, tries = None, 0.0, 0
        if worthwhile:
            reached, step, tries = method.search(objective.value_and_gradient, current, direction, slope)
        evaluations += tries
        if reached is None:
            if method.is_steepest:
                reason = StoppedBy.LINE_SEARCH
                break
            # no lower value along this direction: try that of steepest descent
            method.reset()
            continue
        method.update(current, reached)
        current, iteration = reached, iteration + 1
        values.append(current.value)
        report(Step(iteration, current.value, norm(current.gradient), step, evaluations, iteration + 1), current.point)
    return Optimum(current.point, current.value, norm(current.gradient), iteration, evaluations, reason)


@dataclass
class _Bfgs:
    """The state of BFGS: the approximate inverse Hessian (None for the identity) and the number of its updates.

    `is_steepest` says whether the next direction is -g.
    """

    inverse: Array | None = None
    n_updates: int = 0
    is_steepest: bool = True

    def direction(self, gradient: Array) -> Array:
        return -gradient if self.inverse is None else -(self.inverse @ gradient)

    def search(self, evaluate: Evaluate, start: Evaluation, direction: Array, slope: float) -> SearchResult:
        return backtracking_search(evaluate, start, direction, slope)

    def update(self, before: Evaluation, after: Evaluation) -> None:
        s, y = after.point - before.point, after.gradient - before.gradient
        curvature = float(s @ y)
        # with s'y <= 0, B would no longer be positive definite
        if not curvature > 0 or self.n_updates >= 2 * s.size:
            self.reset()
            return
        if self.inverse is None:
            self.inverse = np.eye(s.size)
        # add s h' + h s', h = [(1 + y'By / s'y) s / 2 - By] / s'y, which is symmetric to the bit
        by = self.inverse @ y
        h = ((1.0 + float(y @ by) / curvature) / 2 * s - by) / curvature
        n_rows = max(1, BLOCK // s.size)
        for first in range(0, s.size, n_rows):
            rows = slice(first, first + n_rows)
            self.inverse[rows] += np.outer(s[rows], h) + np.outer(h[rows], s)
        self.n_updates, self.is_steepest = self.n_updates + 1, False

    def reset(self) -> None:
        self.inverse, self.n_updates, self.is_steepest = None, 0, True


@dataclass
class _ConjugateGradients:
    """The state of conjugate gradients: last direction and beta, and the number of iterations since the last restart.

    With `exact`, the line search is Brent's instead of backtracking with a parabola step.
    """

    exact: bool
    last: Array | None = None
    beta: float = 0.0
    n_iterations: int = 0
    first_step: float = 1.0
    is_steepest: bool = True

    def direction(self, gradient: Array) -> Array:
        self.last = -gradient if self.last is None or self.is_steepest else self.beta * self.last - gradient
        return self.last

    def search(self, evaluate: Evaluate, start: Evaluation, direction: Array, slope: float) -> SearchResult:
        search = brent_search if self.exact else backtracking_search
        reached, step, tries = search(evaluate, start, direction, slope, self.first_step)
        if reached is None:
            return reached, step, tries
        self.first_step = min(1.0, STEP_GROWTH * step)
        if self.exact:
            return reached, step, tries
        lowest, taken, more = parabola_step(evaluate, start, direction, slope, reached, step)
        return lowest, taken, tries + more

    def update(self, before: Evaluation, after: Evaluation) -> None:
        self.n_iterations, self.is_steepest = self.n_iterations + 1, False
        change = float(after.gradient @ (after.gradient - before.gradient))
        self.beta = change / float(before.gradient @ before.gradient)
        # restart if beta is not positive, and after P iterations, when no conjugate direction is left
        if not self.beta > 0 or self.n_iterations >= after.point.size:
            self.reset()

    def reset(self) -> None:
        self.n_iterations, self.first_step, self.is_steepest = 0, 1.0, True
