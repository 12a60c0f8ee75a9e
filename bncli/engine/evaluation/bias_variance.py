"""Why a method errs: bias, what it gets wrong on average over training sets, and variance, what changes with them.

Every row t is predicted once in each of T trials, each time by a model learnt from other rows (Webb's repeated
cross-validation, 2000, Machine Learning 40). With Q[t, y] the share of the trials that predict class y,

    bias     = mean over t of 1/2 sum over y of (1[y = y_t] - Q[t, y])^2
    variance = mean over t of 1/2 (1 - sum over y of Q[t, y]^2)

(Kohavi & Wolpert 1996, ICML; the observed label stands for the distribution of the class, so noise counts as bias).
Multiplied out, the squares cancel and 1 - Q[t, y_t] is left: the two add up to the error, the mean 0-1 loss over all
rows and trials.

Conventions: row weights are multiplicities. Cost: O((T + K) N), a block of rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array, Integers
from bncli.errors import BncliError

_BLOCK = 1 << 16


@dataclass(frozen=True)
class BiasVariance:
    """Bias and variance in the sense of Kohavi and Wolpert; they add up to the error."""

    bias: float
    variance: float

    @property
    def error(self) -> float:
        return self.bias + self.variance


def bias_variance(
    labels: Integers, predictions: Integers, n_labels: int, weights: ArrayLike | None = None
) -> BiasVariance:
    """Of the true labels (N,) and those predicted (T, N), all codes below `n_labels`; weights (N,).

    >>> bias_variance(np.array([0, 1]), np.array([[0, 0], [1, 0]]), n_labels=2)  # one row varies, one is always wrong
    BiasVariance(bias=0.625, variance=0.125)
    """
    n_rows = len(labels)
    w = np.ones(n_rows) if weights is None else np.asarray(weights, np.float64)
    if predictions.ndim != 2 or len(predictions) == 0 or predictions.shape[1] != n_rows or w.shape != (n_rows,):
        raise BncliError(
            f"bias and variance need a label, a weight and predictions for every row, not of shapes "
            f"{labels.shape}, {w.shape}, {predictions.shape}"
        )
    total = float(w.sum())
    if not total > 0:
        raise BncliError("bias and variance need rows of positive weight")
    sums = np.zeros(2)
    for rows in (slice(start, start + _BLOCK) for start in range(0, n_rows, _BLOCK)):
        right, squares = _shares(labels[rows], predictions[:, rows], n_labels)
        sums += w[rows] @ (1 - 2 * right + squares), w[rows] @ (1 - squares)
    bias, variance = sums / (2 * total)
    return BiasVariance(float(bias), float(variance))


def _shares(labels: Integers, predictions: Integers, n_labels: int) -> tuple[Array, Array]:
    """Q[t, y_t] and the sum over y of Q[t, y]^2."""
    n_trials, n = predictions.shape
    rows = np.arange(n)
    cells = (rows * n_labels + predictions).ravel()
    counts = np.bincount(cells, minlength=n * n_labels).reshape(n, n_labels) / n_trials
    return counts[rows, labels], (counts**2).sum(axis=1)
