"""Look-ups of tables: cells, factors one entry at a time, and many small tables packed in words."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.model import Ensemble, Model, Tables
from bncli.engine.prediction import factors
from bncli.engine.prediction.factors import BITS, Factor, PackedTables, WideFactor, cells_of
from bncli.engine.prediction.scoring import ROWS_PER_BLOCK, compile_scorer, log_probabilities
from bncli.engine.structures.structure import Family
from tests.many_tables import boosted_model, mixed_ensemble, random_codes, random_schema
from tests.scoring_oracle import slow_log_probabilities
from tests.strategies import models, regrouped_models


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 99))
def test_cells_are_mixed_radix(shape: list[int], seed: int) -> None:
    generator = np.random.default_rng(seed)
    digits = [generator.integers(0, n, 20) for n in shape]
    np.testing.assert_array_equal(cells_of(digits, shape), np.ravel_multi_index(tuple(digits), tuple(shape)))


def test_entries_are_added() -> None:
    tables = np.arange(12.0).reshape(2, 6)
    codes = [np.array([9, 9]), np.array([0, 1]), np.array([2, 0])]
    scores = np.ones((2, 2))
    Factor((1, 2), (2, 3), tables).add_to(scores, codes)
    np.testing.assert_array_equal(scores, [[1 + 2, 1 + 3], [1 + 8, 1 + 9]])


def test_unknown_values_are_averaged_or_left_out() -> None:
    tables = np.arange(6.0)[None, :]
    codes = [np.array([0, 2, 1, 2]), np.array([1, 1, 3, 3])]
    scores = np.zeros((1, 4))
    WideFactor((0, 1), (2, 3), tables, (None, np.array([0.5, 0.25, 0.25]))).add_to(scores, codes)
    np.testing.assert_array_equal(scores, [[1.0, 0.0, 0.5 * 3 + 0.25 * 4 + 0.25 * 5, 0.0]])


def scored(model: Model, rows: list[NDArray[Any]]) -> NDArray[np.float64]:
    scorer = compile_scorer(model)
    return log_probabilities(scorer, [rows[a] for a in scorer.used], len(rows[0]) if rows else 12)


def defined(model: Model, rows: list[NDArray[Any]]) -> NDArray[np.float64]:
    """Return ln P (K, N) by definition; for an ensemble the average of its components' probabilities."""
    n = len(rows[0])
    codes = [{i: int(column[t]) for i, column in enumerate(rows)} for t in range(n)]
    if isinstance(model.predictor, Ensemble):
        parts = [
            component.weight * np.exp(defined(replace(model, predictor=component.tables), rows))
            for component in model.predictor.components
        ]
        return np.asarray(np.log(np.sum(parts, axis=0)))
    return np.array([slow_log_probabilities(model, row) for row in codes]).T


