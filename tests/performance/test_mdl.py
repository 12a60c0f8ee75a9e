"""MDL cuts of a million distinct values, five classes.

Beside numpy's sort of the same column.
"""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.discretizers.mdl import cut_points
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate

pytestmark = pytest.mark.performance

N_ROWS = 1_000_000


@pytest.mark.parametrize(
    ("what", "n_cuts", "at_most"), [("unrelated to the class", 0, 5), ("shifted by class", 10, 15), ("waves", 100, 15)]
)
def test_beside_a_sort(what: str, n_cuts: int, at_most: float, record: Recorder) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, N_ROWS).astype(np.uint8)
    values = rng.normal(size=N_ROWS)
    if what == "shifted by class":
        values += 0.7 * labels
    elif what == "waves":
        values = rng.random(N_ROWS)
        labels = (2.5 * (1 + np.sin(40 * values) + rng.normal(0, 0.3, N_ROWS))).clip(0, 4).astype(np.uint8)
    found = len(cut_points(values, labels, 5, None))
    assert (found == 0) == (n_cuts == 0)
    assert found >= n_cuts
    times = alternate({"mdl": lambda: cut_points(values, labels, 5, None), "sort": lambda: np.sort(values)}, repeats=3)
    mdl, sort = times["mdl"].cpu, times["sort"].cpu
    missed = "hundreds of short intervals: every row is evaluated once per level" if what == "waves" else ""
    detail = f"cuts {mdl:.2f} s, sort {sort:.3f} s"
    record(f"{what}, {found} cuts", mdl / sort, "x the sort", at_most, detail, missed)
