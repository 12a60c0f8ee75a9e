"""Texts to levels and codes, and numbers in narrow types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import UNSEEN
from bncli.files.reading.column_builder import EMPTY
from bncli.files.reading.numbers import FEW
from bncli.files.reading.values import distinct_levels, encode_levels, narrow_numbers, sort_levels, strip_texts


def test_small_integers_take_a_byte() -> None:
    assert narrow_numbers(np.array([-128, 127])).dtype == np.int8
    assert narrow_numbers(np.array([128])).dtype == np.int16
    assert narrow_numbers(np.array([2**31])).dtype == np.float64
    assert narrow_numbers(np.array([0.5, np.nan])).dtype == np.float32
    assert narrow_numbers(np.array([0.1])).dtype == np.float64
    assert narrow_numbers(np.array([1e300])).dtype == np.float64


words = st.sampled_from(["a", "b", " a", "10", "9", "9.0", "", "?", " ", "é", "NA"])


def test_levels_in_order() -> None:
    assert sort_levels(pa.array(["10", "9", "1e1", "9.0"])) == ("9", "9.0", "10", "1e1")
    assert sort_levels(pa.array(["10", "9", "x"])) == ("10", "9", "x")
    assert sort_levels(pa.array(["é", "z", "Z", "😀", "\uffff"])) == ("Z", "z", "é", "\uffff", "😀")
    assert sort_levels(EMPTY) == ()


@given(st.lists(words, max_size=20))
def test_many_texts_are_looked_at_as_few_are(texts: list[str]) -> None:
    few, many = pa.array(texts, pa.string()), pa.array(texts * FEW, pa.string())
    missing, levels = ("", "?", "NA"), ("b", "a", "9")
    trimmed, is_missing = strip_texts(few, missing)
    trimmed_many, is_missing_many = strip_texts(many, missing)
    assert trimmed_many.to_pylist() == trimmed.to_pylist() * FEW
    assert is_missing_many.tolist() == is_missing.tolist() * FEW
    assert distinct_levels(few, missing).to_pylist() == distinct_levels(many, missing).to_pylist()
    assert (
        encode_levels(many, levels, missing, UNSEEN).tolist()
        == encode_levels(few, levels, missing, UNSEEN).tolist() * FEW
    )
