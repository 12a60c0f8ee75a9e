"""The likelihood and the penalty."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.scores import bic, ll
from tests.engine.scores import families
from tests.engine.scores.families import Array, family_counts


@given(family_counts())
def test_half_the_log_of_the_rows_a_parameter(counts: Array) -> None:
    r, q, n_labels = counts.shape[1:]
    penalties = [0.5 * math.log(max(family.sum(), 1.0)) * (r - 1) * q * n_labels for family in counts]
    assert bic.family_scores(counts) == pytest.approx(ll.family_scores(counts) - penalties, rel=1e-12, abs=1e-12)


@given(family_counts())
def test_the_laws(counts: Array) -> None:
    families.check_batches(bic.family_scores, counts)
    families.check_permutations(bic.family_scores, counts)
    assert bic.EQUIVALENT
    families.check_equivalent(bic.family_scores, counts)


def test_by_hand() -> None:
    counts = np.array([[[2.0, 1.0]], [[2.0, 3.0]]])  # r = 2, q = 1, K = 2, N = 8
    expected = 4 * math.log(0.5) + math.log(0.25) + 3 * math.log(0.75) - 0.5 * math.log(8) * 2
    assert bic.family_scores(counts) == pytest.approx(expected)


def test_little_weight_is_no_reward() -> None:
    assert bic.family_scores(np.zeros((3, 2, 2))) == 0
    assert bic.family_scores(np.full((2, 2, 2), 0.01)) < 0
