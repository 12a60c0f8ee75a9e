"""How much the class varies among levels: beside scipy's distributions, and on levels of known variance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import dirichlet_multinomial, multinomial

from bncli.engine.kernels.level_variation import CONCENTRATIONS, evidence_of_effects, variance_of_effects


def test_the_evidence_is_a_ratio_of_two_distributions() -> None:
    counts = np.random.default_rng(0).multinomial(9, [0.2, 0.5, 0.3], 12).astype(np.float64)
    shares, n = counts.sum(axis=0) / counts.sum(), counts.sum(axis=1)
    vary = [sum(dirichlet_multinomial.logpmf(c, a * shares, int(c.sum())) for c in counts) for a in CONCENTRATIONS]
    same = sum(multinomial.logpmf(c, int(m), shares) for c, m in zip(counts, n, strict=True))
    assert evidence_of_effects(counts) == pytest.approx(max(vary) - same, rel=1e-9)


@pytest.mark.parametrize("deviation", [0.3, 0.6, 1.0])
def test_the_variance_of_normal_effects_is_found(deviation: float) -> None:
    """Log-odds of two classes are differences of two effects: each has half their variance."""
    rng = np.random.default_rng(1)
    p = 1 / (1 + np.exp(-rng.normal(0, deviation, 800)))
    events = rng.binomial(200, p)
    counts = np.stack([200.0 - events, events], axis=1)
    # concentrations are a factor of 2 apart
    assert deviation**2 / 2 / 1.6 < variance_of_effects(counts) < deviation**2 / 2 * 1.6
    assert evidence_of_effects(counts) > 100


def test_levels_that_do_not_vary_have_hardly_any_variance() -> None:
    events = np.random.default_rng(2).binomial(50, 0.3, 400)
    counts = np.stack([50.0 - events, events], axis=1)
    assert variance_of_effects(counts) < 1e-3
    assert evidence_of_effects(counts) < 2


def test_a_class_without_rows_changes_nothing() -> None:
    counts = np.random.default_rng(3).poisson(4, (30, 3)).astype(np.float64)
    wider = np.insert(counts, 1, 0.0, axis=1)
    assert variance_of_effects(wider) == variance_of_effects(counts)
    assert evidence_of_effects(wider) == evidence_of_effects(counts)
