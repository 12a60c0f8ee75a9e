"""The output of the commands: notes, summaries, results and progress bars.

Notes and the summary go to the standard error, with a progress bar if that is a terminal; results go to the standard
output. A console is the `watch` of a command: stages and progress move the bar, notes become lines. rich is imported
only to draw a bar or a table.
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

    from bncli.watch import Event

SCHEMA_VERSION = 1
_MOST_NOTES = 5
_FILE_WIDTH = 160
"""The width of a table that goes to a file or a pipe, in characters."""


class Report(Protocol):
    """The result of a step."""

    def as_json(self) -> dict[str, Any]: ...


class ProgressBar(Protocol):
    """A display of the current stage and its progress."""

    def stage(self, name: str) -> None: ...
    def progress(self, done: float, total: float | None, detail: str) -> None: ...
    def print(self, text: str) -> None: ...
    def close(self) -> None: ...


class Console:
    """The output of one command; as a context manager it shows a progress bar.

    quiet: print no notes, bar, or summary. as_json: the result is one JSON object, so there is no summary. bar: the
    progress bar; None uses a bar on the standard error if that is a terminal.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False, bar: ProgressBar | None = None) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self._bar = bar
        self._n_notes = 0

    def __enter__(self) -> Console:
        has_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        if self._bar is None and not self.quiet and has_terminal:
            self._bar = TerminalBar()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._count_hidden_notes()

    def close(self) -> None:
        """Remove the bar, so that lines can be printed."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def watch(self, event: Event) -> None:
        """Show an event of the engine or of a reader."""
        from bncli.watch import Iteration, Note, Progress, Stage  # not at the top: --help has no events

        if isinstance(event, Note):
            self.note(event.text, "Warning" if event.warning else "Note")
        elif self._bar is None:
            return
        elif isinstance(event, Stage):
            self._bar.stage(event.name)
        elif isinstance(event, Progress):
            self._bar.progress(event.done, event.total, event.detail)
        elif isinstance(event, Iteration):
            likelihood = f"CLL {event.cll:.6g}" if event.cll is not None else f"LL {event.ll:.6g}"
            detail = f"iteration {event.iteration}  {likelihood}  gradient {event.gradient_norm:.2g}"
            self._bar.progress(event.iteration, None, detail)

    def note(self, text: str, word: str = "Note") -> None:
        """Print a line to the standard error; after _MOST_NOTES plain notes, further ones are only counted."""
        if self.quiet:
            return
        if word == "Note":
            self._n_notes += 1
            if self._n_notes > _MOST_NOTES:
                return
        if self._bar is not None:
            self._bar.print(f"{word}: {printable(text)}")
        else:
            _write_error_line(f"{word}: {text}")

    def notes(self, texts: Iterable[str]) -> None:
        """Print several notes with `note`."""
        for text in texts:
            self.note(text)

    def finish(self, report: Report, lines: Iterable[str]) -> None:
        """Print the last lines of a run or, if requested, the report as JSON."""
        self.summary(lines)
        if self.as_json:
            self.json(report)

    def summary(self, lines: Iterable[str]) -> None:
        """Print the last lines of a run to the standard error, unless the console is quiet or the result is JSON."""
        self.close()
        self._count_hidden_notes()
        if not self.quiet and not self.as_json:
            for line in lines:
                _write_error_line(line)

    def _count_hidden_notes(self) -> None:
        """Print how many notes were not printed, if any, and start counting those again from 0."""
        hidden = self._n_notes - _MOST_NOTES
        if hidden > 0 and not self.quiet:
            notes = "note" if hidden == 1 else "notes"
            _write_error_line(f"{hidden} more {notes}; bncli describe FILE shows how each column is read")
        self._n_notes = min(self._n_notes, _MOST_NOTES)

    def json(self, report: Report) -> None:
        """Print the result as one JSON object on the standard output."""
        import json

        values = {"schema_version": SCHEMA_VERSION, **report.as_json()}
        text = json.dumps(_without_nan(values), ensure_ascii=False, allow_nan=False)
        self.text(text + "\n")

    def text(self, text: str) -> None:
        """Print text to the standard output, in UTF-8 regardless of the locale and with unchanged line ends.

        Raises BncliError if the standard output is closed.
        """
        self.close()
        if sys.stdout is None:  # started with >&-
            raise BncliError("the standard output is closed")
        # Write below the text layer, whose encoding follows the locale, after what click has printed through it.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()  # other files of the command may be the same output, as with `--csv -`

    def tables(self, *tables: str | Table | Tree) -> None:
        """Print tables, trees, and lines to the standard output; the title of a table is printed above it."""
        self.close()
        from rich.console import Console as RichConsole
        from rich.table import Table

        out = RichConsole(file=sys.stdout, width=page_width(), highlight=False, markup=False, emoji=False)
        # The output is captured because rich ends the program itself when a pipe is closed.
        with out.capture() as capture:
            for table in tables:
                if isinstance(table, Table):
                    if table.title:
                        out.print(table.title, style="bold")
                    table.title = None  # rich would centre the title and wrap it at the width of the table
                out.print(printable(table) if isinstance(table, str) else table)
        self.text("".join(f"{line.rstrip()}\n" for line in capture.get().rstrip().splitlines()))


def page_width() -> int:
    """Return the width of a table in characters.

    It is the variable COLUMNS, if set, or otherwise the width of the terminal; for files and pipes it is _FILE_WIDTH.
    """
    if "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty()):
        return shutil.get_terminal_size((_FILE_WIDTH, 24)).columns
    return _FILE_WIDTH


def _write_error_line(line: str) -> None:
    """Print a line to the standard error, if there is one; print() to None would write to the standard output."""
    if sys.stderr is not None:
        print(printable(line), file=sys.stderr)


def _without_nan(value: Any) -> Any:
    """Return the value with None for NaN and infinity and without negative zeros (-0.0 + 0.0 is 0.0)."""
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_nan(item) for item in value]
    return value


_STAGE_TITLES = {
    "read": "Reading",
    "discretize": "Cutting",
    "structure": "Structure",
    "candidates": "Candidates",
    "penalty": "Penalty",
    "calibrate": "Calibrating",
    "parameters": "Parameters",
    "intervals": "Intervals",
    "fit": "Fitting",
    "score": "Scoring",
    "write": "Writing",
}
_FOLD_STAGES = ("fit", "score")
"""Stages inside a fold, during which the bar counts folds."""
_BAR_WIDTH = 24


class TerminalBar:
    """A progress bar on a terminal: one line on the standard error, which disappears when the command ends.

    The stage, the bar, the elapsed time and the remaining time have fixed positions; the detail fills the rest of the
    line and is truncated if it is too long.
    """

    def __init__(self) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.table import Column

        self._console = RichConsole(stderr=True, highlight=False, markup=False, emoji=False)
        columns = (
            TextColumn("{task.description:<11}", table_column=Column(min_width=11, no_wrap=True)),
            BarColumn(_BAR_WIDTH, table_column=Column(min_width=_BAR_WIDTH, max_width=_BAR_WIDTH)),
            TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
            TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
            TextColumn("left", table_column=Column(min_width=4)),
            TextColumn("{task.fields[detail]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        )
        self._live = Progress(*columns, console=self._console, transient=True, refresh_per_second=8, expand=True)
        self._task = self._live.add_task("Starting", total=None, detail="")
        self._live.start()

    def stage(self, name: str) -> None:
        """Show the name of a new stage, and reset the progress to 0 unless it is a stage inside a fold."""
        if name in _FOLD_STAGES:
            self._live.update(self._task, description=_STAGE_TITLES[name])
            return
        self._live.remove_task(self._task)
        self._task = self._live.add_task(_STAGE_TITLES.get(name, name.capitalize()), total=None, detail="")

    def progress(self, done: float, total: float | None, detail: str) -> None:
        """Show that `done` of `total` units are done; without a total the bar only moves."""
        self._live.update(self._task, completed=done, total=total, detail=printable(detail))

    def print(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text)

    def close(self) -> None:
        """Remove the bar."""
        self._live.stop()
