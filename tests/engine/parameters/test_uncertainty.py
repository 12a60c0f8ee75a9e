"""Compare the uncertainty of tables with draws from Dirichlet posteriors and with Hessians by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import ParameterUncertainty, UncertaintyMethod
from bncli.engine.parameters import uncertainty
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.smoothing import pseudo_counts
from bncli.engine.parameters.uncertainty import (
    laplace,
    laplace_deviations,
    laplace_variances,
    penalty_bias,
    posterior_variances,
    refuse_intervals,
    relative_error,
    widened,
)
from bncli.engine.structures.structure import Dag
from bncli.errors import UsageError
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.spaces import SPACES, catch, fit

TAN = Dag(((), (0,), (0,)), (0, 1, 2))
PENALTY = 0.7


def cells_of_rows(data: Dataset, dag: Dag) -> Index:
    """Return the cells of every row, (N, 1 + families), by arithmetic."""
    columns, first = [np.zeros(data.n_rows, np.intp)], 1
    for family in dag.families(data.schema.cardinalities):
        columns.append(
            first + np.ravel_multi_index([data.codes[a].astype(int) for a in family.attributes], family.shape)
        )
        first += family.n_cells
    return np.stack(columns, axis=1)


def row_covariances(of_entries: Array, data: Dataset, dag: Dag, n_labels: int) -> Array:
    """Return the covariances (N, K - 1, K - 1) of score differences from the first class, given those of entries."""
    n_cells = len(of_entries) // n_labels
    out = []
    for cells in cells_of_rows(data, dag):
        contrasts = np.zeros((n_labels - 1, n_labels, n_cells))
        for y in range(1, n_labels):
            contrasts[y - 1, y, cells] = 1.0
            contrasts[y - 1, 0, cells] = -1.0
        flat = contrasts.reshape(n_labels - 1, -1)
        out.append(flat @ of_entries @ flat.T)
    return np.array(out)


def covariances_by_differences(space: ParameterSpace, point: Array) -> Array:
    """Return J A^-1 J' with A the slope of the penalised gradient by central differences."""

    def gradient(p: Array) -> Array:
        d_tables = space.likelihood.value_and_gradient(space.coordinates.tables(p))[1]
        return np.asarray(PENALTY * p - space.coordinates.pull_back(p, d_tables))

    units = 1e-4 * np.eye(len(point))
    hessian = np.array([(gradient(point + u) - gradient(point - u)) / 2e-4 for u in units])
    tables = [(space.coordinates.tables(point + u) - space.coordinates.tables(point - u)).ravel() / 2e-4 for u in units]
    derivative = np.stack(tables, axis=1)
    return np.asarray(derivative @ np.linalg.inv((hessian + hessian.T) / 2) @ derivative.T)


def covariances_of(deviations: Array, data: Dataset, dag: Dag) -> Array:
    of_rows = deviations[:, :, cells_of_rows(data, dag)].sum(axis=-1)  # (R, K - 1, N)
    return np.einsum("rat,rbt->tab", of_rows, of_rows)


def space_of(name: str, data: Dataset) -> ParameterSpace:
    caught = catch(name, data, TAN)
    return ParameterSpace(caught.likelihood, caught.space)


