"""A slow and plain evaluation of portable scorers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bncli.engine.prediction.portable import PortableLine, PortableMap, PortableScorer

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def portable_probabilities(scorer: PortableScorer, codes: Sequence[Index]) -> Array:
    """Return P(y | x_t), shape (K, rows); codes[p] (rows,) of input p."""
    n = len(codes[0]) if codes else 1
    logs, scores = [], np.zeros((len(scorer.stages[0].shift), n))
    for stage in scorer.stages:
        scores = (0.0 if stage.anew else scores) + stage.shift[:, None] + np.zeros_like(scores)
        for table in (one.expanded() for one in stage.tables):
            digits = [np.array(d)[codes[p]] for p, d in zip(table.inputs, table.digits, strict=True)]
            scores = scores + table.entries[:, np.ravel_multi_index(digits, table.shape)]
        by_class = scores if len(scores) == len(scorer.labels) else np.concatenate([np.zeros((1, n)), scores])
        logs.append(by_class - np.logaddexp.reduce(by_class) + math.log(stage.weight))
    log_p = np.logaddexp.reduce(logs)
    log_p = np.minimum(log_p - np.logaddexp.reduce(log_p), 0.0)  # the weights of stages may sum to any number
    return np.exp(log_p) if scorer.calibration is None else _calibrated(scorer.calibration, log_p)


def _calibrated(calibration: PortableMap, log_p: Array) -> Array:
    if calibration.powers:
        scales, shifts = (np.array(part)[:, None] for part in calibration.powers)
        logs = log_p * scales + shifts
        shares = np.exp(logs - logs.max(axis=0))
    elif len(calibration.lines) == 1:
        second = _on_line(calibration.lines[0], np.exp(log_p[1]))
        return np.array([1 - second, second])
    else:
        shares = np.array([_on_line(line, np.exp(row)) for line, row in zip(calibration.lines, log_p, strict=True)])
    return np.asarray(shares / shares.sum(axis=0))


def _on_line(line: PortableLine, probabilities: Array) -> Array:
    i = np.searchsorted(line.ends, probabilities)
    starts, levels, slopes = (np.array(part)[i] for part in line[1:])
    return np.asarray(levels + slopes * (probabilities - starts))
