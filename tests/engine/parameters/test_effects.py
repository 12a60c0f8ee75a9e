"""The map from effects to tables against a dense matrix made from the definition, entry by entry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.effect_coding import Effects, effects_of, line
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structures.structure import Family
from tests.datasets import random_dataset
from tests.effects import dense, mixed_dataset, mixed_datasets
from tests.strategies import dags, groupings

Array = NDArray[np.float64]


@st.composite
def regrouped_graphs(draw: st.DrawFn, data: Dataset) -> tuple[Family, ...]:
    """The families of any graph, some with a coarser binning of an attribute; the missing level stays by itself."""
    families = []
    for family in draw(dags(len(data.codes))).families(data.schema.cardinalities):
        seen = tuple(draw(groupings(data.schema.attributes[a])) for a in family.attributes)
        families.append(Family.over(family.attributes, data.schema.cardinalities, family.child, groupings=seen))
    return tuple(families)


def space_of(families: tuple[Family, ...], data: Dataset, coding: str, *, lower_orders: bool) -> Effects:
    weights = conditional_likelihood(data, families).cell_weights()
    return effects_of(families, data.schema, weights, coding=coding, lower_orders=lower_orders)


every_coding = pytest.mark.parametrize(
    ("coding", "lower_orders"), [("cells", True), ("thermometer", False), ("thermometer", True), ("cells", False)]
)


@every_coding
@given(data=mixed_datasets(), draw=st.data())
def test_tables_are_the_definition_up_to_a_turn(
    coding: str, lower_orders: bool, data: Dataset, draw: st.DataObject
) -> None:
    """T T' says it all: the same functions, and the same penalty for each."""
    families = draw.draw(regrouped_graphs(data))
    effects = space_of(families, data, coding, lower_orders=lower_orders)
    found = effects.tables(np.eye(effects.n_effects)).T
    expected = dense(families, data, coding, lower_orders=lower_orders)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-10)


@every_coding
@given(data=mixed_datasets(), draw=st.data())
def test_sums_masses_and_columns_belong_to_the_same_matrix(
    coding: str, lower_orders: bool, data: Dataset, draw: st.DataObject
) -> None:
    families = draw.draw(regrouped_graphs(data))
    effects = space_of(families, data, coding, lower_orders=lower_orders)
    t = effects.tables(np.eye(effects.n_effects)).T
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    cells = rng.normal(size=(3, effects.n_cells))
    np.testing.assert_allclose(effects.sums(cells), cells @ t, atol=1e-10)
    weights = rng.uniform(size=effects.n_cells)
    np.testing.assert_allclose(effects.masses(weights), weights @ t**2, atol=1e-10)
    others = np.flatnonzero(rng.random(effects.n_effects - 1) < 0.5) + 1
    chosen = np.array([0, *others])
    found = np.zeros((effects.n_cells, len(chosen)))
    found[0, 0] = 1.0
    for f, places, table in effects.columns(chosen):
        first = 1 + sum(family.n_cells for family in families[:f])
        found[first : first + families[f].n_cells, places] += table
    np.testing.assert_allclose(found, t[:, chosen], atol=1e-10)


def test_turned_steps_are_uncorrelated_on_the_rows() -> None:
    data = mixed_dataset(random_dataset(200, (6, 5), 2), ("numeric", "missing"))
    families = (Family((0,), (6,), 0), Family((1,), (5,), 1))
    weights = conditional_likelihood(data, families).cell_weights()
    effects = effects_of(families, data.schema, weights, coding="thermometer", lower_orders=False)
    for (matrix,), edge, n in zip(effects.bases, (1, 7), (6, 5), strict=True):
        gram = matrix.T @ (weights[edge : edge + n, np.newaxis] * matrix)
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9)
        assert (np.diff(np.diag(gram)) <= 1e-9).all()


