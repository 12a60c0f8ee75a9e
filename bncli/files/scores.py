"""Predictions to a file or to stdout: CSV, JSON lines, Parquet or Arrow, a batch of rows at a time.

Text has the shortest number that reads back as the same float64, or a fixed number of decimals. Decided here: without
a word about the format, the file's extension decides. Nearly all the cost is the text of the numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from bncli.engine.explanation.contributions import Explanation
from bncli.engine.kernels.arrays import Array
from bncli.errors import UsageError
from bncli.files.output_streams import outlet, write_faults
from bncli.files.score_formats import FORMATS, score_writer
from bncli.files.score_layout import Layout, Predictions

_EXTENSIONS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}
NOT_WRITTEN = (".tsv", ".tab", ".xlsx")
"""Endings of tables in formats that predictions are not written in."""
WRITTEN = "predictions are written as CSV, JSON lines (.jsonl), Parquet (.parquet) or Arrow (.arrow)"


class ScoreFile:
    """Where predictions go, batch by batch."""

    def __init__(self, file: BinaryIO, output_format: str, layout: Layout, piped: bool) -> None:
        self._layout = layout
        with write_faults():
            self._writer = score_writer(output_format, file, layout, piped)

    def write(
        self,
        kept: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None = None,
    ) -> None:
        """Rows in order: the kept columns, log P(y | x_t) of shape (K, N), and why, if the layout has room for it."""
        with write_faults():
            self._writer.write(Predictions.of(self._layout, kept, log_probabilities, explanation))

    def finish(self) -> None:
        """After the last batch."""
        with write_faults():
            self._writer.finish()

    def abandon(self) -> None:
        """In place of `finish`, where something failed."""
        self._writer.abandon()


@contextmanager
def open_scores(output: str | None, output_format: str | None, layout: Layout) -> Iterator[ScoreFile]:
    """A place to write predictions to: the file `output`, whole or not at all, or stdout (None or `-`).

    `output_format`: one of FORMATS; None = by the file's extension, else CSV.
    """
    path = None if output == "-" else output
    chosen = output_format or _EXTENSIONS.get(os.path.splitext(path or "")[1].lower(), "csv")
    if chosen not in FORMATS:
        raise UsageError(f"there is no output format {chosen!r}", hint=f"choose one of {', '.join(FORMATS)}")
    with outlet(path) as file:
        scores = ScoreFile(file, chosen, layout, piped=path is None)
        try:
            yield scores
            scores.finish()
        except BaseException:
            scores.abandon()
            raise


def write_predictions(
    path: str, labels: tuple[str, ...], log_probabilities: Array, *, digits: int | None = None
) -> None:
    """A whole table of predictions at once, as `open_scores` writes them; log_probabilities (K, N)."""
    with open_scores(path, None, Layout(labels, digits=digits)) as scores:
        for start in range(0, log_probabilities.shape[1], 1 << 16):
            scores.write((), log_probabilities[:, start : start + (1 << 16)])
