"""Shared parameters: tables and their transpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.parameters.coordinates import Sharing


@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 999))
def test_tables_and_pull_back_are_transposes(n_labels: int, n_cells: int, n_parameters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = rng.integers(0, n_parameters, (n_labels, n_cells))
    sharing = Sharing(rng.normal(size=index.shape), index, n_parameters)
    p, d = rng.normal(size=n_parameters), rng.normal(size=index.shape)
    tables = sharing.tables(p)
    for y in range(n_labels):
        for c in range(n_cells):
            assert tables[y, c] == sharing.scale[y, c] * p[index[y, c]]
    assert float((tables * d).sum()) == pytest.approx(float(p @ sharing.pull_back(d)), abs=1e-12)


def test_a_parameter_that_nothing_follows_has_no_slope() -> None:
    sharing = Sharing(np.ones((2, 1)), np.zeros((2, 1), np.intp), 3)
    assert sharing.pull_back(np.array([[1.0], [2.0]])).tolist() == [3.0, 0.0, 0.0]
