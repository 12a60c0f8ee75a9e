"""Whether probabilities may be taken at their word: bins of equal weight, Brier's parts, and ECE over such bins.

With bins b of weight N_b of the P(c | x_t) of a label c, in each the mean probability p_b and the share o_b of rows
that are of c, and o the share over all rows (Murphy 1973), summed over the labels:

    reliability = sum over b of N_b / N (p_b - o_b)^2      0 where probabilities are calibrated
    resolution  = sum over b of N_b / N (o_b - o)^2        how far the bins lie apart: the more the better
    uncertainty = o (1 - o)                                of the class frequencies alone
    within_bins = brier - (reliability - resolution + uncertainty)

The last part is what probabilities that differ inside a bin add or take (Stephenson, Coelho & Jolliffe 2008).
ece_equal_mass = sum over b of N_b / N |share right - mean confidence| over bins of the highest probability of a row.

Conventions: BINS bins, closed on the right at a quantile of the weight, so that equal probabilities share one and there
are fewer where many are equal, as in `curves.py`. Intervals of shares are Wilson's (`intervals.py`). Cost: a sort a
label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.evaluation.classification_curves import BINS
from bncli.engine.evaluation.groups import labels_with_rates, wilson
from bncli.engine.kernels.arrays import Array, Integers


class Bin(NamedTuple):
    """Rows whose probability of a label lies from `low` to `high`, and the 95 % interval of the share that is of it."""

    label: str
    low: float
    high: float
    rows: float
    mean_p: float
    frequency: float
    low95: float
    high95: float


class BrierParts(NamedTuple):
    """brier = reliability - resolution + uncertainty + within_bins."""

    reliability: float
    resolution: float
    uncertainty: float
    within_bins: float


@dataclass(frozen=True)
class CalibrationFigures:
    """The bins of the labels told (of two the second), from the lowest probability up, and the figures of all."""

    bins: tuple[Bin, ...]
    brier_parts: BrierParts
    ece_equal_mass: float


_Binned = tuple[Array, Array, Array, Array, Array]
"""By bin: lowest and highest probability, weight, mean probability, share of hits."""


def calibration_figures(
    labels: tuple[str, ...], log_p: Array, true: Integers, weights: Array | None = None
) -> CalibrationFigures:
    """Of ln P(c | x_t), (K, N), against the labels (N,) under weights (N,) or None for 1."""
    own = np.ones(len(true)) if weights is None else weights
    probabilities = np.exp(log_p)
    binned = [_binned(row, (true == c).astype(float), own) for c, row in enumerate(probabilities)]
    misses = probabilities - (np.arange(len(log_p))[:, None] == true)
    brier = float(np.average(np.square(misses).sum(axis=0), weights=own))
    right = (probabilities.argmax(axis=0) == true).astype(float)
    _, _, mass, confidence, accuracy = _binned(probabilities.max(axis=0), right, own)
    ece = float(mass @ np.abs(confidence - accuracy) / mass.sum())
    bins = tuple(one for c in labels_with_rates(labels) for one in _calibration_figures(labels[c], binned[c]))
    return CalibrationFigures(bins, _parts(binned, brier), ece)


def _binned(probabilities: Array, hits: Array, weights: Array) -> _Binned:
    order = np.argsort(probabilities, kind="stable")
    p, hits, weights = probabilities[order], hits[order], weights[order]
    up_to = np.cumsum(weights)
    edges = p[np.searchsorted(up_to, up_to[-1] * np.arange(1, BINS) / BINS)]
    stops = np.searchsorted(p, edges, side="right")
    starts = np.unique(np.concatenate(([0], stops[stops < len(p)])))
    mass, own, sums = (np.add.reduceat(each, starts) for each in (weights, weights * hits, weights * p))
    return p[starts], p[np.append(starts[1:], len(p)) - 1], mass, sums / mass, own / mass


def _calibration_figures(label: str, binned: _Binned) -> list[Bin]:
    rows = zip(*(column.tolist() for column in binned), strict=True)
    return [Bin(label, low, high, n, mean, o, *wilson(min(o, 1.0), n)) for low, high, n, mean, o in rows]


def _parts(binned: list[_Binned], brier: float) -> BrierParts:
    parts = np.zeros(3)
    for _, _, mass, mean_p, frequency in binned:
        shares = mass / mass.sum()
        base = float(shares @ frequency)
        gaps = (np.square(mean_p - frequency), np.square(frequency - base))
        parts += [*(float(shares @ gap) for gap in gaps), base * (1 - base)]
    reliability, resolution, uncertainty = parts.tolist()
    return BrierParts(reliability, resolution, uncertainty, brier - (reliability - resolution + uncertainty))
