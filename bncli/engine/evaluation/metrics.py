"""Metrics of predictions and decisions, a baseline that predicts the class frequencies, and bias and variance.

With P[t, c] = P(c | x_t), y_t the true class, w_t the row weight and N the sum of the weights; all means are weighted:

    accuracy = mean of [argmax_c P[t, c] = y_t],  error = 1 - accuracy     a tie goes to the first class
    cll      = sum over t of w_t ln P[t, y_t],    log_loss = -cll / N      nats
    rmse     = sqrt( mean of (1 - P[t, y_t])^2 )
    brier    = mean of sum over c of (P[t, c] - [c = y_t])^2               0 to 2
    ece      = sum over bins b of N_b / N |accuracy_b - mean of max_c P|   expected calibration error
    auc      = probability that a row of one class is ranked above a row of the other; ties count half

With more than two classes, auc is the mean over all pairs of classes that occur; the AUC of a pair is the mean of the
two areas obtained by ranking with either class's probability (Hand & Till 2001). It is None if fewer than two classes
occur.

Metrics of the confusion matrix: C[a, b] is the weight of the rows with true label a and predicted label b, N its sum.

    precision_c = C[c, c] / sum over a of C[a, c]
    recall_c    = C[c, c] / support_c,    support_c = sum over b of C[c, b]
    f1_c        = 2 C[c, c] / (support_c + sum over a of C[a, c])       the harmonic mean of precision and recall
    balanced accuracy = mean of recall_c over the labels that occur
    Matthews' correlation R_K = (N s - t . p) / sqrt( (N^2 - t . t) (N^2 - p . p) )

with s the trace of C, t its row sums and p its column sums (Gorodkin 2004); with two labels R_K is the phi coefficient.

Metrics of decisions and prediction sets:

    cost              mean of costs[y_t][d_t] over the rows with a decision
    abstention        proportion of rows without a decision
    decided_accuracy  proportion of rows with d_t = y_t among the rows with a decision
    threshold         lowest probability at which the second of two labels is predicted
    coverage          proportion of rows whose prediction set contains the true label, over all rows and per label
    set_size          mean number of labels in a prediction set

with d_t the decision. Only the metrics that the rule defines are computed; 0 / 0 is None.

The baseline predicts P(c | x_t) = f_c for every row, where f_c is the weighted relative frequency of label c in the
training rows. The skill score 1 - log_loss / log_loss of the baseline (also called D^2, the fraction of the deviance
explained) is 1 for perfect predictions and 0 for predictions that are no better than the class frequencies.

Bias and variance: every row t is predicted once in each of T trials, each time by a model trained on other rows
(repeated cross-validation as in Webb 2000, Machine Learning 40). With Q[t, y] the fraction of trials that predict y,

    bias     = mean over t of 1/2 sum over y of (1[y = y_t] - Q[t, y])^2
    variance = mean over t of 1/2 (1 - sum over y of Q[t, y]^2)

(Kohavi & Wolpert 1996, ICML). The observed label takes the place of the distribution of the class, so noise counts as
bias. The squares cancel and leave 1 - Q[t, y_t]: bias and variance add up to the error over all rows and trials.

Conventions:
- Log-loss uses the log-probabilities directly and never clips them.
- The ten bins of ece are closed on the right, ((b-1)/10, b/10] (Guo et al. 2017).
- A ratio 0 / 0 is None: the precision of a label that is never predicted, the recall of a label without rows.
- R_K is 0 if all rows have one label or are predicted as one label.
- The label predicted by the baseline is the most frequent one (ties: the first). A label without training rows counts
  as one row of average weight, so that the log-loss of the baseline is finite.
- Row weights are multiplicities.

Cost: K sorts of N rows for auc and one pass for the other metrics; O((T + K) N) for bias and variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.decision_rules import ABSTAINED, Decider
from bncli.errors import BncliError

METRICS = ("accuracy", "error", "log_loss", "rmse", "brier", "auc", "ece", "cll", "balanced_accuracy", "mcc")
"""The metrics of a report, in the order shown."""
ECE_BINS = 10
_BLOCK_ROWS = 1 << 16
"""Rows per block when bias and variance are computed."""


@dataclass(frozen=True)
class Metrics:
    """The metrics of a set of predictions.

    confusion[true, predicted] sums row weights; it is integer if the rows have no weights.
    """

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

    def by_name(self) -> dict[str, float | None]:
        """Return the METRICS as a dictionary."""
        return {name: getattr(self, name) for name in METRICS}


class LabelMetrics(NamedTuple):
    """Metrics of one label against all others; `support` is the weight of its rows, an integer without row weights."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: float


