"""Calibration maps against scikit-learn, scipy's general optimizers, and the laws that they keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from bncli.engine.calibration import (
    FEWEST_ROWS,
    METHODS,
    MOST_TEMPERATURE,
    Isotonic,
    PerClass,
    Temperature,
    fit_calibration,
    refuse_few,
)
from bncli.engine.kernels.arrays import Array, Integers
from bncli.errors import BncliError
from tests.sweeps import examples


def drawn(n_labels: int, n_rows: int = 400, seed: int = 0, heat: float = 2.0) -> tuple[Array, Integers, Array]:
    """ln P, too bold by `heat`, the labels that the cooler ones bear out, and whole weights."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_labels, n_rows))
    bold = log_softmax(scores * heat, axis=0)
    labels = (rng.random(n_rows) > np.exp(log_softmax(scores, axis=0)).cumsum(axis=0)[:-1]).sum(axis=0)
    return bold, labels, rng.integers(1, 4, n_rows).astype(float)


def log_loss(log_p: Array, labels: Integers, weights: Array) -> float:
    return -float(np.average(log_p[labels, np.arange(len(labels))], weights=weights))


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_the_temperature_is_that_of_scikit_learn_and_of_a_plain_search(n_labels: int) -> None:
    log_p, labels, weights = drawn(n_labels)
    found = fit_calibration("temperature", log_p, labels, weights).map
    assert isinstance(found, Temperature)
    slow = minimize_scalar(
        lambda t: log_loss(log_softmax(log_p / t, axis=0), labels, weights), bounds=(0.1, 10), options={"xatol": 1e-9}
    )
    assert found.temperature == pytest.approx(slow.x, rel=1e-5)
    # linear scores that a logistic regression says as they are
    x = (log_p[1:] - log_p[0]).T
    frozen = LogisticRegression().fit(x, labels)
    frozen.coef_ = np.vstack([np.zeros(n_labels - 1), np.eye(n_labels - 1)]) if n_labels > 2 else np.eye(1)
    frozen.intercept_ = np.zeros(n_labels if n_labels > 2 else 1)
    peer = CalibratedClassifierCV(FrozenEstimator(frozen), method="temperature")
    peer.fit(np.repeat(x, weights.astype(int), axis=0), np.repeat(labels, weights.astype(int)))
    np.testing.assert_allclose(np.exp(found.apply(log_p)).T, peer.predict_proba(x), atol=1e-4)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_per_class_is_the_optimum_that_a_general_optimizer_finds(n_labels: int) -> None:
    log_p, labels, weights = drawn(n_labels)
    found = fit_calibration("per-class", log_p, labels, weights).map
    assert isinstance(found, PerClass)

    def loss(point: Array) -> float:
        a, b = np.split(point, 2)
        scores = a[:, None] * log_p + b[:, None]
        logs = scores - logsumexp(scores, axis=0)
        return log_loss(logs, labels, weights) * weights.sum() + ((a - 1) ** 2 + b**2).sum() / 2

    point = np.array([*found.scales, *found.shifts])
    slow = minimize(loss, np.repeat([1.0, 0.0], n_labels), method="BFGS", options={"gtol": 1e-5})
    assert loss(point) <= slow.fun + 1e-7
    np.testing.assert_allclose(point, slow.x, atol=2e-4)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_isotonic_is_that_of_scikit_learn_on_the_rows_and_one_at_each_end(n_labels: int) -> None:
    log_p, labels, weights = drawn(n_labels)
    found = fit_calibration("isotonic", log_p, labels, weights).map
    assert isinstance(found, Isotonic)
    mapped = range(n_labels) if n_labels > 2 else (1,)
    rows = []
    for c in mapped:
        p = np.exp(log_p[c])
        peer = IsotonicRegression(out_of_bounds="clip")
        peer.fit([*p, p.min(), p.max()], [*(labels == c), 1, 0], sample_weight=[*weights, 1, 1])
        rows.append(peer.predict(p))
    expected = np.array(rows) / np.sum(rows, axis=0) if n_labels > 2 else np.array([1 - rows[0], rows[0]])
    np.testing.assert_allclose(np.exp(found.apply(log_p)), expected, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_a_row_twice(method: str) -> None:
    log_p, labels, _ = drawn(3, 120)
    weights = np.where(np.arange(120) < 40, 2.0, 1.0)
    twice = np.concatenate([np.arange(120), np.arange(40)])
    one = fit_calibration(method, log_p, labels, weights).map
    other = fit_calibration(method, log_p[:, twice], labels[twice]).map
    np.testing.assert_allclose(one.apply(log_p), other.apply(log_p), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=examples(8))
@given(st.integers(2, 4), st.integers(1, 30), st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 1.0, 30.0, 400.0]))
def test_probabilities_stay_within_reach_and_sum_to_one(
    method: str, n_labels: int, n_rows: int, seed: int, heat: float
) -> None:
    log_p, labels, weights = drawn(n_labels, n_rows, seed, heat)
    calibration = fit_calibration(method, log_p, labels, weights)
    logs = calibration.map.apply(log_p)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1, atol=1e-12)
    assert np.isfinite([calibration.before, calibration.after]).all()
    if method == "temperature":
        assert calibration.after <= calibration.before + 1e-12
        assert (logs.argmax(axis=0) == log_p.argmax(axis=0)).all() or heat == 0


def test_isotonic_never_falls_and_its_pure_ends_are_those_of_laplace() -> None:
    p = np.array([0.1, 0.2, 0.3, 0.8, 0.9])
    found = fit_calibration("isotonic", np.log([1 - p, p]), np.array([0, 0, 0, 1, 1])).map
    np.testing.assert_allclose(np.exp(found.apply(np.log([1 - p, p])))[1], [0.25, 0.25, 0.25, 2 / 3, 2 / 3])


def test_rows_that_are_all_right_or_tell_nothing_have_a_temperature_all_the_same() -> None:
    p = np.array([0.6, 0.7, 0.3])
    assert fit_calibration("temperature", np.log([1 - p, p]), np.array([1, 1, 0])).map == Temperature(1.0)
    assert fit_calibration("temperature", np.log([1 - p, p]), np.array([0, 0, 1])).map == Temperature(MOST_TEMPERATURE)


def test_too_few_rows_of_a_label_are_named() -> None:
    labels = np.repeat([0, 1], [FEWEST_ROWS, FEWEST_ROWS - 1])
    refuse_few("temperature", ("no", "yes"), labels)
    refuse_few("isotonic", ("no", "yes"), np.append(labels, 1))
    with pytest.raises(BncliError, match="a map for each label, but only 4 rows have the label 'yes'"):
        refuse_few("per-class", ("no", "yes"), labels)
