"""Independent tasks on a cluster: check its workers, then give each task to a worker that is free.

The results are the same as in a single process, because the tasks share only their inputs.

- Before the work begins, every worker reports its versions and the files it sees, and the first difference is an error.
  The versions of Python (major and minor), bncli and numpy must be the same as in this process, or results could
  differ. A file must have the same absolute path and the same size everywhere. Workers should run numpy's BLAS on one
  thread; otherwise the last bits of sums may differ, and there is a warning.
- A worker builds the object that runs the tasks (such as one that has read the table) once per thread, and keeps only
  the object of the most recent command.
- In a table of several files, a task reads one file. The result stays on the worker until the file is next in order, so
  that this process holds the results of one file at a time. Workers use absolute paths; errors show paths as they were
  given on the command line.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

import bncli
from bncli.errors import BncliError, UsageError
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.column_roles import read_schema_file
from bncli.files.reading.source import Source
from bncli.steps.cluster.connection import (
    ANSWER_SECONDS,
    Cluster,
    ClusterGoneError,
    Future,
    LostResultsError,
    connected,
)
from bncli.steps.run import with_memory_limit
from bncli.watch import Note, Progress, Run, Watch

Task = TypeVar("Task")
Serve = Callable[[Any], Callable[[Any], Any]]
"""A module-level function that takes what all tasks share and returns the function that runs a task.

It is sent to the workers by its name.
"""
_QUEUED_PER_THREAD = 2
"""The maximum number of tasks submitted per thread of the cluster: one that runs, and one that waits."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_local = threading.local()


@contextmanager
def checked_cluster(address: str, paths: Sequence[str], watch: Watch) -> Iterator[Cluster]:
    """Yield the cluster at an address after `check_workers` has checked its workers; raise BncliError if this fails."""
    with connected(address) as cluster:
        check_workers(cluster, paths, watch)
        yield cluster


def check_workers(cluster: Cluster, paths: Sequence[str], watch: Watch) -> None:
    """Raise BncliError if a worker does not answer, has other versions, or does not see the same files at `paths`.

    A worker that may run its BLAS on several threads causes a warning.
    """
    versions, sizes, _ = worker_facts(paths)
    for address, answer in cluster.ask_all(worker_facts, list(paths)).items():
        if isinstance(answer, TimeoutError):
            what = f"worker {address} does not answer (within {ANSWER_SECONDS:.0f} seconds)"
            raise BncliError(what, hint="stop this worker, or check what keeps its machine busy")
        if isinstance(answer, BaseException):
            hint = f"install bncli {bncli.__version__} in the environment of the workers"
            if isinstance(answer, ImportError):
                raise BncliError(f"worker {address} has no suitable version of bncli: {answer}", hint=hint)
            raise BncliError(f"worker {address} cannot answer: {type(answer).__name__}: {answer}", hint=hint)
        its_versions, its_sizes, has_one_thread = answer
        for name, version in versions.items():
            if its_versions.get(name) != version:
                what = f"worker {address} has {name} {its_versions.get(name)}, but this machine has {version}"
                raise BncliError(what, hint="results could differ: install the same versions everywhere")
        for path, size, its_size in zip(paths, sizes, its_sizes, strict=True):
            if its_size is None:
                hint = "put the data where every worker can read it under the same path"
                raise BncliError(f"worker {address} cannot find the data", where=path, hint=hint)
            if its_size != size:
                what = (
                    f"worker {address} finds a different file: {its_size:,} bytes, but {size:,} bytes on this machine"
                )
                raise BncliError(what, where=path, hint="copy the same file to every machine")
        if not has_one_thread:
            text = (
                f"worker {address} may run its BLAS on several threads; set OMP_NUM_THREADS=1 there to get "
                "identical results"
            )
            watch(Note(text, warning=True))


