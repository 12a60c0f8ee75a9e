"""Bias and variance by loops over trials and rows, and that they add up to the error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from bncli.engine.evaluation import bias_variance as module
from bncli.engine.evaluation.bias_variance import bias_variance
from bncli.errors import BncliError

Codes = NDArray[np.uint8]


@st.composite
def studies(draw: st.DrawFn) -> tuple[Codes, Codes, int, NDArray[np.int64]]:
    """Labels, predictions of every trial, number of labels, weights."""
    n_trials, n_rows, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 9)), draw(st.integers(1, 5))
    codes = st.integers(0, n_labels - 1)
    labels = draw(arrays.arrays(np.uint8, n_rows, elements=codes))
    predictions = draw(arrays.arrays(np.uint8, (n_trials, n_rows), elements=codes))
    weights = draw(arrays.arrays(np.int64, n_rows, elements=st.integers(0, 3)))
    weights[0] += 1
    return labels, predictions, n_labels, weights


def by_loops(labels: Codes, predictions: Codes, n_labels: int, weights: NDArray[np.int64]) -> tuple[Fraction, Fraction]:
    """Exactly, from the definitions."""
    bias = variance = Fraction(0)
    for t, label in enumerate(labels):
        shares = [Fraction(sum(int(trial[t]) == y for trial in predictions), len(predictions)) for y in range(n_labels)]
        squares = [(Fraction(int(y == label)) - share) ** 2 for y, share in enumerate(shares)]
        bias += int(weights[t]) * sum(squares) / 2
        variance += int(weights[t]) * (1 - sum(share**2 for share in shares)) / 2
    return bias / int(weights.sum()), variance / int(weights.sum())


@given(studies())
def test_by_loops(study: tuple[Codes, Codes, int, NDArray[np.int64]]) -> None:
    labels, predictions, n_labels, weights = study
    found = bias_variance(labels, predictions, n_labels, weights)
    assert (found.bias, found.variance) == pytest.approx([float(x) for x in by_loops(*study)])


@given(studies())
def test_laws(study: tuple[Codes, Codes, int, NDArray[np.int64]]) -> None:
    labels, predictions, n_labels, weights = study
    found = bias_variance(labels, predictions, n_labels, weights)
    error = ((predictions != labels) @ weights).mean() / weights.sum()
    assert found.error == pytest.approx(error)
    assert 0 <= found.variance < 0.5
    assert -1e-12 <= found.bias <= 1
    twice = bias_variance(np.repeat(labels, weights), np.repeat(predictions, weights, axis=1), n_labels)
    assert (twice.bias, twice.variance) == pytest.approx((found.bias, found.variance))
    shuffled = bias_variance(labels, predictions[::-1], n_labels, weights)
    assert shuffled == found
    assert bias_variance(labels, predictions[:1], n_labels, weights).variance == 0


def test_blocks_of_rows_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    labels, predictions = rng.integers(0, 3, 100), rng.integers(0, 3, (4, 100))
    whole = bias_variance(labels, predictions, 3)
    monkeypatch.setattr(module, "_BLOCK", 7)
    found = bias_variance(labels, predictions, 3)
    assert (found.bias, found.variance) == pytest.approx((whole.bias, whole.variance))


def test_one_answer_is_all_bias_and_two_in_turn_half_variance() -> None:
    labels = np.array([0, 1])
    assert bias_variance(labels, np.array([[1, 1], [1, 1]]), 2) == module.BiasVariance(0.5, 0.0)
    assert bias_variance(labels, np.array([[0, 0], [1, 1]]), 2) == module.BiasVariance(0.25, 0.25)


def test_refused() -> None:
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
