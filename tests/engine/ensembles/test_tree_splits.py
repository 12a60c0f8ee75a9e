"""The splits of a tree: compared with every possible split, on the rows, without a histogram."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles import tree_splits
from bncli.engine.ensembles.tree_splits import (
    LEAST_CURVATURE,
    WINDOW,
    BinnedColumns,
    BinSplit,
    Column,
    _pack,
    _unpack,
    bin_columns,
    grow_splits,
)
from bncli.engine.kernels.arrays import Array, Index, Mask
from tests.datasets import random_dataset
from tests.effects import mixed_dataset, mixed_datasets

PENALTY = 1.0


def term(g: Array, h: Array) -> float:
    return float(g.sum() ** 2 / (h.sum() + PENALTY))


def gain(right: Mask, nodes: Index, g: Array, h: Array) -> float:
    """Return the gain of a split, 0 if a side has hardly any curvature."""
    if min(h[right].sum(), h[~right].sum()) <= LEAST_CURVATURE:
        return 0.0
    total = 0.0
    for node in np.unique(nodes):
        own = nodes == node
        total += term(g[own & right], h[own & right]) + term(g[own & ~right], h[own & ~right]) - term(g[own], h[own])
    return total


def possible_splits(column: Column, bins: Index, g: Array, h: Array) -> Iterator[Mask]:
    """Yield the bins that go right, for every split of a column that is possible."""
    n = column.n_bins
    if column.ordered:
        values = n - column.missing
        for end in range(n - 1):
            yield np.arange(n) > end
            if column.missing and end < values - 1:
                yield (np.arange(n) > end) & (np.arange(n) < n - 1)
        return
    ratio = [g[bins == v].sum() / (h[bins == v].sum() + PENALTY) for v in range(n)]
    order = sorted(range(n), key=lambda v: ratio[v]) if n > 2 else list(range(n))
    for end in range(1, n):
        yield np.isin(np.arange(n), order[end:])


def rows_of(data: Dataset, columns: BinnedColumns) -> list[Index]:
    """Return the bins of every column in the shuffled order of the rows."""
    return [column.binning[data.codes[column.attribute][columns.order]] for column in columns.columns]


def drawn(data: Dataset, seed: int) -> tuple[Array, Array]:
    """Return gradients and curvatures that differ for all rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=data.n_rows), rng.uniform(0.05, 0.25, data.n_rows)


def grown(data: Dataset, columns: BinnedColumns, g: Array, h: Array, depth: int = 3) -> list[BinSplit]:
    return grow_splits(columns, g, h, 0, np.random.default_rng(0), penalty=PENALTY, depth=depth)[0]


@given(mixed_datasets(), st.integers(0, 99), st.integers(2, 8))
def test_no_other_split_gains_more(data: Dataset, seed: int, bins: int) -> None:
    columns = bin_columns(data, bins, np.random.default_rng(seed))
    g, h = drawn(data, seed)
    rows, nodes = rows_of(data, columns), np.zeros(data.n_rows, np.intp)
    for asked in grown(data, columns, g, h):
        best = max(
            gain(right[values], nodes, g, h)
            for column, values in zip(columns.columns, rows, strict=True)
            for right in possible_splits(column, values, g, h)
        )
        answers = asked.right[rows[asked.column]]
        # whole numbers are a millionth of the largest gradient or finer on so few rows
        assert gain(answers, nodes, g, h) == pytest.approx(best, rel=1e-3, abs=1e-3)
        assert asked.gain == pytest.approx(best, rel=1e-3, abs=1e-3)
        nodes = 2 * nodes + answers


@given(mixed_datasets(), st.integers(0, 99))
def test_the_size_of_groups_does_not_change_the_first_gain(data: Dataset, seed: int) -> None:
    g, h = drawn(data, seed)
    found = []
    for bin_numbers in (1 << 13, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree_splits, "BLOCK_PLACES", bin_numbers)
            columns = bin_columns(data, 8, np.random.default_rng(seed))
        found.append([question.gain for question in grown(data, columns, g, h, depth=1)])
    assert found[0] == pytest.approx(found[1])


