"""Boosted oblivious trees beside the same number of trees of scikit-learn, and beside the counts that they need.

One member of a bag: ROWS rows of numeric attributes, standard normal, the class after a sum of products; TREES trees.
HistGradientBoostingClassifier has 255 bins and at most 31 leaves, and grows a tree a class; both grow on all its rows
but that ours look at seven in ten of them. The floor are the weighted counts of a tree's six levels alone, one a
value, from codes and weights that lie ready.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.discretizers import equal_frequency
from bncli.engine.ensembles.boosted_trees import SHARE, Settings, boost
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate

pytestmark = pytest.mark.performance

ROWS, ATTRIBUTES, TREES = 20_000, 20, 40


def rows(n_labels: int) -> tuple[NDArray[np.float64], NDArray[np.int8], Dataset]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, ATTRIBUTES))
    signal = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) - x[:, 3] * x[:, 4] + generator.normal(size=ROWS)
    labels = np.digitize(signal, np.quantile(signal, np.arange(1, n_labels) / n_labels)).astype(np.int8)
    columns = Columns(
        ROWS,
        {f"x{i}": NumericColumn(column) for i, column in enumerate(x.T)},
        "class",
        CategoricalColumn(labels, tuple(f"c{y}" for y in range(n_labels))),
    )
    return x, labels, learn_dataset(columns, discretize=partial(equal_frequency.cut_points, bins=255))


@pytest.mark.parametrize(("n_labels", "at_most"), [(2, 2.0), (7, 1.0)])
def test_a_member_beside_as_many_trees(n_labels: int, at_most: float, record: Recorder) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    x, labels, data = rows(n_labels)
    few = data.take(np.arange(100))
    settings = replace(Settings(), trees=TREES, patience=TREES)

    def own() -> None:
        assert len(boost(data, few, settings, np.random.default_rng(0)).trees) <= TREES

    def theirs() -> None:
        HistGradientBoostingClassifier(max_iter=TREES, early_stopping=False, random_state=0).fit(x, labels)

    times = alternate({"own": own, "theirs": theirs}, 3)
    mine, peer = times["own"].cpu, times["theirs"].cpu
    record(
        f"boosting {TREES} trees, {ROWS:,} rows x {ATTRIBUTES}, {n_labels} classes, beside scikit-learn",
        mine / peer,
        "x its CPU time",
        at_most,
        f"own {1e3 * mine / TREES:.1f} ms a tree, theirs {1e3 * peer / TREES:.1f}",
    )


def test_a_tree_beside_its_counts(record: Recorder) -> None:
    _, _, data = rows(2)
    window = int(SHARE * ROWS)
    places = np.stack([codes[:window] for codes in data.codes]).astype(np.intp)
    places += 256 * np.arange(ATTRIBUTES)[:, np.newaxis]
    weights, flat = np.random.default_rng(0).normal(size=places.size), places.ravel()
    settings = replace(Settings(), trees=TREES, patience=TREES)

    def counts() -> None:
        for level in range(settings.depth):
            np.bincount(flat, weights, (256 * ATTRIBUTES) << level)

    times = alternate(
        {"own": lambda: boost(data, data.take(np.arange(100)), settings, np.random.default_rng(0)), "floor": counts}, 3
    )
    own, floor = times["own"].cpu / TREES, times["floor"].cpu
    record(
        f"a boosted tree of {settings.depth} levels, {ROWS:,} rows x {ATTRIBUTES}, beside its counts",
        own / floor,
        "x the time of its counts",
        5.0,
        f"{1e3 * own:.1f} ms beside {1e3 * floor:.1f}",
    )
