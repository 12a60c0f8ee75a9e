"""Predictions as lines of text, one batch of rows at a time, for CSV and JSON lines.

The lines of a batch are one vectorised join of the columns and the constant text between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.contributions import Explanation
from bncli.files.exports import ScoreWriter
from bncli.files.exports.score_layout import FixedDecimals, Predictions, ScoreLayout, shortest


class LineFormat(NamedTuple):
    """A format of lines of text, as functions.

    header: returns the bytes before the first row, given the column names. escape: returns a column of strings,
    escaped. contributions: returns each column `explain_k` as text. join: returns the bytes of the rows, given the
    column names and the columns, with numbers as text and strings escaped.
    """

    header: Callable[[Sequence[str]], bytes]
    escape: Callable[[pa.Array], pa.Array]
    contributions: Callable[[Explanation], list[pa.Array]]
    join: Callable[[Sequence[str], Sequence[pa.Array]], pa.Buffer]


class TextScores(ScoreWriter):
    """A writer of predictions as lines; numbers have the shortest text that reads back, or fixed decimals."""

    def __init__(self, file: BinaryIO, layout: ScoreLayout, piped: bool, lines: LineFormat) -> None:
        self._file = file
        self._layout = layout
        self._names = layout.names
        self._lines = lines
        self._labels = lines.escape(pa.array(layout.labels, pa.string()))
        fixed = layout.digits is not None and not layout.log_proba
        self._decimals = FixedDecimals(layout.digits or 0) if fixed else None
        file.write(lines.header(layout.names))

    def piece(self, predictions: Predictions) -> pa.Buffer:
        """Return the bytes of the rows."""
        escape = self._lines.escape
        columns = [escape(column) for column in predictions.keep]
        labels = self._labels.take(pa.array(predictions.codes))
        columns.append(labels)
        columns += [self._probability_text(numbers) for numbers in predictions.probabilities]
        for column in predictions.decisions:
            is_number = pa.types.is_floating(column.type)
            columns.append(shortest(column.to_numpy(zero_copy_only=False)) if is_number else escape(column))
        if (why := predictions.explanation) is not None:
            log_odds, base, rest = map(shortest, (why.log_odds, why.base, why.rest))
            columns += [log_odds, base, *self._lines.contributions(why), rest, labels]
        for extra, column in zip(self._layout.written_extra, predictions.extra, strict=True):
            if extra.kind in ("text", "values"):
                columns.append(escape(column))
            elif extra.kind == "flag":
                columns.append(column.cast(pa.string()))
            elif extra.kind == "log_p":
                columns.append(self._probability_text(column.to_numpy()))
            else:
                columns.append(shortest(column.to_numpy()))
        return self._lines.join(self._names, columns)

    def _probability_text(self, numbers: Array) -> pa.Array:
        if self._decimals is not None:
            return self._decimals.text(numbers)
        return shortest(numbers if self._layout.digits is None else np.round(numbers, self._layout.digits))

    def write(self, piece: pa.Buffer) -> None:
        self._file.write(piece)
        self._file.flush()

    def finish(self) -> None:
        self._file.flush()


def text_bytes(values: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of all strings of a column, one after the other."""
    _, offsets, data = values.buffers()
    if data is None:
        return np.empty(0, np.uint8)
    bounds = memoryview(offsets).cast("i")
    return np.frombuffer(data, np.uint8)[bounds[values.offset] : bounds[values.offset + len(values)]]


def all_bytes(lines: pa.Array) -> pa.Buffer:
    """Return the bytes of an array of strings that is not a slice, without copying them."""
    _, offsets, data = lines.buffers()
    if not len(lines):
        return pa.py_buffer(b"")
    return data.slice(0, memoryview(offsets).cast("i")[len(lines)])
