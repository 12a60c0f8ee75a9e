"""Compare the spread of an ensemble with the variance of a mixture, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles import component_spread
from bncli.engine.ensembles.boosted_bag import BagPlan, evaluate_boosted
from bncli.engine.ensembles.boosted_trees import tables_of
from bncli.engine.ensembles.budget import FOLDS, ComputeBudget
from bncli.engine.ensembles.component_spread import FittedComponent, spread
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Component, Ensemble, Tables, UncertaintyMethod
from bncli.engine.parameters.penalty_choice import log_frequencies
from bncli.engine.parameters.uncertainty import laplace_deviations, penalty_bias
from bncli.engine.structures.structure import Dag, Family
from tests.datasets import random_dataset
from tests.engine.ensembles.test_boosted_bag import parts
from tests.engine.parameters.test_uncertainty import TAN, covariances_of, space_of
from tests.spaces import fit


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
        monkeypatch.setattr(component_spread, name, n_draws)
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
        monkeypatch.setattr(component_spread, name, 20_000)
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
    monkeypatch.setattr(component_spread, "MOST_NUMBERS", 100)
    assert spread(fitted, data.schema, 0).entries.shape == (11, 1, 9)
    monkeypatch.setattr(component_spread, "MOST_NUMBERS", 10)
    assert spread(fitted, data.schema, 0).entries.shape == (8, 1, 9)
