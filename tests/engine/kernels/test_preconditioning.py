"""Subspaces and preconditioners against dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.kernels import preconditioning
from bncli.engine.kernels.preconditioning import (
    SampledCurvature,
    Subspace,
    curved_preconditioner,
    dense_work,
    inverse,
    inverses_of,
    scaled_preconditioner,
    shared_preconditioner,
)
from bncli.engine.parameters.preconditioner import top_only

Array = NDArray[np.float64]


@given(st.integers(1, 6), st.integers(0, 99), st.floats(1e-3, 1e3))
def test_well_conditioned_matrices_are_inverted(n: int, seed: int, penalty: float) -> None:
    factor = np.random.default_rng(seed).normal(size=(n, n))
    matrix = factor @ factor.T + np.eye(n)
    expected = np.linalg.inv(matrix + penalty * np.eye(n))
    np.testing.assert_allclose(inverse(matrix, penalty), expected, atol=1e-4 * np.abs(expected).max())


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 99), st.sampled_from([0.0, 1e-9, 1.0]))
def test_singular_and_slightly_indefinite_matrices_become_positive_definite(
    n: int, rank: int, seed: int, penalty: float
) -> None:
    rng = np.random.default_rng(seed)
    factor, noise = rng.normal(size=(n, rank)), rng.normal(size=(n, n))
    matrix = factor @ factor.T + 1e-5 * (noise + noise.T)
    if np.diag(matrix).mean() <= 0:
        return
    result = inverse(matrix, penalty)
    np.testing.assert_allclose(result, result.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(result).min() > 0


def test_rows_of_zeros_stand_alone() -> None:
    matrix = np.array([[4.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(inverse(matrix, 0.0), [[0.25, 0.0], [0.0, 1.0]], rtol=1e-5)
    np.testing.assert_allclose(inverse(np.zeros((3, 3))), np.eye(3))


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_input_is_left_alone(penalty: float) -> None:
    matrix = np.diag([1.0, 0.0])
    inverse(matrix, penalty)
    np.testing.assert_array_equal(matrix, np.diag([1.0, 0.0]))


@pytest.mark.parametrize("halved_from", [1, 2, 5, 48])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 60])
def test_inverting_by_halves_changes_nothing(monkeypatch: pytest.MonkeyPatch, halved_from: int, n: int) -> None:
    factor = np.random.default_rng(n).normal(size=(n, n))
    matrix = factor @ factor.T + n * np.eye(n)
    monkeypatch.setattr(preconditioning, "MOST_INVERTED_WHOLE", halved_from)
    ridge = preconditioning.RIDGE * np.diag(matrix).mean() * np.eye(n)
    np.testing.assert_allclose(inverse(matrix), np.linalg.inv(matrix + ridge), rtol=1e-9, atol=1e-12)


def matrix_of(apply: Callable[[Array], Array], n: int) -> Array:
    return np.stack([apply(unit) for unit in np.eye(n)], axis=1)


def random_sample(n_labels: int, n_cells: int, alike: bool, seed: int) -> SampledCurvature:
    """Well-conditioned co-occurrences of all cells, one matrix for all classes or one each."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(1 if alike else n_labels, n_cells, n_cells))
    grams = roots @ roots.transpose(0, 2, 1) + np.eye(n_cells)
    return SampledCurvature(
        grams, top_only(np.arange(n_cells, 0, -1.0), n_cells), np.diagonal(grams, axis1=1, axis2=2).copy()
    )


def hessian(sample: SampledCurvature, jacobian: Array, penalty: float, n_labels: int) -> Array:
    """J'HJ + lambda I, H_yy' = 1[y = y'] C_y - C_y C^-1 C_y', block by block; jacobian (K, n, n)."""
    n = sample.grams.shape[1]
    c = np.broadcast_to(sample.grams, (n_labels, n, n))
    total = np.linalg.inv(c.sum(axis=0))
    h = np.zeros((n_labels, n, n_labels, n))
    for y in range(n_labels):
        for z in range(n_labels):
            block = (y == z) * c[y] - c[y] @ total @ c[z]
            h[y, :, z] = jacobian[y].T @ block @ jacobian[z]
    return h.reshape(n_labels * n, -1) + penalty * np.eye(n_labels * n)


