"""RESULTS.md: the figures of the last run, a section for each module of this folder, and the machine they hold for.

A run of some modules replaces their sections and leaves the others, as long as the machine is the same.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

PATH = Path(__file__).with_name("RESULTS.md")
PACKAGES = ("numpy", "scipy", "pyarrow", "click", "scikit-learn")

INTRODUCTION = """# Measured speed

Written by `BNCLI_DATA=FOLDER pytest -n 0 -m performance`; without the folder of real tables some lines are missing.
Figures are ratios within one run: contestants take turns, CPU time of the process (all threads together), medians,
unless a line says otherwise. Seconds and milliseconds are for orientation.
"""


@dataclass(frozen=True)
class Figure:
    """What was measured, in which unit, the limit it is held to (None: told only), and seconds for orientation."""

    what: str
    measured: float
    unit: str
    at_most: float | None
    detail: str

    def line(self) -> str:
        limit = "" if self.at_most is None else f"{self.at_most:.3g}"
        return f"| {self.what} | {_short(self.measured)} {self.unit} | {limit} | {self.detail} |"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


class Results:
    """Figures by heading, in the order of the measurements."""

    def __init__(self) -> None:
        self._figures: dict[str, list[Figure]] = {}

    def add(self, heading: str, figure: Figure) -> None:
        self._figures.setdefault(heading, []).append(figure)

    def write(self) -> None:
        """RESULTS.md with these sections in place of older ones of the same name."""
        head = f"{INTRODUCTION}\n{machine()}\n"
        sections = _sections(PATH.read_text()) if PATH.exists() and PATH.read_text().startswith(head) else {}
        for heading, figures in self._figures.items():
            table = ["| what | measured | at most | seconds of this run |", "| --- | --- | --- | --- |"]
            sections[heading] = "\n".join([*table, *(figure.line() for figure in figures)])
        PATH.write_text(head + "".join(f"\n## {heading}\n\n{sections[heading]}\n" for heading in sorted(sections)))


def _sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    return {heading: body.strip() for heading, body in zip(parts[::2], parts[1::2], strict=True)}


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
