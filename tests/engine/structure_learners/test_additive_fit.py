"""The quick fit: close to the optimum, over regrouped and plain attributes alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.optimizers.quasi_newton import Optimum
from bncli.engine.parameter_learners.conditional import learn_discriminative
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum_from
from bncli.engine.structure_learners import additive_fit as quick
from bncli.engine.structure_learners.additive_fit import additive_fit
from bncli.engine.structures.structure import Regions
from tests.datasets import random_dataset
from tests.effects import mixed_dataset, mixed_datasets
from tests.sweeps import examples


@settings(max_examples=examples(6))
@given(mixed_datasets(), st.sampled_from([0.5, 3.0]))
def test_close_to_the_optimum(data: Dataset, penalty: float) -> None:
    regions = Regions(tuple((i,) for i in data.schema.informative))
    likelihood, cells, *_ = additive_fit(data, regions.families(data.schema.cardinalities), penalty)
    best = learn_discriminative(
        Counts(data),
        regions,
        coding="thermometer",
        settings=OptimizerSettings("zero", penalty, 0.0, "newton", 1e-12, 500),
    )
    cll, gradient = likelihood.value_and_gradient(cells)
    assert gradient.shape == cells.shape == (data.n_labels, likelihood.n_cells)
    assert cll == pytest.approx(best.cll, rel=0.02, abs=0.02 * data.n_rows)


def test_the_penalty_is_10() -> None:
    data = random_dataset(150, (4, 5, 3), 3, seed=4)
    regions = Regions(((0,), (1,), (2,)))
    likelihood, cells, *_ = additive_fit(data, regions.families((4, 5, 3)))
    best = {
        penalty: learn_discriminative(
            Counts(data),
            regions,
            coding="thermometer",
            settings=OptimizerSettings("zero", penalty, 0.0, "newton", 1e-12, 500),
        ).cll
        for penalty in (3.0, 10.0, 30.0)
    }
    assert best[30.0] < 1.02 * best[10.0] < 1.04 * best[3.0]
    assert likelihood.value_and_gradient(cells)[0] == pytest.approx(best[10.0], rel=0.005)


def test_the_class_alone() -> None:
    data = random_dataset(200, (2, 3), 3)
    _, cells, *_ = additive_fit(data, (), 1e-6)
    shares = np.exp(cells[:, 0]) / np.exp(cells[:, 0]).sum()
    np.testing.assert_allclose(shares, np.bincount(data.labels) / 200, atol=1e-3)


def test_coarse_families_have_tables_of_coarse_codes() -> None:
    data = mixed_dataset(random_dataset(100, (6, 5), 2), ["numeric", "numeric"])
    groupings = (((0, 0, 1, 1, 2, 2), None),)
    families = Regions(((0,), (1,)), bins=(3,), groupings=groupings).families((6, 5))
    _, cells, *_ = additive_fit(data, families)
    assert cells.shape == (2, 1 + 3 + 5)


@settings(max_examples=examples(6))
@given(mixed_datasets())
def test_from_a_smaller_fit_the_optimum_is_the_same(data: Dataset) -> None:
    informative, cardinalities = data.schema.informative, data.schema.cardinalities
    singles = Regions(tuple((i,) for i in informative)).families(cardinalities)
    pairs = Regions(tuple(itertools.combinations(informative, 2))).families(cardinalities)
    penalty = 3.0
    for families in (singles, (*pairs, *singles[1:])):
        first = additive_fit(data, singles, penalty)
        again = additive_fit(data, families, penalty, smaller=first)
        anew = additive_fit(data, families, penalty)
        cll, expected = (fit.likelihood.value_and_gradient(fit.cells)[0] for fit in (again, anew))
        assert cll == pytest.approx(expected, rel=0.02, abs=0.02 * data.n_rows)


def test_known_effects_are_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of the smaller fit are those at which the larger one begins, wherever its families stand."""
    data = random_dataset(150, (4, 5, 3), 3, seed=4)
    singles = Regions(((0,), (1,), (2,))).families((4, 5, 3))
    pair = Regions(((0, 1),)).families((4, 5, 3))
    smaller, starts = additive_fit(data, singles), []

    def stay(space: ParameterSpace, settings: OptimizerSettings, point: np.ndarray) -> Optimum:
        starts.append(space.likelihood.value_and_gradient(space.coordinates.tables(point))[0])
        return find_optimum_from(space, settings, point)

    monkeypatch.setattr(quick, "find_optimum_from", stay)
    additive_fit(data, (*pair, *reversed(singles)), smaller=smaller)
    assert starts == [pytest.approx(smaller.likelihood.value_and_gradient(smaller.cells)[0], rel=1e-12)]
