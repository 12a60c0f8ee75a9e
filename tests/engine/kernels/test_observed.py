"""Observed cells against a loop with a dictionary."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.observed import observed, sum_n_log_n

numbers = st.lists(st.integers(0, 2**62), max_size=30) | st.lists(st.integers(0, 3), max_size=30)


@given(numbers, st.booleans())
def test_every_cell_that_occurs_once_and_its_weight(cells: list[int], weighted: bool) -> None:
    weights = np.arange(1.0, len(cells) + 1.0) if weighted else None
    expected: Counter[int] = Counter()
    for t, cell in enumerate(cells):
        expected[cell] += t + 1 if weighted else 1
    distinct, counts = observed(np.array(cells, np.int64), weights)
    assert counts.dtype == np.float64
    assert list(zip(distinct.tolist(), counts.tolist(), strict=True)) == sorted(expected.items())


@given(st.lists(st.integers(0, 9) | st.floats(0, 1e6), max_size=20))
def test_the_sum_is_that_of_its_terms(counts: list[float]) -> None:
    expected = math.fsum(n * math.log(n) for n in counts if n > 0)
    assert sum_n_log_n(np.array(counts, float)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
