"""Tests of whether methods differ: pairs of methods, several methods over many data sets, and mean ratios of losses.

Pairs of methods. Each data set gives a pair of results a_i, b_i. Under the null hypothesis the differences d_i = a_i -
b_i are symmetric about 0. Wilcoxon's signed-rank test (1945, Biometrics Bulletin 1) drops the d_i that are 0, ranks the
n others by |d_i| and sums:

    W+ = sum over i with d_i > 0 of rank(|d_i|),   W- = n (n + 1) / 2 - W+

The sign test only counts wins d_i > 0, draws d_i = 0 and losses d_i < 0; the number of wins among wins and losses is
binomial with probability 1/2. It assumes less than Wilcoxon's test and has less power (Demsar 2006, JMLR 7). The t-test
assumes normal differences; it is provided because many papers report it:

    t = mean(d) / sqrt(variance(d) / n),    Student's distribution with n - 1 degrees of freedom

The differences over the folds of (repeated) cross-validation are not independent, since any two training sets overlap.
The plain t-test therefore finds too many differences, and more of them with more repeats. Nadeau & Bengio (2003,
Machine Learning 52) increase the variance to correct for the overlap:

    t = mean(d) / sqrt((1 / n + n_test / n_train) variance(d))

The 95 % interval of the difference is the mean -+ the standard error times the 97.5 % quantile of Student's
distribution with n - 1 degrees of freedom; it excludes 0 if and only if p < 0.05.

With folds of equal size, n_test / n_train = s / (1 - s), where s = 1 / folds is the fraction of the rows in a test set.

Among m true null hypotheses tested at level 0.05, one in twenty is rejected by chance. Holm's correction (1979,
Scandinavian Journal of Statistics 6) keeps the probability of any such rejection below the level, regardless of the
dependence between the tests: with p_(1) <= ... <= p_(m),

    adjusted p_(i) = max over j <= i of min(1, (m - j + 1) p_(j))

The geometric mean of ratios of losses measures how much better a method is on average:

    ratio = exp( mean over data sets i of ln (a_i / b_i) )

A ratio below 1 means that the first method has lower losses. Halving one loss offsets doubling another, and swapping
the methods gives the inverse. A single loss of 0 would make the ratio 0 or infinite, so a loss below a floor is raised
to it. The floor depends on the kind of loss, with N_i the number of rows of data set i:

- `mean`, a mean over rows (error, log-loss, Brier score, bias, variance): 0.5 / N_i, half an error
- `root`, the square root of such a mean (RMSE): sqrt(0.5 / N_i)
- `count`, a mean of integers (iterations, passes over the rows): 0.5
- `seconds`: a nanosecond, since a clock may report 0 for a fast step
- `plain`, a quantity that is always positive (ratios themselves): no floor

Conventions:
- Equal |d_i| share the average of their ranks.
- Without such ties and for n <= 50 the p-value is exact, from the number of subsets of {1, ..., n} for every sum.
  Otherwise W+ is treated as normal with mean n (n + 1) / 4 and variance [n (n + 1) (2n + 1) - sum of (t^3 - t) / 2] /
  24, where t are the sizes of the groups of equal |d_i|, without continuity correction.
- A difference of at most 1e-12 of the larger value counts as 0; other differences are rounded to 12 significant digits,
  so that 0.768 - 0.763 ties with 0.936 - 0.931.
- Every p-value is 1 if all pairs are equal. t is infinite if all pairs differ by the same amount.

Cost: a sort per test; exact distributions O(n^3).

Several methods: average ranks, Friedman's test, Nemenyi's critical difference. On each data set i of n the k methods
are ranked, 1 for the best; r_ij is the rank of method j, and R_j its average over the data sets. If all methods were
equally good, every R_j would be about (k + 1) / 2. Friedman's statistic (1937, JASA 32), with the correction for ties
in the denominator, is

    chi^2 = 12 n / (k (k + 1)) * sum over j of (R_j - (k + 1) / 2)^2  /  [1 - sum of (t^3 - t) / (n k (k^2 - 1))]

where t are the sizes of the groups of equal results in a data set. It is chi-squared with k - 1 degrees of freedom.
The test is conservative; Iman & Davenport (1980, Communications in Statistics A9) improve on it with

    F = (n - 1) chi^2 / (n (k - 1) - chi^2),    F distribution with k - 1 and (k - 1) (n - 1) degrees of freedom

Both approximations need many data sets and methods (Demsar 2006 says more than 10 and more than 5). For few, the exact
p-value is the fraction of all arrangements of the ranks within data sets whose chi^2 is at least the observed one.

If the test rejects, two methods differ significantly if their average ranks differ by at least Nemenyi's critical
difference (Demsar 2006, JMLR 7):

    CD = q / sqrt(2) * sqrt(k (k + 1) / (6 n)),   q: the range of k standard normals exceeds it with probability alpha

Conventions:
- Equal results share the average of their ranks. Neighbours in sorted order that differ by at most 1e-12 of the larger
  one are equal.
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
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import rounded
from bncli.errors import BncliError

MOST_EXACT = 50
"""The maximum number of pairs for an exact distribution of W+: counts of up to 2^50 subsets are exact in 64 bits."""
NO_DIFFERENCE = 1e-12
LossKind = Literal["mean", "root", "count", "seconds", "plain"]
MOST_ARRANGEMENTS = 50_000
"""The maximum number of sums of ranks to enumerate for an exact p-value: 3 methods on 36 data sets, 4 on 10, 5 on 4."""
_FARTHEST = 9.0
"""Beyond this, the standard normal density is below 1e-17."""
_STEP = 1 / 32
_WIDEST = 40.0
_HALVINGS = 55


@dataclass(frozen=True)
class SignedRanks:
    """The result of Wilcoxon's test of the n pairs that differ: W+, W-, the two-sided and both one-sided p-values.

    z = (W+ - mean) / standard deviation is positive if the first method is higher; it is 0 for n = 0.
    """

    n: int
    w_plus: float
    w_minus: float
    z: float
    p: float
    p_higher: float
    p_lower: float
    exact: bool


@dataclass(frozen=True)
class WinDrawLoss:
    """The numbers of wins (first value higher), draws and losses, and the two-sided p-value of the sign test."""

    wins: int
    draws: int
    losses: int
    p: float


@dataclass(frozen=True)
class PairedT:
    """The t-test of n pairs: mean difference, t, two-sided p-value, and p-values for "higher" and "lower".

    interval: the 95 % interval of the mean difference, or None for fewer than two pairs.
    """

    n: int
    mean: float
    interval: tuple[float, float] | None
    t: float
    p: float
    p_higher: float
    p_lower: float


def paired_differences(first: ArrayLike, second: ArrayLike) -> Array:
    """Return first - second, both (n,), rounded so that values equal up to rounding differ by exactly 0.

    Raises BncliError if the shapes differ or a value is not finite.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise BncliError(f"expected two lists of the same length, not arrays of shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise BncliError("paired values must be finite numbers")
    differences = a - b
    tiny = np.abs(differences) <= NO_DIFFERENCE * np.maximum(np.abs(a), np.abs(b))
    return rounded(np.where(tiny, 0.0, differences))


def signed_ranks(first: ArrayLike, second: ArrayLike) -> SignedRanks:
    """Apply Wilcoxon's signed-rank test to paired values, both (n,) and finite."""
    from scipy.special import ndtr

    differences = paired_differences(first, second)
    differences = differences[differences != 0]
    n = len(differences)
    # ranks 1, ..., n, where equal magnitudes share the average of their ranks
    _, group, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    sizes = counts.astype(np.float64)
    ranks = (sizes.cumsum() - (sizes - 1) / 2)[group]
    w_plus = float(ranks[differences > 0].sum())
    w_minus = n * (n + 1) / 2 - w_plus
    variance = (n * (n + 1) * (2 * n + 1) - float((sizes**3 - sizes).sum()) / 2) / 24
    z = (w_plus - w_minus) / 2 / math.sqrt(variance) if n else 0.0
    exact = n <= MOST_EXACT and len(sizes) == n
    if exact:
        higher, lower = _exact_tail(n, int(w_plus)), _exact_tail(n, int(w_minus))
    else:
        # by symmetry rather than as 1 - P, so that small tails keep their digits
        higher, lower = float(ndtr(-z)), float(ndtr(z))
    return SignedRanks(n, w_plus, w_minus, z, min(1.0, 2 * min(higher, lower)), higher, lower, exact)


def _exact_tail(n: int, w: int) -> float:
    """Return P(W >= w), where W is the sum of the ranks 1, ..., n, each included with probability 1/2."""
    subsets = np.zeros(n * (n + 1) // 2 + 1, np.int64)  # subsets[s]: number of subsets of the ranks so far with sum s
    subsets[0] = 1
    for rank in range(1, n + 1):
        # a copy, so that the added sums do not include this rank yet
        subsets[rank:] += subsets[:-rank].copy()
    # the sums are exact integers; only this division rounds
    return int(subsets[w:].sum()) / (1 << n)


def paired_t(first: ArrayLike, second: ArrayLike, overlap: float = 0.0) -> PairedT:
    """Apply the t-test of equal means to paired values, both (n,) and finite.

    The squared standard error of the mean difference is (1 / n + overlap) times the variance. t is infinite if all
    pairs differ by the same amount other than 0.
    """
    from scipy.special import stdtr, stdtrit

    differences = paired_differences(first, second)
    n = len(differences)
    mean = float(differences.mean()) if n else 0.0
    if n < 2 or not differences.any():
        return PairedT(n, mean, None if n < 2 else (0.0, 0.0), 0.0, 1.0, 1.0, 1.0)
    # equal differences have no spread, although their mean may be rounded
    spread = 0.0 if (differences == differences[0]).all() else float(differences.std(ddof=1))
    error = spread * math.sqrt(1 / n + overlap)
    t = mean / error if error > 0 else math.copysign(math.inf, mean)
    # by symmetry rather than as 1 - P, so that small tails keep their digits
    higher, lower = float(stdtr(n - 1, -t)), float(stdtr(n - 1, t))
    half = error * float(stdtrit(n - 1, 0.975))
    return PairedT(n, mean, (mean - half, mean + half), t, min(1.0, 2 * min(higher, lower)), higher, lower)


def corrected_resampled_t(differences: ArrayLike, test_share: float) -> PairedT:
    """Apply Nadeau & Bengio's test to differences per fold, (n,), of the first method minus the second.

    test_share is the fraction of the rows in the test set of each fold; BncliError is raised unless it lies strictly
    between 0 and 1.
    """
    d = np.asarray(differences, np.float64)
    if not 0 < test_share < 1:
        raise BncliError(f"the fraction of rows tested must be between 0 and 1, not {test_share}")
    return paired_t(d, np.zeros_like(d), test_share / (1 - test_share))


def win_draw_loss(first: ArrayLike, second: ArrayLike) -> WinDrawLoss:
    """Count wins (higher), draws and losses of the first values, and apply the sign test, which ignores draws."""
    differences = paired_differences(first, second)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return WinDrawLoss(wins, len(differences) - wins - losses, losses, sign_test(wins, losses))


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of `wins` in `wins + losses` fair coin tosses: twice the smaller tail, at most 1.

    >>> sign_test(wins=9, losses=1)  # 2 (1 + 10) / 2^10
    0.021484375
    """
    n = wins + losses
    tail = sum(math.comb(n, k) for k in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: ArrayLike) -> Array:
    """Adjust p-values (m,) by Holm's method; hypotheses whose adjusted p-value is at most the level are rejected.

    Raises BncliError if a value is not a number from 0 to 1.

    >>> holm([0.75, 0.125, 0.25]).tolist()
    [0.75, 0.375, 0.5]
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise BncliError("p-values must be a list of numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def geometric_mean_ratio(first: ArrayLike, second: ArrayLike, rows: ArrayLike, kind: LossKind = "mean") -> float:
    """Return the geometric mean of first / second after raising both to the floors, or 1 without data sets.

    The losses `first` and `second`, and the numbers of rows behind each mean, have shape (n_data,). Raises BncliError
    if the shapes differ, a number of rows is not positive, or a loss is negative or not finite (or 0 if `kind` is
    "plain").

    >>> round(geometric_mean_ratio([0.1, 0.4], [0.2, 0.2], rows=[100, 100]), 12)  # half on one, twice on the other
    1.0
    """
    a, b, n = (np.asarray(values, np.float64) for values in (first, second, rows))
    if not a.shape == b.shape == n.shape or a.ndim != 1:
        raise BncliError(
            f"expected losses and numbers of rows of the same length, not arrays of shapes {a.shape}, {b.shape}, "
            f"{n.shape}"
        )
    if not (n > 0).all():
        raise BncliError("every loss must be a mean over at least one row")
    floors: dict[LossKind, Array | float]
    floors = {"mean": 0.5 / n, "root": np.sqrt(0.5 / n), "count": 0.5, "seconds": 1e-9, "plain": 0.0}
    logs = []
    for losses in (a, b):
        raised = np.maximum(losses, floors[kind])
        if not (np.isfinite(raised).all() and (losses >= 0).all() and (raised > 0).all()):
            raise BncliError("losses must be finite and not negative")
        logs.append(np.log(raised))
    return math.exp(float(np.mean(logs[0] - logs[1]))) if len(a) else 1.0


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

    Raises BncliError if the losses have another shape, or one of them is not finite.

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
    # for given ranks, chi^2 grows with the sum of squares of the rank sums, which are integers if ranks are doubled
    rows = [tuple(row) for row in np.rint(2 * ranks).astype(int).tolist()]
    exact_p: float | None = None
    if all(row == rows[0] for row in rows):  # the largest chi^2, reached only if every data set ranks like the first
        n_arrangements = math.factorial(len(rows[0])) // math.prod(map(math.factorial, Counter(rows[0]).values()))
        exact_p = math.exp((1 - len(rows)) * math.log(n_arrangements))
    elif (distribution := _squares_of_sums(tuple(sorted(tuple(sorted(row)) for row in rows)))) is not None:
        observed = sum(sum(own) ** 2 for own in zip(*rows, strict=True))
        exact_p = min(1.0, math.fsum(p for squares, p in distribution.items() if squares >= observed))
    return Friedman(chi_squared, p, f, f_p, exact_p, averages)


@lru_cache
def _squares_of_sums(rows: tuple[tuple[int, ...], ...]) -> dict[int, float] | None:
    """Return the distribution of the sum of squares of column sums if each row is in random order.

    The result maps each value to its probability; it is None if more than MOST_ARRANGEMENTS sums would have to be
    enumerated.
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
    """Return Nemenyi's critical difference of average ranks at the 5 % level.

    Raises BncliError for fewer than two of the k methods or without any of the n data sets.
    """
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

    Methods are positions in `ranks`, the best first. Groups of one, and groups contained in another, are left out.

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
