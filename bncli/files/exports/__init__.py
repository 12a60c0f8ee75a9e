"""The formats in which models, structures and predictions are written: one module per format, named after its word.

Each of these modules defines FORMAT, the record of its format:

    NetworkFormat, StructureFormat, ProgramFormat    `bncli export --to WORD`
    ScoreFormat                                      `bncli score --output-format WORD`

To add a format, write its module and add its word to EXPORTS or SCORES below. The help, the file name extensions and
the recognition of files by their content follow from it. Both lists contain words only, so that a command that uses one
format loads no other. The help of `bncli export` shows the summaries of all records, so the modules of EXPORTS import
NumPy and the engine only inside their functions.

- networks: `bif`, `xmlbif`; structures: `dot`, `json`
- programs: `python`, `javascript`, `sql`, `onnx`, `scorecard`
- predictions: `csv`, `jsonl`, `parquet`, `arrow`

The other modules are shared by several formats or load heavy libraries for one:

- `network_text`: legal names and tokens of network files
- `structure_json`: structures as JSON, also in model files and reports
- `programs`: the data of programs that score rows
- `sql_layers`: the query of a model in each dialect of SQL
- `onnx_graph`: the nodes of an ONNX graph
- `score_layout`: the columns of predictions, as Arrow batches or lines of text
- `prediction_files`: predictions written to a file or to standard output
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.engine.networks.network import NamedNetwork
    from bncli.engine.prediction.portable import PortableScorer
    from bncli.engine.structures.named_structure import NamedStructure
    from bncli.files.exports.programs import ProgramTarget
    from bncli.files.exports.score_layout import Predictions, ScoreLayout

EXPORTS = ("bif", "xmlbif", "dot", "json", "python", "javascript", "sql", "onnx", "scorecard")
SCORES = ("csv", "jsonl", "parquet", "arrow")
"""The first is the default, unless an option or the extension of the file name chooses another."""
BLANK = rb"\A(?:\xef\xbb\xbf)?(?:\s++|//[^\n]*+|/\*(?s:.*?)\*/|\#[^\n]*+)*+"
"""For signatures: a byte-order mark, blanks and comments (`//`, `/* */`, `#`) before the first word of a file."""
NAME = rb"""(?:"[^"\n]*"|[^\s{}"]+)"""
"""For signatures: a name, in quotes or not."""


class Signature(NamedTuple):
    """A pattern that recognises files of a format by their first bytes, and a description that completes "this is ...".

    JSON files and files with NUL bytes are recognised before any signature is tried.
    """

    beginning: bytes
    description: str


class NetworkFormat(NamedTuple):
    """A format for networks with their probabilities.

    endings: file name extensions in lower case with the dot, the usual one first. `write` returns the text of the file.
    `read`, if there is one, takes the bytes and the name of the file (for errors). A network in a format that can be
    read is verified by reading it back.
    """

    word: str
    summary: str
    endings: tuple[str, ...]
    write: Callable[[NamedNetwork], str]
    read: Callable[[bytes, str], NamedNetwork] | None = None
    signature: Signature | None = None


class StructureFormat(NamedTuple):
    """A format for structures without probabilities, with the same fields as NetworkFormat."""

    word: str
    summary: str
    endings: tuple[str, ...]
    write: Callable[[NamedStructure], str]
    read: Callable[[bytes, str], NamedStructure] | None = None
    signature: Signature | None = None


class ProgramFormat(NamedTuple):
    """A format for programs that score rows without bncli.

    write: returns the program. run: runs a program on rows (values by column name, None is missing) and returns the
    probabilities of the labels per row, or None if the software that it needs (`needs`, in words) is not installed.
    remark: returns a note about the run, for example that the program was run by a database other than the one it is
    written for, or None. decide: runs a program that was written with a decision rule and returns a label per row,
    which is None if the rule abstains. It returns None in place of the list if the software is not installed. A format
    without decisions has no such function. decides: returns whether a program contains decisions. rounds: whether the
    option `digits` rounds the points. is_text: if false, the format needs an output file.
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
"""A formatted batch of predictions: bytes of text, or a record batch."""


class ScoreWriter(Protocol):
    """A writer of predictions that works in two steps: it formats each batch as a piece, and writes pieces in order.

    Pieces can be formatted in another process, by a writer with the same layout.
    """

    def piece(self, predictions: Predictions) -> Piece:
        """Format a batch of rows as a piece."""

    def write(self, piece: Piece) -> None:
        """Write a piece."""

    def finish(self) -> None:
        """Write the remaining output after the last piece."""

    def abandon(self) -> None:
        """Release resources without writing; called instead of `finish` after an error. Does nothing by default."""
        return


class ScoreFormat(NamedTuple):
    """A format for predictions.

    open_writer: starts the output, given the file, the layout, and whether the file is standard output. is_text:
    whether the format can be shown in a terminal. There is no `read`: the output is a table, which
    `bncli.files.reading` reads.
    """

    word: str
    summary: str
    endings: tuple[str, ...]
    open_writer: Callable[[BinaryIO, ScoreLayout, bool], ScoreWriter]
    is_text: bool = True


def export_format(word: str) -> ExportFormat:
    """Import a format of EXPORTS and return its record; raise UsageError for any other word."""
    record: ExportFormat = _record(word, EXPORTS)
    return record


def score_format(word: str) -> ScoreFormat:
    """Import a format of SCORES and return its record; raise UsageError for any other word."""
    record: ScoreFormat = _record(word, SCORES)
    return record


def _record(word: str, words: tuple[str, ...]) -> Any:
    if word not in words:
        raise UsageError(f"there is no output format {word!r}", hint=f"choose one of {', '.join(words)}")
    return importlib.import_module(f"{__name__}.{word.replace('-', '_')}").FORMAT


def export_formats() -> tuple[ExportFormat, ...]:
    """Return the records of all formats in EXPORTS, in that order."""
    return tuple(map(export_format, EXPORTS))


def score_formats() -> tuple[ScoreFormat, ...]:
    """Return the records of all formats in SCORES, in that order."""
    return tuple(map(score_format, SCORES))


def find_format(path: str | None, formats: tuple[ExportFormat, ...] | tuple[ScoreFormat, ...]) -> str | None:
    """Return the word of the first format that has the extension of a path, ignoring case, or None if none has it."""
    ending = os.path.splitext(path or "")[1].lower()
    return next((form.word for form in formats if ending in form.endings), None)
