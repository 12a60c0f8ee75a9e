"""Compare the uncertainty of tables with draws from Dirichlet posteriors and with Hessians by finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import inner_splits
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Tables, UncertaintyMethod
from bncli.engine.parameters import uncertainty
from bncli.engine.parameters.coordinates import Softmax
from bncli.engine.parameters.generative import pseudo_counts
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.uncertainty import (
    laplace,
    laplace_deviations,
    laplace_variances,
    penalty_bias,
    posterior_draws,
    posterior_variances,
    predictive_log_likelihood,
    refuse_intervals,
    weigh_penalties,
)
from bncli.engine.structures.structure import Dag
from bncli.errors import UsageError
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.spaces import SPACES, catch, fit, how

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


def test_prior_variances_of_log_probabilities_are_those_of_their_derivative() -> None:
    """By differences: the prior variance of an entry is the sum of the squares of its derivatives, over lambda."""
    data = random_dataset(80, (3, 2, 4), 3)
    point = fit("extended", data, TAN, penalty=PENALTY).point
    assert point is not None
    coordinates = space_of("extended", data).coordinates
    assert isinstance(coordinates, Softmax)
    step = 1e-6
    columns = [
        (coordinates.tables(point + step * unit) - coordinates.tables(point - step * unit)) / (2 * step)
        for unit in np.eye(len(point))
    ]
    found, expected = coordinates.squared_derivatives(point), np.square(columns).sum(axis=0)
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:], rtol=1e-6)
    assert (found[:, 0] == 1).all()  # the bias, normalised over the classes
    assert np.ptp(found[:, 1:]) > 0.1


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


WEIGHTS = np.array([3.0, 0.5, 1.5])


def weighted_by_class(data: Dataset) -> Dataset:
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    return replace(data, weights=weights * WEIGHTS[data.labels])


@pytest.mark.parametrize("name", ["discriminative", "weighted 4", "lr"])
def test_class_weights_give_the_sandwich_of_the_gradients_of_rows(name: str) -> None:
    """Sum over rows and labels the squares of gradients, each by the table entries of one row."""
    plain = random_dataset(80, (3, 2, 2), 3, weighted=True)
    data = weighted_by_class(plain)
    point = fit(name, data, TAN, penalty=PENALTY).point
    assert point is not None
    space = space_of(name, data)
    cells = space.coordinates.tables(point)
    hessian = np.array([space.hessian(point, PENALTY)(unit) for unit in np.eye(len(point))])
    mean = data.total_weight / plain.total_weight
    middle = PENALTY * mean * np.eye(len(point))
    for row, u in zip(cells_of_rows(data, TAN), plain.weights, strict=True):
        scores = cells[:, row].sum(axis=1)
        p = np.exp(scores) / np.exp(scores).sum()
        expected = p / WEIGHTS / (p / WEIGHTS).sum()
        for y in range(3):
            entries = np.zeros_like(cells)
            entries[:, row] = (WEIGHTS[y] * (np.eye(3)[y] - p))[:, np.newaxis]
            gradient = space.coordinates.pull_back(point, entries)
            middle += u * expected[y] * np.outer(gradient, gradient)
    derivative = np.stack([space.coordinates.tables(unit).ravel() for unit in np.eye(len(point))], axis=1)
    inverse = np.linalg.inv(hessian)
    expected = row_covariances(derivative @ inverse @ middle @ inverse @ derivative.T, data, TAN, 3)
    found = covariances_of(laplace_deviations(space, point, PENALTY, WEIGHTS), data, TAN)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "n_draws", "tolerance"),
    [
        ("weighted 4", 300, 0.1),
        *(pytest.param(name, 1000, 0.08, marks=pytest.mark.slow) for name in ("lr", "extended")),
    ],
)
def test_draws_have_the_covariance_of_the_approximation(name: str, n_draws: int, tolerance: float) -> None:
    data = weighted_by_class(random_dataset(80, (3, 2, 2), 3, weighted=True))
    penalty = 10.0  # nearly certain labels are drawn too rarely for a mean of few draws
    point = fit(name, data, TAN, penalty=penalty).point
    assert point is not None
    space = space_of(name, data)
    for factors in (None, WEIGHTS):
        expected = covariances_of(laplace_deviations(space, point, penalty, factors), data, TAN)
        draws = posterior_draws(space, point, penalty, n_draws, np.random.default_rng(1), factors)
        drawn = covariances_of((draws[:, 1:] - draws[:, :1]) / np.sqrt(n_draws), data, TAN)
        np.testing.assert_allclose(drawn, expected, atol=4 * tolerance * float(expected.max()))
        assert drawn.mean() == pytest.approx(expected.mean(), rel=tolerance)


def test_class_weights_leave_the_posterior_as_it_is() -> None:
    data = random_dataset(60, (3, 2, 2), 3)
    plain = posterior_variances(Counts(data), TAN, "m-estimate:1").entries
    weighted = posterior_variances(Counts(weighted_by_class(data)), TAN, "m-estimate:1", WEIGHTS).entries
    np.testing.assert_allclose(weighted, plain)


RECIPE = Recipe.of(structure="tan", param="discriminative", penalty="1")


def folds_of(data: Dataset) -> list[tuple[Counts, Dataset]]:
    splits = inner_splits(data.labels, 5, 0)
    return [(Counts(data.take(others)), data.take(rows)) for others, rows in splits]


def test_few_numbers_keep_the_full_covariance_and_many_the_variances(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(100, (3, 2, 2), 2)
    learned = fit("discriminative", data, TAN, penalty=1.0)
    assert learned.point is not None
    whole = laplace(Counts(data), TAN, RECIPE, learned, how(penalty=1.0), [])
    assert whole.method is UncertaintyMethod.LAPLACE
    space = space_of("discriminative", data)
    deviations = laplace_deviations(space, learned.point, 1.0), penalty_bias(space, learned.point, 1.0, 0.0)
    expected = covariances_of(np.concatenate(deviations), data, TAN)
    np.testing.assert_allclose(covariances_of(whole.entries, data, TAN), expected, rtol=1e-6, atol=1e-9)
    monkeypatch.setattr(uncertainty, "MOST_NUMBERS", 10)
    many = laplace(Counts(data), TAN, RECIPE, learned, how(penalty=1.0), folds_of(data))
    assert many.method is UncertaintyMethod.LAPLACE_DIAGONAL


def test_tables_that_were_shrunk_are_further_from_the_posterior() -> None:
    """What was shrunk is a deviation of its own."""
    data = random_dataset(100, (3, 2, 2), 3)
    learned = fit("discriminative", data, TAN, penalty=1.0)
    cells = learned.tables.cells
    shrunk = replace(learned, predictor=Tables.of_cells(0.6 * cells, learned.tables.families))
    covariances = [
        covariances_of(laplace(Counts(data), TAN, RECIPE, each, how(penalty=1.0), []).entries, data, TAN)
        for each in (learned, shrunk)
    ]
    moved = 0.4 * cells[:, cells_of_rows(data, TAN)].sum(axis=2)
    contrasts = moved[1:] - moved[0]
    np.testing.assert_allclose(covariances[1] - covariances[0], np.einsum("at,bt->tab", contrasts, contrasts))


@pytest.mark.parametrize("name", ["discriminative", "weighted 4", "extended"])
def test_the_posterior_predictive_likelihood_is_that_of_drawn_parameters(name: str) -> None:
    """Compare with the mean probability over 20,000 draws of the tables; the error is below 1 %."""
    data, held_out = random_dataset(60, (3, 2, 2), 3), random_dataset(20, (3, 2, 2), 3, weighted=True, seed=4)
    point = fit(name, data, TAN, penalty=PENALTY).point
    assert point is not None
    space = space_of(name, data)
    deviations = laplace_deviations(space, point, PENALTY)
    scores = np.repeat(
        space.coordinates.tables(point)[:, cells_of_rows(held_out, TAN)].sum(axis=2)[np.newaxis], 20_000, 0
    )
    of_rows = deviations[:, :, cells_of_rows(held_out, TAN)].sum(axis=-1)
    scores[:, 1:] += np.einsum("dr,rat->dat", np.random.default_rng(2).normal(size=(20_000, len(of_rows))), of_rows)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    of_labels = p.mean(axis=0)[held_out.labels, np.arange(held_out.n_rows)]
    expected = float(held_out.weights @ np.log(of_labels))
    assert predictive_log_likelihood(space, point, PENALTY, held_out) == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
def test_the_posterior_is_averaged_over_penalties_by_their_weights() -> None:
    data = random_dataset(150, (3, 2, 2), 2)
    learned = fit("discriminative", data, TAN, penalty=1.0)
    folds = folds_of(data)
    spaces = [(space_of("discriminative", counts.data), held_out) for counts, held_out in folds]  # type: ignore[arg-type]
    weights = weigh_penalties(spaces, how(penalty=1.0))
    assert sum(weight for _, weight in weights) == pytest.approx(1.0)
    found = laplace(Counts(data), TAN, RECIPE, learned, how(penalty=1.0), folds)
    assert learned.point is not None
    space = space_of("discriminative", data)
    expected = covariances_of(penalty_bias(space, learned.point, 1.0, 0.0), data, TAN)
    for factor, weight in weights:
        other = fit("discriminative", data, TAN, penalty=factor)
        assert other.point is not None
        expected = expected + weight * covariances_of(laplace_deviations(space, other.point, factor), data, TAN)
        distance = (other.tables.cells - learned.tables.cells)[:, cells_of_rows(data, TAN)].sum(axis=2)
        expected = expected + weight * np.square(distance[1] - distance[0])[:, np.newaxis, np.newaxis]
    np.testing.assert_allclose(covariances_of(found.entries, data, TAN), expected, rtol=1e-3)


@pytest.mark.slow
def test_rows_of_a_strong_effect_prefer_a_smaller_penalty() -> None:
    """The penalty of a fit far too cautious gets no weight, and neither does one far too bold for noise."""
    rng = np.random.default_rng(0)
    strong = random_dataset(400, (2, 2, 2), 2)
    labels = np.where(rng.random(400) < 0.9, strong.codes[0], 1 - strong.codes[0]).astype(strong.labels.dtype)
    strong = replace(strong, labels=labels)
    noise = random_dataset(400, (5, 5, 5), 2)
    noise = replace(noise, labels=rng.integers(0, 2, 400).astype(noise.labels.dtype))
    means = []
    for data, penalty in ((strong, 100.0), (noise, 1.0)):
        spaces = [(space_of("discriminative", counts.data), rows) for counts, rows in folds_of(data)]  # type: ignore[arg-type]
        means.append(sum(weight * np.log(factor) for factor, weight in weigh_penalties(spaces, how(penalty=penalty))))
    assert means[0] < np.log(0.2)
    assert means[1] > np.log(2.0)


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
            alpha = (table + np.maximum(pseudo_counts(table, smoothing, -1), 0.8)).reshape(-1, 2)
            drawn = np.log(rng.dirichlet(alpha[0], 100_000))
            assert cells[:, 0].sum() == pytest.approx((drawn[:, 1] - drawn[:, 0]).var(), rel=0.03)
            assert not found[:, 0].any()
            continue
        alpha = (table + np.maximum(pseudo_counts(table, smoothing, 0), 0.8)).reshape(family.shape[0], -1, 2)
        variances = cells.T.reshape(alpha.shape)
        for parent in range(alpha.shape[1]):
            drawn = np.log(rng.dirichlet(alpha[:, parent, 1], 100_000))
            np.testing.assert_allclose(variances[:, parent, 1], drawn.var(axis=0), rtol=0.03)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"structure": "kikuchi"}, "kbma"),
        ({"structure": "nb", "param": "map", "smoothing": "mle"}, "mle"),
        ({"structure": "nb", "param": "extended", "missing_policy": "marginalize"}, "marginalize"),
        ({"structure": "nb", "penalty": "0"}, "penalty"),
        ({"structure": "nb", "param": "extended", "early_stop": "cv", "penalty": "1"}, "--early-stop"),
    ],
)
def test_models_without_a_posterior_are_refused(options: dict[str, str], word: str) -> None:
    with pytest.raises(UsageError, match="--intervals") as caught:
        refuse_intervals(Recipe.of(**options))
    assert word in f"{caught.value.what} {caught.value.hint}"
    refuse_intervals(Recipe.of(structure="nb", param="map"))
    refuse_intervals(Recipe.of(structure="tan", param="map", missing_policy="marginalize"))


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
