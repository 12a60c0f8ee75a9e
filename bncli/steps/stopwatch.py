"""Seconds by stage, for the steps: the engine below them has no clock, it only says when a stage begins."""

from __future__ import annotations

import time

from bncli.watch import Event, Stage, Watch


class Stopwatch:
    """A watch that hands every event on and notes how long each stage lasted."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._begin = self._since = time.perf_counter()
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
        return {**self._seconds, "total": time.perf_counter() - self._begin}

    def _close(self) -> None:
        now = time.perf_counter()
        if self._stage is not None:
            self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._since
        self._since = now
