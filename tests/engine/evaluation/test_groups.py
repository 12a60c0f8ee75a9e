"""Figures by group: against scikit-learn on slices of the rows, scipy's Wilson intervals and plain sums over pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_softmax
from sklearn import metrics

from bncli.engine.evaluation.groups import (
    GroupColumn,
    GroupGap,
    Z,
    auc_interval,
    compare_groups,
    confusion_intervals,
    mean_interval,
    measure_groups,
    wilson_interval,
)
from bncli.engine.evaluation.metrics import METRICS
from bncli.engine.kernels.arrays import Array, Integers

LABELS = ("no", "yes", "perhaps")


def drawn(n_labels: int, n_rows: int = 300, seed: int = 0) -> tuple[Array, Integers, GroupColumn]:
    rng = np.random.default_rng(seed)
    log_p = log_softmax(2 * rng.normal(size=(n_labels, n_rows)), axis=0)
    column = GroupColumn("g", ("a", "b", "empty", None), rng.choice([0, 1, 3], n_rows, p=[0.5, 0.3, 0.2]))
    return log_p, rng.integers(0, n_labels, n_rows), column


@pytest.mark.parametrize("n_labels", [2, 3])
def test_every_figure_is_that_of_scikit_learn_on_the_slice(n_labels: int) -> None:
    log_p, true, column = drawn(n_labels)
    groups = measure_groups(column, LABELS[:n_labels], log_p, true, None)
    assert [group.value for group in groups] == ["a", "b", None]
    for group, code in zip(groups, (0, 1, 3), strict=True):
        rows = column.codes == code
        y, p, told = true[rows], np.exp(log_p[:, rows]).T, log_p[:, rows].argmax(axis=0)
        assert group.rows == rows.sum()
        figures = group.metrics
        assert figures["accuracy"] == pytest.approx(metrics.accuracy_score(y, told))
        assert figures["log_loss"] == pytest.approx(metrics.log_loss(y, p, labels=range(n_labels)))
        assert figures["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, told))
        assert figures["mcc"] == pytest.approx(metrics.matthews_corrcoef(y, told))
        area = metrics.roc_auc_score(y, p[:, 1] if n_labels == 2 else p, multi_class="ovo")
        assert figures["auc"] == pytest.approx(area)
        assert set(figures) == set(METRICS)
        for label, rates in group.rates.items():
            c = LABELS.index(label)
            expected = {
                "selection_rate": np.mean(told == c),
                "true_positive_rate": metrics.recall_score(y == c, told == c),
                "false_positive_rate": np.mean(told[y != c] == c),
            }
            for name, share in expected.items():
                rate = rates[name]
                assert rate is not None
                assert rate.share == pytest.approx(share)
    assert set(groups[0].rates) == ({"yes"} if n_labels == 2 else set(LABELS))


def test_gaps_are_those_of_the_formulas() -> None:
    log_p, true, column = drawn(2)
    groups = measure_groups(column, LABELS[:2], log_p, true, None)
    told = log_p.argmax(axis=0)
    (fairness,) = compare_groups(groups)
    slices = [column.codes == code for code in (0, 1, 3)]
    selected = [np.mean(told[rows]) for rows in slices]
    found = [[np.mean(told[rows & (true == c)]) for rows in slices] for c in (1, 0)]
    assert fairness.gaps["selection_rate"] == pytest.approx(
        (max(selected) - min(selected), min(selected) / max(selected))
    )
    assert fairness.equalized_odds == pytest.approx(
        (max(max(f) - min(f) for f in found), min(min(f) / max(f) for f in found))
    )


def test_weights_count_as_rows() -> None:
    log_p, true, column = drawn(2, 60)
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    twice = np.concatenate([np.arange(60), np.arange(20)])
    ours = measure_groups(column, LABELS[:2], log_p, true, weights)
    theirs = measure_groups(
        GroupColumn("g", column.values, column.codes[twice]), LABELS[:2], log_p[:, twice], true[twice], None
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.weight == other.rows
        assert one.metrics == pytest.approx(other.metrics)
        for name, bounds in one.intervals.items():
            assert bounds == pytest.approx(other.intervals[name]), name


def test_a_group_of_one_row_has_what_is_defined_and_no_nan() -> None:
    log_p = np.log([[0.2], [0.8]])
    (group,) = measure_groups(GroupColumn("g", ("a",), np.array([0])), LABELS[:2], log_p, np.array([1]), None)
    assert group.metrics["auc"] is None
    assert group.intervals["log_loss"] is None
    assert group.intervals["auc"] is None
    rates = group.rates["yes"]
    assert rates["false_positive_rate"] is None
    assert rates["true_positive_rate"] is not None
    assert all(value is None or math.isfinite(value) for value in group.metrics.values())
    assert compare_groups([group])[0].gaps == dict.fromkeys(group.rates["yes"])
    assert compare_groups([group])[0].equalized_odds is None


def test_a_ratio_of_nothing_to_nothing_is_none() -> None:
    log_p = np.log([[0.9, 0.9], [0.1, 0.1]])
    groups = measure_groups(GroupColumn("g", ("a", "b"), np.array([0, 1])), LABELS[:2], log_p, np.array([1, 1]), None)
    assert compare_groups(groups)[0].gaps["selection_rate"] == GroupGap(0.0, None)


@given(st.integers(0, 50), st.integers(1, 50))
def test_shares_have_the_interval_of_wilson_interval(hits: int, misses: int) -> None:
    n = hits + misses
    expected = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(hits / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 12))
def test_the_interval_of_an_area_is_that_of_delong_by_pairs(seed: int, n_positive: int, n_negative: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 6, n_positive).astype(float), rng.integers(0, 6, n_negative).astype(float)
    wins = (one[:, None] > other) + (one[:, None] == other) / 2
    spread = np.var(wins.mean(axis=1), ddof=1) / n_positive + np.var(wins.mean(axis=0), ddof=1) / n_negative
    half = Z * math.sqrt(spread)
    scores, positive = np.concatenate([one, other]), np.repeat([True, False], [n_positive, n_negative])
    found = auc_interval(scores, positive, np.ones(len(scores)))
    assert found == pytest.approx((max(0, wins.mean() - half), min(1, wins.mean() + half)), abs=1e-9)


def test_a_mean_has_the_normal_interval() -> None:
    values = np.array([1.0, 2.0, 4.0, 7.0])
    half = 1.959964 * stats.sem(values)
    assert mean_interval(values, np.ones(4)) == pytest.approx((3.5 - half, 3.5 + half), rel=1e-6)
    assert mean_interval(values[:1], np.ones(1)) is None


def test_intervals_of_the_confusion_hold_the_figure_and_shrink_with_rows() -> None:
    few, many = np.array([[20, 5], [7, 30]]), 100 * np.array([[20, 5], [7, 30]])
    for name, value in (("mcc", 0.5993), ("balanced_accuracy", 0.8054)):
        low, high = confusion_intervals(few)[name]
        assert low < value < high
        nearer = confusion_intervals(many)[name]
        assert low < nearer[0] < value < nearer[1] < high
    low, high = confusion_intervals(few)["balanced_accuracy"]
    spread = math.sqrt((0.8 * 0.2 / 25 + 30 / 37 * 7 / 37 / 37) / 4)  # two shares, averaged
    assert (high - low) / 2 == pytest.approx(Z * spread, rel=0.15)
