"""Pairs through super-attributes, sums and sweeps against loops over rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting import table_batches
from bncli.engine.counting.table_batches import (
    SuperAttribute,
    n_cells,
    pair_batches,
    pair_sums,
    super_attributes,
    tables_with_one_more,
)
from bncli.engine.data.dataset import Dataset
from tests import oracles
from tests.datasets import random_dataset
from tests.strategies import datasets

CARDINALITIES = st.lists(st.integers(2, 200), max_size=12)


@given(CARDINALITIES, st.sampled_from([1, 32, 128]), st.integers(0, 10**6))
def test_every_attribute_is_in_one_super_attribute_and_no_shared_one_is_too_large(
    cardinalities: list[int], size: int, n_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_batches, "JOINT_SIZES", (size,))
        found = super_attributes(dict(enumerate(cardinalities)), n_rows, 3)
    assert sorted(itertools.chain(*(p.attributes for p in found))) == list(range(len(cardinalities)))
    for p in found:
        assert p.shape == tuple(cardinalities[i] for i in p.attributes)
        assert len(p.attributes) == 1 or p.size <= size


def test_super_attributes_pay_where_there_are_many_rows() -> None:
    ternary = dict.fromkeys(range(16), 3)
    many, few = (super_attributes(ternary, n_rows, 2) for n_rows in (1_000_000, 0))
    assert len(many) == 4
    assert len(few) == 16


def test_margins_say_which_joint_values_have_which_value() -> None:
    two = SuperAttribute((4, 7), (2, 3))
    expected = [[u // 3 == a for u in range(6)] for a in range(2)] + [[u % 3 == b for u in range(6)] for b in range(3)]
    np.testing.assert_array_equal(two.margins, expected)
    attributes, rows = two.of_cardinality(3)
    assert (attributes, rows.tolist()) == ([7], [[2, 3, 4]])


@pytest.mark.parametrize("weighted", [False, True])
def test_tables_of_one_shape_come_together(weighted: bool) -> None:
    data = random_dataset(200, (2, 3, 2, 2, 3), 2, weighted=weighted)
    met = []
    for batch in pair_batches(data, (0, 1, 2, 4)):
        for i, j, table in zip(batch.i.tolist(), batch.j.tolist(), batch.counts, strict=True):
            np.testing.assert_allclose(table, oracles.count(data, (i, j)), rtol=1e-12)
            met.append((min(i, j), max(i, j)))
    assert sorted(met) == list(itertools.combinations((0, 1, 2, 4), 2))


@given(CARDINALITIES.filter(lambda c: len(c) > 1), st.sampled_from([1, 32, 128]), st.integers(1, 3), st.booleans())
def test_sums_of_all_pairs(cardinalities: list[int], size: int, n_columns: int, small: bool) -> None:
    cardinalities = [min(n, 9) for n in cardinalities[:6]]
    data = random_dataset(40, cardinalities, 2, seed=size)
    columns = np.random.default_rng(size).normal(size=(n_columns, 40))
    met = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_batches, "JOINT_SIZES", (size,))
        patch.setattr(table_batches, "BLOCK", 7 if small else 1 << 15)
        patch.setattr(table_batches, "ROUND", 1 if small else 1 << 24)
        for batch in pair_sums(data, range(len(cardinalities)), [columns]):
            for i, j, table in zip(batch.i.tolist(), batch.j.tolist(), batch.counts, strict=True):
                expected = np.zeros((cardinalities[i], cardinalities[j], n_columns))
                for t in range(40):
                    expected[data.codes[i][t], data.codes[j][t]] += columns[:, t]
                np.testing.assert_allclose(table, expected, atol=1e-12)
                met.append((min(i, j), max(i, j)))
    assert sorted(met) == list(itertools.combinations(range(len(cardinalities)), 2))


def check(data: Dataset, child: int, parents: tuple[int, ...], candidates: list[int]) -> None:
    seen: list[int] = []
    for group, tables in tables_with_one_more(data, child, parents, candidates):
        for j, table in zip(group, tables, strict=True):
            family = (child, *parents, j)
            expected = oracles.count(data, family)
            assert table.size == n_cells(data, family)
            np.testing.assert_allclose(table, expected.reshape(table.shape), rtol=1e-12)
        seen += group
    assert sorted(seen) == sorted(candidates)


@given(datasets(max_rows=30), st.data(), st.booleans())
def test_every_table(data: Dataset, more: st.DataObject, many: bool) -> None:
    child, *others = more.draw(st.permutations(range(len(data.codes))))
    n_parents = more.draw(st.integers(0, min(2, len(others))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_batches, "MANY_ROWS", 11)
        patch.setattr(table_batches, "MANY_INCREMENTS", 0 if many else math.inf)
        check(data, child, tuple(others[:n_parents]), others[n_parents:])


@pytest.mark.parametrize("round_size", [1, 30, 100])
def test_the_size_of_a_round_does_not_matter(round_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_batches, "ROUND", round_size)
    check(random_dataset(9, (2, 3, 2, 3, 3), 3, weighted=True), 1, (0,), [4, 3, 2])


def test_blocks_and_threads() -> None:
    check(random_dataset(140_000, (2, 3, 4), 2, threads=2), 0, (2,), [1])


def test_nobody_asked() -> None:
    assert list(tables_with_one_more(random_dataset(5, (2, 3), 2), 0, (), [])) == []
