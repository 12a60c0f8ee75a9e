"""Pipeline stages that overlap, each on a thread of its own, fed in order through a short queue.

The thread that opens a stage puts items into it; the stage works on them one by one. Conventions: a queue holds
2 items, so memory does not grow with the stream. When the work fails, the stage stops working and the next `put`
raises the failure, so that it travels up the stream to whoever feeds it; what was put before the failure is still
worked on. On ^C nothing more is begun, and a stage that hangs in a write is left behind.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

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
            self._interrupt(error)
            return
        self._items.put(_End())
        self._thread.join()
        if error is None and self._failure is not None:
            raise self._failure

    def _interrupt(self, error: BaseException) -> None:
        """Throws away what waits in the queue and stops."""
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
