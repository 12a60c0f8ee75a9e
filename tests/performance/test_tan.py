"""Generative TAN from codes: tree, tables and the likelihood of the rows.

Beside a plain C loop that counts the tables of all pairs and does nothing else. The limits in seconds are what R's
bnlearn (tree.bayes and bn.fit, in C) took for tables of these sizes on another machine; it is not run here.
"""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameter_learners.closed_form import learn_map
from bncli.engine.structure_learners import tan
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.workloads import real, simulated
from tests.performance.yardsticks import c_pairs

pytestmark = pytest.mark.performance

CASES = [
    ("letter, 20,000 rows x 16", 0.20, 16.0),
    ("100,000 rows x 30 x 5 values", 0.33, 4.0),
    ("800,000 rows x 30 x 5 values", 1.75, 3.0),
]


@pytest.mark.parametrize(("what", "seconds", "at_most"), CASES)
def test_beside_a_loop_in_c(what: str, seconds: float, at_most: float, record: Recorder) -> None:
    data = (
        real("letter") if what.startswith("letter") else simulated(int(what.split()[0].replace(",", "")), (5,) * 30, 2)
    )
    in_c = c_pairs(data)
    agree(data, in_c())
    times = alternate({"tree": lambda: tan.learn(Counts(data)), "fit": lambda: fit(data), "c": in_c}, repeats=5)
    detail = f"fit {times['fit'].cpu:.3f} s, of it the tree {times['tree'].cpu:.3f} s, C {times['c'].cpu:.3f} s"
    record(what, times["fit"].cpu / times["c"].cpu, "x the counting in C", at_most, detail)
    record(f"{what}: seconds", times["fit"].cpu, "s", seconds)


def fit(data: Dataset) -> None:
    counts = Counts(data)
    learn_map(counts, tan.learn(counts), smoothing="m-estimate:1")


def agree(data: Dataset, flat: np.ndarray) -> None:
    """The product's tables are those of the loop."""
    start = 0
    by_pair: dict[tuple[int, int], np.ndarray] = {}
    for i, j, tables in Counts(data).pair_batches(data.schema.informative):
        by_pair.update(zip(zip(i.tolist(), j.tolist(), strict=True), tables, strict=True))
    for i, c in enumerate(data.schema.cardinalities):
        for j, d in list(enumerate(data.schema.cardinalities))[i + 1 :]:
            size = c * data.n_labels * d
            table = flat[start : start + size].reshape(c, data.n_labels, d).transpose(0, 2, 1)
            if (i, j) in by_pair:
                np.testing.assert_array_equal(by_pair[i, j], table)
            if (j, i) in by_pair:
                np.testing.assert_array_equal(by_pair[j, i], table.transpose(1, 0, 2))
            start += size
