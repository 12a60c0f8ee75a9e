"""Weights of an ensemble: the conditions of the optimum, what is dropped, and rows of several weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.auto.ensemble import least_squares_weights, mixture_logs, mixture_weights

Array = NDArray[np.float64]


def logs_of(seed: int, n_models: int, n_rows: int = 60) -> Array:
    return np.log(np.random.default_rng(seed).uniform(0.01, 1.0, (n_models, n_rows)))


@given(st.integers(0, 999), st.integers(1, 5))
def test_no_member_could_be_given_more(seed: int, n_models: int) -> None:
    """At the optimum the mean share of a member is 1 where it has a weight, and below where it has none."""
    logs = logs_of(seed, n_models)
    v = mixture_weights(logs)
    assert v.sum() == pytest.approx(1.0)
    assert all(weight == 0.0 or weight >= 0.01 for weight in v)
    kept = v > 0
    gains = np.exp(logs - mixture_logs(logs, v)).mean(axis=1)
    np.testing.assert_allclose(gains[kept], 1.0, atol=1e-3)


@given(st.integers(0, 999), st.integers(2, 4))
def test_least_squares_beat_every_other_average(seed: int, n_models: int) -> None:
    p = np.exp(logs_of(seed, n_models))
    v = least_squares_weights(np.log(p))
    loss = np.square(1 - v @ p).sum()
    others = np.random.default_rng(seed + 1).dirichlet(np.ones(n_models), 200)
    assert v.sum() == pytest.approx(1.0)
    assert loss <= np.square(1 - others @ p).sum(axis=1).min() * 1.01


@pytest.mark.parametrize("weights_of", [mixture_weights, least_squares_weights])
def test_a_weight_stands_for_so_many_rows(weights_of: object) -> None:
    logs = logs_of(3, 3)
    counts = np.random.default_rng(0).integers(1, 4, logs.shape[1])
    assert callable(weights_of)
    weighted, repeated = weights_of(logs, counts.astype(float)), weights_of(np.repeat(logs, counts, axis=1))
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)


def test_the_better_of_two_takes_all() -> None:
    logs = np.log(np.array([[0.9, 0.8, 0.9], [0.1, 0.2, 0.1]]))
    np.testing.assert_array_equal(mixture_weights(logs), [1.0, 0.0])
    np.testing.assert_array_equal(least_squares_weights(logs), [1.0, 0.0])


def logs_of_groups(*sizes: int) -> Array:
    """As many models as groups of rows; each is certain of the rows of its group, and knows nothing of the others."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return np.log(np.where(group == np.arange(len(sizes))[:, np.newaxis], 1.0, 1e-9))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((900, 70, 30), (0.9, 0.07, 0.03)),
        ((970, 19, 11), (0.97, 0.019, 0.011)),
        ((970, 21, 9), (970 / 991, 21 / 991, 0.0)),
        ((985, 9, 6), (1.0, 0.0, 0.0)),
    ],
)
def test_a_weight_is_the_share_of_the_rows_and_below_a_hundredth_it_is_none(
    sizes: tuple[int, ...], expected: tuple[float, ...]
) -> None:
    v = mixture_weights(logs_of_groups(*sizes))
    np.testing.assert_allclose(v, expected, atol=1e-6)
    np.testing.assert_array_equal(v == 0, np.array(expected) == 0)


@pytest.mark.parametrize(
    ("sizes", "expected"), [((900, 100), (0.9, 0.1)), ((989, 11), (0.989, 0.011)), ((991, 9), (1.0, 0.0))]
)
def test_so_it_is_by_squared_errors(sizes: tuple[int, ...], expected: tuple[float, ...]) -> None:
    """n_1 (1 - v_1)^2 + n_2 (1 - v_2)^2 is least on the simplex at the shares."""
    v = least_squares_weights(logs_of_groups(*sizes))
    np.testing.assert_allclose(v, expected, atol=1e-4)


def test_probabilities_near_nothing() -> None:
    logs = np.array([[-2000.0, -1.0], [-1990.0, -3.0]])
    v = mixture_weights(logs)
    assert np.isfinite(mixture_logs(logs, v)).all()
