"""Compare the tables of effects with dense matrices, and check bases, lower orders and derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameter_learners.conditional import build_space_discriminative
from bncli.engine.parameters import preconditioner
from bncli.engine.parameters.effect_coding import EffectCoordinates, Effects, effects_of, line
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import ParameterSpace, Problem
from bncli.engine.structures.structure import Dag, Family, Regions, Structure
from tests import oracles
from tests.datasets import random_dataset
from tests.effects import dense, mixed_dataset, mixed_datasets
from tests.spaces import how
from tests.strategies import dags, groupings

Array = NDArray[np.float64]


@st.composite
def regrouped_graphs(draw: st.DrawFn, data: Dataset) -> tuple[Family, ...]:
    """Draw the families of any graph, some with a coarser binning of an attribute; the missing level stays separate."""
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
    """T T' determines both the functions and the penalty of each."""
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
    cells = rng.normal(size=(3, effects.first_cells[-1]))
    np.testing.assert_allclose(effects.sums(cells), cells @ t, atol=1e-10)
    weights = rng.uniform(size=effects.first_cells[-1])
    np.testing.assert_allclose(effects.masses(weights), weights @ t**2, atol=1e-10)
    others = np.flatnonzero(rng.random(effects.n_effects - 1) < 0.5) + 1
    chosen = np.array([0, *others])
    found = np.zeros((effects.first_cells[-1], len(chosen)))
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
    """The attributes are multiplied one after the other; the matrix of cells by effects is never built."""
    schema_data = _two_numeric(20)
    family = Family((0, 1), (20, 20), 0)
    weights = np.ones(401)
    effects = effects_of((family,), schema_data.schema, weights, coding="thermometer", lower_orders=False)
    assert sum(stage.nnz for stage in effects._stages) <= 2 * 20**3 + math.prod(family.shape) + 3


def _two_numeric(n_codes: int) -> Dataset:
    return mixed_dataset(random_dataset(10, (n_codes, n_codes), 2), ("numeric", "numeric"))


def test_a_set_belongs_to_the_family_with_its_finest_binning() -> None:
    """The triple has coarser binnings, so the pair and the main effect in it belong to the finer families."""
    data = _two_numeric(6)
    fine, coarse = Family((0,), (6,), None), Family((0, 1), (2, 2), None, groupings=((0, 0, 0, 1, 1, 1),) * 2)
    effects = effects_of((coarse, fine), data.schema, np.ones(11), coding="thermometer", lower_orders=True)
    assert [(b.family, b.places, b.n_effects) for b in effects.blocks] == [(0, (1,), 1), (0, (0, 1), 1), (1, (0,), 5)]
    assert [b.scale for b in effects.blocks] == pytest.approx([1.0, math.sqrt(0.5), 1.0])


@given(data=mixed_datasets(), draw=st.data(), beyond=st.sampled_from([1.0, 4.0, 10.0, 100.0]))
def test_larger_sets_are_penalised_so_many_times_more(data: Dataset, draw: st.DataObject, beyond: float) -> None:
    """A column divided by a root needs a larger parameter for the same table, so its penalty is higher."""
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


KINDS = ("missing", "numeric", "categorical")
TAN = Dag(((), (0,), (0,)), (0, 1, 2))
REGIONS = Regions(((0,), (1,), (2,), (0, 1), (1, 2)))

every_structure = pytest.mark.parametrize("structure", [TAN, REGIONS], ids=["tan", "regions"])
with_and_without = pytest.mark.parametrize("lower_orders", [False, True])


def effects_space(data: Dataset, structure: Structure, *, lower_orders: bool) -> ParameterSpace:
    options = {"smoothing": "m-estimate:1"} if isinstance(structure, Dag) else {"theta": 1.0}
    return build_space_discriminative(
        Counts(data), structure, coding="thermometer", lower_orders=lower_orders, **options
    )


@every_structure
@with_and_without
@pytest.mark.parametrize("n_labels", [2, 3, 12])
def test_gradient_and_hessian_of_the_problem(structure: Structure, lower_orders: bool, n_labels: int) -> None:
    data = mixed_dataset(random_dataset(60, (5, 3, 4), n_labels, weighted=True), KINDS)
    space = effects_space(data, structure, lower_orders=lower_orders)
    problem = Problem(space, how(penalty=0.7))
    p, v = np.random.default_rng(3).normal(size=(2, space.coordinates.n_parameters))
    _, gradient = problem.value_and_gradient(p)
    slope = oracles.slope(lambda q: problem.value_and_gradient(q)[0], p, v, 1e-3)
    assert float(gradient @ v) == pytest.approx(slope, rel=1e-7)
    product = problem.objective.hessian(p)(v)
    bend = oracles.slope(lambda q: problem.value_and_gradient(q)[1], p, v, 1e-3)
    np.testing.assert_allclose(product, bend, rtol=1e-6, atol=1e-6 * np.abs(bend).max())