@given(
    n_labels=st.integers(2, 4),
    n_cells=st.integers(1, 6),
    grams_alike=st.booleans(),
    scales_alike=st.booleans(),
    penalty=st.sampled_from([0.01, 1.0, 100.0]),
    seed=st.integers(0, 999),
)
def test_scaled_tables_on_the_whole(
    n_labels: int, n_cells: int, grams_alike: bool, scales_alike: bool, penalty: float, seed: int
) -> None:
    """The inverse of the Hessian of the summary; factors of any sign, the smallest of them 0."""
    sample = random_sample(n_labels, n_cells, grams_alike, seed)
    scale = np.random.default_rng(seed).normal(size=(1 if scales_alike else n_labels, n_cells))
    scale[-1, -1] = 0.0
    d = np.stack([np.diag(row) for row in np.broadcast_to(scale, (n_labels, n_cells))])
    expected = np.linalg.inv(hessian(sample, d, penalty, n_labels))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preconditioning, "RIDGE", 1e-10)
        found = matrix_of(scaled_preconditioner(sample, scale, penalty, n_labels), n_labels * n_cells)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_allclose(found, found.T, atol=1e-9 * np.abs(found).max())


@given(
    n_labels=st.integers(2, 4),
    n_cells=st.integers(1, 6),
    grams_alike=st.booleans(),
    jacobians_alike=st.booleans(),
    seed=st.integers(0, 999),
)
def test_curved_tables_on_the_whole(
    n_labels: int, n_cells: int, grams_alike: bool, jacobians_alike: bool, seed: int
) -> None:
    sample = random_sample(n_labels, n_cells, grams_alike, seed)
    rng = np.random.default_rng(seed)
    coupling = rng.uniform(0, 0.5, (1 if jacobians_alike else n_labels, n_cells, n_cells))
    jacobian = np.eye(n_cells) - coupling / n_cells  # far from singular: the ridge must not show
    full = np.broadcast_to(jacobian, (n_labels, n_cells, n_cells))
    c = np.broadcast_to(sample.grams, full.shape)
    curvature = np.stack([np.diag(j.T @ gram @ j) for j, gram in zip(full, c, strict=True)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preconditioning, "RIDGE", 1e-10)
        found = matrix_of(curved_preconditioner(sample, curvature, jacobian, 1.0, n_labels), n_labels * n_cells)
        small = matrix_of(curved_preconditioner(sample, curvature, jacobian, 1e-9, n_labels), n_labels * n_cells)
    expected = np.linalg.inv(hessian(sample, full, 1.0, n_labels))
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    blocks = np.zeros((n_labels, n_cells, n_labels, n_cells))
    for y in range(n_labels):  # a common shift is left out
        blocks[y, :, y] = np.linalg.inv(full[y].T @ c[y] @ full[y] + 1e-9 * np.eye(n_cells))
    expected = blocks.reshape(found.shape)
    np.testing.assert_allclose(small, expected, atol=1e-3 * np.abs(expected).max())


@given(
    n_labels=st.integers(2, 4),
    n_cells=st.integers(1, 6),
    grams_alike=st.booleans(),
    n_parameters=st.integers(1, 5),
    penalty=st.sampled_from([0.01, 1.0, 100.0]),
    seed=st.integers(0, 999),
)
def test_shared_parameters_on_the_whole(
    n_labels: int, n_cells: int, grams_alike: bool, n_parameters: int, penalty: float, seed: int
) -> None:
    sample = random_sample(n_labels, n_cells, grams_alike, seed)
    rng = np.random.default_rng(seed)
    scale, index = rng.normal(size=(n_labels, n_cells)), rng.integers(0, n_parameters, (n_labels, n_cells))
    j = np.zeros((n_labels * n_cells, n_parameters))
    j[np.arange(len(j)), index.ravel()] = scale.ravel()
    h = hessian(sample, np.broadcast_to(np.eye(n_cells), (n_labels, n_cells, n_cells)), 0.0, n_labels)
    expected = np.linalg.inv(j.T @ h @ j + penalty * np.eye(n_parameters))
    found = matrix_of(shared_preconditioner(sample, scale, index, n_parameters, penalty), n_parameters)
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.abs(expected).max())


