"""Compare preconditioners with the inverse of the explicit Hessian; they are always positive definite."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels import preconditioning
from bncli.engine.kernels.preconditioning import Subspace
from bncli.engine.parameters import preconditioner
from bncli.engine.parameters.coordinates import Softmax
from bncli.engine.parameters.preconditioner import NullSpace, Whitening, null_space, subspace, top_only, whitening
from bncli.engine.structures.structure import Dag, Family
from tests import oracles
from tests.datasets import random_dataset
from tests.spaces import SPACES, Caught, catch
from tests.strategies import dags, datasets, graphs_for
from tests.sweeps import every_pair, every_value

Array = NDArray[np.float64]

GRAPHS = {
    "nb": Dag(((), (), ()), (0, 1, 2)),
    "tan": Dag(((), (0,), (0,)), (0, 1, 2)),
    "class below": Dag(((), (0,), (0,)), (1, 2), (0,)),
}
ENOUGH = 1e6
"""Passes: the subspace has every cell, and the sample every row."""

every_space = pytest.mark.parametrize("name", SPACES)
every_graph = pytest.mark.parametrize("graph", GRAPHS)


@pytest.fixture
def generous(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the preconditioner of the start without a limit on its cost."""
    monkeypatch.setattr(preconditioner, "START_PASSES", ENOUGH)


def least_penalty(name: str) -> float:
    """Return a penalty for which the preconditioner is exact: for predictors only a negligible one."""
    return 1e-4 if name == "lr" else 1.0


def matrix(function: Callable[[Array], Array], n: int) -> Array:
    """Return the matrix of a linear function."""
    return np.stack([function(unit) for unit in np.eye(n)], axis=1)


def hessian(caught: Caught, data: Dataset, p: Array, penalty: float) -> Array:
    """Return J'HJ + lambda I, H the Hessian in the tables: exact for linear spaces, Gauss-Newton for `extended`."""
    j = np.stack([oracles.slope(caught.space.tables, p, unit, 1e-3).ravel() for unit in np.eye(len(p))], axis=1)
    h = oracles.hessian(caught.likelihood.families, data, caught.space.tables(p))
    return np.asarray(j.T @ h @ j + penalty * np.eye(len(p)))


def spectrum(inverse: Array, h: Array) -> Array:
    """Return the eigenvalues of inverse h; all are 1 if `inverse` is the inverse of h."""
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-9 * np.abs(inverse).max())
    factor = np.linalg.cholesky((inverse + inverse.T) / 2)
    return np.linalg.eigvalsh(factor.T @ h @ factor)


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize(
    ("name", "graph", "n_labels", "weighted"), every_pair([*SPACES], [*GRAPHS], [2, 3], [False, True])
)
def test_at_the_uniform_distribution_it_is_the_inverse_hessian(
    name: str, graph: str, n_labels: int, weighted: bool
) -> None:
    data = random_dataset(300, (3, 2, 4), n_labels, seed=1, weighted=weighted)
    caught = catch(name, data, GRAPHS[graph])
    p = np.zeros(caught.space.n_parameters)
    penalty = least_penalty(name)
    apply = whitening(caught.likelihood, caught.space).start(p, penalty)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, data, p, penalty))
    eigenvalues = without_intercept(eigenvalues, name, graph)
    if name == "lr_roos" and n_labels > 2:
        # what the penalty alone decides: common to the other classes K - 1 times too far, else a share 1 / K too short
        assert eigenvalues.min() > (n_labels - 1) / n_labels - 3e-3
        assert eigenvalues.max() < n_labels - 1 + 3e-3
    else:
        np.testing.assert_allclose(eigenvalues, 1.0, atol=3e-3)


