"""Descent under linear inequalities, C x >= 0, by augmented Lagrangians (Rockafellar 1973; Bertsekas 1982).

    minimise  f(x) + sum over rows r of (1 / 2 rho_r) max(0, mu_r - rho_r (C x)_r)^2
    then set  mu_r to max(0, mu_r - rho_r (C x)_r)

A smooth problem a round, which any optimizer takes from where the last one ended. The multipliers mu are those of the
optimum in the end: grad f(x) = C'mu, and each row has mu_r = 0 or (C x)_r = 0. Of a convex f they converge from
anywhere.

Stop: when the rows that bind are known so well that

    sum over r of max(mu_r, mu_r before) |mu_r - mu_r before| / rho_r <= tolerance f

which is about what is lost by moving x to where C x >= 0, or is at most STILL times that, and no more than the round
before, while f has not moved by more in WINDOW rounds, as where rounds end early. Where rows are so stiff that rounding
decides, multipliers drift away again from where they were: once that sum was NEAR f and STALLED rounds have not halved
it, the round where it was least has the answer.

Conventions: rho begins at what the caller says of each row, the curvature there, and grows threefold, MOST_GROWN times
at the most, for the rows whose |mu - mu before| / rho is among the largest and has not come down by half; a round's
tolerance begins loose and falls to a share TIGHTEST of the tolerance: an error e of a round's minimum is one of
(2 rho e)^1/2 in multipliers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.objective import Objective, Precondition, Report, Step

ROUNDS, ITERATIONS = 100, 15
"""Of a round: where many rows bind, multipliers that are right in the end matter more than a round's last digits."""
GROWTH, MOST_GROWN, SLOW, LARGE = 3.0, 1e4, 0.5, 0.1
LOOSE, TIGHTER, TIGHTEST = 1e-4, 0.1, 1e-2
"""Of a round's tolerance: the first one, from one to the next, and the last one as a share of the tolerance."""
MOST_ROWS, ENTRIES = 2500, 1 << 24
"""Rows that a preconditioner knows of, and numbers that it keeps of them."""
TOGETHER = 64
"""Rows that are multiplied at a time."""
WINDOW, STILL = 3, 10.0
STALLED, NEAR = 15, 1e-5
CLOSEST = 1e-8
"""A tolerance of less asks for digits that sums over rows do not have."""


@dataclass(frozen=True)
class Inequalities:
    """C x >= 0, C (R, n) a product of matrices; `stiffness` (R,) is about the curvature of f along each row."""

    factors: tuple[Any, ...]
    stiffness: Array

    def product(self, x: Array) -> Array:
        """Return C x (R,) of x (n,), or (R, any) of (n, any)."""
        for factor in reversed(self.factors):
            x = factor @ x
        return x

    def transposed(self, force: Array) -> Array:
        """Return C' of (R,) or (R, any)."""
        for factor in self._back:
            force = factor @ force
        return force

    @cached_property
    def _back(self) -> list[Any]:
        return [factor.T for factor in self.factors]


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
    max_iterations: int,
    report: Report,
) -> Constrained:
    """Return the minimiser found from `start` by rounds of `method`, told as if all were one.

    Its value is that of f alone.
    """
    x, mu, rho = start, np.zeros(len(rows.stiffness)), rows.stiffness
    tolerance = max(tolerance, CLOSEST)
    spent, each, last = _Spent(report), max(LOOSE, tolerance), np.full(len(mu), np.inf)
    stiff = _Stiffened(rows, objective.precondition)
    values, stall = deque([np.inf], maxlen=WINDOW), _Stall()
    while True:
        punished = _Punished(rows, mu, rho)
        around = replace(objective, precondition=stiff.precondition(punished, x))
        stop: dict[str, Any] = {"tolerance": each, "max_iterations": min(max_iterations, ITERATIONS)}
        found = method(punished.added_to(around), x, report=spent.told(punished), **stop)
        spent.add(found)
        x = found.point
        before, mu = mu, punished.force(x)
        gap = float(np.maximum(mu, before) @ (np.abs(mu - before) / rho))
        value = found.value - punished.value(x)
        near = tolerance * max(abs(value), objective.negligible)
        still = abs(value - values[0]) <= near and gap <= STILL * near and gap <= stall.last
        values.append(value)
        arrived = each <= tolerance and found.stopped_by is not StoppedBy.MAX_ITERATIONS
        if arrived and (gap <= near or still):
            return Constrained(spent.optimum(found, value), mu)
        stall.add(gap, found, value, mu)
        ended = spent.iterations >= max_iterations or spent.rounds == ROUNDS
        if ended or (stall.rounds >= STALLED and stall.least <= NEAR * near / tolerance):
            best = replace(stall.found, stopped_by=StoppedBy.MAX_ITERATIONS) if ended else stall.found
            return Constrained(spent.optimum(best, stall.value), stall.multipliers)
        moved = np.abs(mu - before) / rho
        # rho, (rows of C,), grown where a row moved hardly less than it did in the round before, and as far as any.
        slow = (moved > SLOW * last) & (moved >= LARGE * moved.max(initial=0.0)) & (rho < MOST_GROWN * rows.stiffness)
        rho, last = np.where(slow, GROWTH * rho, rho), moved
        each = max(each * TIGHTER, TIGHTEST * tolerance)


