"""n log2 n in whole numbers: entropies of counts whose sums are exact in any order.

With n_k the count of class k and n their sum, the entropy in bits times n is

    n Ent = n log2 n - sum over k of n_k log2 n_k

Searching for a cut adds and subtracts millions of such terms; in floating point the sum would drift with the order
of rows. Here each term is rounded once, to a whole multiple of 2^-shift, and the rest is integer arithmetic:

    value(n) = rint(2^shift n log2 n),   shift the largest for which total log2 total stays below 2^60

so that sums of differences telescope exactly. An entropy is right to about 1e-14 bits a row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class NLogN:
    """n -> n log2 n in fixed point for whole numbers 0 <= n <= total; a table where it will be asked often enough."""

    def __init__(self, total: int, n_lookups: int) -> None:
        self.shift = 60 - math.ceil(math.log2(max(total, 2)) + math.log2(math.log2(max(total, 4))))
        self._table = self._computed(np.arange(total + 1)) if total <= n_lookups else None

    def __call__(self, n: Counts) -> Counts:
        """Fixed-point n log2 n of every element."""
        return self._computed(n) if self._table is None else self._table[n]

    def _computed(self, n: Counts) -> Counts:
        number = n.astype(np.float64)
        return np.rint(np.ldexp(number * np.log2(np.maximum(number, 1.0)), self.shift)).astype(np.int64)

    def entropy(self, counts: Counts) -> float:
        """n Ent of class counts (K,), in bits."""
        return math.ldexp(int(self(counts.sum(keepdims=True))[0] - self(counts).sum()), -self.shift)
