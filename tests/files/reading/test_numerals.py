from __future__ import annotations

import math
import re

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.reading.numbers import FEW, to_numbers

MISSING = ("", "?", "NA")
DECIMAL = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*", re.ASCII)
words = st.one_of(
    st.text(" \t+-.0189eExXnaif_?N", max_size=8),
    st.floats(allow_nan=False).map(repr),
    st.integers().map(str),
    st.sampled_from(["", " ?", "NA", "nan", "1e400", "-1e-400", "0x10", "1e308", "\u0661"]),
)


@given(st.lists(words, max_size=12), st.sampled_from([1, FEW]))
def test_texts_are_numbers_missing_or_wrong(texts: list[str], times: int) -> None:
    texts = times * texts  # few and many have ways of their own
    values, wrong = to_numbers(pa.array(texts, pa.string()), MISSING)
    for i, text in enumerate(texts):
        is_missing = text.strip(" \t") in MISSING
        is_number = not is_missing and DECIMAL.fullmatch(text) is not None and math.isfinite(float(text))
        assert (wrong is not None and bool(wrong[i])) == (not is_missing and not is_number)
        np.testing.assert_equal(values[i], float(text) if is_number else np.nan)
