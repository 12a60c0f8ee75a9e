"""The preconditioner against the explicit Hessian, where the sample is everything; symmetric and positive always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine import whitening as module
from bncli.engine.dataset import Dataset
from bncli.engine.kernels import preconditioning
from bncli.engine.structure import Dag
from bncli.engine.whitening import whitening
from tests import oracles
from tests.datasets import random_dataset, take
from tests.spaces import SPACES, Caught, catch
from tests.strategies import datasets, graphs_for

Array = NDArray[np.float64]

GRAPHS = {
    "nb": Dag(((), (), ()), (0, 1, 2)),
    "tan": Dag(((), (0,), (0,)), (0, 1, 2)),
    "class below": Dag(((), (0,), (0,)), (1, 2), (0,)),
}
every_space = pytest.mark.parametrize("name", SPACES)
every_graph = pytest.mark.parametrize("graph", GRAPHS)


def matrix(function: Callable[[Array], Array], n: int) -> Array:
    """The matrix of a linear function."""
    return np.stack([function(unit) for unit in np.eye(n)], axis=1)


def hessian(caught: Caught, data: Dataset, p: Array, penalty: float) -> Array:
    """J'HJ + lambda I, H the exact Hessian in the tables: exact for linear spaces, Gauss-Newton for `extended`."""
    j = np.stack([oracles.slope(caught.space.tables, p, unit, 1e-3).ravel() for unit in np.eye(len(p))], axis=1)
    h = oracles.hessian(caught.likelihood.families, data, caught.space.tables(p))
    return np.asarray(j.T @ h @ j + penalty * np.eye(len(p)))


def spectrum(inverse: Array, h: Array) -> Array:
    """Eigenvalues of inverse h; all 1 where `inverse` is the inverse of h."""
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-9 * np.abs(inverse).max())
    factor = np.linalg.cholesky((inverse + inverse.T) / 2)
    return np.linalg.eigvalsh(factor.T @ h @ factor)


@every_space
@every_graph
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_at_the_uniform_distribution_it_is_the_inverse_hessian(
    name: str, graph: str, n_labels: int, weighted: bool
) -> None:
    data = random_dataset(300, (3, 2, 4), n_labels, seed=1, weighted=weighted)
    caught = catch(name, data, GRAPHS[graph])
    p = np.zeros(caught.space.n_parameters)
    apply = whitening(caught.likelihood, caught.space, 1.0).start(p)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, data, p, 1.0))
    np.testing.assert_allclose(eigenvalues, 1.0, atol=3e-3)


@every_space
@every_graph
def test_without_penalty_it_is_the_inverse_where_there_is_curvature(name: str, graph: str) -> None:
    """Directions that change no probability have curvature 0; elsewhere a gradient step is Newton's."""
    data = random_dataset(300, (3, 2, 4), 3, seed=1)
    caught = catch(name, data, GRAPHS[graph])
    p = np.zeros(caught.space.n_parameters)
    apply = whitening(caught.likelihood, caught.space, 0.0).start(p)
    h = hessian(caught, data, p, 0.0)
    eigenvalues = spectrum(matrix(apply, len(p)), h)
    assert eigenvalues.max() < 1.001
    values, vectors = np.linalg.eigh(h)
    for vector in vectors[:, values > 1e-2 * values.max()].T:
        step = apply(h @ vector)
        np.testing.assert_allclose(h @ step, h @ vector, atol=1e-2 * np.linalg.norm(h @ vector))


@every_space
@every_graph
def test_refreshed_it_is_the_inverse_for_two_classes_anywhere(name: str, graph: str) -> None:
    data = random_dataset(300, (3, 2, 4), 2, seed=1)
    caught = catch(name, data, GRAPHS[graph])
    p = caught.space.generative + np.random.default_rng(0).normal(size=caught.space.n_parameters) / 2
    apply = whitening(caught.likelihood, caught.space, 1.0).refresh(p)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, data, p, 1.0))
    np.testing.assert_allclose(eigenvalues, 1.0, atol=0.05)


@every_space
@pytest.mark.parametrize("n_labels", [3, 5])
def test_refreshed_it_is_within_a_small_factor_for_more_classes(name: str, n_labels: int) -> None:
    data = random_dataset(300, (3, 2, 4), n_labels, seed=1)
    caught = catch(name, data, GRAPHS["tan"])
    p = caught.space.generative + np.random.default_rng(0).normal(size=caught.space.n_parameters) / 2
    apply = whitening(caught.likelihood, caught.space, 1.0).refresh(p)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, data, p, 1.0))
    assert eigenvalues.min() > 0.25
    assert eigenvalues.max() < 1.5


