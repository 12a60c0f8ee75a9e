"""Weights of a pool: the conditions of the optimum, what is dropped, row weights, and shrinkage with few rows.

Compare the spread of an ensemble with the variance of a mixture, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles import pooling
from bncli.engine.ensembles.boosted_bag import BagPlan, evaluate_boosted
from bncli.engine.ensembles.boosted_trees import tables_of
from bncli.engine.ensembles.budget import FOLDS, ComputeBudget
from bncli.engine.ensembles.pooling import (
    LEAST,
    LEAST_OF_MANY,
    MANY,
    STRENGTH,
    STRENGTH_OF_MANY,
    FittedComponent,
    linear_pool_weights,
    pool_log_probabilities,
    pool_weights,
    shrink_to_frequencies,
    spread,
)
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Component, Ensemble, Tables, UncertaintyMethod
from bncli.engine.parameters.penalty_choice import log_frequencies
from bncli.engine.parameters.uncertainty import laplace_deviations, penalty_bias
from bncli.engine.structures.structure import Dag, Family
from tests.datasets import random_dataset
from tests.engine.ensembles.test_boosted_bag import parts
from tests.engine.parameters.test_uncertainty import TAN, covariances_of, space_of
from tests.spaces import fit

Labels = NDArray[np.intp]


def opinions(seed: int, n_models: int, n_labels: int = 3, n_rows: int = 60) -> tuple[Array, Labels]:
    """Return ln P (models, classes, rows) that lean towards the labels, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, n_rows)
    scores = rng.normal(size=(n_models, n_labels, n_rows))
    scores[:, labels, np.arange(n_rows)] += rng.uniform(0, 2, (n_models, 1))
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)), labels


def penalised(logs: Array, labels: Labels, w: Array, centre: Array, metric: str = "") -> float:
    """Return what the weights minimise, row by row."""
    total = 0.0
    for t, label in enumerate(labels):
        powers = np.array([np.exp(sum(w[m] * logs[m, k, t] for m in range(len(w)))) for k in range(logs.shape[1])])
        p = powers[label] / powers.sum()
        total += (1 - p) ** 2 if metric == "rmse" else -np.log(p)
    return float(total + STRENGTH / 2 * ((w - centre) ** 2).sum())


@given(st.integers(0, 999), st.integers(1, 4), st.sampled_from(["", "rmse"]))
def test_no_weights_nearby_are_better(seed: int, n_models: int, metric: str) -> None:
    logs, labels = opinions(seed, n_models)
    w = pool_weights(list(logs), labels, None, metric)
    assert all(weight == 0.0 or weight >= LEAST for weight in w)
    kept = np.flatnonzero(w)
    centre = linear_pool_weights(logs[kept][:, labels, np.arange(len(labels))])
    least = penalised(logs[kept], labels, w[kept], centre, metric)
    for m in range(len(kept)):
        for step in (-1e-2, 1e-2):
            other = w[kept] + step * (np.arange(len(kept)) == m)
            if (other >= LEAST).all():  # what is less is no weight
                assert penalised(logs[kept], labels, other, centre, metric) >= least - 1e-6


@given(st.integers(0, 999), st.integers(1, 4))
def test_a_pool_is_normalised_and_one_model_with_weight_1_is_itself(seed: int, n_models: int) -> None:
    logs, _ = opinions(seed, n_models)
    w = np.random.default_rng(seed).uniform(0, 2, n_models)
    np.testing.assert_allclose(np.exp(pool_log_probabilities(logs, w)).sum(axis=0), 1.0)
    np.testing.assert_allclose(pool_log_probabilities(logs[:1], np.ones(1)), logs[0], atol=1e-12)


def test_a_row_weight_is_a_number_of_equal_rows() -> None:
    logs, labels = opinions(3, 3)
    counts = np.random.default_rng(0).integers(1, 4, len(labels))
    weighted = pool_weights(logs, labels, counts.astype(float))
    repeated = pool_weights(np.repeat(logs, counts, axis=2), np.repeat(labels, counts))
    assert weighted.tolist() == pytest.approx(repeated.tolist(), abs=1e-3)


def test_a_cautious_model_is_made_bolder_and_an_overconfident_one_more_cautious() -> None:
    """Three rows in four have the first label: its odds are 3 to 1, whatever the model predicts."""
    labels = np.tile([0, 0, 0, 1], 5_000)
    for p in (0.6, 0.75, 0.99):
        logs = np.log(np.array([[[p], [1 - p]]])) * np.ones(len(labels))
        (w,) = pool_weights(logs, labels)
        assert w == pytest.approx(np.log(3) / np.log(p / (1 - p)), rel=0.02)


def test_the_better_of_two_opposite_models_gets_all_the_weight() -> None:
    right = np.log(np.array([[0.9, 0.2, 0.9], [0.1, 0.8, 0.1]]))
    w = pool_weights([right, right[::-1]], np.array([0, 1, 0]))
    assert w[1] == 0.0
    assert w[0] > 1.0


