"""Joint codes against sets of tuples, by marking and by sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting import fused_codes as joint_codes
from bncli.engine.counting.fused_codes import extend, no_attributes
from bncli.engine.data.dataset import Dataset
from tests.datasets import random_dataset
from tests.strategies import datasets


def grown(data: Dataset, attributes: tuple[int, ...]) -> list[int]:
    """The joint code of every row after adding the attributes in turn."""
    joint = no_attributes(data)
    for attribute in attributes:
        joint, _ = extend(data, joint, attribute)
    return [int(code) for part in joint.codes for code in part]


def ranks(data: Dataset, attributes: tuple[int, ...]) -> list[int]:
    """The rank of every row's tuple of values among those that occur."""
    rows = [tuple(int(data.codes[i][t]) for i in attributes) for t in range(data.n_rows)]
    order = sorted(set(rows))
    return [order.index(row) for row in rows]


@given(datasets(max_rows=40), st.data())
def test_codes_are_ranks_of_the_tuples_that_occur(data: Dataset, draw: st.DataObject) -> None:
    attributes = draw.draw(st.permutations(range(len(data.codes))).map(tuple))
    assert grown(data, attributes) == ranks(data, attributes)


@given(datasets(max_rows=40))
def test_every_new_number_knows_the_one_it_came_from(data: Dataset) -> None:
    joint = no_attributes(data)
    for attribute in range(len(data.codes)):
        longer, before = extend(data, joint, attribute)
        assert before.shape == (longer.size,)
        for old, new in zip(joint.codes, longer.codes, strict=True):
            assert (before[new] == old).all()
        joint = longer


def test_sorting_gives_the_same_numbers_as_marking(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(150_000, (30, 40, 20), 2, threads=2)  # two row blocks
    marked = grown(data, (2, 0, 1))
    monkeypatch.setattr(joint_codes, "MAX_MARKED", 1)
    assert grown(data, (2, 0, 1)) == marked


def test_many_attributes_never_overflow() -> None:
    data = random_dataset(50, (200,) * 30, 2)
    codes = grown(data, tuple(range(30)))
    assert sorted(codes) == list(range(50))


@pytest.mark.parametrize("limit", [1, 1 << 25])
def test_no_rows(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_codes, "MAX_MARKED", limit)
    data = random_dataset(0, (2, 3), 2)
    joint, before = extend(data, no_attributes(data), 1)
    assert joint.size == 0
    assert before.shape == (0,)
    assert np.concatenate(joint.codes).shape == (0,)
    assert extend(data, joint, 0)[0].size == 0
