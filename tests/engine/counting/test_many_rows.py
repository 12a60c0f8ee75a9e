"""Rows so many that their fused codes are kept narrow: the same sums as from wide ones, to the last bit."""

import numpy as np
import pytest

from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structures.structure import Family
from tests.datasets import random_dataset


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
