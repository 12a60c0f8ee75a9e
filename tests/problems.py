"""Smooth functions to be minimised, for every optimiser: bowls, a bent valley, softmax regressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.model import Optimum
from bncli.engine.optimizers.objective import Objective, Step
from tests import oracles

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]


def identity(g: Array) -> Array:
    return g.copy()


def objective(
    function: Function, precondition: Any = identity, separable: Any = lambda value: False, hessian: Any = None
) -> Objective:
    """The function as optimisers see it; without `hessian`, gradients on both sides of a point serve."""
    products = differences(function) if hessian is None else hessian
    return Objective(function, precondition, products, lambda point, cost: precondition, separable)


def differences(function: Function, step: float = 1e-4) -> Callable[[Array], Callable[[Array], Array]]:
    """Products with the Hessian of `function` at a point, from gradients at four points beside it."""

    def at(point: Array) -> Callable[[Array], Array]:
        def product(v: Array) -> Array:
            length = float(np.linalg.norm(v)) or 1.0
            slope = oracles.slope(lambda x: function(x)[1], point, v / length, step)
            return np.asarray(slope * length)

        return product

    return at


def minimise(
    method: Callable[..., Optimum], problem: Objective, start: Array, **options: Any
) -> tuple[Optimum, list[Step]]:
    """Return the optimum that `method` finds, by default to high precision, and the steps that it reports."""
    steps: list[Step] = []
    settings = {"tolerance": 1e-12, "max_iterations": 2000, **options}
    return method(problem, start, report=lambda step, _: steps.append(step), **settings), steps


def counted(function: Function) -> tuple[Function, list[Array]]:
    """The function, and the points at which it has been asked for."""
    calls: list[Array] = []

    def counting(x: Array) -> tuple[float, Array]:
        calls.append(x)
        return function(x)

    return counting, calls


def quadratic(n: int, seed: int, condition: float) -> tuple[Function, Array]:
    """1 + (x - m)' A (x - m) / 2 and A."""
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    a, m = q * np.geomspace(1.0, condition, n) @ q.T, rng.normal(size=n)
    return lambda x: (1.0 + float((x - m) @ a @ (x - m)) / 2, a @ (x - m)), a


def rosenbrock(x: Array) -> tuple[float, Array]:
    return 1.0 + float(optimize.rosen(x)), np.asarray(optimize.rosen_der(x))


def multinomial(seed: int, penalty: float, n: int = 80, m: int = 5, k: int = 3) -> Function:
    """Penalised negative log-likelihood of softmax regression on random features."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, m)) * np.geomspace(0.1, 10, m), rng.integers(0, k, n)

    def function(p: Array) -> tuple[float, Array]:
        scores = x @ p.reshape(m, k)
        log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, np.newaxis]
        residual = np.exp(log_p)
        residual[np.arange(n), y] -= 1.0
        value = penalty / 2 * p @ p - log_p[np.arange(n), y].sum()
        return float(value), (x.T @ residual).ravel() + penalty * p

    return function


def half_square(x: Array) -> tuple[float, Array]:
    """x'x / 2: nothing but a penalty, as where there is a single class."""
    return float(x @ x) / 2, x.copy()


def logistic_loss(x: Array) -> tuple[float, Array]:
    """ln(1 + exp(-x)): the infimum lies at infinity."""
    return float(np.logaddexp(0.0, -x[0])), -np.exp(-np.logaddexp(0.0, x))


def barrier(x: Array) -> tuple[float, Array]:
    """2 + x - ln x, infinite where x <= 0."""
    if x[0] <= 0:
        return np.inf, np.array([np.nan])
    return float(2.0 + x[0] - np.log(x[0])), 1 - 1 / x


PROBLEMS: dict[str, tuple[Function, int]] = {
    "round bowl": (quadratic(5, 0, 1.0)[0], 5),
    "long bowl": (quadratic(20, 1, 1e4)[0], 20),
    "rosenbrock 2": (rosenbrock, 2),
    "rosenbrock 8": (rosenbrock, 8),
    "softmax": (multinomial(0, 1.0), 15),
    "softmax, weak penalty": (multinomial(1, 1e-3), 15),
}
"""Name: function and number of parameters."""