def worker_facts(paths: Sequence[str]) -> tuple[dict[str, str], list[int | None], bool]:
    """Return the versions of this process, the size of each file in bytes, and whether BLAS is set to one thread.

    The size of a missing file is None. Also makes the process keep freed memory, for the work that follows.
    """
    keep_freed_memory()
    major, minor, _ = platform.python_version_tuple()
    versions = {"python": f"{major}.{minor}", "bncli": bncli.__version__, "numpy": np.__version__}
    sizes: list[int | None] = []
    for path in paths:
        try:
            sizes.append(os.stat(path).st_size)
        except OSError:
            sizes.append(None)
    # OpenBLAS obeys its own variable first
    n_threads = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")
    return versions, sizes, n_threads == "1"


def keep_freed_memory() -> None:
    """Make the C library keep freed memory; otherwise every pass maps temporary arrays of 128 KB or more anew.

    Dask's nannies set MALLOC_TRIM_THRESHOLD_, which also stops the library from raising its own threshold.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library, which does not have this problem
        return
    mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def files_of(sources: Iterable[Source]) -> list[str]:
    """Return the absolute paths of all files of the tables, with their schema files; raise UsageError for a pipe."""
    paths: list[str] = []
    for source in sources:
        for table_file in find_inputs(source.paths, keep=True):
            if not table_file.is_regular:
                what = "the standard input" if table_file.path == "-" else f"the pipe {table_file.path}"
                hint = "save the table as a file that every worker can read"
                raise UsageError(f"the workers of a cluster cannot read {what}", hint=hint)
            paths.append(table_file.path)
        if (schema_file := read_schema_file(source).place) is not None:
            paths.append(schema_file)
    return [os.path.abspath(path) for path in paths]


def for_workers(source: Source) -> Source:
    """Return the source with absolute paths, which are valid in any working directory."""
    schema_file = read_schema_file(source).place
    schema_file = None if schema_file is None else os.path.abspath(schema_file)
    return replace(source, paths=tuple(os.path.abspath(path) for path in source.paths), schema_file=schema_file)


def run_tasks(
    cluster: Cluster, serve: Serve, shared: Any, tasks: Iterable[Task], skip: Callable[[Task], bool]
) -> Iterator[tuple[Task, Any]]:
    """Yield each task with its result, in the order in which the tasks finish.

    `skip(task)` is called when a task is about to be submitted; if it is true, the task is left out. The result is a
    BncliError if the task raised one, or if too many workers died during the task. Any other error is raised, and so is
    ClusterGoneError.
    """
    run_task = partial(_run_task, serve, uuid.uuid4().hex, shared)
    waiting: dict[Any, Task] = {}
    for task in tasks:
        if skip(task):
            continue
        waiting[cluster.submit(run_task, task)] = task
        if len(waiting) >= _QUEUED_PER_THREAD * cluster.n_threads:
            yield from _finished(cluster, waiting)
    while waiting:
        yield from _finished(cluster, waiting)


def results_in_order(cluster: Cluster, serve: Serve, shared: Any, tasks: Iterable[Task]) -> Iterator[Any]:
    """Yield the result of each task in the order of the tasks; finished results stay on their workers until then.

    `shared` is sent to the cluster once.
    """
    command, shared_future = uuid.uuid4().hex, cluster.share(shared)
    waiting: deque[Future] = deque()
    for task in tasks:
        waiting.append(cluster.submit(_run_task, serve, command, shared_future, task))
        if len(waiting) >= _QUEUED_PER_THREAD * cluster.n_threads:
            yield _result(cluster, waiting.popleft())
    while waiting:
        yield _result(cluster, waiting.popleft())


def _run_task(serve: Serve, command: str, shared: Any, task: Any) -> Any:
    """Run a task on a worker, with the function that `serve` returned to this thread for the command."""
    if getattr(_local, "command", None) != command:
        _local.run = None  # frees the table of the previous command before the next one is read
        _local.run, _local.command = serve(shared), command
    return _local.run(task)


def _finished(cluster: Cluster, waiting: dict[Any, Task]) -> Iterator[tuple[Task, Any]]:
    """Wait until at least one task is done, remove all finished tasks from `waiting`, and yield them with results."""
    with _loss_as_gone():
        futures = cluster.first(list(waiting))
    for future in futures:
        task = waiting.pop(future)
        try:
            yield task, _result(cluster, future)
        except ClusterGoneError:
            raise
        except BncliError as error:
            yield task, error


def _result(cluster: Cluster, future: Future) -> Any:
    with _loss_as_gone():
        return cluster.values([future])[0]


@contextmanager
def _loss_as_gone() -> Iterator[None]:
    """Turn a LostResultsError into a ClusterGoneError, since only a cluster that shuts down cancels these tasks."""
    try:
        yield
    except LostResultsError as error:
        raise ClusterGoneError("the connection to the cluster broke", hint="repeat the command") from error


@contextmanager
def reading_on_cluster(source: Source, run: Run) -> Iterator[Run]:
    """Yield the run with `each_file` set to a function that reads the files of `source` on the run's cluster.

    Without a cluster, the run is yielded unchanged.
    """
    if run.cluster is None:
        yield run
        return
    with checked_cluster(run.cluster, files_of([source]), run.watch) as cluster:
        report_idle_threads(len(find_inputs(source.paths, keep=False)), cluster, run.watch)
        yield run._replace(each_file=partial(_read_each_file, cluster, source, run.watch))


def report_idle_threads(n_files: int, cluster: Cluster, watch: Watch) -> None:
    """Send a note to `watch` if the table has fewer files than the cluster has threads."""
    if n_files < cluster.n_threads:
        files = "one file makes one task" if n_files == 1 else f"{n_files} files make {n_files} tasks"
        watch(Note(f"{files}, so only {n_files} of {cluster.n_threads} threads of the cluster are used"))


def _read_each_file(
    cluster: Cluster,
    source: Source,
    watch: Watch,
    work: Callable[..., Iterable[Any]],
    arguments: Callable[[], tuple[Any, ...]],
) -> Iterator[tuple[str, list[Any], BncliError | None]]:
    """Implement `Run.each_file`: yield each file's path, the list of what `work` yields, and its error or None."""
    results = each_file_in_turn(
        cluster,
        _serve_reading,
        for_workers(source),
        source.paths,
        # The arguments may depend on results of earlier files, so they are computed when the task is submitted.
        lambda paths: (paths, work, arguments()),
        watch,
    )
    for path, (items, error), typed in results:
        yield path, items, None if error is None else with_typed_paths(error, typed)


