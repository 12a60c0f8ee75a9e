"""What a subspace is made of: the heaviest cells, and the heaviest sums of others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.kernels.preconditioning import Subspace
from bncli.engine.parameters.preconditioner import subspace, top_only
from bncli.engine.structures.structure import Family
from tests.strategies import dags

Array = NDArray[np.float64]


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Family, ...], Array, NDArray[np.bool_], int]:
    """Families of any graph, weights with many ties and zeros, cells of free curvature, and a size."""
    cardinalities = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=4)))
    families = draw(dags(len(cardinalities))).families(cardinalities)
    n_cells = 1 + sum(family.n_cells for family in families)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    weights = rng.integers(0, draw(st.sampled_from([2, 6, 1000])), n_cells).astype(float)
    weights[0] = weights.sum() + 1
    curved = rng.random(n_cells) < draw(st.sampled_from([0.0, 0.7, 1.0]))
    return families, weights, curved, draw(st.integers(1, 2 * n_cells))


def matrix(found: Subspace) -> Array:
    """R (n_cells, n)."""
    r = np.zeros((found.columns.shape[1], found.n + 1))
    for row in found.columns:
        r[np.arange(len(row)), row] += 1.0
    return r[:, :-1]


@given(cases())
def test_the_top_has_the_bias_and_the_heaviest_cells(
    case: tuple[tuple[Family, ...], Array, NDArray[np.bool_], int],
) -> None:
    families, weights, curved, size = case
    for found in (subspace(families, weights, curved, size), top_only(weights, size)):
        top = found.top
        assert top[0] == 0
        assert found.columns[0, top].tolist() == list(range(len(top)))
        assert top.tolist() == sorted(top)
        rest = np.setdiff1d(np.arange(len(weights)), top)
        if len(top) > 1 and len(rest):
            lightest = weights[top[1:]].min()
            assert lightest >= weights[rest].max()
            tied_in, tied_out = top[1:][weights[top[1:]] == lightest], rest[weights[rest] == lightest]
            assert not len(tied_out) or tied_in.max() < tied_out.min()


@given(cases())
def test_the_size_is_respected_and_every_column_used(
    case: tuple[tuple[Family, ...], Array, NDArray[np.bool_], int],
) -> None:
    families, weights, curved, size = case
    found = subspace(families, weights, curved, size)
    assert found.n <= size
    assert (matrix(found).sum(axis=0) > 0).all()
    occupied = np.flatnonzero(weights)
    if len(occupied) <= size:
        assert set(occupied) <= set(found.top)
    else:
        assert len(found.top) == size - size // 2


@given(cases())
def test_sums_are_the_heaviest_values_of_free_cells(
    case: tuple[tuple[Family, ...], Array, NDArray[np.bool_], int],
) -> None:
    """Each has the free cells of one family with one value of one attribute: at least two, and of some weight."""
    families, weights, curved, size = case
    found = subspace(families, weights, curved, size)
    candidates = [
        cells
        for cells in _values(families, weights, curved, set(found.top))
        if len(cells) > 1 and weights[list(cells)].sum() > 0
    ]
    r = matrix(found)
    sums = [tuple(np.flatnonzero(column)) for column in r.T[len(found.top) :]]
    assert sorted(set(sums)) == sorted(set(sums) & set(candidates))
    totals = sorted((weights[list(cells)].sum() for cells in candidates), reverse=True)
    room = max(0, size - len(found.top))
    assert sorted((weights[list(cells)].sum() for cells in sums), reverse=True) == totals[:room]


def _values(
    families: Sequence[Family], weights: Array, curved: NDArray[np.bool_], top: set[int]
) -> list[tuple[int, ...]]:
    listed: list[tuple[int, ...]] = []
    offset = 1
    for family in families:
        cells = list(itertools.product(*map(range, family.shape)))
        for place, value in ((p, v) for p, n in enumerate(family.shape) for v in range(n)):
            mine = [offset + i for i, values in enumerate(cells) if values[place] == value]
            if len(family.shape) > 1:
                listed.append(tuple(c for c in mine if c not in top and curved[c] and weights[c] > 0))
        offset += math.prod(family.shape)
    return listed


def test_two_attributes_by_hand() -> None:
    """Bias and the two heaviest of six cells at the top; of the rest, the cells with the same value of each."""
    family = Family((0, 1), (3, 2), 0)
    weights = np.array([60.0, 20.0, 1.0, 15.0, 2.0, 3.0, 4.0])
    found = subspace([family], weights, np.ones(7, bool), 6)
    assert found.top.tolist() == [0, 1, 3]
    sums = {tuple(np.flatnonzero(column)) for column in matrix(found).T[3:]}
    assert sums == {(5, 6), (2, 4, 6)}
    assert found.n == 5
