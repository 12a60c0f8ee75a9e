"""Whole commands.

CPU time and peak memory of the process, start-up and imports included.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet

from tests.performance.conftest import Recorder
from tests.performance.measure import alternate_commands, run
from tests.performance.workloads import real_path

pytestmark = pytest.mark.performance

BNCLI = [sys.executable, "-m", "bncli"]
PLAIN_READ = "import sys, pyarrow.csv; pyarrow.csv.read_csv(sys.argv[1])"


def test_help_costs_hardly_more_than_click(record: Recorder) -> None:
    runs = alternate_commands({"help": [*BNCLI, "--help"], "click": [sys.executable, "-c", "import click"]}, repeats=15)
    detail = f"help {runs['help'].cpu * 1e3:.0f} ms, import click {runs['click'].cpu * 1e3:.0f} ms"
    record("bncli --help", runs["help"].cpu / runs["click"].cpu, "x python -c 'import click'", 1.5, detail)


def test_tree_from_a_million_rows(tmp_path: Path, record: Recorder) -> None:
    """R's bnlearn took 16 CPU seconds for such a table, 13 of them to load it."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 1_000_000)
    texts = pa.array([f"v{i}" for i in range(5)])
    columns = {f"a{i}": texts.take(pa.array((labels + rng.integers(0, 5, len(labels))) % 5)) for i in range(30)}
    columns["class"] = pa.array(["no", "yes"]).take(pa.array(labels))
    path = str(tmp_path / "million.csv")
    pyarrow.csv.write_csv(pa.table(columns), path)
    fit = [*BNCLI, "fit", path, "--structure", "tan", "--param", "map", "--json", "-o", str(tmp_path / "million.bnc")]
    runs = alternate_commands({"fit": fit, "read": [sys.executable, "-c", PLAIN_READ, path]}, repeats=3)
    ours, read = runs["fit"], runs["read"]
    what = "generative TAN from a CSV, 1,000,000 rows x 30"
    record(what, ours.cpu / read.cpu, "x a plain pyarrow read", 4, f"CPU {ours.cpu:.2f} s, read {read.cpu:.2f} s")
    record(f"{what}: CPU", ours.cpu, "s", 8, f"wall: {stages(ours.output)}")
    record(f"{what}: peak memory", ours.peak_mb, "MB", 450)


def test_naive_bayes_from_ten_million_rows(tmp_path: Path, record: Recorder) -> None:
    """15 numbers, all values distinct, and 15 names, in four Parquet files of five row groups."""
    rng, n_rows = np.random.default_rng(0), 2_500_000
    names = pa.array([f"v{i}" for i in range(6)])
    for part in range(4):
        labels = rng.integers(0, 2, n_rows, np.int8)
        columns: dict[str, pa.Array] = {
            f"x{i}": pa.array(rng.standard_normal(n_rows) + 0.1 * labels) for i in range(15)
        }
        for i in range(15):
            codes = np.where(rng.random(n_rows, np.float32) < 0.1, labels, rng.integers(0, 6, n_rows, np.int8))
            columns[f"c{i}"] = pa.DictionaryArray.from_arrays(pa.array(codes), names)
        columns["class"] = pa.DictionaryArray.from_arrays(pa.array(labels), pa.array(["no", "yes"]))
        parquet.write_table(pa.table(columns), tmp_path / f"{part}.parquet", row_group_size=500_000)
    paths = [str(tmp_path / f"{part}.parquet") for part in range(4)]
    plain = "import sys; from pyarrow import parquet; [parquet.read_table(p, use_threads=False) for p in sys.argv[1:]]"
    read = run([sys.executable, "-c", plain, *paths])
    began = time.perf_counter()
    fit = run([*BNCLI, "fit", *paths, "--structure", "nb", "--param", "map", "--json", "-o", str(tmp_path / "m.bnc")])
    wall = time.perf_counter() - began
    detail = f"CPU {fit.cpu:.1f} s, {fit.peak_mb:,.0f} MB, a plain read {read.cpu:.1f} s; {stages(fit.output)}"
    record("naive Bayes from Parquet, 10,000,000 rows x 30: wall", wall, "s", 12, detail)


