import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.kernels.entropy import NLogN


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=10), st.sampled_from([0, 10**6]))
def test_entropy_is_that_of_the_definition(counts: list[int], n_lookups: int) -> None:
    n = sum(counts)
    expected = math.fsum(-c * math.log2(c / n) for c in counts if c)
    found = NLogN(n, n_lookups).entropy(np.array(counts))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-13 * n + 1e-12)


@pytest.mark.parametrize("total", [0, 1, 2, 3, 1000, 2**53])
def test_no_overflow_and_no_difference_between_table_and_formula(total: int) -> None:
    whole = NLogN(total, 0)
    numbers = np.array(sorted({0, min(1, total), total // 2, total}))
    assert (np.diff(whole(numbers)) >= 0).all()
    if total <= 1000:
        assert (NLogN(total, total)(numbers) == whole(numbers)).all()
