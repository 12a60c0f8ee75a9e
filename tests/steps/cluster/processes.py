"""Real schedulers and workers on this machine, and the command beside them: started anew, or already loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.started import bncli

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
_UNWATCHED = {
    **ENVIRONMENT,
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
"""Without what dask's processes look at many times a second: even idle they take a twentieth of a processor for it."""
_PATIENCE = 120.0


@dataclass
class Processes:
    """A scheduler, at `address`, and its workers."""

    folder: Path
    address: str = ""
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_scheduler(self) -> None:
        file = self.folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        until(lambda: file.exists() and bool(file.read_text()))
        self.address = json.loads(file.read_text())["address"]

    def add_worker(self, *options: str) -> subprocess.Popen[bytes]:
        more = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0", *options)
        worker = self._start("worker", self.address, *more)
        self.workers.append(worker)
        return worker

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        command = [sys.executable, "-m", "dask", kind, *options]
        return subprocess.Popen(command, cwd=self.folder, env=_UNWATCHED, stdout=quiet, stderr=quiet)

    def await_workers(self, n: int) -> None:
        """Waits until the scheduler knows of so many."""
        from distributed import Client

        with Client(self.address, timeout=60, set_as_default=False) as client:
            until(lambda: len(client.nthreads()) == n)

    def end(self) -> None:
        for process in (*self.workers, *([] if self.scheduler is None else [self.scheduler])):
            process.kill()
            process.wait()


@contextmanager
def started(folder: Path, n_workers: int) -> Iterator[Processes]:
    """A cluster of so many workers of one thread each, ended afterwards."""
    processes = Processes(folder)
    try:
        processes.start_scheduler()
        for _ in range(n_workers):
            processes.add_worker()
        processes.await_workers(n_workers)
        yield processes
    finally:
        processes.end()


def until(true: object) -> None:
    """Waits for a condition."""
    end = time.monotonic() + _PATIENCE
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Command:
    """The real command, started anew in a session of its own, whose notes can be waited for."""

    def __init__(self, *words: object, cwd: Path | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bncli", *map(str, words)],
            cwd=cwd,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # a shell starts what runs behind it with this signal ignored, and all programs that are started there too
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self._heard = ""

    def hear(self, words: str) -> None:
        """Reads the standard error up to a line with these words."""
        assert self._process.stderr is not None
        while words not in self._heard:
            line = self._process.stderr.readline()
            assert line, f"ended without a word of {words!r}: {self._heard}"
            self._heard += line

    def interrupt(self) -> None:
        """^C in its terminal."""
        os.killpg(self._process.pid, signal.SIGINT)

    def end(self, seconds: float = _PATIENCE) -> Ended:
        try:
            out, err = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            raise
        return Ended(self._process.returncode, out, self._heard + err)

    def left_over(self) -> list[int]:
        """Processes of its session that still live."""
        return [pid for pid in _processes() if _session_of(pid) == self._process.pid]


def run_anew(*words: object, cwd: Path | None = None) -> Ended:
    """The real command from beginning to end; nothing that it started may be left."""
    command = Command(*words, cwd=cwd)
    ended = command.end()
    until(lambda: not command.left_over())
    return ended


def run(*words: object, cwd: Path | None = None) -> Ended:
    """The command from beginning to end in a fork of a process that has loaded the libraries of a cluster."""
    ended = subprocess.run(
        [bncli(), *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _session_of(pid: int) -> int | None:
    """None for one that has ended, or waits to be collected."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[3])
