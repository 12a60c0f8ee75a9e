"""From the scores of rows to probabilities, of one model or averaged over several.

    P(y | x_t) = exp S[t, y] / sum over c of exp S[t, c]

Scores (R, rows) are class-major: R = K rows, or for two classes one row, the difference d = S[t, 1] - S[t, 0].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bncli.engine.kernels.arrays import Array

LEAST_PROBABILITY = 1e-280
"""Averages below it may have lost digits."""
_TINY = float(np.finfo(np.float64).tiny)
_STEEPEST = 690.0
"""Of a difference whose exp, and that of its negative, are neither infinite nor 0."""


def score_rows(weights: Array) -> Array:
    """(cells, K) -> (K, cells), or (1, cells) for two classes: second minus first."""
    rows: Array = np.ascontiguousarray(weights.T)
    if len(rows) == 2:
        rows = rows[1:] - rows[:1]
    return rows


def log_softmax(scores: Array, out: Array) -> None:
    """ln P over the classes into out (K, rows); for two, log P(1) = min(d, 0) - log(1 + exp(-|d|))."""
    if len(out) == 2:
        difference = scores[0]
        log_sum = np.log1p(np.exp(-np.abs(difference)))
        np.minimum(difference, 0.0, out=out[1])
        np.minimum(-difference, 0.0, out=out[0])
        out -= log_sum
        return
    np.subtract(scores, scores.max(axis=0), out=out)
    out -= np.log(np.exp(out).sum(axis=0))


def add_softmax(scores: Array, weight: float, out: Array) -> None:
    """out (K, rows) += weight P; both probabilities of two classes keep their digits, however small."""
    if len(out) == 2:
        odds = np.clip(scores[0], -_STEEPEST, _STEEPEST)
        np.exp(odds, out=odds)
        share = odds + 1.0
        np.divide(weight, share, out=share)
        out[0] += share
        share *= odds
        out[1] += share
        return
    shares = scores - scores.max(axis=0)
    np.exp(shares, out=shares)
    shares *= weight / shares.sum(axis=0)
    out += shares


def log_shares(out: Array) -> None:
    """ln of each row's shares (K, rows) of their sum, in place; shares of 0 are taken as the least positive number."""
    if len(out) != 2:
        out /= out.sum(axis=0)
        np.log(np.maximum(out, _TINY, out=out), out=out)
        return
    second = out[1] > out[0]
    odds = np.minimum(out[0], out[1]) / np.maximum(out[0], out[1])
    larger = np.log1p(odds)
    smaller = np.log(np.maximum(odds, _TINY, out=odds), out=odds)
    np.negative(larger, out=larger)
    smaller += larger
    out[0] = np.where(second, smaller, larger)
    out[1] = np.where(second, larger, smaller)


def log_average(scores: Sequence[Array], weights: Sequence[float], out: Array) -> None:
    """ln of the weighted average of the probabilities of several models (R, rows) each; weights sum to 1."""
    out[:] = 0.0
    for one, weight in zip(scores, weights, strict=True):
        add_softmax(one, weight, out)
    rare = np.flatnonzero(out.min(axis=0) < LEAST_PROBABILITY)
    log_shares(out)
    if rare.size:
        out[:, rare] = _log_average_in_logs([one[:, rare] for one in scores], weights, len(out))


def _log_average_in_logs(scores: Sequence[Array], weights: Sequence[float], n_labels: int) -> Array:
    terms = np.empty((len(weights), n_labels, scores[0].shape[1]))
    for term, one, weight in zip(terms, scores, weights, strict=True):
        log_softmax(one, term)
        term += math.log(weight)
    return normalised(np.asarray(np.logaddexp.reduce(terms)))


def normalised(logs: Array) -> Array:
    """Logarithms of probabilities (K, rows) that sum to 1 but for rounding, made to do so, none above 0."""
    return np.asarray(np.minimum(logs - np.logaddexp.reduce(logs, axis=0), 0.0))
