"""How surprising rows are: the distribution of ln P(x), which a generative model gives, over many rows.

A row that is unlike all that the model has seen has a low one (`bncli.engine.networks.joint_model`).

Conventions: the distribution is kept as counts of 1 % wide intervals of -ln P(x), in nats (Masson, Rim & Lee 2019,
DDSketch), so that a stream takes no memory, and sketches of several streams add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from bncli.engine.kernels.arrays import Array

WIDTH = float(np.log(1.01))
"""Of an interval of the sketch, on the scale of ln(-ln P(x))."""
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class Sketch:
    """Counts of -ln P(x) by interval: interval k holds exp((k - 1) WIDTH) to exp(k WIDTH) nats."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts)

    def add(self, log_p: Array) -> None:
        """More rows."""
        nats = np.maximum(-log_p, 1e-9)
        values, counts = np.unique(np.ceil(np.log(nats) / WIDTH).astype(np.int64), return_counts=True)
        self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def quantile(self, q: float) -> float | None:
        """ln P(x) that a share q of the rows do not exceed, to 1 %; None without rows."""
        rank, total = q * sum(self.counts.values()), 0
        for interval in sorted(self.counts, reverse=True):
            total += self.counts[interval]
            if total >= rank:
                return -float(np.exp((interval - 0.5) * WIDTH))
        return None
