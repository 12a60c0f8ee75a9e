"""The likelihood by a sum over cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.scores import ll
from tests import oracles
from tests.engine.scores import families
from tests.engine.scores.families import Array, family_counts


def slow(family: Array) -> float:
    return math.fsum(n * math.log(n / math.fsum(c)) for c in families.columns(family) for n in c if n > 0)


@given(family_counts())
def test_the_sum_over_cells(counts: Array) -> None:
    assert ll.family_scores(counts) == pytest.approx([slow(family) for family in counts], rel=1e-11, abs=1e-11)


@given(family_counts())
def test_the_laws(counts: Array) -> None:
    families.check_batches(ll.family_scores, counts)
    families.check_permutations(ll.family_scores, counts)
    assert ll.EQUIVALENT
    families.check_equivalent(ll.family_scores, counts)


@given(family_counts())
def test_an_arc_gains_the_rows_times_the_conditional_mutual_information(counts: Array) -> None:
    forward, _ = families.gains(ll.family_scores, counts)
    expected = [n.sum() * oracles.conditional_mutual_information(n) if n.any() else 0.0 for n in counts]
    assert forward == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_no_rows_and_sure_rows_have_likelihood_one() -> None:
    assert ll.family_scores(np.zeros((3, 2, 2))) == 0
    assert ll.family_scores(np.array([[[5.0, 0.0]], [[0.0, 7.0]]])) == 0
