import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.binning import midpoints, ordered

SCALES = [1.0, 0.1, 2.0**22, 1e300, 1e-320]


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
