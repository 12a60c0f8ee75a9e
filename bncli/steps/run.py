"""How a step carries out a run: the seconds of its stages, its moves and iterations, the memory it may take.

The engine has no clock and asks no system: it says when a stage begins, and is told what there is.

The memory that a run may take: the least of what the system has, what its groups allow, and its own limits.

    system     MemAvailable: what Linux could give without swapping; elsewhere all memory there is
    cgroup v2  memory.max and memory.high less memory.current, of the own group and of every group around it
    cgroup v1  memory.limit_in_bytes less memory.usage_in_bytes, likewise
    process    RLIMIT_AS (`ulimit -v`) less the address space in use, RLIMIT_DATA less the data segment

Files that are only kept in memory for speed (`inactive_file`) count as free. What cannot be read sets no limit.

Pipeline stages that overlap, each on a thread of its own, fed in order through a short queue.

The thread that opens a stage puts items into it; the stage works on them one by one. Conventions: a queue holds 2
items, so memory does not grow with the stream. When the work fails, the stage stops working and the next `put` raises
the failure, so that it travels up the stream to whoever feeds it; what was put before the failure is still worked on.
On ^C nothing more is begun, and a stage that hangs in a write is left behind.
"""

from __future__ import annotations

import csv
import io
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

from bncli.engine.data.schema import Schema
from bncli.files.atomic import write_bytes
from bncli.watch import Clock, Event, Iteration, Move, Note, Run, SelectedRun, Stage, Watch

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
_V2 = (("memory.max", "memory.high"), "memory.current", "inactive_file")
_V1 = (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")
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
        """Return the seconds of each stage so far, in order, then the `total` since the watch was made."""
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
        """Return the moves seen, between attributes of this schema."""
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
        elif isinstance(event, SelectedRun):
            # the first is of before any run
            self._runs = [self._runs[event.run + 1]]
        self._watch(event)

    def write(self, path: str) -> None:
        """Write the iterations seen; only the header if there were none."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(TRACED)
        writer.writerows(self._runs[-1])
        write_bytes(path, text.getvalue().encode())


T = TypeVar("T")
_WAITING_ITEMS = 2
_PATIENCE = 1.0
"""Seconds given to a stage that is interrupted."""


class _End:
    """Put into the queue after the last item."""


class PipelineStage(Generic[T]):
    """A context: leaving it waits until all items are worked on, and raises what the work has raised."""

    def __init__(self, work: Callable[[T], None]) -> None:
        self._work = work
        self._items: queue.Queue[T | _End] = queue.Queue(_WAITING_ITEMS)
        self._failure: BaseException | None = None
        # A daemon: a write to a pipe that nobody reads may never return, and must not keep the program from ending.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def put(self, item: T) -> None:
        """Hands an item to the stage; waits while the queue is full."""
        if self._failure is not None:
            raise self._failure
        self._items.put(item)

    def _run(self) -> None:
        while not isinstance(item := self._items.get(), _End):
            if self._failure is None:  # after a failure the queue is only emptied, or `put` would wait for ever
                try:
                    self._work(item)
                except BaseException as error:  # raised again in the thread that feeds the stage
                    self._failure = error

    def __enter__(self) -> PipelineStage[T]:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):  # ^C, a signal, the end of the program
            # Throws away what waits in the queue and stops.
            self._failure = self._failure or error
            while True:
                try:
                    self._items.put_nowait(_End())
                    break
                except queue.Full:
                    try:
                        self._items.get_nowait()
                    except queue.Empty:  # the stage took it between the two calls: there is room now
                        continue
            self._thread.join(_PATIENCE)
            return
        self._items.put(_End())
        self._thread.join()
        if error is None and self._failure is not None:
            raise self._failure


def free_memory() -> int | None:
    """Return bytes, the least of all limits, never negative; None where nothing is known."""
    known = [n for n in (_of_system(), *_of_groups(), *_of_process()) if n is not None]
    return max(min(known), 0) if known else None


def _of_system() -> int | None:
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_groups() -> Iterator[int]:
    for root, own, files in _groups():
        # In a container the path may be the host's: then the root is the own group.
        for group in (own, *own.parents):
            yield from _left(root / group.relative_to("/"), *files)


def _groups() -> Iterator[tuple[Path, PurePosixPath, tuple[tuple[str, ...], str, str]]]:
    """Where groups are mounted, the own one in it, and the files that speak of its memory."""
    own = {}
    try:
        for line in (PROC / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), PurePosixPath("/") / path.lstrip("/")))
    except (OSError, ValueError):
        pass
    root = PurePosixPath("/")
    yield CGROUP, own.get("", root), _V2
    yield CGROUP / "unified", own.get("", root), _V2
    yield CGROUP / "memory", own.get("memory", root), _V1


def _left(group: Path, limits: tuple[str, ...], usage: str, cached: str) -> Iterator[int]:
    """Yield what each limit of a group leaves; nothing for one that is not there, or the word "max"."""
    try:
        used = int((group / usage).read_text())
        lines = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        used -= int(lines.get(cached, 0))
    except (OSError, ValueError):
        return
    for limit in limits:
        try:
            yield int((group / limit).read_text()) - used
        except (OSError, ValueError):
            continue


def _of_process() -> Iterator[int]:
    try:
        import resource

        pages = [int(n) for n in (PROC / "self/statm").read_text().split()]
        taken = {resource.RLIMIT_AS: pages[0], resource.RLIMIT_DATA: pages[5]}
    except (ImportError, OSError, ValueError, IndexError):
        return
    for kind, n_pages in taken.items():
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - n_pages * os.sysconf("SC_PAGE_SIZE")


def limited(run: Run) -> Run:
    """Return the run with a clock, and within the memory that is free now; what it has of them already stays."""
    memory = free_memory() if run.memory is None else run.memory
    return run._replace(memory=memory, clock=run.clock or time.monotonic)
