"""Tasks that know nothing of each other, done by whichever worker is free.

A worker makes what serves the tasks (a Runner, which remembers the table in hand) once for each of its threads, and
keeps that of the last command alone.

Reading on a cluster: a file of a table is a task, whose worker parses it, or codes it, by itself.

What a worker has made stays with it until the rows of its file are next: here is one file's at a time. Workers read
files by their whole paths; errors name them as they were typed.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from bncli.errors import BncliError
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.source import Source
from bncli.steps.cluster.checks import check_workers, files_of, for_workers
from bncli.steps.cluster.connection import Cluster, Future, GoneError, LostError, connected
from bncli.steps.run import limited
from bncli.watch import Note, Progress, Run, Watch

Task = TypeVar("Task")
Serve = Callable[[Any], Callable[[Any], Any]]
"""From what all tasks share to the function of one task; a function of a module, known to workers by its name."""
_AHEAD = 2
"""Tasks handed out a thread: one in hand and one that waits."""
_here = threading.local()


@dataclass(frozen=True)
class _Files:
    cluster: Cluster
    source: Source
    watch: Watch

    @property
    def typed(self) -> list[str]:
        return [one.path for one in find_inputs(self.source.paths, keep=False)]

    def each(
        self, work: Callable[..., Iterable[Any]], ask: Callable[[], tuple[Any, ...]]
    ) -> Iterator[tuple[str, list[Any], BncliError | None]]:
        """See `Run.each_file`; an answer may ask a later question, so each is asked when its task is handed out."""
        typed = self.typed
        whole = [os.path.abspath(path) for path in typed]
        # the columns of all files are those of the first
        files = [(path,) if path == whole[0] else (whole[0], path) for path in whole]
        tasks = ((paths, work, ask()) for paths in files)
        done, total = 0, sum(map(os.path.getsize, whole))
        for number, (found, error) in enumerate(in_turn(self.cluster, _serve, for_workers(self.source), tasks)):
            names = {whole[i]: typed[i] for i in {0, number}}
            yield typed[number], found, None if error is None else as_typed(error, names)
            done += os.path.getsize(whole[number])
            self.watch(Progress(done, total))


def each_task(
    cluster: Cluster, serve: Serve, shared: Any, tasks: Iterable[Task], skip: Callable[[Task], bool]
) -> Iterator[tuple[Task, Any]]:
    """Tasks with their results as they come; a task that is to be skipped when its turn comes has none.

    A result is a BncliError where workers died with it.
    """
    ask = partial(_served, serve, uuid.uuid4().hex, shared)
    turns = (task for task in tasks if not skip(task))
    waiting: dict[Any, Task] = {}
    for task in turns:
        waiting[cluster.submit(ask, task)] = task
        if len(waiting) >= _AHEAD * cluster.n_threads:
            yield from _done(cluster, waiting)
    while waiting:
        yield from _done(cluster, waiting)


def _served(serve: Serve, command: str, shared: Any, task: Any) -> Any:
    """On a worker: the result of a task, by what serves this thread."""
    if getattr(_here, "command", None) != command:
        _here.serving = None  # lets go of the table of another command before the next is read
        _here.serving, _here.command = serve(shared), command
    return _here.serving(task)


def _done(cluster: Cluster, waiting: dict[Any, Task]) -> Iterator[tuple[Task, Any]]:
    """Yield what is done now, at least one; no longer among those that wait."""
    with _alive():
        done = cluster.first(list(waiting))
    for future in done:
        task = waiting.pop(future)
        try:
            yield task, _value(cluster, future)
        except GoneError:
            raise
        except BncliError as error:
            yield task, error


@contextmanager
def _alive() -> Iterator[None]:
    """Tasks are cancelled by nobody but a cluster that goes."""
    try:
        yield
    except LostError as error:
        raise GoneError("the connection to the cluster broke", hint="run the command again") from error


def _value(cluster: Cluster, future: Future) -> Any:
    with _alive():
        return cluster.values([future])[0]


def in_turn(cluster: Cluster, serve: Serve, shared: Any, tasks: Iterable[Task]) -> Iterator[Any]:
    """Yield the result of each task, in the order of the tasks. What is done before its turn stays with its worker.

    What is shared travels to the cluster once.
    """
    command, common = uuid.uuid4().hex, cluster.share(shared)
    waiting: deque[Future] = deque()
    for task in tasks:
        waiting.append(cluster.submit(_served, serve, command, common, task))
        if len(waiting) >= _AHEAD * cluster.n_threads:
            yield _value(cluster, waiting.popleft())
    while waiting:
        yield _value(cluster, waiting.popleft())


@contextmanager
def reading(source: Source, run: Run) -> Iterator[Run]:
    """Yield the run, with the cluster that it names, checked and ready to read the files of `source`."""
    if run.cluster is None:
        yield run
        return
    files = files_of([source])
    with connected(run.cluster) as cluster:
        check_workers(cluster, files, run.watch)
        found = _Files(cluster, source, run.watch)
        report_idle_threads(len(found.typed), cluster, run.watch)
        yield run._replace(each_file=found.each)


def report_idle_threads(n_files: int, cluster: Cluster, watch: Watch) -> None:
    """Report a table that has fewer files than there are threads."""
    if n_files < cluster.n_threads:
        files = "one file is one task" if n_files == 1 else f"{n_files} files are {n_files} tasks"
        watch(Note(f"{files}: {n_files} of {cluster.n_threads} threads of the cluster help"))


def as_typed(error: BncliError, names: Mapping[str, str]) -> BncliError:
    """With every path in the words of the command line."""

    def named(text: str) -> str:
        for path in sorted(names, key=len, reverse=True):
            text = text.replace(path, names[path])
        return text

    return type(error)(named(error.what), where=named(error.where), hint=named(error.hint))


def _serve(source: Source) -> Callable[[Any], tuple[list[Any], BncliError | None]]:
    """On a worker: the function that reads the last of some files, and gives what it found up to an error."""

    def read(task: Any) -> tuple[list[Any], BncliError | None]:
        paths, work, asked = task
        found: list[Any] = []
        try:
            found.extend(work(replace(source, paths=paths), len(paths) - 1, limited(Run()), *asked))
        except BncliError as error:
            return found, error
        return found, None

    return read
