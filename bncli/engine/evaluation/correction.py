"""Several tests at once: Holm's correction of their p-values.

Of m true null hypotheses tested at level 0.05 each, one in twenty is rejected by accident. Holm (1979, Scandinavian
Journal of Statistics 6) keeps the chance of even one such accident below the level, whatever the tests have to do with
one another: with p_(1) <= ... <= p_(m),

    adjusted p_(i) = max over j <= i of min(1, (m - j + 1) p_(j))

A hypothesis is rejected where its adjusted p is at most the level. Cost: a sort.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError


def holm(p_values: ArrayLike) -> Array:
    """The adjusted p-values, in the order of `p_values`, shape (m,)."""
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise BncliError("p-values come as a list of numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted
