"""A tree whose arcs held-out rows choose, beside naive Bayes and beside a tree of all arcs, over many tables.

The tree was the default line once, which today chooses between it and interactions (`default_choice`).

Run `BNCLI_DATA=FOLDER python -m tests.published.default_line`: it measures the tree where
`default_line.csv` lacks it, five folds a table by `bncli evaluate`, and writes the page. `before` and `nb`
(`--structure nb`) are kept from commit a0317c4, the last before that change: all arcs and all levels that there
are, and a penalty chosen with the cut points of all training rows. The page leaves out tables without them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
MEASURED, KEPT = "default", ("before", "nb")


class Figure(NamedTuple):
    """One line on one table: log-loss over five folds with its standard deviation, that of the class frequencies."""

    set: str
    rows: int
    line: str
    log_loss: float
    std: float
    base_log_loss: float


def main() -> None:
    """Measures what is missing, small tables first, and writes the page."""
    figures = recorded() if FIGURES.exists() else []
    done = {(figure.set, figure.line) for figure in figures}
    for path in _paths(Path(os.environ["BNCLI_DATA"])):
        if (_name(path), MEASURED) not in done:
            figures.append(_measured(path))
            print(*figures[-1], flush=True)
            write(figures)
    PAGE.write_text(page(recorded()))


def _paths(folder: Path) -> list[Path]:
    """The tables of the folder and of `more` below it, small ones first."""
    paths = [*folder.glob("*.csv*"), *folder.glob("more/*.csv*")]
    return sorted(paths, key=lambda path: path.stat().st_size)


def _name(path: Path) -> str:
    return path.name.split(".")[0]


def _measured(path: Path) -> Figure:
    command = [sys.executable, "-m", "bncli", "evaluate", str(path), "--structure", "tan", "--arcs", "cv"]
    command += ["--json", "-q", "--threads", "1"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    base = report["base"]["log_loss"]
    return Figure(_name(path), report["rows"], MEASURED, report["log_loss"], report["std"]["log_loss"], base)


def write(figures: list[Figure]) -> None:
    """All figures to the file, to six digits."""
    numbers = [[*figure[:3], *(f"{value:.6g}" for value in figure[3:])] for figure in figures]
    write_csv(FIGURES, [Figure._fields, *numbers])


def recorded() -> list[Figure]:
    """What the file says."""
    return [Figure(name, int(rows), line, *map(float, rest)) for name, rows, line, *rest in read_csv(FIGURES)[1:]]


def by_set(figures: list[Figure]) -> dict[str, dict[str, Figure]]:
    """The figures of each table by line; tables that lack a line are left out."""
    found: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        found.setdefault(figure.set, {})[figure.line] = figure
    return {name: lines for name, lines in found.items() if lines.keys() == {MEASURED, *KEPT}}


FLOOR = 0.01
"""Nats that are added to both losses of a ratio: of losses near 0 the ratio says nothing."""


def ratio(figure: Figure, other: Figure) -> float:
    """The ratio of two log-losses."""
    return (figure.log_loss + FLOOR) / (other.log_loss + FLOOR)


def page(figures: list[Figure]) -> str:
    """The summary, then table by table."""
    found = by_set(figures)
    parts = ["# The tree of the default line, table by table", "", *_INTRODUCTION]
    rows = []
    for title, low, high in (("all", 0, 10**9), ("under 1,000 rows", 0, 1000), ("from 1,000 rows", 1000, 10**9)):
        chosen = [lines for lines in found.values() if low <= lines["default"].rows < high]
        rows.append([title, str(len(chosen)), *(_mean(chosen, other) for other in ("before", "nb"))])
    parts += [table(["tables", "number", "beside before", "beside nb"], rows), "", "## Log-loss, nats", ""]
    header = ["table", "rows", "before", "default", "nb", "class frequencies"]
    lines_of = [
        [
            name,
            f"{lines['default'].rows:,}",
            *(f"{lines[line].log_loss:.4f}" for line in ("before", "default", "nb")),
            f"{lines['default'].base_log_loss:.4f}",
        ]
        for name, lines in sorted(found.items(), key=lambda item: item[1]["default"].rows)
    ]
    return "\n".join([*parts, table(header, lines_of), ""])


def _mean(chosen: list[dict[str, Figure]], other: str) -> str:
    return f"{np.exp(np.mean([np.log(ratio(lines['default'], lines[other])) for lines in chosen])):.3f}"


_INTRODUCTION = [
    "`bncli evaluate DATA --structure tan --arcs cv` (`default`: it was the default line then; today's is in",
    "`default_choice.md`), five folds, beside the default line as it was before arcs were chosen on held-out rows,",
    "levels pooled, and cut points learned again in the folds that choose the penalty, and beside `--structure nb` of",
    f"that time (commit a0317c4). The summary has geometric means of ratios of log-losses, {FLOOR} nats added to each.",
    "",
    "Written by `python -m tests.published.default_line` from `default_line.csv`.",
    "",
]

if __name__ == "__main__":
    main()