def without_intercept(eigenvalues: Array, name: str, graph: str) -> Array:
    """Omit the largest eigenvalue if a table over the class's parents has to hold the intercept.

    The penalty on it then counts once per cell of that table, in free tables once.
    """
    if name != "lr_roos" or graph != "class below":
        return eigenvalues
    assert eigenvalues[-1] < 4
    return eigenvalues[:-1]


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize(("name", "graph"), every_value([*SPACES], [*GRAPHS]))
def test_without_penalty_it_is_the_inverse_where_there_is_curvature(name: str, graph: str) -> None:
    """Directions that change no probability have curvature 0; in the others a gradient step is a Newton step."""
    data = random_dataset(300, (3, 2, 4), 3, seed=1)
    caught = catch(name, data, GRAPHS[graph])
    p = np.zeros(caught.space.n_parameters)
    apply = whitening(caught.likelihood, caught.space).start(p, 0.0)
    h = hessian(caught, data, p, 0.0)
    eigenvalues = spectrum(matrix(apply, len(p)), h)
    assert eigenvalues.max() < 1.001
    values, vectors = np.linalg.eigh(h)
    for vector in vectors[:, values > 1e-2 * values.max()].T:
        step = apply(h @ vector)
        np.testing.assert_allclose(h @ step, h @ vector, atol=1e-2 * np.linalg.norm(h @ vector))


@pytest.mark.parametrize(("name", "graph"), every_value([*SPACES], [*GRAPHS]))
def test_refreshed_it_is_the_inverse_for_two_classes_anywhere(name: str, graph: str) -> None:
    data = random_dataset(300, (3, 2, 4), 2, seed=1)
    caught = catch(name, data, GRAPHS[graph])
    p = caught.space.generative + np.random.default_rng(0).normal(size=caught.space.n_parameters) / 2
    penalty = least_penalty(name)
    apply = whitening(caught.likelihood, caught.space).refresh(p, ENOUGH, penalty)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, data, p, penalty))
    np.testing.assert_allclose(without_intercept(eigenvalues, name, graph), 1.0, atol=0.05)


@every_space
@pytest.mark.parametrize("n_labels", [3, 5])
def test_refreshed_it_is_within_a_small_factor_for_more_classes(name: str, n_labels: int) -> None:
    data = random_dataset(300, (3, 2, 4), n_labels, seed=1)
    caught = catch(name, data, GRAPHS["tan"])
    p = caught.space.generative + np.random.default_rng(0).normal(size=caught.space.n_parameters) / 2
    penalty = least_penalty(name)
    apply = whitening(caught.likelihood, caught.space).refresh(p, ENOUGH, penalty)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, data, p, penalty))
    assert eigenvalues.min() > 0.25
    assert eigenvalues.max() < (n_labels if name == "lr_roos" else 1.5)


@every_space
@given(data=datasets(max_rows=20, max_attributes=3), draw=st.data())
def test_symmetric_and_positive_definite_always(name: str, data: Dataset, draw: st.DataObject) -> None:
    """Small subspaces, few rows, diagonals, all penalties and distant tables always give a descent direction."""
    dag = draw.draw(graphs_for(name, len(data.codes)))
    caught = catch(name, data, dag, draw.draw(st.sampled_from(["mle", "m-estimate:1"])))
    penalty = draw.draw(st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    p = draw.draw(st.sampled_from([0.0, 1.0, 30.0])) * rng.normal(size=caught.space.n_parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preconditioner, "LEAST_SIZE", draw.draw(st.sampled_from([1, 4, 16, 400])))
        patch.setattr(preconditioner, "STRETCH", draw.draw(st.sampled_from([0.0, 1.6])))
        patch.setattr(preconditioner, "MAX_ENTRIES", draw.draw(st.sampled_from([30, 1 << 22])))
        patch.setattr(preconditioner, "LEAST_ROWS", draw.draw(st.sampled_from([3, 1 << 12])))
        patch.setattr(preconditioner, "START_PASSES", draw.draw(st.sampled_from([0.0, 1e-3, 15.0])))
        patch.setattr(preconditioning, "MAX_SHARED", draw.draw(st.sampled_from([0, 800])))
        white = whitening(caught.likelihood, caught.space)
        for apply in (
            white.start(p, penalty),
            white.refresh(p, draw.draw(st.sampled_from([0.0, 1e-3, 30.0])), penalty),
        ):
            inverse = matrix(apply, len(p))
            assert np.isfinite(inverse).all()
            scale = np.sqrt(np.diag(inverse))
            np.testing.assert_allclose(inverse / np.outer(scale, scale), inverse.T / np.outer(scale, scale), atol=1e-6)
            g = rng.normal(size=len(p))
            assert g @ apply(g) > 0


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.0, 5.0, 36.0, 40.0, 300.0, 800.0, 1e5])
def test_rows_that_are_all_but_certain_do_not_upset_a_refresh(n_labels: int, spread: float) -> None:
    """Class 0 leads by `spread`: from 37 on, 1 - P(0 | x) is lost in rounding."""
    data = random_dataset(100, (3, 2, 4), n_labels)
    caught = catch("discriminative", data, GRAPHS["tan"])
    shape = caught.space.tables(np.zeros(caught.space.n_parameters)).shape
    p = np.zeros(shape)
    p[:, 0] = -spread * np.arange(n_labels)
    apply = whitening(caught.likelihood, caught.space).refresh(p.ravel(), ENOUGH, 1.0)
    eigenvalues = spectrum(matrix(apply, p.size), hessian(caught, data, p.ravel(), 1.0))
    assert eigenvalues.min() > 0.2
    assert eigenvalues.max() < 1.1 * n_labels / 2


