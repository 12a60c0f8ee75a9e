"""A connection to a Dask cluster: the one module that knows dask.

    tcp://HOST:PORT    a scheduler that is running (tls:// with the certificates of dask's own configuration)
    file:PATH          the same, its address in the file that `dask scheduler --scheduler-file PATH` writes
    local:N            N worker processes of this machine, started now and ended with the command

Conventions: all that is asked of a cluster ends in bounded time. Who answers nothing for CONNECT_SECONDS is not there;
a cluster without workers for ALONE_SECONDS is given up (a worker that died may be started again by its nanny). A task
whose worker dies is run again elsewhere, and what it needs is made again; after RETRIES workers died with it, it is
blamed. Dask's warnings and logs are kept off the standard error: what matters is said as a note or an error.

Whether what is waited for can still come: who has nothing done looks at the workers, again and again.

A worker near its limit of memory is paused by Dask and takes no more tasks; where what fills it are the mapped pages of
its own row blocks, nothing ever frees it. A worker beyond it is ended by its nanny and started anew, as another worker
to the scheduler, and no task is blamed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import json
import logging
import os
import re
import socket
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from bncli.errors import BncliError, UsageError

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
        """Raise GoneError where waiting makes no sense any more."""
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
CONNECT_SECONDS = 10
ANSWER_SECONDS = 60.0
"""For a worker's first words: it may have to load this package from a slow disk."""
RETRIES = 3
BROADCAST_BYTES = 256 << 10
"""What every task needs travels inside the tasks up to this size, and once to every worker beyond it."""
_PATIENCE = 1.0
"""Seconds between two looks at whether anybody is left to wait for."""
Future = Any
"""A value that is, or will be, in the memory of a worker."""


class LostError(Exception):
    """Values on the way between workers are gone with a worker; asking again helps."""


class Cluster:
    """Workers that run functions; those of a module that they have too, for a function travels by its name."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.workers: Mapping[str, Worker] = {}
        self.refresh()

    def refresh(self) -> None:
        """Ask who is there."""
        told = self._client.sync(self._client.scheduler.identity, callback_timeout=CONNECT_SECONDS)["workers"]
        self.workers = {address: _worker(told[address]) for address in sorted(told)}

    @property
    def threads(self) -> Mapping[str, int]:
        """Of each worker, by its address."""
        return {address: worker.threads for address, worker in self.workers.items()}

    @property
    def n_threads(self) -> int:
        return max(sum(self.threads.values()), 1)

    def ask_all(self, function: Callable[..., Any], *arguments: Any) -> Mapping[str, Any]:
        """Return what each worker answers, by its address; an exception where it fails there, or a TimeoutError."""

        async def asked(address: str) -> Any:
            # within the client's own loop `run` is a coroutine
            answer = self._client.run(function, *arguments, workers=[address], on_error="return")
            try:
                return (await asyncio.wait_for(answer, ANSWER_SECONDS))[address]
            except (TimeoutError, KeyError, OSError) as error:
                return error

        async def gathered() -> list[Any]:
            return await asyncio.gather(*map(asked, self.threads))

        answers = asyncio.run_coroutine_threadsafe(gathered(), self._client.loop.asyncio_loop).result()
        return dict(zip(self.threads, answers, strict=True))

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future:
        """Return a task. `worker` is where it is run if it can be; futures among the arguments are values there."""
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self._client.submit(function, *arguments, pure=False, retries=RETRIES, **where)

    def share(self, value: Any) -> Future:
        """Return a value sent once. It is a task too, so that it can be made again where it is lost."""
        return self.submit(_itself, value)

    def broadcast(self, value: Any) -> Future:
        """Return a value sent to every worker, for one round: nothing can make it again where it is lost."""
        try:
            return self._client.scatter(value, broadcast=True, hash=False, timeout=ALONE_SECONDS)
        except Exception as error:
            raise LostError(str(error)) from error

    def values(self, futures: Sequence[Future]) -> list[Any]:
        """Return what became of the tasks, in their order. Raises what a task raised.

        LostError where asking again helps.
        """

        async def gathered() -> list[Any]:
            return list(await self._client.gather(list(futures), asynchronous=True))

        # not waited for alone and fetched then: a result that is lost in between is waited for, too
        coming = asyncio.run_coroutine_threadsafe(gathered(), self._client.loop.asyncio_loop)
        try:
            self._in_time(lambda: concurrent.futures.wait([coming], _PATIENCE).done)
            return coming.result()
        except Exception as error:
            _raise(error)
        finally:
            coming.cancel()

    def first(self, futures: Sequence[Future]) -> list[Future]:
        """Return those of the tasks that are done, once any is."""
        from distributed import wait

        def done() -> Collection[Future]:
            try:
                return list(wait(list(futures), timeout=_PATIENCE, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                return ()
            except Exception as error:
                _raise(error)

        return self._in_time(done)

    def _in_time(self, done: Callable[[], Collection[Any]]) -> list[Any]:
        """Return what is done, asked for again while nothing is, as long as there is anybody to wait for."""
        patience = Patience(set(self.workers))
        while not (found := done()):
            try:
                self.refresh()
                workers = self.workers
            except (OSError, TimeoutError, AttributeError, RuntimeError):
                workers = {}
            patience.look(workers)
        return list(found)


_LEVEL = "critical"
_LOGGERS = dict.fromkeys(
    ("distributed", "distributed.client", "bokeh", "tornado", "tornado.application", "asyncio"), _LEVEL
)
_QUIETLY = {
    "logging": _LOGGERS,
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
    "distributed.comm.retry.count": 3,
    # a nanny would otherwise have malloc return every 64 KB to the system: kernels would take twice their time
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 26,
}
_DEAF = """import logging, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("tornado.application").setLevel(logging.CRITICAL)
"""
"""Run by a worker as it starts: ^C in the terminal reaches all of its processes, and this one ends the others.

