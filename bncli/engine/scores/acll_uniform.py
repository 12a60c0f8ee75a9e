"""Approximate conditional log-likelihood, the joint probabilities of a row and each class independent and uniform.

    acll-uniform:N' = sum over k, j, c of M_kjc ln theta_kjc

with the contrasts M and the parameters theta of `bncli.engine.scores.acll_approximation`, and beta as
`scores.acll_approximation` gives it; constants are left out. The direction of an arc matters. Source: Carvalho,
Adao & Mateus 2013, Entropy 15, equation 28.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.scores import acll_approximation as class_contrast
from bncli.engine.scores.acll_approximation import uniform

EQUIVALENT = False


def family_scores(counts: Array, number: float) -> Array:
    """Return scores (...) from counts (..., r, q, K); `number` is N' > 0."""
    return class_contrast.family_scores(counts, uniform(counts.shape[-1]).beta, number)
