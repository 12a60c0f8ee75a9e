"""Tail probabilities of the distributions that compare methods: normal, chi-squared, F and the range of normals.

    chi-squared, d degrees of freedom, h = x / 2:
        P(X >= x) = exp(-h) sum over 0 <= i < d / 2 of h^i / i!                                    for even d,
                  = erfc(sqrt(h)) + exp(-h) sum over 1 <= i < d / 2 of h^(i - 1/2) / G(i + 1/2)    for odd d

    F with d1, d2:     P(F >= f) = I(d2 / (d2 + d1 f); d2 / 2, d1 / 2),  I the regularised incomplete beta function

    range of k independent standard normals, z the largest of them:
        P(R <= r) = k integral of phi(z) [Phi(z) - Phi(z - r)]^(k - 1) dz

The last is Tukey's studentised range with infinitely many degrees of freedom. The trapezoidal rule integrates it to a
dozen digits, since the integrand is smooth and dies out at both ends.

Decided here: our own, since loading the library that has them takes longer than all comparisons do. Cost: a few terms;
the range's quantile, some ten thousand exponentials.
"""

from __future__ import annotations

import math

from bncli.engine.kernels.student import regularised_beta

_FARTHEST = 9.0
"""Beyond it the normal density is below 1e-18."""
_STEP = 1 / 32
_WIDEST = 40.0
_HALVINGS = 55


def normal_tail(z: float) -> float:
    """The probability that a standard normal number is at least z."""
    return math.erfc(z / math.sqrt(2)) / 2


def chi_squared_tail(x: float, d: int) -> float:
    """The probability that a chi-squared number with d >= 1 degrees of freedom is at least x."""
    h, odd = x / 2, d % 2
    if h <= 0:
        return 1.0
    first = 0.5 if odd else 0.0
    terms = (math.exp((first + i) * math.log(h) - h - math.lgamma(first + i + 1)) for i in range(d // 2))
    return min(1.0, (math.erfc(math.sqrt(h)) if odd else 0.0) + math.fsum(terms))


def f_tail(f: float, d1: float, d2: float) -> float:
    """The probability that an F-distributed number with d1, d2 > 0 degrees of freedom is at least f."""
    if f <= 0 or math.isinf(f):
        return 1.0 if f <= 0 else 0.0
    return regularised_beta(d2 / (d2 + d1 * f), d1 * f / (d2 + d1 * f), d2 / 2, d1 / 2)


def range_quantile(alpha: float, k: int) -> float:
    """The width that the range of k >= 2 standard normals exceeds with probability alpha, 0 < alpha < 1."""
    low, high = 0.0, _WIDEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _range_tail(middle, k) > alpha else (low, middle)
    return (low + high) / 2


def _range_tail(r: float, k: int) -> float:
    """P(R > r)."""
    steps = round(2 * _FARTHEST / _STEP)
    points = (_STEP * i - _FARTHEST for i in range(steps + 1))
    inside = math.fsum(math.exp(-z * z / 2) * (normal_tail(-z) - normal_tail(r - z)) ** (k - 1) for z in points)
    return 1 - k * _STEP * inside / math.sqrt(2 * math.pi)
