"""Scoring a file.

Beside the floor, pyarrow's plain typed read of the same file: 200,000 rows of 6 numeric and 8 categorical columns and
the class (27 MB), TAN; and its memory. About two thirds of the time go into reading and coding, most of the rest into
writing.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

from bncli.engine.learn import learn
from bncli.files.artifacts.model import write_model
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.row_scoring import WhatIfQuestions
from bncli.steps.score import ScoreOutput, score
from tests.performance.conftest import Recorder
from tests.performance.workloads import real_path

pytestmark = pytest.mark.performance

N_ROWS = 200_000
LEVELS = [9, 16, 7, 15, 6, 5, 2, 42]
RANGES = [(90, 0), (1_500_000, 0), (16, 0), (10_000, 0), (100, 2), (100, 0)]
GENERATIVE = Recipe.of(param="map")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data.csv and a model m.bnc learned from it."""
    folder = tmp_path_factory.mktemp("score")
    generator = np.random.default_rng(0)
    columns: dict[str, object] = {}
    total = np.zeros(N_ROWS)
    for i, (top, decimals) in enumerate(RANGES):
        values = generator.random(N_ROWS) * top
        columns[f"n{i}"] = np.round(values, decimals) if decimals else values.astype(np.int64)
        total += values / top
    for i, n_levels in enumerate(LEVELS):
        codes = generator.integers(0, n_levels, N_ROWS)
        columns[f"c{i}"] = pa.array([f"Value-{code}-{n_levels}" for code in range(n_levels)]).take(pa.array(codes))
        total += 0.3 * (codes % 2)
    yes = total + generator.normal(0, 0.5, N_ROWS) > np.median(total)
    columns["class"] = pa.array(["<=50K", ">50K"]).take(pa.array(yes.astype(np.int8)))
    pyarrow.csv.write_csv(pa.table(columns), folder / "data.csv")
    model = learn(read_columns(Source((str(folder / "data.csv"),))), GENERATIVE).model
    write_model(str(folder / "m.bnc"), model)
    return folder


