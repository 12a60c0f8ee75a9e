"""From naive Bayes to its discriminative form by the penalty: log-loss on rows learned from and on others.

Run `python -m tests.published.penalty_center`: `bncli fit` and `bncli evaluate` on a sample table, all settings anew.
A table of the manual (penalties) is made from `penalty_center.csv`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.published.pages import read_csv, table, write_csv
from tests.transcripts import ROOT

FIGURES = Path(__file__).with_suffix(".csv")
DATA = ROOT / "sample_data" / "tumours.csv"
OPTIONS = (
    "--param map",
    *(f"--penalty-center 1 --penalty {penalty}" for penalty in ("1e8", "1000", "100", "10", "1", "0.01", "0.0001")),
    "--param discriminative --penalty 0",
    "--penalty-center 1",
    "",
)
"""With `--structure nb`."""


class Figure(NamedTuple):
    """Nats a row on the rows learned from and in cross-validation, and the penalty where it was chosen."""

    options: str
    learnt: float
    validated: float
    chosen: float | None


def main() -> None:
    lines = [
        [one.options, f"{one.learnt:.8g}", f"{one.validated:.8g}", "" if one.chosen is None else f"{one.chosen:g}"]
        for one in map(measure, OPTIONS)
    ]
    write_csv(FIGURES, [Figure._fields, *lines])


def measure(options: str) -> Figure:
    """Both losses, five folds."""
    fit = _report("fit", options, "-o", "/dev/null")
    chosen = fit["penalty"] if fit["penalty_cv"] else None
    return Figure(options, -fit["cll"] / fit["rows"], _report("evaluate", options)["log_loss"], chosen)


def _report(command: str, options: str, *more: str) -> dict[str, float]:
    arguments = [command, str(DATA), "--structure", "nb", *options.split(), "--json", "--quiet", *more]
    done = subprocess.run([sys.executable, "-m", "bncli", *arguments], capture_output=True, check=True)
    report: dict[str, float] = json.loads(done.stdout)
    return report


def recorded() -> list[Figure]:
    """What the file has."""
    return [
        Figure(options, float(learnt), float(validated), float(chosen) if chosen else None)
        for options, learnt, validated, chosen in read_csv(FIGURES)[1:]
    ]


def center_table(figures: list[Figure]) -> str:
    """Return the table of the manual."""
    lines = [[_setting(one), f"{one.learnt:.4f}", f"{one.validated:.4f}"] for one in figures]
    return table(["setting", "training rows", "5-fold cross-validation"], lines) + "\n"


def _setting(figure: Figure) -> str:
    typed = f"`{figure.options}`" if figure.options else "the default"
    return typed if figure.chosen is None else f"{typed} (chosen: {figure.chosen:g})"


if __name__ == "__main__":
    main()
