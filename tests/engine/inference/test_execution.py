"""Compare contractions of all shapes with the full product, and their derivatives with differences."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.inference.execution import Factor, contract, contraction_adjoints

SIZES = {1: 2, 2: 3, 3: 4, 4: 2}
K, N = 2, 5
SHAPES = [
    ((1,), (1,), 1),
    ((1, 2), (1,), 2),
    ((1,), (1, 2), 2),
    ((1, 2), (1, 2), 2),
    ((1, 2), (1, 3), 3),
    ((1, 3), (1, 2), 3),
    ((1, 2, 4), (1, 3), 4),
    ((1, 3), (1, 2, 4), 4),
    ((1, 2, 3), (1, 3, 4), 4),
]


def factor(axes: tuple[int, ...], single: bool, seed: int) -> Factor:
    shape = (K, *(SIZES[axis] for axis in axes), *([] if single else [N]))
    return Factor(np.random.default_rng(seed).uniform(0.1, 1.0, shape), axes, single)


def whole(part: Factor, n_axes: int) -> np.ndarray:
    """Return the table with every axis of the product."""
    table = part.table[..., np.newaxis] if part.single else part.table
    return np.expand_dims(table, tuple(axis for axis in range(1, n_axes + 1) if axis not in part.axes))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_product_summed(shape: tuple[tuple[int, ...], tuple[int, ...], int], single: bool) -> None:
    left_axes, right_axes, n_axes = shape
    left, right = factor(left_axes, False, 0), factor(right_axes, single, 1)
    product = whole(left, n_axes) * whole(right, n_axes)
    total = contract(left, right, n_axes)
    np.testing.assert_allclose(total, product.sum(axis=1), rtol=1e-12)
    adjoint = np.random.default_rng(2).normal(size=total.shape)
    share = product * (adjoint / total)[:, np.newaxis]
    for part, slope in zip((left, right), contraction_adjoints(left, right, n_axes, total, adjoint), strict=True):
        lacks = [axis for axis in range(1, n_axes + 1) if axis not in part.axes] + [n_axes + 1] * part.single
        assert slope is not None
        np.testing.assert_allclose(slope, share.sum(axis=tuple(lacks)), rtol=1e-10, atol=1e-12)


def test_one_table_alone() -> None:
    left = factor((1, 2), False, 0)
    total = contract(left, None, 2)
    np.testing.assert_allclose(total, left.table.sum(axis=1))
    slope, nothing = contraction_adjoints(left, None, 2, total, np.ones_like(total))
    assert nothing is None
    np.testing.assert_allclose(slope.sum(axis=1), np.ones_like(total))


def test_sums_of_zero_stay_finite() -> None:
    left = Factor(np.zeros((1, 2, 1)), (1,), False)
    total = contract(left, None, 1)
    assert not contraction_adjoints(left, None, 1, total, np.zeros_like(total))[0].any()