def each_file_in_turn(
    cluster: Cluster,
    serve: Serve,
    shared: Any,
    paths: Sequence[str],
    make_task: Callable[[tuple[str, ...]], Any],
    watch: Watch,
) -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Run one task per file of a table, and report progress in bytes.

    `make_task` gets the absolute paths of the first file, which determines the columns of all files, and of the file
    itself (only one path for the first file). Yields for every file its path as given on the command line, the result,
    and a mapping from each absolute path in the task to the path as given.
    """
    typed = [table_file.path for table_file in find_inputs(paths, keep=False)]
    absolute = [os.path.abspath(path) for path in typed]
    tasks = (make_task((path,) if path == absolute[0] else (absolute[0], path)) for path in absolute)
    done, total = 0, sum(map(os.path.getsize, absolute))
    for number, result in enumerate(results_in_order(cluster, serve, shared, tasks)):
        yield typed[number], result, {absolute[i]: typed[i] for i in {0, number}}
        done += os.path.getsize(absolute[number])
        watch(Progress(done, total))


def with_typed_paths(error: BncliError, typed: Mapping[str, str]) -> BncliError:
    """Return the error with every absolute path in `typed` replaced by the path given on the command line."""
    texts = [error.what, error.where, error.hint]
    for path in sorted(typed, key=len, reverse=True):
        texts = [text.replace(path, typed[path]) for text in texts]
    what, where, hint = texts
    return type(error)(what, where=where, hint=hint)


def _serve_reading(source: Source) -> Callable[[Any], tuple[list[Any], BncliError | None]]:
    return partial(_read_last_file, source)


def _read_last_file(source: Source, task: Any) -> tuple[list[Any], BncliError | None]:
    """Return, on a worker, what `work` yields for the last file of the task, and the error that ended it or None."""
    paths, work, arguments = task
    items: list[Any] = []
    try:
        items.extend(work(replace(source, paths=paths), len(paths) - 1, with_memory_limit(Run()), *arguments))
    except BncliError as error:
        return items, error
    return items, None