def test_groups_of_one_row_cost_next_to_nothing(tmp_path: Path, record: Recorder) -> None:
    """Beside the same cross-validation without groups, whose column is ignored."""
    table = pyarrow.csv.read_csv(real_path("adult"))
    units = pa.array([f"u{unit}" for unit in np.random.default_rng(0).permutation(10**6)[: len(table)]])
    path = str(tmp_path / "adult.csv")
    pyarrow.csv.write_csv(table.add_column(0, "unit", units), path)
    words = [*BNCLI, "evaluate", path, "--structure", "tan", "--threads", "1", "--json"]
    pair = {"groups": [*words, "--group", "unit"], "rows": [*words, "--ignore", "unit"]}
    runs = alternate_commands(pair, repeats=12)
    groups, rows = runs["groups"], runs["rows"]
    what = "evaluate --structure tan on adult, --group with one row per group"
    record(what, groups.cpu / rows.cpu, "x the CPU time without", 1.1, f"{groups.cpu:.1f} s, {rows.cpu:.1f} s")


@pytest.mark.parametrize("param", ["map", "weighted"])
def test_wide_tables_take_time_and_memory_linear_in_their_columns(tmp_path: Path, record: Recorder, param: str) -> None:
    """Naive Bayes of 30 rows; half of the columns are numbers."""
    fits = {n: fit_wide(tmp_path, n, ["--structure", "nb", "--param", param]) for n in (25_000, 100_000)}
    few, many = (run(fit) for fit in fits.values())
    what = f"nb, {param}, 30 rows x 100,000 columns"
    record(what, many.cpu / few.cpu, "x the CPU time of 25,000 columns", 5, f"{few.cpu:.1f} s, {many.cpu:.1f} s")
    detail = f"{few.peak_mb:.0f} MB, {many.peak_mb:.0f} MB"
    record(f"{what}: peak memory", many.peak_mb / few.peak_mb, "x that of 25,000 columns", 5, detail)


def test_columns_of_one_value_are_soon_read(tmp_path: Path, record: Recorder) -> None:
    names, row = ",".join(f"a{i}" for i in range(100_000)), ",".join(["1"] * 100_000)
    (tmp_path / "same.csv").write_text("".join([f"{names},class\n", *(f"{row},{'pq'[i % 2]}\n" for i in range(200))]))
    done = run([*BNCLI, "fit", str(tmp_path / "same.csv"), "--quiet", "-o", str(tmp_path / "same.bnc")])
    what = "fit, 200 rows x 100,000 columns of one value"
    record(f"{what}: CPU", done.cpu, "s", 60)
    record(f"{what}: peak memory", done.peak_mb, "MB", 2_500)


def test_trees_take_time_quadratic_in_their_columns(tmp_path: Path, record: Recorder) -> None:
    fits = {n: fit_wide(tmp_path, n, ["--structure", "tan", "--param", "map"]) for n in (1_000, 2_000)}
    few, many = (run(fit) for fit in fits.values())
    what = "TAN, map, 30 rows x 2,000 columns"
    record(what, many.cpu / few.cpu, "x the CPU time of 1,000 columns", 4, f"{few.cpu:.1f} s, {many.cpu:.1f} s")


def fit_wide(folder: Path, n_columns: int, options: list[str]) -> list[str]:
    """The command line that fits a made table of 30 rows."""
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    told = labels[:, np.newaxis] * (rng.random(n_columns // 2) < 0.1)
    numbers = np.round(rng.normal(size=told.shape) + told, 3)
    words = np.array(["a", "b", "c"])[rng.integers(0, 3, (30, n_columns // 2))]
    header = ",".join(f"a{i}" for i in range(2 * (n_columns // 2))) + ",class"
    rows = [",".join([*map(str, numbers[t]), *words[t], "pq"[labels[t]]]) for t in range(30)]
    path = folder / f"{n_columns}.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return [*BNCLI, "fit", str(path), *options, "--quiet", "-o", str(folder / "wide.bnc")]


def test_weighted_tree_on_covertype(tmp_path: Path, record: Recorder) -> None:
    fit = [*BNCLI, "fit", str(real_path("covertype")), "--structure", "tan", "--param", "weighted", "--penalty", "1"]
    done = run([*fit, "--json", "-o", str(tmp_path / "covertype.bnc")])
    report = json.loads(done.output)
    what = f"weighted TAN on covertype, {report['rows']:,} rows, {report['parameters']:,} parameters"
    seconds, passes = report["seconds"], report["evaluations"]
    detail = f"{passes} passes, {seconds['parameters'] / passes * 1e3:.0f} ms a pass with its step"
    record(f"{what}: CPU", done.cpu, "s", None, f"wall: {stages(done.output)}; {detail}")
    record(f"{what}: passes", passes, "passes", None)
    record(f"{what}: peak memory", done.peak_mb, "MB")


def stages(report: str) -> str:
    return ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in json.loads(report)["seconds"].items()) + " s"
