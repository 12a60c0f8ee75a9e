"""Expected figures: formulas by brute force over all pairs and all labellings, and by drawing labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.evaluation.metrics import measure
from bncli.engine.kernels.arrays import Array
from bncli.engine.prediction.expected_figures import WIDTH, LogOddsCounts, row_entropies, sum_of_draws

ODDS = st.lists(st.floats(-8, 8), min_size=2, max_size=12)


def counted(log_odds: Sequence[float] | Array, labels: Array | None = None) -> LogOddsCounts:
    counts = LogOddsCounts()
    counts.add(np.asarray(log_odds, np.float64), labels)
    return counts


def brute_auc(log_odds: Sequence[float]) -> float:
    p = [1 / (1 + math.exp(-s)) for s in log_odds]
    pairs = [(i, j) for i, j in itertools.permutations(range(len(p)), 2)]
    wins = [p[i] * (1 - p[j]) * ((log_odds[i] > log_odds[j]) + (log_odds[i] == log_odds[j]) / 2) for i, j in pairs]
    return math.fsum(wins) / math.fsum(p[i] * (1 - p[j]) for i, j in pairs)


@given(ODDS)
def test_auc_is_the_sum_over_pairs(log_odds: list[float]) -> None:
    assert counted(log_odds).expected_auc().value == pytest.approx(brute_auc(log_odds), abs=0.75 * WIDTH)


@given(ODDS)
def test_auc_is_exact_at_the_middle_of_intervals(log_odds: list[float]) -> None:
    """Which leaves no room for an error of the formula, such as a row that is paired with itself."""
    rounded = [round(s) / 2 for s in log_odds]
    assert counted(rounded).expected_auc().value == pytest.approx(brute_auc(rounded), abs=1e-9)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_measured_auc_is_that_of_evaluate(scores: list[int]) -> None:
    rng = np.random.default_rng(len(scores))
    labels = rng.integers(0, 2, len(scores))
    log_odds = np.array(scores, np.float64)
    log_p = np.stack([-np.logaddexp(0.0, log_odds), -np.logaddexp(0.0, -log_odds)])
    found, expected = counted(log_odds, labels).measured_auc(), measure(log_p, labels).auc
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(st.integers(2, 4), st.integers(1, 5), st.integers(0, 1000))
def test_mean_and_variance_of_all_labellings(n_labels: int, n_rows: int, seed: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(n_labels), n_rows).T
    means, variances = row_entropies(np.log(p))
    labellings = list(itertools.product(range(n_labels), repeat=n_rows))
    chances = np.array([math.prod(p[y, t] for t, y in enumerate(labels)) for labels in labellings])
    losses = np.array([-sum(math.log(p[y, t]) for t, y in enumerate(labels)) for labels in labellings])
    assert means.sum() == pytest.approx(chances @ losses)
    assert variances.sum() == pytest.approx(chances @ np.square(losses) - (chances @ losses) ** 2, abs=1e-9)


def test_a_probability_of_zero_has_no_part_in_the_entropy() -> None:
    with np.errstate(divide="ignore"):
        means, variances = row_entropies(np.log(np.array([[1.0, 0.5], [0.0, 0.5]])))
    assert means.tolist() == pytest.approx([0.0, math.log(2)])
    assert variances.tolist() == pytest.approx([0.0, 0.0])


def test_intervals_are_those_of_drawn_labels() -> None:
    """Limits against 20,000 drawn labellings; a limit of 500 draws has a standard error of about 0.1 half-widths."""
    rng = np.random.default_rng(3)
    log_odds = np.round(rng.normal(0, 1.5, 300), 3)
    p = 1 / (1 + np.exp(-log_odds))
    events = rng.random((20_000, 300)) < p
    correct = np.where(p > 0.5, events, ~events).mean(axis=1)
    confidence = np.maximum(p, 1 - p)
    accuracy = sum_of_draws(300, confidence.sum(), (confidence * (1 - confidence)).sum(), 1.0)
    order = np.argsort(log_odds, kind="stable")
    ranks = np.empty(300)
    for value in np.unique(log_odds):
        ranks[log_odds == value] = np.flatnonzero(log_odds[order] == value).mean() + 1
    n_events = events.sum(axis=1)
    areas = (events @ ranks - n_events * (n_events + 1) / 2) / (n_events * (300 - n_events))
    auc = counted(log_odds).expected_auc()
    for figure, drawn in ((accuracy, correct), (auc, areas)):
        low, high = np.quantile(drawn, (0.025, 0.975))
        assert figure.value == pytest.approx(drawn.mean(), abs=0.002)
        assert figure.interval == pytest.approx((low, high), abs=0.2 * (high - low))


def test_what_is_undefined_is_none() -> None:
    assert counted([]).expected_auc().value is None
    assert counted([1.0]).expected_auc().value is None
    sure = counted([800.0, 900.0]).expected_auc()
    assert (sure.value, sure.interval) == (None, None)
    rare = counted([-9.0, -8.0, -7.0]).expected_auc()
    assert rare.value is not None
    assert rare.interval is None
    assert sum_of_draws(0, 0.0, 0.0, 1.0).value is None


def test_counts_of_parts_add_up() -> None:
    rng = np.random.default_rng(0)
    log_odds, labels = rng.normal(size=50), rng.integers(-1, 2, 50)
    parts = counted(log_odds[:20], labels[:20])
    parts.merge(counted(log_odds[20:], labels[20:]))
    whole = counted(log_odds, labels)
    assert list(parts) == list(whole)
    assert parts.expected_auc() == whole.expected_auc()
