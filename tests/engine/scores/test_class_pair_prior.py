"""The constants of aCLL under a distribution that is typed: closed forms, the paper's estimates, draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bncli.engine.scores.acll_approximation import dirichlet, line_of, uniform
from bncli.errors import BncliError


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_the_usual_distribution_typed(n_labels: int) -> None:
    ones = ",".join(["1"] * n_labels)
    for prior in ("1,1000", f"{ones},1000"):
        np.testing.assert_allclose(line_of(prior, n_labels), dirichlet(n_labels, 1000.0), rtol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_papers_own_estimates(n_labels: int) -> None:
    """Dir(1, 1, 1000) and Dir(1, 1, 1, 1000) by m = 100,000 draws (section 3.1.3, the minus of gamma restored)."""
    beta, gamma = {2: (0.39291, -0.61698), 3: (0.239266, -0.6085)}[n_labels]
    line = line_of("1,1000:100000:3", n_labels)
    for found in (line, line_of("1,1000", n_labels)):
        assert found.beta == pytest.approx(beta, abs=0.004)
        # beta's error times the mean of B, about -15
        assert found.gamma == pytest.approx(gamma, abs=0.06)


@pytest.mark.parametrize("prior", ["1,1000", "0.5,3", "2,1,4,50", "0.3,5,1,0.7"])
def test_closed_form_and_draws_agree_within_sampling_error(prior: str) -> None:
    """20 estimates of 20,000 draws: their mean is within four standard errors, and they spread as they should."""
    n_labels = 2 if prior.count(",") == 1 else 3
    exact = line_of(prior, n_labels)
    for k in (0, 1):
        drawn = np.array([float(line_of(f"{prior}:20000:{seed}", n_labels)[k]) for seed in range(20)])
        assert abs(drawn.mean() - float(exact[k])) < 4 * drawn.std(ddof=1) / math.sqrt(20)
        assert 0 < drawn.std(ddof=1) < 0.05


@pytest.mark.parametrize("n_labels", [2, 4])
def test_independent_uniform_numbers_are_those_of_acll_uniform(n_labels: int) -> None:
    line = line_of("beta,1,1:400000:1", n_labels)
    assert line.beta == pytest.approx(uniform(n_labels).beta, abs=0.002)
    assert line.gamma == pytest.approx(uniform(n_labels).gamma, abs=0.01)


def test_draws_depend_on_the_seed_alone() -> None:
    assert line_of("1,10:1000:1", 2) != line_of("1,10:1000:2", 2)
    once = line_of("1,10:1000:1", 2)
    line_of.cache_clear()
    assert line_of("1,10:1000:1", 2) == once


def test_numbers_of_other_classes_are_refused() -> None:
    with pytest.raises(BncliError, match="has 4 numbers, but there are 2 classes"):
        line_of("1,1,1,1000", 2)


@pytest.mark.parametrize("shape", ["1e-3,1e-3", "1e12,1e12", "1e-3,1e12", "1e12,1e-3"])
@pytest.mark.parametrize("draws", ["", ":100"])
def test_extreme_numbers_have_finite_lines(shape: str, draws: str) -> None:
    for n_labels in (2, 30):
        line = line_of(shape + draws, n_labels)
        assert np.isfinite(line.beta)
        assert np.isfinite(line.gamma)
