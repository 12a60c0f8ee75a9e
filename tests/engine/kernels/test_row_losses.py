"""Row losses against their formulas, and where a naive formula breaks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.row_losses import errors, squared_misses, surprises
from tests.oracles import log_posterior


def ahead_of(scores: list[list[float]], labels: list[int]) -> tuple[Array, np.ndarray]:
    """d[y, t] from scores by row."""
    by_class = np.array(scores, dtype=float).T
    return by_class - by_class[labels, np.arange(len(labels))], np.array(labels)


@given(st.integers(1, 5), st.data())
def test_equals_the_formulas(n_labels: int, draw: st.DataObject) -> None:
    row = st.lists(st.floats(-8, 8), min_size=n_labels, max_size=n_labels)
    scores = draw.draw(st.lists(row, min_size=1, max_size=8))
    labels = [draw.draw(st.integers(0, n_labels - 1)) for _ in scores]
    p = [math.exp(log_posterior(s)[y]) for s, y in zip(scores, labels, strict=True)]
    ahead, y = ahead_of(scores, labels)
    np.testing.assert_allclose(squared_misses(ahead, y), [(1 - q) ** 2 for q in p], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(surprises(ahead, y), [-math.log(q) for q in p], rtol=1e-9, atol=1e-15)
    first = [next(c for c, s in enumerate(row) if s >= max(row) - 1e-10) for row in scores]
    assert errors(ahead, y).tolist() == [float(a != b) for a, b in zip(first, labels, strict=True)]


def test_a_tie_within_rounding_goes_to_the_first_class() -> None:
    ahead, labels = ahead_of([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2], [0.0, 1.0]], [0, 0, 0])
    assert errors(ahead, labels).tolist() == [0.0, 0.0, 1.0]
    assert errors(*ahead_of([[1.0, 1.0]], [1])).tolist() == [1.0]


def test_digits_are_kept_next_to_certainty() -> None:
    ahead, labels = ahead_of([[50.0, 0.0, 0.0]], [0])
    missed = 2 * math.exp(-50)
    assert squared_misses(ahead, labels)[0] == pytest.approx(missed**2, rel=1e-12)
    assert surprises(ahead, labels)[0] == pytest.approx(missed, rel=1e-12)


def test_hopeless_rows_stay_finite() -> None:
    ahead, labels = ahead_of([[0.0, 5000.0], [0.0, -5000.0]], [0, 0])
    assert squared_misses(ahead, labels).tolist() == [1.0, 0.0]
    assert surprises(ahead, labels).tolist() == [5000.0, 0.0]


def test_one_class_is_never_missed() -> None:
    ahead, labels = ahead_of([[3.0], [4.0]], [0, 0])
    for loss in (squared_misses, errors, surprises):
        assert loss(ahead, labels).tolist() == [0.0, 0.0]
