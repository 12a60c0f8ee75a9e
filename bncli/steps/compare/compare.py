"""Compare learners over data sets, on the same folds and by several metrics, and test their differences.

All outputs are checked and every data set is read before the work begins, so that errors are found early. Then every
learner is run on every fold of every data set, in this process, in several processes, or on a cluster. The largest data
sets come first, so that no process is left with a long task at the end. The outcomes are sorted afterwards, so the
results do not depend on the number of processes or on which one finishes first.

Conventions: a learner that fails on a fold is not tried on the remaining folds of that data set. The report has a gap
there instead of its outcomes, with the reason why the first of the failed folds failed.
"""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import product
from typing import Any, BinaryIO

import numpy as np

from bncli import __version__
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Unseen
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.engine.evaluation.metrics import METRICS, BiasVariance, bias_variance
from bncli.errors import BncliError, UsageError
from bncli.files.paths import check_outputs
from bncli.files.reading.source import Source
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.tasks import checked_cluster, files_of, for_workers, run_tasks
from bncli.steps.compare.analysis import CompareReport, analyse
from bncli.steps.compare.outputs import check_drawings, write_outputs
from bncli.steps.compare.trials import (
    COSTS,
    COUNTS,
    ComparisonResults,
    DataSet,
    Failure,
    Gap,
    Learner,
    Outcome,
    Result,
    Runner,
    RunPlan,
    Task,
    check_names,
    group_by_rows,
    read_data_sets,
    run_in_processes,
)
from bncli.steps.run import free_memory
from bncli.watch import Note, Progress, Run, Stage, Watch

DEFAULT_METRICS = ("error", "log_loss", "rmse")
FORMAT, VERSION = "bncli-outcomes", 3
_DIFFERENCES = {
    "version": "an unknown version of this file format",
    "bncli": "a different version of bncli",
    "protocol": "different --folds, --repeats or --seed",
    "unseen": "another --unseen",
    "learners": "different learners",
    "data": "different data",
}
Results = Generator[Result, None, None]
Pool = Callable[[RunPlan, Sequence[Task], Callable[[Task], bool]], Results]
"""A function of (plan, tasks, skip) that runs the tasks and yields their results.

A task is left out if skip(task) is true when its turn comes.
"""


@dataclass(frozen=True)
class CompareOutputs:
    """The paths of the files that a comparison writes (None to write no such file), and a function for the report.

    The file `resume` stores every outcome; if it exists, the comparison continues from it. `show` is called with the
    report before the other files are written, so that the report is shown even if the disk is full.
    """

    csv: str | None = None
    latex: str | None = None
    diagram: str | None = None
    scatter: str | None = None
    resume: str | None = None
    show: Callable[[CompareReport], object] = lambda report: None


@dataclass(frozen=True)
class ComparisonSettings:
    """The metrics, the learner that the others are compared with (None: the first), and groups of data sets.

    group_bounds: ascending numbers of rows; the data sets below, between and above the bounds are also summarized
    separately.
    """

    metrics: Sequence[str] = DEFAULT_METRICS
    baseline: str | None = None
    group_bounds: Sequence[int] = ()


def compare(
    sources: Sequence[Source],
    learners: Sequence[Learner],
    protocol: Protocol = Protocol(),
    *,
    settings: ComparisonSettings = ComparisonSettings(),
    unseen: Unseen = "average",
    outputs: CompareOutputs = CompareOutputs(),
    run: Run = Run(),
) -> CompareReport:
    """Run every learner on every data set (one per source) and analyse the outcomes.

    The work is done in at most `run.threads` processes, or on the run's cluster. If a learner fails on a data set, the
    report has a gap, and no error is raised. Raises UsageError or another BncliError for invalid arguments, for data
    that cannot be read, and for files that cannot be written.
    """
    _check_arguments(sources, learners, settings, outputs)
    data_sets = read_data_sets(sources, protocol, threads=run.threads, watch=run.watch)
    groups = group_by_rows(settings.group_bounds, {data_set.name: data_set.n_rows for data_set in data_sets})
    free = free_memory()
    plan = RunPlan(
        names=tuple(data_set.name for data_set in data_sets),
        sources=tuple(data_set.source for data_set in data_sets),
        learners=tuple(learners),
        protocol=protocol,
        unseen=unseen,
        memory=None if free is None else free // run.threads,
    )
    with ExitStack() as stack:
        pool: Pool = partial(run_here, jobs=run.threads)
        if run.cluster is not None:
            cluster = stack.enter_context(checked_cluster(run.cluster, files_of(plan.sources), run.watch))
            pool = partial(run_on_cluster, cluster=cluster)
        checkpoint = stack.enter_context(closing(Checkpoint(outputs.resume, plan, data_sets)))
        results = run_plan(plan, data_sets, checkpoint, pool=pool, watch=run.watch)
    run.watch(Stage("analyse"))
    metrics = tuple(dict.fromkeys(settings.metrics))
    report = analyse(results, metrics=metrics, baseline=settings.baseline, groups=groups)
    outputs.show(report)
    write_outputs(report, csv=outputs.csv, latex=outputs.latex, diagram=outputs.diagram, scatter=outputs.scatter)
    return report


