"""Predictions to a file or to stdout, in one of the formats SCORES, a batch of rows at a time.

Text has the shortest number that reads back as the same float64, or a fixed number of decimals. Conventions: without
a word about the format, the file's extension decides. Nearly all the cost is the text of the numbers.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.contributions import Explanation
from bncli.files.atomic import open_output, report_write_errors
from bncli.files.exports import SCORES, ScoreFormat, by_ending, score_format, score_formats
from bncli.files.exports.score_layout import Predictions, ScoreLayout


def _written() -> str:
    """CSV, JSON lines (.jsonl), ...: the formats with their usual endings, that of the first left out."""
    first, *others = score_formats()
    names = [first.summary, *(f"{form.summary} ({form.endings[0]})" for form in others)]
    return f"{', '.join(names[:-1])} or {names[-1]}"


WRITTEN = f"predictions are written as {_written()}"
NOT_WRITTEN = tuple(ending for ending in (".tsv", ".tab", ".xlsx") if not by_ending(f"x{ending}", score_formats()))
"""Endings of tables in formats that predictions are not written in."""


class ScoreFile:
    """Where predictions go, batch by batch."""

    def __init__(self, file: BinaryIO, form: ScoreFormat, layout: ScoreLayout, piped: bool) -> None:
        self._layout, self._is_text = layout, form.is_text
        with report_write_errors():
            self._writer = form.write(file, layout, piped)

    def write(
        self,
        kept: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None = None,
        added: Sequence[Sequence[str] | Array] = (),
    ) -> None:
        """Rows in order: the kept columns, log P(y | x_t) of shape (K, N), and what else the layout has columns for."""
        predictions = Predictions.of(self._layout, kept, log_probabilities, explanation, added)
        with report_write_errors():
            self._writer.write(self._writer.piece(predictions))

    def write_sent(self, piece: bytes) -> None:
        """Write a piece that a PieceMaker made elsewhere."""
        with report_write_errors():
            self._writer.write(
                pa.py_buffer(piece) if self._is_text else pa.ipc.read_record_batch(piece, self._layout.arrow)
            )

    def finish(self) -> None:
        """After the last batch."""
        with report_write_errors():
            self._writer.finish()

    def abandon(self) -> None:
        """In place of `finish`, where something failed."""
        self._writer.abandon()


class PieceMaker:
    """Predictions in a format, as bytes that `ScoreFile.write_sent` writes; nothing is written here."""

    def __init__(self, output: str | None, output_format: str | None, layout: ScoreLayout) -> None:
        self._layout = layout
        self._writer = _chosen(output, output_format).write(io.BytesIO(), layout, True)

    def piece(
        self,
        kept: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None,
        added: Sequence[Sequence[str] | Array] = (),
    ) -> bytes:
        """As `ScoreFile.write`."""
        made = self._writer.piece(Predictions.of(self._layout, kept, log_probabilities, explanation, added))
        # of a record batch that is a slice of a longer one, no more than its own rows
        sent: bytes = (made.serialize() if isinstance(made, pa.RecordBatch) else made).to_pybytes()
        return sent


@contextmanager
def open_scores(output: str | None, output_format: str | None, layout: ScoreLayout) -> Iterator[ScoreFile]:
    """Yield a place to write predictions to: the file `output`, whole or not at all, or stdout (None or `-`).

    `output_format`: one of SCORES; None = by the file's extension, else CSV.
    """
    path = None if output == "-" else output
    chosen = _chosen(path, output_format)
    with open_output(path) as file:
        scores = ScoreFile(file, chosen, layout, piped=path is None)
        try:
            yield scores
            scores.finish()
        except BaseException:
            scores.abandon()
            raise


def _chosen(path: str | None, word: str | None) -> ScoreFormat:
    return score_format(word or by_ending(path, score_formats()) or SCORES[0])


def write_predictions(
    path: str, labels: tuple[str, ...], log_probabilities: Array, *, digits: int | None = None
) -> None:
    """Write a whole table of predictions at once, as `open_scores` does; log_probabilities (K, N)."""
    with open_scores(path, None, ScoreLayout(labels, digits=digits)) as scores:
        for start in range(0, log_probabilities.shape[1], 1 << 16):
            scores.write((), log_probabilities[:, start : start + (1 << 16)])
