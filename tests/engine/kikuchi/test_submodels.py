"""Submodels against the definition; what a region adds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi.model_paths import addition, log_submodels
from bncli.engine.structures.region_graph import counting_changes, subsets
from tests import kikuchi_oracle
from tests.strategies import datasets


@given(datasets(), st.sampled_from([0.1, 1.0, 7.0]))
def test_submodels_are_smoothed_frequencies_that_agree(data: Dataset, theta: float) -> None:
    whole = tuple(range(len(data.codes)))
    regions = list(subsets(whole))
    slow = kikuchi_oracle.Slow(data, theta)
    [*found, joint] = log_submodels(Counts(data), [*regions, whole], theta)
    for region, logs in zip(regions, found, strict=True):
        np.testing.assert_allclose(np.exp(logs), slow.submodel(region), rtol=1e-12)
        dropped = tuple(i for i in whole if i not in region)
        np.testing.assert_allclose(np.exp(joint).sum(axis=dropped), np.exp(logs), rtol=1e-9)


@given(datasets(), st.integers(0, 31))
def test_a_region_adds_the_submodels_of_its_subsets(data: Dataset, chosen: int) -> None:
    whole = tuple(range(len(data.codes)))
    covered = [s for k, s in enumerate(subsets(whole)) if chosen >> k & 1]
    changes = counting_changes(covered)
    counts = Counts(data)
    [table] = counts.tables([whole])
    found = addition(table, whole, changes, data.total_weight, 1.0).reshape(table.shape)
    expected = np.zeros(table.shape)
    for region, change in changes.items():
        [logs] = log_submodels(counts, [region], 1.0)
        shape = tuple(n if i in region else 1 for i, n in enumerate(table.shape[:-1]))
        expected += change * logs.reshape(*shape, -1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
