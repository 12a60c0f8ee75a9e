"""The class frequencies as a classifier, against scikit-learn's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.evaluation.metrics import class_frequencies, measure_baseline, skill_score


@given(st.integers(0, 9999), st.integers(5, 30), st.integers(2, 5), st.booleans())
def test_equals_scikit_learn(seed: int, n: int, k: int, weighted: bool) -> None:
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


def test_skill_is_the_share_of_the_deviance_explained() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    labels, weights = rng.integers(0, 3, 50), rng.random(50)
    p = rng.dirichlet(np.ones(3), 50)
    base = measure_baseline(class_frequencies(labels, 3, weights), labels, weights)
    expected = metrics.d2_log_loss_score(labels, p, sample_weight=weights)
    assert skill_score(metrics.log_loss(labels, p, sample_weight=weights), base.log_loss) == pytest.approx(expected)


def test_a_label_that_training_lacks_counts_as_one_row() -> None:
    assert class_frequencies(np.array([0, 0, 1]), 3) == pytest.approx([0.5, 0.25, 0.25])
    assert class_frequencies(np.array([0, 0, 1]), 3, np.array([1.0, 3.0, 2.0])) == pytest.approx([0.5, 0.25, 0.25])
    found = measure_baseline(class_frequencies(np.array([0, 0, 1]), 3), np.array([2]))
    assert found == (0.0, pytest.approx(math.log(4)))


def test_the_first_of_equally_common_labels_is_predicted() -> None:
    assert measure_baseline(class_frequencies(np.array([1, 0]), 2), np.array([0, 1, 1])).accuracy == pytest.approx(
        1 / 3
    )


def test_no_skill_is_told_where_there_is_nothing_to_learn() -> None:
    assert measure_baseline(class_frequencies(np.zeros(3, int), 1), np.zeros(2, int)) == (1.0, 0.0)
    assert skill_score(0.1, 0.0) is None
    assert skill_score(None, 0.5) is None
    assert skill_score(0.5, 0.5) == 0
    assert skill_score(0.75, 0.5) == -0.5
