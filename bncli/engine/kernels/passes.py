"""One pass over coded rows: conditional log-likelihood, and its gradient with respect to the groups' tables.

    CLL     = sum over rows t of w_t ln P(y_t | x_t),    P(y | x_t) = softmax_y sum_g E_g[y, code_g(t)]
    dE_g[y, u] = sum over rows t with code_g(t) = u of w_t (1[y_t = y] - P(y | x_t))

Three kernels for three ranges of K; all take rows in blocks whose temporaries stay in cache, keep scores
class-major (reductions run over the short axis), and give probabilities that are finite whatever the scores.
`np.take` with `out` needs mode="clip": the default mode buffers and costs three times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.integer]

BLOCK = 1 << 14
SPARSE_BLOCK = 1 << 12


def two_classes(
    codes: Sequence[Codes], signs: Array, weights: Array | None, tables: Sequence[Array]
) -> tuple[float, list[Array]]:
    """K = 2: only the score difference d = S[1] - S[0] is needed; tables[g] (configurations,) hold differences.

    signs (rows,) is +1 for the second class, -1 for the first. Returns the CLL and dCLL/d(table of differences).
    """
    totals = [np.zeros(len(table)) for table in tables]
    buffers = [np.empty(min(BLOCK, len(signs))) for _ in range(3)]
    cll = 0.0
    for start in range(0, len(signs), BLOCK):
        sign = signs[start : start + BLOCK]
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        margin, decay, residual = (buffer[: len(sign)] for buffer in buffers)
        np.take(tables[0], block[0], out=margin, mode="clip")
        for table, code in zip(tables[1:], block[1:], strict=True):
            margin += np.take(table, code, out=decay, mode="clip")
        margin *= sign
        np.abs(margin, out=decay)
        np.negative(decay, out=decay)
        np.exp(decay, out=decay)
        losses = np.log1p(decay, out=residual)
        losses -= np.minimum(margin, 0.0)
        weight = None if weights is None else weights[start : start + BLOCK]
        cll -= float(losses.sum() if weight is None else losses @ weight)
        np.copyto(residual, 1.0)
        np.copyto(residual, decay, where=margin >= 0)
        decay += 1.0
        residual /= decay
        residual *= sign
        if weight is not None:
            residual *= weight
        for total, code in zip(totals, block, strict=True):
            total += np.bincount(code, residual, len(total))
    return cll, totals


def some_classes(
    codes: Sequence[Codes], labels: Codes, weights: Array | None, tables: Sequence[Array]
) -> tuple[float, list[Array]]:
    """K of about 3 to 10: one look-up and one bincount per group and class; tables[g] (K, configurations)."""
    totals = [np.zeros(table.shape) for table in tables]
    scores = np.empty((len(tables[0]), min(BLOCK, len(labels))))
    spare = np.empty(min(BLOCK, len(labels)))
    cll = 0.0
    for start in range(0, len(labels), BLOCK):
        label = labels[start : start + BLOCK]
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        s = scores[:, : len(label)]
        for k, score in enumerate(s):
            np.take(tables[0][k], block[0], out=score, mode="clip")
            for table, code in zip(tables[1:], block[1:], strict=True):
                score += np.take(table[k], code, out=spare[: len(label)], mode="clip")
        cll += residuals(s, label, None if weights is None else weights[start : start + BLOCK])
        for total, code in zip(totals, block, strict=True):
            for k, residual in enumerate(s):
                total[k] += np.bincount(code, residual, len(total[k]))
    return cll, totals


def many_classes(blocks: Sequence[tuple[Any, Any, Codes]], weights: Array | None, table: Array) -> tuple[float, Array]:
    """K above about 10: sparse products. blocks: (Z, Z transposed, labels) with Z the rows' one-hot group codes.

    table (configurations of all groups, K); returns the CLL and the gradient, of the same shape as `table`.
    """
    total = np.zeros(table.shape)
    cll, start = 0.0, 0
    for rows, columns, label in blocks:
        s = np.ascontiguousarray((rows @ table).T)
        cll += residuals(s, label, None if weights is None else weights[start : start + len(label)])
        total += columns @ np.ascontiguousarray(s.T)
        start += len(label)
    return cll, total


def residuals(scores: Array, labels: Codes, weights: Array | None) -> float:
    """Turn scores (K, rows) into w_t (1[y_t = y] - P(y | x_t)) in place; returns the sum of w_t ln P(y_t | x_t)."""
    rows = np.arange(len(labels))
    scores -= scores.max(axis=0)
    own = scores[labels, rows]
    np.exp(scores, out=scores)
    norm = scores.sum(axis=0)
    log_likelihoods = own - np.log(norm)
    np.divide(-1.0, norm, out=norm)
    scores *= norm
    scores[labels, rows] += 1.0
    if weights is None:
        return float(log_likelihoods.sum())
    scores *= weights
    return float(log_likelihoods @ weights)
