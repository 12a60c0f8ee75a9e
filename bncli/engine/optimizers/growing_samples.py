"""Descent through growing samples of the rows, then Newton steps on all rows with the curvature of a sample.

Let f be the objective of all rows and f_S the objective of a sample S, an estimate of f. On every sample in turn, f_S
is minimised until the remaining gain is below the fraction ENOUGH of its statistical error; going on would be
overfitting the sample (Daneshmand, Lucchi & Hofmann 2016, Starting small, ICML). Each sample starts where the last one
ended. After the last sample, steps use all rows,

    x <- x + a d,    d = -B grad f(x),    a by the line search on f

where B is the L-BFGS update of H_S(x)^-1 by the last steps on all rows (`Pairs`). With H_S^-1 alone, steps along the
same directions are repeatedly too long or too short (by half, with 16 rows per parameter). The pairs correct this once
it has been observed; they are dropped when a full step is too long. Products with H_S^-1 come from conjugate gradients
(`newton_direction`), each step of which costs a fraction of a pass (Byrd, Chin, Neveitt & Nocedal 2011, SIAM
Journal on Optimization 21); rough products are enough, since the pairs correct them too. Value and gradient are
computed from all rows, so the optimum is the optimum for all rows; the sample only determines the direction.

After WINDOW iterations, the Hessians of the sample and of all rows are compared by how far a pass lowers the logarithm
of the predicted gain. While the Hessian of all rows would lower it further, it is used, without the pairs. Until it has
been tried, its direction is expected to lower the gain to the fraction TRUNCATION^2 at the cost of k + 1 passes and a
preconditioner, where k is the number of products that the sample's last direction took. If no lower point is found
along d, the method used on the samples continues on all rows.

**From a point nearby** (`descend_near`), such as the optimum of other rows, no sample is minimised: its optimum would
be worse than that point. The Newton steps begin there at once. Their predicted gains are accurate, so the steps end as
soon as the gain of the next one, extrapolated from the last two, is within the tolerance. (Measured on 1,000,000 rows
with 27,000 parameters: 3 steps and 4 passes, where L-BFGS took 24 passes and two preconditioners of all rows.)

The stopping rules are those of `bncli.engine.optimizers.quasi_newton`, with the predicted decrease g'Bg / 2. Iteration
0 is the start. If samples are minimised, iteration 1 is the optimum of the last one. If that is no better than the
start, it is dropped, and the method used on the samples runs on all rows from the start. All other iterations are steps
on all rows.

Counts are in passes over all rows: each evaluation or product on a sample counts as the sample's fraction of the rows,
and the sums are rounded up.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.line_search import wolfe_search
from bncli.engine.optimizers.objective import Evaluation, Objective, Report, add_counts, continue_reports
from bncli.engine.optimizers.quasi_newton import (
    CERTAIN,
    COST,
    NEWTON_WINDOW,
    TRUNCATION,
    Descent,
    Pairs,
    Refresh,
    newton_direction,
)

ENOUGH = 0.1
LOOSEST = 5e-2
"""The largest tolerance on a sample, as a fraction of the objective."""
WINDOW = 4
"""The number of iterations from which the gain per pass is computed."""


class SampleObjective(NamedTuple):
    """A sample's objective, the cost of evaluating it as a fraction of a pass, and its statistical error in nats."""

    objective: Objective
    share: float
    error: float


def descend(
    objective: Objective,
    start: Array,
    samples: Iterable[SampleObjective],
    *,
    method: Callable[..., Optimum],
    tolerance: float,
    max_iterations: int,
    report: Report,
) -> Optimum:
    """Minimise `objective` from `start` (P,), beginning with one or more `samples`, the smallest first.

    `method` is the optimizer used on the samples. It is also used on all rows if the samples' optimum is no better than
    `start` or a line search fails.
    """
    run = Descent(objective, start, tolerance, max_iterations, report)
    # samples are drawn only with a penalty, under which values do not fall to 0
    run.floor = 0.0
    sample = _descend_samples(run, samples, method)
    reason = None if sample is None else _newton_steps(run, sample)
    return _descend_all_rows(run, method) if reason is None else run.optimum(reason)


def descend_near(
    objective: Objective,
    start: Array,
    sample: SampleObjective,
    *,
    method: Callable[..., Optimum],
    tolerance: float,
    max_iterations: int,
    report: Report,
) -> Optimum:
    """Minimise `objective` from `start` (P,), near its optimum, by Newton steps with the curvature of a sample.

    `method` is the optimizer used if a line search fails.
    """
    run = Descent(objective, start, tolerance, max_iterations, report)
    # samples are drawn only with a penalty, under which values do not fall to 0
    run.floor = 0.0
    reason = _newton_steps(run, sample, is_near=True)
    return _descend_all_rows(run, method) if reason is None else run.optimum(reason)