@given(mixed_datasets(), st.integers(0, 99), st.integers(0, 200))
def test_counting_the_smaller_of_two_nodes_changes_nothing(data: Dataset, seed: int, start: int) -> None:
    columns = bin_columns(data, 8, np.random.default_rng(seed))
    g, h = drawn(data, seed)
    n = max(1, data.n_rows * 2 // 3)
    found = []
    for many in (10**9, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree_splits, "MANY_VALUES", many)
            rng = np.random.default_rng(0)
            found.append(grow_splits(columns, g[:n], h[:n], start % data.n_rows, rng, penalty=PENALTY, depth=5))
    (some, leaf), (others, same) = found
    assert [(one.column, one.right.tolist(), one.gain) for one in some] == [
        (one.column, one.right.tolist(), one.gain) for one in others
    ]
    assert np.array_equal(leaf, same)


@given(mixed_datasets(), st.integers(0, 99))
def test_leaves_follow_from_the_splits(data: Dataset, seed: int) -> None:
    columns = bin_columns(data, 8, np.random.default_rng(seed))
    g, h = drawn(data, seed)
    asked, leaf = grow_splits(columns, g, h, data.n_rows // 2, np.random.default_rng(0), penalty=PENALTY, depth=4)
    rows, wanted = rows_of(data, columns), np.zeros(data.n_rows, np.intp)
    for question in asked:
        wanted = 2 * wanted + question.right[rows[question.column]]
    assert np.array_equal(leaf, wanted)


@given(mixed_datasets(), st.integers(2, 300), st.integers(0, 99))
def test_bins_are_neighbours_and_the_missing_level_has_its_own(data: Dataset, bins: int, seed: int) -> None:
    columns = bin_columns(data, bins, np.random.default_rng(seed))
    for column in columns.columns:
        attribute = data.schema.attributes[column.attribute]
        values = column.binning[: attribute.n_values]
        assert list(column.binning[attribute.n_values :]) == [values.max() + 1] * attribute.missing
        assert sorted(set(values.tolist())) == list(range(values.max() + 1))
        if column.ordered:
            assert all(left <= right for left, right in itertools.pairwise(values.tolist()))
            assert values.max() + 1 <= bins
        else:
            assert attribute.n_values == len(set(values.tolist()))
    assert sorted(columns.order.tolist()) == list(range(data.n_rows))


@given(mixed_datasets(), st.integers(0, 99))
def test_places_are_bins_laid_twice(data: Dataset, seed: int) -> None:
    columns = bin_columns(data, 3, np.random.default_rng(seed))
    rows = rows_of(data, columns)
    for group in columns.groups:
        for c, bin_numbers in enumerate(group.bin_numbers):
            expected: Sequence[int] = (rows[group.first + c] + c * group.width).tolist()
            assert bin_numbers.tolist() == [*expected, *expected]
    assert sum(len(group.columns) for group in columns.groups) == len(columns.columns)


@pytest.mark.parametrize("heavy", [0, 7, 15])
def test_a_heavy_value_is_cut_off_on_both_sides(heavy: int) -> None:
    """Half of the rows have it; with any draw, the cuts on both sides are possible splits."""
    codes = np.append(np.full(500, heavy), np.tile(np.arange(16), 32)[:500]).astype(np.uint8)
    data = mixed_dataset(random_dataset(1000, [16], 2), ["numeric"])
    frequencies = tuple(np.bincount(codes, minlength=16).astype(float))
    attribute = replace(data.schema.attributes[0], frequencies=frequencies)
    data = replace(data, codes=(codes,), schema=replace(data.schema, attributes=(attribute,)))
    for seed in range(20):
        (column,) = bin_columns(data, 6, np.random.default_rng(seed)).columns
        assert np.flatnonzero(column.binning == column.binning[heavy]).tolist() == [heavy]
        assert column.n_bins <= 6


def test_sums_of_many_rows_are_exact() -> None:
    """The largest gradients of both signs and the largest curvatures fill both fields of a double."""
    for n in (1, 127, 128, WINDOW):
        g, h = np.where(np.arange(n) % 3, 1.0, -1.0), np.ones(n)
        packed, units = _pack(g, h, np.random.default_rng(0))
        sums = _unpack(np.array([packed.sum(), packed[g > 0].sum(), packed[g < 0].sum()]), units)
        expected = [(x.sum(), x[g > 0].sum(), x[g < 0].sum()) for x in (g, h)]
        np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)
