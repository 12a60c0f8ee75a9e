"""Why the defaults are what they are: settings beside each other, and a chosen penalty beside a fixed one.

Run `BNCLI_DATA=FOLDER python -m tests.published.defaults`: it measures by `bncli evaluate`, ten folds in two rounds of
five, what `defaults.csv` lacks, and keeps it there at once. The manual's tables (which-one, penalties) are made from
that file; `BNCLI_UPDATE=1 pytest -n 0 tests/test_manual.py` puts them there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")

SETTINGS = {
    "nb, map": "--structure nb --param map",
    "tan, map (m-estimate:1)": "--structure tan --param map",
    "tan, map, `--smoothing m-estimate:5`": "--structure tan --param map --smoothing m-estimate:5",
    "kdb with `--k 2`, map (m-estimate:1)": "--structure kdb --k 2 --param map",
    "kdb with `--k 2`, map, `--smoothing m-estimate:5`": ("--structure kdb --k 2 --param map --smoothing m-estimate:5"),
    "nb, weighted, `--penalty 1`": "--structure nb --param weighted --penalty 1",
    "nb, weighted": "--structure nb --param weighted",
    "tan, weighted, `--penalty 1`": "--structure tan --param weighted --penalty 1",
    "tan, weighted, `--arcs all`": "--structure tan --param weighted --arcs all",
    "tan, weighted": "--structure tan --arcs cv --param weighted",
    "tan, weighted, `--penalty-center 1`": "--structure tan --arcs cv --param weighted --penalty-center 1",
    "nb, discriminative, `--penalty 1`": "--structure nb --param discriminative --penalty 1",
    "nb, discriminative": "--structure nb --param discriminative",
    "tan, discriminative, `--penalty 1`": "--structure tan --param discriminative --penalty 1",
    "tan, discriminative, `--arcs all`": "--structure tan --param discriminative --arcs all",
    "tan, discriminative": "--structure tan --arcs cv --param discriminative",
}
"""The learning options of each setting by its name in the manual."""
SETS = ("german", "car", "vehicle", "crx", "house_votes_84", "segment")
"""Of the table of all settings."""
PENALTY_SETS = (
    *("glass", "heart_statlog", "house_votes_84", "crx", "pima", "vehicle", "tic_tac_toe", "german", "car", "nursery"),
)
PENALTIES = {
    "tan, weighted": ("tan, weighted, `--penalty 1`", "tan, weighted, `--arcs all`"),
    "tan, discriminative": ("tan, discriminative, `--penalty 1`", "tan, discriminative, `--arcs all`"),
}
"""Settings that differ in the penalty alone: fixed, chosen."""


class Figure(NamedTuple):
    """One setting on one table: nats a row over all folds."""

    set: str
    options: str
    log_loss: float


def main() -> None:
    """Measures what is missing, one `bncli evaluate` after the other."""
    figures = recorded()
    for name, options in wanted():
        if (name, options) not in figures:
            figures[name, options] = measure(name, options)
            print(name, options, figures[name, options], flush=True)
            write_csv(FIGURES, [Figure._fields, *((*key, f"{loss:.6g}") for key, loss in figures.items())])


def wanted() -> list[tuple[str, str]]:
    """The table and the options of every figure that is shown."""
    of_penalties = [SETTINGS[setting] for pair in PENALTIES.values() for setting in pair]
    shown = [(name, options) for name in SETS for options in SETTINGS.values()]
    return list(dict.fromkeys([*shown, *((name, options) for name in PENALTY_SETS for options in of_penalties)]))


def measure(name: str, options: str) -> float:
    """The log-loss of `bncli evaluate`."""
    folder = Path(os.environ["BNCLI_DATA"])
    path = next(path for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if path.exists())
    protocol = ["--folds", "5", "--repeats", "2", "--threads", "1", "--json", "--quiet"]
    command = [sys.executable, "-m", "bncli", "evaluate", str(path), *protocol, *options.split()]
    return float(json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["log_loss"])


def recorded() -> dict[tuple[str, str], float]:
    """Log-losses by table and options, as the file has them."""
    lines = read_csv(FIGURES)[1:] if FIGURES.exists() else []
    return {(name, options): float(loss) for name, options, loss in lines}


def settings_table(figures: dict[tuple[str, str], float]) -> str:
    """Every setting, a column for each table."""
    lines = [[setting, *(f"{figures[name, options]:.3f}" for name in SETS)] for setting, options in SETTINGS.items()]
    return table(["setting", *(_short(name) for name in SETS)], lines) + "\n"


def penalties_table(figures: dict[tuple[str, str], float]) -> str:
    """The log-loss with the penalty 1, and with one that is chosen, of every table; last, the mean of the ratios."""
    header = ["table"]
    for kind in PENALTIES:
        header += [f"{kind}, `--penalty 1`", "chosen"]
    lines = [
        [_short(name), *(f"{loss:.3f}" for pair in _pairs(figures, name) for loss in pair)] for name in PENALTY_SETS
    ]
    means = [cell for kind in range(len(PENALTIES)) for cell in ("1", f"{mean_ratio(figures, kind):.3f}")]
    return table(header, [*lines, ["geometric mean of ratios", *means]]) + "\n"


def mean_ratio(figures: dict[tuple[str, str], float], kind: int) -> float:
    """The geometric mean over PENALTY_SETS of the log-loss with a chosen penalty to that with the penalty 1."""
    pairs = [_pairs(figures, name)[kind] for name in PENALTY_SETS]
    return geometric_mean([chosen / fixed for fixed, chosen in pairs])


def _pairs(figures: dict[tuple[str, str], float], name: str) -> list[tuple[float, float]]:
    """(fixed, chosen) of every kind of PENALTIES."""
    return [(figures[name, SETTINGS[fixed]], figures[name, SETTINGS[chosen]]) for fixed, chosen in PENALTIES.values()]


def _short(name: str) -> str:
    return "votes" if name == "house_votes_84" else name


if __name__ == "__main__":
    main()
