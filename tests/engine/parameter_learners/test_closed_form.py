"""Compare parameters in closed form with published figures and slow sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import StoppedBy
from bncli.engine.parameter_learners.closed_form import learn_acll, learn_acll_uniform, learn_map
from bncli.engine.parameters.generative import acll_tables, generative_tables
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.engine.structures.test_scores import beta_of
from tests.strategies import dags, datasets


@given(datasets(max_rows=30), st.data(), st.sampled_from(["mle", "m-estimate:1", "fgg:5"]))
def test_the_generative_tables_and_their_likelihood(data: Dataset, draw: st.DataObject, rule: str) -> None:
    dag = draw.draw(dags(len(data.codes)))
    learnt = learn_map(Counts(data), dag, smoothing=rule)
    tables = generative_tables(Counts(data), dag, rule)
    assert learnt.stopped_by is StoppedBy.CLOSED_FORM
    assert learnt.n_parameters == tables.bias.size + sum(w.size for w in tables.weights)
    np.testing.assert_array_equal(learnt.tables.bias, tables.bias)
    for ours, theirs in zip(learnt.tables.weights, tables.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    cells = np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)
    slow, _ = oracles.conditional_log_likelihood(tables.families, data, cells)
    assert learnt.cll == learnt.cll_start == pytest.approx(slow, rel=1e-10, abs=1e-10)


DAG = Dag(((), (0,), (1,)), (0, 1, 2))


@pytest.mark.parametrize(("n_labels", "weighted"), [(2, False), (3, True), (5, False)])
def test_the_tables(n_labels: int, weighted: bool) -> None:
    data = random_dataset(80, (2, 3, 2), n_labels, weighted=weighted)
    n = 80.0 if data.weights is None else float(data.weights.sum())
    learnt = learn_acll(Counts(data), DAG, pseudo_counts=2.0)
    expected = acll_tables(Counts(data), DAG, np.asarray(beta_of(n_labels, n)), 2.0)
    for ours, theirs in zip(learnt.tables.weights, expected.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_the_order_of_rows_does_not_matter() -> None:
    data = random_dataset(80, (2, 3, 2), 3)
    order = np.random.default_rng(0).permutation(80)
    shuffled = dataset_of([c[order] for c in data.codes], data.labels[order], (2, 3, 2), 3)
    ours, theirs = (learn_acll(Counts(d), DAG, pseudo_counts=5.0).tables for d in (data, shuffled))
    for a, b in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n_rows", [20, 90])
def test_the_tables_acll_uniform(n_rows: int) -> None:
    data, dag = random_dataset(n_rows, (2, 3, 2), 2), Dag(((), (0,), (1,)), (0, 1, 2))
    learnt = learn_acll_uniform(Counts(data), dag, pseudo_counts=2.0)
    expected = acll_tables(Counts(data), dag, np.asarray((18 - math.pi**2) / 24), 2.0)
    for ours, theirs in zip(learnt.tables.weights, expected.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
