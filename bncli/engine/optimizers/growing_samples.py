"""Descent through samples of the rows, each the start of the next, then Newton's method with a sample's curvature.

With f the objective of all rows and f_S that of a sample S, an estimate of f, every sample in turn is descended until
what is left to gain is under a share ENOUGH of its statistical error; to go on would be to learn the sample by heart
(Daneshmand, Lucchi & Hofmann 2016, Starting small, ICML). From the last one's end the steps are those of all rows,

    x <- x + a d,    d = -B grad f(x),    a by the line search on f

where B is the inverse that the last steps on all rows make of H_S(x)^-1 (L-BFGS, `Pairs`). With H_S^-1 alone steps
are too long or too short along the same directions again and again, by a half at 16 rows a parameter; the pairs put
that right once it was met, and are forgotten where a whole step is too long. H_S^-1 is multiplied with by conjugate
gradients (`newton_direction`) whose products cost but a share of a pass (Byrd, Chin, Neveitt & Nocedal 2011, SIAM
Journal on Optimization 21), and roughly, for the pairs put that right too. Value and gradient are those of all rows, so
the optimum is that of all rows; the sample only says which way leads there. After WINDOW iterations that is weighed by
how far a pass lowers the logarithm of the gain predicted: where all rows would lower it further, the products are with
their Hessian, and the pairs left out, as long as that is so. Until it was tried, a direction found in k products is
expected to lower the gain to TRUNCATION^2 of what it was, for k + 1 passes and what a preconditioner costs; k is that
of the sample's last one. Where no lower point lies along d the method that descends the samples takes over.

Stops are those of `bncli.engine.optimizers.quasi_newton`; what is predicted is g'H_S^-1 g / 2. Iteration 0 is the
start, 1 the end of the samples, which is left for the start if it is no better, and all others are steps on all rows.

Counts are in passes over all rows: evaluations and products on samples count by the samples' share of the rows, their
sums rounded up.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, StoppedBy
from bncli.engine.optimizers.line_search import Probe, search
from bncli.engine.optimizers.objective import Objective, Report, Step
from bncli.engine.optimizers.quasi_newton import (
    COST,
    NEWTON_WINDOW,
    PASSES,
    TRUNCATION,
    Pairs,
    Refresh,
    newton_direction,
)

ENOUGH = 0.1
LOOSEST = 5e-2
"""The largest tolerance on a sample, as a share of the objective."""
WINDOW = 4
"""So many iterations tell what a pass gains."""


class SampleObjective(NamedTuple):
    """A sample: its objective, the share of a pass that an evaluation costs, and its statistical error in nats."""

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
    """Return the minimiser found from `start`, shape (P,), through one or more `samples`, small ones first.

    Deterministic.

    `method`: the `minimise` of the optimiser that descends the samples.
    """
    run = _Run(objective, start, method, tolerance, max_iterations, report)
    sample = run.grow(samples)
    reason = None if sample is None else run.descend(sample)
    return run.on_all_rows() if reason is None else run.optimum(reason)


class _Run:
    """Where the descent on all rows is, and what it has spent."""

    def __init__(
        self,
        objective: Objective,
        start: Array,
        method: Callable[..., Optimum],
        tolerance: float,
        max_iterations: int,
        report: Report,
    ) -> None:
        self._objective, self._tolerance, self._max_iterations = objective, tolerance, max_iterations
        self._method, self._report = method, report
        self._full, self._evaluations, self._products = 0, 0.0, 0.0
        self._iteration = 0
        self._here = self._probe(start)
        self._tell(0.0)

    def grow(self, samples: Iterable[SampleObjective]) -> SampleObjective | None:
        """Go to where the samples lead; the last of them, or None if that is no better than the start."""
        point, value, last = self._here.point, self._here.value, None
        for sample in samples:
            near = sample.objective
            if last is not None:
                near = replace(near, precondition=near.refreshed(point, COST[0]))
            enough = min(max(ENOUGH * sample.error / max(value, sample.error), self._tolerance), LOOSEST)
            found = self._method(
                near, point, tolerance=enough, max_iterations=self._max_iterations, report=lambda step, p: None
            )
            self._evaluations += found.evaluations * sample.share
            self._products += found.products * sample.share
            point, value, last = found.point, found.value, sample
        found_there = self._probe(point)
        if last is None or not found_there.value < self._here.value:
            return None
        self._arrive(found_there, 1.0)
        return last

    def descend(self, sample: SampleObjective) -> StoppedBy | None:
        """Newton steps till there is a reason to stop; None where no lower point lies along one of them."""
        curvatures = _Curvatures(sample, self._objective, self._here.point)
        values = deque([self._here.value], maxlen=NEWTON_WINDOW + 1)
        while True:
            here, began = self._here, self._spent
            curvature = curvatures.chosen(here.point)
            direction = curvature.direction(here, curvatures.pairs)
            self._products += curvature.used * curvature.share
            slope = float(direction @ here.gradient)
            curvatures.predicted(-slope)
            reason = self._finished(-slope / 2, values)
            if reason is not None:
                return reason
            found, step, _ = search(self._value_and_gradient, here, direction, slope)
            if found is None:
                return None
            if step < 1:
                # the curvature is no longer what it was
                curvatures.pairs.forget()
            else:
                curvatures.pairs.remember(found.point - here.point, found.gradient - here.gradient)
            self._arrive(found, step)
            values.append(found.value)
            curvatures.spent(self._spent - began)
            curvature.refresh.at(found.point, curvature.spent)

    def _finished(self, predicted: float, values: deque[float]) -> StoppedBy | None:
        """Return the reason to stop, if there is one.

        `values` are those of the last iterations, full after a whole window.
        """
        enough = self._tolerance * abs(self._here.value)
        if self._objective.separable(self._here.value):
            return StoppedBy.SEPARABLE
        # a hundredth, because the curvature is only a guess
        if predicted <= 1e-2 * enough:
            return StoppedBy.GRADIENT
        if len(values) == values.maxlen and values[0] - values[-1] <= enough:
            return StoppedBy.TOLERANCE
        cap = self._max_iterations
        capped = self._iteration >= cap or self._passes >= PASSES * cap
        return StoppedBy.MAX_ITERATIONS if capped else None

    def on_all_rows(self) -> Optimum:
        """Return the rest of the way without samples."""
        done, point = self.optimum(StoppedBy.MAX_ITERATIONS), self._here.point
        near = replace(self._objective, precondition=self._objective.refreshed(point, COST[0]))

        def report(step: Step, p: Array) -> None:
            # its start has been told
            if step.iteration:
                passes = done.evaluations + done.products
                spent = (done.evaluations + step.evaluations, passes + step.gradient_evaluations)
                self._report(
                    Step(done.iterations + step.iteration, step.value, step.gradient_norm, step.step, *spent), p
                )

        left = max(self._max_iterations - done.iterations, 0)
        found = self._method(near, point, tolerance=self._tolerance, max_iterations=left, report=report)
        return replace(
            found,
            iterations=done.iterations + found.iterations,
            evaluations=done.evaluations + found.evaluations,
            products=done.products + found.products,
        )

    def optimum(self, reason: StoppedBy) -> Optimum:
        """Return the current point as the optimum, with the work that it took."""
        here = self._here
        spent = (self._iteration, self._told_evaluations)
        return Optimum(here.point, here.value, _norm(here.gradient), *spent, reason, self._told_products)

    @property
    def _told_evaluations(self) -> int:
        return self._full + math.ceil(self._evaluations)

    @property
    def _told_products(self) -> int:
        return math.ceil(self._products)

    @property
    def _passes(self) -> int:
        return self._told_evaluations + self._told_products

    @property
    def _spent(self) -> float:
        return self._full + self._evaluations + self._products

    def _probe(self, point: Array) -> Probe:
        return Probe(point, *self._value_and_gradient(point))

    def _value_and_gradient(self, point: Array) -> tuple[float, Array]:
        self._full += 1
        return self._objective.value_and_gradient(point)

    def _arrive(self, found: Probe, step: float) -> None:
        self._here = found
        self._iteration += 1
        self._tell(step)

    def _tell(self, step: float) -> None:
        here = self._here
        spent = (self._told_evaluations, self._passes)
        self._report(Step(self._iteration, here.value, _norm(here.gradient), step, *spent), here.point)


class _Curvatures:
    """The Hessians of a sample and of all rows, and which of them gains more; `pairs` of steps on all rows."""

    def __init__(self, sample: SampleObjective, objective: Objective, point: Array) -> None:
        self.pairs = Pairs()
        self._sampled = self._last = _Curvature(sample.objective, sample.share, point)
        self._objective = objective
        self._all: _Curvature | None = None
        self._made, self._gain, self._passes = self._sampled, 0.0, 0.0

    def chosen(self, point: Array) -> _Curvature:
        """Return that which gains more a pass: measured over its last steps, or expected."""
        sampled = self._sampled
        if len(sampled.steps) < WINDOW:
            return sampled
        if self._all is None:
            if sampled.rate >= -2 * math.log(TRUNCATION) / (sampled.used + 1 + COST[1]):
                return sampled
            self._all = _Curvature(self._objective, 1.0, point)
        self._last = sampled if self._all.steps and self._all.rate < sampled.rate else self._all
        return self._last

    def predicted(self, gain: float) -> None:
        """Record the gain predicted after the last step beside what that step achieved."""
        if self._passes and gain > 0:
            self._made.steps.append((math.log(self._gain / gain), self._passes))
        self._made, self._gain = self._last, gain

    def spent(self, passes: float) -> None:
        """Record the passes of the step that was predicted last."""
        self._passes = passes


class _Curvature:
    """The Hessian of a sample, or of all rows: a product with it costs a `share` of a pass.

    `steps`: by how much each of the last lowered the logarithm of the gain predicted, and its passes.
    """

    def __init__(self, objective: Objective, share: float, point: Array) -> None:
        self._objective, self.share = objective, share
        self.refresh = Refresh(replace(objective, precondition=objective.refreshed(point, COST[1])))
        self.spent = self.used = 0
        self.steps: deque[tuple[float, float]] = deque(maxlen=WINDOW)

    @property
    def rate(self) -> float:
        """Of the last steps, a pass."""
        return sum(lowered for lowered, _ in self.steps) / sum(passes for _, passes in self.steps)

    def direction(self, here: Probe, pairs: Pairs) -> Array:
        """Return the Newton direction, put right by the pairs; it took so many products as `used` says from now on."""
        product = self._objective.hessian(here.point)

        def solution(g: Array) -> Array:
            found, self.used = newton_direction(product, self.refresh.precondition, g)
            return -found

        # the curvature of all rows needs no putting right
        known = pairs if self.share < 1 else Pairs()
        found = -known.inverse_hessian(solution, here.gradient, scaled=False)
        self.spent += self.used
        return found


def _norm(vector: Array) -> float:
    return math.sqrt(float(vector @ vector))
