"""Files of figures beside the tests: compared with what is measured, or written anew with BNCLI_UPDATE=1."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

UPDATING = os.environ.get("BNCLI_UPDATE") == "1"


def write_csv(path: Path, lines: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, the first column to the left and the others to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *lines))


def short(number: float) -> str:
    """A ratio: one decimal, none from 100 on."""
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}"
