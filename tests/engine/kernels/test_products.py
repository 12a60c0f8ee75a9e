"""Products with the Hessian against the sum over rows, for every range of K, block size and weighting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.kernels import passes
from bncli.engine.kernels.passes import Indicators
from tests.oracles import log_posterior

Array = NDArray[np.float64]
N, SIZES = 53, (5, 3)


def rows(n_labels: int) -> tuple[list[NDArray[np.intp]], list[Array], list[Array]]:
    """Codes of two groups, their tables, and the tables to multiply."""
    rng = np.random.default_rng(n_labels)
    codes = [rng.integers(0, size, N) for size in SIZES]
    point, v = ([rng.normal(size=(n_labels, size)) for size in SIZES] for _ in range(2))
    return codes, point, v


def definition(codes: Any, weights: Any, point: Any, v: Any) -> tuple[Array, list[Array]]:
    """P (K, rows), and HV by group, one row at a time with the K x K matrix diag(p) - p p'."""
    n_labels = len(point[0])
    p, totals = np.zeros((n_labels, N)), [np.zeros(table.shape) for table in v]
    for t in range(N):
        scores, d = (
            np.sum([table[:, c[t]] for table, c in zip(tables, codes, strict=True)], axis=0) for tables in (point, v)
        )
        p[:, t] = np.exp(log_posterior(list(scores)))
        r = (1.0 if weights is None else weights[t]) * (np.diag(p[:, t]) - np.outer(p[:, t], p[:, t])) @ d
        for total, c in zip(totals, codes, strict=True):
            total[:, c[t]] += r
    return p, totals


@pytest.fixture(params=[1, 10, 1 << 15])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(passes, "BLOCK", request.param)
    return int(request.param)


@pytest.fixture(params=[None, np.random.default_rng(0).uniform(0.1, 2.0, N)], ids=["counted", "weighted"])
def weights(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("code_type", [np.intp, np.uint8])
def test_two_classes(weights: Any, code_type: Any) -> None:
    codes, point, v = rows(2)
    p, expected = definition(codes, weights, point, v)
    narrow = [c.astype(code_type) for c in codes]
    spread = passes.curvature_two_classes(narrow, weights, [table[1] - table[0] for table in point])
    np.testing.assert_allclose(spread, p[0] * p[1] * (1.0 if weights is None else weights), rtol=1e-12)
    totals = passes.hessian_two_classes(narrow, spread, [table[1] - table[0] for table in v])
    for total, slow in zip(totals, expected, strict=True):
        np.testing.assert_allclose(total, slow[1], atol=1e-12)
        np.testing.assert_allclose(-total, slow[0], atol=1e-12)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("n_labels", [1, 2, 3, 9])
@pytest.mark.parametrize("code_type", [np.intp, np.uint16])
def test_some_classes(weights: Any, n_labels: int, code_type: Any) -> None:
    codes, point, v = rows(n_labels)
    expected_p, expected = definition(codes, weights, point, v)
    narrow = [c.astype(code_type) for c in codes]
    p = passes.probabilities(narrow, point)
    np.testing.assert_allclose(p, expected_p, rtol=1e-12)
    before = [table.copy() for table in v]
    totals = passes.hessian_classes(narrow, p, weights, v)
    for total, slow in zip(totals, expected, strict=True):
        np.testing.assert_allclose(total, slow, atol=1e-12)
    np.testing.assert_array_equal(p, passes.probabilities(narrow, point))
    for table, copy in zip(v, before, strict=True):
        np.testing.assert_array_equal(table, copy)


@pytest.mark.parametrize("at_a_time", [1, 7, 100])
def test_sparse_products_of_two_classes(weights: Any, at_a_time: int) -> None:
    codes, point, v = rows(2)
    p, expected = definition(codes, weights, point, v)
    z = Indicators(np.stack(codes, axis=1).astype(np.uint8), SIZES, at_a_time, keep=False)
    (first, second), (v_first, v_second) = (np.concatenate(tables, axis=1) for tables in (point, v))
    spread = passes.sparse_curvature_two_classes(z, weights, second - first)
    np.testing.assert_allclose(spread, p[0] * p[1] * (1.0 if weights is None else weights), rtol=1e-12)
    total = passes.sparse_hessian_two_classes(z, spread, v_second - v_first)
    np.testing.assert_allclose(total, np.concatenate(expected, axis=1)[1], atol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 12])
@pytest.mark.parametrize("at_a_time", [1, 7, 100])
def test_sparse_products_of_more(weights: Any, n_labels: int, at_a_time: int) -> None:
    codes, point, v = rows(n_labels)
    expected_p, expected = definition(codes, weights, point, v)
    z = Indicators(np.stack(codes, axis=1).astype(np.uint8), SIZES, at_a_time, keep=True)
    table, v_table = (np.concatenate(tables, axis=1) for tables in (point, v))
    p = passes.sparse_probabilities(z, (table[1:] - table[0]).T)
    np.testing.assert_allclose(np.concatenate(p, axis=1), expected_p, rtol=1e-12)
    total = passes.sparse_hessian_classes(z, p, weights, (v_table[1:] - v_table[0]).T)
    np.testing.assert_allclose(total.T, np.concatenate(expected, axis=1)[1:], atol=1e-12)


@pytest.mark.parametrize("scale", [40.0, 800.0, 1e300])
def test_certain_rows_have_no_spread_and_cause_no_alarm(scale: float) -> None:
    codes = [np.array([0, 1])]
    spread = passes.curvature_two_classes(codes, None, [np.array([scale, -scale])])
    assert (spread >= 0).all()
    assert spread.max() < 1e-17
    p = passes.probabilities(codes, [np.array([[0.0, 0.0], [scale, -scale], [0.0, -scale]])])
    np.testing.assert_allclose(p.sum(axis=0), 1.0)
    np.testing.assert_allclose(p[:, 0], [0.0, 1.0, 0.0], atol=1e-17)


def test_no_rows() -> None:
    codes = [np.zeros(0, np.intp)]
    spread = passes.curvature_two_classes(codes, None, [np.ones(3)])
    assert not passes.hessian_two_classes(codes, spread, [np.ones(3)])[0].any()
    p = passes.probabilities(codes, [np.ones((3, 2))])
    assert p.shape == (3, 0)
    assert not passes.hessian_classes(codes, p, None, [np.ones((3, 2))])[0].any()