def test_a_preconditioner_leaves_the_gradient_alone() -> None:
    data = random_dataset(50, (3, 2), 3)
    for name in SPACES:
        caught = catch(name, data, Dag(((), ()), (0, 1)))
        g = np.random.default_rng(0).normal(size=caught.space.n_parameters)
        before = g.copy()
        whitening(caught.likelihood, caught.space).start(np.zeros(len(g)), 1.0)(g)
        np.testing.assert_array_equal(g, before)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_evenly_spaced_rows_stand_for_all(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    """Every row occurs three times in succession and every third row is sampled, so the scaled sample is exact."""
    once = random_dataset(100, (3, 2, 4), n_labels, weighted=True)
    thrice = once.take(np.repeat(np.arange(100), 3))
    monkeypatch.setattr(preconditioner, "LEAST_ROWS", 100)
    monkeypatch.setattr(preconditioner, "START_PASSES", 0.0)
    caught = catch("discriminative", thrice, GRAPHS["tan"])
    p = np.zeros(caught.space.n_parameters)
    apply = whitening(caught.likelihood, caught.space).start(p, 1.0)
    eigenvalues = spectrum(matrix(apply, len(p)), hessian(caught, thrice, p, 1.0))
    np.testing.assert_allclose(eigenvalues, 1.0, atol=1e-3)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [4, 64])