A heartbeat that meets the end is no error to tell of.
"""


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Yield the cluster at an address, with at least one worker; afterwards nothing that was started here is left."""
    kind, place = _parsed(address)
    try:
        # The package dask, and distributed, which must be loaded before its settings are changed for a while.
        #
        # Else its own, which it adds when it is loaded, would go with the changes at the end.
        import dask.config

        with dask.config.set({"logging": _LOGGERS}), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("distributed")
    except ModuleNotFoundError as error:
        hint = "install it: python -m pip install 'bncli[cluster]', or dask and distributed"
        raise UsageError("--cluster needs the package 'distributed', which is not installed", hint=hint) from error
    with dask.config.set(_QUIETLY), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with _silenced(), _started(kind, place, address) as client:
            cluster = Cluster(client)
            end = time.monotonic() + CONNECT_SECONDS
            while not cluster.threads:
                if time.monotonic() > end:
                    what = f"the scheduler at {address} has no workers"
                    raise BncliError(what, hint="start some: dask worker ADDRESS, in the environment that bncli is in")
                time.sleep(0.1)
                cluster.refresh()
            yield cluster


def _parsed(address: str) -> tuple[str, str]:
    """Return the kind of an address and what it names; UsageError for what is none."""
    kind, _, place = address.partition(":")
    if kind == "local" and re.fullmatch("[1-9][0-9]{0,3}", place):
        return kind, place
    if kind == "file" and place:
        return kind, _address_in(place)
    if kind in ("tcp", "tls") and re.fullmatch(r"//[^/\s]+:[0-9]{1,5}", place):
        return kind, address
    what = f"--cluster {address} is no address of a cluster"
    raise UsageError(what, hint="say tcp://HOST:PORT, file:SCHEDULER.json or local:N, N the number of processes")


