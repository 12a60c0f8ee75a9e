"""Regrouped attributes as columns: the same cells for every row, with groupings or without; each once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Schema
from bncli.engine.structures.binning import coarse_codes, regrouped_attributes, with_regrouped_columns
from bncli.engine.structures.structure import Family
from tests import oracles
from tests.datasets import random_dataset
from tests.strategies import regrouped_families, schemas


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
    assert coarse_codes(np.array([0, 3, 4], np.uint8), (0, 0, 1, 1)).tolist() == [0, 1, 2]
    data = random_dataset(9, (4, 2), 2)
    schema = replace(data.schema, missing_policy="marginalize")
    incomplete = replace(data, schema=schema, codes=(np.full(9, 4, np.uint8), data.codes[1]))
    extended, _ = with_regrouped_columns(incomplete, (Family((0,), (2,), None, groupings=((0, 0, 1, 1),)),))
    assert extended.n_missing == (9, 0, 9)


def test_codes_are_narrow() -> None:
    wide = np.arange(700).astype(np.uint16)
    found = coarse_codes(wide, tuple(code // 300 for code in range(700)))
    assert found.dtype == np.uint8
    assert found.tolist() == [code // 300 for code in range(700)]
