"""Blocks of a column: coded texts and numbers in narrow types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bncli.files.reading.column_builder import ColumnBuilder, encode_texts
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


words = st.sampled_from(["a", "b", " a", "10", "9", "9.0", "", "?", " ", "é", "NA"])


@given(st.lists(words, max_size=20), st.lists(words, max_size=20))
def test_chunks_hold_the_texts_of_the_rows(first: list[str], second: list[str]) -> None:
    builder = ColumnBuilder(ColumnRequest("x", ValueKind.TEXT), is_free=False, tokens=MissingTokens.of(None))
    for texts in (first, second, first):
        block = encode_texts(pa.array(texts, pa.string()), builder.shared)
        assert [block.texts[int(code)].as_py() for code in block.codes] == texts
        builder.add(block, str)
    assert builder.shared.to_pylist() == list(dict.fromkeys([*first, *second]))
