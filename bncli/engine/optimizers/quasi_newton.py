"""Preconditioned L-BFGS and truncated Newton: `--optimizer lbfgs` and `newton`.

Preconditioned L-BFGS solves most problems in a few dozen passes, fewer than Newton's method would take. Problems
that are not solved after NEWTON_FROM evaluations are hard: rare classes, almost separable rows, a small penalty. Their
curvature changes all along the way, and products with the current Hessian, each at the cost of one pass, work better
than stored gradient changes. So `newton` begins with the steps of `lbfgs` and then takes truncated Newton steps.

L-BFGS (Liu & Nocedal 1989, Mathematical Programming 45) builds the inverse Hessian from the last pairs of steps and
changes of the gradient, on top of the objective's preconditioner. This equals L-BFGS in variables whitened by a factor
of the preconditioner, but no variables need to be changed. The preconditioner is refreshed from time to time; the pairs
stay, since they describe the same function. The first trial step along a direction is 1, and the accepted step
satisfies the strong Wolfe conditions with constants 1e-4 and 0.9 (`wolfe_search`).

Without the preconditioner, L-BFGS is the published method: scipy's L-BFGS-B without bounds, whose directions are -Hg
with H built from the last SCIPY_PAIRS pairs on top of

    H_0 = gamma I,    gamma = s'y / y'y of the last pair  (1 before the first)

(Byrd, Lu, Nocedal & Zhu 1995, SIAM Journal on Scientific Computing 16). Along each direction the search of More &
Thuente 1994 (ACM Transactions on Mathematical Software 20) finds a point that satisfies the strong Wolfe conditions
with constants 1e-3 and 0.9; its first trial step is 1 / |g| in the first iteration and 1 in all others. The conjugate
gradients of Newton steps are not preconditioned either.

Stopping rules, with f the objective: `gradient` when the predicted decrease, g'Hg / 2, is at most tolerance f / 100 (a
vanishing gradient in the metric of H); `tolerance` when the last WINDOW quasi-Newton iterations, or NEWTON_WINDOW
Newton iterations, together improved f by no more than tolerance f; `line-search` when no better point is found along a
Newton direction, or along the preconditioned gradient; `separable` when the objective reports it; `max-iterations`. If
f is below the value that the objective calls negligible, that value replaces f. At the end, f exceeds its minimum by
about tolerance f. Newton steps without a preconditioner never end by `gradient`, since the plain gradient does not
predict a decrease.

A product with the Hessian costs about as much as an evaluation, and is reported as an evaluation of the gradient.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.preconditioning import RowsPrecondition
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.line_search import wolfe_search
from bncli.engine.optimizers.objective import HISTORY, Evaluation, Objective, Precondition, Report, Step, norm

NEWTON_FROM = 80
"""The number of evaluations after which `newton` takes Newton steps."""
WINDOW = 5
NEWTON_WINDOW = 2
FLOOR = 1e-10
"""Tolerances are relative to the value of f, but to no less than this fraction of its first value."""
PASSES = 4
"""Evaluations and products together are limited to this number times the maximum number of iterations."""
SCIPY_PAIRS = 10
"""The default of scipy; the Fortran driver of the authors has 5."""
LARGEST_GAP = 120
"""The maximum number of passes between refreshes of the preconditioner; the gap doubles each time."""
COST = (6.0, 30.0)
"""The minimum and maximum cost of a refresh in passes; between them, it is half the number of passes so far."""
TRUNCATION = 0.3
CERTAIN = 1e-2
"""A predicted decrease ends a run at this fraction of the tolerance, because the curvature is only estimated."""
MAX_PRODUCTS = 200
FLAT = 1e-12
UNLIMITED = 10**9
NUMBERS_AT_A_TIME = 1 << 21
"""The maximum number of elements of stored vectors that are multiplied by a new preconditioner at a time."""


def minimise_newton(
    objective: Objective,
    start: Array,
    *,
    tolerance: float,
    max_iterations: int,
    report: Report,
    preconditioner: str = "on",
) -> Optimum:
    """Minimise from `start` (P,) by L-BFGS and then Newton steps."""
    run = Descent(objective, start, tolerance, max_iterations, report)
    return descend(run, NEWTON_FROM, preconditioner)


def minimise_lbfgs(
    objective: Objective,
    start: Array,
    *,
    tolerance: float,
    max_iterations: int,
    report: Report,
    preconditioner: str = "on",
) -> Optimum:
    """Minimise from `start` (P,) by L-BFGS."""
    run = Descent(objective, start, tolerance, max_iterations, report)
    return descend(run, math.inf, preconditioner)


class Descent:
    """The state of a run: the current point, and the iterations and work so far; every step is reported.

    `evaluations` counts evaluations on all rows. An evaluation on a sample adds the sample's fraction of the rows to
    `sampled_evaluations`, and a product adds it to `products`; these sums are reported rounded up.
    """

    def __init__(
        self, objective: Objective, start: Array, tolerance: float, max_iterations: int, report: Report
    ) -> None:
        self.objective, self.tolerance, self.max_iterations, self.report = objective, tolerance, max_iterations, report
        self.current = Evaluation(start, *objective.value_and_gradient(start))
        self.iteration, self.evaluations, self.sampled_evaluations, self.products = 0, 1, 0.0, 0.0
        self.floor = max(FLOOR * abs(self.current.value), objective.negligible)
        self._report(0.0)

    def evaluate(self, point: Array) -> tuple[float, Array]:
        self.evaluations += 1
        return self.objective.value_and_gradient(point)

    def arrive(self, reached: Evaluation, step: float) -> None:
        """Move to a new point, which ends an iteration, and report it."""
        self.current = reached
        self.iteration += 1
        self._report(step)

    def stop_reason(self, predicted: float | None, values: deque[float], certain: float = CERTAIN) -> StoppedBy | None:
        """Return the reason to stop, or None to go on.

        `predicted` is the decrease that a quadratic model predicts for the next step, or None if there is no model; it
        ends the run at the fraction `certain` of the tolerance. `values` are the objective's values at the last
        iterations; they are compared only when the deque is full.
        """
        negligible = self.negligible
        if self.objective.separable(self.current.value):
            return StoppedBy.SEPARABLE
        if predicted is not None and predicted <= certain * negligible:
            return StoppedBy.GRADIENT
        if len(values) == values.maxlen and values[0] - values[-1] <= negligible:
            return StoppedBy.TOLERANCE
        capped = self.iteration >= self.max_iterations or self.passes >= PASSES * self.max_iterations
        return StoppedBy.MAX_ITERATIONS if capped else None

    def optimum(self, reason: StoppedBy) -> Optimum:
        """Return the current point as the optimum, with the counts of the run."""
        counts = (self.iteration, self._n_evaluations)
        current, products = self.current, math.ceil(self.products)
        return Optimum(current.point, current.value, norm(current.gradient), *counts, reason, products)

    @property
    def negligible(self) -> float:
        """The change of the objective that the tolerance neglects."""
        # the values of separable rows fall to 0, so that no relative tolerance would ever be met: hence the floor
        return self.tolerance * max(abs(self.current.value), self.floor)

    @property
    def passes(self) -> int:
        """The number of evaluations and products together."""
        return self._n_evaluations + math.ceil(self.products)

    @property
    def _n_evaluations(self) -> int:
        return self.evaluations + math.ceil(self.sampled_evaluations)

    def _report(self, step: float) -> None:
        current = self.current
        counts = (self._n_evaluations, self.passes)
        self.report(Step(self.iteration, current.value, norm(current.gradient), step, *counts), current.point)


def descend(run: Descent, newton_from: float, preconditioner: str) -> Optimum:
    """Run L-BFGS, followed by Newton steps if it has not stopped after `newton_from` evaluations; return the optimum.

    `preconditioner` is `on`, or `off` for the published methods.
    """
    if preconditioner == "off":
        plain = replace(run.objective, precondition=np.copy, refreshed=lambda point, cost: np.copy)
        refresh = Refresh(plain)
        reason = _ScipyLbfgs(run, newton_from).descend() or _newton_steps(run, refresh, predicts=False)
    else:
        refresh = Refresh(run.objective)
        reason = _quasi_newton_steps(run, refresh, newton_from) or _newton_steps(run, refresh, predicts=True)
    return run.optimum(reason)


def _quasi_newton_steps(run: Descent, refresh: Refresh, until: float) -> StoppedBy | None:
    """Take L-BFGS steps until there is a reason to stop, and return it, or None after `until` evaluations."""
    pairs, values = PreconditionedPairs(run.objective.history), deque([run.current.value], maxlen=WINDOW + 1)
    while run.evaluations < until:
        current = run.current
        direction = -pairs.times_inverse_hessian(refresh.precondition, current.gradient)
        slope = float(direction @ current.gradient)
        reason = run.stop_reason(-slope / 2, values)
        if reason is not None:
            return reason
        reached, step, _ = wolfe_search(run.evaluate, current, direction, slope)
        if reached is not None:
            refresh.update(reached.point, run.passes)
            run.arrive(reached, step)
            before, after = current.gradient, reached.gradient
            pairs.add(reached.point - current.point, after - before, before, after)
            values.append(reached.value)
        elif len(pairs):
            # old pairs may mislead: the preconditioned gradient alone is tried before giving up
            pairs.clear()
        else:
            return StoppedBy.LINE_SEARCH
    return None


def _newton_steps(run: Descent, refresh: Refresh, predicts: bool) -> StoppedBy:
    """Take Newton steps until there is a reason to stop, and return it.

    `predicts`: whether the preconditioned gradient predicts the decrease of the next step.
    """
    values = deque([run.current.value], maxlen=NEWTON_WINDOW + 1)
    while True:
        current = run.current
        predicted = -float(-refresh.precondition(current.gradient) @ current.gradient) / 2 if predicts else None
        reason = run.stop_reason(predicted, values)
        if reason is not None:
            return reason
        product = run.objective.hessian(current.point)
        enough = run.negligible if run.objective.ends_products else 0.0
        direction, used = newton_direction(product, refresh.precondition, current.gradient, enough)
        run.products += used
        reached, step, _ = wolfe_search(run.evaluate, current, direction, float(direction @ current.gradient))
        if reached is None:
            return StoppedBy.LINE_SEARCH
        refresh.update(reached.point, run.passes)
        run.arrive(reached, step)
        values.append(reached.value)


class _StoppedError(Exception):
    """Raised to leave scipy's minimizer, which offers no other way to stop before it evaluates a point."""


