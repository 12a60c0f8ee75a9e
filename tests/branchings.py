"""All directed forests there are over a few nodes, by trying every way to give each node a parent or none."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def branchings(n: int) -> tuple[tuple[int, ...], ...]:
    """Every acyclic choice of a parent, or -1, for each of n nodes: (n + 1)^(n - 1) of them."""
    choices = itertools.product(*([u for u in range(-1, n) if u != v] for v in range(n)))
    return tuple(parents for parents in choices if _ends(parents))


def arborescences(n: int) -> tuple[tuple[int, ...], ...]:
    """Those with one root."""
    return tuple(parents for parents in branchings(n) if parents.count(-1) == 1)


def _ends(parents: tuple[int, ...]) -> bool:
    """Whether every path upwards comes to an end."""
    for v in range(len(parents)):
        for _ in parents:
            v = parents[v] if v >= 0 else v
        if v >= 0:
            return False
    return True


def total(weights: NDArray[np.float64], parents: tuple[int, ...]) -> float:
    """Weight of all arcs, weights[u, v] of u -> v."""
    return float(sum(weights[u, v] for v, u in enumerate(parents) if u >= 0))
