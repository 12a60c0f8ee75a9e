"""What scoring outside bncli takes beside `bncli score`: SQL in SQLite and DuckDB, ONNX in onnxruntime.

    python -m tests.published.exports        measures, a row of exports.csv a table, model and program

Seconds of the processor (all threads), without loading: the rows stand in a table of the database, or as arrays of
Arrow in memory. Rows are those of sample data, repeated.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

import bncli
from bncli.steps.export import export
from tests.transcripts import ROOT

FIGURES = Path(__file__).with_suffix(".csv")
ROWS = 100_000
MODELS = {
    ("tumours", "tan"): {"structure": "tan", "param": "weighted", "penalty": 1.0},
    ("tumours", "interactions"): {"structure": "interactions", "penalty": 1.0},
}


class Figure(NamedTuple):
    """Seconds of the processor for so many rows."""

    table: str
    model: str
    program: str
    rows: int
    seconds: float


def recorded() -> list[Figure]:
    with FIGURES.open(newline="") as file:
        rows = csv.DictReader(file)
        return [
            Figure(row["table"], row["model"], row["program"], int(row["rows"]), float(row["seconds"])) for row in rows
        ]


def page_rows(figures: list[Figure]) -> str:
    """The rows of the manual's table: millions of rows in a second of the processor."""
    lines = []
    for table, model in MODELS:
        speeds = {f.program: f.rows / f.seconds / 1e6 for f in figures if (f.table, f.model) == (table, model)}
        told = " | ".join(f"{speeds[p]:.2g}" for p in ("sqlite", "duckdb", "onnxruntime", "bncli"))
        lines.append(f"| {table}, `{model}` | {told} |\n")
    return "".join(lines)


def measured(name: str, word: str, n_rows: int) -> list[Figure]:
    """One model in all programs; every one scores the same rows."""
    table = pyarrow.csv.read_csv(ROOT / "sample_data" / f"{name}.csv")
    model = bncli.fit(table, progress=lambda event: None, **MODELS[name, word])
    times = -(-n_rows // table.num_rows)
    rows = pa.concat_tables([table] * times).slice(0, n_rows).combine_chunks()
    rows = rows.append_column("id", pa.array(range(n_rows)))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "m.bnc"))
        model.save(path)
        programs: dict[str, Callable[[], Callable[[], float]]] = {
            "bncli": lambda: lambda: float(model.predict_proba(rows)[:, 0].sum()),
            "sqlite": lambda: _sqlite(path, rows),
            "duckdb": lambda: _duckdb(path, rows),
            "onnxruntime": lambda: _onnx(path, rows),
        }
        found, sums = [], []
        for program, prepared in programs.items():
            scored = prepared()
            begun = time.process_time()
            sums.append(scored())
            found.append(Figure(name, word, program, n_rows, round(time.process_time() - begun, 3)))
    assert max(sums) - min(sums) < 1e-6 * n_rows, sums
    return found


def _sqlite(path: str, rows: pa.Table) -> Callable[[], float]:
    text = _statements(path, "sqlite")
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE input ({', '.join(_quoted(name) for name in rows.column_names)})")
    marks = ", ".join("?" * rows.num_columns)
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    database.executemany(f"INSERT INTO input VALUES ({marks})", values)
    database.executescript(text)
    return lambda: float(database.execute(_query(text)).fetchone()[0])


def _duckdb(path: str, rows: pa.Table) -> Callable[[], float]:
    import duckdb

    text = _statements(path, "duckdb")
    database = duckdb.connect()
    database.register("held", rows)
    database.execute("CREATE TABLE input AS SELECT * FROM held")
    database.execute(text)
    return lambda: float(database.execute(_query(text)).fetchall()[0][0])


def _statements(path: str, dialect: str) -> str:
    out = f"{path}.{dialect}.sql"
    export(path, "sql", output=out, options={"dialect": dialect})
    return Path(out).read_text()


def _query(text: str) -> str:
    """The sum of the first probability: every row is scored, none is handed out."""
    told = json.loads(text.partition("-- bncli: ")[2].partition("\n")[0])
    return f"SELECT sum({_quoted(told['columns'][0])}) FROM {_quoted(told['view'])}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _onnx(path: str, rows: pa.Table) -> Callable[[], float]:
    import onnxruntime

    out = f"{path}.onnx"
    export(path, "onnx", output=out)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(out, options)
    columns = {one.name: rows[one.name].to_numpy()[:, None] for one in session.get_inputs()}
    numbers = {one.name for one in session.get_inputs() if one.type == "tensor(double)"}
    feed: dict[str, Any] = {n: c.astype(float) if n in numbers else c.astype(object) for n, c in columns.items()}

    def scored() -> float:
        blocks = range(0, rows.num_rows, 4096)
        answers = (session.run(["probabilities"], {n: c[i : i + 4096] for n, c in feed.items()})[0] for i in blocks)
        return float(sum(p[:, 0].sum() for p in answers))

    return scored


def main() -> None:
    """Writes exports.csv."""
    figures = [figure for name, word in MODELS for figure in measured(name, word, ROWS)]
    with FIGURES.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Figure._fields)
        writer.writerows(figures)


if __name__ == "__main__":
    main()
