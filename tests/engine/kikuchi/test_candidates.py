"""Flags of coverage against the region graph; which candidates there are, and which are kept of too many."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kikuchi.candidate_gains import Candidates, all_sets, strongest_sets
from bncli.engine.kikuchi.search_trace import DegreesOfFreedom
from bncli.engine.structures.region_graph import counting_changes, cover
from tests.datasets import random_dataset

N = 5
REGIONS = st.lists(st.lists(st.integers(0, N - 1), min_size=1, unique=True).map(sorted).map(tuple), max_size=6)


@given(REGIONS, st.integers(1, N), st.lists(st.integers(2, 4), min_size=N, max_size=N), st.integers(2, 3))
def test_what_a_step_needs_of_every_candidate(
    regions: list[tuple[int, ...]], size: int, cardinalities: list[int], n_labels: int
) -> None:
    sets = all_sets(range(N), size)
    candidates = Candidates(sets, DegreesOfFreedom(random_dataset(3, cardinalities, n_labels)).of_subsets(sets))
    covered: set[tuple[int, ...]] = {()}
    for region in regions:
        candidates.cover(cover(covered, region))
    changes = candidates.changes(np.arange(len(candidates.sets)))
    for place, members in enumerate(map(tuple, candidates.sets.tolist())):
        new = cover(set(covered), members)
        assert candidates.present[place] == (members in covered)
        assert candidates.added_df()[place] == (n_labels - 1) * sum(
            math.prod(cardinalities[i] - 1 for i in s) for s in new
        )
        assert _named(changes[place], members) == counting_changes(new)


def _named(changes: np.ndarray, members: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    subsets = (tuple(i for p, i in enumerate(members) if subset >> p & 1) for subset in range(len(changes)))
    return {region: int(change) for region, change in zip(subsets, changes, strict=True) if change}


def test_cover_tells_whom_it_touches() -> None:
    candidates = Candidates(all_sets(range(4), 2), np.ones((6, 4)))
    assert candidates.sets[candidates.cover([(1, 3)])].tolist() == [[1, 3]]
    assert candidates.sets[candidates.cover([(0,)])].tolist() == [[0, 1], [0, 2], [0, 3]]
    assert len(candidates.cover([(), (1, 2, 3)])) == 0


@given(st.integers(0, 6), st.integers(1, 4))
def test_all_members_in_order(n: int, size: int) -> None:
    expected = list(itertools.combinations(range(n), size))
    assert list(map(tuple, all_sets(range(n), size).tolist())) == expected


@given(st.permutations(range(6)), st.integers(1, 4), st.integers(1, 20))
def test_the_strongest_members(ranked: list[int], size: int, most: int) -> None:
    places = sorted(itertools.combinations(range(6), size), key=lambda places: places[::-1])
    expected = sorted(tuple(sorted(ranked[p] for p in chosen)) for chosen in places[:most])
    found = strongest_sets(ranked, size, most)
    assert list(map(tuple, found.tolist())) == expected
    assert len(found) == min(most, math.comb(6, size))


def test_fewer_attributes_than_a_set_has_members_make_none() -> None:
    assert strongest_sets([3], 2, 5).shape == (0, 2)
