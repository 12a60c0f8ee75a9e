"""One pass over coded rows: conditional log-likelihood, and its gradient with respect to the groups' tables.

    CLL     = sum over rows t of w_t ln P(y_t | x_t),    P(y | x_t) = softmax_y sum_g E_g[y, code_g(t)]
    dE_g[y, u] = sum over rows t with code_g(t) = u of w_t (1[y_t = y] - P(y | x_t))

Kernels for two classes and for more, by look-ups for few rows and by sparse products for many (`Indicators`), which are
faster once scipy.sparse is imported. All take rows in blocks whose temporaries stay in cache, keep scores class-major
(reductions run over the short axis), and give probabilities that are finite whatever the scores.
`np.take` with `out` needs mode="clip": the default mode buffers and costs three times as much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.kernels.indicators import Indicators

BLOCK = 1 << 15
"""Rows at a time: more, and the scores of several classes are fetched again from the system in every pass (1.6 times
the time of a pass); fewer, and two threads spend theirs on handing the interpreter lock over."""
SPARSE_BLOCK = 3 << 13
"""Rows at a time, about, in sparse products."""
MANY_CLASSES_BLOCK = 1 << 12
"""Rows at a time of more than SOME_CLASSES classes."""
SOME_CLASSES = 10
"""Classes up to which look-ups of few rows take no longer than sparse products."""
LOG_FACTORS = 16
"""Normalising sums under one logarithm; the product of so many, each at most K, is finite."""


def two_classes(
    codes: Sequence[Integers], signs: Array, weights: Array | None, tables: Sequence[Array]
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
        margin, spare, residual = (buffer[: len(sign)] for buffer in buffers)
        np.take(tables[0], block[0], out=margin, mode="clip")
        for table, code in zip(tables[1:], block[1:], strict=True):
            margin += np.take(table, code, out=spare, mode="clip")
        margin *= sign
        weight = None if weights is None else weights[start : start + BLOCK]
        cll += _logistic(margin, spare, residual, weight)
        residual *= sign
        for total, code in zip(totals, block, strict=True):
            total += np.bincount(code, residual, len(total))
    return cll, totals


def _logistic(margin: Array, spare: Array, residual: Array, weight: Array | None) -> float:
    """The sum of w ln p, p = 1 / (1 + exp(-margin)); residual becomes w (1 - p); margin and spare are overwritten."""
    np.negative(margin, out=margin)
    # exponents are at most 0 above and below the fraction line: nothing overflows, whatever the margin
    np.minimum(margin, 0.0, out=residual)
    np.exp(residual, out=residual)
    np.abs(margin, out=spare)
    np.negative(spare, out=spare)
    np.exp(spare, out=spare)
    spare += 1.0
    residual /= spare
    np.maximum(margin, 0.0, out=margin)
    if weight is None:
        return -float(margin.sum()) - _sum_of_logs(spare)
    residual *= weight
    margin += np.log(spare, out=spare)
    return -float(margin @ weight)


def some_classes(
    codes: Sequence[Integers], labels: Integers, weights: Array | None, tables: Sequence[Array]
) -> tuple[float, list[Array]]:
    """K of about 3 to 10: one bincount per group and class, and look-ups of several classes at a time.

    tables[g] (K, configurations). Only differences from the first class are looked up, and its residuals are what the
    others leave: residuals sum to 0 over the classes.
    """
    n_labels = len(tables[0])
    parts = [wide(table) for table in tables]
    totals = [np.zeros(table.shape) for table in tables]
    buffers = [np.empty(n_labels * min(BLOCK, len(labels))) for _ in range(3)]
    cll = 0.0
    for start in range(0, len(labels), BLOCK):
        label = labels[start : start + BLOCK]
        block = [np.asarray(c[start : start + BLOCK], np.intp) for c in codes]
        scores, *spare = (buffer[: n_labels * len(label)].reshape(n_labels, -1) for buffer in buffers)
        look_up(scores, spare, parts, block)
        cll += residuals(scores, label, None if weights is None else weights[start : start + BLOCK])
        for total, code in zip(totals, block, strict=True):
            for sums, residual in zip(total[1:], scores[1:], strict=True):
                sums += np.bincount(code, residual, len(sums))
    for total in totals:
        total[0] = -total[1:].sum(axis=0)
    return cll, totals


def wide(table: Array) -> list[Array]:
    """Differences from the first class, (configurations, 4, 2 or 1 classes): sizes that np.take moves at one stroke."""
    parts, k = [], 1
    while k < len(table):
        width = next(w for w in (4, 2, 1) if k + w <= len(table))
        parts.append(np.ascontiguousarray((table[k : k + width] - table[0]).T))
        k += width
    return parts


def look_up(scores: Array, spare: Sequence[Array], tables: Sequence[Sequence[Array]], codes: Sequence[Index]) -> None:
    """Fill scores (K, rows) from tables made by `wide`; the two spare arrays hold those of one part."""
    scores[0] = 0.0
    k = 1
    for parts in zip(*tables, strict=True):
        width = parts[0].shape[1]
        total, found = (array.ravel()[: width * len(codes[0])].reshape(-1, width) for array in spare)
        np.take(parts[0], codes[0], axis=0, out=total, mode="clip")
        for part, code in zip(parts[1:], codes[1:], strict=True):
            total += np.take(part, code, axis=0, out=found, mode="clip")
        scores[k : k + width] = total.T
        k += width


def log_likelihood(
    codes: Sequence[Index], labels: Integers, weights: Array | None, tables: Sequence[Sequence[Array]]
) -> float:
    """The CLL alone, of rows that fit the cache with their scores; tables made by `wide`, of two classes, too."""
    widths = [part.shape[1] for part in tables[0]]
    scores = np.empty((1 + sum(widths), len(labels)))
    look_up(scores, [np.empty(max(widths, default=0) * len(labels)) for _ in range(2)], tables, codes)
    return residuals(scores, labels, weights)


def sparse_two_classes(z: Indicators, signs: Array, weights: Array | None, table: Array) -> tuple[float, Array]:
    """As `two_classes`, of many rows: table and gradient (configurations of all groups,) are those of Z's columns."""
    total, cll = np.zeros(len(table)), 0.0
    buffers = [np.empty(min(z.at_a_time, z.n_rows)) for _ in range(2)]
    for rows, by_row, by_column in z:
        margin, sign = by_row @ table, signs[rows]
        spare, residual = (buffer[: len(sign)] for buffer in buffers)
        margin *= sign
        cll += _logistic(margin, spare, residual, None if weights is None else weights[rows])
        residual *= sign
        total += by_column @ residual
    return cll, total


