"""Whether one method beats another: Wilcoxon's signed-rank test, the sign test, t-tests, and Holm's correction.

Each data set gives a pair of figures a_i, b_i. Under the null hypothesis the differences d_i = a_i - b_i are symmetric
about 0. Wilcoxon (1945, Biometrics Bulletin 1) drops the d_i that are 0, ranks the n others by |d_i| and sums:

    W+ = sum over i with d_i > 0 of rank(|d_i|),   W- = n (n + 1) / 2 - W+

The sign test only counts: wins d_i > 0, draws d_i = 0, losses d_i < 0; the wins among the wins and losses are
binomial with probability 1/2. It asks for less and so finds less (Demsar 2006, JMLR 7). The paired t-test asks for
more, normal differences, and is here because many papers use it:

    t = mean(d) / sqrt(variance(d) / n),    Student's distribution with n - 1 degrees of freedom

The differences over the folds of (repeated) cross-validation are not independent, since any two training sets overlap;
the plain t-test then finds differences where there are none, ever more of them with more repeats. Nadeau & Bengio
(2003, Machine Learning 52) widen the variance by what the overlap hides:

    t = mean(d) / sqrt((1 / n + n_test / n_train) variance(d))

With folds of one size, n_test / n_train = s / (1 - s), s = 1 / folds the share of the rows that is tested.

Of m true null hypotheses tested at level 0.05 each, one in twenty is rejected by accident. Holm (1979, Scandinavian
Journal of Statistics 6) keeps the chance of even one such accident below the level, whatever the tests have to do with
one another: with p_(1) <= ... <= p_(m),

    adjusted p_(i) = max over j <= i of min(1, (m - j + 1) p_(j))

Conventions:
- Equal |d_i| share the average of their ranks.
- Without such ties and for n <= 50 the p-value is exact, from the number of subsets of {1, ..., n} for every sum. Else
  W+ counts as normal with mean n (n + 1) / 4 and variance [n (n + 1) (2n + 1) - sum of (t^3 - t) / 2] / 24, t the sizes
  of the groups of equal |d_i|, without correction for continuity.
- A difference below 1e-12 of the larger figure is none; others are compared after rounding to 12 significant digits:
  0.768 - 0.763 ties with 0.936 - 0.931.
- Where all pairs are equal, nothing speaks against the null hypothesis: every p-value is 1. Where all differ by one
  amount, t is infinite.

Cost: a sort; exact distributions O(n^3).

How much better on average: the geometric mean of ratios of losses over data sets.

    ratio = exp( mean over data sets i of ln (a_i / b_i) )

Below 1 the first method loses less. Halving a loss counts as much as doubling it costs, and swapping the methods gives
the inverse. A loss of 0 would decide everything alone, so none counts as less than half an error among the N_i rows:

- `mean`, a mean over rows (error, log-loss, Brier score, bias, variance): at least 0.5 / N_i; - `root`, the square root
of one (RMSE): at least sqrt(0.5 / N_i); - `count`, a mean of whole numbers (iterations, passes over the rows): at least
half a one; - `seconds`: at least a nanosecond, for a clock may say 0 of what is quick; - `plain`, anything that is
always positive (ratios themselves): as it is.

Cost: a logarithm a figure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import rounded
from bncli.errors import BncliError

MOST_EXACT = 50
"""Pairs up to which the distribution of W+ is counted out: 2^50 subsets are still exact in 64 bits."""
NO_DIFFERENCE = 1e-12


@dataclass(frozen=True)
class SignedRanks:
    """Wilcoxon's test: W+ and W- of n differing pairs; p-values two-sided, and for "the first is higher" or "lower".

    z = (W+ - mean) / standard deviation is positive where the first method is higher; 0 for n = 0.
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
    """How often the first figure was higher, equal, lower, and the two-tailed p-value of the sign test."""

    wins: int
    draws: int
    losses: int
    p: float


@dataclass(frozen=True)
class PairedT:
    """The paired t-test of n pairs: the mean difference, t, and p-values two-sided and for "higher" or "lower"."""

    n: int
    mean: float
    t: float
    p: float
    p_higher: float
    p_lower: float


Kind = Literal["mean", "root", "count", "seconds", "plain"]


def paired_differences(first: ArrayLike, second: ArrayLike) -> Array:
    """Return first - second, both (n,) and finite, rounded so that equal values differ by exactly 0."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise BncliError(f"paired figures come in two lists of one length, not of shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise BncliError("paired figures must be finite numbers")
    differences = a - b
    tiny = np.abs(differences) <= NO_DIFFERENCE * np.maximum(np.abs(a), np.abs(b))
    return rounded(np.where(tiny, 0.0, differences))


def signed_ranks(first: ArrayLike, second: ArrayLike) -> SignedRanks:
    """Wilcoxon's signed-rank test of paired figures, both (n,) and finite."""
    from scipy.special import ndtr

    differences = paired_differences(first, second)
    differences = differences[differences != 0]
    n = len(differences)
    # Ranks 1, ..., n, equal magnitudes sharing their average; and how many share each.
    magnitudes = np.abs(differences)
    _, group, counts = np.unique(magnitudes, return_inverse=True, return_counts=True)
    sizes = counts.astype(np.float64)
    ranks, sizes = (sizes.cumsum() - (sizes - 1) / 2)[group], sizes
    w_plus = float(ranks[differences > 0].sum())
    w_minus = n * (n + 1) / 2 - w_plus
    variance = (n * (n + 1) * (2 * n + 1) - float((sizes**3 - sizes).sum()) / 2) / 24
    z = (w_plus - w_minus) / 2 / math.sqrt(variance) if n else 0.0
    exact = n <= MOST_EXACT and len(sizes) == n
    if exact:
        higher, lower = _exact_tail(n, int(w_plus)), _exact_tail(n, int(w_minus))
    else:
        # by symmetry and not 1 - P: small tails keep their digits
        higher, lower = float(ndtr(-z)), float(ndtr(z))
    return SignedRanks(n, w_plus, w_minus, z, min(1.0, 2 * min(higher, lower)), higher, lower, exact)


