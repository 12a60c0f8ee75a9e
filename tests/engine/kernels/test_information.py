"""Mutual information against scikit-learn and triple loops; exactness at independence; rounding for comparison.

How much the class varies among levels: beside scipy's distributions, and on levels of known variance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import dirichlet_multinomial, multinomial
from sklearn.metrics import mutual_info_score

from bncli.engine.kernels.information import (
    CONCENTRATIONS,
    conditional_mutual_information,
    evidence_of_effects,
    mutual_information,
    rounded,
    variance_of_effects,
)
from tests import oracles

COUNTS = st.one_of(st.integers(0, 5).map(float), st.floats(0.01, 1e6))
PLANES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=COUNTS)
ARRAYS = hnp.arrays(np.float64, hnp.array_shapes(min_dims=3, max_dims=3, max_side=4), elements=COUNTS)


@given(PLANES)
def test_equals_a_loop(table: np.ndarray) -> None:
    expected = oracles.mutual_information(table) if table.sum() > 0 else 0.0
    assert mutual_information(table) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1))
def test_equals_scikit_learn(rows: list[tuple[int, int]]) -> None:
    table = np.zeros((4, 3))
    np.add.at(table, tuple(np.transpose(rows)), 1.0)
    assert mutual_information(table) == pytest.approx(mutual_info_score(*np.transpose(rows)), abs=1e-12)


@given(ARRAYS)
def test_conditional_equals_a_triple_loop(table: np.ndarray) -> None:
    expected = oracles.conditional_mutual_information(table) if table.sum() > 0 else 0.0
    assert conditional_mutual_information(table) == pytest.approx(expected, abs=1e-12)


@given(ARRAYS)
def test_conditional_is_symmetric_and_the_mean_of_its_slices(table: np.ndarray) -> None:
    value = conditional_mutual_information(table)
    assert value >= 0
    assert value == pytest.approx(conditional_mutual_information(table.transpose(1, 0, 2)), abs=1e-13)
    slices = [table[:, :, y] for y in range(table.shape[2])]
    mean = sum(s.sum() * mutual_information(s) for s in slices) / max(table.sum(), 1e-300)
    assert value == pytest.approx(mean, abs=1e-12)


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=5), st.lists(st.integers(0, 2000), min_size=1, max_size=5))
def test_exact_independence_gives_exactly_zero(rows: list[int], columns: list[int]) -> None:
    table = np.outer(rows, columns).astype(float)
    assert mutual_information(table) == 0.0
    assert conditional_mutual_information(np.stack([table, 3 * table, 0 * table], axis=2)) == 0.0


def test_determinism_gives_the_entropy() -> None:
    assert mutual_information(np.diag([5.0, 5.0])) == pytest.approx(np.log(2), rel=1e-15)


def test_near_independence_keeps_its_digits() -> None:
    """10^12 rows, one of four shifted: far below what a difference of entropies could tell from nothing."""
    table = np.array([[2.5e11 + 1, 2.5e11 - 1], [2.5e11 - 1, 2.5e11 + 1]])
    assert mutual_information(table) < 1e-15


@given(st.floats(1e-200, 1e200), st.integers(-3, 3))
def test_rounding_forgets_the_thirteenth_digit(value: float, ulps: int) -> None:
    near = value * (1 + ulps * 2.2e-16)
    once = rounded(np.array([value, near, -value, 0.0]))
    assert once[0] == pytest.approx(value, rel=5.1e-12)
    assert once[2] == -once[0]
    assert once[3] == 0.0
    assert rounded(once)[0] == pytest.approx(once[0], rel=1e-15)


def test_values_equal_to_twelve_digits_are_ties() -> None:
    a, b = rounded(np.array([0.123456789012, 0.1234567890120001]))
    assert a == b
    c, d = rounded(np.array([0.123456789012, 0.123456789013]))
    assert c != d


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


def test_the_variance_is_that_around_the_expected_frequencies() -> None:
    """Levels of two groups differ; around the frequencies of their groups they do not."""
    p = np.repeat((0.2, 0.7), 200)
    events = np.random.default_rng(4).binomial(50, p)
    counts = np.stack([50.0 - events, events], axis=1)
    assert variance_of_effects(counts) > 0.2
    assert variance_of_effects(counts, np.stack([1 - p, p], axis=1)) < 2e-3
    shares = np.tile(counts.sum(axis=0) / counts.sum(), (400, 1))
    assert variance_of_effects(counts, shares) == pytest.approx(variance_of_effects(counts), rel=1e-12)


def test_a_class_without_rows_changes_nothing() -> None:
    counts = np.random.default_rng(3).poisson(4, (30, 3)).astype(np.float64)
    wider = np.insert(counts, 1, 0.0, axis=1)
    assert variance_of_effects(wider) == variance_of_effects(counts)
    assert evidence_of_effects(wider) == evidence_of_effects(counts)
