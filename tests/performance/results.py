"""What was measured last: figures.csv, and RESULTS.md, the page that is made from it.

`python -m tests.performance.results` writes the page. A run of some tests with BNCLI_UPDATE=1 replaces their figures
and leaves the others, as long as the processor is the same; a line that no test measures any more is to be deleted.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tests.published.pages import read_csv, write_csv

PATH = Path(__file__).with_name("figures.csv")
PAGE = Path(__file__).with_name("RESULTS.md")
PACKAGES = ("numpy", "scipy", "pyarrow", "click", "scikit-learn")
SLACK = 1.5
"""So many times the recorded figure is too large where no limit that is kept says what is."""

INTRODUCTION = f"""# Measured speed

Made by `python -m tests.performance.results` from `figures.csv`, which keeps what was measured by
`BNCLI_UPDATE=1 BNCLI_DATA=FOLDER pytest -n 0 -m performance`. Figures are ratios within one run: contestants take
turns, CPU time of the process (all threads together), medians, unless a line says otherwise. Seconds and milliseconds
are for orientation.

A test fails where a figure is above its limit (at most) or, where it has none or one that is known to be missed, above
{SLACK:g} times the figure that stands here (fails above). Limits that are missed are listed first.
"""
COLUMNS = ("section", "what", "measured", "unit", "at_most", "missed", "detail")
MACHINE = "machine"
"""The line of the file that names the machine."""


@dataclass(frozen=True)
class Figure:
    """What was measured, in which unit, and its limit (None: none). `missed`: why a limit that is missed is missed."""

    section: str
    what: str
    measured: float
    unit: str
    at_most: float | None = None
    missed: str = ""
    detail: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.section, self.what, self.unit

    @property
    def is_missed(self) -> bool:
        return self.at_most is not None and self.measured > self.at_most

    @property
    def bound(self) -> float:
        """What a later run may not exceed."""
        return SLACK * self.measured if self.at_most is None or self.is_missed else self.at_most


@dataclass(frozen=True)
class Results:
    """Figures in the order of the measurements, and the machine that they hold for."""

    machine: str
    figures: tuple[Figure, ...]

    def renewed(self, others: Results) -> Results:
        """What the others reached takes the place of what has the same key; of another processor nothing is kept."""
        if _processor_of(others.machine) != _processor_of(self.machine):
            return others
        found = {figure.key: figure for figure in (*self.figures, *others.figures)}
        return Results(others.machine, tuple(sorted(found.values(), key=lambda figure: figure.section)))


def _processor_of(machine: str) -> str:
    return machine.partition("Software:")[0]


def objection(figure: Figure, recorded: Figure | None, *, updating: bool = False) -> str | None:
    """What is wrong with a figure that was measured now, beside the one that is recorded; None: nothing.

    With `updating` the figure is to be the recorded one, and only a limit that is not known to be missed is held.
    """
    told = f"{figure.what}: {figure.measured:.3g} {figure.unit}"
    if figure.at_most is not None and (figure.measured <= figure.at_most or not figure.missed):
        return f"{told}, at most {figure.at_most:g} ({figure.detail})" if figure.is_missed else None
    if updating:
        return None
    if recorded is None:
        return f"{told}; no figure is recorded to compare it with: BNCLI_UPDATE=1 keeps this one"
    most = SLACK * recorded.measured
    return None if figure.measured <= most else f"{told}, at most {most:.3g}, {SLACK:g} times what is recorded"


def read(path: Path = PATH) -> Results:
    """What the file has; ValueError where a line is none."""
    if not path.exists():
        return Results("", ())
    _, (_, *machine), *lines = read_csv(path)
    return Results(machine[0], tuple(_figure(*line) for line in lines))


def _figure(section: str, what: str, measured: str, unit: str, at_most: str, missed: str, detail: str) -> Figure:
    return Figure(section, what, float(measured), unit, float(at_most) if at_most else None, missed, detail)


def write(results: Results, path: Path = PATH) -> None:
    """All figures to the file, to four digits; a reason is kept where the limit is missed."""
    first = [MACHINE, results.machine, *[""] * (len(COLUMNS) - 2)]
    write_csv(path, [COLUMNS, first, *(_line(figure) for figure in results.figures)])


def _line(figure: Figure) -> list[str]:
    at_most = "" if figure.at_most is None else f"{figure.at_most:.6g}"
    missed = figure.missed if figure.is_missed else ""
    return [figure.section, figure.what, f"{figure.measured:.4g}", figure.unit, at_most, missed, figure.detail]


def page(results: Results) -> str:
    """RESULTS.md."""
    parts = [f"{INTRODUCTION}\n{results.machine}\n", "## Limits that are missed\n"]
    missed = [figure for figure in results.figures if figure.is_missed]
    parts.append(_table(("section", "what", "measured", "at most", "why it is missed"), map(_told_missed, missed)))
    for section in dict.fromkeys(figure.section for figure in results.figures):
        inside = [figure for figure in results.figures if figure.section == section]
        parts.append(f"## {section}\n")
        parts.append(_table(("what", "measured", "at most", "fails above", "of this run"), map(_told, inside)))
    return "\n".join(parts)


def _told_missed(figure: Figure) -> Sequence[str]:
    return figure.section, figure.what, _measured(figure), _short(figure.at_most or 0.0), figure.missed


def _told(figure: Figure) -> Sequence[str]:
    at_most = "" if figure.at_most is None else _short(figure.at_most)
    return figure.what, _measured(figure), at_most, _short(figure.bound), figure.detail


def _measured(figure: Figure) -> str:
    return f"{_short(figure.measured)} {figure.unit}".strip()


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(header)
    return "".join("| " + " | ".join(cells) + " |\n" for cells in (header, rule, *lines))


def summary(measured: Iterable[Figure], recorded: Results) -> list[str]:
    """A line for every figure of a run: what it is, what is recorded, and its limit."""
    before = {figure.key: figure for figure in recorded.figures}
    lines = []
    for figure in measured:
        old = before.get(figure.key)
        limit = "" if figure.at_most is None else f", at most {_short(figure.at_most)}"
        was = "not recorded" if old is None else f"recorded {_short(old.measured)}"
        missed = f"  MISSED: {figure.missed}" if figure.is_missed else ""
        lines.append(f"{figure.section}: {figure.what}: {_measured(figure)} ({was}{limit}){missed}")
    return lines


@cache
def machine() -> str:
    """The processor, its cores, and the versions that matter; no names, no places."""
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    software = f"{platform.system()}, Python {platform.python_version()}, {packages}{_compiler()}"
    return f"Machine: {_processor()}, {os.cpu_count()} cores.\nSoftware: {software}."


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", info.read_text(), re.MULTILINE) if info.exists() else []
    vector = " with AVX-512" if info.exists() and "avx512f" in info.read_text() else ""
    return (names[0].strip() if names else platform.machine()) + vector


def _compiler() -> str:
    try:
        return ", gcc " + subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


if __name__ == "__main__":
    PAGE.write_text(page(read()))
