"""Whether what is waited for can still come: who has nothing done looks at the workers, again and again.

A worker near its limit of memory is paused by Dask and takes no more tasks; where what fills it are the mapped pages of
its own row blocks, nothing ever frees it. A worker beyond it is ended by its nanny and started anew, as another worker
to the scheduler, and no task is blamed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bncli.errors import BncliError

ALONE_SECONDS = 20.0
STUCK_SECONDS = 20.0
_MOST_ENDS = 4
"""So often every worker may end, on average, before anything is done."""


class GoneError(BncliError):
    """The cluster itself is gone: no task is to blame, and none that follows would fare better."""


class Worker(NamedTuple):
    """A worker as its scheduler knows it: threads, limit of memory in bytes (0: none), whether it has tasks."""

    threads: int
    limit: int = 0
    is_paused: bool = False
    is_busy: bool = False


@dataclass
class Patience:
    """That of one wait, which began with these workers."""

    known: set[str]
    n_ends: int = 0
    _since: dict[str, float] = field(default_factory=dict)

    def look(self, workers: Mapping[str, Worker]) -> None:
        """GoneError where waiting makes no sense any more."""
        if workers:
            self._ended(workers.keys())
        if self._lasts("alone", not workers) > ALONE_SECONDS:
            raise GoneError("the cluster has no workers any more", hint="start workers, then run the command again")
        paused = [address for address, worker in workers.items() if worker.is_paused]
        stuck = bool(paused) and not any(worker.is_busy for worker in workers.values())
        if self._lasts("stuck", stuck) > STUCK_SECONDS:
            limit = workers[paused[0]].limit
            what = f"{len(paused)} of {len(workers)} workers are paused, as {paused[0]}, whose memory is full"
            raise GoneError(f"{what} (limit {limit / 1e6:,.0f} MB)", hint=MORE_MEMORY)

    def _ended(self, now: Collection[str]) -> None:
        self.n_ends += len(self.known.difference(now))
        most = _MOST_ENDS * max(len(self.known), 1)
        self.known = set(now)
        if self.n_ends > most:
            what = f"workers end again and again ({self.n_ends} times, while nothing was done)"
            raise GoneError(what, hint=f"most often memory ran out: {MORE_MEMORY}")

    def _lasts(self, state: str, now: bool) -> float:
        """For how many seconds a state has lasted."""
        if not now:
            self._since.pop(state, None)
            return 0.0
        return time.monotonic() - self._since.setdefault(state, time.monotonic())


MORE_MEMORY = "give workers more (dask worker --memory-limit), or start more of them"
