"""Read the traces of optimizers: CSV files with one row per iteration, as `fit --trace` writes them.

The columns `iteration` and one of the log-likelihoods `cll` (conditional) and `ll` (joint) are required. All others may
be missing or empty, as in files of other programs.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TextIO

from bncli.errors import BncliError
from bncli.files.paths import cannot_read

_LIKELIHOODS = ("cll", "ll")
_EVALUATIONS = ("cll_evaluations", "gradient_evaluations")
_LONGEST_LINE = 10_000
"""The most characters of a line. A row of numbers has a few hundred; the limit protects the memory from a file without
line ends.
"""
_LARGEST_NUMBER, _LARGEST_COUNT = 1e30, 10**9
"""Limits for nats and flops, and for iterations and evaluations; no optimizer reaches them, and plots can show them."""
_ROUNDING = 1e-9
"""The amount, in nats, by which a log-likelihood may exceed 0 through rounding."""
_NOT_A_TRACE = "give a file written by bncli fit --trace"


@dataclass(frozen=True)
class TracePoint:
    """The state after an iteration (0 is the start).

    nll and penalty are the negative log-likelihood and the penalty in nats. passes: passes over the rows since the
    start, the larger of the numbers of likelihood and of gradient evaluations. flops: floating-point operations since
    the start. Both are None if the trace does not have them.
    """

    iteration: int
    nll: float
    penalty: float
    passes: int | None
    flops: float | None


@dataclass(frozen=True)
class Trace:
    """All points of a run in order; `likelihood` is the objective, `cll` or the joint `ll`."""

    likelihood: str
    points: tuple[TracePoint, ...]


def read_trace(path: str) -> Trace:
    """Return the trace in a file; raise BncliError with file and line if it is not a valid trace."""
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
    """The fields of a row by column, and its location in the file for errors."""

    fields: dict[str, str]
    where: str

    def number(self, name: str) -> float:
        """Return the number in a column; fail unless it is finite and of moderate size."""
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
        """Return the whole number in a column; fail unless it is from 0 to _LARGEST_COUNT."""
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
