"""Fused codes: however families are grouped, expand and gather are the plain cells of every row and their transpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting import fused_codes as fusing
from bncli.engine.counting.fused_codes import Fusion, fuse
from bncli.engine.data.dataset import Dataset
from bncli.engine.structures.structure import Dag
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
        patch.setattr(fusing, "MAX_JOINT", joint)
        patch.setattr(fusing, "WIDE_BYTES", draw.draw(st.sampled_from([0, 1 << 20])))
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
    monkeypatch.setattr(fusing, "WIDE_BYTES", 0)
    assert fuse(data, families, 4096).codes[0][0].dtype == np.uint8


@given(datasets(min_rows=1, max_rows=30), st.data())
def test_few_rows_are_fused_as_many_would_be(data: Dataset, draw: st.DataObject) -> None:
    families = draw.draw(dags(len(data.codes))).families(data.schema.cardinalities)
    offsets = [1]
    for family in families:
        offsets.append(offsets[-1] + family.n_cells)
    if families:
        (group,) = fusing._groups(data, families, data.n_rows)
        members, codes = group.fused(families, offsets, bias=True)
        quick_members, quick_codes = fusing._distinct_rows(data, families, offsets)
        assert members.tolist() == quick_members.tolist()
        assert codes[0].tolist() == quick_codes[0].tolist()
