"""How much the class varies among the levels of a category: the variance of the levels' effects.

The counts of the classes in a level of n_l rows have a Dirichlet-multinomial distribution around the class frequencies
f,

    P(n_l) = G(a) / G(n_l + a) * prod over classes y of G(n_ly + a f_y) / G(a f_y),    G the gamma function

whose concentration a is the one of CONCENTRATIONS with the highest likelihood over all levels (if tied, the
smallest). A Dirichlet distribution is made of independent gamma variables of shape a f_y, whose logarithms have the
variances trigamma(a f_y). Their mean is the variance of an effect,

    v = sum over classes y of f_y trigamma(a f_y)

an empirical-Bayes estimate of the variance of random effects (McCulloch, Searle & Neuhaus 2008, Generalized, Linear,
and Mixed Models, chapters 2 and 13). Counts (levels, K) may be weights; a class without rows is left out.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array

CONCENTRATIONS = tuple(2.0**k for k in range(-2, 13))


def variance_of_effects(counts: Array) -> float:
    """Return v of levels with these class counts (levels, K): about K / max(CONCENTRATIONS) if levels do not vary."""
    from scipy.special import polygamma  # takes long to load: only where it is used

    counts, shares = _occurring(counts)
    a = CONCENTRATIONS[int(np.argmax([_log_likelihood(counts, shares, a) for a in CONCENTRATIONS]))]
    return float(shares @ polygamma(1, a * shares))


def evidence_of_effects(counts: Array) -> float:
    """Return the gain of log-likelihood, in nats, when the class distribution may differ between levels.

    counts (levels, K): the rows of each level and class.
    """
    counts, shares = _occurring(counts)
    # the limit of P(n_l) for a -> infinity, prod over y of f_y^n_ly: every level has the shares of all rows
    without = float((counts @ np.log(shares)).sum())
    return max(_log_likelihood(counts, shares, a) for a in CONCENTRATIONS) - without


def _occurring(counts: Array) -> tuple[Array, Array]:
    """Return the counts of the classes that occur, and their shares of all rows."""
    counts = counts[:, counts.any(axis=0)]
    return counts, counts.sum(axis=0) / counts.sum()


def _log_likelihood(counts: Array, shares: Array, a: float) -> float:
    """Return the sum over levels of ln P(n_l)."""
    from scipy.special import gammaln

    of_levels = gammaln(a) - gammaln(counts.sum(axis=1) + a)
    of_levels += (gammaln(counts + a * shares) - gammaln(a * shares)).sum(axis=1)
    return float(of_levels.sum())
