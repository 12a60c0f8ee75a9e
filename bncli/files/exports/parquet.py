"""Parquet predictions, written in row groups of at least 2^17 rows; the last group may have fewer."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

from bncli.files.atomic import AbandonableStream
from bncli.files.exports import ScoreFormat, ScoreWriter
from bncli.files.exports.score_layout import Predictions, ScoreLayout, record_batch

ROWS_PER_GROUP = 1 << 17


class _ParquetScores(ScoreWriter):
    def __init__(self, file: BinaryIO, layout: ScoreLayout, piped: bool) -> None:
        from pyarrow import parquet

        self._layout = layout
        self._stream = AbandonableStream(file)
        self._writer: Any = parquet.ParquetWriter(self._stream, layout.arrow_schema)
        self._waiting: list[pa.RecordBatch] = []

    def piece(self, predictions: Predictions) -> pa.RecordBatch:
        return record_batch(predictions, self._layout)

    def write(self, piece: pa.RecordBatch) -> None:
        self._waiting.append(piece)
        if sum(batch.num_rows for batch in self._waiting) >= ROWS_PER_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting.clear()

    def finish(self) -> None:
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        self._stream.abandoned = True
        self._writer.close()


FORMAT = ScoreFormat("parquet", "Parquet", (".parquet",), _ParquetScores, is_text=False)
