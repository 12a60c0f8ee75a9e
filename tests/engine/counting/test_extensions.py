"""Sums over sets and one attribute more, against a loop over rows; packed, in rounds, and numbered by what occurs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import interaction_gains as extensions
from bncli.engine.structure_learners.interaction_gains import Extensions
from tests.datasets import random_dataset

Array = NDArray[np.float64]


def slow(data: Dataset, members: tuple[int, ...], columns: Array) -> list[list[float]]:
    """The sums of every cell that occurs, in the order of the cells."""
    cells: dict[tuple[int, ...], Array] = {}
    for t in range(data.n_rows):
        cell = tuple(int(data.codes[i][t]) for i in members)
        cells[cell] = cells.get(cell, 0.0) + columns[:, t]
    return [cells[cell].tolist() for cell in sorted(cells)]


@given(
    st.lists(st.integers(1, 6), min_size=3, max_size=7),
    st.integers(0, 2),
    st.integers(1, 3),
    st.sampled_from([1, 30, 1 << 18]),
    st.sampled_from([1, 1 << 24]),
)
def test_against_a_loop_over_rows(
    cardinalities: list[int], n_members: int, n_columns: int, dense: int, budget: int
) -> None:
    data = random_dataset(50, cardinalities, 2, seed=n_columns)
    columns = np.random.default_rng(3).normal(size=(n_columns, 50))
    others = tuple(range(len(cardinalities)))
    members, wanted = others[:n_members], others[n_members + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extensions, "SPARSE_TABLE", dense)
        patch.setattr(extensions, "ROUND", budget)
        found = dict(Extensions(data, others, [columns]).sums(members, wanted))
    assert set(found) == set(wanted)
    for i, sums in found.items():
        reached = sums[:, np.abs(sums).sum(axis=0) > 0]
        np.testing.assert_allclose(reached.T, slow(data, (*members, i), columns), atol=1e-12)


def test_nothing_wanted_is_nothing_counted() -> None:
    data = random_dataset(5, (2, 2), 2)
    assert list(Extensions(data, (0, 1), [np.ones((1, 5))]).sums((0,), ())) == []


def test_what_nobody_has_takes_no_room() -> None:
    rows = np.arange(300)
    data = random_dataset(300, (3000, 3000, 3000), 2)
    data.codes[0][:], data.codes[1][:], data.codes[2][:] = rows, rows * 7, rows * 9
    ((_, sums),) = Extensions(data, (0, 1, 2), [np.ones((1, 300))]).sums((0, 1), (2,))
    assert sums.tolist() == [[1.0] * 300]
