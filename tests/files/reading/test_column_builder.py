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


@given(st.lists(integers | floats, max_size=5), st.integers(0, 50) | st.just(1 << 62))
def test_numbers_are_the_same_whatever_number_of_rows_is_reserved(chunks: list[np.ndarray], n_rows: int) -> None:
    """Fewer rows, more, and more than any memory holds; blocks may be empty, and of types that differ."""
    request = ColumnRequest("x", ValueKind.NUMBER)
    found, expected = (ColumnBuilder(request, is_free=False, tokens=MissingTokens.of(None)) for _ in range(2))
    found.reserve(n_rows)
    for chunk in map(narrow_numbers, chunks):
        found.add(chunk.copy(), str)
        expected.add(chunk, str)
    copied, own, other = found.copy().numeric(), found.numeric(), expected.numeric()
    assert own.values.dtype == other.values.dtype
    np.testing.assert_array_equal(own.values, other.values)
    np.testing.assert_array_equal(copied.values, other.values)


@given(st.lists(st.lists(words, max_size=20), max_size=5), st.integers(0, 80) | st.just(1 << 62))
def test_texts_are_the_same_whatever_number_of_rows_is_reserved(chunks: list[list[str]], n_rows: int) -> None:
    request = ColumnRequest("x", ValueKind.TEXT)
    found, expected = (ColumnBuilder(request, is_free=False, tokens=MissingTokens.of(None)) for _ in range(2))
    found.reserve(n_rows)
    for i, texts in enumerate(chunks):
        values = pa.array(texts, pa.string())
        for builder in (found, expected):
            builder.add(encode_texts(values.dictionary_encode() if i % 2 else values, builder.shared), str)
    copied, own, other = found.copy().categorical(), found.categorical(), expected.categorical()
    assert own.levels == copied.levels == other.levels
    assert own.codes.dtype == other.codes.dtype
    np.testing.assert_array_equal(own.codes, other.codes)
    np.testing.assert_array_equal(copied.codes, other.codes)


def test_reserved_memory_holds_the_finished_column() -> None:
    request = ColumnRequest("x", ValueKind.NUMBER)
    builder = ColumnBuilder(request, is_free=False, tokens=MissingTokens.of(None))
    builder.reserve(6)
    for values in ([1.5, 2.5], [], [3.5, np.nan], [4.0, 5.0]):
        builder.add(np.array(values), str)
    blocks = [block for block in builder.blocks if isinstance(block, np.ndarray) and len(block)]
    whole = builder.numeric().values
    assert whole.tolist()[:3] == [1.5, 2.5, 3.5]
    assert all(np.shares_memory(block, whole) for block in blocks)


@given(st.lists(words, max_size=9), st.lists(st.integers(0, 8), max_size=20), st.lists(words, max_size=9, unique=True))
def test_dictionaries_may_repeat_texts_and_hold_unused_ones(
    texts: list[str], codes: list[int], known: list[str]
) -> None:
    codes = [code for code in codes if code < len(texts)]
    values = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(texts, pa.string()))
    block = encode_texts(values, pa.array(known, pa.string()))
    assert [block.texts[int(code)].as_py() for code in block.codes] == [texts[code] for code in codes]
    distinct = block.texts.to_pylist()
    assert len(set(distinct)) == len(distinct)
    assert distinct == known or set(distinct) == {texts[code] for code in codes}
