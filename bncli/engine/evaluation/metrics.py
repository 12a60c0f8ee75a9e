"""How good predicted probabilities are: losses, ranking, calibration and confusion.

With P[t, c] = P(c | x_t), y_t the true class, w_t the row weight and N their sum, all means weighted:

    accuracy = mean of [argmax_c P[t, c] = y_t],  error = 1 - accuracy     a tie goes to the first class
    cll      = sum over t of w_t ln P[t, y_t],    log_loss = -cll / N      nats
    rmse     = sqrt( mean of (1 - P[t, y_t])^2 )
    brier    = mean of sum over c of (P[t, c] - [c = y_t])^2               0 to 2
    ece      = sum over bins b of N_b / N |accuracy_b - mean of max_c P|   expected calibration error
    auc      = chance that a row of one class is ranked above a row of the other, ties counting half

For more than two classes auc is the mean over pairs of classes of the two areas that either one's probability
gives (Hand & Till 2001), over the pairs present; None where fewer than two classes are. Balanced accuracy and Matthews'
correlation (mcc) follow from the confusion matrix: see `confusion.py`.

Conventions: log-loss comes from the log-probabilities as they are, never from clipped ones; the ten bins of ece
are closed on the right, ((b-1)/10, b/10] (Guo et al. 2017). Cost: K searches of N rows for auc, a pass for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.evaluation.confusion import balanced_accuracy, matthews_correlation
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.errors import BncliError

ECE_BINS = 10
METRICS = ("accuracy", "error", "log_loss", "rmse", "brier", "auc", "ece", "cll", "balanced_accuracy", "mcc")
"""The figures of a report, in the order in which they are shown."""


@dataclass(frozen=True)
class Metrics:
    """Figures of one set of predictions; confusion[true, predicted] sums weights, whole numbers where rows weigh 1."""

    accuracy: float
    error: float
    log_loss: float
    rmse: float
    brier: float
    auc: float | None
    ece: float
    cll: float
    balanced_accuracy: float
    mcc: float
    confusion: NDArray[np.int64] | Array

    def figures(self) -> dict[str, float | None]:
        """The METRICS by name."""
        return {name: getattr(self, name) for name in METRICS}


def measure(log_probabilities: Array, labels: Integers, weights: Array | None = None) -> Metrics:
    """The metrics of ln P(c | x_t), shape (K, N), class-major, against labels (N,) under weights (N,) or None for 1.

    >>> found = measure(np.log([[0.9, 0.6, 0.2], [0.1, 0.4, 0.8]]), np.array([0, 1, 1]))
    >>> round(found.error, 6), round(found.brier, 6), found.auc, found.confusion.tolist()
    (0.333333, 0.273333, 1.0, [[1, 0], [1, 1]])
    """
    total = float(len(labels) if weights is None else weights.sum())
    if not total > 0:
        raise BncliError("there are no rows to measure")
    mean_weights = np.full(len(labels), 1 / total) if weights is None else weights / total
    predicted = log_probabilities.argmax(axis=0)
    log_true = log_probabilities[labels, np.arange(len(labels))]
    probabilities = np.exp(log_probabilities)
    # 1 - P from ln P: it keeps its digits where P is next to 1
    missed = -np.expm1(log_true)
    squares = np.square(probabilities).sum(axis=0) + np.square(missed) - np.square(np.exp(log_true))
    right = predicted == labels
    cll = float(log_true.sum() if weights is None else weights @ log_true)
    confusion = _confusion(labels, predicted, len(log_probabilities), weights)
    return Metrics(
        accuracy=float(np.average(right, weights=weights)),
        error=float(np.average(~right, weights=weights)),
        log_loss=-cll / total,
        rmse=float(np.sqrt(mean_weights @ np.square(missed))),
        brier=float(mean_weights @ squares),
        auc=_auc(log_probabilities, labels, weights),
        ece=_calibration_error(probabilities.max(axis=0), right, mean_weights),
        cll=cll,
        balanced_accuracy=balanced_accuracy(confusion),
        mcc=matthews_correlation(confusion),
        confusion=confusion,
    )


def _calibration_error(confidence: Array, right: Mask, mean_weights: Array) -> float:
    bins = np.searchsorted(np.arange(1, ECE_BINS) / ECE_BINS, confidence)
    gaps = np.bincount(bins, mean_weights * (right - confidence), ECE_BINS)
    return float(np.abs(gaps).sum())


def _confusion(labels: Integers, predicted: Index, n_labels: int, weights: Array | None) -> NDArray[np.int64] | Array:
    cells = labels.astype(np.intp) * n_labels + predicted
    return np.bincount(cells, weights, n_labels * n_labels).reshape(n_labels, n_labels)


def _auc(log_probabilities: Array, labels: Integers, weights: Array | None) -> float | None:
    n_labels = len(log_probabilities)
    masses = np.bincount(labels, weights, n_labels).astype(np.float64)
    present = np.flatnonzero(masses > 0)
    if len(present) < 2:
        return None
    weights = np.ones(len(labels)) if weights is None else weights
    if n_labels == 2:
        above = _wins(log_probabilities[1] - log_probabilities[0], labels, weights, 1, masses)
        return float(above[0])
    areas = np.zeros((n_labels, n_labels))
    for c in present:
        areas[c] = _wins(log_probabilities[c], labels, weights, int(c), masses)
    pairs = areas[np.ix_(present, present)]
    return float((pairs.sum() - np.trace(pairs)) / (len(present) * (len(present) - 1)))


def _wins(scores: Array, labels: Integers, weights: Array, positive: int, masses: Array) -> Array:
    """For each other class (K,), the chance that a row of class `positive` has the higher score, ties counting half."""
    own = labels == positive
    # equal scores are summed together below, so their order does not matter
    order = np.argsort(scores[own])
    ranked, ranked_weights = scores[own][order], weights[own][order]
    up_to = np.concatenate(([0.0], np.cumsum(ranked_weights)))
    below = up_to[np.searchsorted(ranked, scores, side="left")]
    not_above = up_to[np.searchsorted(ranked, scores, side="right")]
    beaten = np.bincount(labels, weights * (up_to[-1] - (below + not_above) / 2), len(masses))
    pairs = masses * masses[positive]
    shares: Array = np.divide(beaten, pairs, out=np.zeros(len(masses)), where=pairs > 0)
    return shares
