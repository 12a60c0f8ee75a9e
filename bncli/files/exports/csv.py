"""CSV: RFC 4180, with the line end of Unix.

Conventions: a field is quoted only where it has to be, and a missing value is an empty field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.prediction.contributions import Explanation
from bncli.files.exports import ScoreFormat, ScoreWriter
from bncli.files.exports.lines import TextScores, all_bytes, text_bytes
from bncli.files.exports.score_layout import ScoreLayout, contribution_texts

_NULL_IS_EMPTY = {"null_handling": "replace", "null_replacement": ""}


class CsvLines:
    """A header, then a line per row."""

    def header(self, names: Sequence[str]) -> bytes:
        fields = self.strings(pa.array(names, pa.string())).to_pylist()
        return (",".join(fields) + "\n").encode()

    def strings(self, values: pa.Array) -> pa.Array:
        data = text_bytes(values)
        if not any((data == special).any() for special in b'",\r\n'):
            return values
        special = pc.match_substring_regex(values, '[",\r\n]')
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(values, '"', '""'), '"', "")
        return pc.if_else(special, quoted, values)

    def contributions(self, explanation: Explanation) -> list[pa.Array]:
        return [self.strings(column) for column in contribution_texts(explanation)]

    def lines(self, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
        last = pc.binary_join_element_wise(columns[-1], "\n", "", **_NULL_IS_EMPTY)
        rows = pc.binary_join_element_wise(*columns[:-1], last, ",", **_NULL_IS_EMPTY) if len(columns) > 1 else last
        return all_bytes(rows)


def _write(file: BinaryIO, layout: ScoreLayout, piped: bool) -> ScoreWriter:
    return TextScores(file, layout, CsvLines())


FORMAT = ScoreFormat("csv", "CSV", (".csv",), _write)
