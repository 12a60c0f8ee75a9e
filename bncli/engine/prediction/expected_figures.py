"""The accuracy, log-loss and AUC to be expected on rows without labels, from calibrated probabilities.

If P(y | x_t) is calibrated, the label of row t is a draw from it, independent of the other rows. Then

    accuracy = mean over t of max_y P(y | x_t),         variance of a row: P (1 - P) at that label
    log-loss = mean over t of H_t = -sum over y of P(y | x_t) ln P(y | x_t),    sum over y of P ln^2 P - H_t^2
    AUC      = sum over t != u of p_t (1 - p_u) ([s_t > s_u] + [s_t = s_u] / 2) / sum over t != u of p_t (1 - p_u)

with p the probability of the second of two labels and s its log-odds (confidence-based performance estimation). The sum
of independent draws is approximately normal, with this mean and variance, which gives the 95 % intervals of accuracy
and log-loss. The interval of the AUC comes from DRAWS draws of all labels.

Everything is a sum over rows, so the counts of several streams can be added. The AUC needs the log-odds of all rows,
which are counted in intervals of width WIDTH. All rows of an interval are tied at its midpoint. Within an interval
the odds of two rows differ by a factor of at most e^WIDTH, so a tie changes the AUC by at most WIDTH / 4, and the
midpoint by at most WIDTH / 2: together less than 0.001. The measured AUC, of rows that have labels, uses the same
intervals. Cost: a sort of each block of rows; at most one count per interval is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Integers

WIDTH = 0.001
"""The width of an interval of log-odds."""
DRAWS = 500
"""The number of times that labels are drawn for the interval of the AUC."""
_Z = 1.959963984540054
_FARTHEST = 700.0
"""Log-odds are clipped to this absolute value."""
_DRAWN_AT_ONCE = 1 << 19
"""The number of counts drawn at a time."""


class ExpectedFigure(NamedTuple):
    """An expected figure and its 95 % interval, each None if it is undefined."""

    value: float | None = None
    interval: tuple[float, float] | None = None


def row_entropies(log_p: Array) -> tuple[Array, Array]:
    """Return mean and variance of -ln P(y | x_t) over the labels, each (rows,), from ln P (K, rows)."""
    p = np.exp(log_p)
    losses = np.where(p > 0, -log_p, 0.0)
    entropies = (p * losses).sum(axis=0)
    return entropies, (p * np.square(losses - entropies)).sum(axis=0)


def sum_of_draws(n: int, total: float, variance: float, highest: float) -> ExpectedFigure:
    """Return the mean of n independent draws and its 95 % interval, clipped to [0, `highest`].

    total, variance: the sums of the draws' expected values and variances.
    """
    if not n:
        return ExpectedFigure()
    mean, half = total / n, _Z * np.sqrt(max(variance, 0.0)) / n
    return ExpectedFigure(mean, (max(float(mean - half), 0.0), min(float(mean + half), highest)))


class LogOddsCounts:
    """Counts of rows by interval of the log-odds of the second label: of all rows, and of those with each label."""

    def __init__(self) -> None:
        self.rows, self.others, self.events = Counter[int](), Counter[int](), Counter[int]()

    def add(self, log_odds: Array, labels: Integers | None) -> None:
        """Count rows with these log-odds and labels, (rows,) each; a missing label is negative."""
        intervals = np.rint(np.clip(log_odds, -_FARTHEST, _FARTHEST) / WIDTH).astype(np.int64)
        _count(self.rows, intervals)
        if labels is not None:
            _count(self.others, intervals[labels == 0])
            _count(self.events, intervals[labels == 1])

    def merge(self, other: LogOddsCounts) -> None:
        """Add the rows of other counts."""
        self.rows.update(other.rows)
        self.others.update(other.others)
        self.events.update(other.events)

    def __iter__(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield for each interval, ascending, its number and the counts of rows, of first and of second labels."""
        for place in sorted(self.rows):
            yield place, self.rows[place], self.others[place], self.events[place]

    def measured_auc(self) -> float | None:
        """Return the AUC of the rows that have labels, or None if a label has no row."""
        counts = np.array([line[2:] for line in self], np.float64).reshape(-1, 2)
        return _aucs(counts[:, 1:], counts[:, :1])[0]

    def expected_auc(self) -> ExpectedFigure:
        """Return the expected AUC, None if it is undefined; no interval if half of the draws or more have one label."""
        lines = np.array([line[:2] for line in self], np.int64).reshape(-1, 2)
        odds, rows = lines[:, 0] * WIDTH, lines[:, 1]
        p, q = np.exp(-np.logaddexp(0.0, -odds)), np.exp(-np.logaddexp(0.0, odds))
        events, others = rows * p, rows * q
        own = float((events * q).sum())  # a row is not compared with itself
        pairs = float(events.sum() * others.sum()) - own
        if not pairs > 1e-12:
            return ExpectedFigure()
        # events above others, ties half; from each sum the pairs of a row with itself are taken out
        below = np.cumsum(others) - others / 2
        value = float(np.clip((events @ below - own / 2) / pairs, 0.0, 1.0))
        rng = np.random.default_rng(0)
        drawn = []
        step = max(_DRAWN_AT_ONCE // len(rows), 1)
        for start in range(0, DRAWS, step):
            found = rng.binomial(rows[:, None], p[:, None], (len(rows), min(step, DRAWS - start))).astype(np.float64)
            drawn += [area for area in _aucs(found, rows[:, None] - found) if area is not None]
        if len(drawn) <= DRAWS // 2:
            return ExpectedFigure(value)
        low, high = np.quantile(drawn, (0.025, 0.975)).tolist()
        return ExpectedFigure(value, (low, high))


def _count(counter: Counter[int], intervals: Integers) -> None:
    values, counts = np.unique(intervals, return_counts=True)
    counter.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _aucs(events: Array, others: Array) -> list[float | None]:
    """Return the AUC of each draw, from counts (intervals, draws) of both labels, or None if a label has no row."""
    pairs = events.sum(axis=0) * others.sum(axis=0)
    wins = (events * (np.cumsum(others, axis=0) - others / 2)).sum(axis=0)
    return [win / n if n > 0 else None for win, n in zip(wins.tolist(), pairs.tolist(), strict=True)]
