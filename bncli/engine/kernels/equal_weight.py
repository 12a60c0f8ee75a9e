"""Neighbours joined to groups of equal weight, as far as they allow: what is heavy stands alone.

Plain quantiles collapse where one element holds much of the weight: most of them fall into it, and the rest is left in
one group. So an element that alone holds more than its share of the weight, total / B, gets a group of its own, and the
remaining groups go to the remaining elements at equal weight.

Conventions: the heavy elements split the row into stretches; every stretch gets one group, and each group still to
give goes to the stretch with the most weight a group (ties: the first). So there are at most B groups, unless the
heavy elements leave more stretches than groups. Inside a stretch the next group ends at the element where its weight
comes closest to what remains over the groups that remain (ties: the earlier end), which is never later than leaves one
element to each of them. Cost: linear, and a binary search a group.
"""

from __future__ import annotations

import heapq

import numpy as np

from bncli.engine.kernels.arrays import Array


def group_ends(mass: Array, n_groups: int) -> list[int]:
    """The last element of each of about `n_groups` groups, ascending; the last of all is left out. mass (any,).

    >>> group_ends(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 3)  # {0, 1}, {2, 3}, {4, 5}
    [1, 3]
    >>> group_ends(np.array([1.0, 1.0, 9.0, 1.0, 1.0, 1.0]), 3)  # the heavy one alone: {0, 1}, {2}, {3, 4, 5}
    [1, 2]
    """
    heavy = np.flatnonzero(mass > mass.sum() / n_groups)
    starts = np.concatenate(([0], heavy + 1))
    stops = np.append(heavy, len(mass))
    stretches = [(int(a), int(b)) for a, b in zip(starts, stops, strict=True) if a < b]
    running = np.concatenate(([0.0], np.cumsum(mass)))
    shares = _shares([float(running[b] - running[a]) for a, b in stretches], n_groups - len(heavy))
    ends = set(heavy.tolist())
    for (start, stop), share in zip(stretches, shares, strict=True):
        ends.update(_ends(running, start, stop, share))
    return sorted(ends - {len(mass) - 1})


def _shares(weights: list[float], n_groups: int) -> list[int]:
    """How many groups each stretch gets."""
    if len(weights) == 1:
        return [max(1, n_groups)]
    shares = [1] * len(weights)
    # the first of equals is the least of them
    waiting = [(-weight, s) for s, weight in enumerate(weights)]
    heapq.heapify(waiting)
    for _ in range(n_groups - len(weights) if weights else 0):
        neediest = waiting[0][1]
        shares[neediest] += 1
        heapq.heapreplace(waiting, (-weights[neediest] / shares[neediest], neediest))
    return shares


def _ends(running: Array, start: int, stop: int, n_groups: int) -> list[int]:
    """The last element of each group of the stretch start .. stop - 1; running[g] is the weight of all before g."""
    ends: list[int] = []
    for left in range(min(n_groups, stop - start), 1, -1):
        target = running[start] + (running[stop] - running[start]) / left
        end = int(np.searchsorted(running[start + 1 : stop + 1], target)) + start
        if end > start and target - running[end] <= running[end + 1] - target:
            end -= 1
        # at least one element stays for each of the groups to come
        start = min(end, stop - left) + 1
        ends.append(start - 1)
    return [*ends, stop - 1]