@every_structure
@with_and_without
@pytest.mark.parametrize("plain", [False, True], ids=["counted", "multiplied"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_first_preconditioner_is_the_inverse_hessian(
    monkeypatch: pytest.MonkeyPatch, structure: Structure, lower_orders: bool, plain: bool, n_labels: int
) -> None:
    monkeypatch.setattr(preconditioner, "START_PASSES", 1e6)
    if plain:
        monkeypatch.setattr("bncli.engine.kernels.gram.Packing.affordable_rows", lambda *_: -1)
    data = mixed_dataset(random_dataset(300, (5, 3, 4), n_labels, seed=1, weighted=True), KINDS)
    space = effects_space(data, structure, lower_orders=lower_orders)
    p = np.zeros(space.coordinates.n_parameters)
    apply = space.first_preconditioner(p, 1.0)
    inverse = np.stack([apply(unit) for unit in np.eye(len(p))])
    t = np.stack([space.coordinates.tables(unit).ravel() for unit in np.eye(len(p))], axis=1)
    tables = space.coordinates.tables(p)
    h = t.T @ oracles.hessian(space.likelihood.families, data, tables) @ t + np.eye(len(p))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12)
    eigenvalues = np.linalg.eigvals(inverse @ h).real
    np.testing.assert_allclose(eigenvalues, 1.0, atol=3e-3)


@given(data=mixed_datasets(max_rows=20, max_attributes=3), draw=st.data())
def test_any_preconditioner_is_positive_definite(data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    space = effects_space(data, dag, lower_orders=draw.draw(st.booleans()))
    penalty = draw.draw(st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    p = draw.draw(st.sampled_from([0.0, 1.0, 30.0])) * rng.normal(size=space.coordinates.n_parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preconditioner, "LEAST_SIZE", draw.draw(st.sampled_from([1, 4, 400])))
        patch.setattr(preconditioner, "STRETCH", draw.draw(st.sampled_from([0.0, 1.6])))
        patch.setattr(preconditioner, "LEAST_ROWS", draw.draw(st.sampled_from([3, 1 << 12])))
        for apply in (space.first_preconditioner(p, penalty), space.preconditioner(p, 12.0, penalty)):
            g = rng.normal(size=len(p))
            assert np.isfinite(apply(g)).all()
            assert g @ apply(g) > 0


@given(data=mixed_datasets(), draw=st.data())
def test_with_lower_orders_the_generative_start_is_the_generative_model(data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    space = effects_space(data, dag, lower_orders=True)
    tables = generative_tables(Counts(data), dag, "m-estimate:1")
    cells = tables.cells
    expected, _ = oracles.conditional_log_likelihood(tables.families, data, cells)
    found, _ = space.likelihood.value_and_gradient(space.coordinates.tables(space.coordinates.generative))
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_without_them_a_table_of_two_attributes_keeps_what_products_of_steps_say() -> None:
    data = mixed_dataset(random_dataset(80, (4, 3), 2), ("numeric", "numeric"))
    dag = Dag(((), (0,)), (1,))
    space = effects_space(data, dag, lower_orders=False)
    cells = generative_tables(Counts(data), dag, "m-estimate:1").cells
    lost = cells - space.coordinates.tables(space.coordinates.generative)
    rest = lost[:, 1:].reshape(2, 3, 4)
    assert np.abs(rest).max() > 0.1
    np.testing.assert_allclose(np.diff(np.diff(rest, axis=1), axis=2), 0.0, atol=1e-10)


def test_tables_made_of_effects_are_made_of_those_with_other_axes_too() -> None:
    """Other rows turn the steps along other axes, which span the same tables."""
    data = _two_numeric(6)
    families = tuple(Regions(((0,), (1,), (0, 1))).families(data.schema.cardinalities))
    spaces = []
    for rows in (slice(0, None), slice(0, None, 3)):
        part = data.take(np.arange(data.n_rows)[rows])
        spaces.append(EffectCoordinates(space_of(families, part, "thermometer", lower_orders=False), 2, np.zeros))
    p = np.random.default_rng(0).normal(size=spaces[0].n_parameters)
    tables = spaces[0].tables(p)
    assert not np.allclose(spaces[1].tables(p), tables)
    assert np.allclose(spaces[1].tables(spaces[1].point_of(tables)), tables)
