"""How large pages of reports are, and what they take: of real tables, and of one that is very wide.

    BNCLI_DATA=FOLDER python -m tests.published.report_sizes        measures, a row of report_sizes.csv a page

The model is learned from seven rows of ten, in the order of a seeded shuffle, and the page is of the other three.
Seconds are those of the processor for the page alone. Nothing is measured again that the file has already.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
import re
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.engine.prediction.portable import make_portable
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.fit import fit
from bncli.steps.report.report import report
from tests.transcripts import ROOT

FIGURES = Path(__file__).with_suffix(".csv")
PAGES = {
    "tic_tac_toe": {"structure": "kikuchi"},
    "wine": {"structure": "auto"},
    "wine_holes": {"structure": "tan"},
    "adult": {"structure": "tan"},
    "letter": {"structure": "tan", "penalty": 3.0},
    "wide": {"structure": "nb", "param": "map"},
}
"""Tables by their files; `wide` is drawn. The penalty of letter is the one that cross-validation chooses."""
PANELS = {"effects": "contributions that add up", "tables": "what each value changes", "none": "left out"}


class Figure(NamedTuple):
    """A page: the table, columns and labels of its model, table entries, bytes, its panel, seconds."""

    table: str
    columns: int
    labels: int
    entries: int
    bytes: int
    panel: str
    seconds: float


def recorded() -> list[Figure]:
    """What was measured."""
    if not FIGURES.exists():
        return []
    with FIGURES.open(newline="") as file:
        return [
            Figure(one["table"], *(int(one[key]) for key in Figure._fields[1:5]), one["panel"], float(one["seconds"]))
            for one in csv.DictReader(file)
        ]


def page_rows(figures: list[Figure]) -> str:
    """The rows of the manual's table."""
    return "".join(
        f"| {one.table}, `{PAGES[one.table]['structure']}` | {one.columns:,} | {one.labels} | {one.entries:,} "
        f"| {one.bytes / 1e6:.2f} | {PANELS[one.panel]} | {one.seconds:.1f} |\n"
        for one in figures
    )


def measured(name: str) -> Figure:
    """A page written and looked at."""
    header, *rows = _wide() if name == "wide" else _rows(name)
    random.Random(1).shuffle(rows)
    cut = int(0.7 * len(rows))
    with tempfile.TemporaryDirectory() as folder:
        train, test, model, page = (str(Path(folder, one)) for one in ("train.csv", "test.csv", "m.bnc", "r.html"))
        for path, part in ((train, rows[:cut]), (test, rows[cut:])):
            with Path(path).open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([header, *part])
        fit(Source((train,)), Recipe.of(**PAGES[name]), output=model)
        begun = time.process_time()
        report(model, Source((test,)), output=page)
        seconds = time.process_time() - begun
        learnt, text = read_model(model), Path(page).read_text(encoding="utf-8")
    found = re.search('"effects":(true|false)', text)
    panel = "none" if found is None else "effects" if found[1] == "true" else "tables"
    entries = sum(table.entries.size for table in make_portable(learnt).tables)
    sizes = (len(learnt.attributes), len(learnt.schema.labels), entries, len(text.encode()))
    return Figure(name, *sizes, panel, round(seconds, 2))


def _rows(name: str) -> list[list[str]]:
    """A table of the samples, or of the folder of data."""
    path = ROOT / "sample_data" / f"{name}.csv"
    if path.exists():
        return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    packed = Path(os.environ["BNCLI_DATA"], f"{name}.csv.gz")
    return list(csv.reader(io.StringIO(gzip.decompress(packed.read_bytes()).decode())))


def _wide() -> list[list[str]]:
    """4,000 rows of 2,000 columns, every hundredth of 500 levels, and 40 labels that the first fifty columns tell."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 40, 4000)
    levels = [500 if i % 100 == 0 else 4 for i in range(2000)]
    columns = [
        (labels * 7 + draw.integers(0, 2, 4000)) % n if i < 50 else draw.integers(0, n, 4000)
        for i, n in enumerate(levels)
    ]
    cells = np.column_stack([*columns, labels]).tolist()
    header = [*(f"column_{i:04d}" for i in range(2000)), "class"]
    return [header, *([*(f"level {code}" for code in row[:-1]), f"label {row[-1]}"] for row in cells)]


def main() -> None:
    """Measures what is not there yet."""
    figures = {one.table: one for one in recorded()}
    for name in PAGES:
        if name not in figures:
            figures[name] = measured(name)
            with FIGURES.open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(Figure._fields)
                writer.writerows(figures[one] for one in PAGES if one in figures)
            print(figures[name])


if __name__ == "__main__":
    main()
