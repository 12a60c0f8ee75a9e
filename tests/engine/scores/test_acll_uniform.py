"""Equation 28 term by term, with the constant of independent uniform probabilities."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.scores import acll, acll_uniform
from bncli.engine.scores.acll_approximation import uniform
from tests.engine.scores import families
from tests.engine.scores.families import Array, family_counts
from tests.engine.scores.test_acll import pseudo_counts, slow

BETA = {2: (18 - math.pi**2) / 24, 3: 0.2001731557269, 4: float(uniform(4).beta)}


@given(family_counts(), pseudo_counts)
def test_the_sum_over_cells(counts: Array, least: float) -> None:
    expected = [slow(n, BETA[n.shape[-1]], least) for n in counts]
    assert acll_uniform.family_scores(counts, least) == pytest.approx(expected, rel=1e-9, abs=1e-7)


@given(family_counts(), pseudo_counts)
def test_the_laws(counts: Array, least: float) -> None:
    score = partial(acll_uniform.family_scores, number=least)
    families.check_batches(score, counts)
    families.check_permutations(score, counts)
    assert not acll_uniform.EQUIVALENT


def test_it_differs_from_the_other_assumption() -> None:
    counts = np.random.default_rng(0).integers(0, 50, (3, 4, 2)).astype(float)
    assert acll.family_scores(counts, 5.0) != pytest.approx(acll_uniform.family_scores(counts, 5.0), rel=1e-3)
