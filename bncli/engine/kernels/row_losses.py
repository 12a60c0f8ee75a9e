"""How wrong each row's class probabilities are, from how far every class is ahead of the true one.

With d[y] = ln P(y | x) - ln P(true class | x), so d[true class] = 0, and p = P(true class | x) = 1 / sum_y e^d[y],

    squared miss    (1 - p)^2
    error           1 if the first class of the highest d is not the true one, else 0
    surprise        -ln p

1 - p is summed up from the other classes, not subtracted from 1: it keeps its digits where p is next to 1.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array, Integers

TIE = 1e-10
"""Classes no further than this (nats) behind the highest are as likely as it; the first of them is predicted."""


def squared_misses(ahead: Array, labels: Integers) -> Array:
    """(1 - p)^2 of every row; ahead = d, shape (K, rows), labels (rows,)."""
    _, own, others = _shares(ahead, labels)
    missed: Array = np.square(others / (own + others))
    return missed


def errors(ahead: Array, labels: Integers) -> Array:
    """1 for every row that is given a wrong class, else 0; arguments as for `squared_misses`."""
    predicted = (ahead >= ahead.max(axis=0) - TIE).argmax(axis=0)
    wrong: Array = np.not_equal(predicted, labels).astype(np.float64)
    return wrong


def surprises(ahead: Array, labels: Integers) -> Array:
    """-ln p of every row, nats; arguments as for `squared_misses`."""
    top, own, others = _shares(ahead, labels)
    surprise: Array = top + np.log1p((own - 1.0) + others)
    return surprise


def _shares(ahead: Array, labels: Integers) -> tuple[Array, Array, Array]:
    """The highest d, then e^(d - highest) of the true class, and its sum over the other classes."""
    top = ahead.max(axis=0)
    shares = np.exp(ahead - top)
    rows = np.arange(len(labels))
    own = shares[labels, rows]
    shares[labels, rows] = 0.0
    return top, own, shares.sum(axis=0)