def test_several_blocks_have_the_same_bits_for_any_threads(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The subspace has some cells or all of them."""
    monkeypatch.setattr(preconditioner, "LEAST_SIZE", size)
    monkeypatch.setattr(Whitening, "_size", lambda *_: size)
    outcomes: list[Any] = []
    for threads in (1, 3):
        data = random_dataset(5_000, (3, 2, 4), 3, weighted=True, threads=threads)
        caught = catch("weighted 4", data, GRAPHS["tan"])
        p = np.linspace(-1, 1, caught.space.n_parameters)
        white = whitening(caught.likelihood, caught.space)
        outcomes.append((white.start(p, 1.0)(p).tobytes(), white.refresh(p, 12.0, 1.0)(p).tobytes()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.usefixtures("generous")
@every_graph
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("penalty", [0.1, 1.0])
def test_a_penalty_on_predictors_is_met_within_a_small_factor(graph: str, n_labels: int, penalty: float) -> None:
    data = random_dataset(300, (3, 2, 4), n_labels, seed=1)
    caught = catch("lr", data, GRAPHS[graph])
    white = whitening(caught.likelihood, caught.space)
    p = np.zeros(caught.space.n_parameters)
    h = hessian(caught, data, p, penalty)
    for apply in (white.start(p, penalty), white.refresh(p, ENOUGH, penalty)):
        eigenvalues = spectrum(matrix(apply, len(p)), h)
        assert eigenvalues.max() / eigenvalues.min() < np.linalg.cond(h) / 5


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_sums_of_light_cells_improve_on_the_diagonal(
    monkeypatch: pytest.MonkeyPatch, n_labels: int, penalty: float
) -> None:
    """With the same size, fewer directions are missed, or by less; what both levels cover counts twice at most."""
    data = random_dataset(900, (10, 10), n_labels, seed=5)
    caught = catch("discriminative", data, Dag(((), (0,)), (0, 1)))
    p = np.zeros(caught.space.n_parameters)
    h = _hessian_by_products(caught, p, penalty)
    monkeypatch.setattr(preconditioner, "STRETCH", 0.0)
    monkeypatch.setattr(preconditioner, "LEAST_SIZE", 30)
    monkeypatch.setattr(preconditioner, "START_PASSES", 0.0)
    with_sums = spectrum(matrix(whitening(caught.likelihood, caught.space).start(p, penalty), len(p)), h)
    monkeypatch.setattr(
        preconditioner, "subspace", lambda families, weights, curved, size, numbers: top_only(weights, size)
    )
    without = spectrum(matrix(whitening(caught.likelihood, caught.space).start(p, penalty), len(p)), h)
    assert np.log(np.minimum(with_sums, 1.0)).sum() > np.log(np.minimum(without, 1.0)).sum()
    assert with_sums.max() < 2.0 + 1e-6


def _hessian_by_products(caught: Caught, p: Array, penalty: float) -> Array:
    product = caught.likelihood.hessian(caught.space.tables(p))
    shape = caught.space.tables(p).shape
    return matrix(lambda v: product(v.reshape(shape)).ravel() + penalty * v, len(p))


def wide_dataset() -> Dataset:
    """Return two attributes of many values, most pairs of which have few rows."""
    return random_dataset(3000, (20, 20, 3), 3, seed=5)


@pytest.mark.parametrize("name", ["discriminative", "weighted 4", "extended", "lr"])
def test_sizes_follow_the_budget(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """At least LEAST_SIZE; all occupied cells if the budget allows; at most MAX_ENTRIES in all classes."""
    caught = catch(name, wide_dataset(), GRAPHS["tan"])
    white = whitening(caught.likelihood, caught.space)
    sizes: list[int] = []
    p = np.zeros(caught.space.n_parameters)
    original = Whitening._subspace

    def spy(self: Whitening, size: int, penalty: float) -> Any:
        found = original(self, size, penalty)
        sizes.append(size)
        assert found.n <= size
        return found

    monkeypatch.setattr(Whitening, "_subspace", spy)
    for passes in (0.0, 1.0, 1e3, 1e9):
        white.refresh(p, passes, 1.0)
    assert sizes[0] == preconditioner.LEAST_SIZE
    assert sizes == sorted(sizes)
    occupied = int(np.count_nonzero(caught.likelihood.cell_weights()))
    assert sizes[-1] == (occupied if not isinstance(caught.space, Softmax) else caught.likelihood.n_cells)
    monkeypatch.setattr(preconditioner, "MAX_ENTRIES", 3 * 50**2)
    white.refresh(p, 1e9, 1.0)
    assert sizes[-1] == 50


@pytest.mark.parametrize("n_labels", [2, 3])
def test_as_many_rows_as_the_budget_allows(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    """A few at least, all at most, evenly spaced, and scaled to the weight of all rows."""
    data = random_dataset(50_000, (3, 2, 4), n_labels, weighted=True)
    caught = catch("discriminative", data, GRAPHS["tan"])
    p = np.zeros(caught.space.n_parameters)
    white = whitening(caught.likelihood, caught.space)
    sampled: list[int] = []
    original = preconditioner.co_occurrences

    def spy(packing: Any, codes: Any, factors: Array) -> Array:
        sampled.append(factors.shape[1])
        return original(packing, codes, factors)

    monkeypatch.setattr(preconditioner, "co_occurrences", spy)
    counts = []
    for passes in (0.0, 3.0, ENOUGH):
        sampled.clear()
        white.refresh(p, passes, 1.0)
        counts.append(sum(sampled))
    assert preconditioner.LEAST_ROWS <= counts[0] <= counts[1] <= counts[2] == 50_000


def test_a_rare_predictor_alone_is_scaled_by_its_own_curvature(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell outside the subspace gets the inverse of its own diagonal entry only."""
    monkeypatch.setattr(preconditioner, "LEAST_SIZE", 2)
    monkeypatch.setattr(preconditioner, "STRETCH", 0.0)
    monkeypatch.setattr(preconditioner, "START_PASSES", 0.0)
    data = random_dataset(400, (4, 3), 2)
    caught = catch("discriminative", data, Dag(((), ()), (0, 1)))
    weights = caught.likelihood.cell_weights()
    light = int(weights.argmin())
    g = np.zeros((2, caught.likelihood.n_cells))
    g[:, light] = (1.0, -1.0)
    found = whitening(caught.likelihood, caught.space).start(np.zeros(g.size), 1.0)(g.ravel()).reshape(g.shape)
    np.testing.assert_allclose(found[:, light], np.array([1.0, -1.0]) / (weights[light] / 2 + 1), rtol=1e-9)
    assert np.count_nonzero(found) == 2


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_refreshed_a_cell_alone_is_scaled_by_the_curvature_of_its_rows(
    monkeypatch: pytest.MonkeyPatch, n_labels: int, weighted: bool
) -> None:
    """Only the gradient of one class is not 0, and a shift of all classes has almost no curvature."""
    monkeypatch.setattr(preconditioner, "LEAST_SIZE", 2)
    monkeypatch.setattr(preconditioner, "STRETCH", 0.0)
    data = random_dataset(400, (4, 3), n_labels, weighted=weighted)
    caught = catch("discriminative", data, Dag(((), ()), (0, 1)))
    p = caught.space.generative + np.random.default_rng(0).normal(size=caught.space.n_parameters)
    white = replace(whitening(caught.likelihood, caught.space), flat=None)
    apply = white.refresh(p, 0.0, 1e-9)
    z = oracles.indicators(caught.likelihood.families, data)
    scores = z @ caught.space.tables(p).T
    posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    h = posterior * (1 - posterior)
    q = h / (1 - np.square(h).sum(axis=1) / h.sum(axis=1) ** 2)[:, np.newaxis]
    mass = (q * np.array(oracles.weights_of(data))[:, np.newaxis]).T @ z
    light = int(mass[0].argmin())
    g = np.zeros(mass.shape)
    g[:2, light] = (1.0, -1.0)
    found = apply(g.ravel()).reshape(g.shape)[:, light]
    shift = (g[:, light] / mass[:, light]).mean()
    np.testing.assert_allclose(found - found.mean(), g[:, light] / mass[:, light] - shift, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_without_a_penalty_certain_rows_cause_no_endless_step(n_labels: int) -> None:
    """Cells outside the dense block whose rows are certainly misclassified have a gradient, but almost no curvature."""
    data = random_dataset(400, (20, 20, 20), n_labels, seed=1)
    caught = catch("discriminative", data, GRAPHS["tan"])
    p = 300.0 * np.random.default_rng(0).normal(size=caught.space.n_parameters)
    gradient = caught.space.pull_back(p, caught.likelihood.value_and_gradient(caught.space.tables(p))[1])
    step = whitening(caught.likelihood, caught.space).refresh(p, 1e-9, 0.0)(gradient)
    assert np.isfinite(step).all()


GRAPHS_FLAT = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (1,)), (0, 1, 2, 3)),
    "forest, child first": Dag(((2,), (), (), (1,)), (0, 1, 2, 3)),
}


