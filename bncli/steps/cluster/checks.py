"""Before the work: every worker says what it runs and which files it sees, and the first difference is an error.

Conventions: Python by its minor version, bncli and numpy by their whole one must be those of this process, or bytes
could differ. A file must be there under the same name, with the same size. Workers run numpy's BLAS on one thread under
a nanny; where one does not, a warning says so, for sums of many threads may differ in their last bits.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import bncli
from bncli.errors import BncliError, UsageError
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.column_roles import read_schema_file
from bncli.files.reading.source import Source
from bncli.steps.cluster.connection import ANSWER_SECONDS, MORE_MEMORY, Cluster
from bncli.watch import Note, Watch


class WorkerFacts(NamedTuple):
    """What a process runs, the size of each file as it sees it (None: not at all), and whether its BLAS is single."""

    versions: Mapping[str, str]
    sizes: Sequence[int | None]
    single: bool


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
WORK_BYTES = 16 << 20
"""What a pass takes beside the codes, at least."""
PAUSED_FROM = 0.8
"""Of its limit of memory: there Dask pauses a worker (distributed.worker.memory.pause)."""


def facts(paths: Sequence[str]) -> WorkerFacts:
    """Return the facts of this process, wherever it is; its memory is set up for the work."""
    keep_freed_memory()
    major, minor, _ = platform.python_version_tuple()
    versions = {"python": f"{major}.{minor}", "bncli": bncli.__version__, "numpy": np.__version__}
    single = any(os.environ.get(name) == "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"))
    return WorkerFacts(versions, [_size(path) for path in paths], single)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def keep_freed_memory() -> None:
    """Has the C library keep what is freed: else temporaries of 128 KB are mapped anew in every pass.

    Dask's nannies set MALLOC_TRIM_THRESHOLD_, which also turns off that library's own growing threshold.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library, which has no such trap
        return
    mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def files_of(sources: Iterable[Source]) -> list[str]:
    """Return every file of the tables, by its whole path; UsageError for a pipe, which no worker can read."""
    found: list[str] = []
    for source in sources:
        for one in find_inputs(source.paths, keep=True):
            if not one.is_regular:
                what = "the standard input" if one.path == "-" else f"the pipe {one.path}"
                hint = "put the table into a file that every worker can read"
                raise UsageError(f"the workers of a cluster cannot read {what}", hint=hint)
            found.append(one.path)
        found += [place] if (place := read_schema_file(source).place) is not None else []
    return [os.path.abspath(path) for path in found]


def for_workers(source: Source) -> Source:
    """Return the same table, named so that it is found from any folder."""
    place = read_schema_file(source).place
    schema_file = None if place is None else os.path.abspath(place)
    return replace(source, paths=tuple(os.path.abspath(path) for path in source.paths), schema_file=schema_file)


def check_workers(cluster: Cluster, paths: Sequence[str], watch: Watch) -> None:
    """Raise BncliError for the first worker that lacks something, named in one line."""
    here = facts(paths)
    for address, answer in cluster.ask_all(facts, list(paths)).items():
        if isinstance(answer, BaseException):
            raise _useless(address, answer)
        for name, version in here.versions.items():
            if answer.versions.get(name) != version:
                what = f"worker {address} has {name} {answer.versions.get(name)}, and this machine {version}"
                raise BncliError(what, hint="results could differ: install the same versions everywhere")
        _check_files(address, paths, here, answer)
        if not answer.single:
            text = f"worker {address} may run its BLAS on several threads; OMP_NUM_THREADS=1 keeps results the same"
            watch(Note(text, warning=True))


def _useless(address: str, error: BaseException) -> BncliError:
    hint = f"install bncli {bncli.__version__} in the environment of the workers"
    if isinstance(error, TimeoutError):
        what = f"worker {address} does not answer (within {ANSWER_SECONDS:.0f} seconds)"
        return BncliError(what, hint="end it, or see what keeps its machine busy")
    if isinstance(error, ImportError):
        return BncliError(f"worker {address} has no bncli that can do this: {error}", hint=hint)
    return BncliError(f"worker {address} cannot answer: {type(error).__name__}: {error}", hint=hint)


def _check_files(address: str, paths: Sequence[str], here: WorkerFacts, there: Any) -> None:
    for path, own, found in zip(paths, here.sizes, there.sizes, strict=True):
        if found is None:
            hint = "put the data where every worker sees it under the same name"
            raise BncliError(f"worker {address} cannot see the data", where=path, hint=hint)
        if found != own:
            what = f"worker {address} sees another file: {found:,} bytes, and here {own:,}"
            raise BncliError(what, where=path, hint="copy the same file to every machine")


def check_memory(cluster: Cluster, shares: Mapping[str, int]) -> None:
    """BncliError for the first worker that its share of the codes, in bytes, would bring to its limit of memory."""
    for address, used in cluster.ask_all(_resident).items():
        worker, share = cluster.workers.get(address), shares.get(address, 0)
        if worker is None or isinstance(used, BaseException) or not worker.limit:
            continue
        if used + share + WORK_BYTES > PAUSED_FROM * worker.limit:
            limit, has, takes = (f"{n / 1e6:,.0f} MB" for n in (worker.limit, used, share))
            what = f"worker {address} may take {limit} of memory, has {has}, and its row blocks are {takes}"
            hint = f"Dask would pause it near its limit: {MORE_MEMORY}; --memory-limit 0 is safe, for they are mapped"
            raise BncliError(what, hint=hint)


def _resident() -> int:
    """Return bytes of memory that this process has now, mapped pages among them; 0 where that is not told."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
