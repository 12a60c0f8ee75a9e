"""Ranks of values are those of numpy's unique values, for every kind of column."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Column, NumericColumn
from bncli.engine.evaluation import value_ranks
from bncli.engine.evaluation.value_ranks import RankedValues, order_numbers, rank_values

RNG = np.random.default_rng(0)
HOLES = RNG.normal(size=500).round(1)
HOLES[::7] = np.nan
COLUMNS = {
    "a few whole numbers": RNG.integers(-100, 100, 500).astype(np.int8),
    "whole numbers far apart": RNG.integers(-(2**31), 2**31, 500).astype(np.int32),
    "64 bits": RNG.integers(-(2**62), 2**62, 500) // 2**40 * 2**40,
    "unsigned": RNG.integers(0, 2**16, 5000).astype(np.uint16),
    "repeated numbers": RNG.normal(size=500).round(1).astype(np.float32),
    "different numbers": RNG.normal(size=500),
    "numbers and missing values": HOLES,
    "missing values only": np.full(50, np.nan),
    "two zeros": np.array([0.0, -0.0, 1.0, -0.0] * 20),
    "one value": np.zeros(60),
    "no rows": np.zeros(0),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_ranks_of_numbers(name: str) -> None:
    values = COLUMNS[name]
    _, ranks, sizes = np.unique(values, return_inverse=True, return_counts=True)
    check(NumericColumn(values), ranks, sizes)


@pytest.mark.parametrize("n_levels", [3, 127, 128, 300])
@pytest.mark.parametrize("has_missing", [False, True])
def test_ranks_of_levels(n_levels: int, has_missing: bool) -> None:
    codes = np.arange(1000) % (n_levels - 1)  # no row has the last level
    if has_missing:
        codes[::5] = -1
    narrow = codes.astype(np.min_scalar_type(-n_levels))
    ranks = np.where(codes < 0, n_levels, codes)
    check(CategoricalColumn(narrow, tuple(map(str, range(n_levels)))), ranks, np.bincount(ranks))


def check(column: Column, ranks: np.ndarray, sizes: np.ndarray) -> None:
    labels = RNG.integers(0, 3, len(ranks))
    ranked = rank_values(column, labels, 3)
    if ranked.pairs is not None:
        pairs = [[np.count_nonzero((ranks == rank) & (labels == y)) for y in range(3)] for rank in range(len(sizes))]
        np.testing.assert_array_equal(ranked.pairs, np.reshape(pairs, (len(sizes), 3)))
    assert ranked.n_values == len(sizes)
    np.testing.assert_array_equal(ranked.sizes, sizes)
    np.testing.assert_array_equal(ranked.ranks(), ranks)
    rows = np.arange(0, len(ranks), 3)
    np.testing.assert_array_equal(ranked.ranks(rows), ranks[rows])
    before, upto = ranked.positions(rows)
    assert before.tolist() == [np.count_nonzero(ranks < rank) for rank in ranks[rows]]
    assert upto.tolist() == [np.count_nonzero(ranks <= rank) for rank in ranks[rows]]
    if isinstance(column, NumericColumn) and len(ranks):
        check_intervals(column.values, ranked)
    for n_groups in (1, 2, 32):
        groups = np.sort(RNG.integers(0, n_groups, len(sizes)))
        np.testing.assert_array_equal(ranked.groups_of_rows(groups), groups[ranks])


def check_intervals(values: np.ndarray, ranked: RankedValues) -> None:
    for n in (1, 2, 7, 32):
        expected = [
            n
            if np.isnan(value)
            else min(
                int((np.count_nonzero(values < value) + np.count_nonzero(values <= value)) / 2 / len(values) * n), n - 1
            )
            for value in values
        ]
        for few_rows in (0, len(values)):  # from the ends of intervals, and from the sizes of all values
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(value_ranks, "_FEW_ROWS", few_rows)
                intervals, last = ranked.intervals(n)
            assert intervals.tolist() == expected
            assert last == max(expected)
        labels = np.arange(len(values)) * 7 % 3
        in_order = order_numbers(NumericColumn(values), labels, 3)
        if in_order is not None:
            assert in_order.n_values == ranked.n_values
            counts = [[sum(e == i and y == k for e, y in zip(expected, labels, strict=True)) for k in range(3)]
                      for i in range(last + 1)]  # fmt: skip
            assert in_order.interval_counts(n).tolist() == counts
            repeated = in_order.repeated(values)
            if repeated is not None:
                rows = np.arange(len(values))
                assert [each.tolist() for each in repeated.positions(rows)] == [
                    each.tolist() for each in ranked.positions(rows)
                ]
                assert repeated.sizes.tolist() == ranked.sizes.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_intervals_of_skewed_columns(seed: int) -> None:
    """One value may hold many intervals, and most rows may be missing."""
    rng = np.random.default_rng(seed)
    values = np.exp(rng.normal(size=rng.integers(1, 300)))
    values[rng.random(len(values)) < rng.random()] = rng.choice([0.0, 1.0, 9.0])
    values[rng.random(len(values)) < rng.choice([0.0, 0.1, 0.9])] = np.nan
    check_intervals(values, rank_values(NumericColumn(values)))
    check_intervals(np.round(values, 1) / 3, rank_values(NumericColumn(np.round(values, 1) / 3)))


def test_numbers_of_which_few_are_different_are_ranked_without_a_sort() -> None:
    in_order = order_numbers(NumericColumn(HOLES), np.arange(500) % 3, 3)
    assert in_order is not None
    assert in_order.repeated(HOLES) is None
    many = np.tile(HOLES, 5)
    in_order = order_numbers(NumericColumn(many), np.arange(2500) % 3, 3)
    assert in_order is not None
    repeated, rows = in_order.repeated(many), np.arange(2500)
    assert repeated is not None
    expected = rank_values(NumericColumn(many))
    assert repeated.ranks().tolist() == expected.ranks().tolist()
    assert repeated.sizes.tolist() == expected.sizes.tolist()
    for own, other in zip(repeated.positions(rows), expected.positions(rows), strict=True):
        assert own.tolist() == other.tolist()
    groups = np.arange(repeated.n_values) // 9
    assert repeated.groups_of_rows(groups).tolist() == expected.groups_of_rows(groups).tolist()
