"""Minimisation under linear inequalities, C x >= 0, by augmented Lagrangians (Rockafellar 1973; Bertsekas 1982).

    minimise  f(x) + sum over rows r of max(0, mu_r - rho_r (C x)_r)^2 / (2 rho_r)
    then set  mu_r to max(0, mu_r - rho_r (C x)_r)

Each round is a smooth problem, which any optimizer solves, starting where the last round ended. The multipliers mu
converge to the multipliers of the optimum: grad f(x) = C'mu, and each row has mu_r = 0 or (C x)_r = 0. For a convex f
they converge from any start.

Stop: after a round that was solved to the tolerance, when the multipliers have settled, so that

    sum over r of max(mu_r, mu_r before) |mu_r - mu_r before| / rho_r <= tolerance f

which is about the increase of f if x is moved to where C x >= 0. The rounds also stop when this sum is at most STILL
times tolerance f and no larger than in the round before, and f has changed by no more than tolerance f in WINDOW
rounds, as happens when rounds end early. If rows of C are so stiff that rounding errors dominate, the multipliers may
drift away again. So when the sum has been at most NEAR f and STALLED rounds have not halved it, the round with the
smallest sum is the result. It is also the result when the maximum number of iterations or rounds is reached.

Conventions: rho begins at the stiffness that the caller gives for each row of C, the curvature of f along it. It grows
threefold for the rows whose |mu - mu before| / rho is at least LARGE times the largest and has not been halved, unless
it has already grown by MOST_GROWN or more. A round's tolerance begins loose and falls to the fraction TIGHTEST of the
tolerance, because an error e of a round's minimum causes an error (2 rho e)^1/2 in the multipliers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.objective import Objective, Precondition, Report, add_counts, continue_reports

ROUNDS, ITERATIONS = 100, 15
"""The maximum number of rounds, and of iterations per round.

With many binding rows, good multipliers matter more than exact rounds.
"""
GROWTH, MOST_GROWN, SLOW, LARGE = 3.0, 1e4, 0.5, 0.1
LOOSE, TIGHTER, TIGHTEST = 1e-4, 0.1, 1e-2
"""The tolerance of the first round, the factor per round, and the lowest one as a fraction of the run's tolerance."""
MOST_ROWS, ENTRIES = 2500, 1 << 24
"""The maximum number of binding rows that a preconditioner includes, and of matrix elements that it stores for them."""
AT_A_TIME = 64
"""The maximum number of rows of C M C' computed at a time."""
WINDOW, STILL = 3, 10.0
STALLED, NEAR = 15, 1e-5
CLOSEST = 1e-8
"""The minimum tolerance, because sums over rows are not accurate to more digits."""


@dataclass(frozen=True)
class Inequalities:
    """The constraints C x >= 0.

    C (R, n) is the product of `factors`; `stiffness` (R,) approximates the curvature of f along each row of C.
    """

    factors: tuple[Any, ...]
    stiffness: Array

    def product(self, x: Array) -> Array:
        """Return C x, shape (R,) or (R, m), for x (n,) or (n, m)."""
        for factor in reversed(self.factors):
            x = factor @ x
        return x

    def transposed(self, force: Array) -> Array:
        """Return C' times `force`, shape (n,) or (n, m), for `force` (R,) or (R, m)."""
        for factor in self._transposes:
            force = factor @ force
        return force

    @cached_property
    def _transposes(self) -> list[Any]:
        return [factor.T for factor in self.factors]


def descend(
    objective: Objective,
    rows: Inequalities,
    start: Array,
    *,
    method: Callable[..., Optimum],
    tolerance: float,
    max_iterations: int,
    report: Report,
) -> Optimum:
    """Minimise `objective` under C x >= 0 from `start` (n,), in rounds of the optimizer `method`.

    The rounds are counted and reported as one run. Reported and returned values do not include the penalty term, but
    gradient norms do.
    """
    x, mu, rho = start, np.zeros(len(rows.stiffness)), rows.stiffness
    tolerance = max(tolerance, CLOSEST)
    round_tolerance, last_moves = max(LOOSE, tolerance), np.full(len(mu), np.inf)
    preconditioners = _Preconditioners(rows, objective.precondition)
    done: Optimum | None = None
    values = deque([np.inf], maxlen=WINDOW)
    # gaps: the sum of the stopping rule in the last round, when it was last halved, and in the best round
    n_rounds, n_stalled, last_gap, halved_gap, least_gap = 0, 0, np.inf, np.inf, np.inf
    while True:
        penalty = _PenaltyTerm(rows, mu, rho)
        conditioned = replace(objective, precondition=preconditioners.precondition(penalty, x))
        report_f = penalty.subtracted_from(report)
        reached = method(
            penalty.added_to(conditioned),
            x,
            report=report_f if done is None else continue_reports(done, report_f),
            tolerance=round_tolerance,
            max_iterations=min(max_iterations, ITERATIONS),
        )
        n_rounds, done = n_rounds + 1, reached if done is None else add_counts(done, reached)
        x = reached.point
        # the new multipliers are the forces of the penalty term at the minimum of the round
        before, mu = mu, penalty.force(x)
        gap = float(np.maximum(mu, before) @ (np.abs(mu - before) / rho))
        optimum = replace(reached, value=reached.value - penalty.value(x))
        near = tolerance * max(abs(optimum.value), objective.negligible)
        # values[0] is the value WINDOW rounds ago
        is_still = abs(optimum.value - values[0]) <= near and gap <= STILL * near and gap <= last_gap
        values.append(optimum.value)
        is_solved = round_tolerance <= tolerance and reached.stopped_by is not StoppedBy.MAX_ITERATIONS
        if is_solved and (gap <= near or is_still):
            break
        n_stalled, last_gap = n_stalled + 1, gap
        if gap <= halved_gap / 2:
            n_stalled, halved_gap = 0, gap
        if gap <= least_gap:
            least_gap, best = gap, optimum
        if done.iterations >= max_iterations or n_rounds == ROUNDS:
            optimum = replace(best, stopped_by=StoppedBy.MAX_ITERATIONS)
            break
        # near / tolerance is |f|, or what is negligible if that is more
        if n_stalled >= STALLED and least_gap <= NEAR * near / tolerance:
            optimum = best
            break
        moves = np.abs(mu - before) / rho
        # rho grows for rows that moved hardly less than in the round before, and about as far as any row
        slow = (moves > SLOW * last_moves) & (moves >= LARGE * moves.max(initial=0.0))
        rho = np.where(slow & (rho < MOST_GROWN * rows.stiffness), GROWTH * rho, rho)
        last_moves, round_tolerance = moves, max(round_tolerance * TIGHTER, TIGHTEST * tolerance)
    return replace(optimum, iterations=done.iterations, evaluations=done.evaluations, products=done.products)