@pytest.mark.parametrize("seed", [29, 40, 87, 105, 108, 126])
def test_weights_do_not_depend_on_the_order_of_the_models(seed: int) -> None:
    """Twelve similar models: some are dropped, and then some of the others."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 30)
    shared = rng.normal(size=(1, 2, 30))
    shared[:, labels, np.arange(30)] += 1
    scores = shared * rng.uniform(0.2, 2, (12, 1, 1)) + 0.1 * rng.normal(size=(12, 2, 30))
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    w = pool_weights(logs, labels)
    assert 0 < np.count_nonzero(w) < len(w)
    assert pool_weights(logs[::-1], labels)[::-1].tolist() == pytest.approx(w.tolist(), abs=1e-3)


def test_if_no_model_helps_the_likeliest_has_hardly_any_weight() -> None:
    wrong = np.log(np.full((2, 3000), 0.5) + np.array([[0.4], [-0.4]]))
    w = pool_weights([wrong, wrong * 2], np.ones(3000, np.intp))
    assert sorted(w) == [0.0, LEAST_OF_MANY]


@given(st.integers(0, 999), st.integers(1, 5))
def test_no_weight_of_the_linear_pool_can_be_improved(seed: int, n_models: int) -> None:
    """At the optimum the mean share of a member is 1 where it has a weight, and below where it has none."""
    logs = np.log(np.random.default_rng(seed).uniform(0.01, 1.0, (n_models, 60)))
    v = linear_pool_weights(logs)
    assert v.sum() == pytest.approx(1.0)
    gains = (np.exp(logs) / (v @ np.exp(logs))).mean(axis=1)
    assert (gains < 1.0 + 1e-2).all()
    np.testing.assert_allclose(gains[v > 0.05], 1.0, atol=1e-2)


@pytest.mark.parametrize("sizes", [(900, 70, 30), (970, 19, 11), (500, 500)])
def test_linear_pool_weights_are_shares_of_the_rows(sizes: Sequence[int]) -> None:
    """Each model is certain of the rows of its group and has no information about the others."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    logs = np.log(np.where(group == np.arange(len(sizes))[:, np.newaxis], 1.0, 1e-9))
    np.testing.assert_allclose(linear_pool_weights(logs), np.array(sizes) / sum(sizes), atol=1e-6)


def test_very_small_probabilities_stay_finite() -> None:
    logs = np.array([[[-2000.0, -1.0], [0.0, -0.5]], [[-1990.0, -3.0], [0.0, -0.05]]])
    w = pool_weights(logs, np.array([0, 1]))
    assert np.isfinite(pool_log_probabilities(logs, w)).all()


@pytest.mark.parametrize(("n_rows", "strength"), [(MANY - 1, STRENGTH), (MANY, STRENGTH_OF_MANY)])
def test_the_pull_is_stronger_with_many_rows(n_rows: int, strength: float) -> None:
    """A model that is always right, its log-odds 7: strength * (w - 1) = rows * 7 / (1 + exp(7 w))."""
    logs = -np.log1p(np.exp(np.array([[[-7.0], [7.0]]]))) * np.ones(n_rows)
    (w,) = pool_weights(logs, np.zeros(n_rows, np.intp))
    expected = brentq(lambda w: strength * (w - 1) - n_rows * 7 / (1 + np.exp(7 * w)), 1, 10)
    assert w == pytest.approx(expected, rel=1e-3)


def test_weights_of_few_rows_are_shrunk_to_the_class_frequencies() -> None:
    """With 20 rows by half, with 60 by a tenth."""
    w = np.array([0.6, 0.0, 0.5, 0.1])
    np.testing.assert_allclose(shrink_to_frequencies(w, 20), [0.3, 0.0, 0.25, 0.55], rtol=1e-12)
    np.testing.assert_allclose(shrink_to_frequencies(w, 60), [0.54, 0.0, 0.45, 0.19], rtol=1e-12)
    assert shrink_to_frequencies(w, 1)[3] > 0.99


def test_weights_of_more_rows_are_not_shrunk() -> None:
    w = np.array([0.6, 0.5, 0.0])
    assert shrink_to_frequencies(w, 198)[2] > 0
    np.testing.assert_array_equal(shrink_to_frequencies(w, 199), w)


def scores_of(tables: Tables, data: Dataset) -> Array:
    """Return the scores (K, N) of the rows."""
    return sums_of(tables.cells, tables.families, data)


def sums_of(cells: Array, families: tuple[Family, ...], data: Dataset) -> Array:
    """Return the sums (..., N) over the cells of every row of entries (..., n_cells)."""
    total, first = np.repeat(cells[..., :1], data.n_rows, axis=-1), 1
    for family in families:
        codes = [data.codes[a].astype(int) for a in family.attributes]
        if family.groupings:
            groupings = zip(codes, family.groupings, strict=True)
            codes = [code if grouping is None else np.array(grouping)[code] for code, grouping in groupings]
        total = total + cells[..., first + np.ravel_multi_index(codes, family.shape)]
        first += family.n_cells
    return np.asarray(total)


