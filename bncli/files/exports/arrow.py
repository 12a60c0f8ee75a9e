"""Arrow predictions: an IPC file or, on standard output, an IPC stream, which can be read as it arrives.

An IPC file, also known as Feather version 2, can be memory-mapped.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

from bncli.files.exports import ScoreFormat, ScoreWriter
from bncli.files.exports.score_layout import Predictions, ScoreLayout, record_batch


class _ArrowScores(ScoreWriter):
    def __init__(self, file: BinaryIO, layout: ScoreLayout, piped: bool) -> None:
        self._file = file
        self._layout = layout
        self._writer: Any = (pa.ipc.new_stream if piped else pa.ipc.new_file)(file, layout.arrow_schema)

    def piece(self, predictions: Predictions) -> pa.RecordBatch:
        return record_batch(predictions, self._layout)

    def write(self, piece: pa.RecordBatch) -> None:
        self._writer.write_batch(piece)
        self._file.flush()

    def finish(self) -> None:
        self._writer.close()
        self._file.flush()


FORMAT = ScoreFormat("arrow", "Arrow", (".arrow", ".feather"), _ArrowScores, is_text=False)
