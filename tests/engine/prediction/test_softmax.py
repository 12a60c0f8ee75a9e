"""From scores to probabilities: small ones keep their digits, none is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bncli.engine.prediction.factors import add_softmax, log_shares, log_softmax, score_rows


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_shares_are_those_of_the_softmax(n_labels: int) -> None:
    tables = np.random.default_rng(0).normal(scale=20, size=(50, n_labels))
    scores = score_rows(tables)
    log_p = np.empty((n_labels, 50))
    log_softmax(scores, log_p)
    expected = tables.T - np.logaddexp.reduce(tables.T)
    np.testing.assert_allclose(log_p, expected, rtol=1e-9, atol=1e-12)
    shares = np.zeros((n_labels, 50))
    for weight in (0.25, 0.75):
        add_softmax(scores, weight, shares)
    np.testing.assert_allclose(shares, np.exp(expected), rtol=1e-12)
    log_shares(shares)
    np.testing.assert_allclose(shares, expected, rtol=1e-9, atol=1e-12)


def test_the_likelier_of_two_classes_keeps_its_digits() -> None:
    shares = np.zeros((2, 2))
    add_softmax(np.array([[-40.0, 40.0]]), 1.0, shares)
    log_shares(shares)
    tiny = -math.log1p(math.exp(-40))
    np.testing.assert_allclose(shares, [[tiny, -40.0], [-40.0, tiny]], rtol=1e-12)


def test_no_share_becomes_infinite() -> None:
    for scores in (np.array([[-1e5, 1e300]]), np.array([[0.0, 0.0], [1e300, -1e5], [1.0, 1.0]])):
        shares = np.zeros((max(len(scores), 2), 2))
        add_softmax(scores, 1.0, shares)
        log_shares(shares)
        assert np.isfinite(shares).all()
