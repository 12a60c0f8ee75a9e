"""How a step carries out a run: the seconds of its stages, its moves and iterations, the memory it may take.

The engine has no clock and asks no system: it says when a stage begins, and is told what there is.
"""

from __future__ import annotations

import csv
import io
import time
from typing import NamedTuple

from bncli.engine.data.schema import Schema
from bncli.files.atomic import write_bytes
from bncli.steps.memory import free_memory
from bncli.watch import Clock, Event, Iteration, Kept, Move, Note, Run, Stage, Watch

TRACED = (*Iteration._fields, "seconds")
"""The columns of a trace."""


class Stopwatch:
    """A watch that hands every event on and notes how long each stage lasted, by a clock in seconds."""

    def __init__(self, watch: Watch, clock: Clock = time.perf_counter) -> None:
        self._watch, self._clock = watch, clock
        self._begin = self._since = clock()
        self._stage: str | None = None
        self._seconds: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stage):
            self._close()
            self._stage = event.name
        self._watch(event)

    def seconds(self) -> dict[str, float]:
        """The seconds of each stage so far, in order, then the `total` since the watch was made."""
        self._close()
        return {**self._seconds, "total": self._clock() - self._begin}

    def _close(self) -> None:
        now = self._clock()
        if self._stage is not None:
            self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._since
        self._since = now


class NamedMove(NamedTuple):
    """One arc `parent` -> `child` that was added, deleted or reversed, and what the score gained, in nats."""

    kind: str
    parent: str
    child: str
    gain: float


class Moves:
    """A watch that hands every event on and keeps the moves."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._moves: list[Move] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Move):
            self._moves.append(event)
        self._watch(event)

    def named(self, schema: Schema) -> tuple[NamedMove, ...]:
        """The moves seen, between attributes of this schema."""
        name = [attribute.name for attribute in schema.attributes]
        return tuple(NamedMove(m.kind, name[m.parent], name[m.child], m.gain) for m in self._moves)


class Warnings:
    """A watch that hands every event on and keeps the texts of warnings."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.texts: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note) and event.warning:
            self.texts.append(event.text)
        self._watch(event)


class Trace:
    """A watch that hands every event on and keeps the iterations: how the likelihood rose, and what that cost so far.

    As CSV a row an iteration, with the seconds since the first. Flops are empty where no cost model covers optimizer
    and parameters; ll, the log-likelihood of classes and attributes together, where the conditional one, cll, is
    maximised; and cll where ll is. Of several runs only the one that is kept.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._runs: list[list[tuple[float | None, ...]]] = [[]]
        self._begin = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Iteration):
            now = time.perf_counter()
            if event.iteration == 0:
                self._begin = now
                self._runs.append([])
            self._runs[-1].append((*event, now - self._begin))
        elif isinstance(event, Kept):
            # the first is of before any run
            self._runs = [self._runs[event.run + 1]]
        self._watch(event)

    def write(self, path: str) -> None:
        """Writes the iterations seen; only the header if there were none."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(TRACED)
        writer.writerows(self._runs[-1])
        write_bytes(path, text.getvalue().encode())


def limited(run: Run) -> Run:
    """The run with a clock, and within the memory that is free now; what it has of them already stays."""
    memory = free_memory() if run.memory is None else run.memory
    return run._replace(memory=memory, clock=run.clock or time.monotonic)
