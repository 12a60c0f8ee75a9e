"""The right constant, from the number of classes alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners import acll_uniform
from bncli.engine.parameters.generative import acll_tables
from bncli.engine.structures.structure import Dag
from tests.datasets import random_dataset


@pytest.mark.parametrize("n_rows", [20, 90])
def test_the_tables(n_rows: int) -> None:
    data, dag = random_dataset(n_rows, (2, 3, 2), 2), Dag(((), (0,), (1,)), (0, 1, 2))
    learnt = acll_uniform.learn(Counts(data), dag, pseudo_counts=2.0)
    expected = acll_tables(Counts(data), dag, np.asarray((18 - math.pi**2) / 24), 2.0)
    for ours, theirs in zip(learnt.tables.weights, expected.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