def _descend_samples(
    run: Descent, samples: Iterable[SampleObjective], method: Callable[..., Optimum]
) -> SampleObjective | None:
    """Move to the optimum of the last sample and return that sample, or return None if it is no better than the start.

    None is also returned if there are no samples.
    """
    point, value, last = run.current.point, run.current.value, None
    for sample in samples:
        objective = sample.objective
        if last is not None:
            objective = replace(objective, precondition=objective.refreshed(point, COST[0]))
        # relative to the value, as optimizers require
        tolerance = min(max(ENOUGH * sample.error / max(value, sample.error), run.tolerance), LOOSEST)
        optimum = method(
            objective, point, tolerance=tolerance, max_iterations=run.max_iterations, report=lambda step, p: None
        )
        run.sampled_evaluations += optimum.evaluations * sample.share
        run.products += optimum.products * sample.share
        point, value, last = optimum.point, optimum.value, sample
    reached = Evaluation(point, *run.evaluate(point))
    if last is None or not reached.value < run.current.value:
        return None
    run.arrive(reached, 1.0)
    return last


def _newton_steps(run: Descent, sample: SampleObjective, *, is_near: bool = False) -> StoppedBy | None:
    """Take Newton steps until there is a reason to stop, and return it, or None if a line search fails.

    With `is_near`, the start is so near the optimum that predicted gains are accurate and fall about geometrically.
    Then the steps end as soon as the next gain is expected to be within the tolerance.
    """
    sampled = _Curvature(sample.objective, sample.share, run.current.point)
    of_all_rows: _Curvature | None = None
    pairs, values = Pairs(), deque([run.current.value], maxlen=NEWTON_WINDOW + 1)
    # for the previous step: the curvature of its direction, its predicted gain, and its passes
    last, last_gain, last_passes = sampled, 0.0, 0.0
    expected_gain = math.inf
    while True:
        current = run.current
        if is_near and (reason := run.stop_reason(expected_gain, values, certain=1.0)) is not None:
            return reason
        passes = run.evaluations + run.sampled_evaluations + run.products
        curvature = sampled
        if len(sampled.steps) == WINDOW:
            # the fall of ln gain per pass, if a direction of all rows lowers the gain to TRUNCATION^2
            expected = -2 * math.log(TRUNCATION) / (sampled.used + 1 + COST[1])
            if of_all_rows is None and sampled.rate < expected:
                of_all_rows = _Curvature(run.objective, 1.0, current.point)
            # unless it has been tried and was slower
            if of_all_rows is not None and not (of_all_rows.steps and of_all_rows.rate < sampled.rate):
                curvature = of_all_rows
        direction = curvature.direction(current, pairs)
        run.products += curvature.used * curvature.share
        slope = float(direction @ current.gradient)
        if last_passes and -slope > 0:
            last.steps.append((math.log(last_gain / -slope), last_passes))
            # the gain -slope / 2 falls again by the factor -slope / last_gain
            expected_gain = slope**2 / last_gain / 2
        last, last_gain = curvature, -slope
        reason = run.stop_reason(-slope / 2, values, certain=1.0 if is_near else CERTAIN)
        if reason is not None:
            return reason
        reached, step, _ = wolfe_search(run.evaluate, current, direction, slope)
        if reached is None:
            return None
        if step < 1:
            # the curvature has changed
            pairs.clear()
            expected_gain = math.inf
        else:
            pairs.add(reached.point - current.point, reached.gradient - current.gradient)
        run.arrive(reached, step)
        values.append(reached.value)
        last_passes = run.evaluations + run.sampled_evaluations + run.products - passes
        curvature.refresh.update(reached.point, curvature.n_products)


def _descend_all_rows(run: Descent, method: Callable[..., Optimum]) -> Optimum:
    """Run `method` on all rows from the current point."""
    done, point = run.optimum(StoppedBy.MAX_ITERATIONS), run.current.point
    objective = replace(run.objective, precondition=run.objective.refreshed(point, COST[0]))
    left = max(run.max_iterations - done.iterations, 0)
    later = continue_reports(done, run.report)
    return add_counts(done, method(objective, point, tolerance=run.tolerance, max_iterations=left, report=later))


class _Curvature:
    """The Hessian of a sample or of all rows; a product with it costs the fraction `share` of a pass.

    `steps` holds, for each of the last steps, the decrease of the logarithm of the predicted gain, and the passes it
    took. `used` is the number of products for the last direction, `n_products` the number for all directions.
    """

    def __init__(self, objective: Objective, share: float, point: Array) -> None:
        self._objective, self.share = objective, share
        self.refresh = Refresh(replace(objective, precondition=objective.refreshed(point, COST[1])))
        self.n_products = self.used = 0
        self.steps: deque[tuple[float, float]] = deque(maxlen=WINDOW)

    @property
    def rate(self) -> float:
        """The mean decrease per pass of the logarithm of the predicted gain, over the last steps."""
        return sum(lowered for lowered, _ in self.steps) / sum(passes for _, passes in self.steps)

    def direction(self, current: Evaluation, pairs: Pairs) -> Array:
        """Return the truncated Newton direction and set `used`; a sample's direction is corrected by the pairs."""
        product = self._objective.hessian(current.point)

        def solve(g: Array) -> Array:
            solution, self.used = newton_direction(product, self.refresh.precondition, g)
            return -solution

        # the curvature of all rows needs no correction
        corrections = pairs if self.share < 1 else Pairs()
        direction = -corrections.times_inverse_hessian(solve, current.gradient)
        self.n_products += self.used
        return direction
