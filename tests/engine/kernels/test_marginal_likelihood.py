"""Integrating the parameters out, done by a sum over a grid of them."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.kernels.marginal_likelihood import log_marginal_likelihood


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
