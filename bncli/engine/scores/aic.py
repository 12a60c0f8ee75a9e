"""Akaike's information criterion: the log-likelihood less the number of free parameters.

    aic = ll - (r - 1) q K

Parent configurations that no row has count as parameters too.
Source: Akaike 1974, IEEE Transactions on Automatic Control 19.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.scores.log_likelihood import free_parameters, log_likelihood

EQUIVALENT = True


def family_scores(counts: Array) -> Array:
    """Return scores (...) from counts (..., r, q, K)."""
    return log_likelihood(counts) - free_parameters(counts)
