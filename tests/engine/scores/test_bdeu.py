"""The marginal likelihood as what it is: the product of the chances of each row given the rows before it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.scores import bdeu
from tests.engine.scores import families
from tests.engine.scores.families import Array, family_counts

strengths = st.sampled_from([1e-3, 1.0, 2.5, 100.0])


def row_by_row(family: Array, strength: float) -> float:
    """Each value's chance is (times seen + a) / (rows seen + r a), separately in each configuration."""
    a = strength / family.size
    terms = []
    for column in families.columns(family):
        seen = 0
        for n in map(int, column):
            terms += [math.log((t + a) / (seen + t + len(column) * a)) for t in range(n)]
            seen += n
    return math.fsum(terms)


@given(family_counts(whole=True), strengths)
def test_the_chances_of_the_rows_in_turn(counts: Array, strength: float) -> None:
    expected = [row_by_row(family, strength) for family in counts]
    assert bdeu.family_scores(counts, strength) == pytest.approx(expected, rel=1e-10, abs=1e-9)


@given(family_counts(), strengths)
def test_the_laws(counts: Array, strength: float) -> None:
    score = partial(bdeu.family_scores, number=strength)
    families.check_batches(score, counts)
    families.check_permutations(score, counts)
    assert bdeu.EQUIVALENT
    families.check_equivalent(score, counts)


def test_one_coin_tossed_twice() -> None:
    """S = 2 on one configuration of a binary child is a = 1: chances 1/2, then 2/3."""
    assert bdeu.family_scores(np.array([[[2.0]], [[0.0]]]), 2.0) == pytest.approx(math.log(1 / 3))
