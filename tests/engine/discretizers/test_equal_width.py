import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.discretizers.equal_width import cut_points


def cuts(values: list[float], bins: int) -> tuple[float, ...]:
    return cut_points(np.array(values, np.float64), np.zeros(len(values), np.uint8), 1, None, bins=bins)


def test_ten_intervals_by_default() -> None:
    found = cut_points(np.array([0, 20, 3], np.int8), np.zeros(3, np.uint8), 1, None)
    assert found == (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.integers(1, 30))
def test_cuts_ascend_inside_the_range(values: list[float], bins: int) -> None:
    found = cuts(values, bins)
    assert len(found) < bins
    assert list(found) == sorted(set(found))
    assert all(min(values) <= c < max(values) for c in found)


@given(st.integers(-1000, 1000), st.integers(1, 1000), st.integers(1, 20))
def test_cuts_are_evenly_spaced(low: int, width: int, bins: int) -> None:
    expected = [low + width * i / bins for i in range(1, bins)]
    assert cuts([float(low), float(low + width)], bins) == pytest.approx(expected, rel=1e-13, abs=1e-12)


def test_degenerate_columns() -> None:
    assert cuts([], 10) == ()
    assert cuts([4.0, 4.0], 10) == ()
    assert cuts([1.0, np.nextafter(1.0, 2)], 10) == (1.0,)
    assert len(cuts([-1.7e308, 1.7e308], 4)) == 3
