"""CSV predictions, as in RFC 4180 but with Unix line endings.

A field is quoted only if it must be, and a missing value is an empty field.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.prediction.contributions import Explanation
from bncli.files.exports import ScoreFormat
from bncli.files.exports.score_layout import LineFormat, TextScores, all_bytes, contribution_texts, text_bytes

_NULL_IS_EMPTY = {"null_handling": "replace", "null_replacement": ""}


def _header(names: Sequence[str]) -> bytes:
    fields = _escape(pa.array(names, pa.string())).to_pylist()
    return (",".join(fields) + "\n").encode()


def _escape(values: pa.Array) -> pa.Array:
    data = text_bytes(values)
    if not any((data == special).any() for special in b'",\r\n'):
        return values
    special = pc.match_substring_regex(values, '[",\r\n]')
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(values, '"', '""'), '"', "")
    return pc.if_else(special, quoted, values)


def _contributions(explanation: Explanation) -> list[pa.Array]:
    return [_escape(column) for column in contribution_texts(explanation)]


def _join(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
    last = pc.binary_join_element_wise(columns[-1], "\n", "", **_NULL_IS_EMPTY)
    rows = pc.binary_join_element_wise(*columns[:-1], last, ",", **_NULL_IS_EMPTY) if len(columns) > 1 else last
    return all_bytes(rows)


LINES = LineFormat(_header, _escape, _contributions, _join)
FORMAT = ScoreFormat("csv", "CSV", (".csv",), partial(TextScores, lines=LINES))
