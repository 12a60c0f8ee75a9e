"""Log-likelihood of a child given its parents at the most likely parameters, the relative frequencies.

    ll = sum over k, j, c of N_kjc ln (N_kjc / N_jc)

Never falls when a parent is added: on its own it suits structures whose size is fixed, as trees are.
Source: Chow & Liu 1968, IEEE Transactions on Information Theory 14.
"""

from __future__ import annotations

from bncli.engine.kernels.arrays import Array
from bncli.engine.scores.log_likelihood import log_likelihood

EQUIVALENT = True


def family_scores(counts: Array) -> Array:
    """Return scores (...), never positive, from counts (..., r, q, K)."""
    return log_likelihood(counts)
