"""Columns of text -> the bytes of lines, a batch of rows at a time: what the formats of text stand on.

A line is put together by one vectorised join over the columns and the constant text between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.contributions import Explanation
from bncli.files.exports.score_layout import Decimals, ExtraColumn, Predictions, ScoreLayout, rounded_costs, shortest


class LineFormat(Protocol):
    """How a table becomes lines of text."""

    def header(self, names: Sequence[str]) -> bytes:
        """Return what stands before the first row."""

    def strings(self, values: pa.Array) -> pa.Array:
        """Return a column of strings as it is written."""

    def contributions(self, explanation: Explanation) -> list[pa.Array]:
        """Return each `explain_k` as it is written."""

    def lines(self, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Buffer:
        """Return the rows; columns of numbers come as their text, columns of strings from `strings`."""


class TextScores:
    """The writer of predictions as lines: numbers are the shortest text that reads back, or rounded."""

    def __init__(self, file: BinaryIO, layout: ScoreLayout, lines: LineFormat) -> None:
        self._file = file
        self._names = layout.names
        self._lines = lines
        self._labels = lines.strings(pa.array(layout.labels, pa.string()))
        self._number_text = _number_text(layout)
        self._digits = layout.digits
        self._added = layout.added
        file.write(lines.header(layout.names))

    def piece(self, predictions: Predictions) -> pa.Buffer:
        columns = [self._lines.strings(column) for column in predictions.kept]
        columns.append(self._labels.take(pa.array(predictions.codes)))
        columns += [self._number_text(numbers) for numbers in predictions.numbers]
        columns += [self._decided_text(column) for column in rounded_costs(predictions.decided, self._digits)]
        columns += self._reasons(predictions.explanation)
        columns += [self._added_text(*pair) for pair in zip(self._added, predictions.added, strict=True)]
        return self._lines.lines(self._names, columns)

    def write(self, piece: pa.Buffer) -> None:
        self._file.write(piece)
        self._file.flush()

    def _decided_text(self, column: pa.Array) -> pa.Array:
        if pa.types.is_floating(column.type):
            return shortest(column.to_numpy(zero_copy_only=False))
        return self._lines.strings(column)

    def _added_text(self, added: ExtraColumn, column: pa.Array) -> pa.Array:
        if added.kind == "text":
            return self._lines.strings(column)
        return (self._number_text if added.kind == "log_p" else shortest)(column.to_numpy())

    def _reasons(self, explanation: Explanation | None) -> list[pa.Array]:
        if explanation is None:
            return []
        reasons = self._lines.contributions(explanation)
        log_odds, base, rest = map(shortest, (explanation.log_odds, explanation.base, explanation.rest))
        return [log_odds, base, *reasons, rest]

    def finish(self) -> None:
        self._file.flush()

    def abandon(self) -> None:
        """Nothing is held back."""


def text_bytes(values: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of all strings, one after the other."""
    _, offsets, data = values.buffers()
    if data is None:
        return np.empty(0, np.uint8)
    bounds = memoryview(offsets).cast("i")
    return np.frombuffer(data, np.uint8)[bounds[values.offset] : bounds[values.offset + len(values)]]


def all_bytes(lines: pa.Array) -> pa.Buffer:
    """Return the bytes of a fresh array of strings, without a copy."""
    _, offsets, data = lines.buffers()
    if not len(lines):
        return pa.py_buffer(b"")
    return data.slice(0, memoryview(offsets).cast("i")[len(lines)])


def _number_text(layout: ScoreLayout) -> Callable[[Array], pa.Array]:
    digits = layout.digits
    if digits is None:
        return shortest
    if layout.log_proba:
        return lambda numbers: shortest(np.round(numbers, digits))
    return Decimals(digits).text
