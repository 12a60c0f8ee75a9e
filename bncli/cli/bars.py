"""The progress bar on a terminal: one line for the stage in hand, gone when the command ends.

The stage, the bar, the time so far and the time left have their places whatever else is told; what is in hand takes the
rest of the line and is cut off at its end.
"""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from bncli.errors import printable

_WORDS = {
    "read": "Reading",
    "discretize": "Cutting",
    "structure": "Structure",
    "candidates": "Candidates",
    "penalty": "Penalty",
    "calibrate": "Calibrating",
    "parameters": "Parameters",
    "fit": "Fitting",
    "score": "Scoring",
    "write": "Writing",
}
_WIDTH = 24
"""Of the bar, in characters."""
_OF_A_FOLD = ("fit", "score")


class Bars:
    """One live line on the standard error."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        columns = (
            TextColumn("{task.description:<11}", table_column=Column(min_width=11, no_wrap=True)),
            BarColumn(_WIDTH, table_column=Column(min_width=_WIDTH, max_width=_WIDTH)),
            TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
            TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
            TextColumn("left", table_column=Column(min_width=4)),
            TextColumn("{task.fields[detail]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        )
        self._live = Progress(*columns, console=self._console, transient=True, refresh_per_second=8, expand=True)
        self._task = self._live.add_task("Starting", total=None, detail="")
        self._live.start()

    def stage(self, name: str) -> None:
        """Show another stage from now on; the stages of a fold leave the count of folds unchanged."""
        if name in _OF_A_FOLD:
            self._live.update(self._task, description=_WORDS[name])
            return
        self._live.remove_task(self._task)
        self._task = self._live.add_task(_WORDS.get(name, name.capitalize()), total=None, detail="")

    def progress(self, done: float, total: float | None, detail: str) -> None:
        """So much of the stage is done; without a total the bar only moves."""
        self._live.update(self._task, completed=done, total=total, detail=printable(detail))

    @property
    def line(self) -> RenderableType:
        """As it would be drawn now."""
        return self._live.get_renderable()

    def print(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text)

    def close(self) -> None:
        """Take the line away."""
        self._live.stop()
