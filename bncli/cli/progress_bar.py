"""The progress bar on a terminal: one line for the current stage, which disappears when the command ends.

The stage, the bar, the elapsed time and the remaining time have fixed places; the detail fills the rest of the line and
is cut off at its end.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from bncli.errors import printable

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
    """One live line on the standard error."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
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
        """Show the name of a new stage and start its progress at 0, except for the stages of a fold."""
        if name in _FOLD_STAGES:
            self._live.update(self._task, description=_STAGE_TITLES[name])
            return
        self._live.remove_task(self._task)
        self._task = self._live.add_task(_STAGE_TITLES.get(name, name.capitalize()), total=None, detail="")

    def progress(self, done: float, total: float | None, detail: str) -> None:
        """Show that `done` of `total` is done; without a total the bar only moves."""
        self._live.update(self._task, completed=done, total=total, detail=printable(detail))

    def print(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text)

    def close(self) -> None:
        """Remove the bar."""
        self._live.stop()