class _ScipyLbfgs:
    """Scipy's L-BFGS-B, followed from iteration to iteration.

    The run's reasons to stop are checked before a point along a new direction is evaluated. scipy itself stops only if
    the gradient is 0 or no lower point is found.
    """

    def __init__(self, run: Descent, until: float) -> None:
        self._run, self._until = run, until
        self._values = deque([run.current.value], maxlen=WINDOW + 1)
        self._reason: StoppedBy | None = None
        self._direction: Array | None = None
        self._last: Evaluation | None = None

    def descend(self) -> StoppedBy | None:
        """Run scipy's minimizer; return the reason why it stopped, or None after `until` evaluations."""
        # takes longer to import than a small fit, and no other method needs it
        from scipy.optimize import minimize

        options: Any = {"maxcor": SCIPY_PAIRS, "ftol": 0.0, "gtol": 0.0, "maxiter": UNLIMITED, "maxfun": UNLIMITED}
        start = self._run.current.point
        try:
            result = minimize(
                self._value_and_gradient, start, jac=True, method="L-BFGS-B", callback=self._arrive, options=options
            )
        except _StoppedError:
            return self._reason
        # 0: the gradient is 0; otherwise no acceptable point was found, not even along -g
        return StoppedBy.GRADIENT if result.status == 0 else StoppedBy.LINE_SEARCH

    def _value_and_gradient(self, point: Array) -> tuple[float, Array]:
        current = self._run.current
        if self._last is None:
            # the value of the start is known; the first trial step is not 1 but 1 / |g|
            self._last = current
            self._follow(-current.gradient)
            return current.value, current.gradient
        if self._direction is None:
            self._follow(point - current.point)
        self._last = Evaluation(point.copy(), *self._run.evaluate(point))
        return self._last.value, self._last.gradient

    def _follow(self, direction: Array) -> None:
        """Record a new search direction, or raise _StoppedError if there is a reason to stop or `until` is reached."""
        run = self._run
        if run.evaluations >= self._until:
            raise _StoppedError
        self._reason = run.stop_reason(-float(direction @ run.current.gradient) / 2, self._values)
        if self._reason is not None:
            raise _StoppedError
        self._direction = direction

    def _arrive(self, intermediate_result: Any) -> None:
        """Move to the point that scipy accepted, or raise _StoppedError if it is not lower than the current point.

        scipy requires the name of the parameter.
        """
        assert self._last is not None
        assert self._direction is not None
        current, reached, direction, self._direction = self._run.current, self._last, self._direction, None
        if not reached.value < current.value:
            # scipy accepts a point that is no lower if only rounding is left, or if values beyond are infinite
            self._reason = StoppedBy.LINE_SEARCH
            raise _StoppedError
        self._run.arrive(reached, norm(reached.point - current.point) / norm(direction))
        self._values.append(reached.value)


