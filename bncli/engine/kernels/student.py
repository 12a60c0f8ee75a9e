"""The upper tail of Student's t distribution, P(T >= t) with n degrees of freedom.

    P(T >= t) = I(n / (n + t^2); n / 2, 1 / 2) / 2    for t >= 0,    1 - P(T >= -t) below

I is the regularised incomplete beta function, by its continued fraction (Press et al. 1992, Numerical Recipes, 6.4):
to a dozen digits, far out in the tail too. Cost: some ten to a few hundred terms.
"""

from __future__ import annotations

import math

_TINY = 1e-300
_PRECISION = 1e-15
_MOST_TERMS = 10_000


def student_tail(t: float, n: float) -> float:
    """The probability that a t-distributed number with n > 0 degrees of freedom is at least t."""
    if t < 0:
        return 1.0 - student_tail(-t, n)
    square = t * t
    return regularised_beta(n / (n + square), square / (n + square), n / 2, 0.5) / 2


def regularised_beta(x: float, rest: float, a: float, b: float) -> float:
    """I(x; a, b) for a, b > 0; rest = 1 - x without cancellation."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(x, a, b) / a
    return 1.0 - math.exp(log_front) * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """1 / (1 + d1 / (1 + d2 / (1 + ...))), evaluated forwards (modified Lentz)."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return value


def _away_from_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
