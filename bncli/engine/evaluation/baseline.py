"""The class frequencies as a classifier: what can be said of a row without looking at it.

    P(c | x_t) = f_c, the share of label c in the weight of the training rows;    log_loss = -mean of ln f_{y_t}

A model is worth something where its log-loss is lower; how much is told by the skill score 1 - log_loss / base log_loss
(also D^2, the share of the deviance explained): 1 is perfect, 0 no better than the frequencies.

Conventions: the predicted label is the commonest one, the first of equals. A label that the training rows lack counts
as one row of average weight, so that the log-loss of the frequencies is finite wherever a model's is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Integers


class Baseline(NamedTuple):
    """Figures of the class frequencies; log_loss in nats."""

    accuracy: float
    log_loss: float


def class_frequencies(labels: Integers, n_labels: int, weights: Array | None = None) -> Array:
    """The share of every label, shape (K,), all above 0, in labels (N,) under weights (N,) or None for 1."""
    masses = np.bincount(labels, weights, n_labels).astype(np.float64)
    masses[masses == 0] = 1.0 if weights is None else weights.mean()
    shares: Array = masses / masses.sum()
    return shares


def measure_baseline(frequencies: Array, labels: Integers, weights: Array | None = None) -> Baseline:
    """How well frequencies (K,) predict labels (N,) under weights (N,) or None for 1."""
    masses = np.bincount(labels, weights, len(frequencies))
    shares = masses / masses.sum()
    return Baseline(float(shares[frequencies.argmax()]), float(-(shares @ np.log(frequencies))) + 0.0)


def skill_score(log_loss: float | None, base: float | None) -> float | None:
    """1 - log_loss / base; None where either is not defined, or the frequencies leave nothing to be learnt."""
    return None if log_loss is None or not base else 1 - log_loss / base
