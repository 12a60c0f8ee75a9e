"""How a batch of predictions becomes bytes: lines of text, Parquet or Arrow. A writer is fed, then finished.

Decided here: Arrow into a pipe is an IPC stream, which can be read as it comes; into a file it is an IPC file (Feather
version 2), which can be mapped. Parquet gathers rows into groups of at least 2^17.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from bncli.engine.explanation.contributions import Explanation
from bncli.engine.kernels.arrays import Array
from bncli.files.decimals import Decimals, shortest
from bncli.files.explanations import contribution_objects, contribution_texts
from bncli.files.lines import CsvLines, JsonLines, LineFormat
from bncli.files.output_streams import Valve
from bncli.files.score_layout import Layout, Predictions

FORMATS = ("csv", "jsonl", "parquet", "arrow")
ROWS_PER_GROUP = 1 << 17


class ScoreWriter(Protocol):
    """What every format can do."""

    def write(self, predictions: Predictions) -> None:
        """A batch of rows."""

    def finish(self) -> None:
        """After the last batch."""

    def abandon(self) -> None:
        """In place of `finish`, where something failed: no more bytes."""


def score_writer(output_format: str, file: BinaryIO, layout: Layout, piped: bool) -> ScoreWriter:
    """The writer of one of FORMATS."""
    if output_format == "parquet":
        return _ParquetScores(file, layout)
    if output_format == "arrow":
        return _ArrowScores(file, layout, piped)
    return _TextScores(file, layout, CsvLines() if output_format == "csv" else JsonLines())


class _TextScores:
    def __init__(self, file: BinaryIO, layout: Layout, lines: LineFormat) -> None:
        self._file = file
        self._names = layout.names
        self._lines = lines
        self._labels = lines.strings(pa.array(layout.labels, pa.string()))
        self._number_text = _number_text(layout)
        file.write(lines.header(layout.names))

    def write(self, predictions: Predictions) -> None:
        columns = [self._lines.strings(column) for column in predictions.kept]
        columns.append(self._labels.take(pa.array(predictions.codes)))
        columns += [self._number_text(numbers) for numbers in predictions.numbers]
        columns += self._reasons(predictions.explanation)
        self._file.write(self._lines.lines(self._names, columns))
        self._file.flush()

    def _reasons(self, explanation: Explanation | None) -> list[pa.Array]:
        if explanation is None:
            return []
        if isinstance(self._lines, JsonLines):
            reasons = contribution_objects(explanation)
        else:
            reasons = [self._lines.strings(column) for column in contribution_texts(explanation)]
        log_odds, base, rest = map(shortest, (explanation.log_odds, explanation.base, explanation.rest))
        return [log_odds, base, *reasons, rest]

    def finish(self) -> None:
        self._file.flush()

    def abandon(self) -> None:
        """Nothing is held back."""


def _number_text(layout: Layout) -> Callable[[Array], pa.Array]:
    digits = layout.digits
    if digits is None:
        return shortest
    if layout.log_proba:
        return lambda numbers: shortest(np.round(numbers, digits))
    return Decimals(digits).text


class _ArrowScores:
    def __init__(self, file: BinaryIO, layout: Layout, piped: bool) -> None:
        self._file = file
        self._layout = layout
        self._writer: Any = (pa.ipc.new_stream if piped else pa.ipc.new_file)(file, layout.arrow)

    def write(self, predictions: Predictions) -> None:
        self._writer.write_batch(_record_batch(predictions, self._layout))
        self._file.flush()

    def finish(self) -> None:
        self._writer.close()
        self._file.flush()

    def abandon(self) -> None:
        """Nothing is held back."""


class _ParquetScores:
    def __init__(self, file: BinaryIO, layout: Layout) -> None:
        from pyarrow import parquet

        self._layout = layout
        self._valve = Valve(file)
        self._writer: Any = parquet.ParquetWriter(self._valve, layout.arrow)
        self._waiting: list[pa.RecordBatch] = []

    def write(self, predictions: Predictions) -> None:
        self._waiting.append(_record_batch(predictions, self._layout))
        if sum(batch.num_rows for batch in self._waiting) >= ROWS_PER_GROUP:
            self._write_group()

    def finish(self) -> None:
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        self._valve.shut = True
        self._writer.close()

    def _write_group(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting.clear()


def _record_batch(predictions: Predictions, layout: Layout) -> pa.RecordBatch:
    labels = pa.array(layout.labels, pa.string()).take(pa.array(predictions.codes))
    numbers = predictions.numbers
    if layout.digits is not None:
        numbers = tuple(np.round(column, layout.digits) for column in numbers)
    columns = [column.cast(pa.string()) for column in predictions.kept]
    columns += [labels, *(pa.array(column) for column in numbers)]
    if (why := predictions.explanation) is not None:
        columns += [pa.array(why.log_odds), pa.array(why.base), *contribution_texts(why), pa.array(why.rest)]
    return pa.record_batch(columns, schema=layout.arrow)
