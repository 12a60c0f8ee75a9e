"""Predictions to a file or to stdout, in one of the formats SCORES, a batch of rows at a time.

Text has the shortest number that reads back as the same float64, or a fixed number of decimals. Conventions: without
a word about the format, the file's extension decides. Nearly all the cost is the text of the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from bncli.engine.explanation.contributions import Explanation
from bncli.engine.kernels.arrays import Array
from bncli.files.formats import SCORES, ScoreFormat, by_ending, score_format, score_formats
from bncli.files.output_streams import output_stream, write_faults
from bncli.files.score_layout import Layout, Predictions


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

    def __init__(self, file: BinaryIO, form: ScoreFormat, layout: Layout, piped: bool) -> None:
        self._layout = layout
        with write_faults():
            self._writer = form.write(file, layout, piped)

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

    `output_format`: one of SCORES; None = by the file's extension, else CSV.
    """
    path = None if output == "-" else output
    chosen = score_format(output_format or by_ending(path, score_formats()) or SCORES[0])
    with output_stream(path) as file:
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
