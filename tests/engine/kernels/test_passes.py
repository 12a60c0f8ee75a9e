"""Likelihoods, gradients and Hessian products of coded rows against formulas on whole matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.kernels import passes
from bncli.engine.kernels.passes import MOST_ENTRIES, Indicators
from tests.oracles import log_posterior

N, SIZES = 53, (5, 3)


def rows(n_labels: int) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(n_labels)
    codes = [rng.integers(0, size, N) for size in SIZES]
    return codes, rng.integers(0, n_labels, N), [rng.normal(size=(n_labels, size)) for size in SIZES]


def definition(codes: Any, labels: Any, weights: Any, tables: Any) -> tuple[float, list[np.ndarray]]:
    cll, totals = 0.0, [np.zeros(table.shape) for table in tables]
    for t, label in enumerate(labels):
        log_p = log_posterior(
            [sum(table[y, c[t]] for table, c in zip(tables, codes, strict=True)) for y in range(len(tables[0]))]
        )
        w = 1.0 if weights is None else weights[t]
        cll += w * log_p[label]
        for total, c in zip(totals, codes, strict=True):
            for y, lp in enumerate(log_p):
                total[y, c[t]] += w * ((y == label) - np.exp(lp))
    return cll, totals


@pytest.fixture(params=[1, 10, 1 << 14])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(passes, "BLOCK", request.param)
    return int(request.param)


@pytest.fixture(params=[None, np.random.default_rng(0).uniform(0.1, 2.0, N)], ids=["counted", "weighted"])
def weights(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("code_type", [np.intp, np.uint8])
def test_two_classes(block: int, weights: Any, code_type: Any) -> None:
    codes, labels, tables = rows(2)
    expected_cll, expected = definition(codes, labels, weights, tables)
    signs, differences = np.where(labels == 1, 1.0, -1.0), [table[1] - table[0] for table in tables]
    cll, totals = passes.gradient_two_classes([c.astype(code_type) for c in codes], signs, weights, differences)
    assert cll == pytest.approx(expected_cll, rel=1e-12)
    for total, slow in zip(totals, expected, strict=True):
        np.testing.assert_allclose(total, slow[1], atol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 9])
def test_the_log_likelihood_alone(weights: Any, n_labels: int) -> None:
    codes, labels, tables = rows(n_labels)
    expected, _ = definition(codes, labels, weights, tables)
    cll = passes.log_likelihood(codes, labels, weights, [passes.class_differences(table) for table in tables])
    assert cll == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 9])
@pytest.mark.parametrize("code_type", [np.intp, np.uint16])
def test_some_classes(block: int, weights: Any, n_labels: int, code_type: Any) -> None:
    codes, labels, tables = rows(n_labels)
    expected_cll, expected = definition(codes, labels, weights, tables)
    cll, totals = passes.gradient_classes([c.astype(code_type) for c in codes], labels, weights, tables)
    assert cll == pytest.approx(expected_cll, rel=1e-12)
    for total, slow in zip(totals, expected, strict=True):
        np.testing.assert_allclose(total, slow, atol=1e-12)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("at_a_time", [1, 7, 100])
def test_sparse_gradients_of_two_classes(weights: Any, at_a_time: int, keep: bool) -> None:
    codes, labels, tables = rows(2)
    expected_cll, expected = definition(codes, labels, weights, tables)
    signs, (first, second) = np.where(labels == 1, 1, -1).astype(np.int8), np.concatenate(tables, axis=1)
    z = Indicators(np.stack(codes, axis=1).astype(np.uint8), SIZES, at_a_time, keep)
    for _ in range(2):
        cll, total = passes.sparse_gradient_two_classes(z, signs, weights, second - first)
        assert cll == pytest.approx(expected_cll, rel=1e-12)
        np.testing.assert_allclose(total, np.concatenate(expected, axis=1)[1], atol=1e-12)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 12])
@pytest.mark.parametrize("at_a_time", [1, 7, 100])
def test_sparse_gradients_of_more(weights: Any, n_labels: int, at_a_time: int, keep: bool) -> None:
    codes, labels, tables = rows(n_labels)
    expected_cll, expected = definition(codes, labels, weights, tables)
    table = np.concatenate(tables, axis=1)
    z = Indicators(np.stack(codes, axis=1).astype(np.uint16), SIZES, at_a_time, keep)
    for _ in range(2):
        cll, total = passes.sparse_gradient_classes(z, labels, weights, (table[1:] - table[0]).T)
        assert cll == pytest.approx(expected_cll, rel=1e-12)
        np.testing.assert_allclose(total.T, np.concatenate(expected, axis=1)[1:], atol=1e-12)


def test_a_score_far_below_the_others_costs_exactly_its_distance() -> None:
    scores = np.array([[0.0, -1e4], [1e4, 0.0]])
    assert passes.residuals(scores, np.array([0, 0]), None) == -2e4
    np.testing.assert_array_equal(scores, [[1.0, 1.0], [-1.0, -1.0]])


def test_of_many_groups_fewer_rows_are_taken_at_a_time() -> None:
    z = Indicators(np.zeros((4000, 1 << 10), np.uint8), (1,) * (1 << 10), 1 << 14, keep=False)
    blocks = list(z)
    assert max(block.z.nnz for block in blocks) <= 1.5 * MOST_ENTRIES
    assert [block.rows.start for block in blocks[1:]] == [block.rows.stop for block in blocks[:-1]]
    assert blocks[-1].rows.stop == 4000


Array = NDArray[np.float64]
N, SIZES = 53, (5, 3)


def hessian_rows(n_labels: int) -> tuple[list[NDArray[np.intp]], list[Array], list[Array]]:
    """Codes of two groups, their tables, and the tables to multiply."""
    rng = np.random.default_rng(n_labels)
    codes = [rng.integers(0, size, N) for size in SIZES]
    point, v = ([rng.normal(size=(n_labels, size)) for size in SIZES] for _ in range(2))
    return codes, point, v


def slow_products(codes: Any, weights: Any, point: Any, v: Any) -> tuple[Array, list[Array]]:
    """P (K, hessian_rows), and HV by group, one row at a time with the K x K matrix diag(p) - p p'."""
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
def hessian_block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(passes, "BLOCK", request.param)
    return int(request.param)


