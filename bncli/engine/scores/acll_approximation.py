"""The straight line that stands for the logarithm of a sum, so that the conditional log-likelihood decomposes.

With U_c = P(x, c), ln P(c | x) = ln U_c - ln (sum over c' of U_c'). The second term is what ties all parameters
together. Replaced by its best linear fit in the logarithms,

    ln (sum over c of U_c)  ~  beta sum over c of ln U_c + gamma,        beta = Cov(A, B) / Var(B),
    A = ln (sum over c of U_c),    B = sum over c of ln U_c,    gamma = E[A] - beta E[B]

it leaves a weighted sum of the ln U_c. beta and gamma follow from what one takes the U_c to be distributed like:

- `dirichlet`: (U_1, ..., U_K, rest) ~ Dir(1, ..., 1, N). With psi the digamma function, psi' its derivative,

      beta  = (psi'(K) - psi'(K + N)) / (psi'(1) - K psi'(K + N))
      gamma = psi(K) - psi(K + N) - beta K (psi(1) - psi(K + N))

- `uniform`: independent and uniform on [0, 1] (beta is the same on any [0, p]). Frullani's integral
  ln s = int_0^inf (exp(-z) - exp(-s z)) / z dz turns the moments into integrals of one variable,

      beta  = int_0^inf phi(z)^(K-1) [Ein(z) - 1 + exp(-z)] / z^2 dz,      phi(z) = (1 - exp(-z)) / z
      gamma = int_0^inf [exp(-z) - phi(z)^K] / z dz + K beta,              Ein(z) = int_0^z (1 - exp(-t)) / t dt

  By z = exp(x) both become integrals over all x of a smooth function that vanishes on either side; the trapezoidal
  rule is then exact to rounding.

`line_of` takes any Dirichlet distribution, and others by simulation (the paper's algorithms 1 and 2).

Source: Carvalho, Adao & Mateus 2013, Entropy 15, who give closed forms for the uniform case with K = 2 and 3 and
estimate the others by simulation.

Counts of a class held against those of all classes: what the approximate conditional log-likelihood is made of.

Putting the straight line of `bncli.engine.scores.acll_approximation` for the logarithm of the sum, the conditional
log-likelihood becomes, up to a constant,

    aCLL = sum over families, k, j, c of M_kjc ln theta_kjc,
    M_kjc = (1 - beta) N_kjc - beta (sum over c' != c of N_kjc') = N_kjc - beta (sum over all c' of N_kjc')

A cell speaks for its class (M > 0) where the class is more frequent in it than beta. With N' pseudo-counts, aCLL is
highest, among all theta_kjc >= N' / (sum over k of N+_kjc), at

    theta_kjc = N+_kjc / (sum over k of N+_kjc),      N+_kjc = max(M_kjc, N')

Source: Carvalho, Adao & Mateus 2013, Entropy 15, theorem 3.8 and equation 28 (which print a plus for M's minus).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array, log_sum
from bncli.errors import BncliError

STEP = 1.0 / 32.0
FAR = 45.0
"""Beyond exp(+-FAR) the integrands are below rounding."""


class LinearApproximation(NamedTuple):
    """Slope and intercept, in nats, of any shape."""

    beta: Array
    gamma: Array


def dirichlet(n_labels: int, n: ArrayLike) -> LinearApproximation:
    """For K = `n_labels` >= 2 classes and N = `n` >= 0 rows (sums of weights, which need not be whole): n's shape.

    >>> dirichlet(2, [10.0, 1000.0]).beta.round(6).tolist()
    [0.379322, 0.391942]
    """
    from scipy.special import polygamma, psi

    k, rows = float(n_labels), np.asarray(n, np.float64)
    trigamma = polygamma(1, k + rows)
    beta = (polygamma(1, k) - trigamma) / (polygamma(1, 1.0) - k * trigamma)
    gamma = psi(k) - psi(k + rows) - beta * k * (psi(1.0) - psi(k + rows))
    return LinearApproximation(np.asarray(beta), np.asarray(gamma))


@cache
def line_of(prior: str, n_labels: int) -> LinearApproximation:
    """Return the line under a distribution as it is typed (`bncli.catalogue.option_kinds.Prior`), for K = `n_labels`.

    Two numbers.

    BncliError where its numbers are not those of K classes.
    """
    shape, *drawn = prior.split(":")
    independent = shape.startswith("beta,")
    numbers = np.array([float(number) for number in shape.removeprefix("beta,").split(",")])
    if not independent:
        numbers = np.append(np.full(n_labels, numbers[0]), numbers[1]) if len(numbers) == 2 else numbers
        if len(numbers) != n_labels + 1:
            what = f"the class pair prior {shape} has {len(numbers)} numbers, but there are {n_labels} classes"
            raise BncliError(what, hint=f"give two, A,B, or {n_labels + 1}: one a class, and one for the rest")
    if not drawn:
        # Dir(a_1, ..., a_K, b) in closed form: the sum S of U_1, ..., U_K is Beta(a_+, b), independent of their
        # shares.
        #
        # Var(A) = psi'(a_+) - psi'(a_+ + b), Cov(A, B) = K Var(A), Var(B) = sum over c of psi'(a_c) - K^2 psi'(a_+ +
        # b)
        from scipy.special import polygamma, psi

        k, part, whole = len(numbers) - 1, numbers[:-1].sum(), numbers.sum()
        rest = polygamma(1, whole)
        beta = k * (polygamma(1, part) - rest) / (polygamma(1, numbers[:-1]).sum() - k**2 * rest)
        gamma = psi(part) - psi(whole) - beta * (psi(numbers[:-1]).sum() - k * psi(whole))
        return LinearApproximation(np.asarray(beta), np.asarray(gamma))
    n_draws, seed = map(int, (*drawn, "0")[:2])
    rng = np.random.default_rng([seed, n_labels])
    draws = _log_independent if independent else _log_dirichlet
    return _fitted_line(draws(rng, numbers, n_draws, n_labels))


def _log_independent(rng: np.random.Generator, a: Array, n_draws: int, n_labels: int) -> Array:
    """Return ln of independent beta numbers, each a gamma number's share of two; shape (draws, K)."""
    log_gammas = _log_gamma(rng, a, (n_draws, n_labels, 2))
    return np.asarray((log_gammas - log_sum(log_gammas, 2))[..., 0])


