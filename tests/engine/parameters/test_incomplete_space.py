"""Optimization with missing values: gradients through the softmax, products, preconditioner, all optimisers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.inference.row_blocks import PassSize
from bncli.engine.parameters.incomplete_space import (
    MUCH,
    IncompleteSpace,
    conditional_value,
    incomplete_space,
    report_work,
)
from bncli.engine.parameters.optimization import find_optimum, optimize
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Note, silent
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.incomplete_oracle import enumeration, incomplete_cases, with_missing
from tests.spaces import how

TAN = Dag(((), (0,), (1,)), (0, 1, 2))


def space_of(data: Dataset, dag: Dag, joint: bool = False) -> IncompleteSpace:
    return incomplete_space(Counts(data), dag, "m-estimate:1", joint=joint)


@given(case=incomplete_cases(), joint=st.booleans(), seed=st.integers(0, 99))
def test_gradients_are_slopes_of_what_enumeration_finds(case: tuple[Dataset, Dag], joint: bool, seed: int) -> None:
    data, dag = case
    space = space_of(data, dag, joint)
    slow = enumeration(data, space.incomplete.families)
    value_of = slow.joint if joint else slow.value_and_gradient
    p, direction = np.random.default_rng(seed).normal(size=(2, space.coordinates.n_parameters))
    tables = space.coordinates.tables
    value, d_tables = space.likelihood.value_and_gradient(tables(p))
    slope = oracles.slope(lambda q: value_of(tables(q))[0], p, direction, 1e-3)
    assert value == pytest.approx(value_of(tables(p))[0], rel=1e-9, abs=1e-9)
    assert space.coordinates.pull_back(p, d_tables) @ direction == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("joint", [False, True])
def test_products_are_slopes_of_the_gradient(joint: bool) -> None:
    space = space_of(with_missing(random_dataset(60, (2, 3, 2), 3), 0.3), TAN, joint)
    p, v = np.random.default_rng(1).normal(size=(2, space.coordinates.n_parameters))

    def gradient(q: Any) -> Any:
        d_tables = space.likelihood.value_and_gradient(space.coordinates.tables(q))[1]
        return 0.7 * q - space.coordinates.pull_back(q, d_tables)

    product = space.curvature(0.7).hessian(p)
    np.testing.assert_allclose(product(v), oracles.slope(gradient, p, v, 1e-3), atol=1e-3)
    assert not product(0.0 * v).any()


def test_the_preconditioner_of_complete_rows_is_the_diagonal_of_the_hessian() -> None:
    """Of the joint likelihood, where counts are counts; the class's own distribution is taken for wide."""
    data = with_missing(dense_dataset((2, 3, 2), 2), 0.0)
    space = incomplete_space(Counts(data), Dag(((), (0,), (1,)), (0, 2)), "mle", joint=True)
    p = space.coordinates.generative
    curvature = space.curvature(0.5)
    hessian, precondition = curvature.hessian(p), curvature.start(p)
    units = np.delete(np.eye(len(p)), [0, 1 + 2 + 6], axis=0)
    exact = np.array([unit @ hessian(unit) for unit in units])
    told = np.array([1.0 / (unit @ precondition(unit)) for unit in units])
    np.testing.assert_allclose(told, exact, rtol=1e-3)


@pytest.mark.parametrize(
    ("joint", "penalty"), [pytest.param(False, 0.0, marks=pytest.mark.slow), (True, 0.0), (False, 0.5), (True, 0.5)]
)
def test_all_optimisers_find_one_optimum(joint: bool, penalty: float) -> None:
    data = with_missing(dense_dataset((2, 2, 2), 2, copies=4), 0.2)
    space = space_of(data, TAN, joint)
    values = []
    for optimizer in ("lbfgs", "newton", "bfgs", "cg", "cgb"):
        one = find_optimum(space, how(optimizer=optimizer, penalty=penalty, tolerance=1e-11), lambda step, p: None)
        values.append(one.value)
    np.testing.assert_allclose(values, values[0], rtol=1e-5)


def test_the_same_bytes_every_time() -> None:
    data = with_missing(random_dataset(300, (3, 2, 3), 3, weighted=True), 0.25)
    runs = [optimize(space_of(data, TAN), how(max_iterations=10), silent) for _ in range(2)]
    assert len({run.tables.weights[0].tobytes() for run in runs}) == 1


def test_a_likelihood_of_other_rows() -> None:
    data = with_missing(random_dataset(30, (3, 2, 3), 3), 0.25)
    for joint in (False, True):
        space = space_of(data, TAN, joint)
        cells = space.coordinates.tables(space.coordinates.generative)
        half = data.take(np.arange(10))
        slow = enumeration(half, space.incomplete.families)
        expected = (slow.joint if joint else slow.value_and_gradient)(cells)[0]
        assert space.on(half).value_and_gradient(cells)[0] == pytest.approx(expected)


@given(case=incomplete_cases(), seed=st.integers(0, 99))
def test_the_conditional_value_from_joint_probabilities(case: tuple[Dataset, Dag], seed: int) -> None:
    space = space_of(*case)
    cells = space.coordinates.tables(np.random.default_rng(seed).normal(size=space.coordinates.n_parameters))
    slow = enumeration(case[0], space.incomplete.families).value_and_gradient(cells)[0]
    assert conditional_value(space.incomplete, cells) == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_much_work_is_told_before_it_begins() -> None:
    schema = Schema("class", ("n", "y"), tuple(CategoricalAttribute(f"a{i}", False, (), ("u", "v")) for i in range(3)))
    told: list[Event] = []
    report_work(PassSize(MUCH - 1, (0, 1)), schema, told.append)
    assert told == []
    report_work(PassSize(50_000_000, (2, 0)), schema, told.append)
    (note,) = told
    assert isinstance(note, Note)
    assert "fill 50,000,000 table entries, about 0." in note.text
    assert note.text.endswith("the widest table is over 'a2', 'a0'")