def _exact_tail(n: int, w: int) -> float:
    """Return P(W >= w), each of the ranks 1, ..., n counted with probability 1/2."""
    subsets = np.zeros(n * (n + 1) // 2 + 1, np.int64)  # subsets[s]: how many subsets of the ranks so far sum to s
    subsets[0] = 1
    for rank in range(1, n + 1):
        # a copy: what is added must not hold this rank yet
        subsets[rank:] += subsets[:-rank].copy()
    # whole numbers up to here: exact but for this one division
    return int(subsets[w:].sum()) / (1 << n)


def paired_t(first: ArrayLike, second: ArrayLike) -> PairedT:
    """Return the paired t-test of figures, both (n,) and finite.

    Where all pairs differ by one amount, t is infinite.
    """
    return t_test(paired_differences(first, second))


def t_test(differences: Array, overlap: float = 0.0) -> PairedT:
    """Return the t-test that differences (n,) have mean 0, the squared standard error (1 / n + overlap) variance."""
    from scipy.special import stdtr

    n = len(differences)
    mean = float(differences.mean()) if n else 0.0
    if n < 2 or not differences.any():
        return PairedT(n, mean, 0.0, 1.0, 1.0, 1.0)
    # equal differences have no spread, though their mean may be rounded
    spread = 0.0 if (differences == differences[0]).all() else float(differences.std(ddof=1))
    error = spread * math.sqrt(1 / n + overlap)
    t = mean / error if error > 0 else math.copysign(math.inf, mean)
    # by symmetry and not 1 - P: small tails keep their digits
    higher, lower = float(stdtr(n - 1, -t)), float(stdtr(n - 1, t))
    return PairedT(n, mean, t, min(1.0, 2 * min(higher, lower)), higher, lower)


def corrected_resampled_t(differences: ArrayLike, test_share: float) -> PairedT:
    """Nadeau & Bengio's test of differences (n,), first less second, a fold an element; 0 < test_share < 1."""
    d = np.asarray(differences, np.float64)
    if not 0 < test_share < 1:
        raise BncliError(f"the share of rows tested lies between 0 and 1, not at {test_share}")
    return t_test(paired_differences(d, np.zeros_like(d)), overlap=test_share / (1 - test_share))


def win_draw_loss(first: ArrayLike, second: ArrayLike) -> WinDrawLoss:
    """Wins, draws and losses of the first figures, where higher wins, and the sign test; draws are dropped from it."""
    differences = paired_differences(first, second)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return WinDrawLoss(wins, len(differences) - wins - losses, losses, sign_test(wins, losses))


def sign_test(wins: int, losses: int) -> float:
    """Return the two-tailed p-value of `wins` among `wins + losses` fair coins: twice the smaller tail, at most 1.

    >>> sign_test(wins=9, losses=1)  # 2 (1 + 10) / 2^10
    0.021484375
    """
    n = wins + losses
    tail = sum(math.comb(n, k) for k in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: ArrayLike) -> Array:
    """Return the adjusted p-values, in the order of `p_values`, shape (m,); reject where one is at most the level.

    >>> holm([0.75, 0.125, 0.25]).tolist()
    [0.75, 0.375, 0.5]
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise BncliError("p-values come as a list of numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def geometric_mean_ratio(first: ArrayLike, second: ArrayLike, rows: ArrayLike, kind: Kind = "mean") -> float:
    """Return the geometric mean of first / second, losses and numbers of rows (n_data,); 1 for no data sets at all.

    >>> round(geometric_mean_ratio([0.1, 0.4], [0.2, 0.2], rows=[100, 100]), 12)  # half on one, twice on the other
    1.0
    """
    a, b, n = (np.asarray(values, np.float64) for values in (first, second, rows))
    if not a.shape == b.shape == n.shape or a.ndim != 1:
        raise BncliError(f"losses and rows come in lists of one length, not of shapes {a.shape}, {b.shape}, {n.shape}")
    if not (n > 0).all():
        raise BncliError("ratios are taken of losses on at least one row")
    least: dict[Kind, Array | float]
    least = {"mean": 0.5 / n, "root": np.sqrt(0.5 / n), "count": 0.5, "seconds": 1e-9, "plain": 0.0}
    return math.exp(float(np.mean(_log(a, least[kind]) - _log(b, least[kind])))) if len(a) else 1.0


def _log(losses: Array, floor: Array | float) -> Array:
    raised = np.maximum(losses, floor)
    if not (np.isfinite(raised).all() and (losses >= 0).all() and (raised > 0).all()):
        raise BncliError("ratios are taken of finite losses that are not negative")
    return np.log(raised)