def sparse_classes(z: Indicators, labels: Integers, weights: Array | None, table: Array) -> tuple[float, Array]:
    """As `some_classes`, of many rows or many classes: table (configurations of all groups, K - 1) holds differences
    from the first class; the gradient has its shape and leaves out that class, too.
    """
    total, cll = np.zeros(table.shape), 0.0
    for rows, by_row, by_column in z:
        scores = class_major(by_row @ table)
        cll += residuals(scores, labels[rows], None if weights is None else weights[rows])
        total += by_column @ np.ascontiguousarray(scores[1:].T)
    return cll, total


def class_major(differences: Array) -> Array:
    """Scores (K, rows) from differences from the first class, (rows, K - 1): that class has 0."""
    scores = np.zeros((differences.shape[1] + 1, len(differences)))
    scores[1:] = differences.T
    return scores


def residuals(scores: Array, labels: Integers, weights: Array | None) -> float:
    """Turn scores (K, rows) into w_t (1[y_t = y] - P(y | x_t)) in place; returns the sum of w_t ln P(y_t | x_t).

    `scores` is contiguous.
    """
    # ufuncs by themselves: on few rows the methods max and sum cost as much again
    scores -= np.maximum.reduce(scores, axis=0)
    flat = scores.reshape(-1)
    places = labels * np.intp(scores.shape[1])
    places += np.arange(len(labels))
    own = flat[places]
    np.exp(scores, out=scores)
    norm = np.add.reduce(scores, axis=0)
    if weights is None:
        cll = float(np.add.reduce(own)) - _sum_of_logs(norm)
    else:
        own -= np.log(norm)
        cll = float(own @ weights)
    np.divide(-1.0, norm, out=norm)
    scores *= norm
    flat[places] += 1.0
    if weights is not None:
        scores *= weights
    return cll


def _sum_of_logs(x: Array) -> float:
    """The sum of ln x by way of products: a logarithm costs ten times as much as a product. 1 <= x <= 2^16 or so."""
    whole = len(x) - len(x) % LOG_FACTORS
    products = np.multiply.reduce(x[:whole].reshape(LOG_FACTORS, -1), axis=0)
    return float(np.add.reduce(np.log(products)) + np.add.reduce(np.log(x[whole:])))