def _check_arguments(
    sources: Sequence[Source], learners: Sequence[Learner], settings: ComparisonSettings, outputs: CompareOutputs
) -> None:
    """Raise an error if the arguments are invalid, as far as this is known before a table is read."""
    check_names(learners)
    for metric in settings.metrics:
        _refuse_unknown(metric, (*METRICS, *COSTS), "metric")
    if settings.baseline is not None:
        _refuse_unknown(settings.baseline, [learner.name for learner in learners], "learner")
    if any(source.bad_rows_file for source in sources):
        what = "--on-bad-row FILE cannot be used in a comparison, because every process would write the file"
        raise UsageError(what, hint="use --on-bad-row fail or skip")
    check_drawings(len(learners), len(sources), settings.metrics[0], diagram=outputs.diagram, scatter=outputs.scatter)
    if settings.group_bounds and len(sources) < 2:
        raise UsageError(
            "--groups groups data sets by number of rows, but there is only one data set", hint="give more DATA"
        )
    inputs = [path for source in sources for path in (*source.paths, source.schema_file)]
    supplied = [path for learner in learners for path in learner.supplied.paths]
    written = (outputs.resume, outputs.csv, outputs.latex, outputs.diagram, outputs.scatter)
    check_outputs(written, dict.fromkeys([*inputs, *supplied]))


