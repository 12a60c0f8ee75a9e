"""Equation 28 term by term."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import polygamma

from bncli.engine.scores import acll
from tests.engine.scores import families
from tests.engine.scores.families import Array, family_counts

pseudo_counts = st.sampled_from([0.01, 1.0, 5.0])


def beta_of(n_labels: int, n: float) -> float:
    tail = float(polygamma(1, n_labels + n))
    return (float(polygamma(1, n_labels)) - tail) / (math.pi**2 / 6 - n_labels * tail)


def slow(family: Array, beta: float, least: float) -> float:
    """sum over j, k, c of (alpha N_kjc - beta sum over c' != c of N_kjc') ln theta_kjc."""
    r, q, n_labels = family.shape
    weights = np.zeros(family.shape)
    for k, j, c in itertools.product(range(r), range(q), range(n_labels)):
        others = math.fsum(family[k, j, o] for o in range(n_labels) if o != c)
        weights[k, j, c] = (1 - beta) * family[k, j, c] - beta * others
    terms = []
    for k, j, c in itertools.product(range(r), range(q), range(n_labels)):
        kept = [max(float(weights[i, j, c]), least) for i in range(r)]
        terms.append(weights[k, j, c] * math.log(kept[k] / math.fsum(kept)))
    return math.fsum(terms)


@given(family_counts(), pseudo_counts)
def test_the_sum_over_cells(counts: Array, least: float) -> None:
    expected = [slow(n, beta_of(n.shape[-1], float(n.sum())), least) for n in counts]
    assert acll.family_scores(counts, least) == pytest.approx(expected, rel=1e-9, abs=1e-8)


@given(family_counts(), pseudo_counts)
def test_the_laws(counts: Array, least: float) -> None:
    score = partial(acll.family_scores, number=least)
    families.check_batches(score, counts)
    families.check_permutations(score, counts)


def test_the_direction_of_an_arc_matters() -> None:
    """Theorem 3.9's four rows (x1, x2, c): 001 011 110 111."""
    counts = np.zeros((2, 2, 2))
    for row in ((0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 1, 1)):
        counts[row] += 1
    forward, backward = families.gains(partial(acll.family_scores, number=0.1), counts)
    assert not acll.EQUIVALENT
    assert abs(forward - backward) > 0.01