class Baseline(NamedTuple):
    """Metrics of the baseline, which predicts the class frequencies; log_loss is in nats per row."""

    accuracy: float
    log_loss: float


class BiasVariance(NamedTuple):
    """Bias and variance as defined by Kohavi & Wolpert; their sum is the error."""

    bias: float
    variance: float


def measure(log_probabilities: Array, labels: Integers, weights: Array | None = None) -> Metrics:
    """Return the metrics of predictions ln P(c | x_t), (K, N), for labels (N,) with weights (N,) (all 1 if None).

    Raises BncliError if there are no rows or their total weight is 0.

    >>> metrics = measure(np.log([[0.9, 0.6, 0.2], [0.1, 0.4, 0.8]]), np.array([0, 1, 1]))
    >>> round(metrics.error, 6), round(metrics.brier, 6), metrics.auc, metrics.confusion.tolist()
    (0.333333, 0.273333, 1.0, [[1, 0], [1, 1]])
    """
    total = float(len(labels) if weights is None else weights.sum())
    if not total > 0:
        raise BncliError("there are no rows to evaluate")
    mean_weights = np.full(len(labels), 1 / total) if weights is None else weights / total
    predicted = log_probabilities.argmax(axis=0)
    log_true = log_probabilities[labels, np.arange(len(labels))]
    probabilities = np.exp(log_probabilities)
    # expm1 keeps the digits of 1 - P where P is close to 1
    missing = -np.expm1(log_true)
    squares = np.square(probabilities).sum(axis=0) + np.square(missing) - np.square(np.exp(log_true))
    correct = predicted == labels
    cll = float(log_true.sum() if weights is None else weights @ log_true)
    n_labels = len(log_probabilities)
    cells = labels.astype(np.intp) * n_labels + predicted
    confusion = np.bincount(cells, weights, n_labels * n_labels).reshape(n_labels, n_labels)
    confidence = probabilities.max(axis=0)
    bins = np.searchsorted(np.arange(1, ECE_BINS) / ECE_BINS, confidence)
    gaps = np.bincount(bins, mean_weights * (correct - confidence), ECE_BINS)
    return Metrics(
        accuracy=float(np.average(correct, weights=weights)),
        error=float(np.average(~correct, weights=weights)),
        log_loss=-cll / total,
        rmse=float(np.sqrt(mean_weights @ np.square(missing))),
        brier=float(mean_weights @ squares),
        auc=_auc(log_probabilities, labels, weights),
        ece=float(np.abs(gaps).sum()),
        cll=cll,
        balanced_accuracy=balanced_accuracy(confusion),
        mcc=matthews_correlation(confusion),
        confusion=confusion,
    )


def _auc(log_probabilities: Array, labels: Integers, weights: Array | None) -> float | None:
    n_labels = len(log_probabilities)
    class_weights = np.bincount(labels, weights, n_labels).astype(np.float64)
    present = np.flatnonzero(class_weights > 0)
    if len(present) < 2:
        return None
    weights = np.ones(len(labels)) if weights is None else weights
    rankings = {c: log_probabilities[c] for c in present.tolist()}
    if n_labels == 2:
        rankings = {1: log_probabilities[1] - log_probabilities[0]}
    # areas[a, b]: probability that a row of class a scores higher than one of class b in the ranking by a
    areas = np.zeros((n_labels, n_labels))
    for positive, scores in rankings.items():
        is_positive = labels == positive
        # equal scores are summed together below, so their order does not matter
        order = np.argsort(scores[is_positive])
        ascending = scores[is_positive][order]
        cumulative = np.concatenate(([0.0], np.cumsum(weights[is_positive][order])))
        below = cumulative[np.searchsorted(ascending, scores, side="left")]
        not_above = cumulative[np.searchsorted(ascending, scores, side="right")]
        wins = np.bincount(labels, weights * (cumulative[-1] - (below + not_above) / 2), n_labels)
        pairs = class_weights * class_weights[positive]
        np.divide(wins, pairs, out=areas[positive], where=pairs > 0)
    if n_labels == 2:
        return float(areas[1, 0])
    between = areas[np.ix_(present, present)]
    return float((between.sum() - np.trace(between)) / (len(present) * (len(present) - 1)))


