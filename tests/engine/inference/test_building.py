"""Distinct numbers: marked or sorted, the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.inference import program as building


@given(st.lists(st.integers(0, 999)), st.sampled_from([1000, 1 << 50]))
def test_equals_sorting(numbers: list[int], bound: int) -> None:
    array = np.array(numbers, np.intp)
    found, places = building.distinct(array, bound)
    assert found.tolist() == sorted(set(numbers))
    np.testing.assert_array_equal(found[places], array)


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).integers(0, 5000, 700)
    marked = building.distinct(numbers, 5000)
    monkeypatch.setattr(building, "MARKED_ANYWAY", 0)
    monkeypatch.setattr(building, "MARKED_PER_NUMBER", 0)
    for a, b in zip(marked, building.distinct(numbers, 5000), strict=True):
        np.testing.assert_array_equal(a, b)
