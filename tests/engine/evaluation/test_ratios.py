"""Geometric means of ratios beside scipy's, and what a loss of 0 counts as."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.evaluation.significance import Kind, geometric_mean_ratio
from bncli.errors import BncliError

losses = st.one_of(st.just(0.0), st.floats(1e-3, 2.0))
cases = st.lists(st.tuples(losses, losses, st.integers(1, 10_000)), min_size=1, max_size=20)
kinds = st.sampled_from(("mean", "root", "count", "seconds"))


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=20))
def test_as_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    expected = stats.gmean(first) / stats.gmean(second)
    assert geometric_mean_ratio(first, second, np.ones(len(pairs)), "plain") == pytest.approx(expected)


@given(cases, kinds)
def test_laws(found: list[tuple[float, float, int]], kind: Kind) -> None:
    first, second, rows = (np.array(column) for column in zip(*found, strict=True))
    ratio = geometric_mean_ratio(first, second, rows, kind)
    assert ratio > 0
    assert geometric_mean_ratio(second, first, rows, kind) == pytest.approx(1 / ratio)
    assert geometric_mean_ratio(first, first, rows, kind) == 1
    assert geometric_mean_ratio(first / 2, second, rows, kind) <= ratio


def test_none_counts_as_less_than_half_an_error() -> None:
    assert geometric_mean_ratio([0.0], [0.1], [50], "mean") == pytest.approx(0.01 / 0.1)
    assert geometric_mean_ratio([0.0], [0.1], [5000], "root") == pytest.approx(0.01 / 0.1)
    assert geometric_mean_ratio([0.0, 0.2], [0.0, 0.1], [50, 7], "mean") == pytest.approx(math.sqrt(2))
    assert geometric_mean_ratio([1e-9], [0.1], [50], "mean") == pytest.approx(0.1)
    assert geometric_mean_ratio([0.0, 8.0], [2.0, 2.0], [50, 7], "count") == pytest.approx(1.0)
    assert geometric_mean_ratio([0.0], [1e-3], [50], "seconds") == pytest.approx(1e-6)


def test_nothing_to_compare() -> None:
    assert geometric_mean_ratio([], [], [], "mean") == 1.0


@pytest.mark.parametrize(
    ("first", "second", "rows", "message"),
    [
        ([0.1], [0.1, 0.2], [10], "one length"),
        ([0.1], [0.1], [10, 10], "one length"),
        ([[0.1]], [[0.1]], [[10]], "one length"),
        ([math.nan], [0.1], [10], "finite"),
        ([0.1], [math.inf], [10], "finite"),
        ([-0.1], [0.1], [10], "not negative"),
        ([0.1], [0.1], [0], "one row"),
    ],
)
def test_refused(first: list[float], second: list[float], rows: list[float], message: str) -> None:
    with pytest.raises(BncliError, match=message):
        geometric_mean_ratio(first, second, rows)


def test_a_plain_ratio_needs_positive_figures() -> None:
    with pytest.raises(BncliError, match="ratios"):
        geometric_mean_ratio([0.0], [0.1], [10], "plain")