def directions(space: NullSpace) -> Array:
    """Return N, (n_cells, columns)."""
    n_cells = space.sums.columns.shape[1]
    columns = [np.zeros((1, n_cells)) for _ in range(space.sums.n)]
    for j, column in enumerate(columns):
        space.sums.add(column, np.eye(space.sums.n)[[j]])
    return np.stack([columns[a][0] - columns[b][0] for a, b in zip(space.plus, space.minus, strict=True)], axis=1)


@given(data=datasets(max_attributes=4), draw=st.data())
def test_no_row_is_scored_otherwise(data: Dataset, draw: st.DataObject) -> None:
    families = draw.draw(dags(len(data.codes))).families(data.schema.cardinalities)
    z = oracles.indicators(families, data)
    found = null_space(families, z.sum(axis=0), np.ones((1, z.shape[1])))
    assume(found is not None)
    assert found is not None
    assert not (z @ directions(found)).any()


@pytest.mark.parametrize("graph", GRAPHS_FLAT)
def test_for_networks_of_one_parent_none_is_missed(graph: str) -> None:
    data = random_dataset(600, (3, 2, 4, 3), 2)
    families = GRAPHS_FLAT[graph].families(data.schema.cardinalities)
    z = oracles.indicators(families, data)
    assert z.any(axis=0).all()
    found = null_space(families, z.sum(axis=0), np.ones((1, z.shape[1])))
    assert found is not None
    n = directions(found)
    assert np.linalg.matrix_rank(n) == n.shape[1] == z.shape[1] - np.linalg.matrix_rank(z)


