"""K2: the log marginal likelihood of a child whose distributions are all equally likely beforehand.

    k2 = sum over j, c of { ln G(r) - ln G(N_jc + r) + sum over k of ln G(N_kjc + 1) },    G the gamma function

A uniform Dirichlet prior in every family does not fit together across families: the direction of an arc matters.
Source: Cooper & Herskovits 1992, Machine Learning 9.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.scores.log_likelihood import log_marginal_likelihood

EQUIVALENT = False


def family_scores(counts: Array) -> Array:
    """Return scores (...) from counts (..., r, q, K)."""
    return log_marginal_likelihood(counts, 1.0)
