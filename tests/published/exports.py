"""What scoring outside bncli takes beside `bncli score`: SQL in SQLite and DuckDB, ONNX in onnxruntime.

    python -m tests.published.exports        measures, a row of exports.csv a table, model and program

Seconds of the processor (all threads) for a million rows, those of the table again and again. `score` is the command,
from a Parquet file to a Parquet file, its start included; all others begin when the rows stand in a table of the
database, or as arrays in memory, and what was exported is loaded. Figures are kept as they come: a run that was
stopped goes on.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from pyarrow import parquet

import bncli
from bncli.steps.export import export
from tests.published.pages import read_csv
from tests.transcripts import ROOT

FIGURES = Path(__file__).with_suffix(".csv")
ROWS = 1_000_000
AT_ONCE = 4096
"""Rows that onnxruntime takes in a call, and SQLite in an insertion."""
_TREE: dict[str, Any] = {"structure": "tan", "penalty": 1.0}
_PAIRS: dict[str, Any] = {"structure": "interactions", "penalty": 1.0}
_AUTO: dict[str, Any] = {"structure": "auto", "effort": 1}
MODELS = {
    ("tumours", "tan"): _TREE,
    ("tumours", "interactions"): _PAIRS,
    ("tumours", "auto"): _AUTO,
    ("adult", "tan"): _TREE,
    ("adult", "interactions"): _PAIRS,
}
PROGRAMS = ("sqlite", "duckdb", "onnxruntime", "bncli", "score")


class Figure(NamedTuple):
    """Seconds of the processor for so many rows; bytes of what is run: a text of SQL, a graph, a model."""

    table: str
    model: str
    program: str
    rows: int
    seconds: float
    bytes: int


def recorded() -> list[Figure]:
    """The file of figures."""
    return [
        Figure(table, model, program, int(rows), float(seconds), int(size))
        for table, model, program, rows, seconds, size in read_csv(FIGURES)[1:]
    ]


def measured(name: str, word: str, n_rows: int) -> Iterator[Figure]:
    """One model in all programs; every one scores the same rows."""
    path = str(ROOT / "sample_data" / f"{name}.csv")
    if not os.path.exists(path):
        path = os.path.join(os.environ["BNCLI_DATA"], f"{name}.csv.gz")
    model = bncli.fit(path, progress=lambda event: None, **MODELS[name, word])
    table = pyarrow.csv.read_csv(path).select(model.feature_names_in_.tolist())
    rows = table.take(pa.array(np.arange(n_rows) % table.num_rows)).combine_chunks()
    rows = rows.append_column("id", pa.array(range(n_rows)))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "m.bnc"))
        model.save(path)
        sums = []
        for program, prepared in _PREPARED.items():
            scored, size = prepared(path, rows)
            begun = _seconds()
            sums.append(scored())
            yield Figure(name, word, program, n_rows, round(_seconds() - begun, 3), size)
    assert max(sums) - min(sums) < 1e-6 * n_rows, sums


def _seconds() -> float:
    """Of this process and those that it started and waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


Prepared = tuple[Callable[[], float], int]
"""What scores, and returns the sum of the first probability; bytes."""


def _bncli(path: str, rows: pa.Table) -> Prepared:
    model = bncli.load(path)
    return lambda: float(model.predict_proba(rows)[:, 0].sum()), os.path.getsize(path)


def _score(path: str, rows: pa.Table) -> Prepared:
    source, scores = f"{path}.parquet", f"{path}.scores.parquet"
    parquet.write_table(rows, source)
    command = [sys.executable, "-m", "bncli", "score", path, source, "-o", scores, "-q"]

    def scored() -> float:
        subprocess.run(command, check=True)
        return float(parquet.read_table(scores, memory_map=False).column(1).to_numpy().sum())

    return scored, os.path.getsize(path)


def _sqlite(path: str, rows: pa.Table) -> Prepared:
    text = _statements(path, "sqlite")
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE input ({', '.join(_quoted(name) for name in rows.column_names)})")
    marks = ", ".join("?" * rows.num_columns)
    for batch in rows.to_batches(AT_ONCE):
        values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        database.executemany(f"INSERT INTO input VALUES ({marks})", values)
    database.executescript(text)
    return lambda: float(database.execute(_query(text)).fetchone()[0]), len(text.encode())


def _duckdb(path: str, rows: pa.Table) -> Prepared:
    import duckdb

    text = _statements(path, "duckdb")
    database = duckdb.connect()
    database.register("held", rows)
    database.execute("CREATE TABLE input AS SELECT * FROM held")
    database.execute(text)
    return lambda: float(database.execute(_query(text)).fetchall()[0][0]), len(text.encode())


def _statements(path: str, dialect: str) -> str:
    out = f"{path}.{dialect}.sql"
    export(path, "sql", output=out, options={"dialect": dialect, "key": "id"})
    return Path(out).read_text()


def _query(text: str) -> str:
    """The sum of the first probability: every row is scored, none is handed out."""
    told = json.loads(text.partition("-- bncli: ")[2].partition("\n")[0])
    return f"SELECT sum({_quoted(told['columns'][0])}) FROM {_quoted(told['view'])}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _onnx(path: str, rows: pa.Table) -> Prepared:
    import onnxruntime

    out = f"{path}.onnx"
    export(path, "onnx", output=out)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(out, options)
    feed = {one.name: _values(rows[one.name], one.type == "tensor(double)") for one in session.get_inputs()}

    def scored() -> float:
        blocks = range(0, rows.num_rows, AT_ONCE)
        answers = (session.run(["probabilities"], {n: c[i : i + AT_ONCE] for n, c in feed.items()}) for i in blocks)
        return float(sum(p[:, 0].sum() for (p,) in answers))

    return scored, os.path.getsize(out)


def _values(column: pa.ChunkedArray, is_number: bool) -> Any:
    """(N, 1): doubles, or texts that equal values share."""
    if is_number:
        return column.to_numpy().astype(float)[:, None]
    held = column.cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()
    return np.array(held.dictionary.to_pylist(), object)[held.indices.to_numpy()][:, None]


_PREPARED: dict[str, Callable[[str, pa.Table], Prepared]] = {
    "bncli": _bncli,
    "score": _score,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
    "onnxruntime": _onnx,
}


def main() -> None:
    """Writes to exports.csv what it lacks."""
    done = {(one.table, one.model) for one in recorded()} if FIGURES.exists() else set()
    with FIGURES.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(Figure._fields)
        for name, word in MODELS:
            if (name, word) not in done:
                writer.writerows(list(measured(name, word, ROWS)))
                file.flush()


if __name__ == "__main__":
    main()
