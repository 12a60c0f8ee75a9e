"""JSON lines: predictions with one object per row, keys in column order, and null for a missing value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from bncli.files.exports import ScoreFormat
from bncli.files.exports.score_layout import LineFormat, TextScores, all_bytes, contribution_objects, text_bytes


def _escape(values: pa.Array) -> pa.Array:
    data = text_bytes(values)
    if data.min(initial=255) < ord(" ") or any((data == special).any() for special in b'"\\'):
        encoded = values.dictionary_encode()
        escaped = pa.array(_json_strings(encoded.dictionary.to_pylist()), pa.string())
        return escaped.take(encoded.indices).fill_null("null")
    return pc.binary_join_element_wise('"', values, '"', "").fill_null("null")


def _join(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
    parts: list[pa.Array | str] = []
    before = "{"
    for key, column in zip(_json_strings(names), columns, strict=True):
        parts += [f"{before}{key}:", column]
        before = ","
    return all_bytes(pc.binary_join_element_wise(*parts, "}\n", ""))


def _json_strings(texts: Iterable[str]) -> list[str]:
    return [json.dumps(text, ensure_ascii=False) for text in texts]


LINES = LineFormat(lambda names: b"", _escape, contribution_objects, _join)
FORMAT = ScoreFormat("jsonl", "JSON lines", (".jsonl", ".ndjson"), partial(TextScores, lines=LINES))
