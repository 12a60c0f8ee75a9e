"""Code that the steps share: recording the events of a run, overlapping stages, and the free memory.

- `Stopwatch` and `Recorder` are watches: they record what the engine reports, and pass every event on.
- `PipelineStage` works on items in a thread of its own, fed through a short queue. Stages that read, score and write
  overlap in this way.
- `free_memory` returns how many bytes this process may still allocate. `with_memory_limit` limits a run to them, unless
  the run has a limit already. The free memory is the smallest of these figures; one that cannot be read is ignored:

      system     MemAvailable: what Linux can give without swapping; on other systems all physical memory
      cgroup v2  memory.max and memory.high, each less memory.current (without inactive cached files), of the process's
                 group and of every group that contains it
      cgroup v1  memory.limit_in_bytes less memory.usage_in_bytes (again without inactive cached files), of these groups
      process    RLIMIT_AS (`ulimit -v`) less the address space in use, and RLIMIT_DATA less the data segment
"""

from __future__ import annotations

import csv
import io
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

from bncli.engine.data.schema import Schema
from bncli.files.atomic import write_bytes
from bncli.watch import Clock, Event, Iteration, Move, Note, Run, SelectedRun, Stage, Watch

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
TRACE_COLUMNS = (*Iteration._fields, "seconds")


