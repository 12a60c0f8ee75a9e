"""The cache of family scores: whatever way a family is asked for, its score is that of its own table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import hill_climb as family_cache
from bncli.engine.structure_learners.hill_climb import NOBODY, FamilyCache
from bncli.engine.structures.scores import parse_score
from bncli.watch import Event
from tests import oracles
from tests.datasets import random_dataset
from tests.strategies import datasets

RULES = ("bic", "k2", "bdeu:1", "acll:5")


def slow(data: Dataset, rule: str, child: int, parents: frozenset[int]) -> float:
    table = oracles.count(data, (child, *sorted(parents)))
    return float(parse_score(rule).score(table.reshape(len(table), -1, data.n_labels)))


@pytest.mark.parametrize("rule", RULES)
@given(data=datasets(max_rows=30), more=st.data())
def test_every_way_to_a_family_gives_its_score(rule: str, data: Dataset, more: st.DataObject) -> None:
    cache = FamilyCache(Counts(data), parse_score(rule))
    n = len(data.codes)
    for _ in range(8):
        child = more.draw(st.integers(0, n - 1))
        parents = more.draw(st.frozensets(st.integers(0, n - 1), max_size=3)) - {child}
        if more.draw(st.booleans()):
            assert cache.score(child, parents) == pytest.approx(slow(data, rule, child, parents), rel=1e-10, abs=1e-9)
        else:
            column = cache.column(child, parents)
            for j in range(n):
                if j == child or j in parents:
                    assert column[j] == -np.inf
                else:
                    expected = slow(data, rule, child, parents | {j})
                    assert column[j] == pytest.approx(expected, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("many_rows", [0, 1000], ids=["packed", "swept"])
@pytest.mark.parametrize("rule", RULES)
def test_pairs_scored_together_give_the_columns_that_are_asked_for(
    rule: str, many_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family_cache, "MANY_ROWS", many_rows)
    data = random_dataset(50, (2, 3, 1, 2, 4, 3, 2), 3, weighted=True)
    together, alone = (FamilyCache(Counts(data), parse_score(rule)) for _ in range(2))
    together.score_pairs()
    for i in data.schema.informative:
        np.testing.assert_allclose(together.column(i, NOBODY), alone.column(i, NOBODY), rtol=1e-10, atol=1e-9)


def test_pairs_are_not_counted_together_where_one_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_cache, "MAX_CELLS", 23)
    cache = FamilyCache(Counts(random_dataset(40, (3, 2, 4), 2)), parse_score("bic"))
    events: list[Event] = []
    cache.score_pairs(events.append)
    assert events == []
    assert np.isfinite(cache.column(0, NOBODY)).tolist() == [False, True, False]


@pytest.mark.parametrize("cardinalities", [(), (1, 1), (1, 3, 1)])
def test_no_pairs(cardinalities: tuple[int, ...]) -> None:
    cache = FamilyCache(Counts(random_dataset(10, cardinalities, 2)), parse_score("k2"))
    cache.score_pairs()
    assert all(np.isinf(cache.column(i, NOBODY)).all() for i in cache.counts.data.schema.informative)


def test_families_without_parents() -> None:
    data = random_dataset(40, (3, 1, 2), 2, weighted=True)
    cache = FamilyCache(Counts(data), parse_score("bic"))
    assert cache.without_parents() == pytest.approx([slow(data, "bic", i, frozenset()) for i in (0, 2)])


def test_uninformative_attributes_are_no_candidates() -> None:
    cache = FamilyCache(Counts(random_dataset(40, (3, 1, 2), 2)), parse_score("k2"))
    assert np.isfinite(cache.column(0, frozenset())).tolist() == [False, False, True]


def test_a_family_of_too_many_cells_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_cache, "MAX_CELLS", 23)
    cache = FamilyCache(Counts(random_dataset(40, (3, 2, 4, 2), 2)), parse_score("bic"))
    assert np.isfinite(cache.column(0, frozenset())).tolist() == [False, True, False, True]
    assert np.isfinite(cache.column(2, frozenset())).tolist() == [False, True, False, True]
    assert np.isfinite(cache.column(1, frozenset({0}))).tolist() == [False, False, False, False]
    assert cache.score(0, frozenset({1, 3})) == -np.inf
    assert np.isfinite(cache.score(1, frozenset({3})))
