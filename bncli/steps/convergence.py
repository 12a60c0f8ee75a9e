"""Compare the traces of several fits: how fast each converges, and by how many iterations one lags behind another.

Traces in the same folder belong to the same table. The name of a trace is its file name without the extension, unless
another name is given; traces with the same name in several folders are taken to come from the same learner. The
compared value is the negative log-likelihood (NLL) plus the penalty, which is the objective that was minimised, or the
NLL alone.

The lag of a trace behind the baseline is measured at iteration n (Zaidi et al. 2017, with n = 5):

    lag = number of iterations after n until the trace reaches the value that the baseline has at n

If the trace is ahead of the baseline at n, the two change places and the lag is negative. If the one that is behind
never reaches the value, all its iterations after n are counted, which is a lower bound on the size of the lag.

Traces are CSV files with one row per iteration, as `fit --trace` writes them. The column `iteration` and one of the
log-likelihoods, `cll` (conditional) or `ll` (joint), are required. All others may be missing or empty, as in files of
other programs.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, NoReturn, TextIO

import numpy as np

from bncli.errors import BncliError, UsageError
from bncli.files.atomic import write_bytes
from bncli.files.paths import cannot_read, check_outputs, refuse_ending
from bncli.files.pictures.curve_plots import CurvesPanel, HistogramPanel, convergence_plots, lag_histograms
from bncli.files.pictures.drawing import SERIES
from bncli.steps.compare.outputs import NOT_DRAWN

_LIKELIHOODS = ("cll", "ll")
_EVALUATIONS = ("cll_evaluations", "gradient_evaluations")
_LONGEST_LINE = 10_000
"""A line with at least this many characters is rejected. A row of numeric values has a few hundred; the limit bounds
the memory needed for a file without line ends.
"""
_LARGEST_NUMBER, _LARGEST_COUNT = 1e30, 10**9
"""Upper limits: the first for nats and flops, the second for iterations and evaluations. No optimizer reaches them."""
_ROUNDING = 1e-9
"""The amount, in nats, by which a log-likelihood may exceed 0 through rounding."""
_NOT_A_TRACE = "give a file written by bncli fit --trace"


class TracePath(NamedTuple):
    """A trace file, and the name that was given for it, if any."""

    path: str
    typed_name: str | None = None

    @property
    def name(self) -> str:
        """The given name or, without one, the file name without its extension."""
        return self.typed_name or os.path.splitext(os.path.basename(self.path))[0]

    @property
    def folder(self) -> str:
        """The absolute path of the folder that contains the file."""
        return os.path.dirname(os.path.abspath(self.path))


@dataclass(frozen=True)
class ConvergenceSettings:
    """The settings of a comparison of traces.

    by: the unit of effort: iterations, passes or flops. of: the value that is compared: objective or nll.
    within: a trace has converged when its value is at most (1 + within) times the lowest value of its table.
    lag: the name of the baseline that the other traces are compared with after `at` iterations, or None.
    """

    by: str = "iterations"
    of: str = "objective"
    within: float = 0.001
    lag: str | None = None
    at: int = 5

    @property
    def heading_of_lags(self) -> str:
        """The heading of the lags, which are in iterations whatever the unit of effort."""
        unit = "iterations" if self.by == "iterations" else f"iterations, not {self.by}"
        return f"Lag behind {self.lag} after iteration {self.at}, in {unit}"


@dataclass(frozen=True)
class TraceReport:
    """A trace: its log-likelihood at the start and the end, its total effort, and when it converged.

    likelihood: what was maximised, `cll` or `ll`. start, end: the log-likelihood in nats, without the penalty.
    penalty: the penalty at the end, in nats. iterations, passes, flops: totals; passes and flops are None if the trace
    does not have them. arrived: the effort after which it had converged, or None if it did not converge.
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
    """The lag of a trace on one table, in iterations; a lower bound on its absolute value if `reached` is false."""

    table: str
    lag: int
    reached: bool


@dataclass(frozen=True)
class Lags:
    """The lags of all traces with the same name, one for each table that has such a trace and a baseline."""

    name: str
    tables: tuple[TableLag, ...]

    @property
    def mean(self) -> float:
        """The mean lag in iterations."""
        return float(np.mean([each.lag for each in self.tables]))

    @property
    def median(self) -> float:
        """The median lag in iterations."""
        return float(np.median([each.lag for each in self.tables]))

    def as_json(self) -> dict[str, Any]:
        """Return the lags, their mean and median, and the numbers of tables with a positive, zero and negative lag."""
        signs = [np.sign(each.lag) for each in self.tables]
        counts = {"behind": signs.count(1), "equal": signs.count(0), "ahead": signs.count(-1)}
        tables = [each._asdict() for each in self.tables]
        return {"name": self.name, "mean": self.mean, "median": self.median, **counts, "tables": tables}


