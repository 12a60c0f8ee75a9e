"""Comparison of several methods over many data sets: average ranks, Friedman's test, Nemenyi's critical difference.

On each data set i of n the k methods are ranked, 1 for the best; r_ij is the rank of method j, and R_j its average over
the data sets. If all methods were equally good, every R_j would be about (k + 1) / 2. Friedman's statistic (1937, JASA
32), with the correction for ties in the denominator, is

    chi^2 = 12 n / (k (k + 1)) * sum over j of (R_j - (k + 1) / 2)^2  /  [1 - sum of (t^3 - t) / (n k (k^2 - 1))]

where t are the sizes of the groups of equal figures within a data set. It is chi-squared with k - 1 degrees of freedom.
The test is conservative; Iman & Davenport (1980, Communications in Statistics A9) improve on it with

    F = (n - 1) chi^2 / (n (k - 1) - chi^2),    F distribution with k - 1 and (k - 1) (n - 1) degrees of freedom

Both approximations need many data sets and methods (Demsar 2006 says more than 10 and more than 5). For few, the exact
p-value is the share of all arrangements of the ranks within data sets whose chi^2 is at least the observed one.

If the test rejects, two methods differ significantly if their average ranks differ by at least Nemenyi's critical
difference (Demsar 2006, JMLR 7):

    CD = q / sqrt(2) * sqrt(k (k + 1) / (6 n)),   q: the range of k standard normals exceeds it with probability alpha

Conventions:
- Equal figures share the average of their ranks. Neighbours in sorted order that differ by less than 1e-12 of the
  larger one are equal.
- p is 1 if all methods tie on every data set, or if there is only one data set.
- F is infinite and its p 0 if all data sets give the same ranks; the exact p is then known for any size.

Cost: a sort per data set, and at most MOST_ARRANGEMENTS additions of ranks for the exact p-value.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, permutations
from operator import add

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.evaluation.significance import NO_DIFFERENCE
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

MOST_ARRANGEMENTS = 50_000
"""Sums of ranks that are enumerated for an exact p-value: 3 methods on up to 37 data sets, 4 on 10, 5 on 4."""
_FARTHEST = 9.0
"""Beyond this, the standard normal density is below 1e-17."""
_STEP = 1 / 32
_WIDEST = 40.0
_HALVINGS = 55


@dataclass(frozen=True)
class Friedman:
    """Friedman's chi^2 and Iman & Davenport's F with their p-values, and the average rank of each method (1: best).

    exact_p: the exact p-value of chi^2, or None if there are too many arrangements to enumerate.
    """

    chi_squared: float
    p: float
    f: float
    f_p: float
    exact_p: float | None
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
        return Friedman(0.0, 1.0, 0.0, 1.0, 1.0, averages)
    chi_squared = n * n * float((means**2).sum()) / most
    rest = n * (k - 1) - chi_squared
    # rest is 0, up to rounding, if all data sets rank the methods alike
    f = (n - 1) * chi_squared / rest if rest > NO_DIFFERENCE * chi_squared else math.inf
    p, f_p = float(chdtrc(k - 1, chi_squared)), float(fdtrc(k - 1, (k - 1) * (n - 1), f))
    return Friedman(chi_squared, p, f, f_p, _exact_p(ranks), averages)


def _exact_p(ranks: Array) -> float | None:
    """Return the exact p-value of Friedman's chi^2 for ranks (n_data, n_methods), or None if it takes too long.

    For given ranks, chi^2 grows with the sum of squares of the rank sums, which are integers if ranks are doubled.
    """
    rows = [tuple(row) for row in np.rint(2 * ranks).astype(int).tolist()]
    if all(row == rows[0] for row in rows):  # the largest chi^2, reached only if every data set ranks like the first
        n_arrangements = math.factorial(len(rows[0])) // math.prod(map(math.factorial, Counter(rows[0]).values()))
        return math.exp((1 - len(rows)) * math.log(n_arrangements))
    distribution = _squares_of_sums(tuple(sorted(tuple(sorted(row)) for row in rows)))
    if distribution is None:
        return None
    observed = sum(sum(own) ** 2 for own in zip(*rows, strict=True))
    return min(1.0, math.fsum(p for squares, p in distribution.items() if squares >= observed))


@lru_cache
def _squares_of_sums(rows: tuple[tuple[int, ...], ...]) -> dict[int, float] | None:
    """Return the distribution of the sum of squares of column sums if each row is in random order.

    Returns None if more than MOST_ARRANGEMENTS sums would have to be enumerated.
    """
    # The order of the columns does not matter, so sums are kept sorted and the first row needs no arrangement.
    sums: dict[tuple[int, ...], float] = {rows[0]: 1.0}
    n_added = 0
    for row in rows[1:]:
        n_added += len(sums) * math.factorial(len(row))
        if n_added > MOST_ARRANGEMENTS:
            return None
        arrangements = set(permutations(row))
        following = defaultdict[tuple[int, ...], float](float)
        for before, p in sums.items():
            for arranged in arrangements:
                following[tuple(sorted(map(add, before, arranged)))] += p / len(arrangements)
        sums = following
    squares = defaultdict[int, float](float)
    for own, p in sums.items():
        squares[sum(number * number for number in own)] += p
    return squares


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
