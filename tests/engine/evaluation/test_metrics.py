"""Metrics against scikit-learn and direct loops; confusion, baseline, bias and variance against their definitions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from bncli.engine.evaluation import metrics as metrics_module
from bncli.engine.evaluation.metrics import (
    METRICS,
    BiasVariance,
    balanced_accuracy,
    bias_variance,
    class_frequencies,
    matthews_correlation,
    measure,
    measure_baseline,
    measure_labels,
    skill_score,
)
from bncli.errors import BncliError

Floats = NDArray[np.float64]


def random_case(
    seed: int, n: int, k: int, coarse: bool, weighted: bool
) -> tuple[Floats, NDArray[np.intp], Floats | None]:
    """Return probabilities (K, N), labels and weights; coarse probabilities have many ties."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 4, (k, n)).astype(np.float64) if coarse else rng.random((k, n)) + 0.01
    weights = rng.integers(0, 4, n) / 2 if weighted else None
    if weights is not None:
        weights[0] = 1.0
    return scores / scores.sum(axis=0), rng.integers(0, k, n), weights


def slow_pair(p: Floats, labels: NDArray[np.intp], weights: Floats, i: int, j: int) -> float | None:
    """Return the chance that the probability of class i ranks a row of class i above one of class j."""
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
    with pytest.raises(BncliError, match="no rows to evaluate"):
        measure(np.zeros((2, 0)), np.zeros(0, np.intp))
    with pytest.raises(BncliError, match="no rows to evaluate"):
        measure(np.log([[0.5], [0.5]]), np.zeros(1, np.intp), np.zeros(1))


def test_metrics_by_name() -> None:
    found = measure(np.log(np.full((2, 3), 1 / 2)), np.array([0, 1, 1]))
    figures = found.by_name()
    assert tuple(figures) == METRICS
    assert (figures["error"], figures["cll"]) == (found.error, found.cll)


confusion_cases = given(st.integers(0, 9999), st.integers(1, 30), st.integers(2, 5), st.booleans())