def covariances(fitted: list[FittedComponent], data: Dataset) -> Array:
    """Return the stored covariances (N, K - 1, K - 1) of the rows' score differences from the first class."""
    found = spread(fitted, data.schema, 0)
    assert found.method is UncertaintyMethod.SPREAD
    ensemble = Ensemble(tuple(each.component for each in fitted))
    deviations = sums_of(found.entries, ensemble.families, data)
    return np.einsum("rat,rbt->tab", deviations, deviations)


def outer(differences: Array) -> Array:
    """Return the products (N, K - 1, K - 1) of differences (K, N) from the first class."""
    contrasts = differences[1:] - differences[0]
    return np.einsum("at,bt->tab", contrasts, contrasts)


@pytest.mark.parametrize("weights", [(0.7, 0.4, 0.2), (0.4, 0.2, 0.1)])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_spread_between_components_is_that_of_a_mixture(n_labels: int, weights: tuple[float, ...]) -> None:
    data, rng = random_dataset(40, (3, 2, 2), n_labels), np.random.default_rng(1)
    components = []
    for weight, dag in zip(weights, (TAN, Dag(((), (), ()), (0, 1)), Dag(((), (), ()), (2,))), strict=True):
        families = dag.families(data.schema.cardinalities)
        cells = rng.normal(size=(n_labels, 1 + sum(family.n_cells for family in families)))
        components.append(Component(weight, Tables.of_cells(cells, families), "x"))
    scores = [scores_of(component.tables, data) for component in components]
    total = sum(weights)
    mean = sum(w / total * s for w, s in zip(weights, scores, strict=True))
    of_mixture = sum(w / total * outer(s - mean) for w, s in zip(weights, scores, strict=True))
    expected = total**2 * of_mixture if total > 1 else total * of_mixture + outer((1 - total) * mean)
    found = covariances([FittedComponent(component) for component in components], data)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_members_of_a_bag_spread_as_a_jackknife_by_groups() -> None:
    data = random_dataset(300, (4, 3, 5), 3)
    plan = BagPlan(3, 10**6, 20, 0, ComputeBudget(None, None))
    members = evaluate_boosted(parts(data, 3), None, plan, lambda fold: None).members
    component = Component(1.3, tables_of(members, data.schema), "boosted")
    alone = [scores_of(tables_of([member], data.schema), data) for member in members]
    mean = sum(alone) / 3
    factor = 1.3**2 * (FOLDS - 1) ** 2 / FOLDS / 2
    expected = factor * sum(outer(scores - mean) for scores in alone)
    found = covariances([FittedComponent(component, members=members)], data)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("n_draws", "tolerance"), [(400, 0.1), pytest.param(4000, 0.03, marks=pytest.mark.slow)])
def test_the_fitted_tables_spread_as_their_laplace_approximation(
    n_draws: int, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FEWEST_DRAWS", "MOST_DRAWS"):
        monkeypatch.setattr(pooling, name, n_draws)
    data = random_dataset(120, (3, 2, 2), 3)
    learned = fit("weighted 4", data, TAN, penalty=2.0)
    assert learned.point is not None
    space = space_of("weighted 4", data)
    fitted = FittedComponent(Component(1.2, learned.tables, "x"), space, learned.point, 2.0)
    bias = penalty_bias(space, learned.point, 2.0, 0.0)
    deviations = np.concatenate([laplace_deviations(space, learned.point, 2.0), bias])
    expected = 1.2**2 * covariances_of(deviations, data, TAN)
    found = covariances([fitted], data)
    np.testing.assert_allclose(found, expected, atol=4 * tolerance * float(expected.max()))
    assert found.mean() == pytest.approx(expected.mean(), rel=tolerance)


def test_the_class_frequencies_spread_as_their_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FEWEST_DRAWS", "MOST_DRAWS"):
        monkeypatch.setattr(pooling, name, 20_000)
    data, rng = random_dataset(30, (2,), 3), np.random.default_rng(0)
    component = Component(0.3, Tables(log_frequencies(data.class_counts), (), ()), "class frequencies")
    found = covariances([FittedComponent(component, class_counts=data.class_counts)], data)[0]
    drawn = np.log(rng.dirichlet(data.class_counts + 1.0, 100_000))
    np.testing.assert_allclose(found, 0.3**2 * np.cov((drawn[:, 1:] - drawn[:, :1]).T), rtol=0.05, atol=2e-4)


def test_large_tables_have_fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(30, (4, 4), 2)
    families = Dag(((), ()), (0, 1)).families(data.schema.cardinalities)
    fitted = [FittedComponent(Component(1.0, Tables.of_cells(np.ones((2, 9)), families), "x"))]
    assert spread(fitted, data.schema, 0).entries.shape == (24, 1, 9)
    monkeypatch.setattr(pooling, "MOST_NUMBERS", 100)
    assert spread(fitted, data.schema, 0).entries.shape == (11, 1, 9)
    monkeypatch.setattr(pooling, "MOST_NUMBERS", 10)
    assert spread(fitted, data.schema, 0).entries.shape == (8, 1, 9)
