"""Counts of a class held against those of all classes: what the approximate conditional log-likelihood is made of.

Putting the straight line of `bncli.engine.scores.acll_approximation` for the logarithm of the sum, the conditional
log-likelihood becomes, up to a constant,

    aCLL = sum over families, k, j, c of M_kjc ln theta_kjc,
    M_kjc = (1 - beta) N_kjc - beta (sum over c' != c of N_kjc') = N_kjc - beta (sum over all c' of N_kjc')

A cell speaks for its class (M > 0) where the class is more frequent in it than beta. With N' pseudo-counts, aCLL is
highest, among all theta_kjc >= N' / (sum over k of N+_kjc), at

    theta_kjc = N+_kjc / (sum over k of N+_kjc),      N+_kjc = max(M_kjc, N')

Source: Carvalho, Adao & Mateus 2013, Entropy 15, theorem 3.8 and equation 28 (which print a plus for M's minus).
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array


def contrast(counts: Array, beta: Array) -> Array:
    """M of counts (..., K), the same shape; it may be negative. `beta` is one number or fits the counts' axes.

    >>> contrast(np.array([[6.0, 2.0], [0.0, 4.0]]), np.array(0.25)).tolist()  # a cell a row, a class a column
    [[4.0, 0.0], [-1.0, 3.0]]
    """
    return np.asarray(counts - beta * counts.sum(axis=-1, keepdims=True))


def log_theta(counts: Array, beta: Array, pseudo_counts: float, axis: int) -> Array:
    """ln theta of counts (..., K), normalised over `axis`, the child's; finite as `pseudo_counts` N' > 0."""
    return _log_theta(contrast(counts, beta), pseudo_counts, axis)


def _log_theta(contrasts: Array, pseudo_counts: float, axis: int) -> Array:
    kept = np.maximum(contrasts, pseudo_counts)
    return np.asarray(np.log(kept / kept.sum(axis=axis, keepdims=True)))


def family_scores(counts: Array, beta: Array, pseudo_counts: float) -> Array:
    """The families' share of aCLL at these parameters: counts (..., r, q, K), `beta` (...), to (...), nats."""
    contrasts = contrast(counts, beta[..., np.newaxis, np.newaxis, np.newaxis])
    return np.asarray((contrasts * _log_theta(contrasts, pseudo_counts, axis=-3)).sum(axis=(-3, -2, -1)))
