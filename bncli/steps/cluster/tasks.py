"""Tasks that know nothing of each other, done by whichever worker is free.

A worker makes what serves the tasks (a Runner, which remembers the table in hand) once for each of its threads, and
keeps that of the last command alone.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from bncli.errors import BncliError
from bncli.steps.cluster.connection import Cluster, Future, LostError
from bncli.steps.cluster.patience import GoneError

Task = TypeVar("Task")

Serve = Callable[[Any], Callable[[Any], Any]]
"""From what all tasks share to the function of one task; a function of a module, known to workers by its name."""

_AHEAD = 2
"""Tasks handed out a thread: one in hand and one that waits."""


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


def in_turn(cluster: Cluster, serve: Serve, shared: Any, tasks: Iterable[Task]) -> Iterator[Any]:
    """The result of each task, in the order of the tasks. What is done before its turn stays with its worker.

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


def _value(cluster: Cluster, future: Future) -> Any:
    with _alive():
        return cluster.values([future])[0]


@contextmanager
def _alive() -> Iterator[None]:
    """Tasks are cancelled by nobody but a cluster that goes."""
    try:
        yield
    except LostError as error:
        raise GoneError("the connection to the cluster broke", hint="run the command again") from error


def _done(cluster: Cluster, waiting: dict[Any, Task]) -> Iterator[tuple[Task, Any]]:
    """What is done now, at least one; no longer among those that wait."""
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


_here = threading.local()


def _served(serve: Serve, command: str, shared: Any, task: Any) -> Any:
    """On a worker: the result of a task, by what serves this thread."""
    if getattr(_here, "command", None) != command:
        _here.serving = None  # lets go of the table of another command before the next is read
        _here.serving, _here.command = serve(shared), command
    return _here.serving(task)
