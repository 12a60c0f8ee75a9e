"""Families fused into groups, and joint codes grown by one attribute, against loops over rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting import fused_codes
from bncli.engine.counting.fused_codes import Fusion, extend, fuse, no_attributes
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structures.structure import Dag, Family
from tests import oracles
from tests.datasets import random_dataset
from tests.strategies import dags, datasets


def cells_of_row(fusion: Fusion, t: int) -> list[int]:
    """The cells that the groups together activate in row t of a data set with one block."""
    return sorted(
        int(c) for members, codes in zip(fusion.members, fusion.codes[0], strict=True) for c in members[codes[t]]
    )


@given(
    datasets(min_rows=0, max_rows=30), st.data(), st.sampled_from([1, 3, 10, 4096]), st.sampled_from([1, 8, 1 << 22])
)
def test_every_row_activates_its_cells(data: Dataset, draw: st.DataObject, largest: int, joint: int) -> None:
    families = draw.draw(dags(len(data.codes))).families(data.schema.cardinalities)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused_codes, "MAX_JOINT", joint)
        patch.setattr(fused_codes, "WIDE_BYTES", draw.draw(st.sampled_from([0, 1 << 20])))
        fusion = fuse(data, families, largest)
    assert fusion.n_cells == 1 + sum(family.n_cells for family in families)
    for t in range(data.n_rows):
        assert cells_of_row(fusion, t) == oracles.active_cells(families, data, t)
    for members in fusion.members:
        assert len(members) <= max(largest, data.n_rows)


@given(datasets(max_rows=30), st.data(), st.sampled_from([1, 3, 4096]))
def test_gather_is_the_transpose_of_expand(data: Dataset, draw: st.DataObject, largest: int) -> None:
    families = draw.draw(dags(len(data.codes))).families(data.schema.cardinalities)
    fusion = fuse(data, families, largest)
    rng = np.random.default_rng(1)
    cells = rng.normal(size=(3, fusion.n_cells))
    tables = [rng.normal(size=(3, len(members))) for members in fusion.members]
    there = sum(float((a * b).sum()) for a, b in zip(fusion.expand(cells), tables, strict=True))
    assert there == pytest.approx(float((cells * fusion.gather(tables)).sum()), abs=1e-9)
    expanded, summed = fusion.activations @ cells.T, fusion.activations.T @ np.concatenate(tables, axis=1).T
    np.testing.assert_allclose(expanded.T, np.concatenate(fusion.expand(cells), axis=1), atol=1e-12)
    np.testing.assert_allclose(summed.T, fusion.gather(tables), atol=1e-12)


def test_few_configurations_make_one_group_and_a_small_limit_many() -> None:
    data = random_dataset(500, (3,) * 6, 2)
    families = Dag(((),) * 6, tuple(range(6))).families(data.schema.cardinalities)
    assert len(fuse(data, families, 4096).members) == 1
    assert len(fuse(data, families, 1).members) == 6


@pytest.mark.parametrize("threads", [1, 2])
def test_several_blocks_share_one_numbering(threads: int) -> None:
    data = random_dataset(140_000, (5, 4, 3), 2, threads=threads)
    families = Dag(((), (0,), (1,)), (0, 1, 2)).families(data.schema.cardinalities)
    fusion = fuse(data, families, 4096)
    assert len(fusion.codes) == len(data.bounds()) > 1
    (members,) = fusion.members
    codes = np.concatenate([block[0] for block in fusion.codes])
    x, y, z = (c.astype(np.intp) for c in data.codes)
    expected = np.stack([0 * x, 1 + x, 6 + 5 * y + x, 26 + 4 * z + y], axis=1)
    np.testing.assert_array_equal(np.sort(members[codes], axis=1), np.sort(expected, axis=1))


def test_codes_are_narrow_where_wide_ones_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(50, (3, 3), 2)
    families = Dag(((), ()), (0, 1)).families((3, 3))
    assert fuse(data, families, 4096).codes[0][0].dtype == np.intp
    monkeypatch.setattr(fused_codes, "WIDE_BYTES", 0)
    assert fuse(data, families, 4096).codes[0][0].dtype == np.uint8


@given(datasets(min_rows=1, max_rows=30), st.data())
def test_few_rows_are_fused_as_many_would_be(data: Dataset, draw: st.DataObject) -> None:
    families = draw.draw(dags(len(data.codes))).families(data.schema.cardinalities)
    offsets = [1]
    for family in families:
        offsets.append(offsets[-1] + family.n_cells)
    if families:
        order, group = fused_codes._depth_first(families), fused_codes._Group(data)
        assert all(group.add(f, families[f], data.n_rows) for f in order)
        members, codes = group.members(families, offsets, bias=True), group.codes
        quick_members, quick_codes = fused_codes._fuse_distinct_rows(data, families, offsets, order)
        assert members.tolist() == quick_members.tolist()
        assert codes[0].tolist() == quick_codes[0].tolist()


def grown(data: Dataset, attributes: tuple[int, ...]) -> list[int]:
    """The joint code of every row after adding the attributes in turn."""
    joint = no_attributes(data)
    for attribute in attributes:
        joint, _ = extend(data, joint, attribute)
    return [int(code) for part in joint.codes for code in part]


def ranks(data: Dataset, attributes: tuple[int, ...]) -> list[int]:
    """The rank of every row's tuple of values among those that occur."""
    rows = [tuple(int(data.codes[i][t]) for i in attributes) for t in range(data.n_rows)]
    order = sorted(set(rows))
    return [order.index(row) for row in rows]


