"""Averages over paths, unknowns marginalized, against one row, region and completion at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Path
from bncli.engine.prediction import factors as region_factors
from bncli.engine.prediction.scoring import compile_path, log_probabilities
from tests import path_oracle
from tests.datasets import random_dataset
from tests.paths import Case, learnt_on, learnt_paths, path_of


def rows_with_unknowns(data: Dataset, n: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, r + 1, n).astype(np.uint8) for r in data.schema.cardinalities]


def scored(path: Path, rows: list[np.ndarray], n: int) -> np.ndarray:
    scorer = compile_path(path)
    return log_probabilities(scorer, [rows[i] for i in scorer.used], n)


@given(learnt_paths(), st.integers(0, 99), st.booleans())
@settings(max_examples=40)
def test_what_is_unknown_is_marginalized(case: Case, seed: int, wide: bool) -> None:
    data, _, learnt, theta = case
    rows = rows_with_unknowns(data, 5, seed)
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(region_factors, "EXPANDED_ENTRIES", 0)
        log_p = scored(path_of(learnt), rows, 5)
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
    wide = scored(path, rows, 50)
    monkeypatch.setattr(region_factors, "EXPANDED_ENTRIES", 1 << 24)
    np.testing.assert_allclose(wide, scored(path, rows, 50), rtol=1e-9)


def test_expanded_tables_hold_every_margin() -> None:
    table = np.random.default_rng(0).normal(size=(2, 3, 2, 3))
    expanded = region_factors.expand_submodel(table)
    assert expanded.shape == (3, 4, 3, 3)
    for cell in itertools.product(range(3), range(4), range(3)):
        shown = [[v] if v < n else range(n) for v, n in zip(cell, (2, 3, 2), strict=True)]
        for y in range(3):
            total = math.fsum(math.exp(table[(*full, y)]) for full in itertools.product(*shown))
            assert expanded[(*cell, y)] == pytest.approx(math.log(total))


def test_sums_of_tiny_probabilities_do_not_vanish() -> None:
    table = np.full((2, 2), -5000.0)
    np.testing.assert_allclose(region_factors.log_margin(table, [0]), -5000 + math.log(2))


def test_terms_are_added_where_they_belong() -> None:
    rng = np.random.default_rng(1)
    whole, of_5, of_4_7, alone = (rng.normal(size=shape) for shape in ((2, 3, 2, 2), (3, 2), (2, 2, 2), (2,)))
    terms = [(1, (4, 5, 7), whole), (-2, (5,), of_5), (3, (4, 7), of_4_7), (-1, (), alone)]
    total = region_factors.sum_over((4, 5, 7), (2, 3, 2), terms)
    for a, b, c, y in itertools.product(range(2), range(3), range(2), range(2)):
        expected = whole[a, b, c, y] - 2 * of_5[b, y] + 3 * of_4_7[a, c, y] - alone[y]
        assert total[a, b, c, y] == pytest.approx(expected)
