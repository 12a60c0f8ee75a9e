"""Tasks run by several processes at once, each asked for one at a time; and the program that such a process runs.

Conventions: the processes are programs of their own, started afresh (no copy of a parent with threads), in sessions
of their own (^C reaches the parent alone, which then ends them), with one thread in the BLAS. One that dies (killed
where memory ran out, say) takes its task with it and is replaced. A thread for each process waits for its answers.

A process runs this module (`python -m`, of no use by hand): a plan and then tasks come in on stdin, what became of them
goes out. It ends as soon as nobody can ask it any more, in the middle of a task if need be, so that nothing is left
behind when its parent is killed.
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
from bncli.steps.compare.entries import Outcome
from bncli.steps.compare.runner import Failure, Runner, RunPlan, Task

Result = tuple[Task, Outcome | Failure]

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def in_processes(plan: RunPlan, tasks: Iterable[Task], jobs: int, skip: Callable[[Task], bool]) -> Iterator[Result]:
    """Results as they come; a task that is to be skipped when its turn comes has none.

    Closing the iterator ends all processes at once.
    """
    turns = _Turns(tasks, skip)
    results: SimpleQueue[Result | BaseException | None] = SimpleQueue()
    workers = [_Worker(plan, turns, results) for _ in range(jobs)]
    try:
        for worker in workers:
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
        for worker in workers:
            worker.end()


class _Turns:
    """Hands out tasks, one at a time, to whoever asks."""

    def __init__(self, tasks: Iterable[Task], skip: Callable[[Task], bool]) -> None:
        self._tasks = iter(tasks)
        self._skip = skip
        self._lock = threading.Lock()
        self.ended = False

    def next(self) -> Task | None:
        with self._lock:
            return next((task for task in self._tasks if not self._skip(task)), None) if not self.ended else None

    def end(self) -> None:
        self.ended = True


class _Worker:
    """A thread with a process that works for it."""

    def __init__(self, plan: RunPlan, turns: _Turns, results: SimpleQueue[Result | BaseException | None]) -> None:
        self._plan = plan
        self._turns = turns
        self._results = results
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """End the process, whatever it does."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            while (task := self._turns.next()) is not None:
                result = self._ask(task)
                self._results.put((task, result))
            self._results.put(None)
        except BaseException as error:
            self._results.put(error)
        finally:
            self._stop_process()

    def _ask(self, task: Task) -> Outcome | Failure:
        process = self._process or self._start_process()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(task, process.stdin)
            process.stdin.flush()
            answer: Outcome | Failure = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):  # it died; half an answer is no pickle
            return Failure(_end_of(self._stop_process()))
        return answer

    def _start_process(self) -> subprocess.Popen[bytes]:
        """Return a new process that knows the plan."""
        home = str(Path(bncli.__file__).parents[1])
        paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(paths)}
        with self._lock:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bncli.steps.compare.pool"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # last words of libraries would break the bar; what matters is an answer
                env=environment,
                start_new_session=True,  # ^C in the terminal reaches the parent alone, which ends its processes
            )
            if self._turns.ended:  # `end` was called while there was no process to kill yet
                self._process.kill()
        assert self._process.stdin is not None
        with suppress(OSError):  # where it is gone already, the first task will tell
            pickle.dump(self._plan, self._process.stdin)
            self._process.stdin.flush()
        return self._process

    def _stop_process(self) -> int:
        """End the process, if there is one; returns its exit code."""
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


def serve() -> None:
    """Answers until stdin ends."""
    asked = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what anything prints must not get among the answers
        runner = Runner(pickle.load(asked))
        tasks: SimpleQueue[Task] = SimpleQueue()
        threading.Thread(target=_listen, args=(asked, tasks), daemon=True).start()
        while True:
            pickle.dump(runner.run(tasks.get()), answers)
            answers.flush()


def _listen(asked: BinaryIO, tasks: SimpleQueue[Task]) -> None:
    """Take in tasks; the end of the input is the end of the process."""
    try:
        while True:
            tasks.put(pickle.load(asked))
    finally:
        os._exit(0)  # sys.exit would end this thread alone, and the task in hand would go on


if __name__ == "__main__":
    serve()
