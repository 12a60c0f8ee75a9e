"""How far the straight line of aCLL is off under its own assumptions: the paper's relative error of 13.92 %.

With A = ln (sum over c of U_c), B = sum over c of ln U_c and the line beta B + gamma, which ln P(c | x) = ln U_c - A
inherits its error from,

    mean square error = Var(A) - beta Cov(A, B),        mean = E[ln P(c | x)] = E[ln U_c] - E[A]

For Dirichlet(1, ..., 1, b) both are polygammas; for independent uniform U_c the moments of A are integrals over the
distribution of a sum of K of them, and Cov(A, B) = beta Var(B) = beta K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.integrate import quad
from scipy.special import polygamma, psi

from bncli.engine.structures.scores import dirichlet_approximation, uniform_approximation
from tests.published.carvalho import B


@dataclass(frozen=True)
class LineError:
    """Mean square error of the line, and the mean of what it stands for, in nats."""

    distribution: str
    n_labels: int
    square: float
    mean: float

    @property
    def by_square(self) -> float:
        """Mean square error over the square of the mean."""
        return self.square / self.mean**2

    @property
    def by_root(self) -> float:
        """Its root, over the mean."""
        return math.sqrt(self.square) / abs(self.mean)


HEADER = ("distribution", "classes", "mean square error", "mean")


def line_errors() -> list[LineError]:
    """Those of both assumptions with two and three classes; exact to the quadrature."""
    return [make(n_labels) for make in (_dirichlet, _uniform) for n_labels in (2, 3)]


def lines(errors: list[LineError]) -> list[tuple[str, ...]]:
    return [(e.distribution, str(e.n_labels), f"{e.square:.12f}", f"{e.mean:.12f}") for e in errors]


def read(written: list[list[str]]) -> list[LineError]:
    header, *body = written
    assert tuple(header) == HEADER
    return [LineError(name, int(k), float(square), float(mean)) for name, k, square, mean in body]


def _dirichlet(n_labels: int) -> LineError:
    variance = float(polygamma(1, n_labels) - polygamma(1, n_labels + B))
    beta = float(dirichlet_approximation(n_labels, B).beta)
    mean = float(psi(1.0) - psi(n_labels))
    return LineError("Dirichlet", n_labels, variance * (1 - n_labels * beta), mean)


def _uniform(n_labels: int) -> LineError:
    first, second = (_moment(n_labels, power) for power in (1, 2))
    beta = float(uniform_approximation(n_labels).beta)
    return LineError("uniform", n_labels, second - first**2 - beta**2 * n_labels, -1.0 - first)


def _moment(n_labels: int, power: int) -> float:
    """E[A^power] for a sum of K independent uniform numbers, piece by piece of its density."""
    pieces = (quad(lambda s: math.log(s) ** power * _density(n_labels, s), k, k + 1) for k in range(n_labels))
    return float(sum(value for value, _ in pieces))


def _density(n_labels: int, s: float) -> float:
    """Irwin and Hall's: sum over k <= s of (-1)^k C(K, k) (s - k)^(K-1) / (K - 1)!."""
    terms = ((-1) ** k * math.comb(n_labels, k) * (s - k) ** (n_labels - 1) for k in range(math.floor(s) + 1))
    return sum(terms) / math.factorial(n_labels - 1)