class Refresh:
    """The preconditioner of a run, rebuilt from time to time at a cost that grows with the length of the run."""

    def __init__(self, objective: Objective) -> None:
        self.precondition: Precondition = objective.precondition
        self._objective = objective
        self._last, self._gap = 0, objective.first_gap

    def update(self, point: Array, passes: int) -> None:
        """Rebuild the preconditioner at `point` if it is due; `passes` is the caller's count of passes so far."""
        if passes - self._last >= self._gap:
            self.precondition = self._objective.refreshed(point, min(max(passes / 2, COST[0]), COST[1]))
            self._last, self._gap = passes, min(2 * self._gap, LARGEST_GAP)


class Pairs:
    """The limited memory of L-BFGS: at most the last `most` steps, and the change of the gradient along each.

    The inverse Hessian is built from pairs s = x_{j+1} - x_j, y = g_{j+1} - g_j on top of an approximation Q, by the
    two-loop recursion (Nocedal & Wright 2006, Numerical Optimization, algorithm 7.4). With the pairs as the rows of S
    and Y, the oldest first, and R the upper triangle of S Y', D its diagonal, the loops solve triangular systems:

        R a = S g,    x = Q (g - Y'a),    R' d = D a - Y x,    H g = x + S'd

    So the long vectors are read by four products with matrices.
    """

    def __init__(self, most: int = HISTORY) -> None:
        self._most = most
        # the rows of the arrays that hold the pairs, the oldest first: a new pair takes the row of the oldest
        self._rows: list[int] = []
        self._s = self._y = np.zeros((0, 0))
        self._sy = np.zeros((most, most))

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        self._rows.clear()

    def add(self, s: Array, y: Array) -> int | None:
        """Store a pair and return its row, or return None if its curvature s'y is not positive or lost in rounding."""
        curvature = float(s @ y)
        # below this, s'y is the rounding of two nearly equal gradients, and 1 / s'y would be noise
        if not curvature > 1e-12 * float(np.sqrt((s @ s) * (y @ y))):
            return None
        if not self._s.size:
            self._s, self._y = np.empty((self._most, len(s))), np.empty((self._most, len(s)))
        row = len(self._rows) if len(self._rows) < self._most else self._rows.pop(0)
        self._rows.append(row)
        self._s[row], self._y[row] = s, y
        n = len(self._rows)
        self._sy[:n, row] = self._s[:n] @ y
        return row

    def times_inverse_hessian(self, solve: Precondition, gradient: Array) -> Array:
        """Return H g, where H is the L-BFGS approximation of the inverse Hessian built on Q = `solve`."""
        if not self._rows:
            return solve(gradient)
        n, upper = len(self._rows), self._upper
        alphas = _solve_upper(upper, (self._s[:n] @ gradient)[self._rows])
        x = solve(gradient - self._combined(self._y, alphas))
        x += self._combined(self._s, self._deltas(upper, alphas, (self._y[:n] @ x)[self._rows]))
        return x

    @property
    def _upper(self) -> Array:
        """The upper triangle R of S Y', with the pairs in their order."""
        return np.triu(self._sy[np.ix_(self._rows, self._rows)])

    def _deltas(self, upper: Array, alphas: Array, along: Array) -> Array:
        """Return d of the second loop, given a and Y x."""
        # R' is lower triangular: reversed in both directions it is upper triangular
        right = np.diag(upper) * alphas - along
        return _solve_upper(upper.T[::-1, ::-1], right[::-1])[::-1]

    def _combined(self, vectors: Array, factors: Array) -> Array:
        """Return the sum of the pairs' vectors times their factors, which are in the order of the pairs."""
        of_rows = np.empty(len(factors))
        of_rows[self._rows] = factors
        return np.asarray(of_rows @ vectors[: len(factors)])


