"""How surprising rows are: the distribution of ln P(x), which a generative model gives, over many rows.

A row that is unlike all that the model has seen has a low one (`bncli.engine.networks.joint_model`). A model may keep
the mean and the quantiles of its training rows, of MOST_ROWS at most, which lie at equal distances in their table.

Conventions: the distribution is kept as counts of 1 % wide intervals of -ln P(x), in nats (Masson, Rim & Lee 2019,
DDSketch), so that a stream takes no memory, and sketches of several streams add up. Rows of
training weigh as their weights in the data say, never as class weights do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import encode_attributes
from bncli.engine.data.log_p import QUANTILES, TrainingLogP
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.networks.joint_model import JointModel

WIDTH = float(np.log(1.01))
"""Of an interval of the sketch, on the scale of ln(-ln P(x))."""
MOST_ROWS = 10_000
"""Of training that are looked at: more would tell the lowest quantile, 0.01, hardly better."""


def even_sample(columns: Columns) -> Columns:
    """Every so-manyeth row, so that there are MOST_ROWS at most."""
    return columns.take(np.arange(0, columns.n_rows, max(1, -(-columns.n_rows // MOST_ROWS))))


def training_log_p(model: Model, columns: Columns, used: Sequence[int]) -> TrainingLogP:
    """Of rows that the model was learnt from, by these attributes; ModelError where it has no P(x)."""
    joint = JointModel(model, used)
    log_p = joint.log_p(encode_attributes(columns, model.schema, used).codes) if used else np.zeros(columns.n_rows)
    weights = np.ones(len(log_p)) if columns.weights is None else columns.weights
    order = np.argsort(log_p, kind="stable")
    shares = weights[order].cumsum() / weights.sum()
    places = np.minimum(np.searchsorted(shares, QUANTILES), len(order) - 1)
    mean = float(np.average(log_p, weights=weights))
    return TrainingLogP(len(log_p), mean, tuple(log_p[order][places].tolist()))


class Sketch:
    """Counts of -ln P(x) by interval: interval k holds exp((k - 1) WIDTH) to exp(k WIDTH) nats."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts)

    def add(self, log_p: Array) -> None:
        """More rows."""
        nats = np.maximum(-log_p, 1e-9)
        values, counts = np.unique(np.ceil(np.log(nats) / WIDTH).astype(np.int64), return_counts=True)
        self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def quantile(self, q: float) -> float | None:
        """ln P(x) that a share q of the rows do not exceed, to 1 %; None without rows."""
        rank, total = q * sum(self.counts.values()), 0
        for interval in sorted(self.counts, reverse=True):
            total += self.counts[interval]
            if total >= rank:
                return -float(np.exp((interval - 0.5) * WIDTH))
        return None

    def share_below(self, log_p: float) -> float:
        """The share of rows with a lower ln P(x), within an interval as if all its values were alike frequent."""
        nats = max(-log_p, 1e-9)
        place = float(np.log(nats) / WIDTH)
        own = int(np.ceil(place))
        below = sum(count for interval, count in self.counts.items() if interval > own)
        return (below + self.counts[own] * (own - place)) / sum(self.counts.values())
