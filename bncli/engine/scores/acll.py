"""Approximate conditional log-likelihood, the joint probabilities of a row and each class Dirichlet(1, ..., 1, N).

    acll:N' = sum over k, j, c of M_kjc ln theta_kjc

with the contrasts M and the parameters theta of `bncli.engine.scores.acll_approximation`, and beta as
`bncli.engine.scores.acll_approximation` gives it for N rows, the sum of the counts; constants are left out. Unlike the
conditional log-likelihood itself it is a sum over families, so that the best tree can be found; the direction of an arc
matters. Source: Carvalho, Adao & Mateus 2013, Entropy 15, equation 28.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.scores import acll_approximation as class_contrast
from bncli.engine.scores.acll_approximation import dirichlet, line_of

EQUIVALENT = False


def family_scores(counts: Array, number: float, prior: str | None = None) -> Array:
    """Return scores (...) from counts (..., r, q, K); `number` is N' > 0; `prior`: another distribution (`line_of`)."""
    k = counts.shape[-1]
    beta = (dirichlet(k, counts.sum(axis=(-3, -2, -1))) if prior is None else line_of(prior, k)).beta
    return class_contrast.family_scores(counts, beta, number)
