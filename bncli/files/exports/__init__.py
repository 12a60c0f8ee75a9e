"""The formats that models, structures and predictions are written in: one module a format, named by the word for it.

A module ends in its record, FORMAT:

    NetworkFormat, StructureFormat, ProgramFormat    `bncli export --to WORD`
    ScoreFormat                                      `bncli score --output-format WORD`

To add a format, write its module and put its word into EXPORTS or SCORES below; the command's help, the endings of file
names and the recognition of files by their content follow. Both lists are words alone, so that a command line that
names a format loads no other. The help of `bncli export` shows summaries, which lie in the records: so modules of
EXPORTS import what loads NumPy or the engine inside their functions.

The other modules here are what formats stand on: parsers, the escaping of names, lines of text.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.engine.networks.named_network import NamedNetwork
    from bncli.engine.prediction.portable import PortableScorer
    from bncli.engine.structures.named_structure import NamedStructure
    from bncli.files.exports.programs import ProgramTarget
    from bncli.files.exports.score_layout import Predictions, ScoreLayout


EXPORTS = ("bif", "xmlbif", "dot", "json", "python", "javascript", "sql", "onnx", "scorecard")
SCORES = ("csv", "jsonl", "parquet", "arrow")
"""The first is taken where neither a word nor the ending of a file name says another."""


class Signature(NamedTuple):
    """How files of a format are told from others: a regular expression for their first bytes, and "this is ...".

    JSON files and files with NUL bytes are told apart before any signature is looked at.
    """

    beginning: bytes
    description: str


class NetworkFormat(NamedTuple):
    """A format for networks with their probabilities.

    endings: of file names, lower case with the dot, the usual one first. `read`, where there is one, takes the bytes
    and the name of their file, for errors; what is read back is verified.
    """

    word: str
    summary: str
    endings: tuple[str, ...]
    write: Callable[[NamedNetwork], str]
    read: Callable[[bytes, str], NamedNetwork] | None = None
    signature: Signature | None = None


class StructureFormat(NamedTuple):
    """A format for structures alone, fields as in NetworkFormat."""

    word: str
    summary: str
    endings: tuple[str, ...]
    write: Callable[[NamedStructure], str]
    read: Callable[[bytes, str], NamedStructure] | None = None
    signature: Signature | None = None


class ProgramFormat(NamedTuple):
    """A format for programs that score rows by themselves.

    `run` takes what was written and rows (by the names of columns; None is a missing value), and returns their
    probabilities by label, None where what runs it is not at hand: `needs`, in words. What is no text needs a file.
    `rounds`: the option `digits` rounds numbers, None leaves them as they are.
    `remark` says of what was written, where something else runs it than it is for, what.
    `decide` runs what was written from a target with a rule, as `run`: labels, None for no decision. None: the format
    holds probabilities alone. `decides` says whether what was written was written so.
    """

    word: str
    summary: str
    endings: tuple[str, ...]
    write: Callable[[PortableScorer, ProgramTarget], str | bytes]
    run: Callable[[Any, list[dict[str, Any]]], list[list[float]] | None]
    needs: str = "Python"
    read: None = None
    signature: Signature | None = None
    is_text: bool = True
    rounds: bool = False
    remark: Callable[[Any], str | None] = lambda _: None
    decide: Callable[[Any, list[dict[str, Any]]], list[str | None] | None] | None = None
    decides: Callable[[Any], bool] = lambda _: False


ExportFormat = NetworkFormat | StructureFormat | ProgramFormat


Piece = Any
"""A batch of predictions in a format: bytes of text, or a record batch."""


class ScoreWriter(Protocol):
    """Where predictions go, batch by batch: made into pieces, here or elsewhere, that are written one after the other.

    The bytes of a whole follow from its pieces in their order, whatever was made where.
    """

    def piece(self, predictions: Predictions) -> Piece:
        """Return a batch of rows in the format."""

    def write(self, piece: Piece) -> None:
        """Write a piece made by this writer, or by another one of the same layout."""

    def finish(self) -> None:
        """After the last batch."""

    def abandon(self) -> None:
        """In place of `finish`, where something failed: no more bytes."""


class ScoreFormat(NamedTuple):
    """A format for predictions: `write(file, layout, piped)` begins them, `is_text` says whether a terminal takes them.

    What is written is a table as any other, which `bncli.files.reading` reads: there is no `read`.
    """

    word: str
    summary: str
    endings: tuple[str, ...]
    write: Callable[[BinaryIO, ScoreLayout, bool], ScoreWriter]
    is_text: bool = True


def export_format(word: str) -> ExportFormat:
    """Return the record of one of EXPORTS; UsageError for any other word."""
    found: ExportFormat = importlib.import_module(_module(word, EXPORTS)).FORMAT
    return found


def score_format(word: str) -> ScoreFormat:
    """Return the record of one of SCORES; UsageError for any other word."""
    found: ScoreFormat = importlib.import_module(_module(word, SCORES)).FORMAT
    return found


def _module(word: str, words: tuple[str, ...]) -> str:
    if word not in words:
        raise UsageError(f"there is no output format {word!r}", hint=f"choose one of {', '.join(words)}")
    return f"{__name__}.{word.replace('-', '_')}"


def export_formats() -> tuple[ExportFormat, ...]:
    """Return every record, in the order of EXPORTS."""
    return tuple(map(export_format, EXPORTS))


def score_formats() -> tuple[ScoreFormat, ...]:
    """Return every record, in the order of SCORES."""
    return tuple(map(score_format, SCORES))


def by_ending(path: str | None, formats: tuple[ExportFormat, ...] | tuple[ScoreFormat, ...]) -> str | None:
    """Return the word of the format whose ending the file name has, in capitals or not; None where no format has it."""
    ending = os.path.splitext(path or "")[1].lower()
    return next((form.word for form in formats if ending in form.endings), None)


BLANK = rb"\A(?:\xef\xbb\xbf)?(?:\s++|//[^\n]*+|/\*(?s:.*?)\*/|\#[^\n]*+)*+"
"""For signatures: what may stand before the first word of a file, a byte-order mark, blanks and comments as of C."""
NAME = rb"""(?:"[^"\n]*"|[^\s{}"]+)"""
"""For signatures: a name, quoted or not."""
