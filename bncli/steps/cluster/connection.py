"""The connection to a Dask cluster: the only module that imports dask.

    tcp://HOST:PORT    a running scheduler (tls:// uses the certificates in dask's own configuration)
    file:PATH          a running scheduler whose address `dask scheduler --scheduler-file PATH` has written to the file
    local:N            N worker processes on this machine, started here and stopped when the command ends

Every request to a cluster ends in bounded time:

- A scheduler that does not answer within CONNECT_SECONDS counts as absent.
- The command fails if the cluster has no workers for ALONE_SECONDS. This leaves time for a nanny, the process with
  which Dask supervises a worker, to restart a worker that died.
- A task whose worker dies is run again elsewhere, after its inputs have been computed again. If RETRIES + 1 workers
  have died during the same task, the command fails.

Without further checks, a command could wait forever in two cases, both of which `WorkerMonitor` recognizes:

- Near its memory limit, Dask pauses a worker, which then takes no more tasks. If the memory consists of mapped pages of
  the worker's own row blocks, nothing ever frees it.
- Beyond the limit, the nanny kills the worker and starts another one. The scheduler takes this for a new worker, so
  Dask does not count the death against any task, and this may go on forever.

Dask's own warnings and log messages never reach the standard error.
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

CONNECT_SECONDS = 10
ANSWER_SECONDS = 60.0
"""The maximum time in seconds for a worker's answer: it may first have to load this package from a slow disk."""
ALONE_SECONDS = 20.0
STUCK_SECONDS = 20.0
RETRIES = 3
BROADCAST_BYTES = 256 << 10
"""Operands of at most this many bytes are sent inside each task, larger ones once to every worker."""
MORE_MEMORY = "give workers more memory (dask worker --memory-limit), or start more workers"
_MOST_RESTARTS = 4
"""The maximum number of times, on average per worker, that workers may end while no task is done."""
_POLL_SECONDS = 1.0
"""The seconds between two checks of whether any worker is left to wait for."""
Future = Any
"""A value that is, or will be, in the memory of a worker."""


class ClusterGoneError(BncliError):
    """Raised when the cluster has shut down or its workers no longer make progress, so that no task can be retried."""


class LostResultsError(Exception):
    """Raised when values on workers were lost or could not be sent, so that they must be computed or sent again."""


class Worker(NamedTuple):
    """The scheduler's view of a worker: threads, memory limit in bytes (0: none), whether paused, whether busy."""

    threads: int
    limit: int = 0
    is_paused: bool = False
    is_busy: bool = False


@dataclass
class WorkerMonitor:
    """A monitor of the workers during one wait for a task.

    known: the addresses of the workers at the last check. n_ends: how many workers have ended during the wait.
    """

    known: set[str]
    n_ends: int = 0
    _since: dict[str, float] = field(default_factory=dict)

    def check(self, workers: Mapping[str, Worker]) -> None:
        """Raise ClusterGoneError if waiting has become pointless.

        That is the case if workers keep ending, if there have been none for ALONE_SECONDS, or if for STUCK_SECONDS some
        have been paused and none has been busy.
        """
        if workers:
            self.n_ends += len(self.known.difference(workers))
            most = _MOST_RESTARTS * max(len(self.known), 1)
            self.known = set(workers)
            if self.n_ends > most:
                what = f"workers keep stopping ({self.n_ends} times without any progress)"
                raise ClusterGoneError(what, hint=f"the usual reason is too little memory: {MORE_MEMORY}")
        if self._seconds_in("alone", not workers) > ALONE_SECONDS:
            raise ClusterGoneError("the cluster has no workers left", hint="start workers, then run the command again")
        paused = [address for address, worker in workers.items() if worker.is_paused]
        stuck = bool(paused) and not any(worker.is_busy for worker in workers.values())
        if self._seconds_in("stuck", stuck) > STUCK_SECONDS:
            limit = workers[paused[0]].limit
            what = (
                f"{len(paused)} of {len(workers)} workers are paused because their memory is full, for example "
                f"{paused[0]}"
            )
            raise ClusterGoneError(f"{what} (limit {limit / 1e6:,.0f} MB)", hint=MORE_MEMORY)

    def _seconds_in(self, state: str, is_in: bool) -> float:
        """Return the number of seconds for which the cluster has been in a state, or 0 if it is not in it now."""
        if not is_in:
            self._since.pop(state, None)
            return 0.0
        return time.monotonic() - self._since.setdefault(state, time.monotonic())


