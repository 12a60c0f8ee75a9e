"""Groupings: as many groups as asked for, from the frequencies alone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.structures.binning import coarse, grouping_of, groupings_of
from tests.strategies import attributes


def numeric(*frequencies: float, missing: bool = False) -> NumericAttribute:
    n_cuts = len(frequencies) - missing - 1
    return NumericAttribute("x", missing, frequencies, tuple(float(c) for c in range(n_cuts)))


def test_equal_intervals_are_shared_out_evenly() -> None:
    assert grouping_of(numeric(*[5.0] * 8), 4) == (0, 0, 1, 1, 2, 2, 3, 3)


def test_a_missing_level_stays_apart_whatever_it_weighs() -> None:
    assert grouping_of(numeric(1, 1, 1, 1, 50, missing=True), 2) == (0, 0, 1, 1, 2)
    assert grouping_of(numeric(1, 1, 1, 1, 0, missing=True), 2) == (0, 0, 1, 1, 2)


def test_a_heavy_interval_stays_apart() -> None:
    assert grouping_of(numeric(1, 1, 1, 1, 40, 1, 1), 4) == (0, 0, 1, 1, 2, 3, 3)
    assert grouping_of(numeric(40, 1, 1, 1, 1, 1, 1), 3) == (0, 1, 1, 1, 2, 2, 2)


def test_there_are_never_more_groups_than_asked_for() -> None:
    """Three heavy intervals leave four stretches beside: the lightest neighbours join."""
    assert grouping_of(numeric(1, 30, 2, 31, 3, 32, 1), 4) == (0, 0, 0, 1, 2, 3, 3)
    assert grouping_of(numeric(*range(9)), 1) == (0,) * 9


def test_intervals_that_nothing_fell_into() -> None:
    assert grouping_of(numeric(0, 0, 0, 0), 2) == (0, 1, 1, 1)
    found = grouping_of(numeric(0, 9, 0, 0, 9, 0, 9), 3)
    assert found is not None
    assert len({found[1], found[4], found[6]}) == 3


def test_nothing_to_join() -> None:
    assert grouping_of(numeric(1, 2, 3), 3) is None
    assert grouping_of(numeric(1, 2, 3, missing=True), 2) is None
    assert grouping_of(numeric(4), 1) is None
    assert grouping_of(CategoricalAttribute("c", False, (1.0,) * 5, tuple("abcde")), 2) is None


def test_groupings_by_size_of_region() -> None:
    members = (numeric(*[1] * 4), CategoricalAttribute("c", False, (1.0, 1.0), ("a", "b")))
    assert groupings_of(members, ()) == ()
    assert groupings_of(members, (None, 2)) == ((None, None), ((0, 0, 1, 1), None))


@given(st.lists(st.integers(0, 30).map(float), min_size=2, max_size=40), st.integers(1, 12), st.booleans())
def test_laws(frequencies: list[float], bins: int, missing: bool) -> None:
    attribute = numeric(*frequencies, missing=missing)
    grouping = grouping_of(attribute, bins)
    if grouping is None:
        assert attribute.n_values <= bins
        return
    values = grouping[: attribute.n_values]
    assert len(grouping) == attribute.cardinality
    assert values[0] == 0
    assert all(b - a in (0, 1) for a, b in itertools.pairwise(values))
    assert values[-1] < bins
    if missing:
        assert grouping[-1] == values[-1] + 1
    seen = coarse(attribute, grouping)
    assert grouping_of(seen, bins) is None, "merging again changes nothing"


@given(attributes("a", max_values=6), st.data())
def test_a_coarse_attribute_has_the_weight_of_its_parts(attribute: Attribute, data: st.DataObject) -> None:
    n_groups = data.draw(st.integers(1, attribute.n_values))
    grouping = tuple(min(code, n_groups - 1) for code in range(attribute.n_values)) + (n_groups,) * attribute.missing
    seen = coarse(attribute, grouping)
    assert seen.cardinality == n_groups + attribute.missing == len(seen.frequencies)
    assert (seen.name, seen.missing, seen.missing_weight) == (
        attribute.name,
        attribute.missing,
        attribute.missing_weight,
    )
    for code, weight in enumerate(seen.frequencies):
        assert weight == sum(w for w, c in zip(attribute.frequencies, grouping, strict=True) if c == code)


def test_the_cuts_that_remain_and_the_names_of_joined_levels() -> None:
    attribute = NumericAttribute("x", True, (1.0, 2.0, 3.0, 4.0, 5.0), (0.5, 1.5, 2.5))
    assert coarse(attribute, (0, 0, 1, 1, 2)) == NumericAttribute("x", True, (3.0, 7.0, 5.0), (1.5,))
    levels = CategoricalAttribute("c", True, (1.0, 2.0, 3.0, 4.0), ("p", "q", "r"), missing_weight=2.0)
    assert coarse(levels, (0, 1, 0, 2)) == CategoricalAttribute(
        "c", True, (4.0, 2.0, 4.0), ("p | r", "q"), missing_weight=2.0
    )


@pytest.mark.parametrize("bins", [2, 3, 5, 8])
def test_skewed_columns_keep_their_resolution(bins: int) -> None:
    """Two thirds zeros: the zero alone, the rest in groups of equal weight."""
    grouping = grouping_of(numeric(60, *[1.0] * 30), bins)
    assert grouping is not None
    assert grouping[:2] == (0, 1)
    assert max(grouping) == bins - 1
    sizes = [grouping.count(group) for group in range(1, bins)]
    assert max(sizes) - min(sizes) <= 1
