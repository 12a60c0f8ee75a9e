"""Scores of families against sums over cells, products of predictive probabilities and figures by hand."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import polygamma

from bncli.catalogue import SCORES
from bncli.engine.structures.acll_approximation import uniform_approximation
from bncli.engine.structures.scores import (
    FAMILY_SCORES,
    acll,
    acll_uniform,
    aic,
    bdeu,
    bic,
    free_parameters,
    k2,
    log_likelihood,
    log_marginal_likelihood,
    parse_score,
)
from tests import oracles
from tests.engine.structures import family_counts as families
from tests.engine.structures.family_counts import Array, family_counts

COUNTS = np.random.default_rng(3).integers(0, 20, (4, 3, 2, 3)).astype(float)
pseudo_counts = st.sampled_from([0.01, 1.0, 5.0])
strengths = st.sampled_from([1e-3, 1.0, 2.5, 100.0])

RULES = ["ll", "bic", "aic", "k2", "bdeu:0.001", "bdeu:1", "bdeu:100", "acll:0.01", "acll:5", "acll-uniform:1"]


@pytest.mark.parametrize("rule", RULES)
@given(counts=family_counts())
def test_properties_of_every_score(rule: str, counts: Array) -> None:
    score = parse_score(rule)
    families.check_batches(score.score, counts)
    families.check_permutations(score.score, counts)
    if score.equivalent:
        families.check_equivalent(score.score, counts)


def test_the_catalogue_lists_the_same_words() -> None:
    assert list(FAMILY_SCORES) == [method.word for method in SCORES.methods if method.has_module]


def test_a_rule_is_a_word_a_number_and_a_prior() -> None:
    for word, score in {"ll": log_likelihood, "bic": bic, "aic": aic, "k2": k2}.items():
        np.testing.assert_array_equal(parse_score(word).score(COUNTS), score(COUNTS))
        assert parse_score(word).equivalent is (word != "k2")
    for number in ("1", "5", "0.25", "1e2"):
        for word, numbered in {"bdeu": bdeu, "acll": acll, "acll-uniform": acll_uniform}.items():
            rule = parse_score(f"{word}:{number}")
            np.testing.assert_array_equal(rule.score(COUNTS), numbered(COUNTS, float(number)))
            assert rule.equivalent is (word == "bdeu")
    np.testing.assert_array_equal(parse_score("acll:5/1,10").score(COUNTS), acll(COUNTS, 5.0, "1,10"))


def likelihood_by_cells(family: Array) -> float:
    return math.fsum(n * math.log(n / math.fsum(c)) for c in families.columns(family) for n in c if n > 0)


@given(family_counts())
def test_log_likelihood_is_a_sum_over_cells(counts: Array) -> None:
    expected = [likelihood_by_cells(family) for family in counts]
    assert log_likelihood(counts) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@given(family_counts(), st.integers(0, 99))
def test_no_other_probabilities_are_more_likely(counts: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(counts.shape[1]), (len(counts), *counts.shape[2:])).transpose(0, 3, 1, 2)
    theirs = (counts * np.log(np.maximum(theta, 1e-300))).sum(axis=(1, 2, 3))
    ours = log_likelihood(counts)
    assert (theirs <= ours + 1e-9 * (1 + np.abs(ours))).all()


@given(family_counts())
def test_an_arc_gains_the_rows_times_the_conditional_mutual_information(counts: Array) -> None:
    forward, _ = families.gains(log_likelihood, counts)
    expected = [n.sum() * oracles.conditional_mutual_information(n) if n.any() else 0.0 for n in counts]
    assert forward == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_no_rows_and_certain_rows_have_likelihood_one() -> None:
    assert log_likelihood(np.zeros((3, 2, 2))) == 0
    assert log_likelihood(np.array([[[5.0, 0.0]], [[0.0, 7.0]]])) == 0


@given(family_counts())
def test_penalties_of_aic_and_bic(counts: Array) -> None:
    r, q, n_labels = counts.shape[1:]
    n_free = (r - 1) * q * n_labels
    assert aic(counts) == pytest.approx(log_likelihood(counts) - n_free, rel=1e-12, abs=1e-12)
    penalties = [0.5 * math.log(max(family.sum(), 1.0)) * n_free for family in counts]
    assert bic(counts) == pytest.approx(log_likelihood(counts) - penalties, rel=1e-12, abs=1e-12)


def test_free_parameters() -> None:
    assert free_parameters(np.zeros((5, 3, 4, 2))) == 2 * 4 * 2
    assert free_parameters(np.zeros((1, 4, 2))) == 0


def test_bic_by_hand() -> None:
    counts = np.array([[[2.0, 1.0]], [[2.0, 3.0]]])  # r = 2, q = 1, K = 2, N = 8
    expected = 4 * math.log(0.5) + math.log(0.25) + 3 * math.log(0.75) - 0.5 * math.log(8) * 2
    assert bic(counts) == pytest.approx(expected)


def test_a_weight_below_one_does_not_make_the_penalty_negative() -> None:
    assert bic(np.zeros((3, 2, 2))) == 0
    assert bic(np.full((2, 2, 2), 0.01)) < 0


def predictive_by_rows(family: Array, a: float) -> float:
    """Log of the product of each row's probability given the rows before it: (times seen + a) / (rows seen + r a)."""
    terms = []
    for column in families.columns(family):
        seen = 0
        for n in map(int, column):
            terms += [math.log((t + a) / (seen + t + len(column) * a)) for t in range(n)]
            seen += n
    return math.fsum(terms)