@every_space
@settings(max_examples=25)
@given(data=datasets(max_rows=20, max_attributes=3), draw=st.data())
def test_symmetric_and_positive_definite_always(name: str, data: Dataset, draw: st.DataObject) -> None:
    """Few top cells, few sampled rows, the diagonal alone, any penalty, tables far out: a descent direction always."""
    dag = draw.draw(graphs_for(name, len(data.codes)))
    caught = catch(name, data, dag, draw.draw(st.sampled_from(["mle", "m-estimate:1"])))
    penalty = draw.draw(st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    p = draw.draw(st.sampled_from([0.0, 1.0, 30.0])) * rng.normal(size=caught.space.n_parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TOP", draw.draw(st.sampled_from([1, 4, 400])))
        patch.setattr(module, "START_ROWS", draw.draw(st.sampled_from([3, 1 << 14])))
        patch.setattr(module, "REFRESH_ROWS", draw.draw(st.sampled_from([3, 1 << 14])))
        patch.setattr(module, "REFRESH_WORK", 0.0)
        patch.setattr(preconditioning, "MAX_SHARED", draw.draw(st.sampled_from([0, 800])))
        white = whitening(caught.likelihood, caught.space, penalty)
        for apply in (white.start(p), white.refresh(p)):
            inverse = matrix(apply, len(p))
            assert np.isfinite(inverse).all()
            scale = np.sqrt(np.diag(inverse))
            np.testing.assert_allclose(inverse / np.outer(scale, scale), inverse.T / np.outer(scale, scale), atol=1e-6)
            g = rng.normal(size=len(p))
            assert g @ apply(g) > 0


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.0, 5.0, 36.0, 40.0, 300.0, 800.0, 1e5])
def test_rows_that_are_all_but_certain_do_not_upset_a_refresh(n_labels: int, spread: float) -> None:
    """Class 0 ahead by `spread`, the others by a little: 1 - P(0 | x) is lost in rounding from 37 on."""
    data = random_dataset(100, (3, 2, 4), n_labels)
    caught = catch("discriminative", data, GRAPHS["tan"])
    shape = caught.space.tables(np.zeros(caught.space.n_parameters)).shape
    p = np.zeros(shape)
    p[:, 0] = -spread * np.arange(n_labels)
    apply = whitening(caught.likelihood, caught.space, 1.0).refresh(p.ravel())
    eigenvalues = spectrum(matrix(apply, p.size), hessian(caught, data, p.ravel(), 1.0))
    assert eigenvalues.min() > 0.2
    assert eigenvalues.max() < 1.1 * n_labels / 2


def test_a_preconditioner_leaves_the_gradient_alone() -> None:
    data = random_dataset(50, (3, 2), 3)
    for name in SPACES:
        caught = catch(name, data, Dag(((), ()), (0, 1)))
        g = np.random.default_rng(0).normal(size=caught.space.n_parameters)
        before = g.copy()
        whitening(caught.likelihood, caught.space, 1.0).start(np.zeros(len(g)))(g)
        np.testing.assert_array_equal(g, before)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_evenly_spaced_rows_stand_for_all(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    """Every row three times in a row, every third row sampled: the sample is everything, scaled."""
    once = random_dataset(100, (3, 2, 4), n_labels, weighted=True)
    thrice = take(once, np.repeat(np.arange(100), 3))
    monkeypatch.setattr(module, "START_ROWS", 100)
    caught = catch("discriminative", thrice, GRAPHS["tan"])
    p = np.zeros(caught.space.n_parameters)
    apply = whitening(caught.likelihood, caught.space, 1.0).start(p)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, thrice, p, 1.0))
    np.testing.assert_allclose(eigenvalues, 1.0, atol=1e-3)


def test_several_shards_have_the_same_bits_for_any_threads() -> None:
    outcomes: list[Any] = []
    for threads in (1, 2, 3):
        data = random_dataset(140_000, (3, 2, 4), 3, weighted=True, threads=threads)
        caught = catch("weighted 4", data, GRAPHS["tan"])
        p = np.linspace(-1, 1, caught.space.n_parameters)
        white = whitening(caught.likelihood, caught.space, 1.0)
        outcomes.append((white.start(p)(p).tobytes(), white.refresh(p)(p).tobytes()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_the_top_cells_are_the_heaviest_and_the_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOP", 3)
    caught = catch("discriminative", random_dataset(200, (4, 2), 2), Dag(((), ()), (0, 1)))
    white = whitening(caught.likelihood, caught.space, 1.0)
    weights = caught.likelihood.cell_weights()
    assert white.top[0] == 0
    assert len(white.top) == 3
    assert weights[white.top].min() >= np.delete(weights, white.top).max()
