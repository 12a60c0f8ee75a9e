"""Tables of families with one more parent against counting row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting import table_batches as sweep
from bncli.engine.counting.table_batches import n_cells, tables_with_one_more
from bncli.engine.data.dataset import Dataset
from tests import oracles
from tests.datasets import random_dataset
from tests.strategies import datasets


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
        patch.setattr(sweep, "MANY_ROWS", 11)
        patch.setattr(sweep, "MANY_INCREMENTS", 0 if many else math.inf)
        check(data, child, tuple(others[:n_parents]), others[n_parents:])


@pytest.mark.parametrize("round_size", [1, 30, 100])
def test_the_size_of_a_round_does_not_matter(round_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "ROUND", round_size)
    check(random_dataset(9, (2, 3, 2, 3, 3), 3, weighted=True), 1, (0,), [4, 3, 2])


def test_blocks_and_threads() -> None:
    check(random_dataset(140_000, (2, 3, 4), 2, threads=2), 0, (2,), [1])


def test_nobody_asked() -> None:
    assert list(tables_with_one_more(random_dataset(5, (2, 3), 2), 0, (), [])) == []