def _log_gamma(rng: np.random.Generator, a: Array, shape: tuple[int, ...]) -> Array:
    """Return ln of gamma numbers, finite however small: G(a) is like G(a + 1) U^(1 / a), U uniform."""
    return np.asarray(np.log(rng.standard_gamma(a + 1.0, shape)) - rng.standard_exponential(shape) / a)


def _log_dirichlet(rng: np.random.Generator, a: Array, n_draws: int, n_labels: int) -> Array:
    """Return the paper's algorithm 2: ln of gamma numbers that are made to sum to 1, without the rest.

    Shape (draws, K).
    """
    log_gammas = _log_gamma(rng, a, (n_draws, len(a)))
    return np.asarray((log_gammas - log_sum(log_gammas, 1))[:, :n_labels])


def _fitted_line(log_u: Array) -> LinearApproximation:
    """Return the least squares line of A on B, of draws (draws, K): the paper's algorithm 1."""
    a, b = log_sum(log_u, 1)[:, 0], log_u.sum(axis=1)
    beta = np.mean((a - a.mean()) * (b - b.mean())) / b.var()
    return LinearApproximation(np.asarray(beta), np.asarray(a.mean() - beta * b.mean()))


@cache
def uniform(n_labels: int) -> LinearApproximation:
    """For K = `n_labels` >= 1 classes, on [0, 1]; two numbers. Cost: a sum of 2,881 terms."""
    z = np.exp(np.arange(-FAR, FAR + STEP / 2, STEP))
    phi = -np.expm1(-z) / z
    beta = STEP * (phi ** (n_labels - 1) * _bracket(z) / z).sum()
    gamma = STEP * (np.exp(-z) - phi**n_labels).sum() + n_labels * beta
    return LinearApproximation(np.asarray(beta), np.asarray(gamma))


def _bracket(z: Array) -> Array:
    """Ein(z) - 1 + exp(-z); by its series below 1, where the difference would lose its digits."""
    from scipy.special import exp1

    large = np.maximum(z, 1.0)
    ein = exp1(large) + np.log(large) + np.euler_gamma
    term, series = np.ones(z.shape), np.zeros(z.shape)
    small = np.minimum(z, 1.0)
    for m in range(1, 20):
        term = term * -small / m
        series += term * (1.0 - 1.0 / m)
    return np.where(z < 1.0, series, ein + np.expm1(-large))


def contrast(counts: Array, beta: Array) -> Array:
    """M of counts (..., K), the same shape; it may be negative. `beta` is one number or fits the counts' axes.

    >>> contrast(np.array([[6.0, 2.0], [0.0, 4.0]]), np.array(0.25)).tolist()  # a cell a row, a class a column
    [[4.0, 0.0], [-1.0, 3.0]]
    """
    return np.asarray(counts - beta * counts.sum(axis=-1, keepdims=True))


def log_theta(counts: Array, beta: Array, pseudo_counts: float, axis: int) -> Array:
    """Return ln theta of counts (..., K), normalised over `axis`, the child's; finite as `pseudo_counts` N' > 0."""
    return _log_theta(contrast(counts, beta), pseudo_counts, axis)


def _log_theta(contrasts: Array, pseudo_counts: float, axis: int) -> Array:
    kept = np.maximum(contrasts, pseudo_counts)
    return np.asarray(np.log(kept / kept.sum(axis=axis, keepdims=True)))


def family_scores(counts: Array, beta: Array, pseudo_counts: float) -> Array:
    """Return the families' share of aCLL at these parameters: counts (..., r, q, K), `beta` (...), to (...), nats."""
    contrasts = contrast(counts, beta[..., np.newaxis, np.newaxis, np.newaxis])
    return np.asarray((contrasts * _log_theta(contrasts, pseudo_counts, axis=-3)).sum(axis=(-3, -2, -1)))
