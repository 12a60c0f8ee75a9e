from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bncli.files.reading.column_builder import ColumnBuilder
from bncli.files.reading.source import ColumnRequest, MissingTokens, ValueKind
from bncli.files.reading.values import narrow_numbers

integers = hnp.arrays(np.int64, st.integers(0, 8), elements=st.integers(-(2**40), 2**40) | st.integers(-200, 200))
floats = hnp.arrays(
    np.float64, st.integers(0, 8), elements=st.floats(allow_infinity=False) | st.integers(-9, 9).map(float)
)


@given(st.lists(integers | floats, max_size=5))
def test_the_same_numbers_in_fewer_bytes(chunks: list[np.ndarray]) -> None:
    narrow = [narrow_numbers(chunk) for chunk in chunks]
    for chunk, small in zip(chunks, narrow, strict=True):
        assert small.dtype.itemsize <= chunk.dtype.itemsize
        np.testing.assert_array_equal(small.astype(np.float64), chunk.astype(np.float64))
    builder = ColumnBuilder(ColumnRequest("x", ValueKind.NUMBER), is_free=False, tokens=MissingTokens.of(None))
    for chunk in narrow:
        builder.add(chunk, str)
    joined = builder.numeric().values
    whole = np.concatenate([np.empty(0), *(chunk.astype(np.float64) for chunk in chunks)])
    np.testing.assert_array_equal(joined.astype(np.float64), whole)
    if np.isnan(whole).any():
        assert joined.dtype == np.float64


def test_small_integers_take_a_byte() -> None:
    assert narrow_numbers(np.array([-128, 127])).dtype == np.int8
    assert narrow_numbers(np.array([128])).dtype == np.int16
    assert narrow_numbers(np.array([2**31])).dtype == np.float64
    assert narrow_numbers(np.array([0.5, np.nan])).dtype == np.float32
    assert narrow_numbers(np.array([0.1])).dtype == np.float64
    assert narrow_numbers(np.array([1e300])).dtype == np.float64
