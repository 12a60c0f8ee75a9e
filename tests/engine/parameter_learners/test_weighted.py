"""What shares a weight at each level, by a slow definition; the ends of lambda around the generative model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Parameters
from bncli.engine.parameter_learners import map as generative_learner
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.structures.structure import Dag, Family
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.spaces import catch, fit
from tests.strategies import dags, datasets


def key_of(level: int, f: int, family: Family, cell: int, y: int) -> tuple[Any, ...]:
    """Entries with the same key share a weight (Zaidi et al. 2017, table 2)."""
    if family.child is None:
        return (f, y) if level < 4 else (f, cell, y)
    value = cell // (family.n_cells // family.shape[0])
    return {1: (f,), 2: (f, value), 3: (f, value, y), 4: (f, cell, y)}[level]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@given(data=datasets(max_rows=15, max_attributes=4), draw=st.data())
def test_entries_share_a_weight_exactly_where_the_level_says(level: int, data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    caught = catch(f"weighted {level}", data, dag)
    theta = generative_tables(Counts(data), dag, "m-estimate:1")
    w = np.random.default_rng(0).uniform(1.0, 2.0, caught.space.n_parameters)
    tables = caught.likelihood.tables(caught.space.tables(w))
    ratios: dict[tuple[Any, ...], float] = {}
    n_keys = data.n_labels
    for f, family in enumerate(tables.families):
        keys = set()
        for cell in range(family.n_cells):
            for y in range(data.n_labels):
                key = key_of(level, f, family, cell, y)
                keys.add(key)
                ratio = tables.weights[f][cell, y] / theta.weights[f][cell, y]
                assert ratios.setdefault(key, ratio) == pytest.approx(ratio, rel=1e-12)
        n_keys += len(keys)
    assert caught.space.n_parameters == n_keys
    assert len({round(ratio, 9) for ratio in ratios.values()}) == len(ratios)
    if not dag.class_parents:
        assert len(set((tables.bias / theta.bias).round(9))) == data.n_labels


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_weights_of_one_are_generative_and_of_zero_uniform(level: int) -> None:
    data = random_dataset(50, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))
    caught = catch(f"weighted {level}", data, dag)
    assert caught.space.generative.tolist() == [1.0] * caught.space.n_parameters
    assert caught.cll(np.zeros(caught.space.n_parameters)) == pytest.approx(-50 * np.log(3))


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("init", ["zero", "generative"])
def test_a_huge_penalty_centred_on_one_gives_the_generative_model(level: int, init: str) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))
    learnt = fit(f"weighted {level}", data, dag, init=init, penalty=1e9, penalty_center=1.0)
    expected = generative_tables(Counts(data), dag, "m-estimate:1")
    np.testing.assert_allclose(learnt.tables.bias, expected.bias, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(learnt.tables.weights, expected.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_huge_penalty_centred_on_zero_gives_the_uniform_distribution(level: int) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    learnt = fit(f"weighted {level}", data, Dag(((), (0,), (0,)), (0, 1, 2)), penalty=1e12)
    assert learnt.cll == pytest.approx(-200 * np.log(3), rel=1e-4)


def test_the_smaller_the_penalty_the_higher_the_likelihood() -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))
    for center in (0.0, 1.0):
        clls = [fit("weighted 4", data, dag, penalty=p, penalty_center=center).cll for p in (100.0, 1.0, 0.01)]
        assert clls == sorted(clls)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_two_ends_of_the_penalty_are_the_generative_and_the_discriminative_classifier(n_labels: int) -> None:
    data = dense_dataset((3, 2, 3), n_labels)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))

    def probabilities(learnt: Parameters) -> Any:
        cells = np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)
        return softmax(oracles.indicators(learnt.tables.families, data) @ cells.T, axis=1)

    def weighted(penalty: float) -> Any:
        return probabilities(fit("weighted 4", data, dag, penalty=penalty, penalty_center=1.0))

    generative = probabilities(generative_learner.learn(Counts(data), dag, smoothing="m-estimate:1"))
    discriminative = probabilities(fit("discriminative", data, dag))
    assert np.abs(generative - discriminative).max() > 0.02
    np.testing.assert_allclose(weighted(1e10), generative, atol=1e-6)
    np.testing.assert_allclose(weighted(1e-7), weighted(0.0), atol=1e-5)
    np.testing.assert_allclose(weighted(1e-7), discriminative, atol=1e-5)
