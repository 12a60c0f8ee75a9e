"""Derivatives in the effects of numeric and other attributes against differences and the explicit Hessian."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameter_learners import discriminative
from bncli.engine.parameters import preconditioner as module
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.optimization import ParameterSpace, _Problem
from bncli.engine.structures.structure import Dag, Regions, Structure
from tests import oracles
from tests.datasets import random_dataset
from tests.effects import mixed_dataset, mixed_datasets
from tests.spaces import how
from tests.strategies import dags

Array = NDArray[np.float64]
KINDS = ("missing", "numeric", "categorical")
TAN = Dag(((), (0,), (0,)), (0, 1, 2))
REGIONS = Regions(((0,), (1,), (2,), (0, 1), (1, 2)))

every_structure = pytest.mark.parametrize("structure", [TAN, REGIONS], ids=["tan", "regions"])
with_and_without = pytest.mark.parametrize("lower_orders", [False, True])


def effects_space(data: Dataset, structure: Structure, *, lower_orders: bool) -> ParameterSpace:
    options = {"smoothing": "m-estimate:1"} if isinstance(structure, Dag) else {"theta": 1.0}
    return discriminative.space(Counts(data), structure, coding="thermometer", lower_orders=lower_orders, **options)


@every_structure
@with_and_without
@pytest.mark.parametrize("n_labels", [2, 3, 12])
def test_gradient_and_hessian_of_the_problem(structure: Structure, lower_orders: bool, n_labels: int) -> None:
    data = mixed_dataset(random_dataset(60, (5, 3, 4), n_labels, weighted=True), KINDS)
    space = effects_space(data, structure, lower_orders=lower_orders)
    problem = _Problem(space, how(penalty=0.7))
    p, v = np.random.default_rng(3).normal(size=(2, space.coordinates.n_parameters))
    _, gradient = problem.value_and_gradient(p)
    slope = oracles.slope(lambda q: problem.value_and_gradient(q)[0], p, v, 1e-3)
    assert float(gradient @ v) == pytest.approx(slope, rel=1e-7)
    product = problem.objective.hessian(p)(v)
    bend = oracles.slope(lambda q: problem.value_and_gradient(q)[1], p, v, 1e-3)
    np.testing.assert_allclose(product, bend, rtol=1e-6, atol=1e-6 * np.abs(bend).max())


@every_structure
@with_and_without
@pytest.mark.parametrize("plain", [False, True], ids=["counted", "multiplied"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_first_preconditioner_is_the_inverse_hessian(
    monkeypatch: pytest.MonkeyPatch, structure: Structure, lower_orders: bool, plain: bool, n_labels: int
) -> None:
    monkeypatch.setattr(module, "START_PASSES", 1e6)
    if plain:
        monkeypatch.setattr("bncli.engine.kernels.gram.Packing.affordable_rows", lambda *_: -1)
    data = mixed_dataset(random_dataset(300, (5, 3, 4), n_labels, seed=1, weighted=True), KINDS)
    space = effects_space(data, structure, lower_orders=lower_orders)
    p = np.zeros(space.coordinates.n_parameters)
    apply = space.curvature(1.0).start(p)
    inverse = np.stack([apply(unit) for unit in np.eye(len(p))])
    t = np.stack([space.coordinates.push(p, unit).ravel() for unit in np.eye(len(p))], axis=1)
    tables = space.coordinates.tables(p)
    h = t.T @ oracles.hessian(space.likelihood.families, data, tables) @ t + np.eye(len(p))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12)
    eigenvalues = np.linalg.eigvals(inverse @ h).real
    np.testing.assert_allclose(eigenvalues, 1.0, atol=3e-3)


@given(data=mixed_datasets(max_rows=20, max_attributes=3), draw=st.data())
def test_any_preconditioner_is_positive_definite(data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    space = effects_space(data, dag, lower_orders=draw.draw(st.booleans()))
    penalty = draw.draw(st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    p = draw.draw(st.sampled_from([0.0, 1.0, 30.0])) * rng.normal(size=space.coordinates.n_parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEAST_SIZE", draw.draw(st.sampled_from([1, 4, 400])))
        patch.setattr(module, "STRETCH", draw.draw(st.sampled_from([0.0, 1.6])))
        patch.setattr(module, "LEAST_ROWS", draw.draw(st.sampled_from([3, 1 << 12])))
        curvature = space.curvature(penalty)
        for apply in (curvature.start(p), curvature.refresh(p, 12.0)):
            g = rng.normal(size=len(p))
            assert np.isfinite(apply(g)).all()
            assert g @ apply(g) > 0


@given(data=mixed_datasets(), draw=st.data())
def test_with_lower_orders_the_generative_start_is_the_generative_model(data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    space = effects_space(data, dag, lower_orders=True)
    tables = generative_tables(Counts(data), dag, "m-estimate:1")
    cells = space.likelihood.flatten(tables)
    expected, _ = oracles.conditional_log_likelihood(tables.families, data, cells)
    found, _ = space.likelihood.value_and_gradient(space.coordinates.tables(space.coordinates.generative))
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_without_them_a_table_of_two_attributes_keeps_what_products_of_steps_say() -> None:
    data = mixed_dataset(random_dataset(80, (4, 3), 2), ("numeric", "numeric"))
    dag = Dag(((), (0,)), (1,))
    space = effects_space(data, dag, lower_orders=False)
    cells = space.likelihood.flatten(generative_tables(Counts(data), dag, "m-estimate:1"))
    lost = cells - space.coordinates.tables(space.coordinates.generative)
    rest = lost[:, 1:].reshape(2, 3, 4)
    assert np.abs(rest).max() > 0.1
    np.testing.assert_allclose(np.diff(np.diff(rest, axis=1), axis=2), 0.0, atol=1e-10)
