"""Regions inside others against the definition; counting numbers against the region graph built as it is printed."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.structures.region_graph import counting_changes, cover, inside_earlier, maximal
from tests import kikuchi_oracle

REGIONS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(tuple), max_size=8)


@given(REGIONS)
def test_inside_an_earlier_one(regions: list[tuple[int, ...]]) -> None:
    expected = [j for j, b in enumerate(regions) if any(set(b) <= set(a) for a in regions[:j])]
    assert inside_earlier(regions) == expected


@given(REGIONS, st.booleans())
def test_maximal_ones_are_in_no_other(regions: list[tuple[int, ...]], empty: bool) -> None:
    regions = [*([()] if empty else []), *regions]
    found = maximal(regions)
    assert {frozenset(a) for a in found} == {frozenset(a) for a in regions if not any(set(a) < set(b) for b in regions)}
    assert len({frozenset(a) for a in found}) == len(found)
    assert found == sorted(found, key=regions.index)


def test_names_do_as_well_as_numbers() -> None:
    assert maximal([("a",), ("b", "a"), ("a", "b"), ("c",)]) == [("b", "a"), ("c",)]


ASCENDING = REGIONS.map(lambda regions: [tuple(sorted(region)) for region in regions])


@given(ASCENDING)
def test_counting_numbers_of_the_region_graph(regions: list[tuple[int, ...]]) -> None:
    covered: set[tuple[int, ...]] = {()}
    numbers = Counter({frozenset[int](): 1})
    for region in regions:
        for changed, change in counting_changes(cover(covered, region)).items():
            numbers[frozenset(changed)] += change
    assert {r: c for r, c in numbers.items() if c} == kikuchi_oracle.region_graph(regions)


@given(ASCENDING)
def test_a_set_is_covered_if_a_region_contains_it(regions: list[tuple[int, ...]]) -> None:
    covered: set[tuple[int, ...]] = {()}
    for region in regions:
        before = set(covered)
        assert set(cover(covered, region)) == covered - before
    subsets = [s for size in range(6) for s in itertools.combinations(range(5), size)]
    assert covered == {s for s in subsets if not s or any(set(s) <= set(region) for region in regions)}


def test_two_attributes_share_the_class() -> None:
    assert counting_changes(cover({(), (0,)}, (1,))) == {(1,): 1, (): -1}