def random_labels(seed: int, n: int, k: int, weighted: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return few rows, so that some labels are absent and some are never predicted."""
    rng = np.random.default_rng(seed)
    skew = rng.dirichlet(np.full(k, 0.5), 2)
    true, predicted = (rng.choice(k, n, p=p) for p in skew)
    return true, np.where(rng.random(n) < 0.5, true, predicted), rng.random(n) + 0.01 if weighted else None


@confusion_cases
def test_label_metrics_equal_those_of_scikit_learn(seed: int, n: int, k: int, weighted: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    true, predicted, weights = random_labels(seed, n, k, weighted)
    confusion = metrics.confusion_matrix(true, predicted, labels=range(k), sample_weight=weights)
    expected = metrics.precision_recall_fscore_support(
        true, predicted, labels=range(k), sample_weight=weights, zero_division=np.nan
    )
    found = np.array([[math.nan if x is None else x for x in figures] for figures in measure_labels(confusion)])
    assert np.allclose(found.T, np.array(expected), rtol=1e-12, atol=0, equal_nan=True)
    if len(set(true) | set(predicted)) > 1:  # else scikit-learn warns
        expected_mcc = metrics.matthews_corrcoef(true, predicted, sample_weight=weights)
        assert matthews_correlation(confusion) == pytest.approx(expected_mcc, abs=1e-9)
    there = np.unique(true)
    recalls = metrics.recall_score(true, predicted, labels=there, average=None, sample_weight=weights)
    assert balanced_accuracy(confusion) == pytest.approx(recalls.mean())
    if len(there) > 1 and set(predicted) <= set(there):  # else scikit-learn warns
        assert balanced_accuracy(confusion) == pytest.approx(
            metrics.balanced_accuracy_score(true, predicted, sample_weight=weights)
        )


@confusion_cases
def test_doubled_weights_change_the_support_only(seed: int, n: int, k: int, weighted: bool) -> None:
    confusion = np.random.default_rng(seed).integers(0, n, (k, k))
    confusion[0, 0] += 1
    assert matthews_correlation(2 * confusion) == pytest.approx(matthews_correlation(confusion))
    assert balanced_accuracy(2 * confusion) == balanced_accuracy(confusion)
    for once, twice in zip(measure_labels(confusion), measure_labels(2 * confusion), strict=True):
        assert (*twice[:3], twice.support) == (*once[:3], 2 * once.support)


def test_undefined_label_metrics_are_none() -> None:
    """Label 0 is predicted too often, 1 is never predicted, 2 is neither present nor predicted."""
    first, second, third = measure_labels(np.array([[3, 0, 0], [2, 0, 0], [0, 0, 0]]))
    assert first == (0.6, 1.0, 0.75, 3)
    assert second == (None, 0.0, 0.0, 2)
    assert third == (None, None, None, 0)
    assert balanced_accuracy(np.array([[3, 0, 0], [2, 0, 0], [0, 0, 0]])) == 0.5


@pytest.mark.parametrize(
    "confusion", [[[3, 0], [2, 0]], [[3, 2], [0, 0]], [[0.1, 0.0], [0.7, 0.0]], [[5, 0], [0, 0]], [[0, 5], [0, 0]]]
)
def test_matthews_correlation_is_zero_with_one_label(confusion: list[list[float]]) -> None:
    assert matthews_correlation(np.array(confusion)) == 0.0


def test_matthews_correlation_of_perfect_and_reversed_predictions() -> None:
    assert matthews_correlation(np.diag([0.1, 0.2, 0.3])) == pytest.approx(1)
    assert matthews_correlation(np.array([[0, 3], [7, 0]])) == pytest.approx(-1)


def test_support_without_weights_is_an_integer() -> None:
    assert isinstance(measure_labels(np.array([[3, 0], [2, 0]]))[0].support, int)


@given(st.integers(0, 9999), st.integers(5, 30), st.integers(2, 5), st.booleans())
def test_baseline_equals_that_of_scikit_learn(seed: int, n: int, k: int, weighted: bool) -> None:
    metrics, dummy = pytest.importorskip("sklearn.metrics"), pytest.importorskip("sklearn.dummy")
    rng = np.random.default_rng(seed)
    train, test = np.concatenate([np.arange(k), rng.integers(0, k, n)]), rng.integers(0, k, n)
    weights, test_weights = (rng.random(n + k) + 0.1, rng.random(n) + 0.1) if weighted else (None, None)
    model = dummy.DummyClassifier(strategy="prior").fit(train[:, None], train, weights)
    p = model.predict_proba(test[:, None])
    found = measure_baseline(class_frequencies(train, k, weights), test, test_weights)
    assert found.log_loss == pytest.approx(
        metrics.log_loss(test, p, labels=range(k), sample_weight=test_weights), abs=1e-9
    )
    assert found.accuracy == pytest.approx(model.score(test[:, None], test, test_weights))


def test_skill_score_is_the_share_of_the_deviance_explained() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    labels, weights = rng.integers(0, 3, 50), rng.random(50)
    p = rng.dirichlet(np.ones(3), 50)
    base = measure_baseline(class_frequencies(labels, 3, weights), labels, weights)
    expected = metrics.d2_log_loss_score(labels, p, sample_weight=weights)
    assert skill_score(metrics.log_loss(labels, p, sample_weight=weights), base.log_loss) == pytest.approx(expected)


def test_a_label_without_training_rows_counts_as_one_row() -> None:
    assert class_frequencies(np.array([0, 0, 1]), 3) == pytest.approx([0.5, 0.25, 0.25])
    assert class_frequencies(np.array([0, 0, 1]), 3, np.array([1.0, 3.0, 2.0])) == pytest.approx([0.5, 0.25, 0.25])
    found = measure_baseline(class_frequencies(np.array([0, 0, 1]), 3), np.array([2]))
    assert found == (0.0, pytest.approx(math.log(4)))


def test_the_baseline_predicts_the_first_of_equally_frequent_labels() -> None:
    assert measure_baseline(class_frequencies(np.array([1, 0]), 2), np.array([0, 1, 1])).accuracy == pytest.approx(
        1 / 3
    )


def test_there_is_no_skill_score_without_a_loss_to_reduce() -> None:
    assert measure_baseline(class_frequencies(np.zeros(3, int), 1), np.zeros(2, int)) == (1.0, 0.0)
    assert skill_score(0.1, 0.0) is None
    assert skill_score(None, 0.5) is None
    assert skill_score(0.5, 0.5) == 0
    assert skill_score(0.75, 0.5) == -0.5


Codes = NDArray[np.uint8]


@st.composite
def studies(draw: st.DrawFn) -> tuple[Codes, Codes, int, NDArray[np.int64]]:
    """Draw labels, predictions of every trial, the number of labels, and weights."""
    n_trials, n_rows, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 9)), draw(st.integers(1, 5))
    codes = st.integers(0, n_labels - 1)
    labels = draw(arrays.arrays(np.uint8, n_rows, elements=codes))
    predictions = draw(arrays.arrays(np.uint8, (n_trials, n_rows), elements=codes))
    weights = draw(arrays.arrays(np.int64, n_rows, elements=st.integers(0, 3)))
    weights[0] += 1
    return labels, predictions, n_labels, weights


def by_loops(labels: Codes, predictions: Codes, n_labels: int, weights: NDArray[np.int64]) -> tuple[Fraction, Fraction]:
    """Return bias and variance exactly, from their definitions."""
    bias = variance = Fraction(0)
    for t, label in enumerate(labels):
        shares = [Fraction(sum(int(trial[t]) == y for trial in predictions), len(predictions)) for y in range(n_labels)]
        squares = [(Fraction(int(y == label)) - share) ** 2 for y, share in enumerate(shares)]
        bias += int(weights[t]) * sum(squares) / 2
        variance += int(weights[t]) * (1 - sum(share**2 for share in shares)) / 2
    return bias / int(weights.sum()), variance / int(weights.sum())


@given(studies())
def test_bias_and_variance_equal_direct_loops(study: tuple[Codes, Codes, int, NDArray[np.int64]]) -> None:
    labels, predictions, n_labels, weights = study
    found = bias_variance(labels, predictions, n_labels, weights)
    assert (found.bias, found.variance) == pytest.approx([float(x) for x in by_loops(*study)])


@given(studies())
def test_laws_of_bias_and_variance(study: tuple[Codes, Codes, int, NDArray[np.int64]]) -> None:
    labels, predictions, n_labels, weights = study
    found = bias_variance(labels, predictions, n_labels, weights)
    error = ((predictions != labels) @ weights).mean() / weights.sum()
    assert found.bias + found.variance == pytest.approx(error)
    assert 0 <= found.variance < 0.5
    assert -1e-12 <= found.bias <= 1
    twice = bias_variance(np.repeat(labels, weights), np.repeat(predictions, weights, axis=1), n_labels)
    assert (twice.bias, twice.variance) == pytest.approx((found.bias, found.variance))
    shuffled = bias_variance(labels, predictions[::-1], n_labels, weights)
    assert shuffled == found
    assert bias_variance(labels, predictions[:1], n_labels, weights).variance == 0


def test_blocks_of_rows_do_not_change_bias_and_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    labels, predictions = rng.integers(0, 3, 100), rng.integers(0, 3, (4, 100))
    whole = bias_variance(labels, predictions, 3)
    monkeypatch.setattr(metrics_module, "_BLOCK_ROWS", 7)
    found = bias_variance(labels, predictions, 3)
    assert (found.bias, found.variance) == pytest.approx((whole.bias, whole.variance))


def test_constant_predictions_have_bias_only_and_alternating_ones_variance() -> None:
    labels = np.array([0, 1])
    assert bias_variance(labels, np.array([[1, 1], [1, 1]]), 2) == BiasVariance(0.5, 0.0)
    assert bias_variance(labels, np.array([[0, 0], [1, 1]]), 2) == BiasVariance(0.25, 0.25)


def test_bias_variance_refuses_shapes_that_differ() -> None:
    labels, predictions = np.array([0, 1]), np.array([[0, 1]])
    for wrong in (predictions[:0], predictions[:, :1], predictions[0]):
        with pytest.raises(BncliError, match="for every row"):
            bias_variance(labels, wrong, 2)
    with pytest.raises(BncliError, match="for every row"):
        bias_variance(labels, predictions, 2, [1.0])
    with pytest.raises(BncliError, match="positive weight"):
        bias_variance(labels, predictions, 2, [0.0, 0.0])
    with pytest.raises(BncliError, match="positive weight"):
        bias_variance(labels[:0], predictions[:, :0], 2)
