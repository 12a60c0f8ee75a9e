"""The marginal likelihood as what it is: the product of the chances of each row given the rows before it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.scores import k2
from tests.engine.scores import families
from tests.engine.scores.families import Array, family_counts


def row_by_row(family: Array) -> float:
    """Each value's chance is (times seen + 1) / (rows seen + r), separately in each configuration."""
    terms = []
    for column in families.columns(family):
        seen = 0
        for n in map(int, column):
            terms += [math.log((t + 1) / (seen + t + len(column))) for t in range(n)]
            seen += n
    return math.fsum(terms)


@given(family_counts(whole=True))
def test_the_chances_of_the_rows_in_turn(counts: Array) -> None:
    expected = [row_by_row(family) for family in counts]
    assert k2.family_scores(counts) == pytest.approx(expected, rel=1e-10, abs=1e-9)


@given(family_counts())
def test_the_laws(counts: Array) -> None:
    families.check_batches(k2.family_scores, counts)
    families.check_permutations(k2.family_scores, counts)


def test_factorials_by_hand() -> None:
    counts = np.array([[[2.0]], [[1.0]]])  # (r - 1)! / (N + r - 1)! * 2! 1!
    assert k2.family_scores(counts) == pytest.approx(math.log(2 / math.factorial(4)))


def test_the_direction_of_an_arc_matters() -> None:
    forward, backward = families.gains(k2.family_scores, np.arange(12.0).reshape(2, 3, 2))
    assert not k2.EQUIVALENT
    assert abs(forward - backward) > 0.1
