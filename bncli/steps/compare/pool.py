"""Run tasks in several processes, each of which gets one task at a time; and the program of such a process.

A process runs this module as a program (`python -m`, which is of no use by hand). It receives a plan and then tasks on
stdin, and writes their results to stdout. It ends as soon as its stdin is closed, even in the middle of a task, so that
nothing remains if its parent is killed.

Conventions: the processes are started afresh (not forked from a parent with threads), in sessions of their own (^C
reaches only the parent, which then ends them), with one BLAS thread. A process that dies, for instance because memory
ran out, fails its task and is replaced. One thread per process waits for its results.
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
from typing import BinaryIO

import bncli
from bncli.steps.compare.trials import Failure, Outcome, Runner, RunPlan, Task

Result = tuple[Task, Outcome | Failure]

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def run_in_processes(plan: RunPlan, tasks: Iterable[Task], jobs: int, skip: Callable[[Task], bool]) -> Iterator[Result]:
    """Run the tasks in `jobs` processes and yield results as they arrive; a task is left out if `skip(task)` is true.

    Closing the iterator ends all processes at once.
    """
    queue = _TaskQueue(tasks, skip)
    results: SimpleQueue[Result | BaseException | None] = SimpleQueue()
    workers = [_Worker(plan, queue, results) for _ in range(jobs)]
    try:
        for worker in workers:
            worker.thread.start()
        n_busy = jobs
        while n_busy:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                n_busy -= 1
            else:
                yield result
    finally:
        queue.is_closed = True
        for worker in workers:
            worker.end()


class _TaskQueue:
    """A queue that hands out tasks to threads, one at a time."""

    def __init__(self, tasks: Iterable[Task], skip: Callable[[Task], bool]) -> None:
        self._tasks = iter(tasks)
        self._skip = skip
        self._lock = threading.Lock()
        self.is_closed = False

    def next(self) -> Task | None:
        with self._lock:
            return None if self.is_closed else next((task for task in self._tasks if not self._skip(task)), None)


class _Worker:
    """A thread with a process that works for it."""

    def __init__(self, plan: RunPlan, queue: _TaskQueue, results: SimpleQueue[Result | BaseException | None]) -> None:
        self._plan = plan
        self._queue = queue
        self._results = results
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def end(self) -> None:
        """End the process at once, and its thread."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
        if self.thread.ident is not None:
            self.thread.join()

    def _work(self) -> None:
        try:
            while (task := self._queue.next()) is not None:
                self._results.put((task, self._run(task)))
            self._results.put(None)
        except BaseException as error:
            self._results.put(error)
        finally:
            self._stop_process()

    def _run(self, task: Task) -> Outcome | Failure:
        process = self._process or self._start_process()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(task, process.stdin)
            process.stdin.flush()
            result: Outcome | Failure = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):  # it died; half a result cannot be unpickled
            code = self._stop_process()
            cause = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            return Failure(f"its process died ({cause}); if memory ran out, use fewer --jobs")
        return result

    def _start_process(self) -> subprocess.Popen[bytes]:
        """Return a new process that has the plan."""
        home = str(Path(bncli.__file__).parents[1])
        paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(paths)}
        with self._lock:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bncli.steps.compare.pool"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # messages of libraries would disturb the progress bar
                env=environment,
                start_new_session=True,  # ^C in the terminal reaches only the parent, which ends its processes
            )
            if self._queue.is_closed:  # `end` was called before there was a process to kill
                self._process.kill()
        assert self._process.stdin is not None
        with suppress(OSError):  # if it has died already, its first task will fail
            pickle.dump(self._plan, self._process.stdin)
            self._process.stdin.flush()
        return self._process

    def _stop_process(self) -> int:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        return process.wait()


def serve() -> None:
    """Run tasks from stdin until it ends."""
    with os.fdopen(os.dup(1), "wb") as results:
        os.dup2(2, 1)  # nothing that is printed may end up among the results
        runner = Runner(pickle.load(sys.stdin.buffer))
        tasks: SimpleQueue[Task] = SimpleQueue()
        threading.Thread(target=_receive, args=(sys.stdin.buffer, tasks), daemon=True).start()
        while True:
            pickle.dump(runner.run(tasks.get()), results)
            results.flush()


def _receive(source: BinaryIO, tasks: SimpleQueue[Task]) -> None:
    """Receive tasks, and end the process at the end of the input."""
    try:
        while True:
            tasks.put(pickle.load(source))
    finally:
        os._exit(0)  # sys.exit would end this thread alone, and the current task would go on


if __name__ == "__main__":
    serve()
