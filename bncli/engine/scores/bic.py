"""Bayesian information criterion: the log-likelihood less half the log of the number of rows a free parameter.

    bic = ll - (ln N) / 2 * (r - 1) q K

Conventions: parent configurations that no row has count as parameters too, so the penalty follows from the
cardinalities; a total weight under 1 counts as 1, so that the penalty is never negative.
Source: Schwarz 1978, Annals of Statistics 6.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.scores.log_likelihood import free_parameters, log_likelihood

EQUIVALENT = True


def family_scores(counts: Array) -> Array:
    """Return scores (...) from counts (..., r, q, K)."""
    n = np.maximum(counts.sum(axis=(-3, -2, -1)), 1.0)
    return np.asarray(log_likelihood(counts) - 0.5 * np.log(n) * free_parameters(counts))
