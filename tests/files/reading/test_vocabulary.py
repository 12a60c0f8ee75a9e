from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import MISSING, UNSEEN
from bncli.files.reading.column_builder import EMPTY, ColumnBuilder, encode_texts
from bncli.files.reading.numbers import FEW
from bncli.files.reading.rows_by_schema import LevelLookup
from bncli.files.reading.source import ColumnRequest, MissingTokens, ValueKind
from bncli.files.reading.values import distinct_levels, encode_levels, sort_levels, strip_texts

words = st.sampled_from(["a", "b", " a", "10", "9", "9.0", "", "?", " ", "é", "NA"])


def test_levels_in_order() -> None:
    assert sort_levels(pa.array(["10", "9", "1e1", "9.0"])) == ("9", "9.0", "10", "1e1")
    assert sort_levels(pa.array(["10", "9", "x"])) == ("10", "9", "x")
    assert sort_levels(pa.array(["é", "z", "Z", "😀", "\uffff"])) == ("Z", "z", "é", "\uffff", "😀")
    assert sort_levels(EMPTY) == ()


@given(st.lists(words, max_size=20), st.lists(words, max_size=20))
def test_chunks_hold_the_texts_of_the_rows(first: list[str], second: list[str]) -> None:
    builder = ColumnBuilder(ColumnRequest("x", ValueKind.TEXT), is_free=False, tokens=MissingTokens.of(None))
    for texts in (first, second, first):
        block = encode_texts(pa.array(texts, pa.string()), builder.shared)
        assert [block.texts[int(code)].as_py() for code in block.codes] == texts
        builder.add(block, str)
    assert builder.shared.to_pylist() == list(dict.fromkeys([*first, *second]))


@given(st.lists(words, max_size=20))
def test_codes_by_a_models_levels(texts: list[str]) -> None:
    levels = ("b", "a", "9", "NA")
    for tokens in (MissingTokens.of(None), MissingTokens.of(("NA", "b"))):
        codes = LevelLookup.of(levels, tokens).encode(pa.array(texts, pa.string()))
        for text, code in zip(texts, codes.tolist(), strict=True):
            value = text.strip()
            known = levels.index(value) if value in levels else UNSEEN
            assert code == (MISSING if value in tokens.text else known)


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
