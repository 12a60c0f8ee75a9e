"""The kernels agree with each other and with the definition, whatever the block size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
def test_sparse_products_of_two_classes(weights: Any, at_a_time: int, keep: bool) -> None:
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
def test_sparse_products_of_more(weights: Any, n_labels: int, at_a_time: int, keep: bool) -> None:
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
