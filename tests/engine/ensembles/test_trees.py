"""Trees as tables: the sum of tables is the average of the members' scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles import boosted_trees as trees
from bncli.engine.ensembles.boosted_trees import Boosted, Settings, boost, log_probabilities, tables_of
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Tables
from tests.effects import mixed_datasets


def members_of(data: Dataset, seed: int, n: int = 3) -> list[Boosted]:
    fold = np.arange(data.n_rows) % n
    parts = [(data.take(np.flatnonzero(fold != f)), data.take(np.flatnonzero(fold == f))) for f in range(n)]
    drawn = Settings(trees=8, patience=8, bins=5)
    return [boost(*part, drawn, np.random.default_rng((seed, f))) for f, part in enumerate(parts)]


def by_tables(tables: Tables, data: Dataset) -> Array:
    """ln P(y | x) row by row, from the definition of a family's cells."""
    out = np.empty((data.n_rows, data.n_labels))
    for t in range(data.n_rows):
        out[t] = tables.bias
        for family, weights in zip(tables.families, tables.weights, strict=True):
            cell = 0
            for (a, grouping), size in zip(family.binned_attributes, family.shape, strict=True):
                code = int(data.codes[a][t])
                cell = cell * size + (code if grouping is None else grouping[code])
            out[t] += weights[cell]
    normalised: Array = out - np.log(np.exp(out).sum(axis=1, keepdims=True))
    return normalised


@given(mixed_datasets().filter(lambda data: data.n_rows > 2), st.integers(0, 9), st.sampled_from([1, 6, 1024]))
def test_tables_say_what_the_members_say_on_the_average(data: Dataset, seed: int, merged: int) -> None:
    members = members_of(data, seed)
    nothing = np.zeros((data.n_rows, len(members[0].prior)))
    expected = np.mean([sum((t.values[t.leaf(data)] for t in m.trees), nothing + m.prior) for m in members], axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "MERGED", merged)
        tables = tables_of(members, data.schema)
    np.testing.assert_allclose(by_tables(tables, data), log_probabilities(expected), atol=1e-10)


@given(mixed_datasets().filter(lambda data: data.n_rows > 2), st.integers(0, 9))
def test_groupings_are_those_that_a_file_may_hold(data: Dataset, seed: int) -> None:
    for family in tables_of(members_of(data, seed), data.schema).families:
        assert list(family.attributes) == sorted(set(family.attributes))
        for a, grouping in family.binned_attributes:
            attribute = data.schema.attributes[a]
            codes = list(range(attribute.cardinality)) if grouping is None else list(grouping)
            assert sorted(set(codes)) == list(range(max(codes) + 1))
            assert not attribute.missing or codes.count(codes[-1]) == 1
            if not hasattr(attribute, "levels"):
                values = codes[: attribute.n_values]
                assert all(left <= right for left, right in itertools.pairwise(values))


@given(mixed_datasets().filter(lambda data: data.n_rows > 2), st.integers(0, 9))
def test_numbers_of_a_cell_have_mean_0(data: Dataset, seed: int) -> None:
    for weights in tables_of(members_of(data, seed), data.schema).weights:
        np.testing.assert_allclose(weights.mean(axis=1), 0, atol=1e-12)