class Cluster:
    """The workers of a cluster; functions are sent to them by module and name, so they need the same modules."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.workers: Mapping[str, Worker] = {}
        self.refresh()

    def refresh(self) -> None:
        """Ask the scheduler which workers there are, and store them by address."""
        facts = self._client.sync(self._client.scheduler.identity, callback_timeout=CONNECT_SECONDS)["workers"]
        self.workers = {}
        for address in sorted(facts):
            worker = facts[address]
            tasks = worker["metrics"].get("task_counts", {})
            is_busy = any(tasks.get(state) for state in ("executing", "flight", "long-running"))
            limit = worker["memory_limit"] or 0
            self.workers[address] = Worker(worker["nthreads"], limit, worker["status"] == "paused", is_busy)

    @property
    def n_threads(self) -> int:
        """The total number of threads of all workers, at least 1."""
        return max(sum(worker.threads for worker in self.workers.values()), 1)

    def ask_all(self, function: Callable[..., Any], *arguments: Any) -> Mapping[str, Any]:
        """Call a function on every worker, and return its results, or the exceptions that it raises, by address.

        The result of a worker that does not answer within ANSWER_SECONDS is a TimeoutError.
        """

        async def ask(address: str) -> Any:
            # Inside the client's own event loop `run` returns a coroutine.
            answer = self._client.run(function, *arguments, workers=[address], on_error="return")
            try:
                return (await asyncio.wait_for(answer, ANSWER_SECONDS))[address]
            except (TimeoutError, KeyError, OSError) as error:
                return error

        loop = self._client.loop.asyncio_loop
        coming = {address: asyncio.run_coroutine_threadsafe(ask(address), loop) for address in self.workers}
        return {address: answer.result() for address, answer in coming.items()}

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future:
        """Submit a task, which runs on `worker` if possible, and return its future; arguments may be futures."""
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self._client.submit(function, *arguments, pure=False, retries=RETRIES, **where)

    def share(self, value: Any) -> Future:
        """Send a value once and return its future: the result of a task, which is run again if the value is lost."""
        return self.submit(_identity, value)

    def broadcast(self, value: Any) -> Future:
        """Send a value to every worker, for use in one round, and return its future.

        The value cannot be computed again if it is lost. Raises LostResultsError if it cannot be sent.
        """
        try:
            return self._client.scatter(value, broadcast=True, hash=False, timeout=ALONE_SECONDS)
        except Exception as error:
            raise LostResultsError(str(error)) from error

    def values(self, futures: Sequence[Future]) -> list[Any]:
        """Wait for the tasks, and return their results in the order of `futures`.

        Raises the error of a task that failed, LostResultsError if the tasks must be run again, and ClusterGoneError if
        waiting becomes pointless.
        """

        async def gather() -> list[Any]:
            return list(await self._client.gather(list(futures), asynchronous=True))

        # Waiting and fetching are one request, so a result that is lost between the two is waited for again.
        coming = asyncio.run_coroutine_threadsafe(gather(), self._client.loop.asyncio_loop)
        try:
            self._wait(lambda: concurrent.futures.wait([coming], _POLL_SECONDS).done)
            return coming.result()
        except Exception as error:
            _raise_translated(error)
        finally:
            coming.cancel()

    def first(self, futures: Sequence[Future]) -> list[Future]:
        """Wait until at least one task is done, and return the futures of all tasks that are done."""
        from distributed import wait

        try:
            return self._wait(lambda: wait(list(futures), timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED").done)
        except Exception as error:
            _raise_translated(error)

    def _wait(self, poll: Callable[[], Collection[Any]]) -> list[Any]:
        """Call `poll` until it returns something; raise ClusterGoneError if waiting becomes pointless."""
        monitor = WorkerMonitor(set(self.workers))
        while True:
            with suppress(TimeoutError):  # dask raises this while nothing is done yet
                if done := poll():
                    return list(done)
            try:
                self.refresh()
            except (OSError, TimeoutError, AttributeError, RuntimeError):
                monitor.check({})
            else:
                monitor.check(self.workers)


def _identity(value: Any) -> Any:
    return value


def _raise_translated(error: Exception) -> NoReturn:
    """Raise an error of dask as BncliError, ClusterGoneError or LostResultsError, and an error of a task unchanged."""
    name = type(error).__name__
    if name == "KilledWorker":
        what = f"{RETRIES + 1} workers died during the same task"
        hint = "the usual reason is too little memory: give workers more memory (--memory-limit), or fewer threads"
        raise BncliError(what, hint=hint) from error
    is_broken = name in ("CommClosedError", "ClosedClientError") or "scheduler-connection-lost" in str(error)
    if is_broken:
        raise ClusterGoneError(
            "the connection to the cluster broke", hint="check whether its scheduler is still running"
        ) from error
    if name in ("FutureCancelledError", "CancelledError", "FuturesCancelledError"):
        raise LostResultsError(str(error)) from error
    raise error


_LEVEL_VARIABLE, _LEVEL = "DASK_LOGGING__DISTRIBUTED", "critical"
_LOGGERS = dict.fromkeys(
    ("distributed", "distributed.client", "bokeh", "tornado", "tornado.application", "asyncio"), _LEVEL
)
_SETTINGS = {
    "logging": _LOGGERS,
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
    "distributed.comm.retry.count": 3,
    # Otherwise a nanny makes malloc return every 64 KB to the system, and kernels take twice as long.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 26,
}
_PRELOAD = """import logging, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("tornado.application").setLevel(logging.CRITICAL)
"""
"""The code that a local worker runs when it starts.

