"""Growing through samples of the rows.

Discriminative TAN of simulated rows x 30, penalty 1, to the default tolerance, beside the same on all rows from the
first pass on; the work is in passes over all rows, evaluations and products, those on samples by their share. And the
default line, `fit --structure tan --param weighted`, its search for a penalty included, beside LightGBM's 100 trees on
the same columns as numbers; one thread each.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Optimum
from bncli.engine.parameter_learners import discriminative
from bncli.engine.structure_learners import tan
from bncli.engine.training.nested_samples import Growth
from bncli.engine.training.optimization import OptimizerSettings, find_optimum
from tests.performance.conftest import Recorder
from tests.performance.measure import run
from tests.performance.objectives import SMOOTHING
from tests.performance.workloads import VALUES, simulated

pytestmark = pytest.mark.performance

ROWS = 1_000_000
TABLES: dict[str, tuple[tuple[int, ...], int]] = {"mixed, K = 5": (VALUES, 5), "18 values, K = 2": ((18,) * 30, 2)}
MISSED = {"18 values, K = 2": "10,000 free parameters: a sixth of the rows is the least sample whose curvature serves"}
LIGHTGBM = """
import sys, numpy, lightgbm
rows = numpy.load(sys.argv[1])
lightgbm.LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1).fit(rows[:, :-1], rows[:, -1])
"""


@pytest.mark.parametrize("table", TABLES)
def test_passes_beside_those_of_all_rows(table: str, record: Recorder) -> None:
    data = simulated(ROWS, *TABLES[table])
    counts = Counts(data)
    space = discriminative.space(counts, tan.learn(counts), smoothing=SMOOTHING)
    settings = OptimizerSettings("zero", 1.0, 0.0, "newton", 1e-10, 500)
    found: dict[str, tuple[Optimum, float]] = {}
    for name, how in (("all", settings), ("grown", replace(settings, growth=Growth()))):
        began = process_time()
        found[name] = find_optimum(space, how, lambda step, p: None), process_time() - began
    (whole, before), (grown, after) = found["all"], found["grown"]
    assert grown.value == pytest.approx(whole.value, rel=1e-9)
    what = f"{ROWS:,} rows, {table}, {space.coordinates.n_parameters:,} parameters"
    passes = [one.evaluations + one.products for one in (grown, whole)]
    detail = f"{passes[0]} passes, {passes[1]}; CPU {after:.1f} s, {before:.1f} s"
    record(what, passes[0] / passes[1], "x the passes of all rows", 0.25, detail, missed=MISSED.get(table, ""))
    record(f"{what}: preconditioners included", after / before, "x its CPU time", None, detail)


@pytest.mark.parametrize("table", TABLES)
def test_the_default_line_beside_lightgbm(table: str, tmp_path: Path, record: Recorder) -> None:
    pytest.importorskip("lightgbm")
    data = simulated(ROWS, *TABLES[table])
    rows = np.column_stack([*data.codes, data.labels]).astype(np.uint8)
    np.save(tmp_path / "rows.npy", rows)
    columns: dict[str, Any] = {f"a{i}": words(column) for i, column in enumerate(rows.T)}
    columns["class"] = columns.pop("a30")
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    fit = [sys.executable, "-m", "bncli", "fit", str(tmp_path / "rows.parquet"), "--class", "class", "--threads", "1"]
    line = ["--structure", "tan", "--param", "weighted", "--quiet", "-o", str(tmp_path / "m.bnc")]
    theirs = [sys.executable, "-c", LIGHTGBM, str(tmp_path / "rows.npy")]
    own, peer = run([*fit, *line]).cpu, run(theirs).cpu
    detail = f"own {own:.1f} s, LightGBM {peer:.1f} s"
    record(f"the default line, {ROWS:,} rows, {table}, beside LightGBM", own / peer, "x its CPU time", 1.0, detail)


def words(codes: Any) -> Any:
    """A column of words, as a dictionary."""
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int8)), [f"v{j:02d}" for j in range(codes.max() + 1)]
    )
