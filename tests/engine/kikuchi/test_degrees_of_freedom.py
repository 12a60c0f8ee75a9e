"""What sets add to degrees of freedom against the paper's sums over an explicit region graph."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi import search_trace as degrees_of_freedom
from bncli.engine.kikuchi.candidate_gains import Candidates, all_sets
from bncli.engine.kikuchi.search_trace import DegreesOfFreedom, GrowingModel
from bncli.engine.structures.region_graph import cover
from tests import kikuchi_oracle
from tests.datasets import dataset_of, random_dataset
from tests.strategies import datasets

KINDS = ("conditional", "joint", "structural-zeros")
Region = tuple[int, ...]


@given(datasets(max_attributes=4), st.sampled_from(KINDS), st.data())
def test_every_way_to_add_up_is_that_of_the_region_graph(data: Dataset, kind: str, draw: st.DataObject) -> None:
    members = st.lists(st.integers(0, len(data.codes) - 1), min_size=1, unique=True).map(sorted).map(tuple)
    regions: list[Region] = draw.draw(st.lists(members, max_size=5))
    rule, covered = DegreesOfFreedom(data, kind), {()}
    size = draw.draw(st.integers(1, len(data.codes)))
    sets = all_sets(range(len(data.codes)), size)
    candidates = Candidates(sets, rule.of_subsets(sets))
    total = rule.added([()])
    for region in regions:
        new = cover(covered, region)
        candidates.cover(new)
        total += rule.added(new)
    assert _at_least_the_class(total, data) == kikuchi_oracle.degrees_of_kind(data, regions, kind)
    for members_of, added in zip(map(tuple, sets.tolist()), candidates.added_df(), strict=True):
        expected = kikuchi_oracle.degrees_of_kind(data, [*regions, members_of], kind)
        assert _at_least_the_class(total + added, data) == expected


def _at_least_the_class(df: float, data: Dataset) -> float:
    return max(df, data.n_labels - 1)


def test_the_example_of_a_table_with_a_hole() -> None:
    """Two values, two classes; the second value never meets the second class: 3 cells with the class, 2 without."""
    data = dataset_of([np.array([0, 0, 1, 1])], np.array([0, 1, 0, 0]), (2,), 2)
    found = [GrowingModel(Counts(data), 1.0, degrees_of_freedom=kind) for kind in KINDS]
    for growing in found:
        growing.add((0,))
    assert [growing.df for growing in found] == [[1, 2], [1, 3], [1, 1]]


def test_a_copy_costs_nothing_with_structural_zeros() -> None:
    one = random_dataset(200, (3,), 2, seed=1)
    data = dataset_of([one.codes[0]] * 2, one.labels, (3, 3), 2)
    growing = GrowingModel(Counts(data), 1.0, degrees_of_freedom="structural-zeros")
    growing.add((0,))
    growing.add((0, 1))
    assert growing.df == [1, 3, 3]


def test_cycles_take_no_model_below_the_class_alone() -> None:
    one = random_dataset(200, (3,), 2, seed=1)
    data = dataset_of([one.codes[0]] * 4, one.labels, (3,) * 4, 2)
    growing = GrowingModel(Counts(data), 1.0, degrees_of_freedom="structural-zeros")
    for pair in all_sets(range(4), 2).tolist():
        growing.add(tuple(pair))
    assert sum(growing.rule.added(covered) for covered in ([()], [s for s in growing.covered if s])) < 1
    assert min(growing.df) == growing.df[-1] == 1
    assert growing.log_priors(np.array([-1.0])).tolist() == growing.log_priors(np.array([-9.0])).tolist()


def test_weights_and_threads_and_sorting_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(300, (3, 4, 2, 5), 3, seed=2)
    sets = all_sets(range(4), 3)
    expected = DegreesOfFreedom(data, "structural-zeros").of_subsets(sets)
    monkeypatch.setattr(degrees_of_freedom, "DENSE", 0)
    monkeypatch.setattr(degrees_of_freedom, "TOGETHER", 2)
    weighted = replace(data, weights=np.full(300, 0.5), threads=2)
    np.testing.assert_array_equal(DegreesOfFreedom(weighted, "structural-zeros").of_subsets(sets), expected)


@pytest.mark.usefixtures("small_blocks")
def test_cells_of_all_row_blocks_are_joined() -> None:
    data = random_dataset(4_000, (40, 30), 3, seed=2)
    rows = {tuple(map(int, row)) for row in zip(*data.codes, data.labels, strict=True)}
    expected = len(rows) - len({row[:2] for row in rows})
    rule = DegreesOfFreedom(data, "structural-zeros")
    assert rule.added([(), (0,), (1,), (0, 1)]) == expected


def test_giants_have_infinitely_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(degrees_of_freedom, "MAX_ENTRIES", 20)
    rule = DegreesOfFreedom(random_dataset(50, (3, 4), 2), "structural-zeros")
    pair = rule.of_subsets(np.array([[0, 1]]))[0]
    assert pair[3] == math.inf
    assert np.isfinite(pair[:3]).all()


def test_a_giant_in_a_giant_adds_infinitely_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of four subsets of the triple are too large to be counted; nothing is said of invalid numbers."""
    monkeypatch.setattr(degrees_of_freedom, "MAX_ENTRIES", 8)
    rule = DegreesOfFreedom(random_dataset(50, (3, 3, 3), 2, seed=1), "structural-zeros")
    added = rule.of_subsets(np.array([[0, 1, 2]]))[0]
    assert np.isfinite(added[[1, 2, 4]]).all()
    assert added[[3, 5, 6, 7]].tolist() == [math.inf] * 4
