"""The bare line with many labels.

Beside LightGBM with 20 trees; with 1,000 labels, 30 seconds and 1 GB are the limits. Tables are made: 20,000 rows, 10
numeric columns whose mean depends on the label and 10 text columns whose frequencies do, so that half the rows are
predicted with 1,000 labels. One thread.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tests.performance.conftest import Recorder
from tests.performance.measure import run

pytestmark = pytest.mark.performance

ROWS, COLUMNS = 20_000, 10
LIGHTGBM = """
import sys, numpy, lightgbm
rows = numpy.load(sys.argv[1])
lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1).fit(rows[:, :-1], rows[:, -1])
"""


def written(n_labels: int, folder: Path) -> list[str]:
    """Write a table as CSV and as numbers; return the command that fits it."""
    rng = np.random.default_rng(n_labels)
    labels = rng.integers(0, n_labels, ROWS)
    numbers = [np.round(rng.normal(0, 1.5, n_labels)[labels] + rng.normal(0, 1, ROWS), 3) for _ in range(COLUMNS)]
    codes = []
    for _ in range(COLUMNS):
        n_levels = int(rng.integers(4, 13))
        cumulative = rng.dirichlet(np.full(n_levels, 0.7), n_labels).cumsum(axis=1)[labels]
        codes.append(np.minimum((rng.random((ROWS, 1)) > cumulative).sum(axis=1), n_levels - 1))
    np.save(folder / "rows.npy", np.column_stack([*numbers, *codes, labels]))
    columns = {f"x{i}": pa.array(own) for i, own in enumerate(numbers)}
    columns |= {f"c{i}": pa.array([f"v{code}" for code in own]) for i, own in enumerate(codes)}
    columns["label"] = pa.array([f"L{label:04d}" for label in labels])
    pyarrow.csv.write_csv(pa.table(columns), folder / "rows.csv")
    fit = [sys.executable, "-m", "bncli", "fit", str(folder / "rows.csv"), "--threads", "1", "--quiet"]
    return [*fit, "-o", str(folder / "m.bnc")]


def test_a_hundred_labels_beside_lightgbm(tmp_path: Path, record: Recorder) -> None:
    pytest.importorskip("lightgbm")
    own = run(written(100, tmp_path)).cpu
    peer = run([sys.executable, "-c", LIGHTGBM, str(tmp_path / "rows.npy")]).cpu
    what = f"the bare line, {ROWS:,} rows x {2 * COLUMNS}, 100 labels, beside 20 trees of LightGBM"
    record(what, own / peer, "x its CPU time", 1.0, f"own {own:.1f} s, LightGBM {peer:.1f} s")


def test_a_thousand_labels(tmp_path: Path, record: Recorder) -> None:
    found = run(written(1_000, tmp_path))
    what = f"the bare line, {ROWS:,} rows x {2 * COLUMNS}, 1,000 labels"
    record(f"{what}: memory", found.peak_mb, "MB", 1_000)
    record(f"{what}: seconds", found.cpu, "s", 30)
