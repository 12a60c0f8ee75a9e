"""The likelihood and the penalty."""

from __future__ import annotations

import pytest
from hypothesis import given

from bncli.engine.scores import aic, ll
from tests.engine.scores import families
from tests.engine.scores.families import Array, family_counts


@given(family_counts())
def test_one_a_parameter(counts: Array) -> None:
    r, q, n_labels = counts.shape[1:]
    expected = ll.family_scores(counts) - (r - 1) * q * n_labels
    assert aic.family_scores(counts) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(family_counts())
def test_the_laws(counts: Array) -> None:
    families.check_batches(aic.family_scores, counts)
    families.check_permutations(aic.family_scores, counts)
    assert aic.EQUIVALENT
    families.check_equivalent(aic.family_scores, counts)
