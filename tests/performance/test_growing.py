"""Growing through samples of the rows.

Discriminative TAN of simulated rows x 30, penalty 1, to the default tolerance; the work is in passes over all rows,
evaluations and products, those on samples by their share. The limit is a quarter of what it took on all rows before
there were samples, and before preconditioners knew the directions along which tables change no score; all rows now take
a sixth or less. The CPU time is beside that of all rows from the first pass on. And the
default line, `fit --structure tan --param weighted`, its search for a penalty included, beside LightGBM's 100 trees on
the same columns as numbers, one thread each, and of ten times the rows beside itself. And every real table of more
than 10,000 rows, free and weighted tables of naive Bayes and TAN, penalty 1 and 0.01: no more work than on all rows.
Tables whose rows are too few for samples, or too few for so many parameters, take the very same steps, and are left
out.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Optimum
from bncli.engine.parameter_learners.conditional import build_space_discriminative, build_space_weighted
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum
from bncli.engine.parameters.weighted_samples import Growth
from tests.performance.conftest import Recorder
from tests.performance.measure import run
from tests.performance.objectives import SMOOTHING
from tests.performance.workloads import VALUES, real, simulated, structure

pytestmark = pytest.mark.performance

ROWS = 1_000_000
TABLES: dict[str, tuple[tuple[int, ...], int]] = {"mixed, K = 5": (VALUES, 5), "18 values, K = 2": ((18,) * 30, 2)}
FORMER = {"mixed, K = 5": 350, "18 values, K = 2": 219}
"""Passes that all rows took once."""
REAL = ("adult", "connect_4", "covertype", "letter", "nursery", "shuttle")
LIGHTGBM = """
import sys, numpy, lightgbm
rows = numpy.load(sys.argv[1])
lightgbm.LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1).fit(rows[:, :-1], rows[:, -1])
"""


@pytest.mark.parametrize("table", TABLES)
def test_passes_beside_those_of_all_rows(table: str, record: Recorder) -> None:
    data = simulated(ROWS, *TABLES[table])
    counts = Counts(data)
    space = build_space_discriminative(counts, structure(data, "tan"), smoothing=SMOOTHING)
    (whole, before), (grown, after) = (optimum(space, 1.0, growth) for growth in (None, Growth()))
    assert grown.value == pytest.approx(whole.value, rel=1e-9)
    what = f"{ROWS:,} rows, {table}, {space.coordinates.n_parameters:,} parameters"
    passes = [passes_of(one) for one in (grown, whole)]
    detail = f"all rows from the first pass on: {passes[1]}; once: {FORMER[table]}; CPU {after:.1f} s, {before:.1f} s"
    record(what, passes[0], "passes", FORMER[table] / 4, detail)
    record(f"{what}: preconditioners included", after / before, "x its CPU time", None, detail)


def optimum(space: ParameterSpace, penalty: float, growth: Growth | None) -> tuple[Optimum, float]:
    """The optimum, and the CPU seconds that it took."""
    began = process_time()
    settings = OptimizerSettings("zero", penalty, 0.0, "newton", 1e-10, 500, growth=growth)
    return find_optimum(space, settings, lambda step, p: None), process_time() - began


def passes_of(found: Optimum) -> int:
    return found.evaluations + found.products


@pytest.mark.parametrize("name", REAL)
def test_no_real_table_takes_more_work(name: str, record: Recorder) -> None:
    data = real(name)
    counts = Counts(data)
    work = {}
    for word in ("nb", "tan"):
        dag = structure(data, word)
        free = build_space_discriminative(counts, dag, smoothing=SMOOTHING)
        weights = build_space_weighted(counts, dag, smoothing=SMOOTHING, level=4)
        n_free = free.coordinates.n_parameters * (data.n_labels - 1) // data.n_labels
        if not Growth().sizes(data.n_rows, n_free):
            continue
        for (kind, space), penalty in product({"discriminative": free, "weighted": weights}.items(), (1.0, 0.01)):
            whole, grown = (optimum(space, penalty, growth)[0] for growth in (None, Growth()))
            assert grown.value == pytest.approx(whole.value, rel=1e-9)
            work[f"{word} {kind}, {penalty:g}"] = passes_of(grown), passes_of(whole)
    detail = "; ".join(f"{what}: {grown} passes, {whole}" for what, (grown, whole) in work.items())
    worst = max((grown / whole for grown, whole in work.values()), default=1.0)
    record(f"{name}, {data.n_rows:,} rows, the most", worst, "x the passes of all rows", 1.0, detail or "no samples")


@pytest.mark.parametrize("table", TABLES)
def test_the_default_line_beside_lightgbm(table: str, tmp_path: Path, record: Recorder) -> None:
    pytest.importorskip("lightgbm")
    data = simulated(ROWS, *TABLES[table])
    rows = written(data, tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", rows)
    theirs = [sys.executable, "-c", LIGHTGBM, str(tmp_path / "rows.npy")]
    own, peer = run(default_line(tmp_path / "rows.parquet")).cpu, run(theirs).cpu
    detail = f"own {own:.1f} s, LightGBM {peer:.1f} s"
    what = f"the default line, {ROWS:,} rows, {table}, beside LightGBM"
    record(what, own / peer, "x its CPU time", 1.0, detail)


@pytest.mark.parametrize("table", TABLES)
def test_the_default_line_of_ten_times_the_rows(table: str, tmp_path: Path, record: Recorder) -> None:
    seconds = []
    for n_rows in (ROWS, 10 * ROWS):
        written(simulated(n_rows, *TABLES[table]), tmp_path / "rows.parquet")
        seconds.append(run(default_line(tmp_path / "rows.parquet")).cpu)
    detail = f"{seconds[1]:.1f} s, {seconds[0]:.1f} s"
    what = f"the default line, {10 * ROWS:,} rows, {table}, beside {ROWS:,}"
    record(what, seconds[1] / seconds[0], "x its CPU time", 11.0, detail)


def written(data: Dataset, path: Path) -> Any:
    """Writes the rows as words, the class last; the codes, of shape (rows, columns)."""
    rows = np.column_stack([*data.codes, data.labels]).astype(np.uint8)
    columns: dict[str, Any] = {f"a{i}": words(column) for i, column in enumerate(rows.T)}
    columns["class"] = columns.pop("a30")
    pyarrow.parquet.write_table(pa.table(columns), path)
    return rows


def default_line(path: Path) -> list[str]:
    learning = ["--class", "class", "--structure", "tan", "--param", "weighted"]
    fit = [sys.executable, "-m", "bncli", "fit", str(path), *learning]
    return [*fit, "--threads", "1", "--quiet", "-o", str(path.with_suffix(".bnc"))]


def words(codes: Any) -> Any:
    """A column of words, as a dictionary."""
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int8)), [f"v{j:02d}" for j in range(codes.max() + 1)]
    )