class Stopwatch:
    """A watch that records how long each stage takes, and passes every event on."""

    def __init__(self, watch: Watch, clock: Clock = time.perf_counter) -> None:
        self._watch, self._clock = watch, clock
        self._begin = self._since = clock()
        self._stage: str | None = None
        self._seconds: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stage):
            self._end_stage()
            self._stage = event.name
        self._watch(event)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage so far, in order, then the `total` since the stopwatch was created."""
        self._end_stage()
        return {**self._seconds, "total": self._clock() - self._begin}

    def _end_stage(self) -> None:
        now = self._clock()
        if self._stage is not None:
            self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._since
        self._since = now


class NamedMove(NamedTuple):
    """A change (`add`, `delete` or `reverse`) of the arc `parent` -> `child` by a greedy search; `gain` in nats."""

    kind: str
    parent: str
    child: str
    gain: float


class Recorder(Stopwatch):
    """A stopwatch that also records warnings, the moves of a greedy search, and the optimizer's iterations."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self.warnings: list[str] = []
        self._moves: list[Move] = []
        self._optimizer_runs: list[list[tuple[float | None, ...]]] = [[]]
        self._optimizer_began = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note) and event.warning:
            self.warnings.append(event.text)
        elif isinstance(event, Move):
            self._moves.append(event)
        elif isinstance(event, Iteration):
            now = time.perf_counter()
            if event.iteration == 0:
                self._optimizer_began = now
                self._optimizer_runs.append([])
            self._optimizer_runs[-1].append((*event, now - self._optimizer_began))
        elif isinstance(event, SelectedRun):
            # The first element comes before all runs of this stage: it is empty, or the run selected in an earlier one.
            self._optimizer_runs = [self._optimizer_runs[event.run + 1]]
        super().__call__(event)

    def named_moves(self, schema: Schema) -> tuple[NamedMove, ...]:
        """Return the moves so far, with the names of the schema's attributes."""
        name = [attribute.name for attribute in schema.attributes]
        return tuple(NamedMove(m.kind, name[m.parent], name[m.child], m.gain) for m in self._moves)

    def write_trace(self, path: str) -> None:
        """Write the optimizer's iterations as CSV, one row per iteration, with the seconds since its start.

        If there were several optimizer runs, only the selected one is written, or the last one if none was selected.
        The column `flops` is empty if the cost model does not cover the optimizer or the parameters. The column `cll`
        is empty if the joint log-likelihood of class and attributes is maximised; otherwise the column `ll` is empty.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(TRACE_COLUMNS)
        writer.writerows(self._optimizer_runs[-1])
        write_bytes(path, text.getvalue().encode())


T = TypeVar("T")
_QUEUE_ITEMS = 2
"""The maximum number of items in the queue, which is short so that memory does not grow with the input."""
_INTERRUPT_SECONDS = 1.0
"""The maximum number of seconds to wait for an interrupted stage to finish its item."""


class _End:
    """The marker that follows the last item in the queue."""


class PipelineStage(Generic[T]):
    """A stage that processes items one by one, in its own thread, in the order in which they were put.

    As a context manager it waits at the end until all items are processed. If the work raises an exception, the stage
    stops working, and the next `put` or the end of the context raises the exception in the thread that feeds the stage.
    If the feeding thread raises an ordinary exception, the stage still finishes the items in its queue. After an
    interrupt (^C), no further item is begun, and a stage that hangs in a write is abandoned.
    """

    def __init__(self, work: Callable[[T], None]) -> None:
        self._work = work
        self._items: queue.Queue[T | _End] = queue.Queue(_QUEUE_ITEMS)
        self._failure: BaseException | None = None
        # A daemon, because a write to a pipe that nobody reads may never return and must not keep the program alive.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def put(self, item: T) -> None:
        """Put an item into the queue, waiting while it is full; raise the exception of the stage if it has failed."""
        if self._failure is not None:
            raise self._failure
        self._items.put(item)

    def _run(self) -> None:
        while not isinstance(item := self._items.get(), _End):
            if self._failure is None:  # after a failure only empty the queue, or `put` would wait for ever
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
            # Discard the items in the queue, and put the end into it.
            self._failure = self._failure or error
            while True:
                try:
                    self._items.put_nowait(_End())
                    break
                except queue.Full:
                    try:
                        self._items.get_nowait()
                    except queue.Empty:  # the stage took the item between the two calls, so there is room
                        continue
            self._thread.join(_INTERRUPT_SECONDS)
            return
        self._items.put(_End())
        self._thread.join()
        if error is None and self._failure is not None:
            raise self._failure


def with_memory_limit(run: Run) -> Run:
    """Return the run with a clock and a memory limit; the free memory is the limit unless the run has one."""
    memory = free_memory() if run.memory is None else run.memory
    return run._replace(memory=memory, clock=run.clock or time.monotonic)


def free_memory() -> int | None:
    """Return how many bytes this process may still allocate (at least 0), or None if no limit is known."""
    limits = [*_cgroup_limits()]
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
        limits.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")))
    except (OSError, StopIteration, ValueError, IndexError):
        with suppress(AttributeError, OSError, ValueError):
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        pages = [int(n) for n in (PROC / "self/statm").read_text().split()]
        for kind, n_pages in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
            limit = resource.getrlimit(kind)[0]
            if limit != resource.RLIM_INFINITY:
                limits.append(limit - n_pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(limits), 0) if limits else None


def _cgroup_limits() -> Iterator[int]:
    """Yield, for each memory limit of the process's control groups, the number of bytes that are still available."""
    root = PurePosixPath("/")
    own: dict[str, PurePosixPath] = {}  # the path of the process's group, by controller; "" stands for version 2
    try:
        for line in (PROC / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), root / path.lstrip("/")))
    except (OSError, ValueError):
        pass
    # For each mount point of groups: the process's own group, the files with limits and usage, and the entry in
    # memory.stat for cached files, which are kept in memory only for speed and count as free.
    v2 = own.get("", root), ("memory.max", "memory.high"), "memory.current", "inactive_file"
    v1 = own.get("memory", root), ("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"
    for mount, (group, limits, usage, cached) in ((CGROUP, v2), (CGROUP / "unified", v2), (CGROUP / "memory", v1)):
        # Inside a container the path may be the host's; then the root of the mount is the process's own group.
        for ancestor in (group, *group.parents):
            folder = mount / ancestor.relative_to("/")
            try:
                used = int((folder / usage).read_text())
                lines = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                used -= int(lines.get(cached, 0))
            except (OSError, ValueError):
                continue
            for limit in limits:
                try:
                    yield int((folder / limit).read_text()) - used
                except (OSError, ValueError):  # no such file, or the word "max"
                    continue
