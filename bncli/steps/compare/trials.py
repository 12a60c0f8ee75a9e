"""The parts of a comparison: data sets, learners, and trials of one learner on one fold of a data set.

Every data set is read once before the work begins, so that errors in it are found early. Only a small part of it is
kept:
- how to read it again;
- the class, weight, group and time of every row, which determine the folds, and the bias and variance;
- a digest of all values, by which a resumed run recognizes its data.

Every process reads its data itself, so data that cannot be read twice (the standard input, a pipe) are refused.

A data set is named after its file, without folder and extensions. If two names are equal, as much of the path is added
as is needed to distinguish them. If the path without extensions does not distinguish them either, all names are the
paths as given.

A trial (task) depends only on the plan, so trials can run in any order and in any process. Each trial learns
everything anew, including cuts, as `bncli evaluate` does with one thread. If the learners shared the cuts of a fold,
their seconds would not include the cuts; the time saved, 1 to 8 percent for five learners on seven data sets, is not
worth that.

Seconds are processor seconds of the thread, so other work on the machine does not count. The first fold of a learner in
a process also loads the learner's code. If that fold takes less than QUICK_SECONDS, it is repeated, and only the second
time counts.

Each worker process runs `serve`: it receives a plan and then tasks on stdin, and writes their results to stdout. It
ends as soon as its stdin is closed, even in the middle of a task, so that nothing remains if its parent is killed. The
processes are started afresh (not forked from a parent with threads), in separate sessions (^C reaches only the parent,
which then ends them), with one BLAS thread. If a process dies, for instance because memory ran out, its task fails and
the process is replaced. One thread per process waits for its results.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bncli
from bncli.engine.data.columns import CategoricalColumn, CodedColumn, Column, Columns
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Cuts, ReadingRules, Unseen
from bncli.engine.data.splits import SplitBy
from bncli.engine.evaluation.cross_validation import CrossValidation, Fold, Protocol, draw_splits, hold_out
from bncli.engine.evaluation.metrics import BiasVariance
from bncli.engine.kernels.arrays import Array, Codes
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.cuts import attribute_json, dump_cuts
from bncli.files.exports.structure_json import dump_structure
from bncli.files.reading.byte_streams import strip_table_suffixes
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.learning_inputs import SuppliedFiles
from bncli.steps.run import Stopwatch, free_memory
from bncli.watch import Event, Note, Progress, Run, Stage, Watch, silent

COSTS = ("fit_seconds", "iterations", "passes")
"""Costs of learning in a fold (lower is better): processor seconds, and the iterations of the final optimization and
its passes over the rows. Costs are compared by ratios, but never tested for significance.
"""
COUNTS = ("iterations", "passes")
"""The costs that are integers in each fold, or None for parameters in closed form."""
QUICK_SECONDS = 1.0
"""The time for loading the code hardly matters in a fold that takes at least this many processor seconds."""
_FEW_DATA_SETS = 4
_SERVE = f"import {__name__} as trials; trials.serve()"
"""The program of a process that runs tasks."""
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


@dataclass(frozen=True)
class DataSet:
    """A data set: its name, its source with the class, and the label codes and weights (or None) of its rows, (N,).

    cells: the number of rows times the number of attributes, as a measure of the work. digest: a hash of the table's
    values, by which a resumed run recognizes it.
    split_by: the groups and times by which rows are split, or None.
    """

    name: str
    source: Source
    labels: Codes
    n_labels: int
    weights: Array | None
    cells: int
    digest: str
    split_by: SplitBy | None = None

    @property
    def n_rows(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Learner:
    """A recipe with a name, its options as given on the command line, and supplied files that replace its methods."""

    name: str
    recipe: Recipe
    options: str = ""
    supplied: SuppliedFiles = SuppliedFiles()

    def identity(self) -> dict[str, Any]:
        """Return everything that the results depend on as JSON values, with digests in place of supplied files."""
        files = {
            "cuts": None if self.supplied.cuts is None else dump_cuts(self.supplied.cuts),
            "structure": None if self.supplied.structure is None else dump_structure(self.supplied.structure),
        }
        # the digests are of the files as bncli would write them, so the layout of the supplied files does not matter
        digests = {
            name: None if text is None else hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()
        }
        return {"name": self.name, "recipe": self.recipe.as_dict(), **digests}


class Task(NamedTuple):
    """The indices of the data set, learner, repeat and fold of a task; tasks are sorted as tuples."""

    data: int
    learner: int
    repeat: int
    fold: int


@dataclass(frozen=True)
class RunPlan:
    """The plan for every process: names and sources of data sets, learners, protocol, and memory limit in bytes."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]
    learners: tuple[Learner, ...]
    protocol: Protocol
    unseen: Unseen = "average"
    memory: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of one learner on one fold of one repeat of one data set.

    - metrics: by name, None if undefined. seconds: processor seconds of the stages `fit` and `score`.
    - costs: iterations and passes, None for parameters in closed form.
    - predicted: the codes of the most probable labels of the test rows, (rows,), in ascending order of the rows.
    """

    data: str
    learner: str
    repeat: int
    fold: int
    rows: int
    metrics: dict[str, float | None]
    seconds: dict[str, float]
    costs: dict[str, int | None]
    predicted: Codes

    def value(self, metric: str) -> float | None:
        """Return a metric or a cost by its name, or None if it is undefined."""
        if metric == "fit_seconds":
            return self.seconds["fit"]
        return self.costs[metric] if metric in COUNTS else self.metrics[metric]


@dataclass(frozen=True)
class Failure:
    """The reason why a task has no outcome, in one line."""

    reason: str


Result = tuple[Task, Outcome | Failure]


@dataclass(frozen=True)
class Gap:
    """A learner that failed on a data set, and why, in one line."""

    data: str
    learner: str
    reason: str


@dataclass(frozen=True)
class ComparisonResults:
    """All outcomes of a comparison, in the order of data sets, learners, repeats and folds.

    - sizes: the number of rows by data set. options: by learner, as given on the command line.
    - bias_variance: by data set and learner; empty with a single repeat.
    - gaps: where a learner failed; it has no outcomes there.
    """

    learners: tuple[str, ...]
    data: tuple[str, ...]
    sizes: dict[str, int]
    protocol: Protocol
    outcomes: tuple[Outcome, ...]
    bias_variance: dict[tuple[str, str], BiasVariance]
    options: dict[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


def read_data_sets(sources: Sequence[Source], protocol: Protocol, *, threads: int, watch: Watch) -> tuple[DataSet, ...]:
    """Read the data sets in the order of `sources`, each of which has one path.

    Before any table is read, raises UsageError for a path that can be read only once, and for a data set given twice,
    and an error for a path that does not exist. Then raises an error for the first data set that cannot be read or
    split into folds.
    """
    paths = []
    for source in sources:
        (path,) = source.paths
        if path == "-" or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
            what = f"{'the standard input' if path == '-' else path} can be read only once"
            raise UsageError(
                f"{what}, but a comparison reads its data several times", hint="save the table as a file first"
            )
        if not os.path.exists(path):
            read_columns(source)  # raises a helpful error
        paths.append(path)
    real = [os.path.realpath(path) for path in paths]
    for i, path in enumerate(paths):
        if real[i] in real[:i]:
            raise UsageError("the same data set is given twice", where=path)
    # the shortest names that differ
    depth, names = 1, [_last_parts(path, 1) for path in real]
    while (clashing := {name for name in names if names.count(name) > 1}) and depth < 64:
        depth += 1
        names = [_last_parts(path, depth) if name in clashing else name for path, name in zip(real, names, strict=True)]
    names = paths if clashing else names
    watch(Stage("read"))
    data_sets = []
    for done, (name, source) in enumerate(zip(names, sources, strict=True)):
        watch(Progress(done, len(sources), name))
        notes_watch = partial(_forward_note, watch, name) if len(sources) > 1 else watch
        columns = read_columns(source, threads=threads, watch=notes_watch, memory=free_memory())
        try:
            draw_splits(columns, protocol, 0)
        except BncliError as error:
            raise BncliError(error.what, where=source.paths[0], hint=error.hint) from error
        assert columns.label is not None
        n_labels = len(columns.label.levels)
        data_set = DataSet(
            name=name,
            source=replace(source, class_name=columns.class_name),
            labels=columns.label.codes.astype(code_dtype(n_labels)),
            n_labels=n_labels,
            weights=columns.weights,
            cells=columns.n_rows * max(len(columns.attributes), 1),
            digest=_digest_of_table(columns),
            split_by=columns.split_by,
        )
        data_sets.append(data_set)
    watch(Progress(len(sources), len(sources)))
    return tuple(data_sets)


def _last_parts(path: str, depth: int) -> str:
    """Return the last `depth` parts of a path, without the extensions of compression and of tables."""
    parts = path.strip(os.sep).split(os.sep)
    stem = parts[-1] if os.path.isdir(path) else strip_table_suffixes(parts[-1]) or parts[-1]
    return "/".join([*parts[-depth:-1], stem])


def _forward_note(watch: Watch, name: str, event: Event) -> None:
    """Forward an event only if it is a note, with the name of the data set in front."""
    if isinstance(event, Note):
        watch(Note(f"{name}: {event.text}", event.warning))


def _digest_of_table(columns: Columns) -> str:
    """Return a hexadecimal digest of all values of a table, its weights, and the groups and times of its rows."""
    assert columns.label is not None
    digest = hashlib.blake2b(digest_size=16)
    named: list[tuple[str, Column | CodedColumn]] = [*columns.attributes.items(), (columns.class_name, columns.label)]
    for name, column in named:
        values: NDArray[np.generic]
        levels = column.levels if isinstance(column, CategoricalColumn) else None
        if isinstance(column, CodedColumn):
            digest.update(repr(attribute_json(column.attribute)).encode())
            values = column.codes.joined()
        else:
            values = column.codes if isinstance(column, CategoricalColumn) else column.values
        digest.update(repr((name, levels, values.dtype.str, len(values))).encode())
        digest.update(np.ascontiguousarray(values).data)
    if columns.weights is not None:
        digest.update(np.ascontiguousarray(columns.weights).data)
    if (by := columns.split_by) is not None:
        digest.update(repr(("split by", by.units is None, by.times is None, by.gap)).encode())
        for keys in (by.units, by.times):
            digest.update(b"" if keys is None else np.ascontiguousarray(keys).data)
    return digest.hexdigest()


def group_by_rows(bounds: Sequence[int], sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Group the data sets by their number of rows, and return the names of the data sets, keyed by group.

    sizes: the number of rows by data set. Ascending bounds b_1 < ... < b_n define the groups `rows<b_1`,
    `b_1<=rows<b_2`, ..., `rows>=b_n`; without bounds there are no groups. Raises UsageError for a group without data
    sets, since its bound is most likely a typing error.
    """
    groups = {}
    for least, below in zip([0, *bounds], [*bounds, None], strict=True) if bounds else ():
        names = tuple(name for name, n in sizes.items() if n >= least and (below is None or n < below))
        if not names:
            limits = [f"{least:,} rows or more"] if least else []
            if below is not None:
                limits.append(f"fewer than {below:,}" if least else f"fewer than {below:,} rows")
            ascending = sorted(sizes, key=lambda name: sizes[name])
            known = ", ".join(f"{name} has {sizes[name]:,}" for name in ascending)
            if len(ascending) > _FEW_DATA_SETS:
                first, last = ascending[0], ascending[-1]
                known = f"the numbers of rows are {sizes[first]:,} ({first}) to {sizes[last]:,} ({last})"
            raise UsageError(f"no table has {' and '.join(limits)}: {known}", hint="change the bounds of --groups")
        group_name = f"rows>={least}" if below is None else f"{least}<=rows<{below}" if least else f"rows<{below}"
        groups[group_name] = names
    return groups


