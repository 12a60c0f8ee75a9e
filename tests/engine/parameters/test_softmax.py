"""Softmax coordinates: proper tables whatever the numbers, slopes against differences, columns that stay alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.coordinates import SharedSoftmax, Softmax
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import random_dataset
from tests.incomplete_oracle import enumeration, incomplete_cases, with_missing

CHAIN = Dag(((), (0,), (1,), (2,)), (1, 3), (0,))
"""Attribute 0 is a parent of the class, 1 and 3 are children, 2 lies between them."""


def shared_of(data: Dataset, dag: Dag) -> SharedSoftmax:
    tables = generative_tables(Counts(data), dag, "m-estimate:1")
    return SharedSoftmax(Softmax(enumeration(data, tables.families).flatten(tables), tables.families))


def test_a_cell_without_the_class_has_one_parameter() -> None:
    data = with_missing(random_dataset(40, (2, 3, 2, 3), 3), 0.3)
    shared = shared_of(data, CHAIN)
    free = 2 + 2 * 3  # of attributes 0 and 2
    bound = 1 + 3 * 2 + 3 * 2 + 2  # the bias, attributes 1 and 3, the class
    assert shared.n_parameters == 3 * bound + free
    assert int(np.count_nonzero(~shared.by_class)) == free


@given(case=incomplete_cases(), seed=st.integers(0, 99))
def test_tables_are_log_probabilities(case: tuple[Dataset, Dag], seed: int) -> None:
    data, dag = case
    shared = shared_of(data, dag)
    p = 3 * np.random.default_rng(seed).normal(size=shared.n_parameters)
    tables = enumeration(data, shared.softmax.families).tables(shared.tables(p))
    for family, w in zip(tables.families, tables.weights, strict=True):
        array = np.exp(w).reshape(*family.shape, -1)
        np.testing.assert_allclose(array.sum(axis=-1 if family.child is None else 0), 1.0)
        assert family.by_class or not np.ptp(w, axis=1).any()
    np.testing.assert_allclose(shared.tables(shared.generative), shared.softmax.log_theta, atol=1e-12)


@given(case=incomplete_cases(), seed=st.integers(0, 99))
def test_pull_back_is_the_transpose_of_the_derivative(case: tuple[Dataset, Dag], seed: int) -> None:
    data, dag = case
    shared, rng = shared_of(data, dag), np.random.default_rng(seed)
    p, direction = rng.normal(size=(2, shared.n_parameters))
    d_tables = rng.normal(size=shared.softmax.log_theta.shape)
    slope = oracles.slope(lambda q: float((d_tables * shared.tables(q)).sum()), p, direction, 1e-3)
    assert shared.pull_back(p, d_tables) @ direction == pytest.approx(slope, rel=1e-7, abs=1e-8)


def test_the_diagonal_is_that_of_the_derivative_squared() -> None:
    data = with_missing(random_dataset(40, (2, 3, 2, 3), 3), 0.3)
    shared, rng = shared_of(data, Dag(((), (0,), (1,), (2,)), (1, 3))), np.random.default_rng(0)
    p, mass = rng.normal(size=shared.n_parameters), rng.random(shared.softmax.log_theta.shape)
    mass[:, 0] = 0.0  # of the class's own distribution the weight itself is taken
    diagonal = shared.diagonal(p, mass)
    for q, unit in enumerate(np.eye(shared.n_parameters)):
        squares = np.square(oracles.slope(shared.tables, p, unit, 1e-3))
        assert diagonal[q] == pytest.approx(float((mass * squares).sum()), rel=1e-6)
