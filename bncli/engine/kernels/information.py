"""Mutual information from contingency tables, in nats, on weighted relative frequencies.

    I(X; Y)     = sum over a, y of    P(a, y)    ln [ P(a, y) / (P(a) P(y)) ]
    I(X; Z | Y) = sum over a, b, y of P(a, b, y) ln [ P(a, b, y) P(y) / (P(a, y) P(b, y)) ]

Computed term by term, not as a difference of entropies: near independence the terms are small themselves, so the
sum keeps its digits, and exact independence gives exactly 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIGNIFICANT_DIGITS = 12
"""Scores are compared after rounding to so many digits, so that ties are ties whatever the order of summation."""


def mutual_information(table: NDArray[np.float64]) -> float:
    """I(X; Y) of a table n[a, y], shape (values, K); 0 for an empty table."""
    return conditional_mutual_information(table[:, :, np.newaxis])


def conditional_mutual_information(table: NDArray[np.float64]) -> float:
    """I(X; Z | Y) of a table n[a, b, y], shape (values, values, K); never negative; 0 for an empty table."""
    total = table.sum()
    if total <= 0:
        return 0.0
    joint = table * table.sum(axis=(0, 1))
    independent = table.sum(axis=1)[:, np.newaxis, :] * table.sum(axis=0)[np.newaxis, :, :]
    seen = table > 0
    terms = table[seen] * np.log(joint[seen] / independent[seen])
    return max(float(terms.sum() / total), 0.0)


def rounded(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """`scores` to 12 significant digits, the form in which they are compared."""
    magnitude = np.floor(np.log10(np.abs(scores), where=scores != 0, out=np.zeros_like(scores)))
    scale = 10.0 ** (SIGNIFICANT_DIGITS - 1 - np.clip(magnitude, -290, 290))
    return np.round(scores * scale) / scale