def check_names(learners: Sequence[Learner]) -> None:
    """Raise UsageError if there is no learner, or if two learners have the same name."""
    if not learners:
        raise UsageError("there is no learner to compare")
    learner_of_name: dict[str, Learner] = {}
    for learner in learners:
        if learner.name in learner_of_name:
            is_same = learner.recipe == learner_of_name[learner.name].recipe
            hint = "leave one of them out" if is_same else "put a different NAME= before the options of one of them"
            raise UsageError(f"two learners are called {learner.name!r}", hint=hint)
        learner_of_name[learner.name] = learner


class Runner:
    """A runner of the tasks of a plan, which keeps only the most recent data set in memory."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._data: int | None = None
        self._tables: list[tuple[Cuts | None, Columns]] = []
        self._loaded: set[int] = set()

    def run(self, task: Task) -> Outcome | Failure:
        """Return the outcome of a task, or a Failure with the reason, since one failure must not end a long run."""
        try:
            plan, learner = self._plan, self._plan.learners[task.learner]
            # the table is read once for all learners with the same cuts, which determine the types of the columns
            cuts = learner.supplied.cuts
            if task.data != self._data:
                self._data, self._tables = task.data, []
            columns = next((columns for own_cuts, columns in self._tables if own_cuts == cuts), None)
            if columns is None:
                columns = read_columns(plan.sources[task.data], cuts=cuts, memory=free_memory())
                self._tables.append((cuts, columns))
            fold, seconds = self._hold_out(task, columns)
            if task.learner not in self._loaded and seconds["fit"] < QUICK_SECONDS:
                fold, seconds = self._hold_out(task, columns)
            self._loaded.add(task.learner)
            log_p = fold.measured.log_probabilities
            return Outcome(
                data=plan.names[task.data],
                learner=learner.name,
                repeat=task.repeat,
                fold=task.fold,
                rows=len(fold.rows),
                metrics=fold.measured.metrics.by_name(),
                seconds={"fit": seconds["fit"], "score": seconds["score"]},
                costs={"iterations": fold.iterations, "passes": fold.passes},
                predicted=log_p.argmax(axis=0).astype(code_dtype(len(log_p))),
            )
        except BncliError as error:
            return Failure(str(error))
        except MemoryError:
            return Failure("not enough memory")
        except Exception as error:
            return Failure(f"internal error: {type(error).__name__}: {error}")

    def _hold_out(self, task: Task, columns: Columns) -> tuple[Fold, dict[str, float]]:
        """Run the fold of a task, and return it with the processor seconds of its stages."""
        plan, learner = self._plan, self._plan.learners[task.learner]
        cross_validation = CrossValidation(
            learner.supplied.update_recipe(learner.recipe),
            plan.protocol,
            learner.supplied,
            ReadingRules(plan.sources[task.data].missing_tokens, plan.unseen),
        )
        split = draw_splits(columns, plan.protocol, task.repeat)[task.fold]
        watch = Stopwatch(silent, time.thread_time)
        watch(Stage("fit"))
        run = Run(memory=plan.memory, clock=time.monotonic, watch=watch)
        return hold_out(columns, cross_validation, split, run), watch.seconds()


def run_in_processes(plan: RunPlan, tasks: Iterable[Task], jobs: int, skip: Callable[[Task], bool]) -> Iterator[Result]:
    """Run the tasks in `jobs` processes, and yield the results as they arrive.

    A task is left out if `skip(task)` is true when its turn comes. Closing the iterator kills all processes.
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
    """A thread with a process that runs its tasks."""

    def __init__(self, plan: RunPlan, queue: _TaskQueue, results: SimpleQueue[Result | BaseException | None]) -> None:
        self._plan = plan
        self._queue = queue
        self._results = results
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def end(self) -> None:
        """Kill the process, and wait for the thread to end."""
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
        """Start a process and send it the plan."""
        home = str(Path(bncli.__file__).parents[1])
        paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(paths)}
        with self._lock:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE],
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
        """End the process by closing its pipes, and return its exit code, or 0 if there is no process."""
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
    """Read a plan and then tasks from stdin, and write the results to stdout; the process ends when stdin ends."""
    with os.fdopen(os.dup(1), "wb") as results:
        os.dup2(2, 1)  # nothing that is printed may end up among the results
        runner = Runner(pickle.load(sys.stdin.buffer))
        tasks: SimpleQueue[Task] = SimpleQueue()
        threading.Thread(target=_receive, args=(sys.stdin.buffer, tasks), daemon=True).start()
        while True:
            pickle.dump(runner.run(tasks.get()), results)
            results.flush()


def _receive(source: BinaryIO, tasks: SimpleQueue[Task]) -> None:
    """Put the tasks that arrive from `source` into the queue, and end the process at the end of the input."""
    try:
        while True:
            tasks.put(pickle.load(source))
    finally:
        os._exit(0)  # sys.exit would end this thread alone, and the current task would go on
