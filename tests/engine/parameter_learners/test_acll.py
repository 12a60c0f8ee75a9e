"""The right constant, from the number of rows or their weight."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners import acll
from bncli.engine.parameters.generative import acll_tables
from bncli.engine.structures.structure import Dag
from tests.datasets import dataset_of, random_dataset
from tests.engine.structures.test_scores import beta_of

DAG = Dag(((), (0,), (1,)), (0, 1, 2))


@pytest.mark.parametrize(("n_labels", "weighted"), [(2, False), (3, True), (5, False)])
def test_the_tables(n_labels: int, weighted: bool) -> None:
    data = random_dataset(80, (2, 3, 2), n_labels, weighted=weighted)
    n = 80.0 if data.weights is None else float(data.weights.sum())
    learnt = acll.learn(Counts(data), DAG, pseudo_counts=2.0)
    expected = acll_tables(Counts(data), DAG, np.asarray(beta_of(n_labels, n)), 2.0)
    for ours, theirs in zip(learnt.tables.weights, expected.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_the_order_of_rows_does_not_matter() -> None:
    data = random_dataset(80, (2, 3, 2), 3)
    order = np.random.default_rng(0).permutation(80)
    shuffled = dataset_of([c[order] for c in data.codes], data.labels[order], (2, 3, 2), 3)
    ours, theirs = (acll.learn(Counts(d), DAG, pseudo_counts=5.0).tables for d in (data, shuffled))
    for a, b in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(a, b)