@dataclass(frozen=True)
class _PenaltyTerm:
    """The penalty term that a round adds to f."""

    rows: Inequalities
    mu: Array
    rho: Array

    def force(self, x: Array) -> Array:
        """Return max(0, mu - rho C x)."""
        return np.asarray(np.maximum(0.0, self.mu - self.rho * self.rows.product(x)))

    def value(self, x: Array) -> float:
        return float((self.force(x) ** 2 / (2 * self.rho)).sum())

    def added_to(self, objective: Objective) -> Objective:
        """Return f plus the penalty term, with a fixed preconditioner, since rounds are too short to refresh it."""

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            value, gradient = objective.value_and_gradient(x)
            force = self.force(x)
            added = float((force**2 / (2 * self.rho)).sum())
            return value + added, gradient - self.rows.transposed(force)

        def hessian(x: Array) -> Callable[[Array], Array]:
            product, binding = objective.hessian(x), np.where(self.force(x) > 0, self.rho, 0.0)
            return lambda v: product(v) + self.rows.transposed(binding * self.rows.product(v))

        return replace(
            objective,
            value_and_gradient=value_and_gradient,
            hessian=hessian,
            refreshed=lambda x, cost: objective.precondition,
        )

    def subtracted_from(self, report: Report) -> Report:
        """Wrap a report function so that it receives values without the penalty term."""
        return lambda step, x: report(replace(step, value=step.value - self.value(x)), x)


class _Preconditioners:
    """The preconditioners of all rounds: the preconditioner M of f, corrected for the rows S of C that bind.

        (M^-1 + C_S' R_S C_S)^-1 = M - M C_S' (R_S^-1 + C_S M C_S')^-1 C_S M

    The binding rows are determined at the start of a round. This is the Woodbury formula with R = diag(rho). The rows
    of C M C' are stored once computed. If too many rows bind to include all, rows that are already stored have
    priority, then rows whose rho has grown most.
    """

    def __init__(self, rows: Inequalities, plain: Precondition) -> None:
        self._rows, self._plain, n = rows, plain, len(rows.stiffness)
        self._most = max(1, min(MOST_ROWS, ENTRIES // max(n, 1)))
        # place[r] is the number of row r among the stored rows, or -1
        self._place = np.full(n, -1)
        self._stored = np.zeros((0, n))

    def precondition(self, penalty: _PenaltyTerm, x: Array) -> Precondition:
        """Return the approximate inverse Hessian for a round that starts at x.

        It is M itself if no row binds, or if linearly dependent rows make the matrix of the formula singular.
        """
        rows, plain = self._rows, self._plain
        binding = np.flatnonzero(penalty.force(x) > 0)
        if len(binding) > self._most:
            # stored rows first, then those whose rho has grown most
            order = np.lexsort((-penalty.rho[binding] / rows.stiffness[binding], self._place[binding] < 0))
            binding = np.sort(binding[order[: self._most]])
        if not len(binding):
            return plain
        new = binding[self._place[binding] < 0]
        if len(self._stored) + len(new) > self._most:
            # keep the stored rows that bind now, renumbered
            stored = binding[self._place[binding] >= 0]
            self._stored = self._stored[self._place[stored]]
            self._place[:] = -1
            self._place[stored] = np.arange(len(stored))
        self._place[new] = len(self._stored) + np.arange(len(new))
        parts = [self._stored]
        for start in range(0, len(new), AT_A_TIME):
            chosen = new[start : start + AT_A_TIME]
            units = np.zeros((len(self._place), len(chosen)))
            units[chosen, np.arange(len(chosen))] = 1.0
            # row r of C M C' is C M times row r of C
            forces = np.ascontiguousarray(rows.transposed(units).T)
            parts.append(np.asarray(rows.product(np.stack([plain(force) for force in forces], axis=1)).T))
        self._stored = np.concatenate(parts)
        # C_S M C_S' among the binding rows, symmetric up to rounding; R_S^-1 is added to its diagonal
        block = self._stored[np.ix_(self._place[binding], binding)]
        inner = np.asarray((block + block.T) / 2)
        inner[np.diag_indices(len(inner))] += 1.0 / penalty.rho[binding]
        # takes longer to import than a small fit, and no other fit needs it
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        try:
            factor = cho_factor(inner, overwrite_a=True, check_finite=False)
        except LinAlgError:  # the rows are linearly dependent, and rounding errors exceed 1 / rho
            return plain

        def apply(g: Array) -> Array:
            unconstrained, pulled = plain(g), np.zeros(len(self._place))
            pulled[binding] = cho_solve(factor, rows.product(unconstrained)[binding], check_finite=False)
            return unconstrained - plain(rows.transposed(pulled))

        return apply
