"""Laws of all parameter spaces: derivatives against differences, one first likelihood, one optimum."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.optimization import ParameterSpace, _Problem
from bncli.engine.structure_learners import kdb, nb, tan
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.spaces import RICH_SPACES, SPACES, catch, fit, how
from tests.strategies import datasets, graphs_for
from tests.sweeps import every_pair

every_space = pytest.mark.parametrize("name", SPACES)
every_rich_space = pytest.mark.parametrize("name", RICH_SPACES)


@every_space
@given(data=datasets(max_rows=20, max_attributes=4), draw=st.data())
def test_pull_back_is_the_transpose_of_the_derivative(name: str, data: Dataset, draw: st.DataObject) -> None:
    space = catch(name, data, draw.draw(graphs_for(name, len(data.codes)))).space
    rng = np.random.default_rng(draw.draw(st.integers(0, 999)))
    p = rng.normal(size=space.n_parameters)
    direction = rng.normal(size=p.shape)
    d_tables = rng.normal(size=space.tables(p).shape)
    expected = float((d_tables * oracles.slope(space.tables, p, direction, 1e-3)).sum())
    assert float(space.pull_back(p, d_tables) @ direction) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@every_space
@given(data=datasets(max_rows=20, max_attributes=4), draw=st.data())
def test_push_is_the_derivative_of_the_tables_and_pull_back_its_transpose(
    name: str, data: Dataset, draw: st.DataObject
) -> None:
    """Linear in the direction, so nearly to rounding."""
    space = catch(name, data, draw.draw(graphs_for(name, len(data.codes)))).space
    rng = np.random.default_rng(draw.draw(st.integers(0, 999)))
    p, v, w = rng.normal(size=(3, space.n_parameters))
    pushed = space.push(p, v)
    assert pushed.shape == space.tables(p).shape
    np.testing.assert_allclose(pushed, oracles.slope(space.tables, p, v, 1e-3), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(space.push(p, v - 3 * w), pushed - 3 * space.push(p, w), rtol=1e-9, atol=1e-9)
    d_tables = rng.normal(size=pushed.shape)
    back = float(v @ space.pull_back(p, d_tables))
    assert float((pushed * d_tables).sum()) == pytest.approx(back, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("name", "n_labels", "penalty"), every_pair([*SPACES], [2, 3, 12], [0.0, 0.7]))
def test_the_hessian_of_the_problem(name: str, n_labels: int, penalty: float) -> None:
    """J'HJ + lambda I with the explicit H; where tables are linear in parameters, also the slope of the gradient."""
    data = random_dataset(60, (3, 2, 4), n_labels, weighted=True)
    caught = catch(name, data, Dag(((), (0,), (0,)), (0, 1, 2)))
    problem = _Problem(ParameterSpace(caught.likelihood, caught.space), how(penalty=penalty, penalty_center=0.4))
    p = np.random.default_rng(3).normal(size=caught.space.n_parameters)
    units = np.eye(len(p))
    found = np.stack([problem.objective.hessian(p)(unit) for unit in units], axis=1)
    j = np.stack([oracles.slope(caught.space.tables, p, unit, 1e-3).ravel() for unit in units], axis=1)
    h = oracles.hessian(caught.likelihood.families, data, caught.space.tables(p))
    np.testing.assert_allclose(found, j.T @ h @ j + penalty * units, atol=1e-8 * np.abs(h).max())
    np.testing.assert_allclose(found, found.T, atol=1e-10 * np.abs(found).max())
    assert np.linalg.eigvalsh((found + found.T) / 2).min() > penalty - 1e-9 * np.abs(found).max()
    if name != "extended":
        v = np.random.default_rng(4).normal(size=p.shape)
        slope = oracles.slope(lambda q: problem.value_and_gradient(q)[1], p, v, 1e-3)
        np.testing.assert_allclose(found @ v, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


@every_space
def test_the_gradient_of_the_likelihood_is_its_slope(name: str) -> None:
    for data in (random_dataset(60, (3, 2, 4), 2, weighted=True), random_dataset(60, (3, 2, 4), 4)):
        for dag in (Dag(((), (0,), (0, 1)), (0, 1, 2)), Dag(((), (0,), ()), (1,), (0, 2))):
            caught = catch(name, data, dag)
            p = np.random.default_rng(3).normal(size=caught.space.n_parameters)
            _, d_tables = caught.likelihood.value_and_gradient(caught.space.tables(p))
            direction = np.random.default_rng(4).normal(size=p.shape)
            slope = oracles.slope(caught.cll, p, direction, 1e-3)
            assert float(caught.space.pull_back(p, d_tables) @ direction) == pytest.approx(slope, rel=1e-7)


@every_space
@given(data=datasets(max_rows=20, max_attributes=4), draw=st.data())
def test_scale_and_jacobian_are_the_derivative_at_the_cells(name: str, data: Dataset, draw: st.DataObject) -> None:
    """Between the cells of one class, up to what is common to all classes: that changes no probability."""
    space = catch(name, data, draw.draw(graphs_for(name, len(data.codes)))).space
    if space.sharing is not None:
        return
    shape = space.tables(np.zeros(space.n_parameters)).shape
    p = np.random.default_rng(draw.draw(st.integers(0, 999))).normal(size=shape).ravel()
    top = draw.draw(st.lists(st.integers(0, shape[1] - 1), min_size=1, max_size=6, unique=True).map(sorted))
    jacobian = space.jacobian(p, np.array(top))
    y = draw.draw(st.integers(0, shape[0] - 1))
    stated = np.broadcast_to(jacobian, (shape[0], len(top), len(top)))[y]
    if space.is_scaled:
        np.testing.assert_array_equal(stated, np.diag(np.broadcast_to(space.scale, shape)[y, top]))
    for column, c in enumerate(top):
        unit = np.zeros(shape)
        unit[y, c] = 1.0
        rest = oracles.slope(space.tables, p, unit.ravel(), 1e-3)[:, top]
        rest[y] -= stated[:, column]
        np.testing.assert_allclose(np.ptp(rest, axis=0), 0.0, atol=1e-8)


@given(data=datasets(max_rows=40, max_attributes=4), draw=st.data())
def test_from_the_generative_start_all_spaces_have_the_same_first_likelihood(
    data: Dataset, draw: st.DataObject
) -> None:
    dag = draw.draw(st.one_of(graphs_for("any", len(data.codes)), graphs_for("lr", len(data.codes))))
    rule = draw.draw(st.sampled_from(["mle", "laplace:1", "m-estimate:1", "fgg:5", "bdeu:1"]))
    tables = generative_tables(Counts(data), dag, rule)
    cells = np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)
    expected, _ = oracles.conditional_log_likelihood(tables.families, data, cells)
    for name in SPACES if (dag.unmarried is None) else set(SPACES) - {"lr"}:
        caught = catch(name, data, dag, rule)
        assert caught.cll(caught.space.generative) == pytest.approx(expected, rel=1e-8, abs=1e-8), name


