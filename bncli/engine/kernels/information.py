"""Mutual information from contingency tables, in nats, on weighted relative frequencies.

    I(X; Y)     = sum over a, y of    P(a, y)    ln [ P(a, y) / (P(a) P(y)) ]
    I(X; Z | Y) = sum over a, b, y of P(a, b, y) ln [ P(a, b, y) P(y) / (P(a, y) P(b, y)) ]

They are computed term by term, not as a difference of entropies: near independence the terms themselves are small, so
that the sum keeps its digits, and exact independence gives exactly 0.
"""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.kernels.arrays import Array

SIGNIFICANT_DIGITS = 12
"""Scores are rounded to this many digits before they are compared, so that ties do not depend on rounding errors."""


def mutual_information(table: Array) -> Array:
    """Return I(X; Y) of tables n[a, y], shape (..., values, K) -> (...); 0 for an empty table.

    >>> same, independent = np.eye(2), np.ones((2, 2))
    >>> (mutual_information(np.stack([same, independent])) / math.log(2)).tolist()  # in bits
    [1.0, 0.0]
    """
    # I(X; Y) is I(X; Z | 1): Y in the place of Z, and a condition of one value
    return conditional_mutual_information(table[..., np.newaxis])


def conditional_mutual_information(table: Array) -> Array:
    """Return I(X; Z | Y) >= 0 of tables n[a, b, y], shape (..., values, values, K) -> (...); 0 for an empty table."""
    shape, n_cells = table.shape[:-3], math.prod(table.shape[-3:])
    # marginals n[a, ., y] and n[., b, y], summed axes kept
    left, right = np.add.reduce(table, axis=-2, keepdims=True), np.add.reduce(table, axis=-3, keepdims=True)
    # the N of P = n / N cancels in the ratio: n[a, b, y] n[., ., y] / (n[a, ., y] n[., b, y])
    joint = table * np.add.reduce(right, axis=-2, keepdims=True)
    independent = left * right
    # 0 ln 0 = 0: empty cells add nothing
    flat = table.ravel()
    occurring = flat.nonzero()[0]
    terms = joint.ravel()[occurring]
    terms /= independent.ravel()[occurring]
    np.log(terms, out=terms)
    terms *= flat[occurring]
    # every term is added to the table that its cell is in
    sums = np.bincount(occurring // max(n_cells, 1), terms, math.prod(shape)).reshape(shape)
    total = np.add.reduce(table.reshape(*shape, n_cells), axis=-1)
    # near independence, rounding may leave the sum just below 0
    return np.asarray(np.maximum(sums / np.where(total > 0, total, 1.0), 0.0))


def rounded(scores: Array) -> Array:
    """Round `scores` to 12 significant digits, so that scores that differ by rounding errors compare as equal.

    >>> bool(rounded(np.array(0.1 + 0.2)) == rounded(np.array(0.3)))
    True
    """
    magnitude = np.floor(np.log10(np.abs(scores), where=scores != 0, out=np.zeros_like(scores)))
    # the clip keeps the power of ten finite for the tiniest and the largest scores
    scale = 10.0 ** (SIGNIFICANT_DIGITS - 1 - np.clip(magnitude, -290, 290))
    return np.round(scores * scale) / scale
