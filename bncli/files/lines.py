"""Columns of text -> the bytes of CSV or JSON lines, a batch of rows at a time.

A line is put together by one vectorised join over the columns and the constant text between them. Decided here: a CSV
field is quoted only where it has to be, and a hole is an empty field; in JSON it is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_HOLE_IS_EMPTY = {"null_handling": "replace", "null_replacement": ""}


class LineFormat(Protocol):
    """How a table becomes lines of text."""

    def header(self, names: Sequence[str]) -> bytes:
        """What stands before the first row."""

    def strings(self, values: pa.Array) -> pa.Array:
        """A column of strings as it is written."""

    def lines(self, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
        """The rows; columns of numbers come as their text, columns of strings from `strings`."""


class CsvLines:
    """RFC 4180, with the line end of Unix."""

    def header(self, names: Sequence[str]) -> bytes:
        fields = self.strings(pa.array(names, pa.string())).to_pylist()
        return (",".join(fields) + "\n").encode()

    def strings(self, values: pa.Array) -> pa.Array:
        data = _bytes(values)
        if not any((data == special).any() for special in b'",\r\n'):
            return values
        special = pc.match_substring_regex(values, '[",\r\n]')
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(values, '"', '""'), '"', "")
        return pc.if_else(special, quoted, values)

    def lines(self, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
        last = pc.binary_join_element_wise(columns[-1], "\n", "", **_HOLE_IS_EMPTY)
        rows = pc.binary_join_element_wise(*columns[:-1], last, ",", **_HOLE_IS_EMPTY) if len(columns) > 1 else last
        return _all_bytes(rows)


class JsonLines:
    """One JSON object a row, keys in column order."""

    def header(self, names: Sequence[str]) -> bytes:
        return b""

    def strings(self, values: pa.Array) -> pa.Array:
        data = _bytes(values)
        if data.min(initial=255) < ord(" ") or any((data == special).any() for special in b'"\\'):
            coded = values.dictionary_encode()
            escaped = pa.array(_escaped(coded.dictionary.to_pylist()), pa.string())
            return escaped.take(coded.indices).fill_null("null")
        return pc.binary_join_element_wise('"', values, '"', "").fill_null("null")

    def lines(self, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
        pieces: list[pa.Array | str] = []
        before = "{"
        for key, column in zip(_escaped(names), columns, strict=True):
            pieces += [f"{before}{key}:", column]
            before = ","
        return _all_bytes(pc.binary_join_element_wise(*pieces, "}\n", ""))


def _bytes(values: pa.Array) -> NDArray[np.uint8]:
    """The bytes of all strings, one after the other."""
    _, offsets, data = values.buffers()
    if data is None:
        return np.empty(0, np.uint8)
    bounds = memoryview(offsets).cast("i")
    return np.frombuffer(data, np.uint8)[bounds[values.offset] : bounds[values.offset + len(values)]]


def _escaped(texts: Iterable[str]) -> list[str]:
    return [json.dumps(text, ensure_ascii=False) for text in texts]


def _all_bytes(lines: pa.Array) -> pa.Buffer:
    """The bytes of a fresh array of strings, without a copy."""
    _, offsets, data = lines.buffers()
    if not len(lines):
        return pa.py_buffer(b"")
    return data.slice(0, memoryview(offsets).cast("i")[len(lines)])
