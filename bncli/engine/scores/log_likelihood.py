"""The two likelihoods of a family's counts: the highest, and the average over a symmetric Dirichlet prior.

Counts have the shape (..., r, q, K): the child's r values, its q configurations j of attribute parents, the class c.
"""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.kernels.arrays import Array


def log_likelihood(counts: Array) -> Array:
    """Return sum over k, j, c of N_kjc ln (N_kjc / N_jc), counts (..., r, q, K) to (...), nats; an empty cell adds 0.

    No table of probabilities gives the counts a higher one than their relative frequencies do.

    >>> counts = np.array([[[3.0], [0.0]], [[1.0], [2.0]]])  # two values, two configurations, one class
    >>> round(math.exp(log_likelihood(counts)), 9)  # (3/4)^3 (1/4) 1^2
    0.10546875
    """
    totals = counts.sum(axis=-3, keepdims=True)
    ratios = counts / np.where(totals > 0, totals, 1.0)
    ratios += ratios == 0  # ln 1 adds nothing; a masked logarithm would take six times as long
    np.log(ratios, out=ratios)
    ratios *= counts
    return np.asarray(ratios.sum(axis=(-3, -2, -1)))


def free_parameters(counts: Array) -> int:
    """Return (r - 1) q K: the probabilities of a child that are not the rest of a sum of 1.

    >>> free_parameters(np.zeros((3, 4, 2)))
    16
    """
    r: int = counts.shape[-3]
    return (r - 1) * math.prod(counts.shape[-2:])


def log_marginal_likelihood(counts: Array, prior: float) -> Array:
    """Return log marginal likelihood.

    Parameters integrated out, `prior` a > 0 a cell. Counts (..., r, q, K) to (...), nats.

        sum over j, c of { ln G(r a) - ln G(N_jc + r a) + sum over k of [ ln G(N_kjc + a) - ln G(a) ] }

    Each bracket is 0 where its count is. Source: Cooper & Herskovits 1992, Machine Learning 9.

    >>> heads_and_tails = np.array([[[3.0]], [[5.0]]])
    >>> round(math.exp(-log_marginal_likelihood(heads_and_tails, 1.0)))  # (3 + 5 + 1)! / (3! 5!), all biases alike
    504
    """
    from scipy.special import gammaln  # takes longer to load than most structures to learn: only where it is used

    configurations, total_prior = counts.sum(axis=-3), counts.shape[-3] * prior
    cells = gammaln(counts + prior) - gammaln(prior)
    rows = gammaln(configurations + total_prior) - gammaln(total_prior)
    return np.asarray(cells.sum(axis=(-3, -2, -1)) - rows.sum(axis=(-2, -1)))
