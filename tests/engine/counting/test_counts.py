"""Contingency tables, of single sets and of all pairs through super-attributes, against a loop over rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting import counts as counting
from bncli.engine.counting import table_batches
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.errors import BncliError
from bncli.watch import Event, Note
from tests import oracles
from tests.datasets import random_dataset
from tests.missing_values import complete_rows, with_missing
from tests.strategies import datasets


def assert_same(table: np.ndarray, expected: np.ndarray, data: Dataset) -> None:
    """Exact where rows are counted, to rounding where their weights are added."""
    assert table.shape == expected.shape
    assert table.dtype == np.float64
    if data.weights is None:
        np.testing.assert_array_equal(table, expected)
    else:
        np.testing.assert_allclose(table, expected, rtol=1e-12, atol=1e-12)


@given(datasets(min_rows=0), st.data())
def test_any_sets_in_any_order(data: Dataset, draw: st.DataObject) -> None:
    n = len(data.codes)
    some = st.lists(st.integers(0, n - 1), unique=True, max_size=3).map(tuple)
    counts = Counts(data)
    for sets in draw.draw(st.lists(st.lists(some, max_size=4), max_size=3)):
        for s, table in zip(sets, counts.tables(sets), strict=True):
            assert_same(table, oracles.count(data, s), data)
    assert_same(counts.class_counts(), oracles.count(data, ()), data)


@given(datasets(min_rows=0), st.sampled_from([1, 4, 8, 32, 300]), st.sampled_from([1, 50, 1 << 24]), st.booleans())
def test_all_pairs_for_every_packing_and_budget(data: Dataset, joint_size: int, budget: int, many: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_batches, "JOINT_SIZES", (joint_size,))
        patch.setattr(table_batches, "ROUND", budget)
        patch.setattr(table_batches, "BLOCK", 7)
        patch.setattr(table_batches, "MANY_ROWS", 11)
        patch.setattr(table_batches, "MANY_INCREMENTS", 0 if many else math.inf)
        patch.setattr(counting, "PAIR_ENTRIES_KEPT", budget)
        counts = Counts(data)
        pairs = by_pair(counts, range(len(data.codes)))
        assert sorted(pairs) == list(itertools.combinations(range(len(data.codes)), 2))
        for pair, table in pairs.items():
            assert_same(table, oracles.count(data, pair), data)
        for pair in itertools.permutations(range(len(data.codes)), 2):
            assert_same(counts.tables([pair])[0], oracles.count(data, pair), data)


def by_pair(counts: Counts, attributes: Sequence[int]) -> dict[tuple[int, int], np.ndarray]:
    """The table of every pair, the lower attribute first; a pair that comes twice is an error."""
    found: dict[tuple[int, int], np.ndarray] = {}
    for batch in counts.pair_batches(attributes):
        for i, j, table in zip(batch.i.tolist(), batch.j.tolist(), batch.counts, strict=True):
            pair = (min(i, j), max(i, j))
            assert pair not in found
            found[pair] = table if i < j else table.transpose(1, 0, 2)
    return found


@pytest.mark.parametrize("attributes", [(), (2,), (1, 4), (0, 2, 3, 5)])
def test_pairs_of_a_subset(attributes: Sequence[int]) -> None:
    data = random_dataset(50, (2, 3, 2, 4, 2, 2), 3)
    pairs = by_pair(Counts(data), attributes)
    assert sorted(pairs) == list(itertools.combinations(attributes, 2))
    for pair, table in pairs.items():
        assert_same(table, oracles.count(data, pair), data)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_several_blocks_and_a_table_too_large_for_bincount(weighted: bool, threads: int) -> None:
    data = random_dataset(140_000, (300, 301, 2), 3, weighted=weighted, threads=threads)
    (table,) = Counts(data).tables([(0, 1)])
    assert table.size > 1 << 18
    expected = np.zeros(table.shape)
    np.add.at(expected, (data.codes[0], data.codes[1], data.labels), 1.0 if data.weights is None else data.weights)
    np.testing.assert_allclose(table, expected, rtol=0 if data.weights is None else 1e-12)
    pairs = by_pair(Counts(data), (0, 1, 2))
    np.testing.assert_allclose(pairs[0, 1], expected, rtol=0 if data.weights is None else 1e-12)


@given(datasets())
def test_a_superset_answers_its_subsets(data: Dataset) -> None:
    counts = Counts(data)
    everything = tuple(range(len(data.codes)))
    counts.tables([everything])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "reduce", _no_pass)
        for size in range(len(everything) + 1):
            for s in itertools.permutations(everything, size):
                assert_same(counts.tables([s])[0], oracles.count(data, s), data)


def _no_pass(*_: object, **__: object) -> None:
    raise AssertionError("the rows were passed over again")


def cases(data: Dataset, s: Sequence[int]) -> np.ndarray:
    """The counts of the rows in which all of `s` are observed."""
    return oracles.count(complete_rows(data, set(s)), s)


@given(datasets(min_rows=0), st.sampled_from([0.0, 0.2, 0.7, 1.0]), st.data())
def test_missing_values_leave_the_rows_that_have_the_whole_set(
    data: Dataset, share: float, draw: st.DataObject
) -> None:
    incomplete = with_missing(data, share)
    n = len(data.codes)
    some = st.lists(st.integers(0, n - 1), unique=True, max_size=3).map(tuple)
    counts = Counts(incomplete)
    for sets in draw.draw(st.lists(st.lists(some, max_size=4), max_size=3)):
        for s, table in zip(sets, counts.tables(sets), strict=True):
            assert_same(table, cases(incomplete, s), data)
    assert_same(counts.class_counts(), oracles.count(data, ()), data)


@given(datasets(min_rows=0), st.sampled_from([1, 8, 300]), st.integers(0, 9))
def test_pairs_with_missing_values_and_what_they_answer_later(data: Dataset, joint_size: int, seed: int) -> None:
    """Some attributes have missing values and some have not, which makes tables of one shape differ."""
    incomplete = with_missing(data, 0.3, seed)
    codes = tuple(a if i % 2 else b for i, (a, b) in enumerate(zip(data.codes, incomplete.codes, strict=True)))
    incomplete = Dataset(incomplete.schema, codes, data.labels, data.weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_batches, "JOINT_SIZES", (joint_size,))
        counts = Counts(incomplete)
        pairs = by_pair(counts, range(len(data.codes)))
        assert sorted(pairs) == list(itertools.combinations(range(len(data.codes)), 2))
        for pair, table in pairs.items():
            assert_same(table, cases(incomplete, pair), data)
        if pairs:
            patch.setattr(Dataset, "reduce", _no_pass)
        for pair in itertools.permutations(range(len(data.codes)), 2):
            assert_same(counts.tables([pair])[0], cases(incomplete, pair), data)
            assert_same(counts.tables([pair[:1]])[0], cases(incomplete, pair[:1]), data)


def test_pairs_answer_later_questions() -> None:
    data = random_dataset(50, (2, 3, 2), 2)
    counts = Counts(data)
    by_pair(counts, (0, 1, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "reduce", _no_pass)
        for s in ((1,), (2, 0), (0, 1), (0,)):
            assert_same(counts.tables([s])[0], oracles.count(data, s), data)


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_that_are_kept_answer_as_before_and_others_are_freed(weighted: bool) -> None:
    data = random_dataset(60, (3, 2, 4, 3, 2), 2, weighted=weighted)
    counts, freed = Counts(data), Counts(data)
    for each in (counts, freed):
        by_pair(each, range(5))
        each.tables([(1, 3)])
    freed.keep_pairs([(0,), (4, 2), (3, 0), (2, 1, 0)])
    assert sum(len(kept.batches) for kept in freed._pairs) == 2
    assert all(table.base is None for table in freed._known.values())
    sets = [(2, 4), (0, 3), (1, 3), (1,), (0, 1), (2, 1, 0), ()]
    for s, table, expected in zip(sets, freed.tables(sets), counts.tables(sets), strict=True):
        if s == (0, 1):
            assert_same(table, expected, data)
        else:
            np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("ask", ["tables", "pairs"])
def test_a_giant_table_is_refused_by_name(ask: str) -> None:
    data = random_dataset(10, (20_000, 20_000), 2)
    with pytest.raises(BncliError, match=r"'a0', 'a1' and the class would have 800,000,000 entries \(6\.0 GiB\)"):
        Counts(data).tables([(0, 1)]) if ask == "tables" else by_pair(Counts(data), (0, 1))


def test_packing_does_not_refuse_what_pair_by_pair_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_ENTRIES", 1000)
    monkeypatch.setattr(table_batches, "MAX_ENTRIES", 1000)
    monkeypatch.setattr(table_batches, "JOINT_SIZES", (1, 32))
    data = random_dataset(100_000, (100, 2, 2, 2, 2), 2)
    assert len(by_pair(Counts(data), range(5))) == 10


def test_without_missing_values_nothing_changes() -> None:
    counts = Counts(with_missing(random_dataset(20, (2, 3), 2), 0.0))
    events: list[Event] = []
    assert counts.with_missing_levels("x", events.append) is counts
    assert events == []


def test_a_missing_value_is_one_more_value_of_the_same_rows() -> None:
    data = with_missing(random_dataset(50, (2, 3, 2), 2), 0.3)
    events: list[Event] = []
    seen = Counts(data).with_missing_levels("hill-climb", events.append)
    assert seen.data.schema.cardinalities == (3, 4, 3)
    assert seen.tables([(0, 1, 2)])[0].sum() == 50
    assert seen.data.n_missing == (0, 0, 0)
    assert [event for event in events if isinstance(event, Note)] == [
        Note("hill-climb treats a missing value as one more value when it compares networks")
    ]
