"""Intervals that hold equal weight, as far as ties allow; the class plays no part.

Plain quantiles collapse on skewed columns: where two thirds of the rows are 0, most of the quantiles are 0 as well,
and the rest of the column is left in one interval. So a value that alone holds more than its share N / B gets an
interval of its own, and the remaining intervals go to the remaining rows at equal frequency. Cuts lie midway between
neighbouring distinct values.

Decided here: the heavy values split the column into stretches; every stretch gets one interval, and each interval
still to give goes to the stretch with the most weight an interval (ties: the lowest). So there are at most B intervals,
unless the heavy values leave more stretches than intervals. Inside a stretch the next interval ends at the
distinct value where its weight comes closest to what remains over the intervals that remain (ties: the lower
end), which is never later than leaves one value to each of them. Cost: one sort.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.order import midpoints, ordered

Weights = NDArray[np.float64]


def cut_points(
    values: NDArray[np.generic],
    labels: NDArray[np.unsignedinteger],
    n_labels: int,
    weights: NDArray[np.float64] | None,
    *,
    bins: int = 10,
) -> tuple[float, ...]:
    """Ascending cuts of about `bins` intervals; none for a constant."""
    if len(values) == 0:
        return ()
    column = ordered(values, np.zeros(len(values), np.uint8), 1, weights)
    mass = np.ones(len(column.labels)) if column.weights is None else column.weights.astype(np.float64)
    after = np.array(_last_values(np.add.reduceat(mass, np.append(0, column.ends[:-1])), bins), np.intp)
    return tuple(midpoints(column.values[after], column.values[after + 1]).tolist())


def _last_values(mass: Weights, bins: int) -> list[int]:
    """The distinct values that end an interval, the last of all left out."""
    heavy = np.flatnonzero(mass > mass.sum() / bins)
    starts = np.concatenate(([0], heavy + 1))
    stops = np.append(heavy, len(mass))
    stretches = [(int(a), int(b)) for a, b in zip(starts, stops, strict=True) if a < b]
    running = np.concatenate(([0.0], np.cumsum(mass)))
    shares = _shares([float(running[b] - running[a]) for a, b in stretches], bins - len(heavy))
    ends = set(heavy.tolist())
    for (start, stop), share in zip(stretches, shares, strict=True):
        ends.update(_ends(running, start, stop, share))
    return sorted(ends - {len(mass) - 1})


def _shares(weights: list[float], n_intervals: int) -> list[int]:
    """How many intervals each stretch gets."""
    shares = [1] * len(weights)
    for _ in range(n_intervals - len(weights) if weights else 0):
        neediest = max(range(len(weights)), key=lambda s: weights[s] / shares[s])
        shares[neediest] += 1
    return shares


def _ends(running: Weights, start: int, stop: int, n_intervals: int) -> list[int]:
    """The last value of each interval of the stretch start .. stop - 1; running[g] is the weight of all before g."""
    ends: list[int] = []
    for left in range(min(n_intervals, stop - start), 0, -1):
        target = running[start] + (running[stop] - running[start]) / left
        end = int(np.searchsorted(running[start + 1 : stop + 1], target)) + start
        if end > start and target - running[end] <= running[end + 1] - target:
            end -= 1
        start = min(end, stop - left) + 1
        ends.append(start - 1)
    return ends
