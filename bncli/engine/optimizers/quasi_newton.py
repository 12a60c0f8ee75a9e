"""Descent along preconditioned quasi-Newton directions, and along truncated Newton directions from some point on.

The step along a direction d is 1 or found by cubic interpolation, and satisfies the strong Wolfe conditions with
constants 1e-4 and 0.9. Without a preconditioner the quasi-Newton part is the published L-BFGS, with its own search
(`bncli.engine.optimizers.scipy_lbfgs`), and the conjugate gradients of the Newton part start from the gradient itself.

Stops, with f the objective: `gradient` when the decrease predicted, g'Hg / 2, is under tolerance f / 100 (a vanishing
gradient in the problem's own metric); `tolerance` when the last WINDOW quasi-Newton iterations, or NEWTON_WINDOW Newton
iterations, together improved f by no more than tolerance f; `line-search` when no better point exists along a Newton
direction, or along the preconditioned gradient; `separable` when the objective says so; `max-iterations`. Where f is
less than what the objective calls negligible, that takes its place in tolerance f. The distance to the optimum is then
of the order of tolerance f. Newton steps without a preconditioner end by `tolerance` alone: the gradient in itself
predicts nothing.

A product with the Hessian costs about as much as an evaluation, and is told as one of the gradient.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.line_search import Evaluate, Probe, search
from bncli.engine.optimizers.objective import Objective, Precondition, Report, Step

WINDOW = 5
NEWTON_WINDOW = 2
FLOOR = 1e-10
"""Values are compared with this share of the first one where they have fallen below it."""
PASSES = 4
"""So many evaluations and products for every iteration allowed are the cap too."""
HISTORY = 20
"""Pairs that are remembered."""
GAP = (15, 120)
"""Evaluations from one refresh of the preconditioner to the next, at first and at most; it doubles."""
COST = (12.0, 30.0)
"""Evaluations that a refresh may cost: half of all made so far, but at least and at most so many."""
TRUNCATION = 0.3
MAX_PRODUCTS = 200
FLAT = 1e-12
Followed = Callable[[Probe, Evaluate, Callable[[Array], bool], Callable[[Probe, float], None]], StoppedBy | None]
"""A descent from a point: whether to go on along a direction is asked, every point and its step are told."""


class _Run:
    """Where the descent is, and what it has spent."""

    def __init__(
        self, objective: Objective, start: Array, tolerance: float, max_iterations: int, report: Report
    ) -> None:
        self.here = Probe(start, *objective.value_and_gradient(start))
        self.evaluations, self.products, self.iteration = 1, 0, 0
        self._objective, self._tolerance, self._max_iterations = objective, tolerance, max_iterations
        self._report = report
        self._refresh = Refresh(objective)
        self._floor = max(FLOOR * abs(self.here.value), objective.negligible)
        self._tell(0.0)

    def quasi_newton(self, until: float) -> StoppedBy | None:
        """Descend till there is a reason to stop; None after `until` evaluations."""
        pairs, values = Pairs(), deque([self.here.value], maxlen=WINDOW + 1)
        while self.evaluations < until:
            direction = -pairs.inverse_hessian(self._refresh.precondition, self.here.gradient)
            reason = self._finished(direction, values)
            if reason is not None:
                return reason
            before = self.here
            if self._advance(direction):
                pairs.remember(self.here.point - before.point, self.here.gradient - before.gradient)
                values.append(self.here.value)
            elif len(pairs):
                # old pairs may mislead: the preconditioned gradient alone is tried before giving up
                pairs.forget()
            else:
                return StoppedBy.LINE_SEARCH
        return None

    def followed(self, method: Followed, until: float) -> StoppedBy | None:
        """Return the same by another method's loop, which asks and tells."""
        values = deque([self.here.value], maxlen=WINDOW + 1)
        reason: StoppedBy | None = None

        def goes_on(direction: Array) -> bool:
            nonlocal reason
            if self.evaluations >= until:
                return False
            reason = self._finished(direction, values)
            return reason is None

        def arrived(found: Probe, step: float) -> None:
            self._arrive(found, step)
            values.append(found.value)

        return method(self.here, self._evaluate, goes_on, arrived) or reason

    def newton(self, guess: bool = True) -> StoppedBy:
        """Descend till there is a reason to stop; `guess`: whether the preconditioner says how far it is."""
        values = deque([self.here.value], maxlen=NEWTON_WINDOW + 1)
        while True:
            reason = self._finished(-self._refresh.precondition(self.here.gradient) if guess else None, values)
            if reason is not None:
                return reason
            product = self._objective.hessian(self.here.point)
            direction, used = newton_direction(product, self._refresh.precondition, self.here.gradient)
            self.products += used
            if not self._advance(direction):
                return StoppedBy.LINE_SEARCH
            values.append(self.here.value)

    def _finished(self, direction: Array | None, values: deque[float]) -> StoppedBy | None:
        """Return the reason to stop, if there is one.

        `values` are those of the last iterations, full after a whole window.

        Without a `direction` nothing is predicted of the next step.
        """
        # of separable rows the value itself falls to 0, and no share of it would ever be enough: hence the floor
        enough = self._tolerance * max(abs(self.here.value), self._floor)
        if self._objective.separable(self.here.value):
            return StoppedBy.SEPARABLE
        # the decrease that a quadratic model predicts; a hundredth, because its curvature is only a guess
        if direction is not None and -float(direction @ self.here.gradient) / 2 <= 1e-2 * enough:
            return StoppedBy.GRADIENT
        if len(values) == values.maxlen and values[0] - values[-1] <= enough:
            return StoppedBy.TOLERANCE
        cap = self._max_iterations
        capped = self.iteration >= cap or self._spent >= PASSES * cap
        return StoppedBy.MAX_ITERATIONS if capped else None

    @property
    def _spent(self) -> int:
        return self.evaluations + self.products

    def _advance(self, direction: Array) -> bool:
        """Return one iteration along `direction`; False where no point there is better."""
        slope = float(direction @ self.here.gradient)
        found, step, _ = search(self._evaluate, self.here, direction, slope)
        if found is None:
            return False
        self._arrive(found, step)
        return True

    def _evaluate(self, point: Array) -> tuple[float, Array]:
        self.evaluations += 1
        return self._objective.value_and_gradient(point)

    def _arrive(self, found: Probe, step: float) -> None:
        self.here = found
        self.iteration += 1
        self._refresh.at(found.point, self._spent)
        self._tell(step)

    def _tell(self, step: float) -> None:
        here = self.here
        norm = _norm(here.gradient)
        self._report(Step(self.iteration, here.value, norm, step, self.evaluations, self._spent), here.point)


