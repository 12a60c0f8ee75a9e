"""Check coordinates against their definitions, and each map against the transpose of its derivative."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Tables
from bncli.engine.parameters.coordinates import CellPredictors, SharedWeights, Softmax, predictors_of
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.structures.structure import Dag, Family
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.incomplete_oracle import incomplete_cases, with_missing
from tests.strategies import dags, datasets


@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 999))
def test_tables_and_pull_back_are_transposes(n_labels: int, n_cells: int, n_parameters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = rng.integers(0, n_parameters, (n_labels, n_cells))
    shared = SharedWeights(rng.normal(size=index.shape), index, n_parameters)
    p, d = rng.normal(size=n_parameters), rng.normal(size=index.shape)
    tables = shared.tables(p)
    for y in range(n_labels):
        for c in range(n_cells):
            assert tables[y, c] == shared.scale[y, c] * p[index[y, c]]
    assert float((tables * d).sum()) == pytest.approx(float(p @ shared.pull_back(p, d)), abs=1e-12)


def test_a_parameter_that_nothing_follows_has_no_slope() -> None:
    shared = SharedWeights(np.ones((2, 1)), np.zeros((2, 1), np.intp), 3)
    assert shared.pull_back(np.zeros(3), np.array([[1.0], [2.0]])).tolist() == [3.0, 0.0, 0.0]


Array = NDArray[np.float64]


def slow_indicators(families: tuple[Family, ...], references: list[int], data: Dataset) -> Array:
    """Return the explicit matrix of the rows: an intercept, then every set with every combination of values."""
    sets = {s for f in families for n in range(1, 9) for s in itertools.combinations(sorted(f.attributes), n)}
    columns = [np.ones(data.n_rows)]
    for members in sorted(sets):
        away = [[v for v in range(data.schema.cardinalities[i]) if v != references[i]] for i in members]
        columns += [
            np.all([data.codes[i] == v for i, v in zip(members, values, strict=True)], axis=0)
            for values in itertools.product(*away)
        ]
    return np.array(columns, float).T


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Family, ...], list[int], Dataset]:
    data = draw(datasets(max_rows=20, max_attributes=4))
    dag = draw(dags(len(data.codes)))
    references = [draw(st.integers(0, n - 1)) for n in data.schema.cardinalities]
    return dag.families(data.schema.cardinalities), references, data


@given(cases(), st.integers(0, 99))
def test_tables_score_rows_as_the_indicators_do(case: tuple[tuple[Family, ...], list[int], Dataset], seed: int) -> None:
    """The columns may come in another order: each one is identified by the scores of a single parameter."""
    families, references, data = case
    found = predictors_of(families, references)
    unit_tables = found.tables(np.eye(found.n_predictors))
    by_tables = oracles.indicators(families, data) @ unit_tables.T
    slow = slow_indicators(families, references, data)
    assert found.n_predictors == slow.shape[1]
    assert sorted(map(tuple, by_tables.T)) == sorted(map(tuple, slow.T))
    p = np.random.default_rng(seed).normal(size=(3, found.n_predictors))
    np.testing.assert_allclose(found.tables(p), p @ unit_tables, atol=1e-12)


@given(cases(), st.integers(0, 99))
def test_sums_are_the_transpose_of_tables(case: tuple[tuple[Family, ...], list[int], Dataset], seed: int) -> None:
    found = predictors_of(case[0], case[1])
    rng = np.random.default_rng(seed)
    p, d = rng.normal(size=(2, found.n_predictors)), rng.normal(size=(2, len(found.own)))
    before = d.copy()
    np.testing.assert_allclose(
        np.sum(found.tables(p) * d, axis=1), np.sum(p * found.sums(d), axis=1), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(d, before)


@given(cases(), st.integers(0, 99))
def test_parameters_keep_the_score_of_every_row(case: tuple[tuple[Family, ...], list[int], Dataset], seed: int) -> None:
    families, references, _ = case
    found = predictors_of(families, references)
    tables = np.random.default_rng(seed).normal(size=(2, len(found.own)))
    cardinalities = {i: n for f in families for i, n in zip(f.attributes, f.shape, strict=True)}
    everything = dense_dataset([cardinalities.get(i, 1) for i in range(len(references))], 1, copies=1)
    z = oracles.indicators(families, everything)
    p = found.parameters(tables)
    np.testing.assert_allclose(z @ found.tables(p).T, z @ tables.T, atol=1e-9)
    np.testing.assert_allclose(found.parameters(found.tables(p)), p, atol=1e-9)


@given(cases(), st.integers(0, 99))
def test_transposed_is_the_transpose_of_parameters(
    case: tuple[tuple[Family, ...], list[int], Dataset], seed: int
) -> None:
    families, references, _data = case
    found = predictors_of(families, references)
    rng = np.random.default_rng(seed)
    tables, parameters = rng.normal(size=(2, len(found.own))), rng.normal(size=(2, found.n_predictors))
    one = float((found.parameters(tables) * parameters).sum())
    other = float((tables * found.transposed(parameters)).sum())
    assert one == pytest.approx(other, rel=1e-9, abs=1e-9)


def test_the_published_example() -> None:
    """Feelders & Ivanovs 2006, section 3.3: nine parameters, while the mapping of Roos et al. has fourteen."""
    dag = Dag(((), (), (0,), (2,), ()), (2, 3, 4), (0, 1))
    families = dag.families((2,) * 5)
    assert dag.unmarried is None
    assert sorted(sorted(f.attributes) for f in families) == [[0, 1], [0, 2], [2, 3], [4]]
    assert predictors_of(families, [0, 1, 0, 1, 0]).n_predictors == 9
    assert sum(family.n_cells for family in families) == 14


def test_without_attributes_there_is_the_intercept() -> None:
    found = predictors_of((), [])
    assert found.n_predictors == 1
    assert found.tables(np.array([[2.0]])).tolist() == [[2.0]]
    assert found.sums(np.array([[3.0]])).tolist() == [[3.0]]
    assert found.parameters(np.array([[4.0]])).tolist() == [[4.0]]
    assert found.transposed(np.array([[5.0]])).tolist() == [[5.0]]


def test_a_wide_family_costs_its_cells_times_its_attributes() -> None:
    """There would be 3^12 = 531,441 pairs of a cell and an active predictor."""
    n_attributes = 12
    family = Family(tuple(range(n_attributes)), (2,) * n_attributes, 0)
    found = predictors_of((family,), [0] * n_attributes)
    assert found.n_predictors == family.n_cells
    assert found.lowered.size == n_attributes * (1 + family.n_cells)
    ones = found.tables(np.ones((1, found.n_predictors)))[0]
    assert ones[-1] == family.n_cells - 1  # every non-empty set; the intercept is in the bias


@given(datasets(max_rows=20, max_attributes=4), st.data())
def test_a_predictor_a_cell(data: Dataset, draw: st.DataObject) -> None:
    """`sums` and `transposed` are transposes; the parameters score rows like the tables, with a bias and without."""
    dag = draw.draw(dags(len(data.codes)))
    families = dag.families(data.schema.cardinalities)
    n_cells = 1 + sum(family.n_cells for family in families)
    of_class = (n_cells - families[-1].n_cells, n_cells) if dag.class_parents else None
    found = CellPredictors(n_cells, of_class)
    assert found.n_predictors == n_cells - len(dag.class_parents[:1])
    maps = np.stack([found.tables(unit[np.newaxis])[0] for unit in np.eye(found.n_predictors)], axis=1)
    ways = np.stack([found.parameters(unit[np.newaxis])[0] for unit in np.eye(n_cells)], axis=1)
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    cells, p = rng.normal(size=(3, n_cells)), rng.normal(size=(3, found.n_predictors))
    np.testing.assert_allclose(found.tables(p), p @ maps.T)
    np.testing.assert_allclose(found.sums(cells), cells @ maps)
    np.testing.assert_allclose(found.parameters(cells), cells @ ways.T)
    np.testing.assert_allclose(found.transposed(p), p @ ways, atol=1e-12)
    z = oracles.indicators(families, data)
    np.testing.assert_allclose(z @ found.tables(found.parameters(cells)).T, z @ cells.T, atol=1e-12)


CHAIN = Dag(((), (0,), (1,), (2,)), (1, 3), (0,))
"""Attribute 0 is a parent of the class, 1 and 3 are children, 2 lies between them."""


def softmax_of(data: Dataset, dag: Dag) -> Softmax:
    tables = generative_tables(Counts(data), dag, "m-estimate:1")
    return Softmax(tables.cells, tables.families)


def test_a_cell_without_the_class_has_one_parameter() -> None:
    data = with_missing(random_dataset(40, (2, 3, 2, 3), 3), 0.3)
    softmax = softmax_of(data, CHAIN)
    free = 2 + 2 * 3  # of attributes 0 and 2
    bound = 1 + 3 * 2 + 3 * 2 + 2  # the bias, attributes 1 and 3, the class
    assert softmax.n_parameters == 3 * bound + free
    assert int(np.count_nonzero(~softmax.by_class)) == free


@given(case=incomplete_cases(), seed=st.integers(0, 99))
def test_tables_are_log_probabilities(case: tuple[Dataset, Dag], seed: int) -> None:
    data, dag = case
    softmax = softmax_of(data, dag)
    p = 3 * np.random.default_rng(seed).normal(size=softmax.n_parameters)
    tables = Tables.of_cells(softmax.tables(p), softmax.families)
    for family, w in zip(tables.families, tables.weights, strict=True):
        array = np.exp(w).reshape(*family.shape, -1)
        np.testing.assert_allclose(array.sum(axis=-1 if family.child is None else 0), 1.0)
        assert family.by_class or not np.ptp(w, axis=1).any()
    np.testing.assert_allclose(softmax.tables(softmax.generative), softmax.log_theta, atol=1e-12)


@given(case=incomplete_cases(), seed=st.integers(0, 99))
def test_pull_back_is_the_transpose_of_the_derivative(case: tuple[Dataset, Dag], seed: int) -> None:
    data, dag = case
    softmax, rng = softmax_of(data, dag), np.random.default_rng(seed)
    p, direction = rng.normal(size=(2, softmax.n_parameters))
    d_tables = rng.normal(size=softmax.log_theta.shape)
    slope = oracles.slope(lambda q: float((d_tables * softmax.tables(q)).sum()), p, direction, 1e-3)
    assert softmax.pull_back(p, d_tables) @ direction == pytest.approx(slope, rel=1e-7, abs=1e-8)


def test_the_diagonal_is_that_of_the_derivative_squared() -> None:
    data = with_missing(random_dataset(40, (2, 3, 2, 3), 3), 0.3)
    softmax, rng = softmax_of(data, Dag(((), (0,), (1,), (2,)), (1, 3))), np.random.default_rng(0)
    p, mass = rng.normal(size=softmax.n_parameters), rng.random(softmax.log_theta.shape)
    mass[:, 0] = 0.0  # of the class's own distribution the weight itself is taken
    diagonal = softmax.gather(softmax.curvature(p, mass))
    for q, unit in enumerate(np.eye(softmax.n_parameters)):
        squares = np.square(oracles.slope(softmax.tables, p, unit, 1e-3))
        assert diagonal[q] == pytest.approx(float((mass * squares).sum()), rel=1e-6)
