"""Figures of labels against scikit-learn and against what they mean."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.evaluation.metrics import balanced_accuracy, matthews_correlation, per_label

metrics = pytest.importorskip("sklearn.metrics")

cases = given(st.integers(0, 9999), st.integers(1, 30), st.integers(2, 5), st.booleans())


def random_case(seed: int, n: int, k: int, weighted: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Few rows for the labels, so that some are absent, and some never predicted."""
    rng = np.random.default_rng(seed)
    skew = rng.dirichlet(np.full(k, 0.5), 2)
    true, predicted = (rng.choice(k, n, p=p) for p in skew)
    return true, np.where(rng.random(n) < 0.5, true, predicted), rng.random(n) + 0.01 if weighted else None


@cases
def test_equals_scikit_learn(seed: int, n: int, k: int, weighted: bool) -> None:
    true, predicted, weights = random_case(seed, n, k, weighted)
    confusion = metrics.confusion_matrix(true, predicted, labels=range(k), sample_weight=weights)
    expected = metrics.precision_recall_fscore_support(
        true, predicted, labels=range(k), sample_weight=weights, zero_division=np.nan
    )
    found = np.array([[math.nan if x is None else x for x in figures] for figures in per_label(confusion)])
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


@cases
def test_weight_two_is_a_row_twice(seed: int, n: int, k: int, weighted: bool) -> None:
    confusion = np.random.default_rng(seed).integers(0, n, (k, k))
    confusion[0, 0] += 1
    assert matthews_correlation(2 * confusion) == pytest.approx(matthews_correlation(confusion))
    assert balanced_accuracy(2 * confusion) == balanced_accuracy(confusion)
    for once, twice in zip(per_label(confusion), per_label(2 * confusion), strict=True):
        assert (*twice[:3], twice.support) == (*once[:3], 2 * once.support)


def test_what_is_not_defined() -> None:
    """Label 0 is found and overdone, 1 is never predicted, 2 is neither there nor predicted."""
    first, second, third = per_label(np.array([[3, 0, 0], [2, 0, 0], [0, 0, 0]]))
    assert first == (0.6, 1.0, 0.75, 3)
    assert second == (None, 0.0, 0.0, 2)
    assert third == (None, None, None, 0)
    assert balanced_accuracy(np.array([[3, 0, 0], [2, 0, 0], [0, 0, 0]])) == 0.5


@pytest.mark.parametrize(
    "confusion", [[[3, 0], [2, 0]], [[3, 2], [0, 0]], [[0.1, 0.0], [0.7, 0.0]], [[5, 0], [0, 0]], [[0, 5], [0, 0]]]
)
def test_one_label_tells_nothing(confusion: list[list[float]]) -> None:
    assert matthews_correlation(np.array(confusion)) == 0.0


def test_perfect_and_reversed() -> None:
    assert matthews_correlation(np.diag([0.1, 0.2, 0.3])) == pytest.approx(1)
    assert matthews_correlation(np.array([[0, 3], [7, 0]])) == pytest.approx(-1)


def test_whole_numbers_stay_whole() -> None:
    assert isinstance(per_label(np.array([[3, 0], [2, 0]]))[0].support, int)