class Refresh:
    """The preconditioner of one run: short runs pay little for it, long runs get the best there is."""

    def __init__(self, objective: Objective) -> None:
        self.precondition: Precondition = objective.precondition
        self._objective = objective
        self._last, self._gap = 0, GAP[0]

    def at(self, point: Array, evaluations: int) -> None:
        """Rebuild it at `point` if it is time; `evaluations` are all since the start, and what cost as much."""
        if evaluations - self._last >= self._gap:
            self.precondition = self._objective.refreshed(point, min(max(evaluations / 2, COST[0]), COST[1]))
            self._last, self._gap = evaluations, min(2 * self._gap, GAP[1])


@dataclass(frozen=True)
class _Pair:
    s: Array
    y: Array
    rho: float


class Pairs:
    """The limited memory: the last HISTORY steps, and how the gradient changed along them.

    The inverse Hessian is built from pairs s = x_{j+1} - x_j, y = g_{j+1} - g_j on top of a given guess Q, scaled:

        H_0 = gamma Q,    gamma = s'y / y'Qy of the last pair  (1 before the first)

    by the two-loop recursion (Nocedal & Wright 2006, Numerical Optimization, algorithm 7.4).
    """

    def __init__(self) -> None:
        self._pairs: deque[_Pair] = deque(maxlen=HISTORY)

    def __len__(self) -> int:
        return len(self._pairs)

    def forget(self) -> None:
        self._pairs.clear()

    def remember(self, s: Array, y: Array) -> None:
        """Keep the pair unless its curvature is lost in rounding."""
        curvature = float(s @ y)
        # below this, s'y is the rounding of two nearly equal gradients, and 1 / s'y would be noise
        if curvature > 1e-12 * float(np.sqrt((s @ s) * (y @ y))):
            self._pairs.append(_Pair(s, y, 1.0 / curvature))

    def inverse_hessian(self, precondition: Precondition, gradient: Array, scaled: bool = True) -> Array:
        """H g, Q being `precondition`; `scaled`: whether by gamma, or Q as it is."""
        q, along = gradient.copy(), np.empty(len(gradient))
        alphas = []
        for pair in reversed(self._pairs):
            alphas.append(pair.rho * float(pair.s @ q))
            q -= np.multiply(alphas[-1], pair.y, out=along)
        r = precondition(q)
        if self._pairs and scaled:
            last = self._pairs[-1]
            # gamma = s'y / y'Qy: the guess brought to the scale of the last step
            r = r * (1.0 / (last.rho * float(last.y @ precondition(last.y))))
        for pair, alpha in zip(self._pairs, reversed(alphas), strict=True):
            r += np.multiply(alpha - pair.rho * float(pair.y @ r), pair.s, out=along)
        return r