@pytest.mark.usefixtures("hessian_block")
@pytest.mark.parametrize("code_type", [np.intp, np.uint8])
def test_hessian_products_of_two_classes(weights: Any, code_type: Any) -> None:
    codes, point, v = hessian_rows(2)
    p, expected = slow_products(codes, weights, point, v)
    narrow = [c.astype(code_type) for c in codes]
    spread = passes.curvature_two_classes(narrow, weights, [table[1] - table[0] for table in point])
    np.testing.assert_allclose(spread, p[0] * p[1] * (1.0 if weights is None else weights), rtol=1e-12)
    totals = passes.hessian_two_classes(narrow, spread, [table[1] - table[0] for table in v])
    for total, slow in zip(totals, expected, strict=True):
        np.testing.assert_allclose(total, slow[1], atol=1e-12)
        np.testing.assert_allclose(-total, slow[0], atol=1e-12)


@pytest.mark.usefixtures("hessian_block")
@pytest.mark.parametrize("n_labels", [1, 2, 3, 9])
@pytest.mark.parametrize("code_type", [np.intp, np.uint16])
def test_hessian_products_of_some_classes(weights: Any, n_labels: int, code_type: Any) -> None:
    codes, point, v = hessian_rows(n_labels)
    expected_p, expected = slow_products(codes, weights, point, v)
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
def test_sparse_hessian_products_of_two_classes(weights: Any, at_a_time: int) -> None:
    codes, point, v = hessian_rows(2)
    p, expected = slow_products(codes, weights, point, v)
    z = Indicators(np.stack(codes, axis=1).astype(np.uint8), SIZES, at_a_time, keep=False)
    (first, second), (v_first, v_second) = (np.concatenate(tables, axis=1) for tables in (point, v))
    spread = passes.sparse_curvature_two_classes(z, weights, second - first)
    np.testing.assert_allclose(spread, p[0] * p[1] * (1.0 if weights is None else weights), rtol=1e-12)
    total = passes.sparse_hessian_two_classes(z, spread, v_second - v_first)
    np.testing.assert_allclose(total, np.concatenate(expected, axis=1)[1], atol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 12])
@pytest.mark.parametrize("at_a_time", [1, 7, 100])
def test_sparse_hessian_products_of_more(weights: Any, n_labels: int, at_a_time: int) -> None:
    codes, point, v = hessian_rows(n_labels)
    expected_p, expected = slow_products(codes, weights, point, v)
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


@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_row_by_row(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(6, 40)) * 30
    labels = rng.integers(0, 6, 40).astype(np.uint8)
    weights = rng.uniform(0.2, 3.0, 40) if weighted else None
    differences = np.ascontiguousarray((scores[1:] - scores[0]).T)
    expected = scores.copy()
    cll = passes.residuals(expected, labels, weights)
    assert passes.residuals_by_row(differences, labels, weights) == pytest.approx(cll, rel=1e-12)
    np.testing.assert_allclose(differences.T, expected[1:], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scores_at_a_time", [1, 500, 1 << 16])
@pytest.mark.parametrize("single", [False, True])
def test_many_classes(monkeypatch: pytest.MonkeyPatch, weighted: bool, scores_at_a_time: int, single: bool) -> None:
    """The gradient and the sums of w P (1 - P), in both precisions, a few rows at a time."""
    monkeypatch.setattr(passes, "MANY_SCORES", scores_at_a_time)
    n_labels = passes.MANY_CLASSES + 6
    codes, labels, tables = rows(n_labels)
    weights = np.random.default_rng(3).uniform(0.2, 3.0, len(labels)) if weighted else None
    cll, gradient = definition(codes, labels, weights, tables)
    p = passes.probabilities(codes, tables)
    variances = p * (1.0 - p) * (1.0 if weights is None else weights)
    expected = [np.stack([np.bincount(c, v, n) for v in variances]) for c, n in zip(codes, SIZES, strict=True)]
    table = np.concatenate(tables, axis=1)
    differences = (table[1:] - table[0]).T.astype(np.float32 if single else np.float64)
    z = Indicators(np.stack(codes, axis=1).astype(np.uint8), SIZES, 7, keep=True, single=single)
    error = 1e-4 if single else 1e-12
    found, total = passes.sparse_gradient_classes(z, labels, weights, differences)
    assert found == pytest.approx(cll, rel=error)
    np.testing.assert_allclose(total.T, np.concatenate(gradient, axis=1)[1:], atol=error)
    found_variances = passes.sparse_variances(z, weights, differences)
    np.testing.assert_allclose(found_variances.T, np.concatenate(expected, axis=1), atol=error)
