"""Log marginal likelihood of a child's counts: parameters integrated out under a symmetric Dirichlet prior.

    sum over j, c of { ln G(r a) - ln G(N_jc + r a) + sum over k of [ ln G(N_kjc + a) - ln G(a) ] }

Each bracket is 0 where its count is. Source: Cooper & Herskovits 1992, Machine Learning 9.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.gamma import log_gamma

STEPS = 16
"""Logarithms summed in the time that one logarithm of a gamma function takes."""


def log_marginal_likelihood(counts: Array, prior: float) -> Array:
    """Counts (..., r, q, K), `prior` a > 0 a cell, to (...), nats."""
    cells = _rising(counts, prior)
    configurations = _rising(counts.sum(axis=-3), counts.shape[-3] * prior)
    return np.asarray(cells.sum(axis=(-3, -2, -1)) - configurations.sum(axis=(-2, -1)))


def _rising(counts: Array, a: float) -> Array:
    """ln G(n + a) - ln G(a) of every count n.

    Where all n are whole it is the sum over m < n of ln(m + a), made once for all n and looked up.
    """
    highest = int(counts.max(initial=0.0))
    if highest < STEPS * counts.size:
        whole = counts.astype(np.intp)
        if np.array_equal(whole, counts):
            sums = np.zeros(highest + 1)
            np.cumsum(np.log(np.arange(highest) + a), out=sums[1:])
            return np.asarray(sums[whole])
    logs = log_gamma(np.append(counts, 0.0) + a)
    return np.asarray((logs[:-1] - logs[-1]).reshape(counts.shape))
