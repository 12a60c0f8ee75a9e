"""Every kind of predictor in every format of `bncli export`: how far what was written is from the model, and its size.

    python -m tests.published.exports_gate       measures, a row of exports_gate.csv a kind and format

The figures are those of the comparison that `export` makes before it keeps a file. What is refused is told by the
reason. Rows are kept as they come: a run that was stopped goes on.
"""

from __future__ import annotations

import csv
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import bncli
from bncli.errors import BncliError
from bncli.steps.export import export
from tests.published.pages import read_csv
from tests.transcripts import ROOT

FIGURES = Path(__file__).with_suffix(".csv")
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "bif": ("bif", {}),
    "xmlbif": ("xmlbif", {}),
    "python": ("python", {}),
    "javascript": ("javascript", {}),
    "SQLite": ("sql", {"dialect": "sqlite", "key": "id"}),
    "DuckDB": ("sql", {"dialect": "duckdb", "key": "id"}),
    "PostgreSQL": ("sql", {"dialect": "postgres", "key": "id"}),
    "onnx": ("onnx", {}),
    "scorecard": ("scorecard", {}),
}
_TREE: Mapping[str, Any] = {"structure": "tan", "param": "weighted", "penalty": 1.0}


class Kind(NamedTuple):
    """A learner on a table of sample data; `calibrated` by the other half of the rows."""

    table: str
    options: Mapping[str, Any]
    calibrated: str = ""


KINDS = {
    "naive Bayes, `map`": Kind("tumours", {"structure": "nb", "param": "map"}),
    "tree, `map`": Kind("tumours", {"structure": "tan", "param": "map"}),
    "tree, `weighted`": Kind("tumours", _TREE),
    "tree, `weighted`, three classes": Kind("wine_holes", _TREE),
    "tree, `discriminative`": Kind("tumours", {**_TREE, "param": "discriminative"}),
    "tree, `extended`": Kind("tumours", {**_TREE, "param": "extended"}),
    "tree, `acll`": Kind("tumours", {"structure": "tan", "param": "acll"}),
    "tree, `--smoothing hdp`": Kind("tumours", {"structure": "tan", "param": "map", "smoothing": "hdp"}),
    "tree, `--coding thermometer`": Kind("wine_holes", {**_TREE, "param": "discriminative", "coding": "thermometer"}),
    "`lr`": Kind("tumours", {"structure": "nb", "param": "lr", "penalty": 1.0}),
    "`kdb`, k = 2": Kind("wine_holes", {"structure": "kdb", "k": 2, "penalty": 1.0}),
    "`skdb`": Kind("wine_holes", {"structure": "skdb", "param": "map"}),
    "`hill-climb`": Kind("tumours", {"structure": "hill-climb", "param": "map"}),
    "`gbn`": Kind("tumours", {"structure": "gbn", "param": "map"}),
    "`interactions`": Kind("tumours", {"structure": "interactions", "penalty": 1.0}),
    "`kikuchi`, `kbma`": Kind("tic_tac_toe", {"structure": "kikuchi"}),
    "`kikuchi`, `discriminative`": Kind(
        "tic_tac_toe", {"structure": "kikuchi", "param": "discriminative", "penalty": 1.0}
    ),
    "`auto`": Kind("tumours", {"structure": "auto", "effort": 1}),
    "`auto`, three classes": Kind("wine_holes", {"structure": "auto", "effort": 1}),
    "naive Bayes that marginalizes": Kind(
        "wine_holes", {"structure": "nb", "param": "map", "missing_policy": "marginalize"}
    ),
    "tree that marginalizes": Kind("wine_holes", {"structure": "tan", "param": "map", "missing_policy": "marginalize"}),
    "`--increasing`": Kind("tumours", {**_TREE, "increasing": ["radius"]}),
    "`--class-weights`": Kind("tumours", {**_TREE, "class_weights": "balanced"}),
    "with a threshold": Kind("tumours", {**_TREE, "threshold": 0.3}),
    "tree and a temperature": Kind("tumours", {"structure": "tan", "param": "map"}, "temperature"),
    "tree and isotonic maps": Kind("wine_holes", {"structure": "tan", "param": "map"}, "isotonic"),
    "tree and a map a class": Kind("wine_holes", {"structure": "tan", "param": "map"}, "per-class"),
    "`kbma` and a temperature": Kind("tic_tac_toe", {"structure": "kikuchi"}, "temperature"),
}


class Figure(NamedTuple):
    """rows compared and the largest difference of a probability, or why it was refused; bytes of what was written.

    entries: numbers that it holds. For a scorecard the difference is that before points are rounded.
    """

    kind: str
    format: str
    rows: int | None
    max_dp: float | None
    entries: int | None
    bytes: int | None
    refused: str


def recorded() -> list[Figure]:
    """The file of figures."""
    return [
        Figure(kind, form, _count(rows), float(dp) if dp else None, _count(entries), _count(size), refused)
        for kind, form, rows, dp, entries, size, refused in read_csv(FIGURES)[1:]
    ]


def _count(cell: str) -> int | None:
    return int(cell) if cell else None


def measured(name: str, wanted: Callable[[str], bool] = lambda form: True) -> Iterator[Figure]:
    """One kind in the formats that are wanted."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "m.bnc"))
        _learnt(KINDS[name], Path(folder)).save(path)
        for word, (form, options) in FORMATS.items():
            if not wanted(word):
                continue
            out = Path(folder, word)
            try:
                found = export(path, form, output=str(out), options=options)
            except BncliError as error:
                yield Figure(name, word, None, None, None, None, error.what)
                continue
            assert found.rows is not None, f"nothing at hand runs {word}"
            yield Figure(name, word, found.rows, found.max_dp, found.probabilities, out.stat().st_size, "")


def _learnt(kind: Kind, folder: Path) -> bncli.Model:
    head, *rows = (ROOT / "sample_data" / f"{kind.table}.csv").read_text().splitlines()
    random.Random(0).shuffle(rows)
    for name, part in (("all", rows), ("even", rows[::2]), ("odd", rows[1::2])):
        (folder / f"{name}.csv").write_text("\n".join([head, *part, ""]))
    table = folder / ("even.csv" if kind.calibrated else "all.csv")
    model = bncli.fit(table, progress=lambda event: None, **kind.options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows, or those of training: the maps need not be good here
        return model.calibrate(folder / "odd.csv", kind.calibrated) if kind.calibrated else model


def main() -> None:
    """Writes to exports_gate.csv what it lacks."""
    done = {one.kind for one in recorded()} if FIGURES.exists() else set()
    with FIGURES.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(Figure._fields)
        for name in KINDS:
            if name not in done:
                writer.writerows(list(measured(name)))
                file.flush()


if __name__ == "__main__":
    main()