@pytest.mark.parametrize("name", [name for name in SPACES if name != "extended"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_laplace_equals_the_inverse_hessian_by_differences(name: str, n_labels: int) -> None:
    data = random_dataset(80, (3, 2, 2), n_labels, weighted=True)
    point = fit(name, data, TAN, penalty=PENALTY).point
    space = space_of(name, data)
    found = covariances_of(laplace_deviations(space, point, PENALTY), data, TAN)
    expected = row_covariances(covariances_by_differences(space, point), data, TAN, n_labels)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_laplace_of_network_parameters_equals_the_optimizer_s_curvature() -> None:
    data = random_dataset(80, (3, 2, 2), 3)
    point = fit("extended", data, TAN, penalty=PENALTY).point
    assert point is not None
    space = space_of("extended", data)
    product, units = space.hessian(point, PENALTY), np.eye(len(point))
    hessian = np.array([product(unit) for unit in units])
    derivative = np.stack([space.coordinates.push(point, unit).ravel() for unit in units], axis=1)  # type: ignore[attr-defined]
    expected = row_covariances(derivative @ np.linalg.inv(hessian) @ derivative.T, data, TAN, 3)
    found = covariances_of(laplace_deviations(space, point, PENALTY), data, TAN)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["discriminative", "weighted 4", "lr", "extended"])
def test_independent_entries_have_the_mean_variance_of_the_full_covariance(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uncertainty, "PROBES", 200)
    data = random_dataset(300, (3, 4, 3), 3)
    point = fit(name, data, TAN, penalty=PENALTY).point
    assert point is not None
    space = space_of(name, data)
    dense = covariances_of(laplace_deviations(space, point, PENALTY), data, TAN)
    centring = np.eye(3) - 1 / 3
    expected = np.trace(centring[1:, 1:] @ dense, axis1=1, axis2=2).mean()
    variances = laplace_variances(space, point, PENALTY, seed=1)
    found = variances[:, cells_of_rows(data, TAN)].sum(axis=(0, 2)).mean() * (1 - 1 / 3)
    assert found == pytest.approx(expected, rel=0.05)
    assert (variances >= 0).all()


def test_few_numbers_keep_the_full_covariance_and_many_the_variances(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(100, (3, 2, 2), 2)
    recipe = Recipe.of(structure="tan", param="discriminative", penalty="1")
    point = fit("discriminative", data, TAN, penalty=1.0).point
    assert point is not None
    whole = laplace(Counts(data), TAN, recipe, point, 1.0, 1.0)
    shrunk = laplace(Counts(data), TAN, recipe, point, 1.0, 0.5)
    assert whole.method is UncertaintyMethod.LAPLACE
    np.testing.assert_allclose(shrunk.entries, 0.5 * whole.entries)
    monkeypatch.setattr(uncertainty, "MOST_NUMBERS", 10)
    assert laplace(Counts(data), TAN, recipe, point, 1.0, 1.0).method is UncertaintyMethod.LAPLACE_DIAGONAL


@pytest.mark.parametrize("smoothing", ["m-estimate:1", "laplace:1", "fgg:5", "bdeu:8", "hdp"])
@pytest.mark.parametrize("dag", [TAN, Dag(((), (), ()), (0,), (1, 2))])
def test_the_posterior_equals_draws_of_dirichlet_distributions(smoothing: str, dag: Dag) -> None:
    """Var of ln theta by 100,000 draws of each distribution; their error is below 3 %."""
    data, rng = random_dataset(60, (3, 2, 2), 2), np.random.default_rng(3)
    counts = Counts(data)
    found = posterior_variances(counts, dag, smoothing).entries
    first = 1
    families = dag.families(data.schema.cardinalities)
    for family, table in zip(families, counts.tables([f.attributes for f in families]), strict=True):
        cells = found[:, first : first + family.n_cells]
        first += family.n_cells
        if family.child is None:
            alpha = (table + np.maximum(pseudo_counts(table, smoothing, -1), 0.7)).reshape(-1, 2)
            drawn = np.log(rng.dirichlet(alpha[0], 100_000))
            assert cells[:, 0].sum() == pytest.approx((drawn[:, 1] - drawn[:, 0]).var(), rel=0.03)
            assert not found[:, 0].any()
            continue
        alpha = (table + np.maximum(pseudo_counts(table, smoothing, 0), 0.7)).reshape(family.shape[0], -1, 2)
        variances = cells.T.reshape(alpha.shape)
        for parent in range(alpha.shape[1]):
            drawn = np.log(rng.dirichlet(alpha[:, parent, 1], 100_000))
            np.testing.assert_allclose(variances[:, parent, 1], drawn.var(axis=0), rtol=0.03)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"structure": "kikuchi"}, "kbma"),
        ({"structure": "nb", "param": "map", "smoothing": "mle"}, "mle"),
        ({"structure": "nb", "param": "map", "class_weights": "balanced"}, "--class-weights"),
        ({"structure": "nb", "param": "map", "missing_policy": "marginalize"}, "marginalize"),
        ({"structure": "nb", "penalty": "0"}, "penalty"),
        ({"structure": "nb", "param": "extended", "early_stop": "cv", "penalty": "1"}, "--early-stop"),
    ],
)
def test_models_without_a_posterior_are_refused(options: dict[str, str], word: str) -> None:
    with pytest.raises(UsageError, match="--intervals") as caught:
        refuse_intervals(Recipe.of(**options))
    assert word in f"{caught.value.what} {caught.value.hint}"
    refuse_intervals(Recipe.of(structure="nb", param="map"))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_held_out_rows_give_the_relative_error_of_shrunk_log_odds(scale: float) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(3, 20_000))
    true = np.exp(scale * scores) / np.exp(scale * scores).sum(axis=0)
    labels = (rng.random(20_000) > true.cumsum(axis=0)).sum(axis=0)
    log_p = scores - np.logaddexp.reduce(scores, axis=0)

    def loss(a: float) -> float:
        return float(np.logaddexp.reduce(a * log_p, axis=0).sum() - a * log_p[labels, np.arange(20_000)].sum())

    grid = np.linspace(0.5, 2.0, 1501)
    best = float(grid[int(np.argmin([loss(a) for a in grid]))])
    assert relative_error(log_p, labels, None) == pytest.approx(abs(best - 1), abs=1e-3)
    assert relative_error(log_p[:, :1], labels[:1], None) <= 3.0
    assert relative_error(np.full((3, 5), np.log(1 / 3)), labels[:5], None) == 0.0


def test_a_relative_error_widens_each_score_by_its_size() -> None:
    cells = np.arange(12.0).reshape(3, 4) ** 2
    before = ParameterUncertainty(UncertaintyMethod.LAPLACE, np.ones((5, 2, 4)))
    after = widened(before, cells, 0.1)
    np.testing.assert_array_equal(after.entries[:5], before.entries)
    np.testing.assert_allclose(after.entries[5], 0.1 * (cells[1:] - cells[0]))
    independent = ParameterUncertainty(UncertaintyMethod.LAPLACE_DIAGONAL, np.ones((3, 4)))
    assert widened(independent, cells, 0.1) is independent


@pytest.mark.parametrize("center", [0.0, 1.0])
@pytest.mark.parametrize("name", ["weighted 4", "lr", "extended"])
def test_the_bias_is_how_far_the_optimum_moves_when_the_penalty_grows(name: str, center: float) -> None:
    """To first order the optimum moves by -Sigma (p - c) per unit of lambda."""
    data, step = random_dataset(200, (3, 2, 2), 3), 1e-3
    how = {"penalty_center": center} if name == "weighted 4" else {}
    center = how.get("penalty_center", 0.0)
    before, after = (fit(name, data, TAN, penalty=PENALTY + d, **how).tables.cells for d in (-step, step))
    point = fit(name, data, TAN, penalty=PENALTY, **how).point
    assert point is not None
    moved = (before - after) / (2 * step) * PENALTY
    found = penalty_bias(space_of(name, data), point, PENALTY, center)[0]
    scale = float(np.abs(moved).max())
    tolerance = 0.3 if name == "extended" else 0.02  # its Hessian leaves out the curvature of the map
    np.testing.assert_allclose(found / scale, (moved[1:] - moved[:1]) / scale, atol=tolerance)