def cpu_ratios(floor: Callable[[], object], others: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU time of each in units of the floor's."""
    runs: dict[str, list[float]] = {name: [] for name in ("", *others)}
    for _ in range(repeats):
        for name, function in {"": floor, **others}.items():
            began = time.process_time()
            function()
            runs[name].append(time.process_time() - began)
    return {name: statistics.median(runs[name]) / statistics.median(runs[""]) for name in others}


def test_beside_a_plain_read(folder: Path, record: Recorder) -> None:
    data, model, source = str(folder / "data.csv"), str(folder / "m.bnc"), Source((str(folder / "data.csv"),))
    types = {f"n{i}": pa.float64() for i in range(6)} | {f"c{i}": pa.string() for i in range(8)}
    options = pyarrow.csv.ConvertOptions(column_types=types | {"class": pa.string()})
    output = str(folder / "out.csv")
    ratios = cpu_ratios(
        lambda: pyarrow.csv.read_csv(data, convert_options=options),
        {
            "--digits 6": lambda: score(model, source, output=ScoreOutput(path=output, digits=6)),
            "full precision": lambda: score(model, source, output=ScoreOutput(output)),
            "--labels-only": lambda: score(model, source, output=ScoreOutput(path=output, labels_only=True)),
            "--keep-all": lambda: score(model, source, output=ScoreOutput(path=output, keep="all")),
        },
        repeats=9,
    )
    limits = {"--digits 6": 3.0, "full precision": 3.5, "--labels-only": ratios["full precision"], "--keep-all": None}
    for name, limit in limits.items():
        record(f"score, {name}", ratios[name], "x the plain read", limit)


@pytest.mark.parametrize("structure", ["nb", "tan"])
def test_a_quarter_of_the_values_missing(tmp_path: Path, structure: str, record: Recorder) -> None:
    """Adult four times over, every attribute value removed with probability 1/4, beside the rows as they are."""
    table = pyarrow.csv.read_csv(real_path("adult"))
    table = pa.concat_tables([table] * 4)
    rng = np.random.default_rng(1)
    kept = [name == "class" or pa.array(rng.random(table.num_rows) < 0.75) for name in table.column_names]
    punched = [pc.if_else(keep, column, None) for keep, column in zip(kept, table.columns, strict=True)]
    pyarrow.csv.write_csv(table, tmp_path / "whole.csv")
    pyarrow.csv.write_csv(pa.table(punched, names=table.column_names), tmp_path / "holes.csv")
    whole, holes = (Source((str(tmp_path / name),)) for name in ("whole.csv", "holes.csv"))
    recipe = Recipe.of(param="map", structure=structure, missing_policy="marginalize")
    model, output = str(tmp_path / "m.bnc"), str(tmp_path / "out.csv")
    write_model(model, learn(read_columns(holes), recipe).model)
    ratios = cpu_ratios(
        lambda: score(model, whole, output=ScoreOutput(output)),
        {"holes": lambda: score(model, holes, output=ScoreOutput(output))},
        repeats=9,
    )
    record(f"score, adult {structure}, a quarter of the values missing", ratios["holes"], "x without holes", 2.0)


@pytest.mark.parametrize(("structure", "n_labels"), [("nb", 2), ("tan", 2), ("nb", 3), ("tan", 3)])
def test_sufficient_reasons(tmp_path: Path, structure: str, n_labels: int, record: Recorder) -> None:
    """Smallest sets of values that fix the decision: rows of a random tree of 30 attributes with 3 values each."""
    data, few, model = str(tmp_path / "data.csv"), str(tmp_path / "few.csv"), str(tmp_path / "m.bnc")
    command = f"simulate --network tan --attributes 30 --classes {n_labels} --rows 20000 --seed 1 -q -o {data}"
    subprocess.run([sys.executable, "-m", "bncli", *command.split()], check=True)
    write_model(model, learn(read_columns(Source((data,))), Recipe.of(structure=structure)).model)
    n_rows = 2_000
    with open(data) as lines:
        Path(few).write_text("".join(itertools.islice(lines, n_rows + 1)))
    output = ScoreOutput(str(tmp_path / "out.csv"), questions=WhatIfQuestions(because=1.0))
    began = time.process_time()
    score(model, Source((few,)), output=output)
    spent = (time.process_time() - began) / n_rows
    what = f"score --because, 30 columns, {structure}, {n_labels} classes"
    missed = ""
    if (structure, n_labels) == ("tan", 3):
        missed = "a row needs about a hundred nodes of branch and bound; bounds for all labels together cost more"
    detail = f"{1 / spent:,.0f} rows per second of CPU time"
    record(what, 1e3 * spent, "milliseconds per row", 1.0, detail=detail, missed=missed)


CHILD = """
import sys
from pathlib import Path
from bncli.files.reading.source import Source
from bncli.steps.score import ScoreOutput, score
from tests.performance.conftest import Recorder
from bncli.watch import Run
rows = score(sys.argv[1], Source(("-",)), ScoreOutput("/dev/null"), run=Run(2)).rows
status = Path("/proc/self/status").read_text()  # not getrusage: its peak counts the process that forked this one
print(rows, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_memory_does_not_grow_with_the_rows(folder: Path, record: Recorder) -> None:
    header, rows = (folder / "data.csv").read_bytes().split(b"\n", 1)
    peaks = []
    for n_rows in (1_000_000, 10_000_000):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder / "m.bnc")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(header + b"\n")
            for _ in range(n_rows // N_ROWS):
                child.stdin.write(rows)
            child.stdin.close()
            scored, megabytes = map(int, child.stdout.read().split())
        assert scored == n_rows
        peaks.append(megabytes)
    record("peak memory, 10,000,000 rows", peaks[1], "MB", 400)
    record("peak memory, 10,000,000 rows", peaks[1] / peaks[0], "x that of 1,000,000 rows", 1.1)
