"""The highest log-likelihood that a table of probabilities can give the counts it was learnt from."""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.kernels.arrays import Array


def log_likelihood(counts: Array) -> Array:
    """sum over k, j, c of N_kjc ln (N_kjc / N_jc), counts (..., r, q, K) to (...), nats; an empty cell adds 0."""
    totals = counts.sum(axis=-3, keepdims=True)
    ratios = counts / np.where(totals > 0, totals, 1.0)
    ratios += ratios == 0  # ln 1 adds nothing; a masked logarithm would take six times as long
    np.log(ratios, out=ratios)
    ratios *= counts
    return np.asarray(ratios.sum(axis=(-3, -2, -1)))


def free_parameters(counts: Array) -> int:
    """(r - 1) q K: the probabilities of a child that are not the rest of a sum of 1."""
    r: int = counts.shape[-3]
    return (r - 1) * math.prod(counts.shape[-2:])
