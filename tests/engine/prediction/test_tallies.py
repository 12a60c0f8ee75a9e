"""Sums over rows that nothing but the rows can move."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.prediction.monitoring import Moments

numbers = st.lists(st.floats(-1e150, 1e150), max_size=30)


@given(numbers, st.integers(0, 30))
def test_sums_are_exact_however_the_rows_are_split(values: list[float], at: int) -> None:
    whole, first, second = Moments(), Moments(), Moments()
    whole.add(np.array(values))
    first.add(np.array(values[at:]))
    second.add(np.array(values[:at]))
    first.merge(second)
    assert first == whole
    assert whole.total == sum(map(Fraction, values), Fraction())
    assert float(whole.total) == math.fsum(values)
    assert float(whole.squares) == math.fsum(value * value for value in values)


def test_mean_and_variance() -> None:
    values = np.random.default_rng(0).normal(1e6, 1.0, 100_000)
    moments = Moments()
    for block in np.array_split(values, 7):
        moments.add(block)
    assert moments.mean is not None
    assert abs(moments.mean - values.mean()) < 1e-9
    assert abs(moments.variance - values.var(ddof=1)) < 1e-3
    assert Moments().mean is None
