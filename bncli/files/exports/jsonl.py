"""JSON lines: one object a row, keys in column order; a missing value is null."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.prediction.contributions import Explanation
from bncli.files.exports import ScoreFormat, ScoreWriter
from bncli.files.exports.lines import TextScores, all_bytes, text_bytes
from bncli.files.exports.score_layout import ScoreLayout, contribution_objects


class JsonLines:
    """No header; a line per row."""

    def header(self, names: Sequence[str]) -> bytes:
        return b""

    def strings(self, values: pa.Array) -> pa.Array:
        data = text_bytes(values)
        if data.min(initial=255) < ord(" ") or any((data == special).any() for special in b'"\\'):
            coded = values.dictionary_encode()
            escaped = pa.array(_escaped(coded.dictionary.to_pylist()), pa.string())
            return escaped.take(coded.indices).fill_null("null")
        return pc.binary_join_element_wise('"', values, '"', "").fill_null("null")

    def contributions(self, explanation: Explanation) -> list[pa.Array]:
        return contribution_objects(explanation)

    def lines(self, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
        parts: list[pa.Array | str] = []
        before = "{"
        for key, column in zip(_escaped(names), columns, strict=True):
            parts += [f"{before}{key}:", column]
            before = ","
        return all_bytes(pc.binary_join_element_wise(*parts, "}\n", ""))


def _escaped(texts: Iterable[str]) -> list[str]:
    return [json.dumps(text, ensure_ascii=False) for text in texts]


def _write(file: BinaryIO, layout: ScoreLayout, piped: bool) -> ScoreWriter:
    return TextScores(file, layout, JsonLines())


FORMAT = ScoreFormat("jsonl", "JSON lines", (".jsonl", ".ndjson"), _write)
