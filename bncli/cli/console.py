"""What a person sees: notes and the summary on the standard error, bars where it is a terminal, results on stdout.

A console is the `watch` of a whole command: stages and progress become one bar, notes become lines. rich is imported
only when there is a bar or a table to draw.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from bncli.errors import BncliError, printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree

    from bncli.watch import Event, Iteration

SCHEMA_VERSION = 1
_MOST_NOTES = 5
_PAGE = 160
"""Columns of a table that goes to a file or a pipe."""


class Report(Protocol):
    """What every step returns."""

    def as_json(self) -> dict[str, Any]: ...


class ProgressBar(Protocol):
    """What shows a stage and how much of it is done."""

    def stage(self, name: str) -> None: ...
    def progress(self, done: float, total: float | None, detail: str) -> None: ...
    def print(self, text: str) -> None: ...
    def close(self) -> None: ...


class Console:
    """Knows whether to be quiet and whether the result is wanted as JSON; as a context it shows a bar inside.

    bars: the bar, None = that of the terminal, where there is one.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False, bars: ProgressBar | None = None) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self._bars = bars
        self._n_notes = 0

    def __enter__(self) -> Console:
        if (
            self._bars is None
            and not self.quiet
            and (sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb")
        ):
            from bncli.cli.bars import Bars

            self._bars = Bars()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._count_hidden_notes()

    def close(self) -> None:
        """Take the bar away, so that lines can be printed."""
        if self._bars is not None:
            self._bars.close()
            self._bars = None

    def watch(self, event: Event) -> None:
        """Show an event of the engine or of a reader."""
        from bncli.watch import Iteration, Note, Progress, Stage  # not at the top: help has no events

        if isinstance(event, Note):
            self.note(event.text, "Warning" if event.warning else "Note")
        elif self._bars is None:
            return
        elif isinstance(event, Stage):
            self._bars.stage(event.name)
        elif isinstance(event, Progress):
            self._bars.progress(event.done, event.total, event.detail)
        elif isinstance(event, Iteration):
            self._bars.progress(event.iteration, None, _iteration_text(event))

    def note(self, text: str, word: str = "Note") -> None:
        """Print one line that the user should read; of plain notes the first five, the rest is counted."""
        if self.quiet:
            return
        if word == "Note":
            self._n_notes += 1
            if self._n_notes > _MOST_NOTES:
                return
        if self._bars is not None:
            self._bars.print(f"{word}: {printable(text)}")
        else:
            _write_error_line(f"{word}: {text}")

    def notes(self, texts: Iterable[str]) -> None:
        """Several of them."""
        for text in texts:
            self.note(text)

    def _count_hidden_notes(self) -> None:
        """Print how many notes were not printed, once."""
        hidden = self._n_notes - _MOST_NOTES
        if hidden > 0 and not self.quiet:
            _write_error_line(
                f"... and {hidden} more note{'s' if hidden > 1 else ''}: bncli describe shows them by column"
            )
        self._n_notes = min(self._n_notes, _MOST_NOTES)

    def summary(self, lines: Iterable[str]) -> None:
        """Print the end of a run in a few lines, unless the result is JSON."""
        self.close()
        self._count_hidden_notes()
        if not self.quiet and not self.as_json:
            for line in lines:
                _write_error_line(line)

    def json(self, report: Report) -> None:
        """Print the result as one JSON object on stdout."""
        import json

        self.close()
        values = {"schema_version": SCHEMA_VERSION, **report.as_json()}
        text = json.dumps(_without_nan(values), ensure_ascii=False, allow_nan=False)
        self.text(text + "\n")

    def text(self, text: str) -> None:
        """Text for stdout, always UTF-8: what a file would hold."""
        self.close()
        if sys.stdout is None:  # started with >&-
            raise BncliError("the standard output is closed")
        # Past the text layer, whose encoding follows the locale; what click printed before comes first.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))

    def tables(self, *tables: str | Table | Tree) -> None:
        """Tables, trees and lines on stdout, as wide as the terminal or as they like; a title stays on one line."""
        self.close()
        from rich.console import Console as RichConsole
        from rich.table import Table

        out = RichConsole(file=sys.stdout, width=page_width(), highlight=False, markup=False, emoji=False)
        # Captured: rich would end the program by itself when the pipe is closed.
        with out.capture() as capture:
            for table in tables:
                if isinstance(table, Table):
                    if table.title:
                        out.print(table.title, style="bold")
                    table.title = None  # rich would centre it, and break it at the width of the table
                out.print(printable(table) if isinstance(table, str) else table)
        self.text("".join(f"{line.rstrip()}\n" for line in capture.get().rstrip().splitlines()))


def page_width() -> int:
    """Letters in a line of a table: as COLUMNS says, or as the terminal has, or as a page in a file or a pipe."""
    if "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty()):
        return shutil.get_terminal_size((_PAGE, 24)).columns
    return _PAGE


def _write_error_line(line: str) -> None:
    """Write a line to the standard error, if there is one (writing to None would write to stdout)."""
    if sys.stderr is not None:
        print(printable(line), file=sys.stderr)


def _iteration_text(event: Iteration) -> str:
    likelihood = f"CLL {event.cll:.6g}" if event.cll is not None else f"LL {event.ll:.6g}"
    return f"iteration {event.iteration}  {likelihood}  gradient {event.gradient_norm:.2g}"


def _without_nan(value: Any) -> Any:
    """Return the value for JSON: None for NaN and infinity, zero without a sign (-0.0 + 0.0 is 0.0)."""
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_nan(item) for item in value]
    return value
