"""BDeu: the log marginal likelihood under a Dirichlet prior worth S rows, spread evenly over the family's cells.

    bdeu:S = sum over j, c of { ln G(r a) - ln G(N_jc + r a) + sum over k of [ ln G(N_kjc + a) - ln G(a) ] },
    a = S / (r q K)

All families share one prior over rows, so the direction of an arc does not matter.
Source: Heckerman, Geiger & Chickering 1995, Machine Learning 20.
"""

from __future__ import annotations

import math

from bncli.engine.kernels.arrays import Array
from bncli.engine.scores.log_likelihood import log_marginal_likelihood

EQUIVALENT = True


def family_scores(counts: Array, number: float) -> Array:
    """Return scores (...) from counts (..., r, q, K); `number` is S > 0."""
    return log_marginal_likelihood(counts, number / math.prod(counts.shape[-3:]))
