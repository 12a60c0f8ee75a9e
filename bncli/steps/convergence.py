"""Traces of several fits side by side: how fast each converges, and by how many iterations one lags behind another.

A trace belongs to a table, its folder, and has a name, that of its file, unless one was typed: traces of the same name
in several folders are of the same way of learning. What is looked at is what was minimised: the negative conditional
log-likelihood (NLL) plus the penalty, or the NLL alone.

    lag = iterations after the n-th that a trace needs to be where the baseline was after n; negative where the
          baseline needs them to be where the trace was (Zaidi et al. 2017, with n = 5)

Where even the end of a trace does not come so far, its remaining iterations are counted: it lags by more than that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bncli.errors import UsageError
from bncli.files.artifacts.traces import Trace, TracePoint, read_trace
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.pictures.convergence_plots import CurvesPanel, HistogramPanel, convergence_plots, lag_histograms
from bncli.files.pictures.drawing import SERIES
from bncli.steps.compare.outputs import NOT_DRAWN

UNITS = ("iterations", "passes", "flops")
OBJECTIVES = ("objective", "nll")


class TracePath(NamedTuple):
    """A file, and the name that was typed for it, if any."""

    path: str
    typed_name: str | None = None

    @property
    def name(self) -> str:
        return self.typed_name or os.path.splitext(os.path.basename(self.path))[0]

    @property
    def folder(self) -> str:
        """The whole path of its folder."""
        return os.path.dirname(os.path.abspath(self.path))


@dataclass(frozen=True)
class ConvergenceSettings:
    """What is asked: the unit of effort, what is looked at, the share of the lowest that counts as having arrived.

    `lag` names the baseline that the others are compared with, after `at` iterations; None: they are not.
    """

    by: str = "iterations"
    of: str = "objective"
    within: float = 0.001
    lag: str | None = None
    at: int = 5

    @property
    def heading_of_lags(self) -> str:
        """Lags count iterations, whatever the unit of effort."""
        unit = "Iterations" if self.by == "iterations" else f"Iterations, not {self.by},"
        return f"{unit} behind {self.lag} after {self.at}"


@dataclass(frozen=True)
class ConvergencePlots:
    """Drawings to write; None: not this one."""

    svg: str | None = None
    histogram: str | None = None


@dataclass(frozen=True)
class TraceReport:
    """A trace: what it spent (None: not told), the log-likelihood at its ends, and when it had `arrived`.

    `likelihood` is the one that was maximised, `cll` or `ll`; start and end are in nats, without the penalty. `arrived`
    counts in the unit of the report; None: it never came that near to the lowest of its table.
    """

    table: str
    name: str
    file: str
    likelihood: str
    start: float
    end: float
    penalty: float
    iterations: int
    passes: int | None
    flops: float | None
    arrived: float | None


class TableLag(NamedTuple):
    """The lag on one table; not `reached`: it is even more."""

    table: str
    lag: int
    reached: bool


@dataclass(frozen=True)
class Lags:
    """The lags of all traces of a name, on those tables that have a baseline."""

    name: str
    tables: tuple[TableLag, ...]

    @property
    def mean(self) -> float:
        return float(np.mean([each.lag for each in self.tables]))

    @property
    def median(self) -> float:
        return float(np.median([each.lag for each in self.tables]))

    def as_json(self) -> dict[str, Any]:
        signs = [np.sign(each.lag) for each in self.tables]
        counts = {"behind": signs.count(1), "equal": signs.count(0), "ahead": signs.count(-1)}
        tables = [each._asdict() for each in self.tables]
        return {"name": self.name, "mean": self.mean, "median": self.median, **counts, "tables": tables}


@dataclass(frozen=True)
class ConvergenceReport:
    """All traces in the order of the command line, and the lags behind the baseline, if one was named."""

    question: ConvergenceSettings
    traces: tuple[TraceReport, ...]
    lags: tuple[Lags, ...]

    def as_json(self) -> dict[str, Any]:
        question = asdict(self.question)
        baseline, at = question.pop("lag"), question.pop("at")
        lag = None if baseline is None else {"baseline": baseline, "at": at, "lags": [x.as_json() for x in self.lags]}
        return {**question, "traces": [asdict(trace) for trace in self.traces], "lag": lag}


@dataclass(frozen=True)
class _Run:
    """A trace that has been read, as a curve: effort and objective at its points."""

    source: TracePath
    trace: Trace
    efforts: tuple[float, ...]
    values: tuple[float, ...]

    def iteration_below(self, value: float) -> int | None:
        """Return the first iteration at which the objective was so low."""
        found = zip(self.trace.points, self.values, strict=True)
        return next((point.iteration for point, reached in found if reached <= value), None)

    def at(self, iteration: int) -> float:
        """Return the objective after this many iterations, or the end or start of a shorter trace."""
        found = zip(self.trace.points, self.values, strict=True)
        return next((v for point, v in reversed([*found]) if point.iteration <= iteration), self.values[0])


def convergence(
    traces: Sequence[TracePath],
    question: ConvergenceSettings = ConvergenceSettings(),
    outputs: ConvergencePlots = ConvergencePlots(),
) -> ConvergenceReport:
    """Read the traces, draws what is asked for, and tells how each converged."""
    _check(traces, question, outputs)
    tables = _tables(traces)
    by_table: dict[str, dict[str, _Run]] = {}
    for source in traces:
        trace = read_trace(source.path)
        efforts = [_effort(source.path, point, question.by) for point in trace.points]
        penalized = question.of == "objective"
        by_table.setdefault(tables[source.folder], {})[source.name] = _Run(
            source, trace, tuple(efforts), tuple(p.nll + penalized * p.penalty for p in trace.points)
        )
    _check_alike([run for runs in by_table.values() for run in runs.values()])
    lags = _lags(by_table, question)
    told = {run.source: each for name, runs in by_table.items() for run, each in _reports(name, runs, question.within)}
    if outputs.svg:
        write_bytes(outputs.svg, _curves(by_table, question).encode())
    if outputs.histogram:
        write_bytes(outputs.histogram, _histograms(lags, question).encode())
    return ConvergenceReport(question, tuple(told[source] for source in traces), lags)


def _check(traces: Sequence[TracePath], question: ConvergenceSettings, outputs: ConvergencePlots) -> None:
    """All that can be known to be wrong before a file is read."""
    seen: dict[tuple[str, str], str] = {}
    for source in traces:
        if source.path == "-":
            raise UsageError("traces are files, and not read from standard input", hint="name what fit --trace wrote")
        key = source.folder, source.name
        if key in seen:
            what = f"two traces of a folder are called '{source.name}': {seen[key]} and {source.path}"
            raise UsageError(what, hint="name one as NAME=FILE")
        seen[key] = source.path
    names = list(dict.fromkeys(source.name for source in traces))
    if question.lag is not None:
        if question.lag not in names:
            raise UsageError(f"there is no trace '{question.lag}'", hint=f"the names are {', '.join(names)}")
        if len(names) == 1:
            raise UsageError("nobody can lag behind the baseline, for all traces have its name", hint="name others")
    elif outputs.histogram:
        raise UsageError("--histogram draws lags, and there are none", hint="say --lag NAME")
    if outputs.svg and len(names) > SERIES:
        raise UsageError(f"--svg draws at most {SERIES} names, and there are {len(names)}", hint="leave some out")
    for path in (outputs.svg, outputs.histogram):
        refuse_ending(path, NOT_DRAWN, "drawings are written as SVG")
    check_outputs((outputs.svg, outputs.histogram), [source.path for source in traces])


def _tables(traces: Sequence[TracePath]) -> dict[str, str]:
    """Return the name of the table of each folder: its own, with the whole path where two folders have the same."""
    folders = list(dict.fromkeys(source.folder for source in traces))
    names = [os.path.basename(folder) for folder in folders]
    return {folder: name if names.count(name) == 1 else folder for folder, name in zip(folders, names, strict=True)}


def _effort(path: str, point: TracePoint, unit: str) -> float:
    found = {"iterations": point.iteration, "passes": point.passes, "flops": point.flops}[unit]
    if found is None:
        why = " for this optimizer and these parameters" if unit == "flops" else ""
        hint = "say --by passes" if unit == "flops" else "say --by iterations"
        raise UsageError(f"the trace does not tell {unit}{why}", where=path, hint=hint)
    return float(found)


def _check_alike(runs: Sequence[_Run]) -> None:
    """All traces maximise the same likelihood."""
    first, *others = runs
    for other in others:
        if other.trace.likelihood != first.trace.likelihood:
            told = f"{first.source.path} tells {first.trace.likelihood}, {other.source.path} {other.trace.likelihood}"
            raise UsageError(f"two traces do not maximise the same: {told}", hint="leave one out")


def _lags(by_table: Mapping[str, Mapping[str, _Run]], question: ConvergenceSettings) -> tuple[Lags, ...]:
    if question.lag is None:
        return ()
    found: dict[str, list[TableLag]] = {}
    for table, runs in by_table.items():
        for name, run in runs.items():
            if name != question.lag and question.lag in runs:
                found.setdefault(name, []).append(_lag(table, runs[question.lag], run, question.at))
    if not found:
        raise UsageError(f"no folder has '{question.lag}' beside another trace", hint="put traces of a table together")
    return tuple(Lags(name, tuple(tables)) for name, tables in found.items())


def _lag(table: str, baseline: _Run, other: _Run, at: int) -> TableLag:
    is_behind = baseline.at(at) <= other.at(at)
    ahead, behind = (baseline, other) if is_behind else (other, baseline)
    reached = behind.iteration_below(ahead.at(at))
    last = behind.trace.points[-1].iteration if reached is None else reached
    return TableLag(table, (1 if is_behind else -1) * max(0, last - at), reached is not None)


def _reports(table: str, runs: Mapping[str, _Run], within: float) -> list[tuple[_Run, TraceReport]]:
    """Return the traces of a table; the lowest objective is that of them all."""
    goal = (1 + within) * min(min(run.values) for run in runs.values())
    found = []
    for run in runs.values():
        first, last = run.trace.points[0], run.trace.points[-1]
        arrived = next((effort for effort, v in zip(run.efforts, run.values, strict=True) if v <= goal), None)
        likelihood = (run.trace.likelihood, -first.nll, -last.nll, last.penalty)
        spent = (last.iteration, last.passes, last.flops, arrived)
        found.append((run, TraceReport(table, run.source.name, run.source.path, *likelihood, *spent)))
    return found


def _curves(by_table: Mapping[str, Mapping[str, _Run]], question: ConvergenceSettings) -> str:
    names = list(dict.fromkeys(name for runs in by_table.values() for name in runs))
    panels = [
        CurvesPanel(table, {name: [*zip(run.efforts, run.values, strict=True)] for name, run in runs.items()})
        for table, runs in by_table.items()
    ]
    every = [run for runs in by_table.values() for run in runs.values()]
    penalized = question.of == "objective" and any(point.penalty for run in every for point in run.trace.points)
    upwards = f"−{every[0].trace.likelihood.upper()}{' + penalty' if penalized else ''}, nats"
    return convergence_plots("Convergence", question.by, upwards, names, panels)


def _histograms(lags: Sequence[Lags], question: ConvergenceSettings) -> str:
    panels = [HistogramPanel(each.name, f"mean {each.mean:.1f}", [found.lag for found in each.tables]) for each in lags]
    return lag_histograms(question.heading_of_lags, panels)