The worker ignores ^C, which the terminal sends to all processes, because the main process ends its workers. It does not
log a heartbeat that fails because the scheduler has ended.
"""


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Yield the cluster at an address, with at least one worker; processes started here are stopped afterwards.

    Raises UsageError for a malformed address or a missing package, BncliError if no scheduler or worker is found.
    """
    kind, target = _parse_address(address)
    try:
        import dask.config

        # Distributed adds its own settings when it is imported. If that happened inside the block that changes
        # settings for a while, they would be gone after the block.
        with dask.config.set({"logging": _LOGGERS}), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("distributed")
    except ModuleNotFoundError as error:
        hint = "install it with python -m pip install 'bncli[cluster]', or install dask and distributed"
        raise UsageError("--cluster needs the package 'distributed', which is not installed", hint=hint) from error
    # Silence the loggers of dask and its libraries, here and (by the variable) in workers that are started here.
    level_before = os.environ.get(_LEVEL_VARIABLE)
    with dask.config.set(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ[_LEVEL_VARIABLE] = _LEVEL
        logging.disable(logging.CRITICAL)
        try:
            with _connect(kind, target, address) as client:
                cluster = Cluster(client)
                end = time.monotonic() + CONNECT_SECONDS
                while not cluster.workers:
                    if time.monotonic() > end:
                        what = f"the scheduler at {address} has no workers"
                        hint = "start some with dask worker ADDRESS, in an environment that contains bncli"
                        raise BncliError(what, hint=hint)
                    time.sleep(0.1)
                    cluster.refresh()
                yield cluster
        finally:
            logging.disable(logging.NOTSET)
            os.environ.pop(_LEVEL_VARIABLE)
            if level_before is not None:
                os.environ[_LEVEL_VARIABLE] = level_before


def _parse_address(address: str) -> tuple[str, str]:
    """Parse an address; return its kind, and the number of workers (for local:N) or the address of the scheduler.

    Raises UsageError for a malformed address, and BncliError for a scheduler file that cannot be read or is not one.
    """
    kind, _, target = address.partition(":")
    if kind == "local" and re.fullmatch("[1-9][0-9]{0,3}", target):
        return kind, target
    if kind in ("tcp", "tls") and re.fullmatch(r"//[^/\s]+:[0-9]{1,5}", target):
        return kind, address
    if kind != "file" or not target:
        what = f"--cluster {address} is not the address of a cluster"
        raise UsageError(what, hint="use tcp://HOST:PORT, file:SCHEDULER.json or local:N for N processes")
    try:
        with open(target, "rb") as file:
            return kind, str(json.loads(file.read(1 << 20))["address"])
    except OSError as error:
        what = f"cannot read the scheduler's file: {(error.strerror or str(error)).lower()}"
        raise BncliError(what, where=target, hint="is the scheduler running?") from error
    except (ValueError, KeyError, TypeError) as error:
        hint = "to write one, start dask scheduler --scheduler-file FILE"
        raise BncliError("the file is not a scheduler file", where=target, hint=hint) from error


@contextmanager
def _connect(kind: str, target: str, address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at `target`, or of a new local cluster of `target` workers if `kind` is local."""
    from distributed import Client, LocalCluster

    what = f"no scheduler answered at {address} (within {CONNECT_SECONDS} seconds)"
    unreachable = BncliError(
        what, hint="check that `dask scheduler` is running there and that this machine can reach it"
    )
    local = None
    if kind != "local" and not _is_scheduler(target):
        raise unreachable
    try:
        if kind == "local":
            sizes = {"n_workers": int(target), "threads_per_worker": 1, "memory_limit": 0, "preload": [_PRELOAD]}
            local = LocalCluster(**sizes, dashboard_address=None, silence_logs=logging.CRITICAL)
        client = Client(local or target, timeout=CONNECT_SECONDS)
    except BaseException as error:
        _close(local)
        if isinstance(error, (OSError, TimeoutError, ValueError, RuntimeError)):
            raise unreachable from error
        raise
    try:
        yield client
    finally:
        _close(client)
        _close(local)


def _is_scheduler(target: str) -> bool:
    """Return whether a scheduler answers at `target` within CONNECT_SECONDS; with tls, whether the port is open.

    Dask itself would wait forever for a server that is silent.
    """
    deadline = time.monotonic() + CONNECT_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        try:
            parts = urlsplit(target)
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=left) as connection:
                if parts.scheme != "tcp":  # with tls the client speaks first
                    return True
                connection.settimeout(max(deadline - time.monotonic(), 0.1))
                # A scheduler speaks first. A message begins with the number of bytes that follow (8 bytes,
                # little-endian), and the first message is short.
                head = connection.recv(8)
                return len(head) == 8 and int.from_bytes(head, "little") < 1 << 20
        except (OSError, ValueError):
            time.sleep(0.2)  # it may be about to start
    return False


def _close(part: Any) -> None:
    """Close a client or a local cluster, even if it no longer answers."""
    if part is not None:
        with suppress(Exception):
            part.close(timeout=CONNECT_SECONDS)
