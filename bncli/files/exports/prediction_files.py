"""Write predictions to a file or to standard output, in one of the formats SCORES, one batch of rows at a time.

If no format is named, the extension of the file decides, and CSV is the default. Nearly all of the time is spent on
formatting numbers.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.prediction.contributions import Explanation
from bncli.files.atomic import open_output
from bncli.files.exports import SCORES, ScoreFormat, ScoreWriter, find_format, score_format, score_formats
from bncli.files.exports.score_layout import ExtraColumn, ExtraValues, Predictions, ScoreLayout

_DEFAULT, *_OTHERS = score_formats()
_NAMES = [_DEFAULT.summary, *(f"{form.summary} ({form.endings[0]})" for form in _OTHERS)]
SUPPORTED_FORMATS = f"predictions are written as {', '.join(_NAMES[:-1])} or {_NAMES[-1]}"
UNSUPPORTED_ENDINGS = tuple(e for e in (".tsv", ".tab", ".xlsx") if not find_format(f"x{e}", score_formats()))
"""File name extensions of table formats in which predictions cannot be written."""
_ROWS_PER_BATCH = 1 << 16


class ScoreFile:
    """An open output for predictions."""

    def __init__(self, writer: ScoreWriter, layout: ScoreLayout, is_text: bool) -> None:
        self._writer = writer
        self._layout = layout
        self._is_text = is_text

    def write(
        self,
        keep: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None = None,
        extra: Sequence[ExtraValues] = (),
    ) -> None:
        """Write the next rows: copied columns, ln P(y | x_t) of shape (K, N), and the other columns of the layout."""
        predictions = Predictions.of(self._layout, keep, log_probabilities, explanation, extra)
        self._writer.write(self._writer.piece(predictions))

    def write_piece(self, piece: bytes) -> None:
        """Write rows that a PieceMaker has formatted, perhaps in another process."""
        self._writer.write(
            pa.py_buffer(piece) if self._is_text else pa.ipc.read_record_batch(piece, self._layout.arrow_schema)
        )


@contextmanager
def open_scores(output: str | None, output_format: str | None, layout: ScoreLayout) -> Iterator[ScoreFile]:
    """Open an output for predictions: the file `output`, or standard output if it is None or `-`.

    A file appears only if the block succeeds. output_format: one of SCORES. None means the format with the
    extension of the file, or CSV if no format has it. Raises UsageError for any other format.
    """
    path = None if output == "-" else output
    form = _choose_format(path, output_format)
    with open_output(path) as file:
        writer = form.open_writer(file, layout, path is None)
        try:
            yield ScoreFile(writer, layout, form.is_text)
            writer.finish()
        except BaseException:
            writer.abandon()
            raise


def _choose_format(path: str | None, word: str | None) -> ScoreFormat:
    return score_format(word or find_format(path, score_formats()) or SCORES[0])


def write_predictions(path: str, labels: tuple[str, ...], log_probabilities: Array, codes: Integers) -> None:
    """Write the prediction and the true label of every row; the extension of `path` determines the format.

    log_probabilities: ln P(y | x_t), shape (K, N). codes: the true labels, (N,).
    """
    layout = ScoreLayout(labels, extra=(ExtraColumn("true_label", "text"),))
    with open_scores(path, None, layout) as scores:
        for start in range(0, len(codes), _ROWS_PER_BATCH):
            batch = slice(start, start + _ROWS_PER_BATCH)
            true_labels = [labels[code] for code in codes[batch].tolist()]
            scores.write((), log_probabilities[:, batch], extra=(true_labels,))


class PieceMaker:
    """A formatter of rows as bytes, to be written by `ScoreFile.write_piece`."""

    def __init__(self, output: str | None, output_format: str | None, layout: ScoreLayout) -> None:
        self._layout = layout
        self._writer = _choose_format(output, output_format).open_writer(io.BytesIO(), layout, True)

    def piece(
        self,
        keep: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None,
        extra: Sequence[ExtraValues] = (),
    ) -> bytes:
        """Format rows as bytes; the arguments are as in `ScoreFile.write`."""
        piece = self._writer.piece(Predictions.of(self._layout, keep, log_probabilities, explanation, extra))
        # `serialize` leaves out the rest of a longer batch that this one is a slice of.
        data: bytes = (piece.serialize() if isinstance(piece, pa.RecordBatch) else piece).to_pybytes()
        return data
