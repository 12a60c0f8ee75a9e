"""How strongly columns depend on each other and on the class, from contingency tables.

Mutual information is in nats, on weighted relative frequencies:

    I(X; Y)     = sum over a, y of    P(a, y)    ln [ P(a, y) / (P(a) P(y)) ]
    I(X; Z | Y) = sum over a, b, y of P(a, b, y) ln [ P(a, b, y) P(y) / (P(a, y) P(b, y)) ]

It is computed term by term, not as a difference of entropies: near independence the terms themselves are small, so
that the sum is accurate, and exact independence gives exactly 0.

**How much the class varies among the levels** of a categorical attribute is the variance of the levels' effects. The
counts of the classes in a level of n_l rows have a Dirichlet-multinomial distribution around expected class frequencies
f_l, which are those of all rows unless a level's own are supplied,

    P(n_l) = G(a) / G(n_l + a) * prod over classes y of G(n_ly + a f_ly) / G(a f_ly),    G the gamma function

A Dirichlet variable is a normalised vector of independent gamma variables of shape a f_y, whose logarithms have the
variances trigamma(a f_y). Their mean, weighted by the class frequencies f of all rows, is the variance of an effect,

    v(a) = sum over classes y of f_y trigamma(a f_y)

The estimate is the mean of v(a) over the members of CONCENTRATIONS, weighted by their likelihoods. (The v of the most
likely member alone jumps by a factor of two, and a few levels hardly tell the members apart.) This is an
empirical-Bayes estimate of the variance of random effects (McCulloch, Searle & Neuhaus 2008, Generalized, Linear, and
Mixed Models, chapters 2 and 13). Counts (levels, K) may be weights; a class without rows is left out.
"""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.kernels.arrays import Array

SIGNIFICANT_DIGITS = 12
"""Scores are rounded to this many digits before they are compared, so that ties do not depend on rounding errors."""
CONCENTRATIONS = tuple(2.0**k for k in range(-2, 15))


def mutual_information(table: Array) -> Array:
    """Return I(X; Y) of tables n[a, y], shape (..., values, K) -> (...); 0 for an empty table.

    >>> same, independent = np.eye(2), np.ones((2, 2))
    >>> (mutual_information(np.stack([same, independent])) / math.log(2)).tolist()  # in bits
    [1.0, 0.0]
    """
    # I(X; Y) is I(X; Z | 1): Y in the place of Z, and a condition of one value
    return conditional_mutual_information(table[..., np.newaxis])


def conditional_mutual_information(table: Array) -> Array:
    """Return I(X; Z | Y) >= 0 of tables n[a, b, y], shape (..., values, values, K) -> (...); 0 for an empty table."""
    shape, n_cells = table.shape[:-3], math.prod(table.shape[-3:])
    # marginals n[a, ., y] and n[., b, y], summed axes kept
    left, right = np.add.reduce(table, axis=-2, keepdims=True), np.add.reduce(table, axis=-3, keepdims=True)
    # the N of P = n / N cancels in the ratio: n[a, b, y] n[., ., y] / (n[a, ., y] n[., b, y])
    joint = table * np.add.reduce(right, axis=-2, keepdims=True)
    independent = left * right
    # 0 ln 0 = 0: empty cells add nothing
    flat = table.ravel()
    occurring = flat.nonzero()[0]
    terms = joint.ravel()[occurring]
    terms /= independent.ravel()[occurring]
    np.log(terms, out=terms)
    terms *= flat[occurring]
    # every term is added to the table that its cell is in
    sums = np.bincount(occurring // max(n_cells, 1), terms, math.prod(shape)).reshape(shape)
    total = np.add.reduce(table.reshape(*shape, n_cells), axis=-1)
    # near independence, rounding may leave the sum just below 0
    return np.asarray(np.maximum(sums / np.where(total > 0, total, 1.0), 0.0))


def rounded(scores: Array) -> Array:
    """Round `scores` to 12 significant digits, so that scores that differ by rounding errors compare as equal.

    >>> bool(rounded(np.array(0.1 + 0.2)) == rounded(np.array(0.3)))
    True
    """
    magnitude = np.floor(np.log10(np.abs(scores), where=scores != 0, out=np.zeros_like(scores)))
    # the clip keeps the power of ten finite for the tiniest and the largest scores
    scale = 10.0 ** (SIGNIFICANT_DIGITS - 1 - np.clip(magnitude, -290, 290))
    return np.round(scores * scale) / scale


def variance_of_effects(counts: Array, expected: Array | None = None) -> float:
    """Return v, the variance of the levels' effects, given the class counts (levels, K).

    expected (levels, K): the class frequencies of each level that v is the variance around, positive for every class
    that occurs; by default those of all rows. If the class does not vary among the levels, v is near 0.
    """
    from scipy.special import polygamma  # takes long to load: only where it is used

    occurs = counts.any(axis=0)
    counts, shares = _occurring(counts)
    around = shares
    if expected is not None:
        around = expected[:, occurs] / expected[:, occurs].sum(axis=1, keepdims=True)
    log_likelihoods = np.array([_log_likelihood(counts, around, a) for a in CONCENTRATIONS])
    weights = np.exp(log_likelihoods - log_likelihoods.max())
    variances = np.array([shares @ polygamma(1, a * shares) for a in CONCENTRATIONS])
    return float(weights @ variances / weights.sum())


def evidence_of_effects(counts: Array) -> float:
    """Return the gain in log-likelihood, in nats, if the class distribution may differ between levels.

    counts (levels, K): the weight of the rows of each level and class.
    """
    counts, shares = _occurring(counts)
    # the limit of P(n_l) for a -> infinity, prod over y of f_y^n_ly: every level has the overall class frequencies
    without = float((counts @ np.log(shares)).sum())
    return max(_log_likelihood(counts, shares, a) for a in CONCENTRATIONS) - without


def _occurring(counts: Array) -> tuple[Array, Array]:
    """Return the counts of the classes that occur, and the relative frequencies of these classes."""
    counts = counts[:, counts.any(axis=0)]
    return counts, counts.sum(axis=0) / counts.sum()


def _log_likelihood(counts: Array, shares: Array, a: float) -> float:
    """Return the sum over levels of ln P(n_l), for the concentration a and shares f of shape (K,) or (levels, K)."""
    from scipy.special import gammaln

    of_levels = gammaln(a) - gammaln(counts.sum(axis=1) + a)
    of_levels += (gammaln(counts + a * shares) - gammaln(a * shares)).sum(axis=1)
    return float(of_levels.sum())
