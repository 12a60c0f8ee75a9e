"""Look-ups of tables: cells, one factor at a time, many small tables packed in words; stages and regions of a path."""

from __future__ import annotations

import itertools
import math
import pickle
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Ensemble, Model, Path, Tables
from bncli.engine.parameter_learners.closed_form import learn_kbma, learn_kmap
from bncli.engine.prediction import factors
from bncli.engine.prediction.factors import BITS, LEAST_WEIGHT, Factor, PackedTables, WideFactor, cells_of, stages_of
from bncli.engine.prediction.scoring import ROWS_PER_BLOCK, compile_path, compile_scorer, log_probabilities
from bncli.engine.structures.structure import Family
from tests import path_oracle
from tests.datasets import random_dataset
from tests.many_tables import boosted_model, mixed_ensemble, random_codes, random_schema
from tests.paths import Case, learnt_on, learnt_paths, path_of, reweighed
from tests.scoring_oracle import slow_log_probabilities
from tests.strategies import models, regrouped_models
from tests.sweeps import examples


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
    words = [word for part in packed.kept_parts or () for word in part] if lacking else packed.complete
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
    assert vars(packed)["kept_parts"] is None


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


@given(learnt_paths(), st.data())
def test_changes_add_up(case: Case, draw: st.DataObject) -> None:
    path = path_of(case[2])
    shares = draw.draw(
        st.lists(st.sampled_from([0.0, 1e-30, 0.5, 1.0]), min_size=len(path.steps), max_size=len(path.steps))
    )
    path = reweighed(path, shares if any(share > 0.1 for share in shares) else [1.0] * len(shares))
    with_weight = [s for s, step in enumerate(path.steps) if step.weight >= LEAST_WEIGHT]
    stages = stages_of(path)
    assert [stage.weight for stage in stages] == [path.steps[s].weight for s in with_weight]
    found: Counter[int] = Counter()
    for s, stage in zip(with_weight, stages, strict=True):
        found[-1] += stage.class_change
        for host, changes in stage.hosts:
            home = set(path.families[host].attributes)
            assert host in dict(changes)
            for family, change in changes:
                assert change
                assert family < 0 or set(path.families[family].attributes) <= home
                found[family] += change
        expected: Counter[int] = Counter()
        for step in path.steps[: s + 1]:
            expected.update(dict(step.changes))
        assert {f: c for f, c in found.items() if c} == {f: c for f, c in expected.items() if c}


def test_a_single_model_has_one_table_per_largest_region() -> None:
    regions = ((0,), (1,), (2,), (0, 1), (1, 2), (3,))
    data = random_dataset(400, (2, 2, 2, 2), 2)
    path = path_of(learnt_on(data, regions, learn_kmap))
    assert path is not None
    [stage] = stages_of(path)
    kept = {step.region for step in path.steps}
    largest = {r for r in kept if r and not any(set(r) < set(other) for other in kept)}
    assert {path.families[host].attributes for host, _ in stage.hosts} == largest
    assert stage.class_change == 0


def test_the_class_alone_has_no_table() -> None:
    path = path_of(learnt_on(random_dataset(9, (2,), 2), (), learn_kbma))
    assert path is not None
    [stage] = stages_of(path)
    assert (stage.class_change, stage.hosts) == (1, ())


def rows_with_unknowns(data: Dataset, n: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, r + 1, n).astype(np.uint8) for r in data.schema.cardinalities]


def score_path(path: Path, rows: list[np.ndarray], n: int) -> np.ndarray:
    scorer = compile_path(path)
    return log_probabilities(scorer, [rows[i] for i in scorer.used], n)


@given(learnt_paths(), st.integers(0, 99), st.booleans())
@settings(max_examples=examples(13))
def test_unknown_values_are_marginalized(case: Case, seed: int, wide: bool) -> None:
    data, _, learnt, theta = case
    rows = rows_with_unknowns(data, 5, seed)
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(factors, "EXPANDED_ENTRIES", 0)
        log_p = score_path(path_of(learnt), rows, 5)
    for t in range(5):
        row = {i: int(codes[t]) for i, codes in enumerate(rows) if codes[t] < data.schema.cardinalities[i]}
        np.testing.assert_allclose(
            np.exp(log_p[:, t]), path_oracle.averaged(data, path_of(learnt), row, theta), rtol=1e-9
        )


def test_large_regions_are_not_expanded_and_score_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(300, (2,) * 13, 2)
    path = path_of(learnt_on(data, ((0,), (3,), tuple(range(13)))))
    path = Path(path.class_logs, path.families, path.logs, tuple(s._replace(weight=0.25) for s in path.steps))
    rows = rows_with_unknowns(data, 50, 2)
    kinds = [[type(f).__name__ for f in stage.factors] for stage in compile_path(path).stages]
    assert kinds == [[], ["Factor"], ["Factor"], ["RegionFactor"]]
    wide = score_path(path, rows, 50)
    monkeypatch.setattr(factors, "EXPANDED_ENTRIES", 1 << 24)
    np.testing.assert_allclose(wide, score_path(path, rows, 50), rtol=1e-9)


def test_expanded_tables_hold_every_margin() -> None:
    table = np.random.default_rng(0).normal(size=(2, 3, 2, 3))
    expanded = factors.expand_submodel(table)
    assert expanded.shape == (3, 4, 3, 3)
    for cell in itertools.product(range(3), range(4), range(3)):
        shown = [[v] if v < n else range(n) for v, n in zip(cell, (2, 3, 2), strict=True)]
        for y in range(3):
            total = math.fsum(math.exp(table[(*full, y)]) for full in itertools.product(*shown))
            assert expanded[(*cell, y)] == pytest.approx(math.log(total))


def test_sums_of_tiny_probabilities_do_not_vanish() -> None:
    table = np.full((2, 2), -5000.0)
    np.testing.assert_allclose(factors.log_margin(table, [0]), -5000 + math.log(2))


def test_terms_are_added_where_they_belong() -> None:
    rng = np.random.default_rng(1)
    whole, of_5, of_4_7, alone = (rng.normal(size=shape) for shape in ((2, 3, 2, 3), (3, 3), (2, 2, 3), (3,)))
    terms = [(1, (4, 5, 7), whole), (-2, (5,), of_5), (3, (4, 7), of_4_7), (-1, (), alone)]
    total = factors._region_tables((4, 5, 7), (2, 3, 2), terms).reshape(3, 2, 3, 2)
    for a, b, c, y in itertools.product(range(2), range(3), range(2), range(3)):
        expected = whole[a, b, c, y] - 2 * of_5[b, y] + 3 * of_4_7[a, c, y] - alone[y]
        assert total[y, a, b, c] == pytest.approx(expected)
