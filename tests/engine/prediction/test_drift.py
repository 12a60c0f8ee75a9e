"""The index of drift and its test: SciPy as an oracle, false alarms by simulation, drift that is caught."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.prediction.monitoring import ALPHA, LEAST_PSI, drift_of, homogeneity, psi, unknown_probability

COUNTS = st.lists(st.tuples(st.integers(5, 400), st.integers(5, 400)), min_size=2, max_size=8)


@given(COUNTS)
def test_psi_is_its_formula(pairs: list[tuple[int, int]]) -> None:
    new, old = np.array(pairs, np.float64).T
    a, e = new / new.sum(), old / old.sum()
    expected = math.fsum((x - y) * math.log(x / y) for x, y in zip(a, e, strict=True))
    assert psi(new, old) == pytest.approx(expected, abs=1e-12)
    symmetric = stats.entropy(a, e) + stats.entropy(e, a)
    assert psi(new, old) == pytest.approx(symmetric, abs=1e-12)


@given(COUNTS)
def test_p_is_that_of_a_contingency_table(pairs: list[tuple[int, int]]) -> None:
    new, old = np.array(pairs, np.float64).T
    oracle = stats.chi2_contingency(np.stack([new, old]), correction=False)
    # values expected less than once are joined with others
    assume(oracle.expected_freq[0].min() >= 1)
    assert homogeneity(new, old) == pytest.approx(oracle.pvalue, abs=1e-10)


@given(st.integers(0, 5), st.integers(1, 40), st.integers(0, 5), st.integers(100, 3000))
def test_p_of_a_rare_value_is_exact(rare: int, common: int, rare_before: int, common_before: int) -> None:
    table = np.array([[rare, common], [rare_before, common_before]])
    expected = table[:, 0].sum() * table[0].sum() / table.sum()
    assume(rare + rare_before > 0)
    assume(expected < 0.999)
    oracle = stats.fisher_exact(table, alternative="greater")
    assert homogeneity(*table.astype(np.float64)) == pytest.approx(oracle.pvalue, rel=1e-8)


def test_p_nears_that_of_a_single_sample_where_training_is_large() -> None:
    new, old = np.array([30.0, 50.0, 40.0]), np.array([3e7, 4e7, 5e7])
    expected = stats.chisquare(new, old / old.sum() * new.sum())
    assert homogeneity(new, old) == pytest.approx(expected.pvalue, rel=1e-4)


@given(st.integers(0, 6), st.integers(1, 30), st.integers(1, 60))
def test_values_that_training_never_had(unknown: int, known: int, n_training: int) -> None:
    n = known + unknown
    table = [[unknown, known], [0, n_training]]
    expected = stats.fisher_exact(table, alternative="greater").pvalue
    assert unknown_probability(unknown, n, n_training) == pytest.approx(expected, rel=1e-9)


def test_a_value_that_one_side_lacks_is_half_a_row() -> None:
    a, e = (0.5 / 100, 1.0), (0.5, 0.5)
    expected = sum((x - y) * math.log(x / y) for x, y in zip(a, e, strict=True))
    assert psi(np.array([0.0, 100.0]), np.array([50.0, 50.0])) == pytest.approx(expected)


def test_rare_values_count_together() -> None:
    """One row of a rare level is no drift, however small the level's share was."""
    training = np.array([100_000.0, 3.0, 2.0, 1.0])
    assert homogeneity(np.array([0.0, 0.0, 0.0, 1.0]), training) == 1.0
    assert not drift_of(np.array([0.0, 0.0, 0.0, 1.0]), training, 0, 2).drifted


@pytest.mark.parametrize("n", [20, 100, 1000])
@pytest.mark.parametrize("kind", ["even", "skewed", "two"])
def test_false_alarms_are_as_rare_as_promised(n: int, kind: str) -> None:
    """Reports of ten attributes each, without drift: the binomial 99.9 % bound of the share that is allowed."""
    shares = {"even": np.ones(6) / 6, "skewed": 0.5 ** np.arange(1, 9), "two": np.array([0.95, 0.05])}[kind]
    shares = shares / shares.sum()
    rng = np.random.default_rng(n)
    reports, attributes = 300, 10
    alarms = 0
    for _ in range(reports):
        new = rng.multinomial(n, shares, attributes).astype(np.float64)
        old = rng.multinomial(1500, shares, attributes).astype(np.float64)
        alarms += any(drift_of(*pair, 0, 2 * attributes).drifted for pair in zip(new, old, strict=True))
    assert alarms <= stats.binom.ppf(0.999, reports, ALPHA)


def test_the_mean_of_psi_without_drift() -> None:
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    rng = np.random.default_rng(5)
    new, old = rng.multinomial(400, shares, 2000), rng.multinomial(900, shares, 2000)
    found = [psi(*pair) for pair in zip(new.astype(float), old.astype(float), strict=True)]
    told = drift_of(new[0].astype(float), old[0].astype(float), 0, 2)
    assert told.psi_expected == pytest.approx(3 * (1 / 400 + 1 / 900))
    assert np.mean(found) == pytest.approx(told.psi_expected, rel=0.1)
    assert told.psi_limit is not None
    assert np.mean(np.array(found) > told.psi_limit) == pytest.approx(ALPHA / 2, abs=0.005)


def test_drift_is_caught_where_it_matters_and_is_sure() -> None:
    training = np.array([5000.0, 3000.0, 2000.0])
    moved, hardly = np.array([200.0, 300.0, 500.0]), np.array([52_000.0, 30_000.0, 18_000.0])
    assert drift_of(moved, training, 0, 20).drifted
    sure = drift_of(hardly, training, 0, 20)  # so many rows make the smallest change sure, and none of it matters
    assert sure.psi is not None
    assert sure.p is not None
    assert sure.p < 1e-4
    assert sure.psi < LEAST_PSI
    assert not sure.drifted
    unsure = drift_of(np.array([1.0, 2.0, 3.0]), training, 0, 20)
    assert unsure.psi is not None
    assert unsure.psi > LEAST_PSI
    assert not unsure.drifted


def test_values_never_seen_are_drift() -> None:
    training, same = np.array([500.0, 300.0]), np.array([50.0, 30.0])
    assert drift_of(same, training, 20, 10).drifted
    assert not drift_of(same, training, 3, 10).drifted
    alone = drift_of(np.zeros(2), training, 20, 10)
    assert alone.psi is None
    assert alone.drifted
