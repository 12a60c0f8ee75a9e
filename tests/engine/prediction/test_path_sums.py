"""Summing out and adding up over a region's cells, entry by entry."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bncli.engine.prediction.path_sums import expand, log_margin, sum_over


def test_expanded_tables_hold_every_margin() -> None:
    table = np.random.default_rng(0).normal(size=(2, 3, 2, 3))
    expanded = expand(table)
    assert expanded.shape == (3, 4, 3, 3)
    for cell in itertools.product(range(3), range(4), range(3)):
        shown = [[v] if v < n else range(n) for v, n in zip(cell, (2, 3, 2), strict=True)]
        for y in range(3):
            total = math.fsum(math.exp(table[(*full, y)]) for full in itertools.product(*shown))
            assert expanded[(*cell, y)] == pytest.approx(math.log(total))


def test_sums_of_tiny_probabilities_do_not_vanish() -> None:
    table = np.full((2, 2), -5000.0)
    np.testing.assert_allclose(log_margin(table, [0]), -5000 + math.log(2))


def test_terms_are_added_where_they_belong() -> None:
    rng = np.random.default_rng(1)
    whole, of_5, of_4_7, alone = (rng.normal(size=shape) for shape in ((2, 3, 2, 2), (3, 2), (2, 2, 2), (2,)))
    terms = [(1, (4, 5, 7), whole), (-2, (5,), of_5), (3, (4, 7), of_4_7), (-1, (), alone)]
    total = sum_over((4, 5, 7), (2, 3, 2), terms)
    for a, b, c, y in itertools.product(range(2), range(3), range(2), range(2)):
        expected = whole[a, b, c, y] - 2 * of_5[b, y] + 3 * of_4_7[a, c, y] - alone[y]
        assert total[a, b, c, y] == pytest.approx(expected)