def measure_labels(confusion: Integers | Array) -> list[LabelMetrics]:
    """Return the metrics of every label, in order, from confusion[true, predicted].

    >>> measure_labels(np.array([[3, 1], [0, 0]]))[0]
    LabelMetrics(precision=1.0, recall=0.75, f1=0.8571428571428571, support=4)
    """
    hits, supports, predictions = np.diagonal(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    return [
        LabelMetrics(_divide(hit, predicted), _divide(hit, support), _divide(2 * hit, support + predicted), support)
        for hit, support, predicted in zip(hits.tolist(), supports.tolist(), predictions.tolist(), strict=True)
    ]


def _divide(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator > 0 else None


def balanced_accuracy(confusion: NDArray[np.int64] | Array) -> float:
    """Return the mean recall of the labels that have rows."""
    support = confusion.sum(axis=1)
    present = support > 0
    return float(np.mean(np.diagonal(confusion)[present] / support[present]))


def matthews_correlation(confusion: NDArray[np.int64] | Array) -> float:
    """Return Matthews' correlation R_K, from -1 to 1."""
    shares = confusion / confusion.sum()
    true, predicted = shares.sum(axis=1), shares.sum(axis=0)
    if min(np.count_nonzero(true), np.count_nonzero(predicted)) < 2:
        return 0.0
    covariance = np.trace(shares) - true @ predicted
    correlation = covariance / np.sqrt((1 - true @ true) * (1 - predicted @ predicted))
    return float(np.clip(correlation, -1, 1))


def class_frequencies(labels: Integers, n_labels: int, weights: Array | None = None) -> Array:
    """Return the relative frequency of each label, (K,), always above 0.

    labels, weights: (N,); the weights are all 1 if None. A label without weight counts as one row of average weight.
    """
    class_weights = np.bincount(labels, weights, n_labels).astype(np.float64)
    class_weights[class_weights == 0] = 1.0 if weights is None else weights.mean()
    shares: Array = class_weights / class_weights.sum()
    return shares


def measure_baseline(frequencies: Array, labels: Integers, weights: Array | None = None) -> Baseline:
    """Return the metrics of the class frequencies (K,) as predictions of labels (N,); weights are (N,) or None."""
    class_weights = np.bincount(labels, weights, len(frequencies))
    shares = class_weights / class_weights.sum()
    return Baseline(float(shares[frequencies.argmax()]), float(-(shares @ np.log(frequencies))) + 0.0)


def skill_score(log_loss: float | None, base: float | None) -> float | None:
    """Return 1 - log_loss / base, or None if either is None or `base`, the log-loss of the baseline, is 0."""
    return None if log_loss is None or not base else 1 - log_loss / base


def bias_variance(
    labels: Integers, predictions: Integers, n_labels: int, weights: ArrayLike | None = None
) -> BiasVariance:
    """Return bias and variance, from true labels (N,), predicted labels (T, N) and weights (N,) (all 1 if None).

    All labels are codes below `n_labels`. Raises BncliError if the shapes do not match or the total weight is 0.

    >>> bias_variance(np.array([0, 1]), np.array([[0, 0], [1, 0]]), n_labels=2)  # one row varies, one is always wrong
    BiasVariance(bias=0.625, variance=0.125)
    """
    n_rows = len(labels)
    row_weights = np.ones(n_rows) if weights is None else np.asarray(weights, np.float64)
    is_row_per_trial = predictions.ndim == 2 and len(predictions) > 0 and predictions.shape[1] == n_rows
    if not is_row_per_trial or row_weights.shape != (n_rows,):
        raise BncliError(
            f"bias and variance need a label, a weight and predictions for every row, not of shapes "
            f"{labels.shape}, {row_weights.shape}, {predictions.shape}"
        )
    total = float(row_weights.sum())
    if not total > 0:
        raise BncliError("bias and variance need rows with positive weight")
    sums = np.zeros(2)
    for start in range(0, n_rows, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        predicted = predictions[:, block]
        n_trials, n_block = predicted.shape
        rows = np.arange(n_block)
        cells = (rows * n_labels + predicted).ravel()
        shares = np.bincount(cells, minlength=n_block * n_labels).reshape(n_block, n_labels) / n_trials
        correct, squares = shares[rows, labels[block]], (shares**2).sum(axis=1)
        sums += row_weights[block] @ (1 - 2 * correct + squares), row_weights[block] @ (1 - squares)
    bias, variance = sums / (2 * total)
    return BiasVariance(float(bias), float(variance))


class AppliedRule(NamedTuple):
    """A decision rule, without its held-out scores, and its decision for each row, (N,): a label code or ABSTAINED."""

    rule: DecisionRule
    codes: Index


@dataclass(frozen=True)
class DecisionMetrics:
    """The metrics of decisions, keyed by name, the coverage of prediction sets per label (or None), and the decisions.

    `rows` is None if the rule has only prediction sets. Otherwise confusion[true][decided], (K, K), sums the weights of
    the rows with a decision, and undecided[true], (K,), the weights of the rows without one.
    """

    metrics: dict[str, float | None]
    class_coverage: tuple[float | None, ...] | None
    rows: AppliedRule | None
    confusion: Integers | Array | None = None
    undecided: Integers | Array | None = None


def measure_decisions(
    model: Model, log_probabilities: Array, labels: Integers, weights: Array | None
) -> DecisionMetrics | None:
    """Return the metrics of a model's decisions, or None if it has no decision rule.

    log_probabilities: ln P(c | x_t), (K, N). labels, weights: (N,); the weights are all 1 if None.
    """
    rule = model.rule
    if rule is None:
        return None
    decided = Decider.of(rule, model.schema.labels).decide(log_probabilities)
    given, weights = weights, np.ones(len(labels)) if weights is None else weights
    rows = AppliedRule(replace(rule, held_out=None), decided.codes)
    metrics = measure_decided_rows(rows, labels, weights)
    class_coverage = None
    if decided.members is not None:
        covered = decided.members[labels.astype(np.intp), np.arange(len(labels))]
        metrics["coverage"] = _mean(covered, weights, np.ones(len(labels), np.bool_))
        metrics["set_size"] = float(np.average(decided.members.sum(axis=0), weights=weights))
        class_coverage = tuple(_mean(covered, weights, labels == k) for k in range(len(log_probabilities)))
    if not rule.decides:
        return DecisionMetrics(metrics, class_coverage, None)
    # confusion[true][decided] (K, K) and undecided[true] (K,), as numbers of rows or sums of their weights
    n_labels = len(log_probabilities)
    is_decided, true = rows.codes != ABSTAINED, labels.astype(np.intp)
    cells = true[is_decided] * n_labels + rows.codes[is_decided]
    decided_weights, other_weights = (None, None) if given is None else (given[is_decided], given[~is_decided])
    confusion = np.bincount(cells, decided_weights, n_labels * n_labels).reshape(n_labels, n_labels)
    undecided = np.bincount(true[~is_decided], other_weights, n_labels)
    return DecisionMetrics(metrics, class_coverage, rows, confusion, undecided)


def measure_decided_rows(rows: AppliedRule, labels: Integers, weights: Array) -> dict[str, float | None]:
    """Return the metrics of decisions, keyed by name, except coverage and set size; labels and weights are (N,)."""
    rule, is_decided = rows.rule, rows.codes != ABSTAINED
    metrics: dict[str, float | None] = {}
    if rule.costs is not None:
        metrics["cost"] = _mean(np.array(rule.costs)[labels.astype(np.intp), rows.codes], weights, is_decided)
    if rule.abstain_below is not None:
        metrics["abstention"] = _mean(~is_decided, weights, np.ones(len(labels), np.bool_))
    if rule.decides:
        metrics["decided_accuracy"] = _mean(rows.codes == labels, weights, is_decided)
    if rule.threshold is not None:
        metrics["threshold"] = rule.threshold.value
    return metrics


def _mean(values: Array | Mask, weights: Array, rows: Mask) -> float | None:
    return float(np.average(values[rows], weights=weights[rows])) if rows.any() else None
