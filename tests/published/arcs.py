"""The log-loss of TAN and 2-dependence classifiers with all arcs, and with arcs chosen on held-out rows.

Run `BNCLI_DATA=FOLDER python -m tests.published.arcs`: it measures the tables that `arcs.csv` lacks, small ones first,
five folds per line by `bncli evaluate`, and prints the sentence of `bncli help penalties`. Of a larger table, MOST_ROWS
rows are drawn with a fixed seed, and HEAVY_ROWS of one in HEAVY. Tables on which a line takes more than MOST_SECONDS
of processor time are left out.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.published.pages import read_csv, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
HEADINGS = ("table", "tan_all", "tan_cv", "kdb_all", "kdb_cv")
MOST_ROWS = 20_000
MOST_SECONDS = 300
HEAVY = (
    "adult",
    "connect_4",
    "covertype",
    "letter",
    "optdigits",
    "satimage",
    "segment",
    "shuttle",
    "spambase",
    "splice",
    "waveform_5000",
)
"""Tables with so many values and probabilities that a line takes minutes unless few rows are drawn."""
HEAVY_ROWS = 1_000
LINES = [("--structure", *words, "--arcs", arcs) for words in (("tan",), ("kdb", "--k", "2")) for arcs in ("all", "cv")]


def main() -> None:
    """Measure what is missing, and print the sentence of the manual."""
    paths = sorted(Path(os.environ["BNCLI_DATA"]).glob("*.csv*"), key=lambda path: path.stat().st_size)
    for path in paths:
        name, rows = path.name.split(".")[0], read_csv(FIGURES)[1:]
        if name not in [row[0] for row in rows]:
            try:
                with tempfile.TemporaryDirectory() as folder:
                    table = _sampled(path, Path(folder))
                    losses = [f"{_log_loss(table, words):.4f}" for words in LINES]
            except subprocess.CalledProcessError as error:
                if error.returncode != -signal.SIGXCPU:
                    raise
                print(f"{name} is left out: more than {MOST_SECONDS} seconds")
                continue
            write_csv(FIGURES, [HEADINGS, *rows, [name, *losses]])
    print(sentence())


def _sampled(path: Path, folder: Path) -> Path:
    """Return the table, or a table in `folder` with a part of its rows, drawn without replacement."""
    header, *lines = (gzip.open if path.suffix == ".gz" else open)(path, "rt").readlines()
    name = path.name.split(".")[0]
    n_rows = HEAVY_ROWS if name in HEAVY else MOST_ROWS
    if len(lines) <= n_rows:
        return path
    chosen = sorted(random.Random(0).sample(range(len(lines)), n_rows))
    (folder / f"{name}.csv").write_text(header + "".join(lines[row] for row in chosen))
    shutil.copy(path.with_name(f"{name}.schema.json"), folder)
    return folder / f"{name}.csv"


def _log_loss(path: Path, words: tuple[str, ...]) -> float:
    command = [sys.executable, "-m", "bncli", "evaluate", str(path), *words, "--json", "-q", "--threads", "1"]
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    done = subprocess.run(command, capture_output=True, check=True, preexec_fn=limit)
    found = json.loads(done.stdout)["log_loss"]
    return float(found)


def sentence() -> str:
    """Return what the figures say, for the manual."""
    rows = [(name, *map(float, losses)) for name, *losses in read_csv(FIGURES)[1:]]
    tan, kdb = ((sum(row[i + 1] < row[i] for row in rows), sum(row[i + 1] > row[i] for row in rows)) for i in (1, 3))
    heavy = sum(row[0] in HEAVY for row in rows)
    return (
        f"Measured on {len(rows)} tables in five folds, `--arcs cv` has a lower log-loss than `--arcs all` on {tan[0]} "
        f"and a higher one on {tan[1]} with `tan`, and on {kdb[0]} and {kdb[1]} with `kdb --k 2`. "
        f"Of {heavy} tables with many rows or columns, {HEAVY_ROWS:,} rows were drawn, of others at most {MOST_ROWS:,}."
    )


if __name__ == "__main__":
    main()
