"""Reading on a cluster: a file of a table is a task, whose worker parses it, or codes it, by itself.

What a worker has made stays with it until the rows of its file are next: here is one file's at a time. Workers read
files by their whole paths; errors name them as they were typed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from bncli.errors import BncliError
from bncli.files.reading.inputs import find_inputs
from bncli.files.table import Source
from bncli.steps.cluster.connection import Cluster, connected
from bncli.steps.cluster.preflight import check_workers, files_of, for_workers
from bncli.steps.cluster.tasks import in_turn
from bncli.steps.run import limited
from bncli.watch import Note, Progress, Run, Watch


@contextmanager
def reading(source: Source, run: Run) -> Iterator[Run]:
    """The run, with the cluster that it names, checked and ready to read the files of `source`."""
    if run.cluster is None:
        yield run
        return
    files = files_of([source])
    with connected(run.cluster) as cluster:
        check_workers(cluster, files, run.watch)
        found = _Files(cluster, source, run.watch)
        tell_idle(len(found.typed), cluster, run.watch)
        yield run._replace(each_file=found.each)


def tell_idle(n_files: int, cluster: Cluster, watch: Watch) -> None:
    """A note where a table has fewer files than there are threads."""
    if n_files < cluster.n_threads:
        files = "one file is one task" if n_files == 1 else f"{n_files} files are {n_files} tasks"
        watch(Note(f"{files}: {n_files} of {cluster.n_threads} threads of the cluster help"))


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


def as_typed(error: BncliError, names: Mapping[str, str]) -> BncliError:
    """With every path in the words of the command line."""

    def named(text: str) -> str:
        for path in sorted(names, key=len, reverse=True):
            text = text.replace(path, names[path])
        return text

    return type(error)(named(error.what), where=named(error.where), hint=named(error.hint))
