"""Reliability, Brier's parts and ECE over bins of equal weight: against scikit-learn and the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from bncli.engine.evaluation.metrics import measure
from bncli.engine.evaluation.reliability import calibration_figures

LABELS = ("a", "b", "c")


@pytest.mark.parametrize("n_labels", [2, 3])
def test_bins_are_those_of_scikit_learn(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    log_p, true = log_softmax(rng.normal(size=(n_labels, 1000)), axis=0), rng.integers(0, n_labels, 1000)
    found = calibration_figures(LABELS[:n_labels], log_p, true)
    assert {one.label for one in found.bins} == ({"b"} if n_labels == 2 else set(LABELS))
    for c in [1] if n_labels == 2 else range(n_labels):
        p = np.exp(log_p[c])
        own = [one for one in found.bins if one.label == LABELS[c]]
        share, mean = calibration_curve(true == c, p, n_bins=10, strategy="quantile")
        assert [one.frequency for one in own] == pytest.approx(share, abs=0.011)  # a row more or less at the edges
        assert [one.mean_p for one in own] == pytest.approx(mean, abs=2e-3)
        for one in own:
            inside = (p >= one.low) & (p <= one.high)
            assert one.rows == inside.sum()
            assert one.frequency == pytest.approx(np.mean(true[inside] == c))
            assert one.mean_p == pytest.approx(p[inside].mean())
            wilson = stats.binomtest(int((true[inside] == c).sum()), int(one.rows)).proportion_ci(method="wilson")
            assert (one.low95, one.high95) == pytest.approx((wilson.low, wilson.high))


def test_the_parts_of_brier_add_up_and_are_exact_where_bins_hold_one_probability() -> None:
    p = np.repeat([0.1, 0.4, 0.8], [40, 30, 30])
    true = np.concatenate([np.arange(40) < 8, np.arange(30) < 15, np.arange(30) < 21]).astype(int)
    log_p = np.log([1 - p, p])
    found = calibration_figures(LABELS[:2], log_p, true)
    parts, brier = found.brier_parts, 2 * brier_score_loss(true, p)
    assert parts.within_bins == pytest.approx(0, abs=1e-12)
    assert parts.reliability == pytest.approx(2 * (0.4 * 0.1**2 + 0.3 * 0.1**2 + 0.3 * 0.1**2))
    assert parts.uncertainty == pytest.approx(2 * 0.44 * 0.56)
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(brier)
    expected = 0.4 * abs(0.9 - 32 / 40) + 0.3 * abs(0.6 - 0.5) + 0.3 * abs(0.8 - 0.7)
    assert found.ece_equal_mass == pytest.approx(expected)


def test_weights_count_as_rows_and_the_sum_is_the_brier_score() -> None:
    rng = np.random.default_rng(1)
    log_p, true = log_softmax(rng.normal(size=(3, 90)), axis=0), rng.integers(0, 3, 90)
    weights = np.where(np.arange(90) < 30, 2.0, 1.0)
    twice = np.concatenate([np.arange(90), np.arange(30)])
    one = calibration_figures(LABELS, log_p, true, weights)
    other = calibration_figures(LABELS, log_p[:, twice], true[twice])
    assert one.brier_parts == pytest.approx(other.brier_parts)
    assert one.ece_equal_mass == pytest.approx(other.ece_equal_mass)
    assert [b.frequency for b in one.bins] == pytest.approx([b.frequency for b in other.bins])
    r, s, u, w = one.brier_parts
    assert r - s + u + w == pytest.approx(measure(log_p, true, weights).brier)