def _address_in(path: str) -> str:
    """Return the address that a scheduler has written into its file."""
    try:
        with open(path, "rb") as file:
            address = json.loads(file.read(1 << 20))["address"]
    except OSError as error:
        what = f"cannot read the scheduler's file: {(error.strerror or str(error)).lower()}"
        raise BncliError(what, where=path, hint="is the scheduler running?") from error
    except (ValueError, KeyError, TypeError) as error:
        hint = "dask scheduler --scheduler-file FILE writes one"
        raise BncliError("this is no scheduler file", where=path, hint=hint) from error
    return str(address)


@contextmanager
def _silenced() -> Iterator[None]:
    """Silence the loggers of dask and its libraries, here and (by a variable) in workers started here."""
    variable = "DASK_LOGGING__DISTRIBUTED"
    before = os.environ.get(variable)
    os.environ[variable] = _LEVEL
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before


@contextmanager
def _started(kind: str, place: str, address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at `place`, or of one that is started here."""
    from distributed import Client, LocalCluster

    local = None
    if kind != "local" and not _answers(place):
        raise _unreachable(address)
    try:
        if kind == "local":
            sizes = {"n_workers": int(place), "threads_per_worker": 1, "memory_limit": 0, "preload": [_DEAF]}
            local = LocalCluster(**sizes, dashboard_address=None, silence_logs=logging.CRITICAL)
        client = Client(local or place, timeout=CONNECT_SECONDS)
    except BaseException as error:
        _close(local)
        if isinstance(error, (OSError, TimeoutError, ValueError, RuntimeError)):
            raise _unreachable(address) from error
        raise
    try:
        yield client
    finally:
        _close(client)
        _close(local)


def _answers(place: str) -> bool:
    """Return whether somebody speaks there as a scheduler does, who begins.

    Dask waits for ever for one who says nothing.
    """
    deadline = time.monotonic() + CONNECT_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        try:
            parts = urlsplit(place)
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=left) as connection:
                if parts.scheme != "tcp":  # of tls the client speaks first
                    return True
                connection.settimeout(max(deadline - time.monotonic(), 0.1))
                # Messages begin with the number of bytes that follow (8 bytes, little-endian), and the first is
                # short.
                head = connection.recv(8)
                return len(head) == 8 and int.from_bytes(head, "little") < 1 << 20
        except (OSError, ValueError):
            time.sleep(0.2)  # it may be about to start
    return False


def _unreachable(address: str) -> BncliError:
    what = f"no scheduler answers at {address} (within {CONNECT_SECONDS} seconds)"
    return BncliError(what, hint="see that `dask scheduler` runs there and that this machine may reach it")


def _close(part: Any) -> None:
    """End a client, or a cluster of this machine, even if it does not answer any more."""
    if part is not None:
        with suppress(Exception):
            part.close(timeout=CONNECT_SECONDS)


def _worker(told: Mapping[str, Any]) -> Worker:
    """Return what a scheduler tells of a worker."""
    tasks = told["metrics"].get("task_counts", {})
    is_busy = any(tasks.get(state) for state in ("executing", "flight", "long-running"))
    return Worker(told["nthreads"], told["memory_limit"] or 0, told["status"] == "paused", is_busy)


def _itself(value: Any) -> Any:
    return value


def _raise(error: Exception) -> NoReturn:
    """Raise an error of dask as one of this program; raise errors of a task unchanged."""
    name = type(error).__name__
    if name == "KilledWorker":
        what = f"{RETRIES + 1} workers died in the middle of the same task"
        hint = "most often memory ran out: give workers more (--memory-limit), or fewer threads"
        raise BncliError(what, hint=hint) from error
    is_broken = name in ("CommClosedError", "ClosedClientError") or "scheduler-connection-lost" in str(error)
    if is_broken:
        raise GoneError("the connection to the cluster broke", hint="see whether its scheduler still runs") from error
    if name in ("FutureCancelledError", "CancelledError", "FuturesCancelledError"):
        raise LostError(str(error)) from error
    raise error