@dataclass(frozen=True)
class ConvergenceReport:
    """All traces in the given order, and the lags behind the baseline; without a baseline, there are no lags."""

    settings: ConvergenceSettings
    traces: tuple[TraceReport, ...]
    lags: tuple[Lags, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the settings, the traces, and the lags (None without a baseline)."""
        settings = asdict(self.settings)
        baseline, at = settings.pop("lag"), settings.pop("at")
        lag = None if baseline is None else {"baseline": baseline, "at": at, "lags": [x.as_json() for x in self.lags]}
        return {**settings, "traces": [asdict(trace) for trace in self.traces], "lag": lag}


@dataclass(frozen=True)
class _Curve:
    """A trace with the effort and the compared value at each of its points."""

    source: TracePath
    trace: Trace
    efforts: tuple[float, ...]
    values: tuple[float, ...]

    def value_at(self, iteration: int) -> float:
        """Return the value at the last point with at most this many iterations, or at the first if there is none."""
        points = zip(self.trace.points, self.values, strict=True)
        return next((v for point, v in reversed([*points]) if point.iteration <= iteration), self.values[0])


def convergence(
    traces: Sequence[TracePath],
    settings: ConvergenceSettings = ConvergenceSettings(),
    *,
    svg: str | None = None,
    histogram: str | None = None,
) -> ConvergenceReport:
    """Report how traces converged; if given, plot their curves to the file `svg` and their lags to `histogram`.

    Raises BncliError for a file that is not a trace, and UsageError for traces that cannot be compared.
    """
    _check_arguments(traces, settings, svg, histogram)
    # A table has the name of its folder, or the whole path if two folders have the same name.
    folders = list(dict.fromkeys(source.folder for source in traces))
    names = [os.path.basename(folder) for folder in folders]
    tables = {folder: name if names.count(name) == 1 else folder for folder, name in zip(folders, names, strict=True)}
    curves: dict[str, dict[str, _Curve]] = {}  # by table, then by name
    for source in traces:
        trace = read_trace(source.path)
        efforts = []
        for point in trace.points:
            effort = {"iterations": point.iteration, "passes": point.passes, "flops": point.flops}[settings.by]
            if effort is None:
                why = " for this optimizer and these parameters" if settings.by == "flops" else ""
                hint = "use --by passes" if settings.by == "flops" else "use --by iterations"
                raise UsageError(f"the trace has no {settings.by}{why}", where=source.path, hint=hint)
            efforts.append(float(effort))
        is_penalized = settings.of == "objective"
        values = tuple(point.nll + is_penalized * point.penalty for point in trace.points)
        curves.setdefault(tables[source.folder], {})[source.name] = _Curve(source, trace, tuple(efforts), values)
    first, *others = [curve for by_name in curves.values() for curve in by_name.values()]
    for other in others:
        if other.trace.likelihood != first.trace.likelihood:
            own = f"{first.source.path} has {first.trace.likelihood}, {other.source.path} {other.trace.likelihood}"
            raise UsageError(f"two traces maximize different functions: {own}", hint="leave one out")
    lags = () if settings.lag is None else _lags(curves, settings.lag, settings.at)
    reports = {}
    for table, by_name in curves.items():
        goal = (1 + settings.within) * min(min(curve.values) for curve in by_name.values())
        for curve in by_name.values():
            start, end = curve.trace.points[0], curve.trace.points[-1]
            reports[curve.source] = TraceReport(
                table=table,
                name=curve.source.name,
                file=curve.source.path,
                likelihood=curve.trace.likelihood,
                start=-start.nll,
                end=-end.nll,
                penalty=end.penalty,
                iterations=end.iteration,
                passes=end.passes,
                flops=end.flops,
                arrived=next((e for e, value in zip(curve.efforts, curve.values, strict=True) if value <= goal), None),
            )
    if svg:
        learners = list(dict.fromkeys(name for own_curves in curves.values() for name in own_curves))
        panels = []
        for folder, own_curves in curves.items():
            points = {name: [*zip(curve.efforts, curve.values, strict=True)] for name, curve in own_curves.items()}
            panels.append(CurvesPanel(folder, points))
        drawn = [curve.trace for own_curves in curves.values() for curve in own_curves.values()]
        is_penalized = settings.of == "objective" and any(point.penalty for trace in drawn for point in trace.points)
        upwards = f"−{drawn[0].likelihood.upper()}{' + penalty' if is_penalized else ''}, nats"
        write_bytes(svg, convergence_plots("Convergence", settings.by, upwards, learners, panels).source().encode())
    if histogram:
        bars = [HistogramPanel(each.name, f"mean {each.mean:.1f}", [t.lag for t in each.tables]) for each in lags]
        write_bytes(histogram, lag_histograms(settings.heading_of_lags, bars).source().encode())
    return ConvergenceReport(settings, tuple(reports[source] for source in traces), lags)


def _check_arguments(
    traces: Sequence[TracePath], settings: ConvergenceSettings, svg: str | None, histogram: str | None
) -> None:
    """Raise UsageError for arguments that are invalid regardless of what the trace files contain."""
    path_of_trace: dict[tuple[str, str], str] = {}
    for source in traces:
        if source.path == "-":
            raise UsageError(
                "traces must be files, not the standard input", hint="give a file written by bncli fit --trace"
            )
        key = source.folder, source.name
        if key in path_of_trace:
            what = f"two traces in a folder have the name '{source.name}': {path_of_trace[key]} and {source.path}"
            raise UsageError(what, hint="give one of them as NAME=FILE")
        path_of_trace[key] = source.path
    names = list(dict.fromkeys(source.name for source in traces))
    if settings.lag is not None:
        if settings.lag not in names:
            raise UsageError(f"there is no trace '{settings.lag}'", hint=f"the names are {', '.join(names)}")
        if len(names) == 1:
            raise UsageError(
                "all traces have the name of the baseline, so there is none whose lag can be measured",
                hint="add traces with other names",
            )
    elif histogram:
        raise UsageError("--histogram draws lags, but no lag was measured", hint="add --lag NAME")
    if svg and len(names) > SERIES:
        raise UsageError(
            f"--svg draws at most {SERIES} names, but there are {len(names)}", hint="leave some traces out"
        )
    for path in (svg, histogram):
        refuse_ending(path, NOT_DRAWN, "drawings can be written only as SVG")
    check_outputs((svg, histogram), [source.path for source in traces])


def _lags(curves: Mapping[str, Mapping[str, _Curve]], baseline_name: str, at: int) -> tuple[Lags, ...]:
    """Return the lags behind the baseline after `at` iterations; raise UsageError if no table has any lag."""
    by_name: dict[str, list[TableLag]] = {}
    for table, by_curve_name in curves.items():
        baseline = by_curve_name.get(baseline_name)
        for name, curve in by_curve_name.items():
            if name == baseline_name or baseline is None:
                continue
            is_behind = baseline.value_at(at) <= curve.value_at(at)
            ahead, behind = (baseline, curve) if is_behind else (curve, baseline)
            value = ahead.value_at(at)
            points = zip(behind.trace.points, behind.values, strict=True)
            reached = next((point.iteration for point, reached in points if reached <= value), None)
            last = behind.trace.points[-1].iteration if reached is None else reached
            lag = (1 if is_behind else -1) * max(0, last - at)
            by_name.setdefault(name, []).append(TableLag(table, lag, reached is not None))
    if not by_name:
        raise UsageError(
            f"no folder contains '{baseline_name}' and another trace",
            hint="put all traces of one table into the same folder",
        )
    return tuple(Lags(name, tuple(lags)) for name, lags in by_name.items())


@dataclass(frozen=True)
class TracePoint:
    """The state of an optimizer after an iteration (0 is the start).

    nll, penalty: the negative log-likelihood and the penalty, in nats. passes: number of passes over the rows since the
    start, which is the number of likelihood evaluations or of gradient evaluations, whichever is larger. flops: number
    of floating-point operations since the start. passes and flops are None if the trace does not have them.
    """

    iteration: int
    nll: float
    penalty: float
    passes: int | None
    flops: float | None


@dataclass(frozen=True)
class Trace:
    """All points of an optimizer run, in order; `likelihood` is `cll` (conditional) or `ll` (joint)."""

    likelihood: str
    points: tuple[TracePoint, ...]


def read_trace(path: str) -> Trace:
    """Load a trace from a file; raise BncliError, with the line if possible, if it is not a valid trace."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _parse_trace(path, csv.reader(_complete_lines(path, file)))
    except OSError as error:
        raise cannot_read(path, error) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BncliError("this is not a CSV file", where=path, hint=_NOT_A_TRACE) from error


def _complete_lines(path: str, file: TextIO) -> Iterator[str]:
    """Yield the lines; raise BncliError if one is too long or the last one has no line end."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise BncliError("a line is too long for a trace", where=path, hint=_NOT_A_TRACE)
        yield line
        # Checked after the row was parsed, because an error in the row itself is more informative.
        if not line.endswith(("\n", "\r")):
            hint = "write the trace again, or add a newline if the last line is complete"
            raise BncliError("the last line is cut off", where=path, hint=hint)


class _Row(NamedTuple):
    """The fields of a row, keyed by column, and its location in the file for error messages."""

    fields: dict[str, str]
    where: str

    def number(self, name: str) -> float:
        """Parse the number in a column; fail unless it is finite and at most _LARGEST_NUMBER in absolute value."""
        text = self.fields[name]
        try:
            value = float(text)
        except ValueError:
            self.fail(f"{name} is not a number: {text!r}")
        if not math.isfinite(value):
            self.fail(f"{name} is not finite: {text!r}")
        if abs(value) > _LARGEST_NUMBER:
            self.fail(f"{name} is not between -{_LARGEST_NUMBER:g} and {_LARGEST_NUMBER:g}: {text!r}")
        return value

    def count(self, name: str) -> int:
        """Parse the integer in a column; fail unless it is between 0 and _LARGEST_COUNT."""
        value = self.number(name)
        if value < 0 or value != int(value):
            self.fail(f"{name} is not a whole number of at least 0: {self.fields[name]!r}")
        if value > _LARGEST_COUNT:
            self.fail(f"{name} is more than {_LARGEST_COUNT:,}: {self.fields[name]!r}")
        return int(value)

    def fail(self, what: str) -> NoReturn:
        raise BncliError(what, where=self.where)


def _parse_trace(path: str, lines: Iterable[list[str]]) -> Trace:
    lines = iter(lines)
    columns = next(lines, [])
    if not columns:
        raise BncliError("the file is empty", where=path, hint=_NOT_A_TRACE)
    if "iteration" not in columns or not set(columns) & {*_LIKELIHOODS}:
        absent = "iteration" if "iteration" not in columns else "cll"
        raise BncliError(f"there is no column '{absent}'", where=path, hint=_NOT_A_TRACE)
    for name in columns:
        if columns.count(name) > 1:
            raise BncliError(f"there are two columns '{name}'", where=path, hint=_NOT_A_TRACE)
    points: list[TracePoint] = []
    likelihood = ""
    totals: dict[str, float] = {}
    for number, fields in enumerate(lines, 2):
        where = f"{path}, line {number}"
        if len(fields) != len(columns):
            raise BncliError(f"expected {len(columns)} fields, found {len(fields)}", where=where)
        row = _Row(dict(zip(columns, fields, strict=True)), where)
        present = [name for name in _LIKELIHOODS if row.fields.get(name)]
        if not present:
            row.fail("the row has neither cll nor ll")
        likelihood = likelihood or present[0]
        if present[0] != likelihood:
            row.fail(f"this row has {present[0]}, but earlier rows have {likelihood}")
        points.append(_point(row, likelihood))
        # Running totals never decrease.
        for name in (*_EVALUATIONS, "flops"):
            if row.fields.get(name):
                total = float(row.fields[name])
                if total < totals.get(name, total):
                    row.fail(f"{name} decrease from {totals[name]:g} to {total:g}")
                totals[name] = total
        if len(points) > 1 and points[-1].iteration <= points[-2].iteration:
            row.fail(f"iteration {points[-1].iteration} comes after iteration {points[-2].iteration}")
    if not points:
        hint = "parameters in closed form need no iterations; use iterative ones such as --param weighted"
        raise BncliError("the trace has no iterations", where=path, hint=hint)
    return Trace(likelihood, tuple(points))


def _point(row: _Row, likelihood: str) -> TracePoint:
    log_likelihood = row.number(likelihood)
    if log_likelihood > _ROUNDING:
        row.fail(f"{likelihood} is above 0, which is impossible for a log-likelihood: {row.fields[likelihood]!r}")
    evaluations = [row.count(name) for name in _EVALUATIONS if row.fields.get(name)]
    return TracePoint(
        row.count("iteration"),
        -log_likelihood,
        row.number("penalty") if row.fields.get("penalty") else 0.0,
        max(evaluations, default=None),
        row.number("flops") if row.fields.get("flops") else None,
    )