def test_extended_tables_are_conditional_probabilities() -> None:
    data = random_dataset(30, (3, 2, 4), 3)
    for dag in (Dag(((), (0,), (0, 1)), (0, 1, 2)), Dag(((), (0,), ()), (1,), (0, 2))):
        caught = catch("extended", data, dag)
        p = np.random.default_rng(0).normal(size=caught.space.n_parameters)
        tables = caught.likelihood.tables(caught.space.tables(p))
        if dag.class_parents:
            assert not tables.bias.any()
        else:
            assert np.exp(tables.bias).sum() == pytest.approx(1.0)
        for family, w in zip(tables.families, tables.weights, strict=True):
            array = np.exp(w).reshape(*family.shape, 3)
            np.testing.assert_allclose(array.sum(axis=-1 if family.child is None else 0), 1.0)


@pytest.mark.parametrize("learn", [nb.learn, tan.learn, lambda c: kdb.learn(c, k=1)], ids=["nb", "tan", "kdb-1"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_one_unpenalised_optimum_from_both_starts(learn: Any, n_labels: int) -> None:
    """Perfect graphs, every cell met by every class: the rich spaces describe the same distributions."""
    data = dense_dataset((2, 3, 2), n_labels, copies=6)
    dag = learn(Counts(data))
    optima = [fit(name, data, dag, init=init) for name in RICH_SPACES for init in ("generative", "zero")]
    clls = [optimum.cll for optimum in optima]
    assert max(clls) - min(clls) <= 1e-6 * abs(max(clls))
    assert all(optimum.cll >= optimum.cll_start for optimum in optima)
    poorer = [fit(f"weighted {level}", data, dag).cll for level in (1, 2, 3)]
    assert poorer == sorted(poorer)
    assert max(poorer) <= max(clls) + 1e-9


@pytest.mark.parametrize("learn", [nb.learn, tan.learn, lambda c: kdb.learn(c, k=1)], ids=["nb", "tan", "kdb-1"])
@pytest.mark.parametrize("n_labels", [2, 12])
def test_many_rows_of_a_network_have_one_optimum_too(learn: Any, n_labels: int) -> None:
    data = random_dataset(6000, (3, 2, 3, 2), n_labels, seed=4)
    dag = learn(Counts(data))
    clls = [fit(name, data, dag).cll for name in RICH_SPACES]
    assert max(clls) - min(clls) <= 1e-6 * abs(max(clls))


@every_space
@given(data=datasets(max_rows=25, max_attributes=3), draw=st.data())
def test_the_penalised_objective_never_falls_below_the_start(name: str, data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(graphs_for(name, len(data.codes)))
    init = draw.draw(st.sampled_from(["zero", "generative"]))
    penalty = draw.draw(st.sampled_from([0.0, 0.1, 1.0, 100.0]))
    events: list[Any] = []
    learnt = fit(name, data, dag, watch=events.append, init=init, penalty=penalty, tolerance=1e-8, max_iterations=60)
    objective = [event.cll - event.penalty for event in events]
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(objective))
    assert (events[0].cll, events[-1].cll) == (learnt.cll_start, learnt.cll)
    cells = np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)
    slow, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, cells)
    assert learnt.cll == pytest.approx(slow, rel=1e-9, abs=1e-9)