def test_the_heaviest_are_kept_where_they_are_too_many() -> None:
    data = random_dataset(600, (3, 2, 4, 3), 2)
    families = GRAPHS_FLAT["tan"].families(data.schema.cardinalities)
    weights = oracles.indicators(families, data).sum(axis=0)
    every, some = (null_space(families, weights, np.ones((1, len(weights))), most) for most in (99, 3))
    assert every is not None
    assert some is not None
    kept, lightest = (np.abs(directions(space)).T @ weights / 2 for space in (some, every))
    assert len(kept) == 3 < len(lightest)
    assert sorted(kept) == sorted(lightest)[-3:]
    assert null_space(families, weights, np.ones((1, len(weights))), 0) is None


@pytest.mark.parametrize("name", ["discriminative", "weighted 4"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_along_them_the_preconditioner_is_the_penalty(
    monkeypatch: pytest.MonkeyPatch, name: str, n_labels: int
) -> None:
    """With few dense cells, no eigenvalue of inverse times Hessian is near 0, unlike without N."""
    monkeypatch.setattr(preconditioner, "LEAST_SIZE", 4)
    monkeypatch.setattr(preconditioner, "STRETCH", 0.0)
    monkeypatch.setattr(preconditioner, "FLAT_WORK", 1e-3)
    data = random_dataset(5_000, (6, 5, 6, 4), n_labels)
    caught = catch(name, data, GRAPHS_FLAT["tan"])
    white = whitening(caught.likelihood, caught.space)
    p = np.zeros(caught.space.n_parameters)
    product = caught.likelihood.hessian(caught.space.tables(p))

    def hessian(v: Array) -> Array:
        return 0.1 * v + caught.space.pull_back(p, product(caught.space.tables(v)))

    def least(apply: Callable[[Array], Array]) -> float:
        inverse, h = (np.stack([f(unit) for unit in np.eye(len(p))], axis=1) for f in (apply, hessian))
        factor = np.linalg.cholesky((h + h.T) / 2)
        return float(np.linalg.eigvalsh(factor.T @ (inverse + inverse.T) @ factor / 2)[0])

    with_them = least(white.refresh(p, 0.0, 0.1))
    without = least(replace(white, flat=None).refresh(p, 0.0, 0.1))
    assert white.flat is not None
    assert without < 0.02
    assert with_them > 10 * without


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Family, ...], Array, NDArray[np.bool_], int]:
    """Draw the families of any graph, weights with many ties and zeros, the cells with curvature, and a size."""
    cardinalities = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=4)))
    families = draw(dags(len(cardinalities))).families(cardinalities)
    n_cells = 1 + sum(family.n_cells for family in families)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    weights = rng.integers(0, draw(st.sampled_from([2, 6, 1000])), n_cells).astype(float)
    weights[0] = weights.sum() + 1
    curved = rng.random(n_cells) < draw(st.sampled_from([0.0, 0.7, 1.0]))
    return families, weights, curved, draw(st.integers(1, 2 * n_cells))


