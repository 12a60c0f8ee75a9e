"""Traces of optimizers, read: the CSV files that `fit --trace` writes, a row an iteration.

Of the columns `iteration` and one of the likelihoods `cll` and `ll` have to be there; what else is told may be left
out or empty, as files of other programs do.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TextIO

from bncli.errors import BncliError
from bncli.files.paths import cannot_read

_LIKELIHOODS = ("cll", "ll")
_EVALUATIONS = ("cll_evaluations", "gradient_evaluations")
_LONGEST_LINE = 10_000
"""Characters; a row of numbers has a few hundred, and a file without line ends must not fill the memory."""
_LARGEST, _MOST = 1e30, 10**9
"""Of nats and flops, and of iterations and evaluations: no optimizer comes so far, and drawings have room for them."""
_ROUNDING = 1e-9
"""Nats; so far above 0 a sum of logarithms of probabilities may come out."""
_NOT_A_TRACE = "name a file that bncli fit --trace wrote"


@dataclass(frozen=True)
class TracePoint:
    """After an iteration (0 = the start): minus the log-likelihood, and the penalty, in nats.

    Totals since the start: passes over the rows, the larger of the evaluations of the likelihood and of its gradient,
    with which products with the Hessian count; and flops. None: not told.
    """

    iteration: int
    nll: float
    penalty: float
    passes: int | None
    flops: float | None


@dataclass(frozen=True)
class Trace:
    """All points of a run, by iteration; `likelihood` says which was maximised, `cll` or the joint `ll`."""

    likelihood: str
    points: tuple[TracePoint, ...]


def read_trace(path: str) -> Trace:
    """Return the trace at `path`; BncliError with file and line for what is no trace."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _Reader(path, csv.reader(_lines(path, file))).trace()
    except OSError as error:
        raise cannot_read(path, error) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BncliError("this is no CSV file", where=path, hint=_NOT_A_TRACE) from error


def _lines(path: str, file: TextIO) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise BncliError("a line is too long for a trace", where=path, hint=_NOT_A_TRACE)
        yield line
        # After the row itself, as what else is wrong with it says more.
        if not line.endswith(("\n", "\r")):
            hint = "write the trace again; if it is whole, put an end to its last line"
            raise BncliError("the last line is cut off", where=path, hint=hint)


class _Reader:
    """The rows of one file, which knows where it is."""

    def __init__(self, path: str, rows: Iterator[list[str]]) -> None:
        self._path = path
        self._rows = rows
        self._line = 1
        self._totals: dict[str, float] = {}

    def trace(self) -> Trace:
        columns = next(self._rows, [])
        if not columns:
            raise BncliError("the file is empty", where=self._path, hint=_NOT_A_TRACE)
        if "iteration" not in columns or not set(columns) & {*_LIKELIHOODS}:
            lacking = "iteration" if "iteration" not in columns else "cll"
            raise BncliError(f"there is no column '{lacking}'", where=self._path, hint=_NOT_A_TRACE)
        for name in columns:
            if columns.count(name) > 1:
                raise BncliError(f"there are two columns '{name}'", where=self._path, hint=_NOT_A_TRACE)
        points: list[TracePoint] = []
        told: str | None = None
        for cells in self._rows:
            self._line += 1
            if len(cells) != len(columns):
                self._fail(f"expected {len(columns)} fields, found {len(cells)}")
            row = dict(zip(columns, cells, strict=True))
            likelihood = self._likelihood(row)
            if likelihood != (told := told or likelihood):
                self._fail(f"this row tells {likelihood}, those before it {told}")
            points.append(self._point(row, likelihood))
            self._check_totals(row)
            if len(points) > 1 and points[-1].iteration <= points[-2].iteration:
                self._fail(f"iteration {points[-1].iteration} follows on {points[-2].iteration}")
        if told is None:
            hint = "parameters in closed form have none; --param weighted, for example, has"
            raise BncliError("the trace has no iterations", where=self._path, hint=hint)
        return Trace(told, tuple(points))

    def _likelihood(self, row: dict[str, str]) -> str:
        told = [name for name in _LIKELIHOODS if row.get(name)]
        return told[0] if told else self._fail("neither cll nor ll is told")

    def _point(self, row: dict[str, str], likelihood: str) -> TracePoint:
        log_likelihood = self._number(row, likelihood)
        if log_likelihood > _ROUNDING:
            self._fail(f"{likelihood} is above 0, which no probability allows: {row[likelihood]!r}")
        evaluations = [self._count(row, name) for name in _EVALUATIONS if row.get(name)]
        return TracePoint(
            self._count(row, "iteration"),
            -log_likelihood,
            self._number(row, "penalty") if row.get("penalty") else 0.0,
            max(evaluations, default=None),
            self._number(row, "flops") if row.get("flops") else None,
        )

    def _check_totals(self, row: dict[str, str]) -> None:
        """Check that running totals never decrease."""
        totals = {name: float(row[name]) for name in (*_EVALUATIONS, "flops") if row.get(name)}
        for name, total in totals.items():
            if total < self._totals.get(name, total):
                self._fail(f"{name} fall from {self._totals[name]:g} to {total:g}")
        self._totals |= totals

    def _number(self, row: dict[str, str], name: str) -> float:
        try:
            value = float(row[name])
        except ValueError:
            self._fail(f"{name} is no number: {row[name]!r}")
        if not math.isfinite(value):
            self._fail(f"{name} is not finite: {row[name]!r}")
        if abs(value) > _LARGEST:
            self._fail(f"{name} is not between -{_LARGEST:g} and {_LARGEST:g}: {row[name]!r}")
        return value

    def _count(self, row: dict[str, str], name: str) -> int:
        value = self._number(row, name)
        if value < 0 or value != int(value):
            self._fail(f"{name} is no whole number of at least 0: {row[name]!r}")
        if value > _MOST:
            self._fail(f"{name} is more than {_MOST:,}: {row[name]!r}")
        return int(value)

    def _fail(self, what: str) -> NoReturn:
        raise BncliError(what, where=f"{self._path}, line {self._line}")