@given(datasets(max_rows=40), st.data())
def test_codes_are_ranks_of_the_tuples_that_occur(data: Dataset, draw: st.DataObject) -> None:
    attributes = draw.draw(st.permutations(range(len(data.codes))).map(tuple))
    assert grown(data, attributes) == ranks(data, attributes)


@given(datasets(max_rows=40))
def test_every_new_number_knows_the_one_it_came_from(data: Dataset) -> None:
    joint = no_attributes(data)
    for attribute in range(len(data.codes)):
        longer, before = extend(data, joint, attribute)
        assert before.shape == (longer.size,)
        for old, new in zip(joint.codes, longer.codes, strict=True):
            assert (before[new] == old).all()
        joint = longer


def test_sorting_gives_the_same_numbers_as_marking(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(150_000, (30, 40, 20), 2, threads=2)  # two row blocks
    marked = grown(data, (2, 0, 1))
    monkeypatch.setattr(fused_codes, "MAX_MARKED", 1)
    assert grown(data, (2, 0, 1)) == marked


def test_many_attributes_never_overflow() -> None:
    data = random_dataset(50, (200,) * 30, 2)
    codes = grown(data, tuple(range(30)))
    assert sorted(codes) == list(range(50))


@pytest.mark.parametrize("limit", [1, 1 << 25])
def test_no_rows(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_codes, "MAX_MARKED", limit)
    data = random_dataset(0, (2, 3), 2)
    joint, before = extend(data, no_attributes(data), 1)
    assert joint.size == 0
    assert before.shape == (0,)
    assert np.concatenate(joint.codes).shape == (0,)
    assert extend(data, joint, 0)[0].size == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_narrow_codes_give_the_same_sums(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    data = random_dataset(3000, [3, 4, 5, 2, 7], 2, weighted=weighted)
    families = tuple(Family.over((i,), data.schema.cardinalities) for i in range(5))
    wide = conditional_likelihood(data, families)
    monkeypatch.setattr("bncli.engine.counting.fused_codes.WIDE_BYTES", 0)
    narrow = conditional_likelihood(data, families)
    assert {codes.dtype.itemsize for block in narrow.fusion.codes for codes in block} <= {1, 2}
    cells = np.random.default_rng(1).normal(size=(2, wide.fusion.n_cells))
    one, other = wide.value_and_gradient(cells), narrow.value_and_gradient(cells)
    assert one[0] == other[0]
    np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("n_labels", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_matrices_made_anew_give_the_same_sums(monkeypatch: pytest.MonkeyPatch, weighted: bool, n_labels: int) -> None:
    data = random_dataset(40_000, [3, 4, 5, 2, 7], n_labels, weighted=weighted)
    families = tuple(Family.over((i,), data.schema.cardinalities) for i in range(5))
    kept = conditional_likelihood(data, families)
    monkeypatch.setattr("bncli.engine.parameters.likelihood.KEPT_BYTES", 0)
    made = conditional_likelihood(data, families)
    cells = np.random.default_rng(1).normal(size=(n_labels, kept.n_cells))
    one, other = kept.value_and_gradient(cells), made.value_and_gradient(cells)
    assert one[0] == other[0]
    np.testing.assert_array_equal(one[1], other[1])
    np.testing.assert_array_equal(kept.hessian(cells)(cells), made.hessian(cells)(cells))
