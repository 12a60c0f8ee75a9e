"""The progress bar on a terminal: one line for the stage in hand, gone when the command ends."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bncli.errors import printable

_WORDS = {
    "read": "Reading",
    "discretize": "Cutting",
    "structure": "Structure",
    "penalty": "Penalty",
    "parameters": "Parameters",
    "fit": "Fitting",
    "score": "Scoring",
    "write": "Writing",
}
_OF_A_FOLD = ("fit", "score")


class Bars:
    """One live line on the standard error."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        columns = (
            TextColumn("{task.description:<11}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}"),
        )
        self._live = Progress(*columns, console=self._console, transient=True, refresh_per_second=8)
        self._task = self._live.add_task("Starting", total=None, detail="")
        self._live.start()

    def stage(self, name: str) -> None:
        """The line is about another stage from now on; the stages of a fold leave the count of folds as it is."""
        if name in _OF_A_FOLD:
            self._live.update(self._task, description=_WORDS[name])
            return
        self._live.remove_task(self._task)
        self._task = self._live.add_task(_WORDS.get(name, name.capitalize()), total=None, detail="")

    def progress(self, done: float, total: float | None, detail: str) -> None:
        """So much of the stage is done; without a total the bar only moves."""
        self._live.update(self._task, completed=done, total=total, detail=printable(detail))

    def print(self, text: str) -> None:
        """A line above the bar."""
        self._console.print(text)

    def close(self) -> None:
        """Takes the line away."""
        self._live.stop()
