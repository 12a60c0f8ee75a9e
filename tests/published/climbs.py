"""Runs of an optimiser in a parameter space, told as what they had reached when, and at what cost.

No run here has a penalty, and none stops because the classes are separable: the papers' programs did not look.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue import OPTIMIZERS
from bncli.engine.optimizers.objective import Objective, Step
from bncli.engine.parameters.optimization import ParameterSpace, Problem
from tests.spaces import how

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moment:
    """After an iteration: CLL in nats, and since the start the evaluations of the CLL, all passes over the rows
    (a product with the Hessian is one) and the seconds of processor time."""

    iteration: int
    cll: float
    evaluations: int
    passes: int
    seconds: float


@dataclass(frozen=True)
class Climb:
    """All moments of a run, the start first."""

    moments: tuple[Moment, ...]

    @property
    def start(self) -> float:
        return self.moments[0].cll

    @cached_property
    def best(self) -> float:
        return max(moment.cll for moment in self.moments)

    @property
    def end(self) -> Moment:
        return self.moments[-1]

    def reaching(self, cll: float) -> Moment | None:
        """The first moment at which the CLL was so high."""
        return next((moment for moment in self.moments if moment.cll >= cll), None)


def climb(
    space: ParameterSpace,
    optimizer: str,
    *,
    init: str = "generative",
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    max_passes: int | None = None,
    **options: Any,
) -> Climb:
    """One of the product's optimisers, with its own options and the product's preconditioners if it uses any."""
    moments: list[Moment] = []
    began = time.process_time()

    def report(step: Step, _: Array) -> None:
        passes = max(step.evaluations, step.gradient_evaluations)
        moments.append(Moment(step.iteration, -step.value, step.evaluations, passes, time.process_time() - began))
        if max_passes is not None and passes >= max_passes:
            raise _SpentError

    objective, start = problem(space, init)
    with suppress(_SpentError):
        OPTIMIZERS.load(optimizer, "minimise")(
            objective, start, tolerance=tolerance, max_iterations=max_iterations, report=report, **options
        )
    return Climb(tuple(moments))


class _SpentError(Exception):
    """All passes are made."""


def problem(space: ParameterSpace, init: str) -> tuple[Objective, Array]:
    """The negative CLL, and where to start."""
    whole = Problem(space, how(init=init))
    return replace(whole.objective, separable=lambda value: False), whole.start


def published_lbfgs(
    space: ParameterSpace, init: str, max_iterations: int, *, pairs: int = 5, tolerance: float = 0.0
) -> Climb:
    """L-BFGS-B of Zhu, Byrd, Lu & Nocedal as scipy has it: no preconditioner, `pairs` pairs (5 in its own driver)."""
    from scipy.optimize import minimize

    objective, start = problem(space, init)
    moments: list[Moment] = []
    began, evaluations = time.process_time(), 0

    def counted(p: Array) -> tuple[float, Array]:
        nonlocal evaluations
        evaluations += 1
        return objective.value_and_gradient(p)

    def told(intermediate_result: Any) -> None:
        value = float(intermediate_result.fun)
        moments.append(Moment(len(moments), -value, evaluations, evaluations, time.process_time() - began))

    value, _ = objective.value_and_gradient(start)
    moments.append(Moment(0, -value, 1, 1, time.process_time() - began))
    options: Any = {
        "maxcor": pairs,
        "maxiter": max_iterations,
        "maxfun": 10 * max_iterations,
        "ftol": tolerance,
        "gtol": 0.0,
    }
    minimize(counted, start, jac=True, method="L-BFGS-B", callback=told, options=options)
    return Climb(tuple(moments))


@contextmanager
def one_thread() -> Iterator[None]:
    """Threads of linear algebra libraries spin, and their time would count: nobody gets more than one.

    Only libraries that are loaded obey, so scipy, which brings its own, is loaded first.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    importlib.import_module("scipy.optimize")
    with threadpool_limits(1):
        yield
