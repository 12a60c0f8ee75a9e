"""Averages over paths, unknowns summed out, against one row, region and completion at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Path
from bncli.engine.prediction import region_factors
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
def test_what_is_unknown_is_summed_out(case: Case, seed: int, wide: bool) -> None:
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
    assert path is not None
    path = Path(path.class_logs, path.families, path.logs, tuple(s._replace(weight=0.25) for s in path.steps))
    rows = rows_with_unknowns(data, 50, 2)
    kinds = [[type(f).__name__ for f in stage.factors] for stage in compile_path(path).stages]
    assert kinds == [[], ["Factor"], ["Factor"], ["RegionFactor"]]
    wide = scored(path, rows, 50)
    monkeypatch.setattr(region_factors, "EXPANDED_ENTRIES", 1 << 24)
    np.testing.assert_allclose(wide, scored(path, rows, 50), rtol=1e-9)
