import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.discretizers.equal_frequency import cut_points


def cuts(values: list[float], bins: int, weights: list[float] | None = None) -> tuple[float, ...]:
    given_weights = None if weights is None else np.array(weights)
    return cut_points(np.array(values, np.float64), np.zeros(len(values), np.uint8), 1, given_weights, bins=bins)


def weight_of_intervals(values: list[float], found: tuple[float, ...]) -> list[int]:
    codes = np.searchsorted(np.array(found), np.array(values), side="left")
    return np.bincount(codes, minlength=len(found) + 1).tolist()


def test_distinct_values_are_shared_out_evenly() -> None:
    values = [float(v) for v in range(100)]
    assert cuts(values, 4) == (24.5, 49.5, 74.5)


def test_ten_intervals_by_default() -> None:
    found = cut_points(np.arange(50, dtype=np.int16), np.zeros(50, np.uint8), 1, None)
    assert found == (4.5, 9.5, 14.5, 19.5, 24.5, 29.5, 34.5, 39.5, 44.5)


def test_a_heavy_value_leaves_the_other_intervals_to_the_rest() -> None:
    """Plain quantiles of two thirds zeros give 4 intervals of 10."""
    values = [0.0] * 180 + [float(v) for v in range(1, 91)]
    found = cuts(values, 10)
    assert weight_of_intervals(values, found) == [180] + [10] * 9


def test_a_heavy_value_in_the_middle() -> None:
    values = [float(v) for v in range(30)] + [30.0] * 60 + [float(v) for v in range(31, 41)]
    assert weight_of_intervals(values, cuts(values, 5)) == [10, 10, 10, 60, 10]


def test_weights_count() -> None:
    assert cuts([1.0, 2.0, 3.0, 4.0], 2, [1.0, 1.0, 1.0, 3.0]) == (3.5,)
    assert cuts([1.0, 2.0, 3.0, 4.0], 2, [1.5, 0.5, 1.0, 1.0]) == (2.5,)


def test_degenerate_columns() -> None:
    assert cuts([], 10) == ()
    assert cuts([4.0] * 9, 10) == ()
    assert cuts([1.0, 2.0], 1) == ()
    assert cuts([3.0, 1.0, 2.0], 10) == (1.5, 2.5)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=80), st.integers(1, 12))
def test_laws(whole: list[int], bins: int) -> None:
    values = [float(v) for v in whole]
    found = cuts(values, bins)
    distinct = sorted(set(values))
    assert list(found) == sorted(set(found))
    assert set(found) <= {(a + b) / 2 for a, b in itertools.pairwise(distinct)}
    assert all(n > 0 for n in weight_of_intervals(values, found))
    heavy = [v for v in distinct if values.count(v) > len(values) / bins]
    if len(distinct) > 1:
        for v in heavy:  # alone in its interval
            assert weight_of_intervals(values, found)[int(np.searchsorted(found, v))] == values.count(v)
    assert len(found) < bins + len(heavy) + 1
    doubled = cuts(distinct, bins, [float(values.count(v)) for v in distinct])
    assert doubled == found


@given(st.integers(1, 300), st.integers(1, 40))
def test_without_ties_the_intervals_differ_by_one_row(n: int, bins: int) -> None:
    values = [float(v) for v in range(n)]
    sizes = weight_of_intervals(values, cuts(values, bins))
    assert len(sizes) == min(n, bins)
    assert max(sizes) - min(sizes) <= 1
