"""Scores of a family: how well its parents explain a child. A network's score is the sum over its families.

Every function takes counts of shape (..., r, q, K): batch axes, the child's r values, one flat axis of the q
configurations of its attribute parents (q = 1 without any), and the K classes, since the class is a parent too. It
returns one score per element of the batch, in nats; higher is better. Rows may be weighted, so counts need not be whole
numbers. In the formulas, N is the sum of the counts, k a value of the child, j a configuration, c a class, and G the
gamma function.

A score is called equivalent if an arc gains the same in both directions:

    score(i | class, j) - score(i | class) = score(j | class, i) - score(j | class)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.structures.acll_approximation import (
    acll_scores,
    dirichlet_approximation,
    prior_approximation,
    uniform_approximation,
)


class FamilyScore(NamedTuple):
    """A score function, whether the score is equivalent, and the arguments that the function takes after the counts."""

    function: Callable[..., Array]
    equivalent: bool
    arguments: tuple[float | str, ...] = ()

    def score(self, counts: Array) -> Array:
        """Return scores (...) in nats from counts (..., r, q, K)."""
        return self.function(counts, *self.arguments)


def log_likelihood(counts: Array) -> Array:
    """Return the log-likelihood of the child at its most likely parameters, the relative frequencies; at most 0.

        ll = sum over k, j, c of N_kjc ln (N_kjc / N_jc)

    An empty cell adds 0. The score never falls when a parent is added, so on its own it suits structures of a fixed
    size, such as trees. Source: Chow & Liu 1968, IEEE Transactions on Information Theory 14.

    >>> counts = np.array([[[3.0], [0.0]], [[1.0], [2.0]]])  # two values, two configurations, one class
    >>> round(math.exp(log_likelihood(counts)), 9)  # (3/4)^3 (1/4) 1^2
    0.10546875
    """
    totals = counts.sum(axis=-3, keepdims=True)
    ratios = counts / np.where(totals > 0, totals, 1.0)
    ratios += ratios == 0  # ln 1 = 0 adds nothing; a masked logarithm would take six times as long
    np.log(ratios, out=ratios)
    ratios *= counts
    return np.asarray(ratios.sum(axis=(-3, -2, -1)))


def aic(counts: Array) -> Array:
    """Return Akaike's information criterion: ll - (r - 1) q K.

    Configurations without rows count as parameters too. Source: Akaike 1974, IEEE Transactions on Automatic Control 19.
    """
    return log_likelihood(counts) - free_parameters(counts)


def bic(counts: Array) -> Array:
    """Return the Bayesian information criterion: ll - (ln N) / 2 * (r - 1) q K.

    Configurations without rows count as parameters too, so the penalty follows from the cardinalities. A total weight
    below 1 counts as 1, so that the penalty is never negative. Source: Schwarz 1978, Annals of Statistics 6.
    """
    n = np.maximum(counts.sum(axis=(-3, -2, -1)), 1.0)
    return np.asarray(log_likelihood(counts) - 0.5 * np.log(n) * free_parameters(counts))


def k2(counts: Array) -> Array:
    """Return the log marginal likelihood under a uniform prior over the child's distributions.

        k2 = sum over j, c of { ln G(r) - ln G(N_jc + r) + sum over k of ln G(N_kjc + 1) }

    Uniform priors in all families do not agree with each other, so the score is not equivalent.
    Source: Cooper & Herskovits 1992, Machine Learning 9.
    """
    return log_marginal_likelihood(counts, 1.0)


def bdeu(counts: Array, strength: float) -> Array:
    """Return the log marginal likelihood under a Dirichlet prior worth S = `strength` > 0 rows, spread evenly.

        bdeu = sum over j, c of { ln G(r a) - ln G(N_jc + r a) + sum over k of [ ln G(N_kjc + a) - ln G(a) ] }
        a = S / (r q K)

    All families share one prior over rows, so the score is equivalent.
    Source: Heckerman, Geiger & Chickering 1995, Machine Learning 20.
    """
    return log_marginal_likelihood(counts, strength / math.prod(counts.shape[-3:]))


def acll(counts: Array, pseudo_counts: float, prior: str | None = None) -> Array:
    """Return the approximate conditional log-likelihood (`bncli.engine.structures.acll_approximation`).

    Unlike the conditional log-likelihood itself, it is a sum over families, so that the best tree can be found. It is
    not equivalent. `pseudo_counts` is N' > 0. `prior` is the distribution of P(row, class), as `prior_approximation`
    reads it; None means Dirichlet(1, ..., 1, N).
    """
    n_labels = counts.shape[-1]
    if prior is None:
        beta = dirichlet_approximation(n_labels, counts.sum(axis=(-3, -2, -1))).beta
    else:
        beta = prior_approximation(prior, n_labels).beta
    return acll_scores(counts, beta, pseudo_counts)


def acll_uniform(counts: Array, pseudo_counts: float) -> Array:
    """Return the approximate conditional log-likelihood if all P(row, class) are independent and uniform on [0, 1]."""
    return acll_scores(counts, uniform_approximation(counts.shape[-1]).beta, pseudo_counts)


FAMILY_SCORES: dict[str, FamilyScore] = {
    "ll": FamilyScore(log_likelihood, equivalent=True),
    "bic": FamilyScore(bic, equivalent=True),
    "aic": FamilyScore(aic, equivalent=True),
    "k2": FamilyScore(k2, equivalent=False),
    "bdeu": FamilyScore(bdeu, equivalent=True),
    "acll": FamilyScore(acll, equivalent=False),
    "acll-uniform": FamilyScore(acll_uniform, equivalent=False),
}
"""The scores, by the word typed after `--structure-score`; the catalogue lists the same words."""


def parse_score(rule: str) -> FamilyScore:
    """Return the score written as `NAME`, `NAME:NUMBER` or `NAME:NUMBER/PRIOR`, with its number and prior."""
    name, _, numbers = rule.partition(":")
    number, _, prior = numbers.partition("/")
    arguments: list[float | str] = [float(number)] if number else []
    if prior:
        arguments.append(prior)
    return FAMILY_SCORES[name]._replace(arguments=tuple(arguments))


def free_parameters(counts: Array) -> int:
    """Return (r - 1) q K, the number of free probabilities of the child.

    >>> free_parameters(np.zeros((3, 4, 2)))
    16
    """
    r: int = counts.shape[-3]
    return (r - 1) * math.prod(counts.shape[-2:])


def log_marginal_likelihood(counts: Array, prior: float) -> Array:
    """Return the log marginal likelihood under Dirichlet priors with a = `prior` > 0 in every cell.

        sum over j, c of { ln G(r a) - ln G(N_jc + r a) + sum over k of [ ln G(N_kjc + a) - ln G(a) ] }

    A configuration without rows adds 0. Source: Cooper & Herskovits 1992, Machine Learning 9.

    >>> heads_and_tails = np.array([[[3.0]], [[5.0]]])
    >>> round(math.exp(-log_marginal_likelihood(heads_and_tails, 1.0)))  # (3 + 5 + 1)! / (3! 5!)
    504
    """
    from scipy.special import gammaln  # takes longer to load than most structures to learn: only where it is used

    configurations, total_prior = counts.sum(axis=-3), counts.shape[-3] * prior
    cells = gammaln(counts + prior) - gammaln(prior)
    rows = gammaln(configurations + total_prior) - gammaln(total_prior)
    return np.asarray(cells.sum(axis=(-3, -2, -1)) - rows.sum(axis=(-2, -1)))
