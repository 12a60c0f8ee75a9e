"""What tree learners order by, against loops over tables that were counted by loops over rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners.arc_scores import conditional_dependence, relevance
from bncli.watch import Event, Progress
from tests import oracles
from tests.datasets import random_dataset
from tests.missing_values import complete_rows, with_missing
from tests.strategies import datasets


@given(datasets())
def test_equals_the_slow_definitions(data: Dataset) -> None:
    n = len(data.codes)
    expected = [oracles.mutual_information(oracles.count(data, (i,))) for i in range(n)]
    np.testing.assert_allclose(relevance(Counts(data)), expected, rtol=1e-10, atol=1e-12)
    dependence = conditional_dependence(Counts(data))
    np.testing.assert_array_equal(dependence, dependence.T)
    np.testing.assert_array_equal(np.diag(dependence), 0.0)
    for i, j in itertools.combinations(range(n), 2):
        slow = oracles.conditional_mutual_information(oracles.count(data, (i, j)))
        assert dependence[i, j] == pytest.approx(slow, rel=1e-10, abs=1e-12)


def test_uninformative_attributes_have_no_dependence() -> None:
    data = random_dataset(40, (3, 1, 2, 1), 2)
    assert relevance(Counts(data))[[1, 3]].tolist() == [0.0, 0.0]
    assert not conditional_dependence(Counts(data))[[1, 3]].any()


def test_no_attributes_and_no_rows() -> None:
    assert relevance(Counts(random_dataset(5, (), 2))).shape == (0,)
    assert not conditional_dependence(Counts(random_dataset(0, (2, 3), 2))).any()


def test_progress_is_told() -> None:
    events: list[Event] = []
    conditional_dependence(Counts(random_dataset(20, (2,) * 13, 2)), events.append)
    told = [e for e in events if isinstance(e, Progress)]
    assert [e.done for e in told] == sorted({e.done for e in told})
    assert told[0].done == 0
    assert all(e.done < e.total == 78 for e in told if e.total)
    assert all(e.total == 78 for e in events if isinstance(e, Progress))


@given(datasets(), st.sampled_from([0.3, 1.0]))
def test_missing_values_leave_the_rows_that_have_the_attribute_or_the_pair(data: Dataset, share: float) -> None:
    incomplete = with_missing(data, share)
    n = len(data.codes)
    alone = [oracles.count(complete_rows(incomplete, {i}), (i,)) for i in range(n)]
    expected = [oracles.mutual_information(table) for table in alone]
    np.testing.assert_allclose(relevance(Counts(incomplete)), expected, rtol=1e-10, atol=1e-12)
    dependence = conditional_dependence(Counts(incomplete))
    for i, j in itertools.combinations(range(n), 2):
        table = oracles.count(complete_rows(incomplete, {i, j}), (i, j))
        assert dependence[i, j] == pytest.approx(oracles.conditional_mutual_information(table), rel=1e-10, abs=1e-12)