def test_pairs_of_many_cuts_take_few_multiplications() -> None:
    """Two attributes one after the other, never the matrix of cells by effects."""
    schema_data = _two_numeric(20)
    family = Family((0, 1), (20, 20), 0)
    weights = np.ones(401)
    effects = effects_of((family,), schema_data.schema, weights, coding="thermometer", lower_orders=False)
    assert sum(stage.nnz for stage in effects._stages) <= 2 * 20**3 + math.prod(family.shape) + 3


def _two_numeric(n_codes: int) -> Dataset:
    return mixed_dataset(random_dataset(10, (n_codes, n_codes), 2), ("numeric", "numeric"))


def test_a_set_belongs_to_the_family_with_its_finest_binning() -> None:
    """The triple has coarser binnings, so the pair and the main effect in it are the finer families' own."""
    data = _two_numeric(6)
    fine, coarse = Family((0,), (6,), None), Family((0, 1), (2, 2), None, groupings=((0, 0, 0, 1, 1, 1),) * 2)
    effects = effects_of((coarse, fine), data.schema, np.ones(11), coding="thermometer", lower_orders=True)
    assert [(b.family, b.places, b.n_effects) for b in effects.blocks] == [(0, (1,), 1), (0, (0, 1), 1), (1, (0,), 5)]
    assert [b.scale for b in effects.blocks] == pytest.approx([1.0, math.sqrt(0.5), 1.0])


@given(data=mixed_datasets(), draw=st.data(), beyond=st.sampled_from([1.0, 4.0, 10.0, 100.0]))
def test_larger_sets_are_penalised_so_many_times_more(data: Dataset, draw: st.DataObject, beyond: float) -> None:
    """The same functions; a penalty of p^2 on what is smaller by a root weighs so much more on what it says."""
    families = draw.draw(regrouped_graphs(data))
    weights = conditional_likelihood(data, families).cell_weights()
    usual, apart = (
        effects_of(families, data.schema, weights, coding="thermometer", lower_orders=True, beyond=factor)
        for factor in (1.0, beyond)
    )
    several = [False] + [len(block.places) > 1 for block in usual.blocks for _ in range(block.n_effects)]
    expected = usual.tables(np.eye(usual.n_effects)).T / np.sqrt(np.where(several, beyond, 1.0))
    np.testing.assert_allclose(apart.tables(np.eye(apart.n_effects)).T, expected, atol=1e-12)


def test_without_lower_orders_there_is_nothing_to_set_apart() -> None:
    data = _two_numeric(4)
    effects = effects_of(
        (Family((0, 1), (4, 4), None),), data.schema, np.ones(17), coding="cells", lower_orders=False, beyond=10.0
    )
    assert [block.scale for block in effects.blocks] == [1.0]


@pytest.mark.parametrize("missing", [False, True])
def test_a_line_is_the_standardised_middle_of_the_interval(missing: bool) -> None:
    """Middles of (-inf, 1], (1, 3], (3, 4], (4, inf): the outer intervals are as wide as their neighbours."""
    weights = np.array([2.0, 1.0, 0.0, 3.0] + [5.0] * missing)
    middles = np.array([0.0, 2.0, 3.5, 4.5])
    values = np.repeat(middles, weights[:4].astype(int))
    expected = (middles - values.mean()) / values.std()
    functions = line((1.0, 3.0, 4.0), weights, missing=missing)
    np.testing.assert_allclose(functions[:4, 0], expected, atol=1e-14)
    assert functions.shape == ((5, 2) if missing else (4, 1))
    if missing:
        np.testing.assert_array_equal(functions[4], [0.0, 1.0])


def test_a_line_needs_two_intervals() -> None:
    assert line((), np.array([4.0]), missing=False).shape == (1, 0)
    np.testing.assert_array_equal(line((), np.array([4.0, 1.0]), missing=True), [[0.0], [1.0]])
    np.testing.assert_allclose(line((2.0,), np.array([1.0, 1.0]), missing=False), [[-1.0], [1.0]])