def _refuse_unknown(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        near = get_close_matches(name, known, 1)
        names = [word.replace("_", "-") if what == "metric" else word for word in (near or known)]
        hint = f"did you mean {names[0]}?" if near else f"the {what}s are {', '.join(names)}"
        raise UsageError(f"there is no {what} {name!r}", hint=hint)


def run_plan(
    plan: RunPlan, data_sets: Sequence[DataSet], checkpoint: Checkpoint, *, pool: Pool, watch: Watch
) -> ComparisonResults:
    """Run the tasks without an outcome in the checkpoint, store their outcomes there, and return all results."""
    largest_first = sorted(range(len(data_sets)), key=lambda data: -data_sets[data].cells)
    learners, repeats, folds = range(len(plan.learners)), range(plan.protocol.repeats), range(plan.protocol.n_splits)
    tasks = [Task(*place) for place in product(largest_first, learners, repeats, folds)]
    outcomes = dict(checkpoint.outcomes)
    remaining = [task for task in tasks if task not in outcomes]
    # the first failed fold of each (data set, learner)
    failures: dict[tuple[int, ...], tuple[Task, Failure]] = {}
    if len(remaining) < len(tasks):
        n_stored = len(tasks) - len(remaining)
        watch(Note(f"{n_stored:,} of {len(tasks):,} folds were read from {checkpoint.path}"))
    watch(Stage("run"))
    watch(Progress(len(outcomes), len(tasks)))
    try:
        with closing(pool(plan, remaining, lambda task: task[:2] in failures)) as results:
            for task, result in results:
                if isinstance(result, Outcome):
                    checkpoint.add(task, result)
                    outcomes[task] = result
                elif task[:2] not in failures or task < failures[task[:2]][0]:
                    failures[task[:2]] = task, result
                where = f"{plan.learners[task.learner].name} on {plan.names[task.data]}"
                watch(Progress(len(outcomes), len(tasks), f"{where}, fold {task.fold + 1}"))
    except KeyboardInterrupt:
        if checkpoint.path is not None:
            # An outcome may have been stored in the file just before the interrupt, but not yet in `outcomes`.
            stored = f"{checkpoint.n_stored():,} of {len(tasks):,} folds are stored in {checkpoint.path}"
            watch(Note(f"{stored}; repeat the command to continue from there"))
        raise
    complete = {task: outcome for task, outcome in sorted(outcomes.items()) if task[:2] not in failures}
    pairs = sorted({task[:2] for task in complete}) if plan.protocol.repeats > 1 else []
    names = tuple(learner.name for learner in plan.learners)
    parts: dict[tuple[str, str], BiasVariance] = {}
    for data, learner in pairs:  # from the out-of-fold predictions of every repeat
        own = data_sets[data]
        predictions = np.empty((plan.protocol.repeats, own.n_rows), own.labels.dtype)
        for repeat in repeats:
            for fold, (_, rows) in enumerate(plan.protocol.draw_splits(own.labels, repeat, own.split_by)):
                predictions[repeat, rows] = complete[Task(data, learner, repeat, fold)].predicted
        parts[plan.names[data], names[learner]] = bias_variance(own.labels, predictions, own.n_labels, own.weights)
    return ComparisonResults(
        learners=names,
        data=plan.names,
        sizes={data_set.name: data_set.n_rows for data_set in data_sets},
        protocol=plan.protocol,
        outcomes=tuple(complete.values()),
        bias_variance=parts,
        options={learner.name: learner.options for learner in plan.learners},
        gaps=tuple(
            Gap(plan.names[data], names[learner], failure.reason)
            for (data, learner), (_, failure) in sorted(failures.items())
        ),
    )


def run_here(plan: RunPlan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, jobs: int) -> Results:
    """Run tasks on this machine, in at most `jobs` processes, or in this process if one is enough."""
    jobs = min(jobs, len(tasks))
    if jobs > 1:
        yield from run_in_processes(plan, tasks, jobs, skip)
        return
    runner = Runner(plan)
    for task in tasks:
        if not skip(task):
            yield task, runner.run(task)


def run_on_cluster(plan: RunPlan, tasks: Sequence[Task], skip: Callable[[Task], bool], *, cluster: Cluster) -> Results:
    """Run tasks on a cluster, each in any thread of any worker; every thread reads the tables itself."""
    plan = replace(plan, sources=tuple(map(for_workers, plan.sources)), memory=None)
    for task, result in run_tasks(cluster, _serve_tasks, plan, tasks, skip):
        yield task, Failure(str(result)) if isinstance(result, BncliError) else result


def _serve_tasks(plan: RunPlan) -> Callable[[Task], Outcome | Failure]:
    """Return the function that runs the tasks of one worker thread within the memory that is free on the worker."""
    return Runner(replace(plan, memory=free_memory())).run


class Checkpoint:
    """The outcomes of earlier runs, and a file to which new outcomes are appended; without a path nothing is written.

    The file has JSON lines. The first line describes the run, and each of the others contains one outcome:

        {"format": "bncli-outcomes", "version": 3, "bncli": ..., "protocol": ..., "unseen": ..., "learners": [...], ...}
        {"data": 0, "learner": 1, "repeat": 0, "fold": 2, "rows": 30, "metrics": {...}, "seconds": {...}, ...}

    `costs` are iterations and passes. `predicted` contains the label codes, little-endian in the narrowest type,
    compressed by zlib and encoded in base64. The file of a different run is refused (data sets are compared by their
    values, learners by their recipes and the content of their files). A last line without a newline, which was being
    written when the process was killed, is removed. For any other damaged outcome, BncliError with the line number is
    raised. The file remains when the run ends.
    """

    def __init__(self, path: str | None, plan: RunPlan, data_sets: Sequence[DataSet]) -> None:
        """Read the outcomes in the file, remove an incomplete last line, and open the file for appending."""
        self.path = path
        self.outcomes: dict[Task, Outcome] = {}
        self._file: BinaryIO | None = None
        if path is None:
            return
        header = {
            "format": FORMAT,
            "version": VERSION,
            "bncli": __version__,
            "protocol": asdict(plan.protocol),
            "unseen": plan.unseen,
            "learners": [learner.identity() for learner in plan.learners],
            "data": [{"name": one.name, "rows": one.n_rows, "digest": one.digest} for one in data_sets],
        }
        try:
            content = b""
            if os.path.exists(path):
                if not os.path.isfile(path):
                    what = "results can be stored only in a regular file"
                    raise BncliError(what, where=path, hint="choose another name")
                with open(path, "rb") as file:
                    content = file.read()
            complete = content[: content.rfind(b"\n") + 1]
            lines = complete.splitlines()
            if lines:
                _check_header(lines[0], header, path)
                for number, line in enumerate(lines[1:], 2):
                    try:
                        task, outcome = _parse_outcome(line, plan, data_sets)
                    except (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error) as error:
                        where, hint = f"{path}, line {number}", "delete this line to run the fold again"
                        raise BncliError("the line is damaged", where=where, hint=hint) from error
                    self.outcomes.setdefault(task, outcome)
            elif content and not content.startswith(b'{"format": "bncli-outcomes"'[: len(content)]):
                raise _not_outcomes(path)
            # the file is appended to and never replaced, so that the outcomes in it are not at risk
            self._file = open(path, "ab")  # noqa: SIM115
            self._file.truncate(len(complete))
            if not lines:
                self._write(header)
        except OSError as error:
            self.close()
            raise _write_error(path, error) from error

    def add(self, task: Task, outcome: Outcome) -> None:
        """Append an outcome to the file so that it is kept even if this process is killed."""
        if self._file is not None:
            codes = outcome.predicted.astype(outcome.predicted.dtype.newbyteorder("<"))
            packed = base64.b64encode(zlib.compress(codes.tobytes())).decode()
            results = {"metrics": outcome.metrics, "seconds": outcome.seconds, "costs": outcome.costs}
            self._write({**task._asdict(), "rows": outcome.rows, **results, "predicted": packed})

    def n_stored(self) -> int:
        """Return the number of outcomes in the file, that is, of complete lines after the header."""
        with open(str(self.path), "rb") as file:
            return max(sum(line.endswith(b"\n") for line in file) - 1, 0)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, fields: dict[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")
            self._file.flush()  # the operating system keeps it if this process is killed
        except OSError as error:
            raise _write_error(str(self.path), error) from error


def _check_header(line: bytes, expected: dict[str, Any], path: str) -> None:
    """Raise BncliError if the first line of a file does not describe this run."""
    try:
        header = json.loads(line)
    except ValueError as error:
        raise _not_outcomes(path) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _not_outcomes(path)
    if header.get("version") in range(1, VERSION):
        what = "the results in this file were written by an older version of bncli and do not contain the costs"
        raise BncliError(what, where=path, hint="start again with another --resume FILE")
    expected = json.loads(json.dumps(expected))
    for key, what in _DIFFERENCES.items():
        if header.get(key) != expected[key]:
            hint = "use the options of that run, or another --resume FILE"
            raise BncliError(f"the results in this file come from a run with {what}", where=path, hint=hint)


def _not_outcomes(path: str) -> BncliError:
    return BncliError(
        "the file does not contain results of bncli compare", where=path, hint="choose another name for --resume"
    )


def _write_error(path: str, error: OSError) -> BncliError:
    return BncliError(f"cannot store results: {(error.strerror or str(error)).lower()}", where=path)


def _parse_outcome(line: bytes, plan: RunPlan, data_sets: Sequence[DataSet]) -> tuple[Task, Outcome]:
    """Parse the task and the outcome in a line; raise ValueError or another error if the line is damaged."""
    fields = json.loads(line)
    task = Task(*(fields.pop(name) for name in Task._fields))
    data_set, learner = data_sets[task.data], plan.learners[task.learner].name
    is_known = task.repeat < plan.protocol.repeats and task.fold < plan.protocol.n_splits
    if min(task) < 0 or not is_known:
        raise ValueError("no such fold")
    dtype = code_dtype(data_set.n_labels)
    packed = zlib.decompress(base64.b64decode(fields["predicted"], validate=True))
    codes = np.frombuffer(packed, dtype.newbyteorder("<")).astype(dtype)
    if len(codes) != fields["rows"] or (codes >= data_set.n_labels).any():
        raise ValueError("not the labels of these rows")
    metrics = {str(name): None if value is None else float(value) for name, value in fields["metrics"].items()}
    seconds = {str(name): float(value) for name, value in fields["seconds"].items()}
    if not all(math.isfinite(value) for value in (*metrics.values(), *seconds.values()) if value is not None):
        raise ValueError("not finite")
    costs = {name: fields["costs"][name] for name in COUNTS}
    if any(value is not None and (type(value) is not int or value < 0) for value in costs.values()):
        raise ValueError("not a count")
    rows = int(fields["rows"])
    return task, Outcome(data_set.name, learner, task.repeat, task.fold, rows, metrics, seconds, costs, codes)
