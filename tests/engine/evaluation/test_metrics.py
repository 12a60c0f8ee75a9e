"""Metrics against scikit-learn and against direct loops over rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.evaluation.metrics import METRICS, measure
from bncli.errors import BncliError

Floats = NDArray[np.float64]


def random_case(
    seed: int, n: int, k: int, coarse: bool, weighted: bool
) -> tuple[Floats, NDArray[np.intp], Floats | None]:
    """Probabilities (K, N); coarse ones have many ties."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 4, (k, n)).astype(np.float64) if coarse else rng.random((k, n)) + 0.01
    weights = rng.integers(0, 4, n) / 2 if weighted else None
    if weights is not None:
        weights[0] = 1.0
    return scores / scores.sum(axis=0), rng.integers(0, k, n), weights


def slow_pair(p: Floats, labels: NDArray[np.intp], weights: Floats, i: int, j: int) -> float | None:
    """The chance that class i's probability ranks a row of class i above one of class j."""
    won = total = 0.0
    for s in range(len(labels)):
        for t in range(len(labels)):
            if labels[s] == i and labels[t] == j:
                pair = weights[s] * weights[t]
                total += pair
                won += pair * (1.0 if p[i, s] > p[i, t] else 0.5 if p[i, s] == p[i, t] else 0.0)
    return won / total if total else None


def slow_auc(p: Floats, labels: NDArray[np.intp], weights: Floats) -> float | None:
    k = len(p)
    areas = []
    for i in range(k):
        for j in range(i):
            one, other = slow_pair(p, labels, weights, i, j), slow_pair(p, labels, weights, j, i)
            if one is not None and other is not None:
                areas.append((one + other) / 2)
    return sum(areas) / len(areas) if areas else None


cases = given(st.integers(0, 9999), st.integers(1, 25), st.integers(2, 5), st.booleans(), st.booleans())


@cases
def test_equals_direct_loops(seed: int, n: int, k: int, coarse: bool, weighted: bool) -> None:
    p, labels, weights = random_case(seed, n, k, coarse, weighted)
    w = np.ones(n) if weights is None else weights
    found = measure(np.log(p), labels, weights)
    rows = range(n)
    predicted = [max(range(k), key=lambda c: (np.log(p[c, t]), -c)) for t in rows]
    right = [predicted[t] == labels[t] for t in rows]
    total = w.sum()
    assert found.accuracy == pytest.approx(sum(w[t] for t in rows if right[t]) / total)
    assert found.error == pytest.approx(1 - found.accuracy)
    assert found.cll == pytest.approx(sum(w[t] * math.log(p[labels[t], t]) for t in rows))
    assert found.log_loss == pytest.approx(-found.cll / total)
    assert found.rmse == pytest.approx(math.sqrt(sum(w[t] * (1 - p[labels[t], t]) ** 2 for t in rows) / total))
    brier = sum(w[t] * sum((p[c, t] - (c == labels[t])) ** 2 for c in range(k)) for t in rows) / total
    assert found.brier == pytest.approx(brier)
    expected_auc = slow_auc(np.log(p), labels, w)
    assert found.auc == (None if expected_auc is None else pytest.approx(expected_auc))
    for true in range(k):
        for c in range(k):
            assert found.confusion[true, c] == sum(w[t] for t in rows if labels[t] == true and predicted[t] == c)
    assert found.confusion.dtype == (np.float64 if weighted else np.int64)


@cases
def test_calibration_equals_a_loop_over_bins(seed: int, n: int, k: int, coarse: bool, weighted: bool) -> None:
    p, labels, weights = random_case(seed, n, k, coarse, weighted)
    w = np.ones(n) if weights is None else weights
    log_p = np.log(p)
    confidence, right = np.exp(log_p).max(axis=0), log_p.argmax(axis=0) == labels
    expected = 0.0
    for b in range(10):
        inside = (confidence > b / 10) & (confidence <= (b + 1) / 10)
        expected += abs((w * right)[inside].sum() - (w * confidence)[inside].sum()) / w.sum()
    assert measure(log_p, labels, weights).ece == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 4])
def test_equals_scikit_learn(k: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    p, labels, weights = random_case(5, 400, k, False, True)
    assert weights is not None
    found = measure(np.log(p), labels, weights)
    assert found.log_loss == pytest.approx(metrics.log_loss(labels, p.T, sample_weight=weights))
    assert found.accuracy == pytest.approx(metrics.accuracy_score(labels, p.argmax(axis=0), sample_weight=weights))
    assert np.allclose(found.confusion, metrics.confusion_matrix(labels, p.argmax(axis=0), sample_weight=weights))
    predicted = p.argmax(axis=0)
    balanced = metrics.balanced_accuracy_score(labels, predicted, sample_weight=weights)
    assert found.balanced_accuracy == pytest.approx(balanced)
    assert found.mcc == pytest.approx(metrics.matthews_corrcoef(labels, predicted, sample_weight=weights))
    if k == 2:
        assert found.auc == pytest.approx(metrics.roc_auc_score(labels, p[1], sample_weight=weights))
        assert found.brier == pytest.approx(2 * metrics.brier_score_loss(labels, p[1], sample_weight=weights))
    else:
        unweighted = measure(np.log(p), labels)
        assert unweighted.auc == pytest.approx(metrics.roc_auc_score(labels, p.T, multi_class="ovo", average="macro"))


def test_certain_and_hopeless_predictions_stay_finite() -> None:
    log_p = np.array([[0.0, -1e4], [-1e4, 0.0]])
    good = measure(log_p, np.array([0, 1]))
    assert (good.accuracy, good.log_loss, good.rmse, good.brier, good.auc, good.ece) == (1, 0, 0, 0, 1, 0)
    bad = measure(log_p, np.array([1, 0]))
    assert (bad.accuracy, bad.log_loss, bad.rmse, bad.brier, bad.auc, bad.ece) == (0, 1e4, 1, 2, 0, 1)


def test_ranking_survives_probabilities_that_round_to_one() -> None:
    margins = np.array([40.0, 50.0, 60.0, 70.0])
    log_p = np.array([-margins, -np.log1p(np.exp(-margins))])
    assert measure(log_p, np.array([0, 0, 1, 1])).auc == 1.0


def test_one_class_has_no_auc_and_a_tie_goes_to_the_first_label() -> None:
    found = measure(np.log(np.full((3, 4), 1 / 3)), np.zeros(4, np.uint8))
    assert (found.auc, found.accuracy) == (None, 1.0)


def test_no_rows_are_an_error() -> None:
    with pytest.raises(BncliError, match="no rows to measure"):
        measure(np.zeros((2, 0)), np.zeros(0, np.intp))
    with pytest.raises(BncliError, match="no rows to measure"):
        measure(np.log([[0.5], [0.5]]), np.zeros(1, np.intp), np.zeros(1))


def test_figures_are_the_metrics_by_name() -> None:
    found = measure(np.log(np.full((2, 3), 1 / 2)), np.array([0, 1, 1]))
    figures = found.figures()
    assert tuple(figures) == METRICS
    assert (figures["error"], figures["cll"]) == (found.error, found.cll)