class _Stall:
    """The round with the least gap, and how many rounds there were since the gap was last halved."""

    def __init__(self) -> None:
        self.rounds, self.least, self.last, self._halved = 0, np.inf, np.inf, np.inf

    def add(self, gap: float, found: Optimum, value: float, multipliers: Array) -> None:
        self.rounds, self.last = self.rounds + 1, gap
        if gap <= self._halved / 2:
            self.rounds, self._halved = 0, gap
        if gap <= self.least:
            self.least, self.found, self.value, self.multipliers = gap, found, value, multipliers


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
        """Return f and what is added; rounds are too short to ask for a better guess of the curvature on their way."""
        return replace(
            of,
            value_and_gradient=self._evaluated(of),
            hessian=self._curved(of),
            refreshed=lambda x, cost: of.precondition,
        )

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


class _Stiffened:
    """Preconditioners of rounds, M being that of f, for the rows S that bind at the start of a round (Woodbury).

        (M^-1 + C_S' R_S C_S)^-1 = M - M C_S' (R_S^-1 + C_S M C_S')^-1 C_S M

    What C M C' makes of a row is kept. Of too many rows for the memory those count that are kept already, then those
    whose rho has grown most.
    """

    def __init__(self, rows: Inequalities, plain: Precondition) -> None:
        self._rows, self._plain, n = rows, plain, len(rows.stiffness)
        self._most = max(1, min(MOST_ROWS, ENTRIES // max(n, 1)))
        self._place = np.full(n, -1)
        self._known = np.zeros((0, n))

    def precondition(self, punished: _Punished, x: Array) -> Precondition:
        """Return the guess of the inverse Hessian of a round that starts at x."""
        binding = np.flatnonzero(punished.force(x) > 0)
        if len(binding) > self._most:
            order = np.lexsort((-punished.rho[binding] / self._rows.stiffness[binding], self._place[binding] < 0))
            binding = np.sort(binding[order[: self._most]])
        if not len(binding):
            return self._plain
        # C_S M C_S'.
        new = binding[self._place[binding] < 0]
        if len(self._known) + len(new) > self._most:
            kept = binding[self._place[binding] >= 0]
            self._known = self._known[self._place[kept]]
            self._place[:] = -1
            self._place[kept] = np.arange(len(kept))
        self._place[new] = len(self._known) + np.arange(len(new))
        parts = [self._of(new[i : i + TOGETHER]) for i in range(0, len(new), TOGETHER)]
        self._known = np.concatenate([self._known, *parts])
        found = self._known[np.ix_(self._place[binding], binding)]
        inner = np.asarray((found + found.T) / 2)
        inner[np.diag_indices(len(inner))] += 1.0 / punished.rho[binding]
        # loads for longer than a small fit takes, and no other fit needs it
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        try:
            factor = cho_factor(inner, overwrite_a=True, check_finite=False)
        except LinAlgError:  # of rows that depend on each other, where rounding is more than 1 / rho
            return self._plain

        def apply(g: Array) -> Array:
            free, pulled = self._plain(g), np.zeros(len(self._place))
            pulled[binding] = cho_solve(factor, self._rows.product(free)[binding], check_finite=False)
            return free - self._plain(self._rows.transposed(pulled))

        return apply

    def _of(self, rows: Index) -> Array:
        """Return C_r M C' of some rows r, (rows, R)."""
        units = np.zeros((len(self._place), len(rows)))
        units[rows, np.arange(len(rows))] = 1.0
        forces = np.ascontiguousarray(self._rows.transposed(units).T)
        return np.asarray(self._rows.product(np.stack([self._plain(force) for force in forces], axis=1)).T)


class _Spent:
    """Rounds, told and counted as one run."""

    def __init__(self, report: Report) -> None:
        self.rounds = self.iterations = self._evaluations = self._products = self._gradients = 0
        self._report = report

    def told(self, punished: _Punished) -> Report:
        """Hear of a round; the start of all but the first is the end of the one before."""

        def tell(step: Step, x: Array) -> None:
            if step.iteration or not self.rounds:
                value = step.value - punished.value(x)
                counts: dict[str, Any] = {
                    "iteration": step.iteration + self.iterations,
                    "evaluations": step.evaluations + self._evaluations,
                    "gradient_evaluations": step.gradient_evaluations + self._evaluations + self._products,
                }
                self._report(replace(step, value=value, **counts), x)

        return tell

    def add(self, found: Optimum) -> None:
        self.rounds += 1
        self.iterations += found.iterations
        self._evaluations += found.evaluations
        self._products += found.products

    def optimum(self, last: Optimum, value: float) -> Optimum:
        """Return that of the last round, with what all took."""
        return replace(
            last,
            value=value,
            iterations=self.iterations,
            evaluations=self._evaluations,
            products=self._products,
        )