@given(family_counts(whole=True), strengths)
def test_marginal_likelihoods_are_products_of_predictive_probabilities(counts: Array, strength: float) -> None:
    expected = [predictive_by_rows(family, 1.0) for family in counts]
    assert k2(counts) == pytest.approx(expected, rel=1e-10, abs=1e-9)
    expected = [predictive_by_rows(family, strength / family.size) for family in counts]
    assert bdeu(counts, strength) == pytest.approx(expected, rel=1e-10, abs=1e-9)


def test_marginal_likelihoods_by_hand() -> None:
    counts = np.array([[[2.0]], [[1.0]]])  # (r - 1)! / (N + r - 1)! * 2! 1!
    assert k2(counts) == pytest.approx(math.log(2 / math.factorial(4)))
    # S = 2 on one configuration of a binary child is a = 1: probabilities 1/2, then 2/3
    assert bdeu(np.array([[[2.0]], [[0.0]]]), 2.0) == pytest.approx(math.log(1 / 3))


def test_in_k2_the_direction_of_an_arc_matters() -> None:
    forward, backward = families.gains(k2, np.arange(12.0).reshape(2, 3, 2))
    assert abs(forward - backward) > 0.1


@pytest.mark.parametrize("prior", [1.0, 2.0, 3.5])
def test_the_average_likelihood_over_the_prior(prior: float) -> None:
    """A binary child with counts 3 and 5: the mean of p^3 (1 - p)^5 under Beta(a, a), by a sum over a grid."""
    p = (np.arange(20000) + 0.5) / 20000
    density = (p * (1 - p)) ** (prior - 1)
    average = (p**3 * (1 - p) ** 5 * density).sum() / density.sum()
    assert log_marginal_likelihood(np.array([[[3.0]], [[5.0]]]), prior) == pytest.approx(np.log(average), abs=1e-5)


def test_configurations_are_independent_and_empty_ones_add_nothing() -> None:
    counts = np.random.default_rng(0).integers(0, 9, (3, 4, 2)).astype(float)
    counts[:, 2, 1] = 0
    alone = [float(log_marginal_likelihood(counts[:, j : j + 1, c : c + 1], 0.5)) for j in range(4) for c in range(2)]
    assert log_marginal_likelihood(counts, 0.5) == pytest.approx(sum(alone), rel=1e-12)
    assert alone[5] == 0


def beta_of(n_labels: int, n: float) -> float:
    """The slope under Dir(1, ..., 1, n), by the paper's formula."""
    tail = float(polygamma(1, n_labels + n))
    return (float(polygamma(1, n_labels)) - tail) / (math.pi**2 / 6 - n_labels * tail)


def acll_by_cells(family: Array, beta: float, least: float) -> float:
    """Equation 28: sum over j, k, c of (alpha N_kjc - beta sum over c' != c of N_kjc') ln theta_kjc."""
    r, q, n_labels = family.shape
    weights = np.zeros(family.shape)
    for k, j, c in itertools.product(range(r), range(q), range(n_labels)):
        others = math.fsum(family[k, j, o] for o in range(n_labels) if o != c)
        weights[k, j, c] = (1 - beta) * family[k, j, c] - beta * others
    terms = []
    for k, j, c in itertools.product(range(r), range(q), range(n_labels)):
        floored = [max(float(weights[i, j, c]), least) for i in range(r)]
        terms.append(weights[k, j, c] * math.log(floored[k] / math.fsum(floored)))
    return math.fsum(terms)


UNIFORM_BETA = {2: (18 - math.pi**2) / 24, 3: 0.2001731557269, 4: float(uniform_approximation(4).beta)}


@given(family_counts(), pseudo_counts)
def test_acll_is_a_sum_over_cells(counts: Array, least: float) -> None:
    expected = [acll_by_cells(n, beta_of(n.shape[-1], float(n.sum())), least) for n in counts]
    assert acll(counts, least) == pytest.approx(expected, rel=1e-9, abs=1e-8)
    expected = [acll_by_cells(n, UNIFORM_BETA[n.shape[-1]], least) for n in counts]
    assert acll_uniform(counts, least) == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_in_acll_the_direction_of_an_arc_matters() -> None:
    """Theorem 3.9's four rows (x1, x2, c): 001 011 110 111."""
    counts = np.zeros((2, 2, 2))
    for row in ((0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 1, 1)):
        counts[row] += 1
    forward, backward = families.gains(partial(acll, pseudo_counts=0.1), counts)
    assert abs(forward - backward) > 0.01


def test_the_two_assumptions_differ() -> None:
    counts = np.random.default_rng(0).integers(0, 50, (3, 4, 2)).astype(float)
    assert acll(counts, 5.0) != pytest.approx(acll_uniform(counts, 5.0), rel=1e-3)
