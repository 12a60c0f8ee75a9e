"""What a confusion matrix says of every label, and of all labels alike however rare they are.

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array


class LabelFigures(NamedTuple):
    """Figures of one label against all others; `support` is a weight, a whole number where rows weigh 1."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: float


def per_label(confusion: NDArray[np.int64] | Array) -> list[LabelFigures]:
    """The figures of every label, in order, from confusion[true, predicted].

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
    """The mean recall of the labels that have rows."""
    support = confusion.sum(axis=1)
    there = support > 0
    return float(np.mean(np.diagonal(confusion)[there] / support[there]))


def matthews_correlation(confusion: NDArray[np.int64] | Array) -> float:
    """R_K, -1 to 1."""
    shares = confusion / confusion.sum()
    true, predicted = shares.sum(axis=1), shares.sum(axis=0)
    if min(np.count_nonzero(true), np.count_nonzero(predicted)) < 2:
        return 0.0
    covariance = np.trace(shares) - true @ predicted
    correlation = covariance / np.sqrt((1 - true @ true) * (1 - predicted @ predicted))
    return float(np.clip(correlation, -1, 1))
