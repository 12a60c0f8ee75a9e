"""Products with R against the explicit matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.kernels.preconditioning import Subspace

Array = NDArray[np.float64]


@st.composite
def subspaces(draw: st.DrawFn) -> Subspace:
    """Any top, in any order of columns, and any rows of sums of the other cells."""
    n_cells = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    n_top, n_sums = draw(st.integers(0, n_cells)), draw(st.integers(0, 5))
    n, n_rows = n_top + n_sums, draw(st.integers(0, 3)) if n_sums else 0
    columns = np.full((1 + n_rows, n_cells), n)
    top = rng.permutation(n_cells)[:n_top]
    columns[0, top] = np.arange(n_top)
    owner = rng.integers(0, max(n_rows, 1), n_sums)
    for row in range(n_rows):
        own = n_top + np.flatnonzero(owner == row)
        light = np.setdiff1d(np.arange(n_cells), top)
        columns[1 + row, light] = rng.choice(np.append(own, n), len(light))
    return Subspace(columns, n)


def matrix(found: Subspace) -> Array:
    """R (n_cells, n)."""
    r = np.zeros((found.columns.shape[1], found.n + 1))
    for row in found.columns:
        r[np.arange(len(row)), row] += 1.0
    return r[:, :-1]


@given(subspaces(), st.integers(1, 3), st.integers(0, 99))
def test_restrict_add_and_gram_are_products_with_the_matrix(found: Subspace, n_rows: int, seed: int) -> None:
    r, rng = matrix(found), np.random.default_rng(seed)
    cells, out = rng.normal(size=(2, n_rows, len(r)))
    columns, weights = rng.normal(size=(n_rows, found.n)), rng.uniform(0, 3, len(r))
    np.testing.assert_allclose(found.restrict(cells), cells @ r, atol=1e-12)
    expected = out + columns @ r.T
    found.add(out, columns)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    np.testing.assert_allclose(found.gram(weights), r.T @ np.diag(weights) @ r, atol=1e-12)


@given(subspaces(), st.integers(0, 99))
def test_restrict_is_the_transpose_of_add(found: Subspace, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells, columns = rng.normal(size=(1, found.columns.shape[1])), rng.normal(size=(1, found.n))
    image = np.zeros(cells.shape)
    found.add(image, columns)
    one, other = float((found.restrict(cells) * columns).sum()), float((cells * image).sum())
    np.testing.assert_allclose(one, other, atol=1e-12)


@given(subspaces())
def test_the_top_comes_in_the_order_of_its_columns(found: Subspace) -> None:
    assert found.columns[0, found.top].tolist() == list(range(len(found.top)))


def test_configurations_activate_the_columns_of_their_cells() -> None:
    columns = np.array([[0, 1, 4, 4], [4, 4, 2, 3]])
    found = Subspace(columns, 4)
    members = np.array([[0, 1], [0, 3]])
    assert found.places(members).tolist() == [[0, 1, 4, 4], [0, 4, 4, 3]]
