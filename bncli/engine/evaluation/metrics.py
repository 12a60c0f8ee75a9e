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

What a confusion matrix says of every label, and of all labels alike however rare they are.

With C[a, b] the weight of the rows of true label a that were predicted as b, and N the sum of C:

    precision_c = C[c, c] / sum over a of C[a, c]        of the rows predicted as c, the share that are
    recall_c    = C[c, c] / support_c                    of the rows of c, the share that were found
    support_c   = sum over b of C[c, b]
    f1_c        = 2 C[c, c] / (support_c + sum over a of C[a, c])       the harmonic mean of the two

    balanced accuracy   = mean of recall_c over the labels that have support
    Matthews' correlation R_K = (N s - t . p) / sqrt( (N^2 - t . t) (N^2 - p . p) )

with s the trace of C, t its row sums and p its column sums (Gorodkin 2004); with two labels it is the phi coefficient.

Conventions: a ratio 0 / 0 is None: the precision of a label that is never predicted, the recall of one without rows.
R_K is 0 where all rows are of one label or predicted as one, for such predictions tell nothing.

The class frequencies as a classifier: what can be said of a row without looking at it.

    P(c | x_t) = f_c, the share of label c in the weight of the training rows;    log_loss = -mean of ln f_{y_t}

A model is worth something where its log-loss is lower; how much is told by the skill score 1 - log_loss / base log_loss
(also D^2, the share of the deviance explained): 1 is perfect, 0 no better than the frequencies.

Conventions: the predicted label is the commonest one, the first of equals. A label that the training rows lack counts
as one row of average weight, so that the log-loss of the frequencies is finite wherever a model's is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Integers, Mask
from bncli.errors import BncliError


class LabelFigures(NamedTuple):
    """Figures of one label against all others; `support` is a weight, a whole number where rows weigh 1."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: float


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
        """Return the METRICS by name."""
        return {name: getattr(self, name) for name in METRICS}


class Baseline(NamedTuple):
    """Figures of the class frequencies; log_loss in nats."""

    accuracy: float
    log_loss: float


def per_label(confusion: NDArray[np.int64] | Array) -> list[LabelFigures]:
    """Return the figures of every label, in order, from confusion[true, predicted].

    >>> per_label(np.array([[3, 1], [0, 0]]))[0]
    LabelFigures(precision=1.0, recall=0.75, f1=0.8571428571428571, support=4)
    """
    hits, support, predicted = np.diagonal(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    return [
        LabelFigures(_share(hit, told), _share(hit, rows), _share(2 * hit, rows + told), rows)
        for hit, rows, told in zip(hits.tolist(), support.tolist(), predicted.tolist(), strict=True)
    ]


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def balanced_accuracy(confusion: NDArray[np.int64] | Array) -> float:
    """Return the mean recall of the labels that have rows."""
    support = confusion.sum(axis=1)
    there = support > 0
    return float(np.mean(np.diagonal(confusion)[there] / support[there]))


def matthews_correlation(confusion: NDArray[np.int64] | Array) -> float:
    """Return R_K, -1 to 1."""
    shares = confusion / confusion.sum()
    true, predicted = shares.sum(axis=1), shares.sum(axis=0)
    if min(np.count_nonzero(true), np.count_nonzero(predicted)) < 2:
        return 0.0
    covariance = np.trace(shares) - true @ predicted
    correlation = covariance / np.sqrt((1 - true @ true) * (1 - predicted @ predicted))
    return float(np.clip(correlation, -1, 1))


def measure(log_probabilities: Array, labels: Integers, weights: Array | None = None) -> Metrics:
    """x_t), |Return the metrics of ln P(c | x_t), (K, N), for labels (N,) and weights (N,) or None for 1.

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
    n_labels = len(log_probabilities)
    cells = labels.astype(np.intp) * n_labels + predicted
    confusion = np.bincount(cells, weights, n_labels * n_labels).reshape(n_labels, n_labels)
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


def _calibration_error(confidence: Array, right: Mask, mean_weights: Array) -> float:
    bins = np.searchsorted(np.arange(1, ECE_BINS) / ECE_BINS, confidence)
    gaps = np.bincount(bins, mean_weights * (right - confidence), ECE_BINS)
    return float(np.abs(gaps).sum())


def class_frequencies(labels: Integers, n_labels: int, weights: Array | None = None) -> Array:
    """Return the share of every label, shape (K,), all above 0, in labels (N,) under weights (N,) or None for 1."""
    masses = np.bincount(labels, weights, n_labels).astype(np.float64)
    masses[masses == 0] = 1.0 if weights is None else weights.mean()
    shares: Array = masses / masses.sum()
    return shares


def measure_baseline(frequencies: Array, labels: Integers, weights: Array | None = None) -> Baseline:
    """Return how well frequencies (K,) predict labels (N,) under weights (N,) or None for 1."""
    masses = np.bincount(labels, weights, len(frequencies))
    shares = masses / masses.sum()
    return Baseline(float(shares[frequencies.argmax()]), float(-(shares @ np.log(frequencies))) + 0.0)


def skill_score(log_loss: float | None, base: float | None) -> float | None:
    """Return 1 - log_loss / base; None where either is not defined, or the frequencies leave nothing to be learnt."""
    return None if log_loss is None or not base else 1 - log_loss / base