@given(
    n_labels=st.integers(2, 3),
    top=st.lists(st.integers(1, 7), unique=True, max_size=4),
    with_sums=st.booleans(),
    scales=st.sampled_from([1.0, 1e-8, 1e4]),
    grams_alike=st.booleans(),
    penalty=st.sampled_from([0.0, 1e-6, 1.0, 1e6]),
    seed=st.integers(0, 999),
)
def test_scaled_tables_on_a_part_give_a_symmetric_positive_definite_matrix(
    n_labels: int,
    top: list[int],
    with_sums: bool,
    scales: float,
    grams_alike: bool,
    penalty: float,
    seed: int,
) -> None:
    """Factors of many magnitudes, co-occurrences without full rank, cells without weight."""
    rng = np.random.default_rng(seed)
    chosen = [0, *sorted(top)]
    columns = np.full((1 + with_sums, 8), len(chosen) + with_sums)
    columns[0, chosen] = np.arange(len(chosen))
    if with_sums:
        columns[1, np.setdiff1d(np.arange(8), chosen)] = len(chosen)
    subspace = Subspace(columns, len(chosen) + with_sums)
    roots = rng.normal(size=(1 if grams_alike else n_labels, 8, 3))
    full = roots @ roots.transpose(0, 2, 1)
    r = subspace.restrict(np.eye(8))
    mass = np.diagonal(full, axis1=1, axis2=2).copy()
    mass[:, 7] = 0.0
    sample = SampledCurvature(r.T @ full @ r, subspace, mass)
    scale = rng.normal(size=(n_labels, 8)) * scales ** rng.random((n_labels, 8))
    found = matrix_of(scaled_preconditioner(sample, scale, penalty, n_labels), n_labels * 8)
    assert np.isfinite(found).all()
    size = np.sqrt(np.diag(found))
    relative = found / np.outer(size, size)
    np.testing.assert_allclose(relative, relative.T, atol=1e-6)
    assert np.linalg.eigvalsh((relative + relative.T) / 2).min() > -1e-6
    g = rng.normal(size=len(found))
    assert g @ found @ g > 0


@pytest.mark.parametrize("grams_alike", [False, True])
def test_one_tiny_factor_leaves_the_others_alone(grams_alike: bool) -> None:
    """Its penalty in the tables is 1e12 times that of the others, and no ridge may follow it."""
    sample = random_sample(2, 5, grams_alike, 0)
    scale = np.random.default_rng(0).normal(size=(2, 5))
    scale[:, 4] = 0.0
    found = matrix_of(scaled_preconditioner(sample, scale, 1.0, 2), 10).reshape(2, 5, 2, 5)
    d = np.stack([np.diag(row) for row in scale])
    expected = np.linalg.inv(hessian(sample, d, 1.0, 2)).reshape(2, 5, 2, 5)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    without: Any = found[:, 4, :, 4]
    np.testing.assert_allclose(without, np.eye(2), atol=1e-6)


def test_more_classes_cost_more() -> None:
    work = [dense_work(n) for n in (1, 2, 3, 10)]
    assert work == sorted(set(work))
    assert work[0] > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_gives_the_unit_matrix(bad: float) -> None:
    np.testing.assert_array_equal(inverse(np.diag([1.0, bad])), np.eye(2))


