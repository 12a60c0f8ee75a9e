"""Relative frequencies are the most likely probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.frequencies import free_parameters, log_likelihood
from tests.engine.scores.families import Array, family_counts


@given(family_counts(), st.integers(0, 99))
def test_no_other_probabilities_are_more_likely(counts: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(counts.shape[1]), (len(counts), *counts.shape[2:])).transpose(0, 3, 1, 2)
    theirs = (counts * np.log(np.maximum(theta, 1e-300))).sum(axis=(1, 2, 3))
    ours = log_likelihood(counts)
    assert (theirs <= ours + 1e-9 * (1 + np.abs(ours))).all()


def test_it_is_reached() -> None:
    counts = np.random.default_rng(0).integers(1, 9, (3, 2, 2)).astype(float)
    theta = counts / counts.sum(axis=0)
    assert log_likelihood(counts) == pytest.approx((counts * np.log(theta)).sum())


def test_free_parameters() -> None:
    assert free_parameters(np.zeros((5, 3, 4, 2))) == 2 * 4 * 2
    assert free_parameters(np.zeros((1, 4, 2))) == 0
