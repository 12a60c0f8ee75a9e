"""Regions with cuts of their own: sums against a loop over rows; laws of rows, weights, threads and batches."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.data import dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structure_learners import region_growth as module
from bncli.engine.structure_learners.region_growth import GrownRegion, grow_regions, most_cells
from bncli.engine.structures.structure import Family
from tests.datasets import random_dataset
from tests.effects import mixed_dataset, mixed_datasets
from tests.engine.structure_learners.test_interaction_gains import gains_of, probabilities


def grown(data: Dataset, sets: list[tuple[int, ...]]) -> list[GrownRegion]:
    """Beside single attributes whose tables are anything."""
    families = [Family(s, (data.schema.cardinalities[s[0]],), None) for s in ((i,) for i in data.schema.informative)]
    likelihood = conditional_likelihood(data, families)
    cells = np.random.default_rng(0).normal(size=(data.n_labels, likelihood.n_cells))
    return grow_regions(likelihood, cells, sets, 40)


@given(mixed_datasets())
def test_gains_are_those_of_the_cells_row_by_row(data: Dataset) -> None:
    informative = data.schema.informative
    sets = [tuple(informative[: n + 1]) for n in range(min(3, len(informative)))]
    gains = gains_of(data, [(i,) for i in informative])
    found = grow_regions(gains.likelihood, gains.cells, sets, 40)
    assert [one.gain for one in found] == sorted((one.gain for one in found), reverse=True)
    assert {one.attributes for one in found} == set(sets)
    for one in found:
        sums: dict[tuple[tuple[int, ...], int], list[float]] = {}
        for t in range(data.n_rows):
            codes = [int(data.codes[i][t]) for i in one.attributes]
            cell = tuple(c if m is None else m[c] for c, m in zip(codes, one.groupings, strict=True))
            weight = 1.0 if data.weights is None else float(data.weights[t])
            for y, p in enumerate(probabilities(gains, t)):
                pair = sums.setdefault((cell, y), [0.0, 0.0])
                pair[0] += weight * (float(data.labels[t] == y) - p)
                pair[1] += weight * p * (1 - p)
        assert one.gain == pytest.approx(sum((g * g - h) / (2 * (h + 1.0)) for g, h in sums.values()), abs=1e-9)


def rows(n_rows: int = 600) -> Dataset:
    return mixed_dataset(random_dataset(n_rows, (12, 9, 3, 6), 3), ["numeric", "missing", "categorical", "numeric"])


SETS: list[tuple[int, ...]] = [(0,), (0, 1), (0, 2), (1, 3), (0, 1, 3), (1, 2, 3)]


def test_twice_is_weight_two_and_order_is_nothing() -> None:
    data = rows()
    twice = grown(data.take(np.repeat(np.arange(600), 2)), SETS)
    heavy = grown(replace(data, weights=np.full(600, 2.0)), SETS)
    shuffled = grown(data.take(np.random.default_rng(1).permutation(600)), SETS)
    for one, other in ((twice, heavy), (grown(data, SETS), shuffled)):
        assert [(r.attributes, r.groupings) for r in one] == [(r.attributes, r.groupings) for r in other]
        np.testing.assert_allclose([r.gain for r in one], [r.gain for r in other], rtol=1e-9, atol=1e-9)


def test_threads_and_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 100)
    data = rows()
    found = grown(data, SETS)
    assert grown(replace(data, threads=3), SETS) == found
    monkeypatch.setattr(module, "AT_A_TIME", 1)
    assert grown(data, SETS) == found


def test_groupings_join_neighbours_and_leave_levels_and_the_missing_level_apart() -> None:
    data = rows()
    for one in grown(data, SETS):
        for i, grouping in zip(one.attributes, one.groupings, strict=True):
            attribute = data.schema.attributes[i]
            if grouping is None:
                continue
            assert i != 2
            assert set(np.diff(grouping)) <= {0, 1}
            assert len(grouping) == attribute.cardinality
            assert not attribute.missing or grouping[-1] > grouping[-2]
            assert grouping[attribute.n_values - 1] > 0  # every numeric attribute is cut


def test_a_region_of_many_codes_is_seen_through_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    monkeypatch.setattr(module, "MAX_SUMS", 6 * 9)
    monkeypatch.setattr(module, "FEWEST", 3)
    attributes = tuple(replace(a, frequencies=(600 / a.cardinality,) * a.cardinality) for a in data.schema.attributes)
    coarse = grown(replace(data, schema=replace(data.schema, attributes=attributes)), [(0, 3)])
    assert all(grouping is not None and max(grouping) < 3 for grouping in coarse[0].groupings)


def test_as_many_cells_as_the_rows_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [most_cells(n) for n in (0, 5_000, 50_000)] == [200, 200, 500]
    monkeypatch.setattr(module, "LEAST_CELLS", 6)
    found = grown(rows(), [(0, 3)])[0].groupings
    assert 4 <= math.prod(max(grouping) + 1 for grouping in found if grouping) <= 6
