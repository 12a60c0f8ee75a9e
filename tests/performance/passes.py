"""passes.csv: passes to the optimum of every problem of the survey, and their means."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

TABLE = Path(__file__).with_name("passes.csv")
CAP = 500
"""Passes. What takes more counts as these in the means; a run of the product that never arrives is noted so."""
MANY_ROWS = 10_000
PENALTIES = (1.0, 0.01, 0.0)
HEADER = ("table", "structure", "rows", "parameters", "lambda", "own", "own_setup", "lbfgs")


@dataclass(frozen=True)
class Line:
    """One problem: passes of the product, what its preconditioners cost in passes, and the passes of the peer."""

    table: str
    structure: str
    rows: int
    parameters: int
    penalty: float
    own: float
    own_setup: float
    peer: float

    @property
    def arrived(self) -> bool:
        return self.own != CAP

    @property
    def total(self) -> float:
        return min(self.own + self.own_setup, CAP)


def recorded() -> list[Line]:
    """What the file has."""
    with TABLE.open(newline="") as file:
        return [
            Line(name, structure, int(rows), int(parameters), *map(float, numbers))
            for name, structure, rows, parameters, *numbers in list(csv.reader(file))[1:]
        ]


def write(lines: Sequence[Line]) -> None:
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for line in lines:
            numbers = [f"{number:.0f}" for number in (line.own, line.own_setup, line.peer)]
            writer.writerow([line.table, line.structure, line.rows, line.parameters, f"{line.penalty:g}", *numbers])


@dataclass(frozen=True)
class Means:
    """Geometric means over problems, and how many runs of each took CAP passes or more."""

    problems: int
    passes: float
    total: float
    peer: float
    late: int
    peer_late: int


def means(lines: Sequence[Line], penalty: float, least_rows: int = 0) -> Means:
    """Of one penalty's problems, on tables of more rows than `least_rows`."""
    chosen = [line for line in lines if line.penalty == penalty and line.rows > least_rows]
    return Means(
        len(chosen),
        geometric_mean([min(line.own, CAP) for line in chosen]),
        geometric_mean([line.total for line in chosen]),
        geometric_mean([line.peer for line in chosen]),
        sum(line.own >= CAP for line in chosen),
        sum(line.peer >= CAP for line in chosen),
    )


def ratio(lines: Sequence[Line], penalty: float, least_rows: int = 0) -> tuple[float, str]:
    """The ratio of the means, preconditioners counted, and what they are."""
    found = means(lines, penalty, least_rows)
    detail = f"{found.problems} problems: own {found.total:.0f}, of it passes {found.passes:.0f}"
    return found.total / found.peer, f"{detail}; L-BFGS {found.peer:.0f}"


def arrivals(lines: Sequence[Line], penalty: float) -> tuple[int, int, str]:
    """How many problems of one penalty do not arrive, of how many, and which is the slowest."""
    chosen = [line for line in lines if line.penalty == penalty]
    missing = [f"{line.table} {line.structure}" for line in chosen if not line.arrived]
    worst = max(chosen, key=lambda line: line.own)
    slowest = f"slowest: {worst.table} {worst.structure}, {worst.own:.0f} passes"
    return len(missing), len(chosen), f"{slowest}; missing: {', '.join(missing) or 'none'}"
