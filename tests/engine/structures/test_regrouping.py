"""Groupings of attributes, and regrouped attributes as columns of a data set."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.structures.regrouping import (
    group_intervals,
    group_intervals_by_size,
    join_equal_intervals,
    regroup_attribute,
    regroup_codes,
    regrouped_attributes,
    with_regrouped_columns,
)
from bncli.engine.structures.structure import Family
from tests import oracles
from tests.datasets import random_dataset
from tests.strategies import attributes, regrouped_families, schemas


def numeric(*frequencies: float, missing: bool = False) -> NumericAttribute:
    n_cuts = len(frequencies) - missing - 1
    return NumericAttribute("x", missing, frequencies, tuple(float(c) for c in range(n_cuts)))


def test_equal_intervals_are_shared_out_evenly() -> None:
    assert group_intervals(numeric(*[5.0] * 8), 4) == (0, 0, 1, 1, 2, 2, 3, 3)


def test_a_missing_level_stays_apart_whatever_it_weighs() -> None:
    assert group_intervals(numeric(1, 1, 1, 1, 50, missing=True), 2) == (0, 0, 1, 1, 2)
    assert group_intervals(numeric(1, 1, 1, 1, 0, missing=True), 2) == (0, 0, 1, 1, 2)


def test_a_heavy_interval_stays_apart() -> None:
    assert group_intervals(numeric(1, 1, 1, 1, 40, 1, 1), 4) == (0, 0, 1, 1, 2, 3, 3)
    assert group_intervals(numeric(40, 1, 1, 1, 1, 1, 1), 3) == (0, 1, 1, 1, 2, 2, 2)


def test_there_are_never_more_groups_than_asked_for() -> None:
    """Three heavy intervals leave four stretches beside: the lightest neighbours join."""
    assert group_intervals(numeric(1, 30, 2, 31, 3, 32, 1), 4) == (0, 0, 0, 1, 2, 3, 3)
    assert group_intervals(numeric(*range(9)), 1) == (0,) * 9


def test_intervals_that_nothing_fell_into() -> None:
    assert group_intervals(numeric(0, 0, 0, 0), 2) == (0, 1, 1, 1)
    found = group_intervals(numeric(0, 9, 0, 0, 9, 0, 9), 3)
    assert found is not None
    assert len({found[1], found[4], found[6]}) == 3


def test_nothing_to_join() -> None:
    assert group_intervals(numeric(1, 2, 3), 3) is None
    assert group_intervals(numeric(1, 2, 3, missing=True), 2) is None
    assert group_intervals(numeric(4), 1) is None
    assert group_intervals(CategoricalAttribute("c", False, (1.0,) * 5, tuple("abcde")), 2) is None


def test_groupings_by_size_of_region() -> None:
    members = (numeric(*[1] * 4), CategoricalAttribute("c", False, (1.0, 1.0), ("a", "b")))
    assert group_intervals_by_size(members, ()) == ()
    assert group_intervals_by_size(members, (None, 2)) == ((None, None), ((0, 0, 1, 1), None))


@given(st.lists(st.integers(0, 30).map(float), min_size=2, max_size=40), st.integers(1, 12), st.booleans())
def test_laws(frequencies: list[float], bins: int, missing: bool) -> None:
    attribute = numeric(*frequencies, missing=missing)
    grouping = group_intervals(attribute, bins)
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
    seen = regroup_attribute(attribute, grouping)
    assert group_intervals(seen, bins) is None, "merging again changes nothing"


@given(attributes("a", max_values=6), st.data())
def test_a_coarse_attribute_has_the_weight_of_its_parts(attribute: Attribute, data: st.DataObject) -> None:
    n_groups = data.draw(st.integers(1, attribute.n_values))
    grouping = tuple(min(code, n_groups - 1) for code in range(attribute.n_values)) + (n_groups,) * attribute.missing
    seen = regroup_attribute(attribute, grouping)
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
    assert regroup_attribute(attribute, (0, 0, 1, 1, 2)) == NumericAttribute("x", True, (3.0, 7.0, 5.0), (1.5,))
    levels = CategoricalAttribute("c", True, (1.0, 2.0, 3.0, 4.0), ("p", "q", "r"), missing_weight=2.0)
    assert regroup_attribute(levels, (0, 1, 0, 2)) == CategoricalAttribute(
        "c", True, (4.0, 2.0, 4.0), ("p | r", "q"), missing_weight=2.0
    )


@pytest.mark.parametrize("bins", [2, 3, 5, 8])
def test_skewed_columns_keep_their_resolution(bins: int) -> None:
    """Two thirds zeros: the zero alone, the rest in groups of equal weight."""
    grouping = group_intervals(numeric(60, *[1.0] * 30), bins)
    assert grouping is not None
    assert grouping[:2] == (0, 1)
    assert max(grouping) == bins - 1
    sizes = [grouping.count(group) for group in range(1, bins)]
    assert max(sizes) - min(sizes) <= 1


def rows_of(schema: Schema, n_rows: int, seed: int) -> Dataset:
    generator = np.random.default_rng(seed)
    codes = tuple(generator.integers(0, n, n_rows).astype(code_dtype(n)) for n in schema.cardinalities)
    return Dataset(schema, codes, generator.integers(0, len(schema.labels), n_rows).astype(np.uint8))


@given(schemas(min_attributes=1), st.data(), st.integers(0, 99))
def test_every_row_stays_in_its_cell(schema: Schema, draw: st.DataObject, seed: int) -> None:
    families = draw.draw(regrouped_families(schema.attributes))
    data = rows_of(schema, 12, seed)
    extended, plain = with_regrouped_columns(data, families)
    assert len(plain) == len(families)
    for asked, family in zip(families, plain, strict=True):
        assert family.groupings == ()
        assert family.shape == asked.shape == tuple(extended.schema.cardinalities[a] for a in family.attributes)
        assert (family.child is None) == (asked.child is None)
        assert family.child in (None, family.attributes[0])
        for t in range(12):
            assert oracles.cell(family, extended, t) == oracles.cell(asked, data, t)
    assert extended.codes[: len(data.codes)] == data.codes
    assert (
        len(extended.codes) == len(data.codes) + len(regrouped_attributes(families)) == len(extended.schema.attributes)
    )


def test_without_groupings_all_is_as_it_was() -> None:
    data = random_dataset(9, (3, 2), 2)
    families = (Family((0,), (3,), 0), Family((0, 1), (3, 2), None))
    extended, plain = with_regrouped_columns(data, families)
    assert extended is data
    assert plain == families


def test_a_view_is_one_column_whoever_uses_it() -> None:
    data = random_dataset(9, (4, 2), 2)
    grouping, other = (0, 0, 1, 1), (0, 1, 1, 1)
    families = (
        Family((0,), (2,), None, groupings=(grouping,)),
        Family((0, 1), (2, 2), None, groupings=(grouping, None)),
        Family((0,), (2,), None, groupings=(other,)),
        Family((0,), (4,), None),
    )
    extended, plain = with_regrouped_columns(data, families)
    assert [family.attributes for family in plain] == [(2,), (2, 1), (3,), (0,)]
    assert len(extended.codes) == 4
    assert extended.schema.attributes[2].frequencies == (2.0, 2.0)


def test_the_code_of_a_missing_value_stays_one_past_the_last() -> None:
    assert regroup_codes(np.array([0, 3, 4], np.uint8), (0, 0, 1, 1)).tolist() == [0, 1, 2]
    data = random_dataset(9, (4, 2), 2)
    schema = replace(data.schema, missing_policy="marginalize")
    incomplete = replace(data, schema=schema, codes=(np.full(9, 4, np.uint8), data.codes[1]))
    extended, _ = with_regrouped_columns(incomplete, (Family((0,), (2,), None, groupings=((0, 0, 1, 1),)),))
    assert extended.n_missing == (9, 0, 9)


def test_codes_are_narrow() -> None:
    wide = np.arange(700).astype(np.uint16)
    found = regroup_codes(wide, tuple(code // 300 for code in range(700)))
    assert found.dtype == np.uint8
    assert found.tolist() == [code // 300 for code in range(700)]


def test_neighbouring_intervals_of_equal_values_are_joined() -> None:
    attribute = numeric(*[5.0] * 6, missing=True)
    values = np.array([[0.1, -0.1], [0.1, -0.1], [0.3, -0.3], [0.1, -0.1], [0.1, -0.1 + 1e-15], [0.1, -0.1]])
    assert join_equal_intervals(attribute, values) == (0, 0, 1, 2, 2, 3)  # the last is the missing value
    assert join_equal_intervals(attribute, np.arange(12.0).reshape(6, 2)) is None
    assert join_equal_intervals(attribute, np.zeros((6, 2))) == (0, 0, 0, 0, 0, 1)
    assert join_equal_intervals(CategoricalAttribute("x", False, (5.0, 5.0), ("a", "b")), np.zeros((2, 2))) is None