def matrix_subspace(found: Subspace) -> Array:
    """Return R (n_cells, n)."""
    r = np.zeros((found.columns.shape[1], found.n + 1))
    for row in found.columns:
        r[np.arange(len(row)), row] += 1.0
    return r[:, :-1]


@given(cases())
def test_the_top_has_the_bias_and_the_heaviest_cells(
    case: tuple[tuple[Family, ...], Array, NDArray[np.bool_], int],
) -> None:
    families, weights, curved, size = case
    for found in (subspace(families, weights, curved, size), top_only(weights, size)):
        top = found.top
        assert top[0] == 0
        assert found.columns[0, top].tolist() == list(range(len(top)))
        assert top.tolist() == sorted(top)
        rest = np.setdiff1d(np.arange(len(weights)), top)
        if len(top) > 1 and len(rest):
            lightest = weights[top[1:]].min()
            assert lightest >= weights[rest].max()
            tied_in, tied_out = top[1:][weights[top[1:]] == lightest], rest[weights[rest] == lightest]
            assert not len(tied_out) or tied_in.max() < tied_out.min()


@given(cases())
def test_the_size_is_respected_and_every_column_used(
    case: tuple[tuple[Family, ...], Array, NDArray[np.bool_], int],
) -> None:
    families, weights, curved, size = case
    found = subspace(families, weights, curved, size)
    assert found.n <= size
    assert (matrix_subspace(found).sum(axis=0) > 0).all()
    occupied = np.flatnonzero(weights)
    if len(occupied) <= size:
        assert set(occupied) <= set(found.top)
    else:
        assert len(found.top) == size - size // 2


@given(cases())
def test_sums_are_the_heaviest_values_of_free_cells(
    case: tuple[tuple[Family, ...], Array, NDArray[np.bool_], int],
) -> None:
    """Each sum has the free cells of a family with one value of an attribute: at least two, with positive weight."""
    families, weights, curved, size = case
    found = subspace(families, weights, curved, size)
    candidates = [
        cells
        for cells in _values(families, weights, curved, set(found.top))
        if len(cells) > 1 and weights[list(cells)].sum() > 0
    ]
    r = matrix_subspace(found)
    sums = [tuple(np.flatnonzero(column)) for column in r.T[len(found.top) :]]
    assert sorted(set(sums)) == sorted(set(sums) & set(candidates))
    totals = sorted((weights[list(cells)].sum() for cells in candidates), reverse=True)
    room = max(0, size - len(found.top))
    assert sorted((weights[list(cells)].sum() for cells in sums), reverse=True) == totals[:room]


def _values(
    families: Sequence[Family], weights: Array, curved: NDArray[np.bool_], top: set[int]
) -> list[tuple[int, ...]]:
    listed: list[tuple[int, ...]] = []
    offset = 1
    for family in families:
        cells = list(itertools.product(*map(range, family.shape)))
        for place, value in ((p, v) for p, n in enumerate(family.shape) for v in range(n)):
            mine = [offset + i for i, values in enumerate(cells) if values[place] == value]
            if len(family.shape) > 1:
                listed.append(tuple(c for c in mine if c not in top and curved[c] and weights[c] > 0))
        offset += math.prod(family.shape)
    return listed


def test_two_attributes_by_hand() -> None:
    """The bias and the two heaviest of six cells are at the top; sums are over other cells with equal values."""
    family = Family((0, 1), (3, 2), 0)
    weights = np.array([60.0, 20.0, 1.0, 15.0, 2.0, 3.0, 4.0])
    found = subspace([family], weights, np.ones(7, bool), 6)
    assert found.top.tolist() == [0, 1, 3]
    sums = {tuple(np.flatnonzero(column)) for column in matrix_subspace(found).T[3:]}
    assert sums == {(5, 6), (2, 4, 6)}
    assert found.n == 5