class PreconditionedPairs(Pairs):
    """Pairs on top of a preconditioner Q, a linear operator, which is scaled by the last pair.

        H_0 = gamma Q,    gamma = s'y / y'Qy of the last pair  (1 before the first)

    Qy of each pair is kept. It is the difference of Qg at the ends of the step, and Q (g - Y'a) = Qg - (YQ)'a, so that
    a direction takes a single product with Q, namely Qg.
    """

    def __init__(self, most: int = HISTORY) -> None:
        super().__init__(most)
        self._z, self._yz = np.zeros((0, 0)), np.zeros((most, most))
        self._precondition: Precondition | None = None
        self._last: tuple[Array, Array] | None = None
        self._new: tuple[int, Array | None, Array | None] | None = None

    def add(self, s: Array, y: Array, before: Array | None = None, after: Array | None = None) -> int | None:
        """Store a pair as `Pairs.add` does; `before` and `after` are the gradients whose difference is y, if known."""
        row = super().add(s, y)
        if row is not None:
            if self._new is not None:
                # no direction since the last pair: Qy is computed for all
                self._precondition = None
            self._new = (row, before, after)
        return row

    def clear(self) -> None:
        super().clear()
        self._new = None

    def times_inverse_hessian(self, precondition: Precondition, gradient: Array) -> Array:
        product = precondition(gradient)
        if not self._rows:
            self._last, self._precondition = (gradient, product), precondition
            return product
        self._update(precondition, gradient, product)
        n, upper = len(self._rows), self._upper
        yz = self._yz[np.ix_(self._rows, self._rows)]
        gamma = float(upper[-1, -1] / yz[-1, -1])
        alphas = _solve_upper(upper, (self._s[:n] @ gradient)[self._rows])
        along = gamma * ((self._z[:n] @ gradient)[self._rows] - yz @ alphas)
        x = product - self._combined(self._z, alphas)
        x *= gamma
        x += self._combined(self._s, self._deltas(upper, alphas, along))
        return x

    def _update(self, precondition: Precondition, gradient: Array, product: Array) -> None:
        """Compute Qy of the new pair, or of all pairs if the preconditioner has changed or several pairs are new."""
        n = len(self._rows)
        if not self._z.size:
            self._z = np.empty(self._y.shape)
        if precondition is not self._precondition:
            at_a_time = max(1, NUMBERS_AT_A_TIME // len(gradient)) if isinstance(precondition, RowsPrecondition) else 1
            for start in range(0, n, at_a_time):
                rows = slice(start, min(start + at_a_time, n))
                if isinstance(precondition, RowsPrecondition):
                    self._z[rows] = precondition.of_rows(self._y[rows])
                else:
                    self._z[start] = precondition(self._y[start])
            self._yz[:n, :n] = self._y[:n] @ self._z[:n].T
        elif self._new is not None:
            row, before, after = self._new
            if self._last is not None and self._last[0] is before and gradient is after:
                np.subtract(product, self._last[1], out=self._z[row])
            else:
                self._z[row] = precondition(self._y[row])
            self._yz[:n, row] = self._yz[row, :n] = self._y[:n] @ self._z[row]
        self._last, self._precondition, self._new = (gradient, product), precondition, None


def _solve_upper(upper: Array, right: Array) -> Array:
    """Solve an upper triangular system."""
    # without elements below the diagonal, LU factorisation has nothing to eliminate or to exchange
    return np.asarray(np.linalg.solve(upper, right), np.float64)


def newton_direction(
    product: Callable[[Array], Array], precondition: Precondition, gradient: Array, enough: float = 0.0
) -> tuple[Array, int]:
    """Return a truncated Newton direction, and the number of products it took; `product` multiplies by H.

    H is positive semidefinite. The direction comes from conjugate gradients on Hd = -g that end early (Dembo & Steihaug
    1983, Mathematical Programming 26). They lower the quadratic model m(d) = g'd + d'Hd / 2 step by step,
    preconditioned by Q, an approximation of the inverse Hessian, and end when the residual r = -g - Hd is small
    compared with the gradient, r'Qr <= TRUNCATION^2 g'Qg: a rough direction is enough, since the next point has another
    Hessian. (The test of Nash & Sofer, by the progress of the model, ends too soon where Q is poor: on the hardest
    problems it took two to three times as many products.) They also end after MAX_PRODUCTS products, and when the last
    WINDOW steps together lowered m by no more than `enough`; where Q is poor, the test of the residual may take
    hundreds of products more.

    If H is singular, the curvature along a direction may be nothing but rounding errors, and so would be the step.
    Therefore conjugate gradients also end at a direction p whose curvature in the metric of Q, p'Hp / p'Q^-1 p, is
    below FLAT times the largest so far. The metric costs nothing:
    p_i'Q^-1 p_i = r_i'Qr_i + beta_i^2 p_(i-1)'Q^-1 p_(i-1).

    >>> d, products = newton_direction(lambda v: 4.0 * v, lambda v: v, np.array([2.0, -8.0]))
    >>> d.tolist(), products  # -g / 4, in one product
    ([-0.5, 2.0], 1)
    """
    d, residual, steepest = np.zeros(len(gradient)), -gradient, 0.0
    decreases = deque([math.inf], maxlen=WINDOW)
    direction = precondition(residual)
    fit = first = length = float(residual @ direction)
    for i in range(1, MAX_PRODUCTS + 1):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= FLAT * steepest * length:
            # in the first round d is still 0, so the preconditioned gradient itself is returned
            return (d, i) if i > 1 else (direction, i)
        steepest = max(steepest, curvature / length)
        alpha = fit / curvature
        d += alpha * direction
        decreases.append(alpha * fit / 2)
        residual -= alpha * image
        z = precondition(residual)
        last, fit = fit, float(residual @ z)
        if fit <= TRUNCATION**2 * first or sum(decreases) <= enough:
            break
        beta = fit / last
        direction = z + beta * direction
        length = fit + beta**2 * length
    return d, i
