"""Interval codes, groups of equal weight and distinct values in order, against slow definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.binning import group_ends, interval_codes, midpoints, ordered, round_cuts

some_cuts = st.lists(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(-200, 200, width=16),
        st.integers(-130, 130).map(float),
    ),
    max_size=150,
    unique=True,
).map(sorted)


def slow_codes(values: list[float], cuts: list[float]) -> list[int]:
    return [sum(v > c for c in cuts) for v in values]


@given(st.lists(st.floats(allow_nan=False), max_size=20), some_cuts)
def test_float64(values: list[float], cuts: list[float]) -> None:
    found = interval_codes(np.array(values, np.float64), cuts, np.dtype(np.uint8))
    assert found.tolist() == slow_codes(values, cuts)
    own = interval_codes(np.array(cuts, np.float64), cuts, np.dtype(np.uint8))
    assert own.tolist() == list(range(len(cuts)))  # intervals are closed on the right


@given(st.lists(st.floats(allow_nan=False, width=32), max_size=20), some_cuts)
def test_float32_is_compared_exactly(values: list[float], cuts: list[float]) -> None:
    found = interval_codes(np.array(values, np.float32), cuts, np.dtype(np.uint8))
    assert found.tolist() == slow_codes(values, cuts)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
@given(data=st.data())
def test_whole_numbers(dtype: type[np.integer], data: st.DataObject) -> None:
    limits = np.iinfo(dtype)
    values = data.draw(st.lists(st.integers(int(limits.min), int(limits.max)), max_size=20))
    cuts = data.draw(some_cuts)
    found = interval_codes(np.array(values, dtype), cuts, np.dtype(np.uint8))
    assert found.tolist() == slow_codes(values, cuts)


def test_many_cuts_and_many_blocks() -> None:
    cuts = np.arange(1000.0)
    values = np.linspace(-5, 1005, 40_000)
    found = interval_codes(values, cuts.tolist(), np.dtype(np.uint16))
    assert found.tolist() == np.searchsorted(cuts, values, side="left").tolist()
    assert (
        interval_codes(np.zeros(5, np.int8), [-1000.0 - i for i in range(300)][::-1], np.dtype(np.uint16)) == 300
    ).all()


def sizes(mass: list[float], n_groups: int) -> list[float]:
    ends = group_ends(np.array(mass, np.float64), n_groups)
    return [float(sum(group)) for group in np.split(np.array(mass), [end + 1 for end in ends])]


def test_equal_elements_are_shared_out_evenly() -> None:
    assert sizes([1.0] * 12, 4) == [3, 3, 3, 3]
    assert sizes([1.0] * 7, 3) == [2, 2, 3]


def test_the_heavy_stand_alone() -> None:
    assert group_ends(np.array([1.0, 1, 30, 1, 1, 1, 1]), 4) == [1, 2, 4]
    assert group_ends(np.array([30.0, 1, 1]), 2) == [0]
    assert group_ends(np.array([1.0, 30, 1, 30, 1]), 3) == [0, 1, 2, 3], "more stretches than groups"


def test_without_weight_the_last_group_takes_the_rest() -> None:
    assert group_ends(np.zeros(5), 3) == [0, 1]
    assert group_ends(np.array([0.0, 5.0, 0.0]), 2) == [0, 1]


def test_few_elements() -> None:
    assert group_ends(np.array([2.0]), 3) == []
    assert group_ends(np.array([2.0, 1.0]), 3) == [0]
    assert group_ends(np.array([2.0, 1.0]), 1) == []


@given(st.lists(st.integers(0, 40).map(float), min_size=1, max_size=30), st.integers(1, 12))
def test_laws(mass: list[float], n_groups: int) -> None:
    ends = group_ends(np.array(mass), n_groups)
    assert ends == sorted(set(ends))
    assert set(ends) <= set(range(len(mass) - 1))
    share = sum(mass) / n_groups
    heavy = [i for i, m in enumerate(mass) if m > share]
    assert len(ends) + 1 <= max(n_groups, 2 * len(heavy) + 1)
    assert all(i in ends or i == len(mass) - 1 for i in heavy)
    assert all(i - 1 in ends or i == 0 for i in heavy)
    if not heavy:
        assert len(ends) + 1 == min(n_groups, len(mass))


SCALES = [1.0, 0.1, 0.01, 0.003, 1e-4, 1e-5, 2.0**22, 1e300, 1e-320, 5e-324]


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2), st.integers(1, 3)), max_size=30),
    st.sampled_from(SCALES),
    st.booleans(),
)
def test_items_are_the_table_of_values_and_classes(
    rows: list[tuple[int, int, int]], scale: float, weighted: bool
) -> None:
    values = np.array([v * scale for v, _, _ in rows])
    labels = np.array([y for _, y, _ in rows], np.uint8)
    weights = np.array([w for _, _, w in rows], np.int64) if weighted else None
    expected: dict[tuple[float, int], int] = {}
    for v, y, w in zip(values.tolist(), labels.tolist(), (w for _, _, w in rows), strict=True):
        expected[v, y] = expected.get((v, y), 0) + (w if weighted else 1)

    found = ordered(values, labels, 3, weights)
    item_values = np.repeat(found.values, np.diff(found.ends, prepend=0))
    item_weights = np.ones(len(found.labels), np.int64) if found.weights is None else found.weights
    sums: dict[tuple[float, int], int] = {}
    for v, y, w in zip(item_values.tolist(), found.labels.tolist(), item_weights.tolist(), strict=True):
        sums[v, y] = sums.get((v, y), 0) + w
    assert sums == expected
    assert found.values.tolist() == sorted({v for v, _ in expected})
    assert not np.signbit(found.values[found.values == 0]).any()


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_midpoints_separate(a: float, b: float) -> None:
    if a < b:
        (middle,) = midpoints(np.array([a]), np.array([b]))
        assert a <= middle < b


@pytest.mark.parametrize("value", [3.4e38, 1e39, -1e39, 2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**24 + 1, 1e-45, 1e-46])
def test_numbers_at_the_edges_of_narrow_types_survive(value: float) -> None:
    found = ordered(np.array([value, 0.0, value]), np.array([1, 0, 0], np.uint8), 2, None)
    assert sorted(found.values.tolist()) == sorted([0.0, value])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20, unique=True), st.data())
def test_rounded_cuts_keep_the_rows_in_their_intervals(values: list[float], data: st.DataObject) -> None:
    column = np.sort(np.array(values) + 0.0)
    distinct = np.unique(column)
    cuts = midpoints(distinct[:-1], distinct[1:])[:: data.draw(st.integers(1, 3))]
    rounded = round_cuts(cuts.tolist(), column)
    kinds = np.dtype(np.uint8)
    assert interval_codes(column, rounded, kinds).tolist() == interval_codes(column, cuts.tolist(), kinds).tolist()


def test_rounded_cuts_have_as_few_digits_as_the_values_allow() -> None:
    values = np.array([-1.0, 30.0, 31.0, 31.25, 31.5, 1000.0, 1002.5])
    assert round_cuts(midpoints(values[:-1], values[1:]).tolist(), values) == (0.0, 30.5, 31.1, 31.4, 500.0, 1001.0)
