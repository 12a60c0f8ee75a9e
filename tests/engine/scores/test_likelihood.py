"""Relative frequencies are the most likely probabilities; integrating them out, done by a sum over a grid of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.scores.log_likelihood import free_parameters, log_likelihood, log_marginal_likelihood
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


@pytest.mark.parametrize("prior", [1.0, 2.0, 3.5])
def test_the_average_likelihood_over_the_prior(prior: float) -> None:
    """A binary child with counts 3 and 5: the mean of p^3 (1 - p)^5 under Beta(a, a)."""
    p = (np.arange(20000) + 0.5) / 20000
    density = (p * (1 - p)) ** (prior - 1)
    average = (p**3 * (1 - p) ** 5 * density).sum() / density.sum()
    assert log_marginal_likelihood(np.array([[[3.0]], [[5.0]]]), prior) == pytest.approx(np.log(average), abs=1e-5)


def test_configurations_are_independent_and_empty_ones_say_nothing() -> None:
    counts = np.random.default_rng(0).integers(0, 9, (3, 4, 2)).astype(float)
    counts[:, 2, 1] = 0
    alone = [float(log_marginal_likelihood(counts[:, j : j + 1, c : c + 1], 0.5)) for j in range(4) for c in range(2)]
    assert log_marginal_likelihood(counts, 0.5) == pytest.approx(sum(alone), rel=1e-12)
    assert alone[5] == 0