@given(st.one_of(models(), regrouped_models()), st.integers(0, 99), st.integers(0, 40))
def test_any_model_packed_equals_the_definition(model: Model, seed: int, joint: int) -> None:
    """Models have children, unknown values, missing levels and families without groupings; joint tables any size."""
    rows = random_codes(model.schema, 12, seed, unknown=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factors, "MANY_TABLES", 1)
        patch.setattr(factors, "MOST_JOINT", joint)
        patch.setattr(factors, "NUMBERS_PER_SLICE", 5)
        actual = scored(model, rows)
    if rows:
        np.testing.assert_allclose(actual, defined(model, rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("n_labels", "most", "unknown"),
    [(1, 4, 0.1), (2, 4, 0.1), (3, 4, 0.0), (7, 4, 0.1), (26, 3, 0.05), (2, 2, 1.0), (3, 2, 1.0)],
)
def test_many_trees_equal_the_definition(n_labels: int, most: int, unknown: float) -> None:
    model = boosted_model(random_schema(9, n_labels, intervals=6), 60, most=most)
    rows = random_codes(model.schema, 8, unknown=unknown)
    kinds = {type(factor) for factor in compile_scorer(model).stages[0].factors}
    assert kinds == {PackedTables}
    np.testing.assert_allclose(scored(model, rows), defined(model, rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 7])
def test_packed_tables_score_like_single_ones(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    """Attributes have up to 256 intervals, and unknown values; scores are compared with one look-up per family."""
    model = boosted_model(random_schema(12, n_labels), 300)
    rows = random_codes(model.schema, 500, unknown=0.02)
    packed = scored(model, rows)
    monkeypatch.setattr(factors, "MANY_TABLES", 1 << 30)
    assert not any(isinstance(factor, PackedTables) for factor in compile_scorer(model).stages[0].factors)
    np.testing.assert_allclose(packed, scored(model, rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_tables_of_an_ensemble_are_packed_by_their_models(n_labels: int) -> None:
    model = mixed_ensemble(random_schema(6, n_labels, intervals=9), 120, most=3)
    kinds = [type(factor.factor).__name__ for factor in compile_scorer(model).stages[0].factors]
    assert kinds.count("PackedTables") == 2
    rows = random_codes(model.schema, 12, unknown=0.1)
    np.testing.assert_allclose(scored(model, rows), defined(model, rows), rtol=1e-11, atol=1e-12)


def test_the_score_of_a_row_does_not_depend_on_other_rows() -> None:
    model = boosted_model(random_schema(8, 3), 50)
    rows = random_codes(model.schema, ROWS_PER_BLOCK + 300, unknown=0.01)
    whole = scored(model, rows)
    for start in (0, ROWS_PER_BLOCK - 3, ROWS_PER_BLOCK + 250):
        part = scored(model, [column[start : start + 7] for column in rows])
        np.testing.assert_array_equal(whole[:, start : start + 7], part)


def test_large_tables_are_not_packed() -> None:
    schema = random_schema(5, 2, intervals=100)
    model = boosted_model(schema, 40)
    tables = model.tables
    large = Family.over((0, 2, 4), schema.cardinalities)
    assert large.n_cells > factors.MOST_CELLS
    weights = np.random.default_rng(0).normal(size=(large.n_cells, 2))
    both = replace(model, predictor=Tables(tables.bias, (large, *tables.families), (weights, *tables.weights)))
    kinds = [type(factor).__name__ for factor in compile_scorer(both).stages[0].factors]
    assert kinds in (["Factor", "PackedTables"], ["WideFactor", "PackedTables"])
    rows = random_codes(schema, 6)
    np.testing.assert_allclose(scored(both, rows), defined(both, rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lacking", [False, True])
def test_every_table_has_a_place_in_one_lane(lacking: bool) -> None:
    """The joint tables of all lanes contain every table, and lanes have room for their cells."""
    model = boosted_model(random_schema(20, 2), 200)
    (packed,) = compile_scorer(model).stages[0].factors
    assert isinstance(packed, PackedTables)
    words = [word for part in packed._kept for word in part] if lacking else packed.complete
    assert all(len(table) <= 1 << bits for bits, _, lanes in words for table in lanes)
    assert all(len(lanes) <= 64 // bits and bits in BITS for bits, _, lanes in words)
    cells = sum(math.log(len(table)) for _, _, lanes in words for table in lanes)
    assert cells == pytest.approx(sum(math.log(np.prod(np.array(t.shape) + lacking)) for t in packed.tables))


@pytest.mark.slow
def test_packing_grows_in_proportion_to_the_tables() -> None:
    """A model of 50,000 columns has 50,000 tables: anything per pair of tables would take minutes and gigabytes."""

    def peak(n: int) -> int:
        tables = [factors.SmallTable((p,), (np.arange(3),), (2,), np.zeros((1, 2)), lambda: (None,)) for p in range(n)]
        tracemalloc.start()
        try:
            assert sum(len(lane) for word in factors._assign_lanes(tables, 4, 256) for lane in word) == n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(4_000) < 5 * peak(1_000)


@pytest.mark.parametrize("n_labels", [2, 5])
def test_expanded_tables_that_are_too_large_to_keep_are_made_in_parts(
    monkeypatch: pytest.MonkeyPatch, n_labels: int
) -> None:
    model = boosted_model(random_schema(8, n_labels), 80)
    rows = random_codes(model.schema, 40, unknown=0.1)
    expected = scored(model, rows)
    monkeypatch.setattr(factors, "KEPT_ENTRIES", 20_000)
    scorer = compile_scorer(model)
    (packed,) = scorer.stages[0].factors
    found = log_probabilities(scorer, [rows[a] for a in scorer.used])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert "_kept" not in vars(packed)


def test_a_scorer_can_be_pickled_and_shared_by_threads() -> None:
    """It is pickled before and after it scored incomplete rows, and used by eight threads at once."""
    model = mixed_ensemble(random_schema(7, 3), 100)
    rows = random_codes(model.schema, 400, unknown=0.02)
    scorer = compile_scorer(model)
    columns = [rows[a] for a in scorer.used]
    early = pickle.loads(pickle.dumps(scorer))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: log_probabilities(scorer, columns), range(8)))
    for other in (*found, *(log_probabilities(s, columns) for s in (early, pickle.loads(pickle.dumps(scorer))))):
        np.testing.assert_array_equal(other, found[0])
