import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.binning import interval_codes

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
