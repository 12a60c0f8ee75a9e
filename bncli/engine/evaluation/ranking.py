"""Comparison of several methods over many data sets: average ranks, Friedman's test, Nemenyi's critical difference.

On each data set i of n the k methods are ranked, 1 for the best; r_ij is the rank of method j, and R_j its average over
the data sets. If all methods were equally good, every R_j would be about (k + 1) / 2. Friedman's statistic (1937, JASA
32), with the correction for ties in the denominator, is

    chi^2 = 12 n / (k (k + 1)) * sum over j of (R_j - (k + 1) / 2)^2  /  [1 - sum of (t^3 - t) / (n k (k^2 - 1))]

where t are the sizes of the groups of equal figures within a data set. It is chi-squared with k - 1 degrees of freedom.
The test is conservative; Iman & Davenport (1980, Communications in Statistics A9) improve on it with

    F = (n - 1) chi^2 / (n (k - 1) - chi^2),    F distribution with k - 1 and (k - 1) (n - 1) degrees of freedom

If the test rejects, two methods differ significantly if their average ranks differ by at least Nemenyi's critical
difference (Demsar 2006, JMLR 7):

    CD = q / sqrt(2) * sqrt(k (k + 1) / (6 n)),   q: the range of k standard normals exceeds it with probability alpha

Conventions:
- Equal figures share the average of their ranks. Neighbours in sorted order that differ by less than 1e-12 of the
  larger one are equal.
- p is 1 if all methods tie on every data set, or if there is only one data set.
- F is infinite and its p 0 if all data sets give the same ranks.

Cost: a sort per data set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.evaluation.significance import NO_DIFFERENCE
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

_FARTHEST = 9.0
"""Beyond this, the standard normal density is below 1e-17."""
_STEP = 1 / 32
_WIDEST = 40.0
_HALVINGS = 55


@dataclass(frozen=True)
class Friedman:
    """Friedman's chi^2, Iman & Davenport's F, their p-values, and the average rank of each method (1 is the best)."""

    chi_squared: float
    p: float
    f: float
    f_p: float
    ranks: tuple[float, ...]


def average_ranks(losses: ArrayLike) -> Array:
    """Rank the methods on each data set, 1 for the lowest loss; losses and ranks have shape (n_data, n_methods).

    >>> average_ranks([[0.1, 0.3, 0.2], [0.5, 0.5, 0.9]]).tolist()
    [[1.0, 3.0, 2.0], [1.5, 1.5, 3.0]]
    """
    values = np.asarray(losses, np.float64)
    if values.ndim != 2 or values.shape[1] == 0:
        raise BncliError(f"expected one row per data set and one column per method, not the shape {values.shape}")
    if not np.isfinite(values).all():
        raise BncliError("values to be ranked must be finite numbers")
    ranks = np.empty_like(values)
    for row, order, row_ranks in zip(values, np.argsort(values, axis=1, kind="stable"), ranks, strict=True):
        ascending = row[order]
        sizes = np.abs(ascending)
        differs = np.diff(ascending) > NO_DIFFERENCE * np.maximum(sizes[1:], sizes[:-1])
        edges = [0, *(np.flatnonzero(differs) + 1).tolist(), len(ascending)]
        for start, end in pairwise(edges):
            row_ranks[order[start:end]] = (start + 1 + end) / 2
    return ranks


def friedman(losses: ArrayLike) -> Friedman:
    """Apply Friedman's test to losses (n_data, n_methods) of at least two methods; raise BncliError for one method."""
    from scipy.special import chdtrc, fdtrc

    ranks = average_ranks(losses)
    n, k = ranks.shape
    if k < 2:
        raise BncliError("Friedman's test compares at least two methods")
    deviations = ranks - (k + 1) / 2
    # n k (k + 1) / 12 without ties; with ties it includes the correction
    most = float((deviations**2).sum()) / (k - 1)
    means = deviations.sum(axis=0) / max(n, 1)
    averages = tuple(float(mean) + (k + 1) / 2 for mean in means)
    if n < 2 or most == 0:
        return Friedman(0.0, 1.0, 0.0, 1.0, averages)
    chi_squared = n * n * float((means**2).sum()) / most
    rest = n * (k - 1) - chi_squared
    # rest is 0, up to rounding, if all data sets rank the methods alike
    f = (n - 1) * chi_squared / rest if rest > NO_DIFFERENCE * chi_squared else math.inf
    p, f_p = float(chdtrc(k - 1, chi_squared)), float(fdtrc(k - 1, (k - 1) * (n - 1), f))
    return Friedman(chi_squared, p, f, f_p, averages)


def critical_difference(k: int, n: int) -> float:
    """Return the difference of average ranks that is significant at 5 %, for k >= 2 methods and n >= 1 data sets."""
    if k < 2 or n < 1:
        raise BncliError(f"the critical difference is not defined for {k} methods and {n} data sets")
    return range_quantile(0.05, k) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))


def range_quantile(alpha: float, k: int) -> float:
    """Return the value that the range of k >= 2 standard normals exceeds with probability alpha, 0 < alpha < 1.

    The width r is found by bisection, where

        P(R <= r) = k integral of phi(z) [Phi(z) - Phi(z - r)]^(k - 1) dz

    and z is the largest of the normals. The trapezoidal rule is accurate to a dozen digits, since the integrand is
    smooth and vanishes at both ends.

    >>> round(range_quantile(0.05, 3), 3)  # as in printed tables of the studentised range, infinite degrees of freedom
    3.314
    """
    from scipy.special import ndtr

    z = np.arange(-_FARTHEST, _FARTHEST + _STEP / 2, _STEP)
    low, high = 0.0, _WIDEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = np.exp(-z * z / 2) * (ndtr(z) - ndtr(z - middle)) ** (k - 1)
        tail = 1 - k * _STEP * float(inside.sum()) / math.sqrt(2 * math.pi)
        low, high = (middle, high) if tail > alpha else (low, middle)
    return (low + high) / 2


def cliques(ranks: Sequence[float], difference: float) -> tuple[tuple[int, ...], ...]:
    """Return the maximal groups of methods whose average ranks differ by less than the critical difference.

    Methods are positions in `ranks`, best first. Groups of one and groups contained in another one are left out.

    >>> cliques([1.0, 3.75, 1.5, 2.25], difference=1.0)
    ((0, 2), (2, 3))
    """
    order = sorted(range(len(ranks)), key=lambda j: ranks[j])
    groups: list[tuple[int, ...]] = []
    last = 0
    for start, best in enumerate(order):
        end = start
        while end < len(order) and ranks[order[end]] - ranks[best] < difference:
            end += 1
        if end > max(last, start + 1):
            groups.append(tuple(order[start:end]))
        last = max(last, end)
    return tuple(groups)