@pytest.mark.parametrize("n", [3, 60])
@pytest.mark.parametrize("spoilt", ["none", "a row of zeros", "not positive definite", "not finite"])
def test_inverses_of_several_matrices_are_bit_by_bit_those_of_each(n: int, spoilt: str) -> None:
    rng = np.random.default_rng(n)
    roots = rng.normal(size=(4, n, n))
    matrices = roots @ roots.transpose(0, 2, 1)
    if spoilt == "a row of zeros":
        matrices[1, 0], matrices[1, :, 0] = 0.0, 0.0
    elif spoilt != "none":
        matrices[2, 1, 1] = -1e3 if spoilt == "not positive definite" else np.inf
    penalty = 0.0 if spoilt == "a row of zeros" else 0.5
    one_by_one = np.stack([inverse(matrix, penalty * np.eye(n)) for matrix in matrices])
    np.testing.assert_array_equal(inverses_of(matrices, penalty * np.eye(n)[np.newaxis]), one_by_one)
    np.testing.assert_array_equal(
        inverses_of(matrices[:1], np.stack([np.eye(n)] * 2))[1], inverse(matrices[0], np.eye(n))
    )


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
    assert found.columns_of(members).tolist() == [[0, 1, 4, 4], [0, 4, 4, 3]]


@pytest.mark.parametrize("degenerate", [False, True])
@pytest.mark.parametrize("most_shifted", [100, 0])
def test_the_factored_preconditioner_inverts_its_hessian(
    monkeypatch: pytest.MonkeyPatch, most_shifted: int, degenerate: bool
) -> None:
    """H of the module with C_y of families that are independent given the class; else positive definite at least."""
    monkeypatch.setattr(preconditioning, "MOST_SHIFTED", most_shifted)
    rng, n_labels, sizes, penalty = np.random.default_rng(0), 4, (1, 2, 3, 4), 0.7
    n_cells, first_cells = sum(sizes), np.cumsum([0, *sizes[:-1]])
    totals = rng.uniform(0.5, 20.0, n_labels)
    mass = np.concatenate([n * rng.dirichlet(np.ones(size)) for n in totals for size in sizes]).reshape(n_labels, -1)
    scale = rng.uniform(0.5, 2.0, (n_labels, n_cells)) * rng.choice([-1.0, 1.0], (n_labels, n_cells))
    if degenerate:  # a cell of no rows, and certain cells, beside whose penalty the rows count for nothing
        mass[:, 5] += mass[:, 4]
        mass[:, 4] = 0.0
        scale[:, 7:] = preconditioning.LEAST_SCALE
    grams = np.stack([np.outer(m, m) / m[0] for m in mass])
    for first, size in zip(first_cells, sizes, strict=True):
        cells = slice(first, first + size)
        grams[:, cells, cells] = [np.diag(m[cells]) for m in mass]
    coupling = np.linalg.pinv(grams.sum(axis=0), rcond=1e-10)
    hessian = np.zeros((n_labels, n_cells, n_labels, n_cells))
    for y in range(n_labels):
        hessian[y, :, y] += grams[y]
        for other in range(n_labels):
            hessian[y, :, other] -= grams[y] @ coupling @ grams[other]
    flat = hessian.reshape(n_labels * n_cells, -1)
    flat = scale.ravel()[:, np.newaxis] * flat * scale.ravel() + penalty * np.eye(len(flat))
    with monkeypatch.context() as patched:
        attempts = list[object]()
        factorise = np.linalg.cholesky
        patched.setattr(np.linalg, "cholesky", lambda matrix: (attempts.append(matrix), factorise(matrix))[1])
        precondition = preconditioning.factored_preconditioner(mass, scale, penalty, first_cells)
    assert len(attempts) == (1 if most_shifted else 0)
    found = np.stack([precondition(unit) for unit in np.eye(len(flat))], axis=1)
    if most_shifted:
        # the matrix of the shift is singular along flat directions, so that it needs its ridge
        np.testing.assert_allclose(found @ flat, np.eye(len(flat)), atol=preconditioning.RIDGE)
    np.testing.assert_allclose(found, found.T, atol=preconditioning.RIDGE)
    assert np.linalg.eigvalsh((found + found.T) / 2).min() > 0
