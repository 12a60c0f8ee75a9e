"""The trace of an optimiser as CSV, a row an iteration: how the likelihood rose, and what that has cost so far.

Flops are empty where no cost model covers optimiser and parameters; ll, the log-likelihood of classes and attributes
together, where the conditional one, cll, is climbed; and cll where ll is.
"""

from __future__ import annotations

import csv
import io
import time

from bncli.files.atomic import write_bytes
from bncli.watch import Event, Iteration, Watch

HEADER = (*Iteration._fields, "seconds")


class Trace:
    """A watch that hands every event on and keeps the iterations, with the seconds since the first of them."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._rows: list[tuple[float | None, ...]] = []
        self._begin = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Iteration):
            now = time.perf_counter()
            self._begin = self._begin if self._rows else now
            self._rows.append((*event, now - self._begin))
        self._watch(event)

    def write(self, path: str) -> None:
        """Writes the iterations seen; only the header if there were none."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(self._rows)
        write_bytes(path, text.getvalue().encode())
