"""Newton's method against scipy's on problems and on hard fits; when it takes over from L-BFGS, and what it tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import lbfgs, newton
from bncli.engine.parameters.optimization import ParameterSpace, _Problem
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.problems import PROBLEMS, counted, differences, minimise, multinomial, objective
from tests.spaces import RICH_SPACES, SPACES, catch, fit, how

Array = NDArray[np.float64]

TAN = Dag(((), (0,), (0,)), (0, 1, 2))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton steps from the first on."""
    monkeypatch.setattr(newton, "NEWTON_FROM", 1)


def dense(function: Any, point: Array) -> Array:
    """The Hessian there as a matrix."""
    product = differences(function)(point)
    matrix = np.stack([product(unit) for unit in np.eye(len(point))], axis=1)
    return np.asarray((matrix + matrix.T) / 2)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", ["trust-ncg", "Newton-CG"])
def test_as_low_as_scipys_newton_methods(name: str, method: str) -> None:
    function, n = PROBLEMS[name]
    start = np.full(n, -0.5)
    found, steps = minimise(newton, objective(function), start)
    options = {"gtol": 1e-9} if method == "trust-ncg" else {"xtol": 1e-12}
    peer = optimize.minimize(
        function, start, jac=True, hess=lambda p: dense(function, p), method=method, options=options
    )
    assert found.value <= peer.fun + 1e-9 * abs(peer.fun)
    assert found.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)
    assert steps[-1].gradient_evaluations > found.evaluations


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_evaluation_and_product_is_told(name: str) -> None:
    function, n = PROBLEMS[name]
    counting, calls = counted(function)
    products: list[Array] = []

    def hessian(point: Array) -> Any:
        product = differences(function)(point)
        return lambda v: [products.append(v), product(v)][1]

    found, steps = minimise(newton, objective(counting, hessian=hessian), np.full(n, -0.5))
    assert steps[-1].evaluations == found.evaluations == len(calls)
    assert steps[-1].gradient_evaluations == len(calls) + len(products)


@pytest.mark.parametrize("name", PROBLEMS)
def test_until_it_takes_over_it_is_lbfgs(name: str) -> None:
    function, n = PROBLEMS[name]
    found, steps = minimise(newton, objective(function), np.full(n, -0.5))
    expected, before = minimise(lbfgs, objective(function), np.full(n, -0.5))
    early = [step for step in before if step.evaluations < newton.NEWTON_FROM]
    assert steps[: len(early)] == early
    if len(early) == len(before):
        assert found.point.tobytes() == expected.point.tobytes()


@pytest.mark.usefixtures("at_once")
def test_runs_are_equal_to_the_bit() -> None:
    runs = [minimise(newton, objective(multinomial(1, 1e-3)), np.zeros(15))[0] for _ in range(2)]
    assert runs[0].point.tobytes() == runs[1].point.tobytes()


def nearly_separable(n_labels: int) -> Dataset:
    """The first attribute is the class but for one row in two hundred; some values are rare."""
    rng = np.random.default_rng(0)
    data = random_dataset(600, (4, 2, 5), n_labels, seed=3)
    first = np.where(rng.random(600) < 0.005, rng.integers(0, 4, 600), data.labels)
    rare = np.where(rng.random(600) < 0.97, 0, data.codes[2])
    return Dataset(data.schema, (first.astype(np.uint8), data.codes[1], rare.astype(np.uint8)), data.labels)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("n_labels", [2, 3, 4])
@pytest.mark.parametrize("name", ["discriminative", "weighted 4", "lr"])
def test_nearly_separable_rows_with_a_small_penalty_reach_what_scipy_reaches(name: str, n_labels: int) -> None:
    data, penalty = nearly_separable(n_labels), 0.01
    caught = catch(name, data, TAN)
    learnt = fit(name, data, TAN, init="zero", optimizer="newton", penalty=penalty, tolerance=1e-10)
    told: list[Any] = []
    fit(name, data, TAN, init="zero", optimizer="newton", penalty=penalty, tolerance=1e-10, watch=told.append)
    found = told[-1].penalty - told[-1].cll
    problem = _Problem(ParameterSpace(caught.likelihood, caught.space), how(init="zero", penalty=penalty))
    peer = optimize.minimize(
        problem.value_and_gradient,
        problem.start,
        jac=True,
        hessp=lambda p, v: problem.objective.hessian(p)(v),
        method="trust-ncg",
        options={"gtol": 1e-7, "maxiter": 500},
    )
    assert found == pytest.approx(peer.fun, rel=1e-8)
    assert learnt.stopped_by in (StoppedBy.TOLERANCE, StoppedBy.GRADIENT)
    cells = np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)
    slow, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, cells)
    assert learnt.cll == pytest.approx(slow, rel=1e-9)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("penalty", [0.01, 1.0])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_same_optimum_as_lbfgs(name: str, penalty: float, n_labels: int) -> None:
    data = random_dataset(150, (3, 2, 4), n_labels, weighted=True, seed=2)
    told: dict[str, Any] = {}
    for optimizer in ("lbfgs", "newton"):
        events: list[Any] = []
        fit(name, data, TAN, penalty=penalty, optimizer=optimizer, tolerance=1e-11, watch=events.append)
        told[optimizer] = events[-1]
    one, other = (event.cll - event.penalty for event in told.values())
    assert one == pytest.approx(other, rel=1e-8)
    assert told["lbfgs"].gradient_evaluations == told["lbfgs"].cll_evaluations
    assert told["newton"].gradient_evaluations > told["newton"].cll_evaluations


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("n_labels", [2, 3, 12])
def test_without_a_penalty_all_rich_spaces_reach_one_optimum(n_labels: int) -> None:
    data = dense_dataset((2, 3, 2), n_labels, copies=6)
    clls = [fit(name, data, TAN, optimizer="newton", init="zero").cll for name in RICH_SPACES]
    assert max(clls) - min(clls) <= 1e-8 * abs(max(clls))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", SPACES)
def test_separable_classes_are_seen(name: str) -> None:
    learnt = fit(name, random_dataset(3, (3, 2, 4), 2), TAN, init="zero", optimizer="newton")
    assert learnt.stopped_by is StoppedBy.SEPARABLE
    assert all(np.isfinite(w).all() for w in learnt.tables.weights)
