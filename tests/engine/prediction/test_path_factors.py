"""Factors of a path: stages, tables of regions, and averages with unknown attributes marginalized."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Path
from bncli.engine.parameter_learners.closed_form import learn_kbma, learn_kmap
from bncli.engine.prediction import path_factors
from bncli.engine.prediction.path_factors import LEAST_WEIGHT, stages_of
from bncli.engine.prediction.scoring import compile_path, log_probabilities
from tests import path_oracle
from tests.datasets import random_dataset
from tests.paths import Case, learnt_on, learnt_paths, path_of, reweighed
from tests.sweeps import examples


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


def scored(path: Path, rows: list[np.ndarray], n: int) -> np.ndarray:
    scorer = compile_path(path)
    return log_probabilities(scorer, [rows[i] for i in scorer.used], n)


@given(learnt_paths(), st.integers(0, 99), st.booleans())
@settings(max_examples=examples(13))
def test_unknown_values_are_marginalized(case: Case, seed: int, wide: bool) -> None:
    data, _, learnt, theta = case
    rows = rows_with_unknowns(data, 5, seed)
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(path_factors, "EXPANDED_ENTRIES", 0)
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
    monkeypatch.setattr(path_factors, "EXPANDED_ENTRIES", 1 << 24)
    np.testing.assert_allclose(wide, scored(path, rows, 50), rtol=1e-9)


def test_expanded_tables_hold_every_margin() -> None:
    table = np.random.default_rng(0).normal(size=(2, 3, 2, 3))
    expanded = path_factors.expand_submodel(table)
    assert expanded.shape == (3, 4, 3, 3)
    for cell in itertools.product(range(3), range(4), range(3)):
        shown = [[v] if v < n else range(n) for v, n in zip(cell, (2, 3, 2), strict=True)]
        for y in range(3):
            total = math.fsum(math.exp(table[(*full, y)]) for full in itertools.product(*shown))
            assert expanded[(*cell, y)] == pytest.approx(math.log(total))


def test_sums_of_tiny_probabilities_do_not_vanish() -> None:
    table = np.full((2, 2), -5000.0)
    np.testing.assert_allclose(path_factors.log_margin(table, [0]), -5000 + math.log(2))


def test_terms_are_added_where_they_belong() -> None:
    rng = np.random.default_rng(1)
    whole, of_5, of_4_7, alone = (rng.normal(size=shape) for shape in ((2, 3, 2, 2), (3, 2), (2, 2, 2), (2,)))
    terms = [(1, (4, 5, 7), whole), (-2, (5,), of_5), (3, (4, 7), of_4_7), (-1, (), alone)]
    total = path_factors.sum_over((4, 5, 7), (2, 3, 2), terms)
    for a, b, c, y in itertools.product(range(2), range(3), range(2), range(2)):
        expected = whole[a, b, c, y] - 2 * of_5[b, y] + 3 * of_4_7[a, c, y] - alone[y]
        assert total[a, b, c, y] == pytest.approx(expected)
