"""Figures by group: against scikit-learn on slices of the rows, scipy's Wilson intervals and plain sums over pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn import metrics

from bncli.engine.evaluation.groups import (
    GroupColumn,
    GroupGap,
    compare_groups,
    measure_groups,
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
    twice = np.repeat(np.arange(60), weights.astype(int))
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
