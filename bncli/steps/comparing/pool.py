"""Units done by several processes at once, each asked for one at a time.

Decided here: the processes are programs of their own, started afresh (no copy of a parent with threads), in sessions
of their own (^C reaches the parent alone, which then ends them), with one thread in the BLAS. One that dies (killed
where memory ran out, say) takes its unit with it and is replaced. A thread for each process waits for its answers.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import bncli
from bncli.steps.comparing.outcomes import Outcome
from bncli.steps.comparing.runner import Failure, Plan, Unit

Result = tuple[Unit, Outcome | Failure]

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def in_processes(plan: Plan, units: Iterable[Unit], jobs: int, skip: Callable[[Unit], bool]) -> Iterator[Result]:
    """Results as they come; a unit that is to be skipped when its turn comes has none.

    Closing the iterator ends all processes at once.
    """
    turns = _Turns(units, skip)
    results: SimpleQueue[Result | BaseException | None] = SimpleQueue()
    crew = [_Worker(plan, turns, results) for _ in range(jobs)]
    try:
        for worker in crew:
            worker.start()
        busy = jobs
        while busy:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                busy -= 1
            else:
                yield result
    finally:
        turns.end()
        for worker in crew:
            worker.end()


class _Turns:
    """Hands out units, one at a time, to whoever asks."""

    def __init__(self, units: Iterable[Unit], skip: Callable[[Unit], bool]) -> None:
        self._units = iter(units)
        self._skip = skip
        self._lock = threading.Lock()
        self.ended = False

    def next(self) -> Unit | None:
        with self._lock:
            return next((unit for unit in self._units if not self._skip(unit)), None) if not self.ended else None

    def end(self) -> None:
        self.ended = True


class _Worker:
    """A thread with a process that works for it."""

    def __init__(self, plan: Plan, turns: _Turns, results: SimpleQueue[Result | BaseException | None]) -> None:
        self._plan = plan
        self._turns = turns
        self._results = results
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Ends the process, whatever it does."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            while (unit := self._turns.next()) is not None:
                result = self._ask(unit)
                self._results.put((unit, result))
            self._results.put(None)
        except BaseException as error:
            self._results.put(error)
        finally:
            self._dismiss()

    def _ask(self, unit: Unit) -> Outcome | Failure:
        process = self._process or self._hire()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(unit, process.stdin)
            process.stdin.flush()
            answer: Outcome | Failure = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            return Failure(_end_of(self._dismiss()))
        return answer

    def _hire(self) -> subprocess.Popen[bytes]:
        """A new process that knows the plan."""
        home = str(Path(bncli.__file__).parents[1])
        paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(paths)}
        with self._lock:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bncli.steps.comparing.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
            if self._turns.ended:
                self._process.kill()
        assert self._process.stdin is not None
        with suppress(OSError):  # where it is gone already, the first unit will tell
            pickle.dump(self._plan, self._process.stdin)
            self._process.stdin.flush()
        return self._process

    def _dismiss(self) -> int:
        """Ends the process, if there is one; returns its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        return process.wait()


def _end_of(code: int) -> str:
    cause = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"the process that tried it died ({cause}); if memory ran out, take fewer --jobs"