def descend(
    objective: Objective,
    start: Array,
    *,
    newton_from: float,
    preconditioner: str,
    tolerance: float,
    max_iterations: int,
    report: Report,
) -> Optimum:
    """Return the minimiser found from `start`, shape (P,); directions are Newton's after `newton_from` evaluations.

    `preconditioner` is `on`, or `off` for the published methods.
    """
    if preconditioner == "off":
        from bncli.engine.optimizers import scipy_lbfgs  # loads for longer than a small fit takes, and before it starts

        plain = replace(objective, precondition=np.copy, refreshed=lambda point, cost: np.copy)
        run = _Run(plain, start, tolerance, max_iterations, report)
        reason = run.followed(scipy_lbfgs.descend, newton_from) or run.newton(guess=False)
    else:
        run = _Run(objective, start, tolerance, max_iterations, report)
        reason = run.quasi_newton(newton_from) or run.newton()
    here = run.here
    spent = (run.iteration, run.evaluations)
    return Optimum(here.point, here.value, _norm(here.gradient), *spent, reason, run.products)


def _norm(vector: Array) -> float:
    return math.sqrt(float(vector @ vector))


def newton_direction(
    product: Callable[[Array], Array], precondition: Precondition, gradient: Array, truncation: float = TRUNCATION
) -> tuple[Array, int]:
    """Return (a direction of descent, products taken); `product` multiplies by H, positive semidefinite.

    Conjugate gradients on Hd = -g that end early (Dembo & Steihaug 1983, Mathematical Programming 26). They lower the
    quadratic model m(d) = g'd + d'Hd / 2 step by step, preconditioned by Q, a guess of the inverse Hessian, and end
    when the residual r = -g - Hd is small beside the gradient, r'Qr <= truncation^2 g'Qg: a rough direction is enough
    where the next point has another Hessian. (The test of Nash & Sofer, by the progress of the model, ends too soon
    where Q is poor: on the hardest problems it took two to three times as many products.)

    Where H is singular a direction may have no curvature but that of rounding, and a step along it would be rounding
    too. They end there as well: at a direction p whose curvature in the metric of Q, p'Hp / p'Q^-1 p, is under FLAT
    times the largest before it. The metric costs nothing: p_i'Q^-1 p_i = r_i'Qr_i + beta_i^2 p_(i-1)'Q^-1 p_(i-1).

    >>> d, products = newton_direction(lambda v: 4.0 * v, lambda v: v, np.array([2.0, -8.0]))
    >>> d.tolist(), products  # -g / 4, in one product
    ([-0.5, 2.0], 1)
    """
    d, residual, steepest = np.zeros(len(gradient)), -gradient, 0.0
    direction = precondition(residual)
    fit = first = length = float(residual @ direction)
    for i in range(1, MAX_PRODUCTS + 1):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= FLAT * steepest * length:
            # in the first round d is still 0: the preconditioned gradient itself
            return (d, i) if i > 1 else (direction, i)
        steepest = max(steepest, curvature / length)
        alpha = fit / curvature
        d += alpha * direction
        residual -= alpha * image
        z = precondition(residual)
        last, fit = fit, float(residual @ z)
        if fit <= truncation**2 * first:
            break
        beta = fit / last
        direction = z + beta * direction
        length = fit + beta**2 * length
    return d, i
